"""What the JobManager's own knowledge of a job says as metrics.

Pure: from the job's snapshot, its checkpoints and the time.  Flink counterparts: ``UpTimeGauge``,
``DownTimeGauge``, ``JobStatusMetrics``, ``CheckpointStatsTracker``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from yarnflow.core.checkpoint.messages import (
    CheckpointInfo,
    CheckpointStatus,
    JobCheckpoints,
)
from yarnflow.core.messages import ClusterOverview, ExecutionInfo, JobDetails
from yarnflow.core.metrics import MetricValue
from yarnflow.core.monitoring import declarations as m
from yarnflow.core.states import ExecutionState, JobStatus

_NONE: Final = -1
_NO_PATH: Final = "n/a"
_AT_WORK: Final = {ExecutionState.RUNNING.name, ExecutionState.FINISHED.name}


def cluster_metrics(cluster: ClusterOverview, pending_task_managers: int) -> dict[str, MetricValue]:
    """Metrics of the whole cluster."""
    return {
        m.REGISTERED_TASK_MANAGERS.name: cluster.task_managers,
        m.PENDING_TASK_MANAGERS.name: pending_task_managers,
        m.RUNNING_JOBS.name: cluster.jobs_running,
        m.SLOTS_AVAILABLE.name: cluster.slots_available,
        m.SLOTS_TOTAL.name: cluster.slots_total,
    }


def job_metrics(
    details: JobDetails, checkpoints: JobCheckpoints, reported: Mapping[str, MetricValue], now_ms: int
) -> dict[str, MetricValue]:
    """Metrics of one job.

    Parameters
    ----------
    reported : mapping
        What its driver has reported of the job as a whole.
    """
    head = details.overview
    found: dict[str, MetricValue] = {
        declared.name: _since(details, status, now_ms) for status, declared in m.STATUS_TIMES.items()
    }
    found |= {
        m.UPTIME.name: _uptime_ms(details, now_ms),
        m.DOWNTIME.name: _downtime_ms(details, now_ms),
        m.DEPLOYING_TIME.name: _deploying_ms(details, now_ms),
        m.ALL_RUNNING_TIME.name: _all_running_ms(details, now_ms),
        m.NUM_RESTARTS.name: details.restarts,
        m.SLOTS_ALLOCATED.name: head.slots_allocated,
        m.SLOTS_REQUIRED.name: head.slots_required,
    }
    found |= checkpoint_metrics(checkpoints)
    found[m.CHECKPOINT_AGE.name] = checkpoint_age_ms(details, checkpoints, now_ms)
    found |= reported
    committed_ms = reported.get(m.LAST_COMMIT.name)
    if isinstance(committed_ms, int):
        # two clocks
        found[m.SECONDS_SINCE_COMMIT.name] = max(0, now_ms - committed_ms) // 1000
    return found


def checkpoint_metrics(checkpoints: JobCheckpoints) -> dict[str, MetricValue]:
    """Metrics of a job's checkpoints."""
    last = newest_completed(checkpoints)
    in_progress = sum(info.status is CheckpointStatus.IN_PROGRESS for info in checkpoints.history)
    restored = checkpoints.restored
    return {
        m.CHECKPOINTS_COMPLETED.name: checkpoints.completed,
        m.CHECKPOINTS_FAILED.name: checkpoints.failed,
        m.CHECKPOINTS_IN_PROGRESS.name: in_progress,
        m.CHECKPOINTS_TOTAL.name: checkpoints.completed + checkpoints.failed + in_progress,
        m.LAST_CHECKPOINT_ID.name: _NONE if last is None else last.checkpoint_id,
        m.LAST_CHECKPOINT_DURATION.name: _NONE if last is None else max(0, last.end_ms - last.trigger_ms),
        m.LAST_CHECKPOINT_SIZE.name: _NONE if last is None else last.copied_bytes,
        m.LAST_CHECKPOINT_FULL_SIZE.name: _NONE if last is None else _state_bytes(last),
        m.LAST_CHECKPOINT_COMPLETED.name: _NONE if last is None else last.end_ms,
        m.LAST_CHECKPOINT_PATH.name: _NO_PATH if last is None else last.external_path,
        m.LAST_CHECKPOINT_RESTORED.name: _NONE if restored is None else restored.restored_ms,
    }


def newest_completed(checkpoints: JobCheckpoints) -> CheckpointInfo | None:
    """The checkpoint or savepoint that was completed last."""
    return next((i for i in checkpoints.history if i.status is CheckpointStatus.COMPLETED), None)


def checkpoint_age_ms(details: JobDetails, checkpoints: JobCheckpoints, now_ms: int) -> int:
    """How long the job has done what no checkpoint has, until its end; savepoints do not count."""
    head = details.overview
    until_ms = head.end_time_ms if head.status.globally_terminal else now_ms
    return max(0, until_ms - max(checkpoints.kept_until_ms, head.start_time_ms))


def _state_bytes(info: CheckpointInfo) -> int:
    return sum(position.state_bytes for position in info.positions)


def _since(details: JobDetails, status: JobStatus, now_ms: int) -> int:
    if details.overview.status is not status:
        return 0
    return max(0, now_ms - details.timestamps_ms.get(status.name, now_ms))


def _uptime_ms(details: JobDetails, now_ms: int) -> int:
    if details.overview.status.globally_terminal:
        return _NONE
    return _since(details, JobStatus.RUNNING, now_ms)


def _downtime_ms(details: JobDetails, now_ms: int) -> int:
    status = details.overview.status
    if status.globally_terminal:
        return _NONE
    if status is JobStatus.RUNNING or JobStatus.RUNNING.name not in details.timestamps_ms:
        return 0
    return _since(details, status, now_ms)


def _executions(details: JobDetails) -> Iterator[ExecutionInfo]:
    for vertex in details.vertices:
        yield from vertex.executions


def _deploying_ms(details: JobDetails, now_ms: int) -> int:
    deploying = ExecutionState.DEPLOYING
    since = [
        execution.timestamps_ms.get(deploying.name, now_ms)
        for execution in _executions(details)
        if execution.state is deploying
    ]
    return max(0, now_ms - min(since)) if since else 0


def _all_running_ms(details: JobDetails, now_ms: int) -> int:
    executions = list(_executions(details))
    if not executions or details.overview.status.globally_terminal:
        return 0
    if any(execution.state.name not in _AT_WORK for execution in executions):
        return 0
    since = [execution.timestamps_ms.get(execution.state.name, now_ms) for execution in executions]
    return max(0, now_ms - max(since))
