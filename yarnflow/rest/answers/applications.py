"""Applications in the shapes of Flink's REST answers: here, each job is one of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from yarnflow.core.job.description import JobDescription
from yarnflow.core.messages import JobDetails
from yarnflow.core.states import JobStatus
from yarnflow.rest.answers.jobs import JobSummary, jobs_overview
from yarnflow.rest.answers.shapes import Camel, Kebab, duration_ms

#: Flink's ``ApplicationState`` of a job's status; all others are RUNNING
_STATES: Final = {
    JobStatus.INITIALIZING: "CREATED",
    JobStatus.CREATED: "CREATED",
    JobStatus.FAILING: "FAILING",
    JobStatus.FAILED: "FAILED",
    JobStatus.CANCELLING: "CANCELING",
    JobStatus.CANCELED: "CANCELED",
    JobStatus.FINISHED: "FINISHED",
}


class ApplicationSummary(Kebab):
    """One application of ``GET /applications/overview``."""

    id: str
    name: str
    start_time: int
    end_time: int
    duration: int
    status: str
    #: status → how many of its jobs have it
    jobs: dict[str, int]


class Applications(msgspec.Struct):
    """``GET /applications/overview``."""

    applications: list[ApplicationSummary]


class Application(Kebab):
    """``GET /applications/:applicationid``."""

    id: str
    name: str
    status: str
    start_time: int
    end_time: int
    duration: int
    #: state → when it was entered first; 0 = never
    timestamps: dict[str, int]
    jobs: list[JobSummary]


class ApplicationException(Camel):
    """One entry of the exception history."""

    exception_name: str
    stacktrace: str
    timestamp: int
    job_id: str


class ApplicationExceptionHistory(msgspec.Struct):
    """Newest first."""

    entries: list[ApplicationException]


class ApplicationExceptions(Camel):
    """``GET /applications/:applicationid/exceptions``."""

    exception_history: ApplicationExceptionHistory


def applications(jobs: Sequence[JobDetails], now_ms: int) -> Applications:
    """``GET /applications/overview``; the newest comes first."""
    return Applications([_summary(details, now_ms) for details in reversed(jobs)])


def application(
    details: JobDetails, descriptions: Mapping[str, JobDescription | None], now_ms: int
) -> Application:
    """``GET /applications/:applicationid``."""
    head = details.overview
    timestamps = dict.fromkeys([*dict.fromkeys(_STATES.values()), "RUNNING"], 0)
    for status in JobStatus:
        entered_ms = details.timestamps_ms.get(status.name, 0)
        state = _state(status)
        if entered_ms and (not timestamps[state] or entered_ms < timestamps[state]):
            timestamps[state] = entered_ms
    return Application(
        id=head.job_id,
        name=head.name,
        status=_state(head.status),
        start_time=head.start_time_ms,
        end_time=head.end_time_ms,
        duration=duration_ms(head.start_time_ms, head.end_time_ms, now_ms),
        timestamps=timestamps,
        jobs=jobs_overview([details], descriptions, now_ms).jobs,
    )


def application_exceptions(details: JobDetails) -> ApplicationExceptions:
    """``GET /applications/:applicationid/exceptions``; the newest comes first."""
    return ApplicationExceptions(
        exception_history=ApplicationExceptionHistory(
            [
                ApplicationException(
                    exception_name=failure.error.code,
                    stacktrace="\n".join(
                        text for text in (failure.error.message, failure.error.details) if text
                    ),
                    timestamp=failure.at_ms,
                    job_id=details.overview.job_id,
                )
                for failure in reversed(details.failures)
            ]
        )
    )


def _summary(details: JobDetails, now_ms: int) -> ApplicationSummary:
    head = details.overview
    return ApplicationSummary(
        id=head.job_id,
        name=head.name,
        start_time=head.start_time_ms,
        end_time=head.end_time_ms,
        duration=duration_ms(head.start_time_ms, head.end_time_ms, now_ms),
        status=_state(head.status),
        jobs={head.status.in_flink.name: 1},
    )


def _state(status: JobStatus) -> str:
    return _STATES.get(status, "RUNNING")
