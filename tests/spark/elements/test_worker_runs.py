"""What workers keep never changes what is computed, and does not pile up."""

from __future__ import annotations

import itertools
import pickle
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, cast
from unittest.mock import Mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import Row

from yarnflow.core.resources.memory import TaskManagerMemory, task_manager_memory
from yarnflow.errors import StateTooLarge
from yarnflow.graph.closures import Closure
from yarnflow.operators.state.backends.group_log import KeptGroup
from yarnflow.operators.state.backends.turns import HASHMAP, ROCKSDB, Backends
from yarnflow.operators.state.keyed import KeyedState
from yarnflow.operators.state.kinds import StateKind
from yarnflow.operators.state.store import GroupStore
from yarnflow.operators.task.blocks import Block
from yarnflow.operators.task.key_groups import stable_hash
from yarnflow.operators.task.level_run import LevelRun
from yarnflow.operators.task.plan import JobInfo, LevelPlan, OperatorPlan
from yarnflow.spark.elements import level_stages
from yarnflow.spark.elements.block_rows import row_of
from yarnflow.spark.elements.worker_memory import MemoryUsage, MemoryWatch
from yarnflow.spark.elements.worker_runs import (
    KEPT_BATCHES,
    LevelTask,
    WorkerRuns,
    WorkerSettings,
    backends,
    named_memory_errors,
)
from yarnflow.testing.state import StoredGroup


class Opened:
    """Instead of a level's operators."""

    def __init__(self, fails_to_close: bool) -> None:
        self.closed = 0
        self._fails_to_close = fails_to_close

    def close(self) -> list[Exception]:
        self.closed += 1
        if not self._fails_to_close:
            return []
        try:
            int("nine")
        except ValueError as error:
            error.add_note("operator 'count': close()")
            return [error]
        raise AssertionError("unreachable")


class Worker:
    """One worker, and everything that was opened in it."""

    def __init__(self, fails_to_close: bool = False) -> None:
        self.opened: list[Opened] = []
        self.usage = MemoryUsage(0)
        self._fails_to_close = fails_to_close
        self.runs = WorkerRuns(self._open, self._watch)

    def _open(self, task: LevelTask, subtask: int) -> LevelRun:
        self.opened.append(Opened(self._fails_to_close))
        return cast(LevelRun, self.opened[-1])

    def _watch(self, limits: TaskManagerMemory) -> MemoryWatch:
        seconds = itertools.count(step=60)
        return MemoryWatch(limits, lambda _: self.usage, lambda: next(seconds), True)

    def use(self, partition: int, batch: int, level: int = 0, run_id: str = "a") -> Opened:
        with self.runs.opened_level(task(level, run_id), partition, batch) as run:
            return cast(Opened, run)


COUNT = OperatorPlan(3, "count-id", "count", "job.py:1", Closure(b"", "", ""), ())


def task(
    level: int = 1, run_id: str = "a", memory: TaskManagerMemory | None = None, backend: str = HASHMAP
) -> LevelTask:
    return LevelTask(run_id, LevelPlan(level, (COUNT,)), JobInfo(), WorkerSettings(backend, memory))


def kept(token: str = "t") -> KeptGroup:
    return KeptGroup(token, 1, GroupStore(), 0)


def test_operators_of_partitions_that_went_to_other_workers_are_closed() -> None:
    worker = Worker()
    gone, stays = worker.use(0, batch=1), worker.use(1, batch=1)
    for batch in range(2, 3 + KEPT_BATCHES):
        assert worker.use(1, batch) is stays
    assert (gone.closed, stays.closed) == (1, 0)
    assert worker.use(0, batch + 1) is not gone


def test_groups_of_partitions_that_went_to_other_workers_are_dropped() -> None:
    runs = Worker().runs
    for group in (1, 2):
        runs.put_group(task(), group, kept(), batch=0)
    for batch in range(1, 2 + KEPT_BATCHES):
        found = runs.take_group(task(), 1, batch)
        assert found is not None
        runs.put_group(task(), 1, found, batch)
    assert runs.take_group(task(), 2, batch) is None


def test_a_group_is_nobody_s_while_an_attempt_works_on_it() -> None:
    runs = Worker().runs
    runs.put_group(task(), 1, kept(), batch=0)
    assert runs.take_group(task(), 1, 0) is not None
    assert runs.take_group(task(), 1, 0) is None


@pytest.mark.parametrize("fails_to_close", [False, True])
def test_operators_that_failed_are_closed_and_opened_anew(fails_to_close: bool) -> None:
    worker = Worker(fails_to_close)
    with pytest.raises(KeyError), worker.runs.opened_level(task(), 0, 1):
        raise KeyError
    (failed,) = worker.opened
    assert failed.closed == 1
    assert worker.use(0, 1, level=1) is not failed


@pytest.mark.parametrize("fails_to_close", [False, True])
def test_another_run_begins_with_nothing(fails_to_close: bool) -> None:
    worker = Worker(fails_to_close)
    before = [worker.use(partition, 5) for partition in range(2)]
    worker.runs.put_group(task(), 1, kept(), 5)
    worker.use(0, 1, run_id="b")
    assert [run.closed for run in before] == [1, 1]
    assert worker.runs.take_group(task(run_id="b"), 1, 1) is None


def test_an_error_of_close_is_logged_with_the_users_lines(caplog: pytest.LogCaptureFixture) -> None:
    worker = Worker(fails_to_close=True)
    worker.use(0, 1)
    worker.runs.close()
    (record,) = caplog.records
    assert record.levelname == "WARNING"
    assert "close() failed\nTraceback" in record.getMessage() and 'int("nine")' in record.getMessage()
    assert record.getMessage().endswith("operator 'count': close()")


# --- memory ---------------------------------------------------------------------------------

MEMORY = task_manager_memory(process_mib=4096)
FULL = MemoryUsage(own=3000 << 20, workers=(3000 << 20,), container=lambda: 4000 << 20)


def store_of(entries: int) -> GroupStore:
    store = GroupStore()
    state = KeyedState("count-id")
    state.bind(store)
    table = state.table("v", StateKind.VALUE)
    for key in range(entries):
        table.put(key, key)
    return store


def test_state_that_does_not_fit_is_an_error_that_says_whose_it_is() -> None:
    worker = Worker()
    limited = task(memory=MEMORY)
    store = store_of(1500)
    worker.runs.check_memory(limited, store)
    worker.usage = FULL
    worker.use(0, 1, level=1)
    worker.runs.put_group(limited, 1, KeptGroup("t", 1, store, 7 << 20), 1)
    worker.runs.put_group(limited, 2, KeptGroup("t", 1, store_of(10), 1 << 20), 1)
    with pytest.raises(StateTooLarge) as error:
        worker.runs.check_memory(limited, store)
    assert error.value.message == (
        "operator 'count' (level 1) has too much state for its slot's memory, 1,510 entries in this worker "
        "(8 MiB in checkpoints): its Python worker uses 3000 MiB, all Python workers 3000 of 1372 MiB, the "
        "TaskManager 4000 of 4096 MiB (taskmanager.memory.process.size); set state.backend.type to rocksdb, "
        "give the state a time-to-live, or use more memory or more slots"
    )


def test_without_limits_nothing_is_looked_at() -> None:
    worker = Worker()
    worker.usage = FULL
    worker.runs.check_memory(task(), store_of(1))


def test_copies_of_earlier_batches_are_let_go_before_giving_up() -> None:
    worker = Worker()
    limited = task(memory=MEMORY)
    for group, batch in ((1, 4), (2, 5)):
        worker.runs.take_group(limited, group, batch)
        worker.runs.put_group(limited, group, kept(), batch)
    worker.usage = FULL
    with pytest.raises(StateTooLarge):
        worker.runs.check_memory(limited, GroupStore())
    assert worker.runs.take_group(limited, 1, 5) is None
    assert worker.runs.take_group(limited, 2, 5) is not None


def test_an_allocation_that_fails_says_whose_state_it_was() -> None:
    with pytest.raises(StateTooLarge, match=r"operator 'count' \(level 1\).* 5 entries .*no more memory"):
        with named_memory_errors(task()) as at_work:
            at_work.store = store_of(5)
            raise MemoryError
    with pytest.raises(StateTooLarge, match="; let less into a micro-batch"):
        with named_memory_errors(task(backend=ROCKSDB)) as at_work:
            at_work.store = store_of(5)
            raise MemoryError


def test_without_state_an_allocation_that_fails_is_the_function_s() -> None:
    with pytest.raises(MemoryError, match="functions of level 1 have no state yet, .* got no more memory"):
        with named_memory_errors(task()) as at_work:
            at_work.store = GroupStore()
            raise MemoryError


def test_state_that_cannot_even_be_read_is_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    def read(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr(backends, "open", read)
    level = replace(task(), plan=LevelPlan(1, (replace(COUNT, stateful=True),)))
    stage = level_stages.StatefulStage(level)
    stage.init(Mock())
    rows = iter([Row(*row_of(Block(1, 0, 3, 0, 0, 0, b"")))])
    said = r"operator 'count' \(level 1\) has too much state .* no more memory to read it"
    with pytest.raises(StateTooLarge, match=said):
        list(stage.handleInputRows((0,), rows, None))


# --- workers, attempts and partitions -------------------------------------------------------

GROUPS = 4

#: one micro-batch: for each of two partitions the workers its attempts run on, the last of which succeeds;
#: whether the micro-batch is committed; a worker that is killed after it; the backend
BATCHES = st.lists(
    st.tuples(
        st.tuples(*[st.lists(st.integers(0, 2), min_size=1, max_size=3)] * 2),
        st.booleans(),
        st.sampled_from([None, 0, 1, 2]),
        st.sampled_from([HASHMAP, HASHMAP, ROCKSDB]),
    ),
    max_size=25,
)


def run_attempt(
    worker: Worker, backends: Backends, level: LevelTask, batch: int, stored: StoredGroup, group: int
) -> int:
    """Count one element of the group's key, and return the count."""
    kept_group = worker.runs.take_group(level, group, batch)
    turn = backends.open(level.settings.state_backend, stored, kept_group)
    state = KeyedState("count-id")
    state.bind(turn.store)
    table = state.table("v", StateKind.VALUE)
    state.prefetch([group])
    count = int(table.get(group, None, 0)) + 1
    table.put(group, count)
    found = turn.commit()
    if found is not None:
        worker.runs.put_group(level, group, found, batch)
    return count


def tokens() -> Iterator[str]:
    return (f"t{number}" for number in itertools.count())


@settings(max_examples=200)
@given(BATCHES)
def test_counts_are_exact_wherever_partitions_go_and_whatever_fails(batches: list[Any]) -> None:
    token = tokens()
    backends = Backends(pickle.dumps, pickle.loads, lambda: next(token), stable_hash)
    workers = [Worker() for _ in range(3)]
    stored = {group: StoredGroup() for group in range(GROUPS)}
    expected, batch = 0, 0
    for partitions, committed, killed, backend in batches:
        level = LevelTask("a", LevelPlan(1, (COUNT,)), JobInfo(), WorkerSettings(backend))
        written: dict[int, StoredGroup] = {}
        for partition, attempts in enumerate(partitions):
            for worker in attempts:
                # every attempt begins with what was committed; what an earlier one wrote is gone
                for group in range(partition, GROUPS, 2):
                    written[group] = stored[group].attempt()
                    count = run_attempt(workers[worker], backends, level, batch, written[group], group)
                    assert count == expected + 1
        if committed:
            stored, expected, batch = written, expected + 1, batch + 1
        if killed is not None:
            workers[killed] = Worker()
