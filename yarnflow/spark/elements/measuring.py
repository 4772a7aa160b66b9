"""How long the operators of a level worked in a task, told to the driver with what they counted.

Runs in Spark's Python workers, once for each turn of a level: a source's partition, or a group.  Time in
which Spark had the results is no work of theirs; time in which they waited for Spark to give them input is.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import Final, TypeVar

from yarnflow.operators.functions.measures import Measures, OperatorMeasures, source_node
from yarnflow.operators.task.level_run import LevelRun
from yarnflow.spark.elements.worker_runs import LevelTask

T = TypeVar("T")

_clock_ns: Final = time.perf_counter_ns


class Measuring:
    """One turn, as a context; what was told in it counts only if it ends well.

    Parameters
    ----------
    task : LevelTask
    """

    __slots__ = ("_task", "_sink", "_began_ns", "_away_ns", "_run", "_read")

    def __init__(self, task: LevelTask) -> None:
        self._task = task
        self._sink = task.settings.measures
        self._began_ns = self._away_ns = 0
        self._run: LevelRun | None = None
        #: partition of a source, elements of it, and messages with errors
        self._read: tuple[int, int, int] | None = None

    def __enter__(self) -> Measuring:
        self._began_ns = _clock_ns()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        if kind is not None or self._sink is None or self._run is None:
            return
        busy_ns = _clock_ns() - self._began_ns - self._away_ns
        measures: Measures = self._run.take_measures(busy_ns)
        if self._read is not None:
            partition, elements, errors = self._read
            place = source_node(self._task.source), partition
            measures[place] = OperatorMeasures(elements, elements, busy_ns, errors=errors)
        self._sink.add(measures)

    def timed(self, made: Iterable[T]) -> Iterator[T]:
        """The same, without the time in which others have it."""
        for one in made:
            left_ns = _clock_ns()
            yield one
            self._away_ns += _clock_ns() - left_ns

    def group_done(self, run: LevelRun) -> None:
        """A group's turn is over."""
        self._run = run

    def source_read(self, run: LevelRun, partition: int) -> None:
        """A source's partition was read to its end."""
        self._run = run
        if self._sink is not None:
            self._read = partition, run.elements_read, run.errors_read
