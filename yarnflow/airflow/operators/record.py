"""What the tries of a task know of each other: the job of an earlier one.

It is in Airflow's task state store, which outlives tries, workers and a clear.  Airflow's own
``ResumableJobMixin`` keeps one id there; here is also noted that a submit has begun, since a worker may die
between the cluster's answer and the note: a job of the same key that is not older than the submit is then
this task's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from airflow.sdk import Context

from yarnflow.airflow.hooks.documents import FoundJob
from yarnflow.airflow.operators.kept import Kept

#: see :class:`Kept`
_NAME: Final = "yarnflow_job"
#: clocks of the worker and of the cluster may differ by so much
_CLOCKS_MS: Final = 30_000
#: no cluster said which job had the key
NOT_KNOWN: Final = "?"


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
    #: the trigger has failed so often, the last time then, in seconds since the epoch
    trigger_failures: int = 0
    trigger_failed_s: float = 0.0
    #: when the time of this try is over, in seconds since the epoch
    deadline: float | None = None
    #: a try has begun to end the jobs: what they are now says nothing of what they will be
    ending: bool = False
    #: from which the next submit starts: that of a job that an earlier try has stopped
    savepoint: str = ""
    #: the job that had the key before the submit, or :data:`NOT_KNOWN`; empty = none, or it would be followed
    not_own: str = ""

    def is_own(self, found: FoundJob) -> bool:
        """Whether a job of the key is this task's."""
        if self.not_own == NOT_KNOWN:
            # a young one may be that of another run
            return found.start_ms >= self.since_ms
        return found.job_id != self.not_own and is_begun_since(found.start_ms, self.since_ms)


def is_begun_since(start_ms: int, since_ms: int) -> bool:
    """Whether a job that started then, by its cluster's clock, is not older than a time of this worker."""
    return start_ms >= since_ms - _CLOCKS_MS


def records(context: Context) -> Kept[Record]:
    """The record of one task instance; it is forgotten when the task has succeeded."""
    return Kept(context, _NAME, Record)
