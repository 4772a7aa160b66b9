"""The newest values that drivers and TaskManagers have reported.

What a driver reports takes the place of all that was known of its job, so nothing is left of subtasks that
are gone.  Of jobs that have ended the values of the newest ones stay, so that what they counted can be seen.
Flink counterpart: ``MetricStore``.
"""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from yarnflow.core.ids import JobId, TaskManagerId
from yarnflow.core.messages import MetricDump
from yarnflow.core.metrics import MetricScope, MetricValue, OperatorMetrics, ScopeKind, with_operator

logger = logging.getLogger(__name__)

#: values of one job or TaskManager; what is more is left out
MAX_VALUES: Final = 20_000
#: values of all jobs together, some 10 MiB; the jobs whose last report is the oldest give way
MAX_ALL_VALUES: Final = 100_000
#: jobs that have ended and whose values stay
ENDED_JOBS: Final = 20

_Values = Mapping[MetricScope, Mapping[str, Mapping[str, MetricValue]]]


class MetricStore:
    """Newest values by scope; any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # values are replaced, never changed in place
        self._jobs: dict[JobId, _Values] = {}
        self._sizes: dict[JobId, int] = {}
        self._total = 0
        self._task_managers: dict[TaskManagerId, _Values] = {}
        #: those that have ended, oldest first
        self._ended: dict[JobId, None] = {}
        self._warned = False

    # --- writing --------------------------------------------------------------------

    def put_job(self, job_id: JobId, dumps: Sequence[MetricDump]) -> None:
        """All that a job's driver has measured, in place of what it had before."""
        values = self._values(dumps, TaskManagerId(""), job_id, _OF_JOBS)
        size = _size(values)
        with self._lock:
            self._drop(job_id)
            # the newest is the last
            self._jobs[job_id], self._sizes[job_id] = values, size
            self._total += size
            self._bound(job_id)

    def put_task_manager(self, task_manager_id: TaskManagerId, dumps: Sequence[MetricDump]) -> None:
        """All that a TaskManager has measured."""
        values = self._values(dumps, task_manager_id, JobId(""), _OF_TASK_MANAGERS)
        with self._lock:
            self._task_managers[task_manager_id] = values

    def retain(
        self, live: Iterable[JobId], ended: Iterable[JobId], task_managers: Iterable[TaskManagerId]
    ) -> None:
        """Forget what is there no more.

        Parameters
        ----------
        live, ended : iterable of JobId
            Jobs that the cluster knows.
        task_managers : iterable of TaskManagerId
            That are registered.
        """
        alive, over, registered = set(live), set(ended), set(task_managers)
        with self._lock:
            for job_id in [key for key in self._jobs if key not in alive]:
                if job_id in over:
                    self._ended.setdefault(job_id)
                else:
                    self._forget(job_id)
            while len(self._ended) > ENDED_JOBS:
                self._forget(next(iter(self._ended)))
            for task_manager_id in [key for key in self._task_managers if key not in registered]:
                del self._task_managers[task_manager_id]

    def _forget(self, job_id: JobId) -> None:
        self._drop(job_id)
        self._ended.pop(job_id, None)

    def _drop(self, job_id: JobId) -> None:
        self._jobs.pop(job_id, None)
        self._total -= self._sizes.pop(job_id, 0)

    def _bound(self, newest: JobId) -> None:
        while self._total > MAX_ALL_VALUES and len(self._jobs) > 1:
            first = next(key for key in (*self._ended, *self._jobs) if key != newest)
            self._warn(f"job {first}")
            self._forget(first)

    def _values(
        self,
        dumps: Sequence[MetricDump],
        task_manager_id: TaskManagerId,
        job_id: JobId,
        kinds: frozenset[ScopeKind],
    ) -> _Values:
        found: dict[MetricScope, dict[str, Mapping[str, MetricValue]]] = {}
        room = MAX_VALUES
        for dump in dumps:
            if dump.kind not in kinds:
                continue
            # each report brings the same few names as texts of its own, for all subtasks
            values: dict[str, MetricValue] = {
                sys.intern(name): value
                for named in (dump.counts, dump.rates)
                for name, value in named.items()
            }
            if len(values) > room:
                self._warn(f"job {job_id}" if job_id else f"TaskManager {task_manager_id}")
                break
            room -= len(values)
            scope = MetricScope(dump.kind, task_manager_id, job_id, dump.vertex_id, dump.subtask_index)
            operators = found.setdefault(scope, {})
            operators[dump.operator] = {**operators.get(dump.operator, {}), **values}
        return found

    def _warn(self, of: str) -> None:
        if not self._warned:
            self._warned = True
            logger.warning("There are too many metrics: some of %s are left out (said once).", of)

    # --- reading --------------------------------------------------------------------

    def values(self, scope: MetricScope) -> dict[str, MetricValue]:
        """Name, with the operator's before it → newest value."""
        return {
            with_operator(operator, name): value
            for operator, values in self._of(scope).get(scope, {}).items()
            for name, value in values.items()
        }

    def job(self, job_id: JobId) -> Iterator[OperatorMetrics]:
        """All that is known of a job."""
        return _all(self._jobs.get(job_id, {}))

    def task_manager(self, task_manager_id: TaskManagerId) -> Iterator[OperatorMetrics]:
        """All that is known of a TaskManager."""
        return _all(self._task_managers.get(task_manager_id, {}))

    def _of(self, scope: MetricScope) -> _Values:
        if scope.kind is ScopeKind.TASK_MANAGER:
            return self._task_managers.get(scope.task_manager_id, {})
        return self._jobs.get(scope.job_id, {})


_OF_JOBS: Final = frozenset({ScopeKind.JOB, ScopeKind.VERTEX, ScopeKind.SUBTASK})
_OF_TASK_MANAGERS: Final = frozenset({ScopeKind.TASK_MANAGER})


def _size(values: _Values) -> int:
    return sum(len(named) for operators in values.values() for named in operators.values())


def _all(values: _Values) -> Iterator[OperatorMetrics]:
    for scope, operators in values.items():
        for operator, named in operators.items():
            yield OperatorMetrics(scope, operator, named)
