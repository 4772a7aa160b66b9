"""Records of a stream with the rows of an outside table, as one ``mapInArrow``.

Runs in Spark's Python workers.  Decides what a worker keeps open between tasks and how rows come beside
records; what is kept of a table's rows is decided by :mod:`yarnflow.operators.lookups`.  Flink counterpart:
``LookupJoinRunner``.
"""
