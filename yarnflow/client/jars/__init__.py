"""From the jars a job asks for to jars a cluster can have, before the job is handed over.

Flink counterparts: ``ClientUtils`` and ``JarUtils``; Spark's: ``SparkSubmit`` with ``DependencyUtils``.
"""
