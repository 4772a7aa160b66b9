"""Records from topic to topic in plain PySpark, as they come.

spark-submit --master local[6] spark_latency.py pass|count SERVERS FROM TO real-time|micro-batch
"""

import sys
import tempfile

from pyspark.sql import SparkSession
from pyspark.sql import functions as F


def main(pipeline, servers, topic, out, mode):
    spark = SparkSession.builder.config("spark.sql.shuffle.partitions", "2").getOrCreate()
    topics = spark.readStream.format("kafka").option("kafka.bootstrap.servers", servers)
    values = topics.option("subscribe", topic).option("startingOffsets", "earliest").load()
    sent = values.select(F.from_json(F.col("value").cast("string"), "k BIGINT, sent_us BIGINT").alias("r"))
    sent = sent.select("r.*")
    if pipeline == "pass":
        found = sent.withColumn("n", F.lit(1).cast("long"))
    else:
        found = sent.groupBy("k").agg(F.max("sent_us").alias("sent_us"), F.count("*").alias("n"))
    texts = found.select(F.to_json(F.struct("k", "sent_us", "n")).alias("value"))
    with tempfile.TemporaryDirectory() as checkpoint:
        writer = texts.writeStream.format("kafka").option("kafka.bootstrap.servers", servers)
        writer = writer.option("topic", out).option("checkpointLocation", checkpoint).outputMode("update")
        when = {"realTime": "120 seconds"} if mode == "real-time" else {"processingTime": "0 seconds"}
        writer.trigger(**when).start().awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
