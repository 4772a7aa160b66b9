"""Streams as views of SQL queries, and the event time of what a query gives.

Event time is a hidden column of streams and a visible one of views (:mod:`yarnflow.graph.stream_graph`); a
mark in its metadata, which Spark hands on through projections, joins and windows as it does its own mark of
watermarks, tells where it is in the result.  Flink counterpart: rowtime attributes.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType, TimestampType

from yarnflow.errors import UnsupportedGraph
from yarnflow.graph.job_graph import StreamNode
from yarnflow.graph.schema import EVENT_TIME_FIELD
from yarnflow.spark.java_classes import java_class
from yarnflow.spark.translate.schemas import quoted, visible_columns
from yarnflow.spark.translate.windows import SENTINEL_TIME, WATERMARK_METADATA

#: metadata of the column with event time
_MARK: Final = "yarnflow-event-time"
#: Neither does the row that tells the end of input reach the query, nor do the query's own conditions get in
#: front of the watermark, which all records of the stream move: Spark moves no condition past one that is not
#: deterministic.
_BEHIND_WATERMARK: Final = f"{EVENT_TIME_FIELD} < {SENTINEL_TIME} AND spark_partition_id() >= 0"


def behind_watermark(frame: DataFrame) -> DataFrame:
    """The records of a stream with a watermark, for a query with state."""
    return frame.where(_BEHIND_WATERMARK) if frame.isStreaming else frame


def view(name: str, frame: DataFrame, event_time: str | None) -> DataFrame:
    """A stream as queries see it: its fields, and its event time under the name it has in views.

    Raises
    ------
    UnsupportedGraph
        The field that event time was assigned from is no timestamp.
    """
    fields = visible_columns(frame)
    if event_time is None or EVENT_TIME_FIELD not in frame.columns:
        return frame.select(*[F.col(quoted(name)) for name in fields])
    metadata = {**frame.schema[EVENT_TIME_FIELD].metadata, _MARK: True}
    time = F.col(EVENT_TIME_FIELD).alias(event_time, metadata=metadata)
    columns = [time if field.lower() == event_time.lower() else F.col(quoted(field)) for field in fields]
    if event_time.lower() not in (field.lower() for field in fields):
        return frame.select(*columns, time)
    kind = frame.select(quoted(event_time)).schema.fields[0].dataType
    if not isinstance(kind, TimestampType):
        raise UnsupportedGraph(
            f"the event time '{event_time}' of '{name}' is {kind.simpleString()}; assign it from "
            f"'CAST({event_time} AS TIMESTAMP)', then queries see it as 'event_time'"
        )
    return frame.select(*columns)


def with_event_time(node: StreamNode, result: DataFrame) -> DataFrame:
    """A query's result with its event time as the hidden column.

    Raises
    ------
    UnsupportedGraph
        Spark resolved the query in another way than the client.
    """
    marked = [found for found in result.schema.fields if _MARK in found.metadata]
    if len(marked) != 1:
        raise UnsupportedGraph(
            f"'{node.name}' ({node.origin}): {len(marked)} columns of its result are event time; give the "
            "one that "
            "later calls need a name of its own, and CAST others AS TIMESTAMP"
        )
    (field,) = marked
    time = F.col(quoted(field.name))
    if isinstance(field.dataType, StructType):
        time = F.window_time(time)
    columns = [_unmarked(one) if one is field else F.col(quoted(one.name)) for one in result.schema.fields]
    return result.select(*columns, time.alias(EVENT_TIME_FIELD))


def _unmarked(field: StructField) -> Column:
    """A column that is no event time any more: operators with state know one only."""
    kept = {key: value for key, value in field.metadata.items() if key not in (_MARK, WATERMARK_METADATA)}
    return F.col(quoted(field.name)).alias(field.name, metadata=kept)


def check_runs(spark: SparkSession, result: DataFrame, changes: bool) -> None:
    """Raises AnalysisException if Spark cannot run a streaming query over a result in its output mode."""
    if not result.isStreaming:
        return
    gateway = spark.sparkContext._gateway
    modes = java_class(gateway, "org.apache.spark.sql.streaming.OutputMode")
    checker = java_class(gateway, "org.apache.spark.sql.catalyst.analysis.UnsupportedOperationChecker")
    plan = result._jdf.queryExecution().analyzed()
    checker.checkForStreaming(plan, modes.Update() if changes else modes.Append())
