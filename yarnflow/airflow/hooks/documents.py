"""What the documents of ``yarnflow … --json`` mean to a task; pure."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final

from yarnflow.airflow.hooks.errors import CommandFailed, Refused
from yarnflow.airflow.hooks.questions import Failure, Stop, has_committed, stop_of
from yarnflow.core.states import JobStatus
from yarnflow.errors import ApplicationFailed, ApplicationNotFound, JobNotFound, RpcUnavailable

#: no cluster that lives knows the job
_GONE: Final = frozenset({JobNotFound.code, ApplicationNotFound.code})
#: the newest state of a job key
LATEST: Final = "latest"
_APPLICATION_OPTION: Final = "-Dyarn.application.id="


@dataclass(frozen=True, slots=True)
class SubmittedJob:
    """A job of a program."""

    job_id: str
    name: str
    #: it ran before, under the same job key
    attached_to_existing: bool


@dataclass(frozen=True, slots=True)
class Submitted:
    """What a submit led to."""

    jobs: tuple[SubmittedJob, ...]


@dataclass(frozen=True, slots=True)
class FoundJob:
    """A job, and where it runs."""

    job_id: str
    job_key: str
    start_ms: int
    #: of the cluster's REST interface and dashboard; empty = there is none
    web_address: str
    #: on YARN
    application_id: str
    #: its program has others that live
    one_of_several: bool = False


@dataclass(frozen=True, slots=True)
class EndedJob:
    """How a job is, or how it ended."""

    job_id: str
    name: str
    status: JobStatus
    failure: Failure | None = None
    #: None = nobody has stopped it
    stop: Stop | None = None
    #: a query of it has completed a batch; None = nobody knows
    committed: bool | None = None

    @property
    def over(self) -> bool:
        """It has ended, and does not go on."""
        return self.status.globally_terminal

    @property
    def is_done(self) -> bool:
        """Its work is done, or a person has stopped it."""
        return self.status is JobStatus.FINISHED and not self.left

    @property
    def left(self) -> str:
        """The state of a job that the end of a task has stopped; empty = none has."""
        return left_by_kill(self.job_id, self.stop)


def kill_request(job_id: str, number: int) -> str:
    """The id by which a task that is ended asks for the stop of its job.

    Parameters
    ----------
    number : int
        Of this end: whoever asks with it, it is one stop; a job that goes on is stopped by another one.
    """
    return f"{_kill(job_id)}{number % 2**32:08x}"


def _kill(job_id: str) -> str:
    return hashlib.md5(f"kill\n{job_id}".encode(), usedforsecurity=False).hexdigest()[:24]


def left_by_kill(job_id: str, stop: Stop | None) -> str:
    """What to start from where the end of a task has stopped a job with a savepoint; empty = none has."""
    if stop is None or not stop.request_id.startswith(_kill(job_id)):
        return ""
    return stop.savepoint or LATEST


def submitted(document: Mapping[str, Any]) -> Submitted:
    """The document of ``submit``."""
    jobs = (
        SubmittedJob(job["job_id"], job["name"], job["attached_to_existing"]) for job in document["jobs"]
    )
    return Submitted(tuple(jobs))


def found_jobs(document: Mapping[str, Any]) -> tuple[FoundJob, ...]:
    """The document of ``list``."""
    clusters = {cluster["name"]: cluster for cluster in document["clusters"]}
    keys = {job["job_key"] for job in document["jobs"]}
    return tuple(
        FoundJob(
            job["job_id"],
            job["job_key"],
            job["start_time_ms"],
            clusters[job["cluster"]]["web_address"],
            _application(clusters[job["cluster"]]["named_by"]),
            # so the command names the second one
            f"{job['job_key']}#2" in keys,
        )
        for job in document["jobs"]
    )


def chosen(document: Mapping[str, Any], job_id: str, job_key: str) -> FoundJob | None:
    """The newest job of an id or a key in the document of ``list``; None = there is none.

    Raises
    ------
    CommandFailed
        There is none, but a cluster may have it that does not answer.
    """
    # a template may give a number
    key = str(job_key)
    wanted = [job for job in found_jobs(document) if job.job_id == job_id or (key and job.job_key == key)]
    if wanted:
        return wanted[-1]
    silent = [f"{each['name']}: {each['error']}" for each in document["clusters"] if each["error"]]
    if silent:
        raise _may_live(job_id, job_key, "; ".join(silent))
    return None


def check_nobody_has_it(error: CommandFailed, job_id: str, job_key: str) -> None:
    """Returns where an error of ``list`` means that there is no such job.

    Raises
    ------
    CommandFailed
        A cluster may have it that does not answer; or something else is wrong.
    """
    if error.code == RpcUnavailable.code:
        raise _may_live(job_id, job_key, str(error))
    if not is_gone(error):
        raise error


def _may_live(job_id: str, job_key: str, why: str) -> CommandFailed:
    named = job_id or f"of the key {job_key}"
    return CommandFailed(RpcUnavailable.code, f"whether a job {named} lives is not known now: {why}")


def ended_job(job_id: str, document: Mapping[str, Any]) -> EndedJob:
    """The document of ``info`` about a job."""
    head, error = document["overview"], document.get("error")
    failure = None if not error else Failure(error["code"], error["message"], error.get("details", ""))
    status, stop = JobStatus(head["status"]), stop_of(document.get("stop"))
    batches = [query["batch_id"] for query in document.get("queries", ())]
    recovered = any(each["recovered"] for each in document.get("failures", ()))
    committed = has_committed(batches, bool(document.get("restarts")) or recovered)
    return EndedJob(job_id, head["name"], status, failure, stop, committed)


def failed_application(job_id: str, error: CommandFailed) -> EndedJob | None:
    """The job of an application that YARN says has failed; None = the error means something else."""
    if error.code != ApplicationFailed.code:
        return None
    return EndedJob(job_id, "", JobStatus.FAILED, Failure(error.code, str(error)))


def is_gone(error: Exception) -> bool:
    """Whether every cluster has answered, and none of them knows the job; or there is none."""
    if isinstance(error, Refused):
        return error.status == HTTPStatus.NOT_FOUND
    return isinstance(error, CommandFailed) and error.code in _GONE


def accepted_jobs(document: Mapping[str, Any]) -> tuple[str, ...]:
    """Jobs that a submit has begun, by its document; not those that ran before."""
    return tuple(job["job_id"] for job in document.get("jobs", ()) if not job["attached_to_existing"])


def _application(named_by: str) -> str:
    return named_by.removeprefix(_APPLICATION_OPTION) if named_by.startswith(_APPLICATION_OPTION) else ""
