"""What a Python worker keeps between micro-batches: opened operators, and the state of key groups.

Runs in Spark's Python workers, which outlive tasks.  A module of its own, imported by name: what Spark
unpickles anew for each task would begin with nothing.  Spark gives partitions to workers in any order;
the state's log tells whether what is kept here is current
(:mod:`yarnflow.operators.state.backends.group_log`), and what was not used for some micro-batches is
dropped.
"""

from __future__ import annotations

import atexit
import gc
import logging
import os
import pickle
import time
import traceback
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Final, Protocol

import yarnflow
from yarnflow.core.resources.attachment import PYTHON_MEMORY_VARIABLE
from yarnflow.core.resources.memory import TaskManagerMemory
from yarnflow.errors import StateTooLarge
from yarnflow.graph.closures import dumps_with_classes, load_closure
from yarnflow.operators.functions.measures import Measures
from yarnflow.operators.state.backends.group_log import KeptGroup
from yarnflow.operators.state.backends.turns import HASHMAP, ROCKSDB, Backends
from yarnflow.operators.state.store import GroupStore
from yarnflow.operators.task.key_groups import stable_hash
from yarnflow.operators.task.level_run import LevelRun
from yarnflow.operators.task.plan import JobInfo, LevelPlan
from yarnflow.spark.elements.async_calls import AsyncioCalls
from yarnflow.spark.elements.worker_memory import MemoryWatch, memory_usage

#: what was not used for so many micro-batches is dropped: its partition is most likely another worker's
KEPT_BATCHES: Final = 8
#: containers that Python makes before it looks for cycles among them
NEW_OBJECTS_PER_COLLECTION: Final = 100_000
_MIB: Final = 1024 * 1024
_PACKAGE_DIRECTORY: Final = os.path.dirname(yarnflow.__file__) + os.sep

logger = logging.getLogger(__name__)


class MeasureSink(Protocol):
    """Takes what tasks counted to the driver: an accumulator of Spark's."""

    def add(self, term: Measures) -> None:
        """Tell more of the task at hand; it arrives when the task has ended well."""


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """What workers are told of the job's options."""

    #: ``state.backend.type``
    state_backend: str = HASHMAP
    #: of the TaskManagers; None = not known
    memory: TaskManagerMemory | None = None
    #: where tasks tell what was counted in them; None = nobody wants to know
    measures: MeasureSink | None = None


@dataclass(frozen=True, slots=True)
class LevelTask:
    """A level as it travels to the workers."""

    #: differs between attempts of a job, and between jobs
    run_id: str
    plan: LevelPlan
    job: JobInfo
    settings: WorkerSettings = field(default_factory=WorkerSettings)
    #: level 0: number of the source
    source: int = 0


@dataclass(slots=True)
class _Used:
    """Something kept, with the micro-batch that used it last."""

    batch: int


@dataclass(slots=True)
class _UsedRun(_Used):
    run: LevelRun


@dataclass(slots=True)
class _UsedGroup(_Used):
    kept: KeptGroup


#: level, source, subtask
_Place = tuple[int, int, int]


class WorkerRuns:
    """All that one worker keeps.

    Parameters
    ----------
    open_level : callable
        From task and subtask to opened operators.
    new_watch : callable
        From limits to what watches them.
    """

    def __init__(
        self,
        open_level: Callable[[LevelTask, int], LevelRun],
        new_watch: Callable[[TaskManagerMemory], MemoryWatch],
    ) -> None:
        self._open_level = open_level
        self._new_watch = new_watch
        self._run_id = ""
        self._batch = 0
        self._runs: dict[_Place, _UsedRun] = {}
        self._groups: dict[tuple[int, int], _UsedGroup] = {}
        self._watch: MemoryWatch | None = None

    @contextmanager
    def opened_level(self, task: LevelTask, subtask: int, batch: int) -> Iterator[LevelRun]:
        """The opened operators of a level for one subtask, kept unless what is done with them fails."""
        self._turn_to(task, batch)
        place = task.plan.level, task.source, subtask
        used = self._runs.get(place)
        if used is None:
            used = self._runs[place] = _UsedRun(batch, self._open_level(task, subtask))
        used.batch = batch
        try:
            yield used.run
        except BaseException:
            self._drop_runs([place])
            raise

    def take_group(self, task: LevelTask, group: int, batch: int) -> KeptGroup | None:
        """The kept state of a group; until it is put back it is nobody's, as an attempt may fail half-way."""
        self._turn_to(task, batch)
        used = self._groups.pop((task.plan.level, group), None)
        return None if used is None else used.kept

    def put_group(self, task: LevelTask, group: int, kept: KeptGroup, batch: int) -> None:
        """Keep a group's state for the next micro-batch."""
        self._turn_to(task, batch)
        self._groups[task.plan.level, group] = _UsedGroup(batch, kept)

    def check_memory(self, task: LevelTask, store: GroupStore) -> None:
        """Look whether the state still fits.

        Parameters
        ----------
        task : LevelTask
            The level at work.
        store : GroupStore
            State of the group at hand.

        Raises
        ------
        StateTooLarge
        """
        if task.settings.memory is None:
            return
        if self._watch is None:
            self._watch = self._new_watch(task.settings.memory)
        self._watch.check(self._release, lambda: self.describe(task, store), what_to_do(task))

    def describe(self, task: LevelTask, store: GroupStore) -> str:
        """Whose state in this worker is the largest, and how large it is."""
        level = task.plan.level
        kept = self._kept(task)
        entries = self._entries(task, store)
        names = {operator.operator_id: operator.name for operator in task.plan.operators}
        largest, count = max(entries.items(), key=lambda item: item[1], default=("", 0))
        written_mib = sum(one.stored_bytes for one in kept) // _MIB
        return (
            f"operator '{names.get(largest, largest)}' (level {level}) has too much state for its slot's "
            f"memory, {count:,} entries in this worker ({written_mib} MiB in checkpoints)"
        )

    def has_state(self, task: LevelTask, store: GroupStore) -> bool:
        """Whether this worker has an entry of the level's state at all."""
        return any(self._entries(task, store).values())

    def close(self) -> None:
        """Close all operators and forget everything."""
        self._groups.clear()
        self._drop_runs(list(self._runs))

    def _kept(self, task: LevelTask) -> list[KeptGroup]:
        return [used.kept for (level, _), used in self._groups.items() if level == task.plan.level]

    def _entries(self, task: LevelTask, store: GroupStore) -> Counter[str]:
        """Entries of each operator of a level."""
        entries: Counter[str] = Counter(store.entries_by_operator())
        for one in self._kept(task):
            if one.store is not store:
                entries.update(one.store.entries_by_operator())
        return entries

    def _turn_to(self, task: LevelTask, batch: int) -> None:
        if self._run_id != task.run_id:
            self.close()
            self._run_id, self._batch, self._watch = task.run_id, batch, None
        elif self._batch != batch:
            self._batch = batch
            self._drop_used_before(batch - KEPT_BATCHES)

    def _drop_used_before(self, batch: int) -> None:
        self._groups = {place: used for place, used in self._groups.items() if used.batch >= batch}
        self._drop_runs([place for place, used in self._runs.items() if used.batch < batch])

    def _release(self) -> None:
        """Let go of copies that this micro-batch has not used: their partitions may be other workers'."""
        self._drop_used_before(self._batch)
        gc.collect()

    def _drop_runs(self, places: list[_Place]) -> None:
        for used in [self._runs.pop(place) for place in places if place in self._runs]:
            for error in used.run.close():
                # it ends nothing: an error that led here is what the job fails with, and at the end the
                # results are there
                logger.warning("%s", _described(error))


def _described(error: Exception) -> str:
    """The error with its notes, and of its traceback the user's part."""
    below = error.__traceback__
    while below is not None and below.tb_frame.f_code.co_filename.startswith(_PACKAGE_DIRECTORY):
        below = below.tb_next
    return "close() failed\n" + "".join(traceback.format_exception(type(error), error, below)).rstrip()


def what_to_do(task: LevelTask) -> str:
    """How state becomes small enough."""
    if task.settings.state_backend == ROCKSDB:
        return "let less into a micro-batch, give the state a time-to-live, or use more memory or more slots"
    return (
        "set state.backend.type to rocksdb, give the state a time-to-live, or use more memory or more slots"
    )


def dumps(value: Any) -> bytes:
    """Pickle; objects of classes that only the program knows are pickled with their class."""
    try:
        return pickle.dumps(value, _PROTOCOL)
    except (pickle.PicklingError, AttributeError, TypeError):
        return dumps_with_classes(value)


_PROTOCOL: Final = 5


def _open_level(task: LevelTask, subtask: int) -> LevelRun:
    # elements come by the ten thousand and are no cycles: Python would look for some after every 700
    gc.set_threshold(NEW_OBJECTS_PER_COLLECTION)
    return LevelRun(
        task.plan, task.job, subtask, load_closure, dumps, pickle.loads, _async_calls
    )


def new_watch(limits: TaskManagerMemory) -> MemoryWatch:
    """For this worker, whose executor may have a share only of the TaskManager's memory for Python."""
    share = os.environ.get(PYTHON_MEMORY_VARIABLE)
    if share:
        limits = replace(limits, python_mib=int(share))
    # set in containers of YARN
    return MemoryWatch(limits, memory_usage, time.monotonic, bool(os.environ.get("CONTAINER_ID")))


_async_calls: Final = AsyncioCalls()

#: of this worker
worker_runs: Final = WorkerRuns(_open_level, new_watch)
# Spark ends workers without it; the daemon's workers do it all the same
atexit.register(worker_runs.close)

#: opens the state of key groups
backends: Final = Backends(dumps, pickle.loads, lambda: uuid.uuid4().hex, stable_hash)


@dataclass(slots=True)
class StateAtWork:
    """The state that a level works with."""

    #: None = it is being read
    store: GroupStore | None = None


@contextmanager
def named_memory_errors(task: LevelTask) -> Iterator[StateAtWork]:
    """Say whose state it was when an allocation fails, or that it was no state at all.

    Gives what is to be told when the state has been read.

    Raises
    ------
    StateTooLarge
        It was while state was read, or there is some.
    """
    at_work = StateAtWork()
    try:
        yield at_work
    except MemoryError as error:
        names = " or ".join(repr(operator.name) for operator in task.plan.operators if operator.stateful)
        if at_work.store is None:
            raise StateTooLarge(
                f"operator {names} (level {task.plan.level}) has too much state for its slot's memory: its "
                f"Python worker got no more memory to read it; {what_to_do(task)}"
            ) from error
        if not worker_runs.has_state(task, at_work.store):
            # still the error of the function, with its line
            error.args = (
                f"the functions of level {task.plan.level} have no state yet, and their Python worker got no "
                "more memory; let them use less at a time, or use more memory or fewer slots for each "
                "TaskManager",
            )
            raise
        raise StateTooLarge(
            f"{worker_runs.describe(task, at_work.store)}: its Python worker got no more memory; "
            f"{what_to_do(task)}"
        ) from error
