"""Vertices of jobs and their subtasks."""

from __future__ import annotations

from yarnflow.core.messages import ExecutionInfo, JobDetails, VertexInfo
from yarnflow.core.metrics import MetricScope, ScopeKind
from yarnflow.rest.answers import vertices as answers
from yarnflow.rest.answers.metrics import IoMetrics, Metric, Values, io_metrics
from yarnflow.rest.framework.errors import RestError
from yarnflow.rest.framework.route import Call
from yarnflow.rest.handlers import parameters as p
from yarnflow.rest.handlers.context import Cluster


def details(cluster: Cluster, call: Call) -> answers.Vertex:
    """A vertex and its subtasks."""
    job, vertex = find(cluster, call)
    return answers.vertex(vertex, subtask_metrics(cluster, job, vertex), _hosts(cluster), cluster.now_ms())


def subtask_times(cluster: Cluster, call: Call) -> answers.VertexTimes:
    """When the subtasks entered their states."""
    _, vertex = find(cluster, call)
    return answers.subtask_times(vertex, _hosts(cluster), cluster.now_ms())


def task_managers(cluster: Cluster, call: Call) -> answers.VertexTaskManagers:
    """The subtasks by TaskManager."""
    job, vertex = find(cluster, call)
    values = subtask_metrics(cluster, job, vertex)
    return answers.task_managers(vertex, values, _hosts(cluster), cluster.now_ms())


def back_pressure(cluster: Cluster, call: Call) -> answers.BackPressure:
    """How the time of the subtasks is divided."""
    job, vertex = find(cluster, call)
    return answers.back_pressure(subtask_metrics(cluster, job, vertex), cluster.now_ms())


def watermarks(cluster: Cluster, call: Call) -> list[Metric]:
    """Where the subtasks stand in event time."""
    job, vertex = find(cluster, call)
    whole = cluster.metrics.metrics(vertex_scope(job, vertex))
    return answers.watermarks(subtask_metrics(cluster, job, vertex), whole)


def subtask(cluster: Cluster, call: Call) -> answers.Subtask:
    """The current attempt of one subtask."""
    job, vertex = find(cluster, call)
    return _subtask(cluster, job, vertex, find_execution(vertex, call))


def attempt(cluster: Cluster, call: Call) -> answers.Subtask:
    """One attempt of one subtask: only the current one is known."""
    job, vertex = find(cluster, call)
    return _subtask(cluster, job, vertex, _find_attempt(vertex, call))


def accumulators(cluster: Cluster, call: Call) -> answers.VertexAccumulators:
    """There are none in yarnflow."""
    return answers.accumulators(find(cluster, call)[1])


def attempt_accumulators(cluster: Cluster, call: Call) -> answers.SubtaskAccumulators:
    """There are none in yarnflow."""
    _, vertex = find(cluster, call)
    return _no_accumulators(vertex, _find_attempt(vertex, call))


def subtasks_accumulators(cluster: Cluster, call: Call) -> answers.SubtasksAccumulators:
    """There are none in yarnflow."""
    _, vertex = find(cluster, call)
    return answers.SubtasksAccumulators(
        vertex.vertex_id, vertex.parallelism, [_no_accumulators(vertex, e) for e in vertex.executions]
    )


def find(cluster: Cluster, call: Call) -> tuple[JobDetails, VertexInfo]:
    """The vertex that a call names; raises RestError or JobNotFound."""
    job = cluster.job(call.get(p.JOB_ID))
    wanted = call.get(p.VERTEX_ID)
    for vertex in job.vertices:
        if vertex.vertex_id == wanted or vertex.vertex_id == wanted.lower():
            return job, vertex
    raise RestError(404, f"JobVertex {wanted} not found")


def find_execution(vertex: VertexInfo, call: Call) -> ExecutionInfo:
    """The subtask that a call names; raises RestError."""
    index = call.get(p.SUBTASK_INDEX)
    for execution in vertex.executions:
        if execution.subtask_index == index:
            return execution
    raise RestError(404, f"Subtask {index} of vertex {vertex.vertex_id} not found")


def subtask_metrics(cluster: Cluster, job: JobDetails, vertex: VertexInfo) -> list[Values]:
    """Metrics of each subtask."""
    return [
        cluster.metrics.metrics(subtask_scope(job, vertex, execution.subtask_index))
        for execution in vertex.executions
    ]


def vertex_metrics(cluster: Cluster, job: JobDetails, vertex: VertexInfo) -> IoMetrics:
    """What went in and out of a vertex."""
    whole = cluster.metrics.metrics(vertex_scope(job, vertex))
    return io_metrics(subtask_metrics(cluster, job, vertex), whole)


def vertex_scope(job: JobDetails, vertex: VertexInfo) -> MetricScope:
    """Of a vertex as a whole."""
    return MetricScope(ScopeKind.VERTEX, job_id=job.overview.job_id, vertex_id=vertex.vertex_id)


def subtask_scope(job: JobDetails, vertex: VertexInfo, index: int) -> MetricScope:
    """Of one subtask."""
    return MetricScope(
        ScopeKind.SUBTASK, job_id=job.overview.job_id, vertex_id=vertex.vertex_id, subtask_index=index
    )


def _find_attempt(vertex: VertexInfo, call: Call) -> ExecutionInfo:
    execution, wanted = find_execution(vertex, call), call.get(p.ATTEMPT)
    if execution.attempt != wanted:
        raise RestError(
            404,
            f"Attempt {wanted} of subtask {execution.subtask_index} is not known (any more); the current one "
            f"is {execution.attempt}",
        )
    return execution


def _subtask(
    cluster: Cluster, job: JobDetails, vertex: VertexInfo, execution: ExecutionInfo
) -> answers.Subtask:
    values = cluster.metrics.metrics(subtask_scope(job, vertex, execution.subtask_index))
    return answers.subtask(execution, values, _hosts(cluster), cluster.now_ms())


def _no_accumulators(vertex: VertexInfo, execution: ExecutionInfo) -> answers.SubtaskAccumulators:
    return answers.SubtaskAccumulators(
        subtask=execution.subtask_index,
        attempt=execution.attempt,
        id=f"{vertex.vertex_id}_{execution.subtask_index}_{execution.attempt}",
        user_accumulators=[],
    )


def _hosts(cluster: Cluster) -> dict[str, str]:
    return {
        info.registration.task_manager_id: info.registration.address for info in cluster.view.task_managers()
    }
