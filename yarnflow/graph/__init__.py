"""What a program is before it runs: StreamGraph, JobGraph, chaining, types, expressions; as values and JSON.

Used by clients, JobManagers and drivers.  Pure: no JVM, no Spark.  Never decides how Spark runs it:
``spark.translate`` does.
"""
