"""The history server's answers: those of archives under the paths that a JobManager has them at.

Flink counterparts: ``HistoryServer``, ``HistoryServerStaticFileServerHandler``, ``GeneratedLogUrlHandler``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final, NoReturn

import msgspec
from starlette.types import ASGIApp

from yarnflow.core.messages import ClusterOverview
from yarnflow.rest.answers import cluster as cluster_answers
from yarnflow.rest.answers import jobs as job_answers
from yarnflow.rest.answers.cluster import Features
from yarnflow.rest.answers.logs import LogUrl
from yarnflow.rest.answers.metrics import AggregatedMetric, Metric, aggregated, chosen, names
from yarnflow.rest.framework.application import Application, HandlerPool
from yarnflow.rest.framework.authentication import Checks
from yarnflow.rest.framework.errors import RestError
from yarnflow.rest.framework.route import Call, Route
from yarnflow.rest.handlers import parameters as p
from yarnflow.rest.handlers.metrics import is_wanted
from yarnflow.rest.history.contents import METRICS, filled
from yarnflow.rest.history.store import ArchiveStore
from yarnflow.rest.web import ROUTES

_V: Final = "/jobs/:jobid/vertices/:vertexid"
#: beginnings of paths that an archive may have
_ARCHIVED: Final = ("/jobs/:jobid", "/applications/:applicationid")
_NOT_HERE: Final = (
    "This is a history server: it has what was archived of jobs that have ended, and neither running jobs, "
    "TaskManagers nor a JobManager."
)
_CHANGES_NOTHING: Final = (
    "This is a history server: the jobs that it shows have ended, and nothing can be changed."
)


@dataclass(frozen=True, slots=True)
class History:
    """Passed to every handler."""

    store: ArchiveStore
    version: str
    #: ``historyserver.web.refresh-interval``
    refresh_interval_ms: int
    #: patterns of addresses; empty = there are none
    jobmanager_log_url: str = ""
    taskmanager_log_url: str = ""


def dashboard_configuration(history: History, call: Call) -> cluster_answers.DashboardConfiguration:
    """What a dashboard needs to know."""
    features = Features(web_submit=False, web_cancel=False, web_rescale=False, web_history=True)
    return cluster_answers.dashboard_configuration(
        history.refresh_interval_ms, history.version, "", datetime.now().astimezone(), features
    )


def overview(history: History, call: Call) -> cluster_answers.Overview:
    """Counts of jobs."""
    counts = Counter(state for _, state in history.store.states())
    return cluster_answers.overview(
        ClusterOverview(
            task_managers=0,
            slots_total=0,
            slots_available=0,
            jobs_running=0,
            jobs_finished=counts["FINISHED"],
            jobs_canceled=counts["CANCELED"],
            jobs_failed=counts["FAILED"],
            version=history.version,
        )
    )


def job_ids(history: History, call: Call) -> job_answers.JobIds:
    """All jobs with their status."""
    states = history.store.states()
    return job_answers.JobIds([job_answers.JobIdWithStatus(job_id, state) for job_id, state in states])


def jobs_overview(history: History, call: Call) -> dict[str, list[msgspec.Raw]]:
    """All jobs, newest first."""
    return {"jobs": [msgspec.Raw(each) for each in history.store.summaries("jobs")]}


def applications_overview(history: History, call: Call) -> dict[str, list[msgspec.Raw]]:
    """All applications, newest first."""
    return {"applications": [msgspec.Raw(each) for each in history.store.summaries("applications")]}


def status(history: History, call: Call) -> job_answers.Status:
    """Status of a job; archives of Flink's do not have it."""
    state = history.store.state(call.get(p.JOB_ID))
    if not state:
        raise _no_job(call.get(p.JOB_ID))
    return job_answers.Status(state)


def of_subtask(history: History, call: Call) -> list[Metric]:
    """Metrics of a subtask: those of its vertex have its number before the name."""
    return _answer(_subtasks(history, call).get(call.get(p.SUBTASK_INDEX), {}), call)


def of_subtasks(history: History, call: Call) -> list[AggregatedMetric]:
    """Metrics of subtasks, put together."""
    subtasks, wanted, aggregations = call.get(p.SUBTASKS), call.get(p.GET), call.get(p.AGG)
    values = [each for index, each in _subtasks(history, call).items() if is_wanted(subtasks, index)]
    if not wanted:
        return [AggregatedMetric(metric.id) for metric in names(values)]
    return aggregated([_numbers(each) for each in values], wanted, aggregations)


def job_manager_log(history: History, call: Call) -> LogUrl:
    """Where the JobManager's log of a job is."""
    return _log_url(history.jobmanager_log_url, "jobmanager", call)


def task_manager_log(history: History, call: Call) -> LogUrl:
    """Where the log of a TaskManager is."""
    return _log_url(history.taskmanager_log_url, "taskmanager", call)


def _log_url(pattern: str, what: str, call: Call) -> LogUrl:
    if not pattern:
        option = f"historyserver.log.{what}.url-pattern"
        raise RestError(404, f"Nobody has said where logs are: {option} is not set.")
    places = {"<jobid>": call.get(p.JOB_ID)}
    if what == "taskmanager":
        places["<tmid>"] = call.get(p.TASK_MANAGER_ID)
    for name, value in places.items():
        pattern = pattern.replace(name, value)
    return LogUrl(pattern)


def _stored(history: History, path: str, call_id: str) -> bytes:
    found = history.store.answer(path)
    if found is None:
        if path.startswith("/jobs/") and not history.store.state(call_id):
            raise _no_job(call_id)
        raise RestError(404, f"The archive of {call_id} does not have {path[:200]}.")
    return found


def _no_job(job_id: str) -> RestError:
    return RestError(404, f"Job {job_id} not found: no archive of it is here (yet).")


def _from_archive(route: Route) -> Callable[[History, Call], msgspec.Raw]:
    def handler(history: History, call: Call) -> msgspec.Raw:
        return msgspec.Raw(_stored(history, *_place(route, call)))

    return handler


def _metrics(route: Route) -> Callable[[History, Call], list[Metric]]:
    def handler(history: History, call: Call) -> list[Metric]:
        return _answer(_values(history, *_place(route, call)), call)

    return handler


def _place(route: Route, call: Call) -> tuple[str, str]:
    """Path in the archive, and whose that is."""
    values = {parameter.name: call.get(parameter) for parameter in route.path_parameters}
    owner = values[route.path_names[0]]
    return filled(route.path, values), str(owner)


def _values(history: History, path: str, job_id: str) -> dict[str, str]:
    try:
        listed = msgspec.json.decode(_stored(history, path, job_id), type=list[Metric])
    except msgspec.DecodeError:
        raise RestError(404, f"The archive of {job_id} has no metrics in {path[:200]}.") from None
    return {metric.id: metric.value for metric in listed if metric.value is not None}


def _answer(values: Mapping[str, str], call: Call) -> list[Metric]:
    wanted = call.get(p.GET)
    return chosen(values, wanted) if wanted else names([values])


def _subtasks(history: History, call: Call) -> dict[int, dict[str, str]]:
    path = filled(f"{_V}/metrics", {"jobid": call.get(p.JOB_ID), "vertexid": call.get(p.VERTEX_ID)})
    found: dict[int, dict[str, str]] = {}
    for name, value in _values(history, path, call.get(p.JOB_ID)).items():
        index, _, rest = name.partition(".")
        if index.isascii() and index.isdecimal():
            found.setdefault(int(index), {})[rest] = value
    return found


def _numbers(values: Mapping[str, str]) -> dict[str, float]:
    numbers = {}
    for name, value in values.items():
        try:
            numbers[name] = float(value)
        except ValueError:
            continue
    return numbers


def _refused(reason: str, status_code: int) -> Callable[[History, Call], NoReturn]:
    def handler(history: History, call: Call) -> NoReturn:
        raise RestError(status_code, reason)

    return handler


#: path → what is answered here otherwise than from one entry of an archive
_OWN: Final[dict[str, Callable[[History, Call], Any]]] = {
    "/config": dashboard_configuration,
    "/overview": overview,
    "/jobs": job_ids,
    "/jobs/overview": jobs_overview,
    "/applications/overview": applications_overview,
    "/jobs/:jobid/status": status,
    f"{_V}/subtasks/metrics": of_subtasks,
    f"{_V}/subtasks/:subtaskindex/metrics": of_subtask,
    "/jobs/:jobid/jobmanager/log-url": job_manager_log,
    "/jobs/:jobid/taskmanagers/:taskmanagerid/log-url": task_manager_log,
}


def _route(route: Route) -> Route:
    """The same path here."""
    if route.public or route.path == "/openapi.json":
        return route
    if route.method != "GET" or route.writes:
        return replace(route, handler=_refused(_CHANGES_NOTHING, 501), writes=False)
    handler: Callable[[History, Call], Any]
    if route.path in _OWN:
        handler = _OWN[route.path]
    elif route.path in METRICS:
        handler = _metrics(route)
    elif route.path.startswith(_ARCHIVED):
        # also what Flink keeps and yarnflow does not have
        handler = _from_archive(route)
    else:
        handler = _refused(_NOT_HERE, 404)
    # the database may take its time
    return replace(route, handler=handler, blocks=True)


HISTORY_ROUTES: Final = tuple(_route(route) for route in ROUTES)


def application(history: History, checks: Checks, pool: HandlerPool) -> ASGIApp:
    """The REST interface of a history server."""
    return Application(HISTORY_ROUTES, history, checks, pool)
