"""What a Python worker keeps between micro-batches: opened operators, and the state of key groups.

Runs in Spark's Python workers, which outlive tasks.  A module of its own, imported by name: what Spark
unpickles anew for each task would begin with nothing.  Spark gives partitions to workers in any order;
the state's log tells whether what is kept here is current (:mod:`yarnflow.operators.state.group_log`).
"""

from __future__ import annotations

import atexit
import pickle
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Final

from yarnflow.graph.closures import dumps_with_classes, load_closure
from yarnflow.operators.state.group_log import GroupLog, KeptGroup
from yarnflow.operators.task.level_run import LevelRun
from yarnflow.operators.task.plan import JobInfo, LevelPlan
from yarnflow.spark.elements.async_calls import AsyncioCalls


@dataclass(frozen=True, slots=True)
class LevelTask:
    """A level as it travels to the workers."""

    #: differs between attempts of a job, and between jobs
    run_id: str
    plan: LevelPlan
    job: JobInfo
    #: level 0: number of the source
    source: int = 0


@dataclass(slots=True)
class _Kept:
    run_id: str = ""
    #: level, source, partition → opened operators
    runs: dict[tuple[int, int, int], LevelRun] = field(default_factory=dict)
    #: level, group → its state
    groups: dict[tuple[int, int], KeptGroup] = field(default_factory=dict)
    async_calls: AsyncioCalls = field(default_factory=AsyncioCalls)


_kept = _Kept()


@contextmanager
def opened_level(task: LevelTask, subtask: int) -> Iterator[LevelRun]:
    """The opened operators of a level for one subtask, kept unless what is done with them fails."""
    _turn_to(task.run_id)
    place = task.plan.level, task.source, subtask
    if place not in _kept.runs:
        _kept.runs[place] = LevelRun(
            task.plan, task.job, subtask, load_closure, dumps, pickle.loads, _kept.async_calls
        )
    try:
        yield _kept.runs[place]
    except BaseException:
        _drop_run(place)
        raise


def take_group(task: LevelTask, group: int) -> KeptGroup | None:
    """The kept state of a group; until it is put back it is nobody's, as an attempt may fail half-way."""
    _turn_to(task.run_id)
    return _kept.groups.pop((task.plan.level, group), None)


def put_group(task: LevelTask, group: int, kept: KeptGroup) -> None:
    """Keep a group's state for the next micro-batch."""
    _kept.groups[task.plan.level, group] = kept


def _drop_run(place: tuple[int, int, int]) -> None:
    """Forget operators that failed: what they hold may be of an attempt that is done again."""
    run = _kept.runs.pop(place, None)
    if run is not None:
        # the error that led here is what the user is to see, not one of close()
        with suppress(Exception):
            run.close()


def _turn_to(run_id: str) -> None:
    if _kept.run_id != run_id:
        close_all()
        _kept.run_id = run_id


def close_all() -> None:
    """Close all operators and forget everything."""
    runs = list(_kept.runs.values())
    _kept.runs.clear()
    _kept.groups.clear()
    for run in runs:
        run.close()


atexit.register(close_all)


def dumps(value: Any) -> bytes:
    """Pickle; objects of classes that only the program knows are pickled with their class."""
    try:
        return pickle.dumps(value, _PROTOCOL)
    except (pickle.PicklingError, AttributeError, TypeError):
        return dumps_with_classes(value)


_PROTOCOL: Final = 5

#: reads and writes the logs of key groups
group_log: Final = GroupLog(dumps, pickle.loads, lambda: uuid.uuid4().hex)
