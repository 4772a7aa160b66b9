"""Sinks, one micro-batch at a time.

Decides how a batch leaves the job.  Files are exactly-once (see :mod:`yarnflow.spark.connectors.file_sink`),
printing is at-least-once, a user's function is what it makes of the batch's number.  Never decides
when a batch runs.  Flink counterparts: ``PrintSink``, ``FileSink``.
"""

from __future__ import annotations

import sys
from typing import Any, Final, Protocol, TextIO

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, BinaryType, DataType, MapType, StructType

from yarnflow.errors import UserCodeError
from yarnflow.graph.closures import load_closure
from yarnflow.graph.job_graph import StreamNode
from yarnflow.graph.operators import Closure, DiscardSink, FileSink, ForeachBatchSink, PrintSink
from yarnflow.spark.checkpoints.job import Fence, no_fence
from yarnflow.spark.connectors.file_sink import FileWriter
from yarnflow.spark.run.user_errors import user_traceback_of
from yarnflow.spark.translate.schemas import quoted

_UNKNOWN_ROWS: Final = -1


class BatchSink(Protocol):
    """Takes the batches of one sink."""

    def write(self, frame: DataFrame, batch_id: int) -> int:
        """Write one batch; returns its rows, -1 if that is not known."""

    def finish(self) -> None:
        """Every batch is committed; none will come again."""


def batch_sink(
    spark: SparkSession, node: StreamNode, scalar: bool, query_id: str, fence: Fence = no_fence
) -> BatchSink:
    """The writer of a sink node.

    Parameters
    ----------
    query_id : str
        Identity of the query's checkpoint: the same after a restart, another for another job.
    fence : callable
        Raises when this driver may not write.
    """
    operator = node.operator
    if isinstance(operator, PrintSink):
        return PrintWriter(operator.identifier, scalar)
    if isinstance(operator, FileSink):
        return FileWriter(spark, operator, f"{query_id[:8]}-{node.operator_hash[:8]}", fence)
    if isinstance(operator, DiscardSink):
        return DiscardWriter()
    assert isinstance(operator, ForeachBatchSink)
    return ForeachBatchWriter(operator.closure)


class PrintWriter:
    """Records on standard output, ``identifier> +I[a, 1]``.

    Parameters
    ----------
    identifier : str
        Prefix; none if empty.
    scalar : bool
        Print the bare value.
    out : text file, optional
        Default the driver's standard output.
    """

    def __init__(self, identifier: str, scalar: bool, out: TextIO | None = None) -> None:
        self._prefix = f"{identifier}> " if identifier else ""
        self._scalar = scalar
        self._out = out

    def write(self, frame: DataFrame, batch_id: int) -> int:
        """Print a batch; no more than two partitions of it are in memory."""
        out = self._out or sys.stdout
        rows = 0
        for row in frame.select(_printed(frame, self._scalar)).toLocalIterator(prefetchPartitions=True):
            out.write(f"{self._prefix}{row[0]}\n")
            rows += 1
        out.flush()
        return rows

    def finish(self) -> None:
        pass


class DiscardWriter:
    """Computes the records, for what their functions do, and drops them."""

    def write(self, frame: DataFrame, batch_id: int) -> int:
        frame.write.format("noop").mode("append").save()
        return _UNKNOWN_ROWS

    def finish(self) -> None:
        pass


def _printed(frame: DataFrame, scalar: bool) -> Any:
    """The record as text, formatted by Spark: time zones and nested values as in its SQL."""
    texts = [_text(F.col(quoted(f.name)), f.dataType) for f in frame.schema.fields]
    if scalar and len(texts) == 1:
        return texts[0]
    # concat_ws skips nulls, which _text never gives
    return F.concat(F.lit("+I["), F.concat_ws(", ", *texts), F.lit("]"))


def _text(column: Any, kind: DataType) -> Any:
    if isinstance(kind, BinaryType):
        return F.coalesce(F.hex(column), F.lit("null"))
    if isinstance(kind, (ArrayType, MapType, StructType)):
        return F.coalesce(F.to_json(column), F.lit("null")) if _holds_binary(kind) else _cast(column)
    return _cast(column)


def _cast(column: Any) -> Any:
    return F.coalesce(column.cast("string"), F.lit("null"))


def _holds_binary(kind: DataType) -> bool:
    return "binary" in kind.simpleString()


class ForeachBatchWriter:
    """Calls the user's function in the driver.

    Parameters
    ----------
    closure : Closure
        ``f(dataframe, batch_id)``.
    """

    def __init__(self, closure: Closure) -> None:
        self._closure = closure
        self._function = load_closure(closure)

    def write(self, frame: DataFrame, batch_id: int) -> int:
        try:
            self._function(frame, batch_id)
        except PySparkException:
            raise
        except Exception as error:
            found = user_traceback_of(error)
            raise UserCodeError(
                f"{found.summary} (batch {batch_id}, {self._closure.origin})", found.text
            ) from error
        return _UNKNOWN_ROWS

    def finish(self) -> None:
        pass
