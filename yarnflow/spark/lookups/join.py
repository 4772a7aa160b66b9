"""The rows of a table beside the records of a stream, a batch at a time."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa

from yarnflow.operators.lookups.answers import Answers
from yarnflow.operators.lookups.cache import Key
from yarnflow.spark.lookups.kept import LookupTask, kept_lookups
from yarnflow.spark.translate.arrow_values import ColumnBuilder, column_values

#: most records in one output batch
OUTPUT_BATCH_ROWS: Final = 10_000


@dataclass(frozen=True, slots=True)
class LookupJoinTask:
    """The function given to ``mapInArrow``: batches in, batches with the table's columns out."""

    task: LookupTask
    #: all columns that go out: record fields, the table's columns, hidden columns
    output: pa.Schema
    #: Spark type text of the table's columns, for messages
    type_names: dict[str, str] = field(default_factory=dict)

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if batch.num_rows:
                yield from self._joined(batch)

    def _joined(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        try:
            joined = Joined(self, batch, kept_lookups.answers(self.task))
        except BaseException:
            kept_lookups.drop(self.task)
            raise
        yield from joined.batches()


class Joined:
    """One batch with what was found for it.

    Parameters
    ----------
    join : LookupJoinTask
    batch : RecordBatch
        Records and hidden columns.
    answers : Answers
        What is asked, once for all different keys.
    """

    def __init__(self, join: LookupJoinTask, batch: pa.RecordBatch, answers: Answers) -> None:
        self._output = join.output
        self._batch = batch
        operator = join.task.join
        columns = [column_values(batch.column(name)) for name, _ in operator.keys]
        keys: list[Key] = list(zip(*columns, strict=True))
        found = answers.find(keys, time.monotonic_ns() // 1_000_000)
        # each row of the table is a row of Arrow once, however many records it belongs to
        first: dict[Key, range] = {}
        rows: list[tuple[object, ...]] = []
        for key, its_rows in found.items():
            first[key] = range(len(rows), len(rows) + len(its_rows))
            rows += its_rows
        self._table = self._table_columns(join, rows)
        none: Sequence[int | None] = (None,) if operator.left else ()
        self._pairs = [
            (record, row) for record, key in enumerate(keys) for row in first[key] or none
        ]

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Pairs of record and row, some thousand at a time."""
        for start in range(0, len(self._pairs), OUTPUT_BATCH_ROWS):
            records, rows = zip(*self._pairs[start : start + OUTPUT_BATCH_ROWS], strict=True)
            taken = self._batch.take(pa.array(records, pa.int64()))
            places = pa.array(rows, pa.int64())
            arrays = [
                self._table[one.name].take(places)
                if one.name in self._table
                else _as_type(taken.column(one.name), one.type)
                for one in self._output
            ]
            yield pa.RecordBatch.from_arrays(arrays, schema=self._output)

    @staticmethod
    def _table_columns(join: LookupJoinTask, rows: list[tuple[object, ...]]) -> dict[str, pa.Array]:
        lookup = join.task.join.lookup
        builder = ColumnBuilder(join.output, lookup.columns, join.task.what, join.type_names)
        columns = zip(*rows, strict=True) if rows else ((),) * len(lookup.columns.fields)
        return {
            name: builder.array(name, column)
            for name, column in zip(lookup.columns.names, columns, strict=True)
        }


def _as_type(column: pa.Array, kind: pa.DataType) -> pa.Array:
    return column if column.type == kind else column.cast(kind)
