"""Records on standard output.  At-least-once.  Flink: ``PrintSink``."""

from __future__ import annotations

import sys
from typing import Any, TextIO

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, BinaryType, DataType, MapType, StructType

from yarnflow.spark.connectors.batch_sink import BatchSink
from yarnflow.spark.translate.schemas import quoted


class PrintWriter(BatchSink):
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
        for row in frame.select(printed(frame, self._scalar)).toLocalIterator(prefetchPartitions=True):
            out.write(f"{self._prefix}{row[0]}\n")
            rows += 1
        out.flush()
        return rows


def printed(frame: DataFrame, scalar: bool) -> Any:
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
