"""How a cluster that lives for its jobs ended, as its supervisor and its client are told.

Decides which end of the jobs and of the user's program is the end of the whole cluster.  Flink
counterpart: ``ApplicationStatus``, which ``YarnResourceManagerDriver`` deregisters with.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from yarnflow.core.checkpoint.messages import JobStop
from yarnflow.core.ids import JobId
from yarnflow.core.messages import JobDetails, JobOverview
from yarnflow.core.states import JobStatus
from yarnflow.errors import YarnflowError, error_from_exit

RESULT_FILE: Final = "result.json"
_NOT_RECORDED: Final = "a savepoint that could not be recorded"


@dataclass(frozen=True, slots=True)
class ClusterResult:
    """Content of ``result.json`` (``core.json_codec``)."""

    #: FINISHED, FAILED or CANCELED
    status: JobStatus
    #: one line; empty when all is well, and nobody has stopped the job
    diagnostics: str = ""
    #: the job that decided, empty without one
    job_id: str = ""
    details: JobDetails | None = None
    #: code of the error with which the job or the program was refused; empty = it was not
    error_code: str = ""


@dataclass(frozen=True, slots=True)
class ProgramEnd:
    """How the user's program ended that ran beside the JobManager."""

    exit_status: int
    #: last lines of its output
    output_tail: str = ""


def stop_text(overview: JobOverview, stop: JobStop) -> str:
    """How a job was stopped, in one line, as YARN shows it; see :func:`stop_in`."""
    how = "drained" if stop.drained else "stopped"
    where = f"the savepoint {stop.savepoint}" if stop.savepoint else _NOT_RECORDED
    return f"job {overview.name} ({overview.job_id}) was {how} with {where} (request {stop.request_id})"


def stop_in(text: str, job_id: JobId) -> JobStop | None:
    """How a job was stopped, by a line of :func:`stop_text`; None = the line does not say that it was."""
    found = re.search(
        rf"\({job_id}\) was (stopped|drained) with (?:the savepoint (.*)|{_NOT_RECORDED}) "
        r"\(request (\w*)\)",
        text,
    )
    if found is None:
        return None
    return JobStop(found[2] or "", found[3], drained=found[1] == "drained")


def job_diagnostics(details: JobDetails) -> str:
    """Why a job is not FINISHED, or who has stopped it, in one line; user code's own error comes first."""
    overview = details.overview
    if details.stop is not None and overview.status is JobStatus.FINISHED:
        return stop_text(overview, details.stop)
    if overview.status is JobStatus.CANCELED:
        return f"job {overview.name} ({overview.job_id}) was canceled"
    if overview.status is not JobStatus.FAILED:
        return ""
    if details.error is None:
        return f"job {overview.name} ({overview.job_id}) failed without a reported cause"
    return (details.error.message.splitlines() or [details.error.code])[0]


def cluster_result(jobs: Sequence[JobDetails], program: ProgramEnd | None = None) -> ClusterResult:
    """The end of a cluster whose jobs and program have all ended.

    A failed job decides before a canceled one and both before the program, which usually ends
    with an error only because its job did.

    Parameters
    ----------
    jobs : sequence of JobDetails
        All jobs of the cluster, oldest first.
    program : ProgramEnd, optional
        End of the user's program, where it ran in the cluster.
    """
    for status in (JobStatus.FAILED, JobStatus.CANCELED):
        for details in reversed(jobs):
            if details.overview.status is status:
                return _of_job(details)
    if program is not None and program.exit_status != 0:
        return _of_program(program)
    if jobs:
        return _of_job(jobs[-1])
    return ClusterResult(JobStatus.FINISHED)


def refused_job(error: YarnflowError, job_id: str) -> ClusterResult:
    """The end of a cluster whose only job was not accepted."""
    return ClusterResult(JobStatus.FAILED, error.message, job_id, error_code=error.code)


def _of_program(program: ProgramEnd) -> ClusterResult:
    """Return how a program failed: by its own error line, else by its last lines."""
    error = error_from_exit(program.exit_status, program.output_tail)
    if error is not None:
        return ClusterResult(JobStatus.FAILED, error.message, error_code=error.code)
    lines = program.output_tail.strip().splitlines()
    end = (
        f"ended by signal {-program.exit_status}"
        if program.exit_status < 0
        else f"ended with status {program.exit_status}"
    )
    said = f"the program {end}" + (f": {lines[-1].strip()}" if lines else "")
    return ClusterResult(JobStatus.FAILED, said)


def _of_job(details: JobDetails) -> ClusterResult:
    overview = details.overview
    return ClusterResult(overview.status, job_diagnostics(details), overview.job_id, details)
