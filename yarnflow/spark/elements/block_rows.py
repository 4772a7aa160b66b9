"""Blocks as rows of a DataFrame."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F

from yarnflow.operators.task.blocks import ALL_GROUPS, Block

#: columns in the order of Block's fields
BLOCK_DDL: Final = (
    "level int, block_group int, target int, kind int, sender bigint, sequence bigint, payload binary"
)
GROUP_COLUMN: Final = "block_group"
_ARROW: Final = pa.schema(
    [
        ("level", pa.int32()),
        (GROUP_COLUMN, pa.int32()),
        ("target", pa.int32()),
        ("kind", pa.int32()),
        ("sender", pa.int64()),
        ("sequence", pa.int64()),
        ("payload", pa.binary()),
    ]
)
#: a batch of rows is handed over when its payloads are this large …
_BATCH_BYTES: Final = 4 * 1024 * 1024
#: … or it has this many rows
_BATCH_ROWS: Final = 10_000


def block_of(row: Any) -> Block:
    """A block from a row of Spark."""
    level, group, target, kind, sender, sequence, payload = row
    return Block(level, group, target, kind, sender, sequence, bytes(payload))


def row_of(block: Block) -> Row:
    """A row of Spark for a block."""
    return Row(
        level=block.level,
        block_group=block.group,
        target=block.target,
        kind=block.kind,
        sender=block.sender,
        sequence=block.sequence,
        payload=block.payload,
    )


def to_batches(blocks: Iterable[Block]) -> Iterator[pa.RecordBatch]:
    """Blocks as Arrow batches of limited size."""
    waiting: list[Block] = []
    size = 0
    for block in blocks:
        waiting.append(block)
        size += len(block.payload)
        if size >= _BATCH_BYTES or len(waiting) >= _BATCH_ROWS:
            yield _batch(waiting)
            waiting, size = [], 0
    if waiting:
        yield _batch(waiting)


def _batch(blocks: list[Block]) -> pa.RecordBatch:
    columns = zip(
        *((b.level, b.group, b.target, b.kind, b.sender, b.sequence, b.payload) for b in blocks), strict=True
    )
    arrays = [pa.array(column, field.type) for column, field in zip(columns, _ARROW, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=_ARROW)


def from_batch(batch: pa.RecordBatch) -> Iterator[Block]:
    """The blocks of an Arrow batch."""
    return map(Block, *(batch.column(name).to_pylist() for name in _ARROW.names))


def payloads(batches: Iterable[pa.RecordBatch]) -> Iterator[bytes]:
    """What the blocks of a partition hold, as they come."""
    for batch in batches:
        yield from batch.column("payload").to_pylist()


def payloads_in_order(batches: Iterable[pa.RecordBatch]) -> Iterator[bytes]:
    """The same by sender, and as each of them sent it.

    Spark sorts the blocks that pass a level with state by their group, and not always keeps the order of
    those of one group: not when it sorts on disk.  The blocks of the partition are in memory.
    """
    held = list(batches)
    places = [
        (sender, sequence, number, row)
        for number, batch in enumerate(held)
        for row, (sender, sequence) in enumerate(
            zip(batch.column("sender").to_pylist(), batch.column("sequence").to_pylist(), strict=True)
        )
    ]
    for _, _, number, row in sorted(places):
        yield held[number].column("payload")[row].as_py()


def spread(frame: DataFrame, level: int, groups: int) -> DataFrame:
    """The frame with blocks for all groups of a level once for each of its groups."""
    group = F.col(GROUP_COLUMN)
    for_all = (F.col("level") == level) & (group == ALL_GROUPS)
    each = F.sequence(F.lit(0), F.lit(groups - 1))
    return frame.withColumn(GROUP_COLUMN, F.explode(F.when(for_all, each).otherwise(F.array(group))))


def of_target(frame: DataFrame, node_id: int) -> DataFrame:
    """Blocks that have reached a sink."""
    target: Column = F.col("target") == node_id
    return frame.where(target)
