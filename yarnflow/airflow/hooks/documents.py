"""What the documents of ``yarnflow … --json`` mean to a task; pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from yarnflow.airflow.hooks.errors import CommandFailed
from yarnflow.airflow.hooks.rest import Failure
from yarnflow.core.states import JobStatus
from yarnflow.errors import ApplicationFailed, ApplicationNotFound, JobNotFound, RpcUnavailable

#: no cluster that lives knows the job
_GONE: Final = frozenset({JobNotFound.code, ApplicationNotFound.code})
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
    target: str


@dataclass(frozen=True, slots=True)
class FoundJob:
    """A job, and where it runs."""

    job_id: str
    name: str
    status: JobStatus
    job_key: str
    start_ms: int
    #: of the cluster's REST interface and dashboard; empty = there is none
    web_address: str
    #: on YARN
    application_id: str


@dataclass(frozen=True, slots=True)
class EndedJob:
    """How a job is, or how it ended."""

    job_id: str
    name: str
    status: JobStatus
    failure: Failure | None = None


def submitted(document: Mapping[str, Any]) -> Submitted:
    """The document of ``submit``."""
    jobs = (
        SubmittedJob(job["job_id"], job["name"], job["attached_to_existing"]) for job in document["jobs"]
    )
    return Submitted(tuple(jobs), document["target"])


def found_jobs(document: Mapping[str, Any]) -> tuple[FoundJob, ...]:
    """The document of ``list``."""
    clusters = {cluster["name"]: cluster for cluster in document["clusters"]}
    return tuple(
        FoundJob(
            job["job_id"],
            job["name"],
            JobStatus(job["status"]),
            job["job_key"],
            job["start_time_ms"],
            clusters[job["cluster"]]["web_address"],
            _application(clusters[job["cluster"]]["named_by"]),
        )
        for job in document["jobs"]
    )


def ended_job(job_id: str, document: Mapping[str, Any]) -> EndedJob:
    """The document of ``info`` about a job."""
    head, error = document["overview"], document.get("error")
    failure = None if not error else Failure(error["code"], error["message"], error.get("details", ""))
    return EndedJob(job_id, head["name"], JobStatus(head["status"]), failure)


def failed_application(job_id: str, error: CommandFailed) -> EndedJob | None:
    """The job of an application that YARN says has failed; None = the error means something else."""
    if error.code != ApplicationFailed.code:
        return None
    return EndedJob(job_id, "", JobStatus.FAILED, Failure(error.code, str(error)))


def is_gone(error: CommandFailed) -> bool:
    """Whether every cluster has answered, and none of them knows the job."""
    return error.code in _GONE


def is_nobody(error: CommandFailed) -> bool:
    """Whether there is no such job, or no cluster at all."""
    return is_gone(error) or error.code == RpcUnavailable.code


def _application(named_by: str) -> str:
    return named_by.removeprefix(_APPLICATION_OPTION) if named_by.startswith(_APPLICATION_OPTION) else ""
