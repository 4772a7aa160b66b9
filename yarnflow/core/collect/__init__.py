"""Elements on their way from a job's driver to the program that collects them.

Decides how they lie in files, which of them may be read, and when a program that reads no more is taken for
gone.  Knows no file system, no wire and no Python object: elements are bytes here.

Flink counterparts: ``CollectSinkFunction``, ``CollectCoordinationResponse``, ``CollectResultFetcher``.
"""
