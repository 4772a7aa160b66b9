"""From rows of columns to the rows that sinks of other systems write."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, cast

import pyarrow as pa
from pyspark.sql import DataFrame

from yarnflow.graph.schema import Schema
from yarnflow.spark.messages.sink_rows import row_ddl, row_maker
from yarnflow.spark.translate.arrow_values import records
from yarnflow.spark.translate.schemas import from_struct_type


def sink_rows(frame: DataFrame, sink: object, scalar: bool | None) -> DataFrame:
    """The rows of a micro-batch for its sink.

    Parameters
    ----------
    scalar : bool or None
        The batch has columns: whether a record is the bare value of one; None = it has such rows already.
    """
    if scalar is None:
        return frame
    maker = _RowsOfColumns(sink, from_struct_type(frame.schema, scalar))
    return frame.mapInArrow(cast(Any, maker), row_ddl(sink))


class _RowsOfColumns:
    def __init__(self, sink: object, schema: Schema) -> None:
        self._sink = sink
        self._schema = schema

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        maker = row_maker(self._sink)
        for batch in batches:
            yield maker.batch(list(records(batch, self._schema)), None)
