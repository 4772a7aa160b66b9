"""What the tries of a task know of each other: the job of an earlier one.

It is in Airflow's task state store, which outlives tries, workers and a clear.  Airflow's own
``ResumableJobMixin`` keeps one id there; here is also noted that a submit has begun, since a worker may die
between the cluster's answer and the note: a job of the same key that is not older than the submit is then
this task's.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Final

#: renamed, a task that runs now would forget its job
_NAME: Final = "yarnflow_job"
#: clocks of the worker and of the cluster may differ by so much
_CLOCKS_MS: Final = 30_000


@dataclass(frozen=True, slots=True)
class Record:
    """One task instance's job."""

    job_key: str
    #: when its submit began, ms since the epoch
    since_ms: int
    #: empty = the submit has not been answered
    jobs: tuple[str, ...] = ()
    application_id: str = ""
    web_address: str = ""
    #: the trigger has failed so often in a row
    trigger_failures: int = 0

    def is_own(self, start_ms: int) -> bool:
        """Whether a job of the key that started then is this task's."""
        return start_ms >= self.since_ms - _CLOCKS_MS


class Records:
    """The record of one task instance.

    Parameters
    ----------
    store : TaskStateStoreAccessor, optional
        ``context["task_state_store"]``; None = nothing is kept.
    """

    def __init__(self, store: Any) -> None:
        self._store = store

    def load(self) -> Record | None:
        """What an earlier try has left; None = nothing that can be read."""
        found = None if self._store is None else self._store.get(_NAME)
        if not isinstance(found, dict):
            return None
        try:
            return Record(**{**found, "jobs": tuple(found.get("jobs", ()))})
        except TypeError:
            return None

    def save(self, record: Record) -> None:
        """Keep it."""
        if self._store is not None:
            self._store.set(_NAME, {**asdict(record), "jobs": list(record.jobs)})

    def forget(self) -> None:
        """The task has succeeded: cleared and run again, it makes another job."""
        if self._store is not None:
            self._store.delete(_NAME)
