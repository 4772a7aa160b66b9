"""Which jars a job needs beside Spark's own.

Decides how they are asked for, which of them cannot go together, and which packages connectors need.
Opens no file and resolves nothing.  Flink counterparts: ``pipeline.jars``, ``ConfigUtils``; Spark's:
``spark.jars``, ``spark.jars.packages``.
"""
