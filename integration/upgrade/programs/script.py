"""An unmodified PySpark script: a stateful query with a checkpoint of its own, another one without."""

import sys

from pyspark.sql import SparkSession
from pyspark.sql import functions as F


def main(directory, output, bounded="", _stopped=""):
    spark = SparkSession.builder.appName("script").getOrCreate()
    spark.conf.set("spark.sql.shuffle.partitions", "1")
    trigger = {"availableNow": True} if bounded else {"processingTime": "200 milliseconds"}
    events = (
        spark.readStream.schema("k STRING, n BIGINT")
        .option("maxFilesPerTrigger", 1)
        .csv(f"{directory}/events")
        .withColumn("at", F.timestamp_seconds("n"))
        .withWatermark("at", "0 seconds")
    )

    def write(frame, batch_id):
        frame.coalesce(1).write.mode("overwrite").json(f"{output}/running/{batch_id}")

    running = events.groupBy("k").agg(F.count("*").alias("c"), F.sum("n").alias("total"))
    (
        running.writeStream.outputMode("update")
        .queryName("running")
        .option("checkpointLocation", f"{output}-checkpoint")
        .trigger(**trigger)
        .foreachBatch(write)
        .start()
    )
    windows = events.groupBy(F.window("at", "5 seconds"), "k").agg(F.sum("n").alias("total"))
    (
        windows.select("k", F.unix_seconds("window.start").alias("start"), "total")
        .writeStream.format("json")
        .option("path", f"{output}/windows")
        .trigger(**trigger)
        .start()
    )
    for query in spark.streams.active:
        query.awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
