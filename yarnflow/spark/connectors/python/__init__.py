"""Sources and sinks that users write in Python by Spark's data source API, for DataStream programs.

Classes of users are run as Spark runs them: what plans and commits beside the driver, what reads and writes
in tasks.  Flink counterparts: FLIP-27's ``Source`` and ``Sink``.
"""
