"""An ordinary PySpark streaming script, which yarnflow runs as it is.

    yarnflow submit examples/plain_pyspark.py --input /data/texts --output /data/words

Splits new text files into words, appends them to Parquet and shows the most frequent ones.
Run again, it goes on where its checkpoint ends.
"""

import argparse

from pyspark.sql import SparkSession
from pyspark.sql.functions import col, explode, lower, split

parser = argparse.ArgumentParser(description="Appends the words of text files to Parquet.")
parser.add_argument("--input", required=True, help="directory of text files")
parser.add_argument("--output", required=True, help="directory for words/ and checkpoint/")
arguments = parser.parse_args()

spark = SparkSession.builder.appName("plain_pyspark").getOrCreate()
lines = spark.readStream.text(arguments.input)
words = lines.select(explode(split(lower(col("value")), r"\W+")).alias("word")).where("word <> ''")
query = (
    words.writeStream.format("parquet")
    .queryName("words")
    .option("path", f"{arguments.output}/words")
    .option("checkpointLocation", f"{arguments.output}/checkpoint")
    .trigger(availableNow=True)
    .start()
)
query.awaitTermination()
counts = spark.read.parquet(f"{arguments.output}/words").groupBy("word").count()
counts.orderBy(col("count").desc(), "word").show(10)
