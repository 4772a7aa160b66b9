"""Bids in plain PySpark, as a streaming query that takes all there is.

spark-submit --master local[2] spark_sql.py PIPELINE OUT file|kafka DIRECTORY|SERVERS TOPIC [arrow]
"""

import json
import sys
import tempfile

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

BID = "auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, time_ms BIGINT, extra STRING"


def main(pipeline, out, kind, place, topic, function="pickle"):
    spark = SparkSession.builder.config("spark.sql.shuffle.partitions", "2").getOrCreate()
    if pipeline == "rows":
        bids = spark.readStream.text(place)
    elif kind == "file":
        bids = spark.readStream.schema(BID).json(place)
    else:
        topics = spark.readStream.format("kafka").option("kafka.bootstrap.servers", place)
        values = topics.option("subscribe", topic).option("startingOffsets", "earliest").load()
        bids = values.select(F.from_json(F.col("value").cast("string"), BID).alias("bid")).select("bid.*")
    if pipeline == "filter":
        found = bids.where("price > 900").select("auction", "bidder", "price")
    elif pipeline == "windows":
        timed = bids.withColumn("t", F.timestamp_millis("time_ms")).withWatermark("t", "10 seconds")
        counts = timed.groupBy("auction", F.window("t", "10 seconds")).count()
        found = counts.select("auction", F.unix_millis("window.start"), "count")
    elif pipeline == "udf":
        euros = F.udf(lambda price: price * 92 // 100, "long", useArrow=function == "arrow")
        found = bids.select("auction", "bidder", euros("price").alias("euros")).where("euros > 828")
    else:

        def converted(line):
            bid = json.loads(line)
            return bid["auction"], bid["bidder"], bid["price"] * 92 // 100

        rows = bids.select(F.udf(converted, "auction long, bidder long, euros long")("value").alias("bid"))
        found = rows.select("bid.*").where(F.udf(lambda euros: euros > 828, "boolean")("euros"))
    with tempfile.TemporaryDirectory() as checkpoint:
        writer = found.writeStream.format("csv").option("checkpointLocation", checkpoint)
        writer.trigger(availableNow=True).start(out).awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
