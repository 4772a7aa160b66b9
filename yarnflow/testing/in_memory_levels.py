"""Levels of a job run in memory: no Spark, no files, one process.

Does with blocks what Spark's shuffles and state stores do, so that a whole program can be tried in
a unit test, micro-batch by micro-batch.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from yarnflow.graph.closures import Closure, dumps_with_classes
from yarnflow.operators.elements import Chunk
from yarnflow.operators.functions.measures import Measures, OperatorMeasures, add_measures, source_node
from yarnflow.operators.state.store import GroupStore
from yarnflow.operators.task.blocks import ALL_GROUPS, END, SINK_LEVEL, TICK, Block
from yarnflow.operators.task.level_run import LevelRun
from yarnflow.operators.task.micro_batch import MicroBatch
from yarnflow.operators.task.plan import JobInfo, LevelPlan

#: that the groups of a keyed level are divided among
_KEYED_SUBTASKS: Final = 2


class InMemoryLevels:
    """A job's levels with their state.

    Parameters
    ----------
    sources : sequence of LevelPlan
        Level 0, one for each source.
    levels : sequence of LevelPlan
        Levels 1, 2, …
    groups : int
        Groups that a broadcast reaches in each level.
    """

    def __init__(self, sources: Sequence[LevelPlan], levels: Sequence[LevelPlan], groups: int = 4) -> None:
        self._sources = sources
        self._levels = levels
        self._groups = groups
        #: group → its pickled Snapshot, of levels 1, 2, …
        self.stores: list[dict[int, bytes]] = [{} for _ in levels]
        self._batch = 0
        self._run = 0
        #: sink node → elements it got
        self.sinks: dict[int, list[Any]] = {}
        #: what the operators counted
        self.measures: Measures = {}

    def restart(self) -> None:
        """The job starts again, with the state it has."""
        self._run += 1

    def run_batch(
        self,
        inputs: Mapping[int, Sequence[Iterable[Chunk]]] | None = None,
        now_ms: int = 0,
        end: bool = False,
        tick: bool = False,
        whole: bool = False,
    ) -> None:
        """One micro-batch.

        Parameters
        ----------
        inputs : mapping, optional
            Number of a source → its partitions, each of chunks.
        now_ms : int
            Its processing time.
        end : bool
            The input has ended.
        tick : bool
            All groups are told that time has passed.
        whole : bool
            The job runs as a batch, and this is it; with ``end``.
        """
        batch = MicroBatch(self._batch, now_ms, self._run, whole)
        blocks: list[Block] = []
        for number, partitions in (inputs or {}).items():
            for partition, chunks in enumerate(partitions):
                run = self._opened(self._sources[number], partition)
                blocks += run.run_source(chunks, (number << 20) + partition, batch)
                read = OperatorMeasures(run.elements_read, run.elements_read)
                add_measures(self.measures, {(source_node(number), partition): read, **run.take_measures(1)})
                _close(run)
        kinds = [kind for kind, wanted in ((END, end), (TICK, tick)) if wanted]
        blocks += [
            Block(plan.level, ALL_GROUPS, 0, kind, 1 << 60, 0, b"") for plan in self._levels for kind in kinds
        ]
        for plan, stores in zip(self._levels, self.stores, strict=True):
            blocks = self._run_level(plan, stores, blocks, batch)
        for block in blocks:
            assert block.level == SINK_LEVEL, block
            self.sinks.setdefault(block.target, []).extend(pickle.loads(block.payload)[1])
        self._batch += 1

    def _run_level(
        self, plan: LevelPlan, stores: dict[int, bytes], blocks: list[Block], batch: MicroBatch
    ) -> list[Block]:
        passed = [block for block in blocks if block.level != plan.level]
        by_group: dict[int, list[Block]] = {}
        for block in blocks:
            if block.level == plan.level:
                groups = range(self._groups) if block.group == ALL_GROUPS else [block.group]
                for group in groups:
                    by_group.setdefault(group, []).append(block)
        runs: dict[int, LevelRun] = {}
        for group, found in sorted(by_group.items()):
            # each subtask has functions of its own, a keyed one those of many groups
            number = group % _KEYED_SUBTASKS if plan.keyed else group
            run = runs[number] = runs.get(number) or self._opened(plan, number)
            # pickled as a whole in between, as a worker that lost everything would find it
            snapshot = pickle.loads(stores[group]) if group in stores else None
            store = GroupStore.load(snapshot)
            passed += run.run_group(group, store, found, batch)
            add_measures(self.measures, run.take_measures(1))
            # what a commit looks at: values that are not of their state's type end the batch
            store.changes()
            stores[group] = pickle.dumps(store.snapshot())
        for run in runs.values():
            _close(run)
        return passed

    def _opened(self, plan: LevelPlan, subtask: int) -> LevelRun:
        return LevelRun(plan, JobInfo(), subtask, _load, dumps_with_classes, pickle.loads)


def _close(run: LevelRun) -> None:
    """Operators that cannot be closed fail the test; a cluster says so in a log."""
    for error in run.close():
        raise error


def _load(closure: Closure) -> Any:
    return pickle.loads(closure.payload)
