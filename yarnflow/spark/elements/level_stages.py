"""Levels as Spark's operators: what runs in its Python workers.

A stateful level is a ``transformWithState`` whose grouping key is the group; its state is the group's log.
One without state is a ``mapInArrow``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from operator import attrgetter
from typing import Any, Final, cast

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from yarnflow.operators.elements import Chunk
from yarnflow.operators.state.backends.group_storage import GroupHead, LogEntry, head_of, values_of
from yarnflow.operators.state.store import GroupStore
from yarnflow.operators.task.blocks import Block
from yarnflow.spark.elements.block_rows import (
    BLOCK_DDL,
    GROUP_COLUMN,
    block_of,
    from_batch,
    row_of,
    spread,
    to_batches,
)
from yarnflow.spark.elements.measuring import Measuring
from yarnflow.spark.elements.told_batch import told_batch
from yarnflow.spark.elements.worker_runs import LevelTask, backends, named_memory_errors, worker_runs

#: bits of a sender's number that tell the partition; those above tell the source
_PARTITION_BITS: Final = 20
#: as ``head_of`` takes them
HEAD_DDL: Final = (
    "token string, first bigint, next bigint, snapshot_bytes bigint, tail_bytes bigint, root binary"
)
_NUMBER_DDL: Final = "number bigint"
_SHUFFLE_PARTITIONS: Final = "spark.sql.shuffle.partitions"
_ENTRY_DDL: Final = "previous string, body binary"


def partition_number() -> int:
    """Number of the partition this worker works on."""
    context = TaskContext.get()
    return 0 if context is None else context.partitionId()


class SourceStage:
    """Level 0 behind one source, for ``mapInArrow``.

    Parameters
    ----------
    task : LevelTask
        The level.
    read : callable
        From a batch of the source's rows to a chunk.
    """

    def __init__(self, task: LevelTask, read: Callable[[pa.RecordBatch], Chunk]) -> None:
        self._task = task
        self._read = read

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        partition = partition_number()
        chunks = (self._read(batch) for batch in batches if batch.num_rows)
        sender = (self._task.source << _PARTITION_BITS) + partition
        batch = told_batch()
        with Measuring(self._task) as measuring:
            with worker_runs.opened_level(self._task, partition, batch.number) as run:
                yield from to_batches(measuring.timed(run.run_source(chunks, sender, batch)))
                measuring.source_read(run, partition)


class PlainStage:
    """A level without state, for ``mapInArrow``.

    Spark does not sort streams, so blocks are sorted here: a partition's are in memory.
    """

    def __init__(self, task: LevelTask) -> None:
        self._task = task

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return to_batches(self._blocks(block for batch in batches for block in from_batch(batch)))

    def _blocks(self, blocks: Iterable[Block]) -> Iterator[Block]:
        batch = told_batch()
        with worker_runs.opened_level(self._task, partition_number(), batch.number) as run:
            own: dict[int, list[Block]] = {}
            for block in blocks:
                if block.level == self._task.plan.level:
                    own.setdefault(block.group, []).append(block)
                else:
                    yield block
            for group in sorted(own):
                with Measuring(self._task) as measuring:
                    yield from measuring.timed(run.run_group(group, GroupStore(), own.pop(group), batch))
                    measuring.group_done(run)


class BatchStage:
    """A level of a batch, for ``mapInArrow``: the rows are sorted by group, and no state outlives its turn.

    Parameters
    ----------
    task : LevelTask
        The level.
    """

    def __init__(self, task: LevelTask) -> None:
        self._task = task

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return to_batches(self._blocks(block for batch in batches for block in from_batch(batch)))

    def _blocks(self, blocks: Iterable[Block]) -> Iterator[Block]:
        batch, partition, plan = told_batch(), partition_number(), self._task.plan
        for group, found in groupby(blocks, key=attrgetter("group")):
            own: list[Block] = []
            for block in found:
                if block.level == plan.level:
                    own.append(block)
                else:
                    yield block
            if not own:
                continue
            number = partition if plan.keyed else group
            with (
                Measuring(self._task) as measuring,
                worker_runs.opened_level(self._task, number, batch.number) as run,
            ):
                store = GroupStore()
                yield from measuring.timed(run.run_group(group, store, own, batch))
                # values that are not of their state's type are found here
                store.changes()
                measuring.group_done(run)


class StateStorage:
    """A group's state in Spark's; the group is the one Spark has called the processor for."""

    def __init__(self, handle: StatefulProcessorHandle) -> None:
        self._head = handle.getValueState("head", HEAD_DDL)
        self._entries = handle.getMapState("log", _NUMBER_DDL, _ENTRY_DDL)

    def head(self) -> GroupHead | None:
        found = self._head.get()
        return None if found is None else head_of(found)

    def set_head(self, head: GroupHead) -> None:
        self._head.update(values_of(head))

    def entry(self, number: int) -> LogEntry | None:
        found = self._entries.getValue((number,))
        return None if found is None else LogEntry(found[0], bytes(found[1]))

    def put_entry(self, number: int, entry: LogEntry) -> None:
        self._entries.updateValue((number,), (entry.previous, entry.body))

    def remove_entry(self, number: int) -> None:
        self._entries.removeKey((number,))


class StatefulStage(StatefulProcessor):
    """A level with state, for ``transformWithState``."""

    def __init__(self, task: LevelTask) -> None:
        self._task = task

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Spark calls this once per task."""
        self._storage = StateStorage(handle)
        self._batch = told_batch()

    def handleInputRows(  # noqa: N802
        self, key: Any, rows: Iterator[Row], timerValues: Any  # noqa: N803
    ) -> Iterator[Row]:
        """Spark calls this once per group and micro-batch."""
        own: list[Block] = []
        for row in rows:
            if row[0] == self._task.plan.level:
                own.append(block_of(row))
            else:
                yield row
        if not own:
            return
        task, group, batch = self._task, key[0], self._batch.number
        # every subtask has functions of its own; those of a keyed level serve all key groups of a partition
        number = partition_number() if task.plan.keyed else group
        with Measuring(task) as measuring, named_memory_errors(task) as at_work:
            turn = backends.open(
                task.settings.state_backend, self._storage, worker_runs.take_group(task, group, batch)
            )
            at_work.store = turn.store
            with worker_runs.opened_level(task, number, batch) as run:
                for block in measuring.timed(run.run_group(group, turn.store, own, self._batch)):
                    yield row_of(block)
                kept = turn.commit()
                measuring.group_done(run)
        if kept is not None:
            worker_runs.put_group(task, group, kept, batch)
        worker_runs.check_memory(task, turn.store)

    def close(self) -> None:
        """The operators stay open for the next micro-batch."""


def source_blocks(
    frame: DataFrame, task: LevelTask, read: Callable[[pa.RecordBatch], Chunk]
) -> DataFrame:
    """Blocks of one source."""
    return frame.mapInArrow(cast(Any, SourceStage(task, read)), BLOCK_DDL)


def level_blocks(frame: DataFrame, task: LevelTask, groups: int) -> DataFrame:
    """What a level makes of the blocks of all levels before it.

    Parameters
    ----------
    groups : int
        Groups of the level that blocks for all groups reach.
    """
    level = task.plan.level
    spreaded = spread(frame, level, groups)
    if not frame.isStreaming:
        return _of_batch(spreaded, task, groups).mapInArrow(cast(Any, BatchStage(task)), BLOCK_DDL)
    if task.plan.stateful:
        return spreaded.groupBy(GROUP_COLUMN).transformWithState(
            statefulProcessor=StatefulStage(task),
            outputStructType=BLOCK_DDL,
            outputMode="append",
            timeMode="none",
        )
    # a partition is a subtask
    by_subtask = spreaded.repartitionById(groups, F.pmod(F.col(GROUP_COLUMN), F.lit(groups)))
    return by_subtask.mapInArrow(cast(Any, PlainStage(task)), BLOCK_DDL)


def _of_batch(frame: DataFrame, task: LevelTask, groups: int) -> DataFrame:
    """The blocks of a batch, those of one group behind each other in one partition."""
    group = F.col(GROUP_COLUMN)
    if task.plan.keyed:
        # with a number, or Spark would put small partitions together, and a slow function has few subtasks
        subtasks = int(frame.sparkSession.conf.get(_SHUFFLE_PARTITIONS) or 1)
        return frame.repartition(subtasks, group).sortWithinPartitions(group)
    return frame.repartitionById(groups, F.pmod(group, F.lit(groups))).sortWithinPartitions(group)
