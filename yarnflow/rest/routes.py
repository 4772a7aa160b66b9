"""Which path is answered with what; knows nothing of sockets.

Flink counterpart: ``WebMonitorEndpoint``, the reading half of it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol
from urllib.parse import unquote

from yarnflow.core.checkpoint.messages import JobCheckpoints
from yarnflow.core.ids import JobId, is_job_id
from yarnflow.core.messages import ClusterOverview, JobDetails
from yarnflow.core.ports import Clock
from yarnflow.core.resources.provider import TaskManagerInfo
from yarnflow.errors import YarnflowError
from yarnflow.rest import answers, checkpoint_answers
from yarnflow.rest.page import overview_page

JSON: Final = "application/json; charset=UTF-8"
HTML: Final = "text/html; charset=UTF-8"
METHODS: Final = ("GET", "HEAD")


class ClusterView(Protocol):
    """What the JobManager shows; every method may be called from any thread."""

    def cluster_overview(self) -> ClusterOverview: ...

    def jobs(self) -> Sequence[JobDetails]:
        """Oldest first."""

    def job_details(self, job_id: JobId) -> JobDetails:
        """Raises JobNotFound."""

    def job_checkpoints(self, job_id: JobId) -> JobCheckpoints:
        """Raises JobNotFound."""

    def task_managers(self) -> Sequence[TaskManagerInfo]: ...


@dataclass(frozen=True, slots=True)
class Answer:
    """What goes back to the browser."""

    status: int
    content_type: str
    body: bytes
    #: where the browser is to go instead
    location: str = ""


class Routes:
    """Answers requests about one cluster.

    Parameters
    ----------
    view : ClusterView
        Where the answers come from.
    clock : Clock
        For durations.
    """

    def __init__(self, view: ClusterView, clock: Clock) -> None:
        self._view = view
        self._clock = clock
        handlers: Sequence[tuple[str, Callable[..., Answer]]] = (
            ("/", self._page),
            ("/overview", lambda: _json(answers.overview(view.cluster_overview()))),
            ("/jobs", lambda: _json(answers.jobs(view.jobs()))),
            ("/jobs/overview", lambda: _json(answers.jobs_overview(view.jobs(), clock.now_ms()))),
            ("/jobs/([^/]+)", lambda job: _json(answers.job(self._job(job), clock.now_ms()))),
            ("/jobs/([^/]+)/exceptions", lambda job: _json(answers.exceptions(self._job(job)))),
            ("/jobs/([^/]+)/checkpoints", self._history),
            ("/jobs/([^/]+)/checkpoints/config", self._checkpoint_config),
            ("/jobs/([^/]+)/checkpoints/details/([^/]+)", self._checkpoint),
            ("/taskmanagers", lambda: _json(answers.task_managers(view.task_managers()))),
        )
        self._paths: Sequence[tuple[re.Pattern[str], Callable[..., Answer]]] = tuple(
            (re.compile(path), handler) for path, handler in handlers
        )

    def answer(self, method: str, target: str) -> Answer:
        """Answer one request; never raises a :class:`YarnflowError`."""
        # proxies may double the first slash, which urlsplit would take for a host
        path = "/" + unquote(re.split("[?#]", target, maxsplit=1)[0]).strip("/")
        for pattern, handler in self._paths:
            found = pattern.fullmatch(path)
            if found is None:
                continue
            if method not in METHODS:
                return error_answer(f"{path} can only be read: use GET, not {method}.", 405)
            try:
                return handler(*found.groups())
            except _BadRequest as error:
                return error_answer(str(error), 400)
            except YarnflowError as error:
                return error_answer(error.message, error.http_status)
        return error_answer(f"There is nothing at {path}.", 404)

    def _job(self, text: str) -> JobDetails:
        return self._view.job_details(_job_id(text))

    def _history(self, job: str) -> Answer:
        return _json(checkpoint_answers.history(self._view.job_checkpoints(_job_id(job)), self._now_ms()))

    def _checkpoint_config(self, job: str) -> Answer:
        return _json(checkpoint_answers.config(self._view.job_checkpoints(_job_id(job))))

    def _checkpoint(self, job: str, number: str) -> Answer:
        checkpoints = self._view.job_checkpoints(_job_id(job))
        if not number.isdecimal():
            raise _BadRequest(f"{number!r} is not the number of a checkpoint.")
        for info in checkpoints.history:
            if info.checkpoint_id == int(number):
                return _json(checkpoint_answers.entry(info, self._now_ms()))
        return error_answer(f"Checkpoint {number} of job {job} is not known (any more).", 404)

    def _page(self) -> Answer:
        view = self._view
        jobs = view.jobs()
        page = overview_page(
            view.cluster_overview(), jobs, view.task_managers(), self._now_ms(), self._newest(jobs)
        )
        return Answer(200, HTML, page.encode())

    def _newest(self, jobs: Sequence[JobDetails]) -> dict[JobId, JobCheckpoints]:
        """Checkpoints of the jobs, as far as they can be had."""
        found = {}
        for details in jobs:
            try:
                found[details.overview.job_id] = self._view.job_checkpoints(details.overview.job_id)
            except YarnflowError:
                pass  # a job that is just going; the page is good without them
        return found

    def _now_ms(self) -> int:
        return self._clock.now_ms()


class _BadRequest(Exception):
    """A path parameter that cannot be one."""


def _job_id(text: str) -> JobId:
    if not is_job_id(text):
        raise _BadRequest(f"{text!r} is not a job id; a job id has 32 hexadecimal digits.")
    return JobId(text)


def error_answer(message: str, status: int) -> Answer:
    """What is wrong with a request, as Flink says it."""
    return _json(answers.errors(message), status)


def _json(value: object, status: int = 200) -> Answer:
    return Answer(status, JSON, json.dumps(value, separators=(",", ":")).encode())
