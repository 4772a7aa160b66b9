"""What element types do to values: checking and converting them, and the text Flink prints.

Runs in workers on whole chunks, and on the client for collections.  Never decides which type a
stream has (:mod:`yarnflow.api`) nor how values become columns (:mod:`yarnflow.spark.translate`).
"""
