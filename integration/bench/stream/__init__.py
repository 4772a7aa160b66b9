"""``scripts/bench stream``: pipelines of JSON records on yarnflow, Flink SQL, PyFlink and plain
Spark.

The same records are read by every engine, from files or from a real Kafka, and written to CSV files;
what each engine wrote is compared with what is right before anything is said about its time.  Runs in one
process that starts the engines' commands one after the other.
"""
