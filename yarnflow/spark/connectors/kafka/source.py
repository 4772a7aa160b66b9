"""Messages of Kafka by Spark's reader.

Decides the reader's options; what it reads is bytes, which workers make elements of.  A bounded source reads
what is there when a batch begins and leaves out what is behind its end.  Flink counterpart: ``KafkaSource``.
"""

from __future__ import annotations

import itertools
import json
from typing import Final

from pyspark.sql import DataFrame, DataFrameReader, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.readwriter import DataStreamReader

from yarnflow.graph.connectors.kafka import KafkaOffsetsKind, KafkaSource
from yarnflow.spark.checkpoints.job import Fence, no_fence
from yarnflow.spark.connectors.kafka.offsets import Bounds, JavaBrokers, find_bounds, kept_bounds
from yarnflow.spark.hadoop_files import HadoopFiles
from yarnflow.spark.messages.reading import KEY_COLUMN, PLACE_COLUMNS

_BOUNDS_FILE: Final = "kafka.json"


def kafka_frame(
    spark: SparkSession,
    files: HadoopFiles,
    directory: str,
    source: KafkaSource,
    reader: DataFrameReader | DataStreamReader,
    fence: Fence = no_fence,
) -> DataFrame:
    """The source's messages, as a stream or all of them, as the reader does.

    Columns are ``value`` and those of a message's place, ``key`` where messages go to a side output, or all
    that Spark knows where the source has no format.

    Parameters
    ----------
    directory : str
        For what is kept of the source; part of the job's checkpoint.
    fence : callable
        Raises when this driver may not write.

    Raises
    ------
    SourceNotFound
        The jars, the brokers, a topic or an offset are not there.
    """
    bounds = _bounds(spark, files, directory, source, fence)
    frame = reader.format("kafka").options(**reader_options(source, bounds)).load()
    if bounds.stopping is not None:
        offsets = [
            F.lit(part)
            for (topic, number), stop in bounds.stopping.items()
            for part in (f"{number} {topic}", stop)
        ]
        place = F.concat_ws(" ", F.col("partition").cast("string"), F.col("topic"))
        end = F.try_element_at(F.create_map(*offsets), place) if offsets else F.lit(0)
        frame = frame.where(F.col("offset") < end)
    if source.format is None:
        return frame
    return frame.select("value", *PLACE_COLUMNS, *([KEY_COLUMN] if source.malformed else []))


def partitions_of(spark: SparkSession, source: KafkaSource) -> int:
    """How many partitions a source reads now.

    Raises
    ------
    SourceNotFound
        The jars, the brokers or a topic are not there.
    """
    brokers = JavaBrokers(spark, source.properties)
    try:
        return len(brokers.partitions(source))
    finally:
        brokers.close()


def _bounds(
    spark: SparkSession, files: HadoopFiles, directory: str, source: KafkaSource, fence: Fence
) -> Bounds:
    path = f"{directory}/{_BOUNDS_FILE}"
    if files.exists(path):
        before = files.parsed(path, Bounds.from_json)
        found = kept_bounds(before, source, lambda: JavaBrokers(spark, source.properties))
        if found == before:
            return found
    else:
        brokers = JavaBrokers(spark, source.properties)
        try:
            found = find_bounds(source, brokers)
        finally:
            brokers.close()
    fence()
    files.write(path, found.to_json().encode())
    return found


def reader_options(source: KafkaSource, bounds: Bounds) -> dict[str, str]:
    """What Spark's reader is told."""
    options = {f"kafka.{key}": value for key, value in source.properties.items()}
    if source.topics:
        options["subscribe"] = ",".join(source.topics)
    elif source.topic_pattern:
        options["subscribePattern"] = source.topic_pattern
    else:
        grouped = itertools.groupby(sorted(source.partitions), key=lambda at: at[0])
        options["assign"] = json.dumps({topic: [number for _, number in found] for topic, found in grouped})
    starting = source.starting
    if bounds.starting:
        options["startingOffsets"] = bounds.starting
    elif starting.kind is KafkaOffsetsKind.TIMESTAMP:
        options["startingTimestamp"] = str(starting.timestamp_ms)
        # where no message is as late
        options["startingOffsetsByTimestampStrategy"] = "latest"
    else:
        options["startingOffsets"] = starting.kind.value.lower()
    if source.format is None:
        options["includeHeaders"] = "true"
    return {**options, **source.options}
