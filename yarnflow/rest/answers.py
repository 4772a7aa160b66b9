"""What the JobManager knows, in the shapes of Flink's REST answers.

Pure functions from messages to JSON-ready values.  Names of fields are Flink's; what has no
counterpart on Spark is left out or zero, what Flink does not have (``waiting-for``, ``queries``)
is added.  No option of a job or cluster appears, so none of their secrets can.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Final

from yarnflow.core.messages import ClusterOverview, ExecutionInfo, FailureInfo, JobDetails, VertexInfo
from yarnflow.core.resources.provider import TaskManagerInfo
from yarnflow.core.states import ExecutionState, JobStatus

_MIB: Final = 1024 * 1024
#: the first of these that some execution is in is the vertex's
_TELLING: Final = (
    ExecutionState.FAILED,
    ExecutionState.CANCELING,
    ExecutionState.CANCELED,
    ExecutionState.INITIALIZING,
    ExecutionState.RUNNING,
)
_UNKNOWN_METRICS: Final = {
    **{
        name: value
        for kind in ("read-bytes", "write-bytes", "read-records", "write-records")
        for name, value in ((kind, 0), (f"{kind}-complete", False))
    },
    **{f"accumulated-{kind}-time": 0 for kind in ("backpressured", "idle", "busy")},
}


def overview(cluster: ClusterOverview) -> dict[str, Any]:
    """``GET /overview``."""
    return {
        "taskmanagers": cluster.task_managers,
        "slots-total": cluster.slots_total,
        "slots-available": cluster.slots_available,
        "jobs-running": cluster.jobs_running,
        "jobs-finished": cluster.jobs_finished,
        "jobs-cancelled": cluster.jobs_canceled,
        "jobs-failed": cluster.jobs_failed,
        # clients of Flink's REST interface read it; the version is ours
        "flink-version": cluster.version,
        "flink-commit": "",
    }


def jobs(all_jobs: Iterable[JobDetails]) -> dict[str, Any]:
    """``GET /jobs``."""
    return {"jobs": [{"id": d.overview.job_id, "status": d.overview.status.in_flink.name} for d in all_jobs]}


def jobs_overview(all_jobs: Sequence[JobDetails], now_ms: int) -> dict[str, Any]:
    """``GET /jobs/overview``; the newest job comes first."""
    return {"jobs": [_job_overview(details, now_ms) for details in reversed(all_jobs)]}


def job(details: JobDetails, now_ms: int) -> dict[str, Any]:
    """``GET /jobs/:jobid``."""
    head = details.overview
    vertices = [_vertex(vertex, now_ms) for vertex in details.vertices]
    statuses = Counter(vertex["status"] for vertex in vertices)
    return {
        "jid": head.job_id,
        "name": head.name,
        "isStoppable": False,
        "state": head.status.in_flink.name,
        "job-type": "STREAMING",
        "start-time": head.start_time_ms,
        "end-time": head.end_time_ms,
        "duration": _duration_ms(head.start_time_ms, head.end_time_ms, now_ms),
        "maxParallelism": -1,
        "now": now_ms,
        "timestamps": {
            status.name: details.timestamps_ms.get(status.name, 0)
            for status in JobStatus
            if status.in_flink is status
        },
        "vertices": vertices,
        "status-counts": {state.name: statuses[state.name] for state in ExecutionState},
        "pending-operators": 0,
        "waiting-for": details.waiting_for,
        "restarts": details.restarts,
        "slots-allocated": head.slots_allocated,
        "slots-required": head.slots_required,
        "queries": [
            {
                "name": query.query,
                "batch-id": query.batch_id,
                "batch-duration": query.batch_duration_ms,
                "input-rows": query.total_input_rows,
                "output-rows": query.total_output_rows,
                "watermark": query.watermark_ms,
                "sources": [
                    {"description": source.description, "behind": source.behind} for source in query.sources
                ],
            }
            for query in details.queries
        ],
    }


def exceptions(details: JobDetails) -> dict[str, Any]:
    """``GET /jobs/:jobid/exceptions``; the newest comes first."""
    entries = [_exception(failure) for failure in reversed(details.failures)]
    return {"exceptionHistory": {"entries": entries, "truncated": False}}


def task_managers(infos: Iterable[TaskManagerInfo]) -> dict[str, Any]:
    """``GET /taskmanagers``."""
    return {"taskmanagers": [_task_manager(info) for info in infos]}


def errors(*messages: str) -> dict[str, Any]:
    """Body of every answer that is not 200."""
    return {"errors": list(messages)}


def vertex_status(vertex: VertexInfo) -> ExecutionState:
    """One state for all subtasks of a vertex, as Flink sums them up."""
    states = Counter(execution.state for execution in vertex.executions)
    for state in _TELLING:
        if states[state]:
            return state
    if states[ExecutionState.FINISHED]:
        whole = states[ExecutionState.FINISHED] == len(vertex.executions)
        return ExecutionState.FINISHED if whole else ExecutionState.RUNNING
    return ExecutionState.CREATED


def _job_overview(details: JobDetails, now_ms: int) -> dict[str, Any]:
    head = details.overview
    executions = [execution for vertex in details.vertices for execution in vertex.executions]
    states = Counter(execution.state for execution in executions)
    changes = [time for execution in executions for time in execution.timestamps_ms.values()]
    return {
        "jid": head.job_id,
        "name": head.name,
        "jobType": "STREAMING",
        "start-time": head.start_time_ms,
        "end-time": head.end_time_ms,
        "duration": _duration_ms(head.start_time_ms, head.end_time_ms, now_ms),
        "state": head.status.in_flink.name,
        "last-modification": max([head.start_time_ms, *details.timestamps_ms.values(), *changes]),
        "tasks": {
            "total": len(executions),
            **{state.name.lower(): states[state] for state in ExecutionState},
        },
        "pending-operators": 0,
        "waiting-for": details.waiting_for,
    }


def _vertex(vertex: VertexInfo, now_ms: int) -> dict[str, Any]:
    states = Counter(execution.state for execution in vertex.executions)
    starts = [start for execution in vertex.executions if (start := _started_ms(execution)) > 0]
    ends = [max(e.timestamps_ms.values(), default=-1) for e in vertex.executions if e.state.terminal]
    start_ms = min(starts, default=-1)
    end_ms = max(ends, default=-1) if len(ends) == len(vertex.executions) else -1
    return {
        "id": vertex.vertex_id,
        "slotSharingGroupId": vertex.slot_sharing_group,
        "name": vertex.name,
        "maxParallelism": vertex.max_parallelism,
        "parallelism": vertex.parallelism,
        "status": vertex_status(vertex).name,
        "start-time": start_ms,
        "end-time": end_ms,
        "duration": _duration_ms(start_ms, end_ms, now_ms),
        "tasks": {state.name: states[state] for state in ExecutionState},
        "metrics": dict(_UNKNOWN_METRICS),
    }


def _started_ms(execution: ExecutionInfo) -> int:
    return execution.timestamps_ms.get(ExecutionState.DEPLOYING.name, -1)


def _exception(failure: FailureInfo) -> dict[str, Any]:
    error = failure.error
    return {
        "exceptionName": error.code,
        "stacktrace": "\n".join(text for text in (error.message, error.details) if text),
        "timestamp": failure.at_ms,
        "failureLabels": {"level": failure.level.name, "recovered": str(failure.recovered).lower()},
        "taskName": None,
        "endpoint": failure.location or None,
        "taskManagerId": failure.location or None,
        "concurrentExceptions": [],
    }


def _task_manager(info: TaskManagerInfo) -> dict[str, Any]:
    registration = info.registration
    return {
        "id": registration.task_manager_id,
        "path": registration.address,
        "dataPort": -1,
        "jmxPort": -1,
        # a time, in spite of its name: so it is in Flink
        "timeSinceLastHeartbeat": info.last_heartbeat_ms,
        "slotsNumber": info.slots,
        "freeSlots": info.free_slots,
        "hardware": {"cpuCores": registration.cores},
        "memoryConfiguration": {
            "taskHeap": registration.executor_heap_mib * _MIB,
            "totalProcessMemory": registration.process_memory_mib * _MIB,
        },
    }


def _duration_ms(start_ms: int, end_ms: int, now_ms: int) -> int:
    if start_ms < 0:
        return -1
    return max(0, (now_ms if end_ms < 0 else end_ms) - start_ms)
