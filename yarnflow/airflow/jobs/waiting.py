"""What a task waits for, and what the changes of a job mean to it; pure."""

from __future__ import annotations

from enum import Enum
from typing import Any, Final

from yarnflow.airflow.hooks.documents import left_by_kill
from yarnflow.airflow.hooks.questions import Failure
from yarnflow.airflow.jobs.follow import Change
from yarnflow.core.states import JobStatus

#: a line of an error is shown so long; all of it is in the job's log
_LONGEST_LINE: Final = 2000


class WaitFor(Enum):
    """When a task that has submitted a job is done."""

    #: the job has ended FINISHED
    FINISHED = "finished"
    #: it runs
    RUNNING = "running"
    #: it has completed a checkpoint
    CHECKPOINT = "checkpoint"
    #: its cluster has accepted it
    NONE = "none"


def outcome(job_id: str, change: Change, wait_for: WaitFor) -> dict[str, Any] | None:
    """The payload of a trigger's event; None = the task goes on waiting.

    It has ``job_id``, ``status`` (``success``, ``failed``, ``lost`` or ``stopped``: by the end of an earlier
    try; the trigger adds ``timeout``), ``state`` (of the job, or null) and ``error`` (one line, or null),
    ``details`` (a traceback, or null), ``left`` (the state of a job that was stopped, or null).
    """
    if change.lost:
        return _payload(job_id, "lost", None, change.lost)
    status = change.status
    if status is None:
        return _payload(job_id, "success") if wait_for is WaitFor.CHECKPOINT else None
    left = left_by_kill(job_id, change.stop)
    if status is JobStatus.FINISHED and left:
        return {**_payload(job_id, "stopped", status), "left": left}
    if status is JobStatus.FINISHED or (status is JobStatus.RUNNING and wait_for is WaitFor.RUNNING):
        return _payload(job_id, "success", status)
    if not status.globally_terminal:
        return None
    failure = change.failure
    return _payload(
        job_id, "failed", status, failure_line(job_id, status, failure), failure.details if failure else None
    )


def _payload(
    job_id: str,
    status: str,
    state: JobStatus | None = None,
    error: str | None = None,
    details: str | None = None,
) -> dict[str, Any]:
    return {
        "status": status,
        "job_id": job_id,
        "state": None if state is None else state.value,
        "error": error,
        "details": details or None,
        "left": None,
    }


def failure_line(job_id: str, status: JobStatus, failure: Failure | None) -> str:
    """A job that did not end well, in one line: for an error in user code its line."""
    if failure is None:
        why = "" if status is JobStatus.CANCELED else ", and nobody said why; see its log"
        return f"job {job_id} ended {status.value}{why}"
    message = " ".join(failure.message.split())[:_LONGEST_LINE]
    return f"job {job_id} ended {status.value}: {message}"


def text_of(job_id: str, change: Change) -> str:
    """A change as a line of the task's log."""
    if change.lost:
        return change.lost
    if change.checkpoint is not None:
        kind = "Savepoint" if change.checkpoint.is_savepoint else "Checkpoint"
        where = f" in {change.checkpoint.path}" if change.checkpoint.is_savepoint else ""
        return f"{kind} {change.checkpoint.checkpoint_id} of job {job_id} is complete{where}."
    assert change.status is not None
    return f"Job {job_id} is {change.status.value}."
