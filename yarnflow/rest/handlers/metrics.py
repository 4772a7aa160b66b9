"""Metrics of everything: names, values, and values put together."""

from __future__ import annotations

from collections.abc import Sequence

from yarnflow.core.ids import TaskManagerId
from yarnflow.core.metrics import MetricScope, ScopeKind
from yarnflow.rest.answers.metrics import AggregatedMetric, Metric, Values, aggregated, chosen, names
from yarnflow.rest.framework.route import Call
from yarnflow.rest.handlers import parameters as p
from yarnflow.rest.handlers import vertices
from yarnflow.rest.handlers.context import Cluster
from yarnflow.rest.handlers.task_managers import find as find_task_manager


def of_job_manager(cluster: Cluster, call: Call) -> list[Metric]:
    """Of the JobManager."""
    return _answer(cluster.metrics.metrics(MetricScope(ScopeKind.JOB_MANAGER)), call)


def of_task_manager(cluster: Cluster, call: Call) -> list[Metric]:
    """Of one TaskManager."""
    info = find_task_manager(cluster, call)
    return _answer(cluster.metrics.metrics(_task_manager(info.registration.task_manager_id)), call)


def of_job(cluster: Cluster, call: Call) -> list[Metric]:
    """Of one job."""
    job = cluster.job(call.get(p.JOB_ID))
    return _answer(cluster.metrics.metrics(MetricScope(ScopeKind.JOB, job_id=job.overview.job_id)), call)


def of_vertex(cluster: Cluster, call: Call) -> list[Metric]:
    """Of the subtasks of a vertex, with their number before the name."""
    job, vertex = vertices.find(cluster, call)
    values = {
        f"{index}.{name}": value
        for index, each in enumerate(vertices.subtask_metrics(cluster, job, vertex))
        for name, value in each.items()
    }
    return _answer(values, call)


def of_vertex_as_a_whole(cluster: Cluster, call: Call) -> list[Metric]:
    """Of a vertex as a whole.  Flink: of an operator's coordinator."""
    job, vertex = vertices.find(cluster, call)
    return _answer(cluster.metrics.metrics(vertices.vertex_scope(job, vertex)), call)


def of_subtask(cluster: Cluster, call: Call) -> list[Metric]:
    """Of one subtask."""
    job, vertex = vertices.find(cluster, call)
    execution = vertices.find_execution(vertex, call)
    scope = vertices.subtask_scope(job, vertex, execution.subtask_index)
    return _answer(cluster.metrics.metrics(scope), call)


def of_subtasks(cluster: Cluster, call: Call) -> list[AggregatedMetric]:
    """Of subtasks of a vertex, put together."""
    job, vertex = vertices.find(cluster, call)
    wanted = call.get(p.SUBTASKS)
    values = [
        each
        for index, each in enumerate(vertices.subtask_metrics(cluster, job, vertex))
        if is_wanted(wanted, index)
    ]
    return _put_together(values, call)


def of_jobs(cluster: Cluster, call: Call) -> list[AggregatedMetric]:
    """Of jobs, put together."""
    wanted = call.get(p.JOBS)
    job_ids = [details.overview.job_id for details in cluster.view.jobs()]
    values = [
        cluster.metrics.metrics(MetricScope(ScopeKind.JOB, job_id=job_id))
        for job_id in job_ids
        if not wanted or job_id in wanted
    ]
    return _put_together(values, call)


def of_task_managers(cluster: Cluster, call: Call) -> list[AggregatedMetric]:
    """Of TaskManagers, put together."""
    wanted = call.get(p.TASK_MANAGERS)
    ids = [info.registration.task_manager_id for info in cluster.view.task_managers()]
    values = [cluster.metrics.metrics(_task_manager(each)) for each in ids if not wanted or each in wanted]
    return _put_together(values, call)


def _answer(values: Values, call: Call) -> list[Metric]:
    wanted = call.get(p.GET)
    return chosen(values, wanted) if wanted else names([values])


def _put_together(values: Sequence[Values], call: Call) -> list[AggregatedMetric]:
    wanted, aggregations = call.get(p.GET), call.get(p.AGG)
    if wanted:
        return aggregated(values, wanted, aggregations)
    return [AggregatedMetric(metric.id) for metric in names(values)]


def _task_manager(task_manager_id: TaskManagerId) -> MetricScope:
    return MetricScope(ScopeKind.TASK_MANAGER, task_manager_id=task_manager_id)


def is_wanted(wanted: tuple[str, ...], index: int) -> bool:
    """Whether a subtask is one of those asked for; none = all."""
    return not wanted or any(_contains(text, index) for text in wanted)


def _contains(text: str, index: int) -> bool:
    first, _, last = text.partition("-")
    return int(first) <= index <= int(last or first)
