"""Sinks of a query in real time: Spark's own writers, which take each record as it comes.

At least once: what was written since the last commit is written again after a failure.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.streaming.readwriter import DataStreamWriter

from yarnflow.graph.connectors.kafka import KafkaSink
from yarnflow.graph.connectors.sinks import PrintSink
from yarnflow.graph.job_graph import StreamNode
from yarnflow.spark.connectors.print_sink import printed
from yarnflow.spark.translate.native_messages import native_records

#: Spark's writer has serializers of its own
_NOT_SPARKS = ("key.serializer", "value.serializer")


def real_time_writer(node: StreamNode, frame: DataFrame, scalar: bool) -> DataStreamWriter:
    """What writes the records of a sink.

    Parameters
    ----------
    node : StreamNode
        The sink.
    frame : DataFrame
        What reaches it.
    scalar : bool
        Records are bare values.
    """
    sink = node.operator
    if isinstance(sink, PrintSink):
        prefix = f"{sink.identifier}> " if sink.identifier else ""
        return frame.select(printed(frame, scalar).alias("line")).writeStream.foreach(_Printer(prefix))
    assert isinstance(sink, KafkaSink), "others stand in the way of real time"
    options = {f"kafka.{key}": value for key, value in sink.properties.items() if key not in _NOT_SPARKS}
    writer = native_records(sink, frame).writeStream.format("kafka")
    return writer.options(**options).option("topic", sink.topic)


class _Printer:
    """Prints lines where the record is: in the executor's log."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix

    def process(self, row: Any) -> None:
        print(f"{self._prefix}{row[0]}", flush=True)
