"""Questions that tasks ask of a cluster's REST interface: where each is sent, and what its answer means."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from yarnflow.core.states import JobStatus

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Ask(Generic[T]):
    """One request."""

    method: str
    path: str
    parse: Callable[[Any], T]
    body: Any = None
    #: through YARN's proxy, which passes on no method but GET and PUT; empty = this asks with GET
    put_path: str = ""


@dataclass(frozen=True, slots=True)
class Stop:
    """How a job was stopped with a savepoint."""

    #: its path; empty = it could not be recorded
    savepoint: str
    #: of who asked for it
    request_id: str


@dataclass(frozen=True, slots=True)
class JobState:
    """How a job is."""

    job_id: str
    name: str
    status: JobStatus
    #: None = nobody has stopped it
    stop: Stop | None = None
    #: a query of it has completed a batch; None = nobody knows
    committed: bool | None = None


@dataclass(frozen=True, slots=True)
class Failure:
    """Why something failed."""

    #: of the error's class in :mod:`yarnflow.errors`
    code: str
    #: one line; for an error in user code its line
    message: str
    #: traceback, where there is one
    details: str = ""


@dataclass(frozen=True, slots=True)
class CheckpointState:
    """One checkpoint or savepoint that is complete."""

    checkpoint_id: int
    #: ms since the epoch
    completed_ms: int
    is_savepoint: bool
    #: empty = it is not kept outside of the job
    path: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of something that was begun by a request."""

    done: bool
    #: of a savepoint that is complete
    location: str = ""
    failure: Failure | None = None


def overview() -> Ask[None]:
    """Whether a cluster answers, and accepts the token."""
    return Ask("GET", "/overview", _nothing)


def job(job_id: str) -> Ask[JobState]:
    """How a job is."""
    return Ask("GET", f"/jobs/{job_id}", _job)


def failure(job_id: str) -> Ask[Failure | None]:
    """Why a job that has ended FAILED; None = it did not, or nobody said."""
    return Ask("GET", f"/jobs/{job_id}/execution-result", _root_failure)


def checkpoints(job_id: str) -> Ask[tuple[CheckpointState, ...]]:
    """The complete checkpoints and savepoints of a job that its history has, newest first."""
    return Ask("GET", f"/jobs/{job_id}/checkpoints", _checkpoints)


def complete_until_ms(job_id: str) -> Ask[int]:
    """Up to when a job's checkpoints and savepoints lack nothing, ms since the epoch; -1 = not known."""
    return Ask("GET", f"/jobs/{job_id}/checkpoints", _complete_until_ms)


def lag(job_id: str) -> Ask[int | None]:
    """Records that a job's sources have not read yet; None = no source tells."""
    return Ask("GET", f"/jobs/{job_id}", _lag)


def cancel(job_id: str) -> Ask[None]:
    """Begin to cancel a job."""
    return Ask("PATCH", f"/jobs/{job_id}?mode=cancel", _nothing, put_path=f"/jobs/{job_id}/yarn-cancel")


def begin_stop(job_id: str, request_id: str, directory: str) -> Ask[str]:
    """Begin to end a job with a savepoint; answers the id to ask for.

    Parameters
    ----------
    request_id : str
        32 hexadecimal digits; the same id again makes no second savepoint.
    directory : str
        Where the savepoint is made; empty = the cluster's default.
    """
    body: dict[str, Any] = {"triggerId": request_id, "drain": False}
    if directory:
        body["targetDirectory"] = directory
    return Ask("POST", f"/jobs/{job_id}/stop", _request_id, body, f"/jobs/{job_id}/yarn-stop")


def savepoint_outcome(job_id: str, request_id: str) -> Ask[Outcome]:
    """What became of :func:`begin_stop`."""
    return Ask("GET", f"/jobs/{job_id}/savepoints/{request_id}", _outcome)


# --- what answers mean ---


def _nothing(_: Any) -> None:
    pass


def _job(answer: Any) -> JobState:
    batches = [query.get("batch-id", -1) for query in answer.get("queries", ())]
    committed = has_committed(batches, bool(answer.get("restarts")))
    return JobState(
        answer["jid"], answer["name"], JobStatus(answer["state"]), stop_of(answer.get("stop")), committed
    )


def has_committed(batches: Sequence[int], went_on: bool) -> bool | None:
    """Whether a query of a job has completed a batch, by the last one of each; None = nobody knows.

    Parameters
    ----------
    went_on : bool
        After something broke: only the last driver tells of its batches.
    """
    if any(batch >= 0 for batch in batches):
        return True
    # YARN tells of no queries
    return None if went_on or not batches else False


def stop_of(answer: Any) -> Stop | None:
    """How a job was stopped, as answers, events and the document of ``info`` have it; None = it was not."""
    if not answer:
        return None
    return Stop(answer["savepoint"], answer.get("request-id") or answer.get("request_id", ""))


def _root_failure(answer: Any) -> Failure | None:
    cause = answer.get("job-execution-result", {}).get("failure-cause")
    return None if cause is None else _failure(cause)


def _failure(cause: Any) -> Failure:
    message, _, details = cause["stack-trace"].partition("\n")
    return Failure(cause["class"], message, details)


def _checkpoints(answer: Any) -> tuple[CheckpointState, ...]:
    return tuple(checkpoint(each) for each in answer["history"] if each["status"] == "COMPLETED")


def _complete_until_ms(answer: Any) -> int:
    # a job that has nothing to do makes no checkpoint; clusters of before told of no such time
    without_work_ms = int(answer.get("kept_until_timestamp", -1))
    return max([without_work_ms, *(each.completed_ms for each in _checkpoints(answer))])


def checkpoint(answer: Any) -> CheckpointState:
    """A complete checkpoint as answers and events have it."""
    return CheckpointState(
        answer["id"], answer["latest_ack_timestamp"], answer["is_savepoint"], answer.get("external_path", "")
    )


def _lag(answer: Any) -> int | None:
    sources = [source for query in answer["queries"] for source in query["sources"]]
    behind = [count for source in sources for count in source["behind"].values()]
    return sum(behind) if behind else None


def _request_id(answer: Any) -> str:
    return str(answer["request-id"])


def _outcome(answer: Any) -> Outcome:
    if answer["status"]["id"] == "IN_PROGRESS":
        return Outcome(False)
    operation = answer.get("operation") or {}
    cause = operation.get("failure-cause")
    return Outcome(True, operation.get("location") or "", None if cause is None else _failure(cause))
