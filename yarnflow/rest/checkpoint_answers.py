"""A job's checkpoints in the shapes of Flink's REST answers.

What has no counterpart here (alignment, subtasks) is zero or empty; what Flink does not have
(``trigger``, ``queries``, the split of the duration) is added to an entry.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from yarnflow.core.checkpoint.messages import (
    CheckpointInfo,
    CheckpointKind,
    CheckpointStatus,
    CheckpointTrigger,
    JobCheckpoints,
    QueryPosition,
)

_QUANTILES: Final = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p999": 0.999}
#: Flink gives its quantiles no number when there is nothing to take them of
_NAN: Final = "NaN"
#: Flink's word for: checkpoints that fail never fail the job
_ANY_NUMBER: Final = 2**31 - 1


def history(checkpoints: JobCheckpoints, now_ms: int) -> dict[str, Any]:
    """``GET /jobs/:jobid/checkpoints``; the newest comes first."""
    entries = checkpoints.history
    completed = [info for info in entries if info.status is CheckpointStatus.COMPLETED]
    in_progress = sum(info.status is CheckpointStatus.IN_PROGRESS for info in entries)
    restored = checkpoints.restored
    return {
        "counts": {
            "restored": 0 if restored is None else 1,
            "total": checkpoints.completed + checkpoints.failed + in_progress,
            "in_progress": in_progress,
            "completed": checkpoints.completed,
            "failed": checkpoints.failed,
        },
        "summary": {
            "checkpointed_size": _summary([_written_bytes(info) for info in completed]),
            "state_size": _summary([_state_bytes(info) for info in completed]),
            "end_to_end_duration": _summary([_duration_ms(info, now_ms) for info in completed]),
            **{name: _summary([]) for name in ("alignment_buffered", "processed_data", "persisted_data")},
        },
        "latest": {
            "completed": _latest(completed, now_ms, lambda info: info.kind is CheckpointKind.CHECKPOINT),
            "savepoint": _latest(completed, now_ms, lambda info: info.kind is CheckpointKind.SAVEPOINT),
            "failed": _latest(entries, now_ms, lambda info: info.status is CheckpointStatus.FAILED),
            "restored": None
            if restored is None
            else {
                "id": restored.checkpoint_id,
                "restore_timestamp": restored.restored_ms,
                "is_savepoint": restored.kind is CheckpointKind.SAVEPOINT,
                "external_path": restored.path,
                "claim-mode": restored.claim_mode,
            },
        },
        "history": [entry(info, now_ms) for info in entries],
        "directory": checkpoints.directory,
    }


def config(checkpoints: JobCheckpoints) -> dict[str, Any]:
    """``GET /jobs/:jobid/checkpoints/config``."""
    return {
        "mode": "exactly_once",
        "interval": checkpoints.interval_ms,
        "timeout": checkpoints.timeout_ms,
        "min_pause": checkpoints.min_pause_ms,
        "max_concurrent": 1,
        "externalization": {
            "enabled": checkpoints.retention != "NO_EXTERNALIZED_CHECKPOINTS",
            "delete_on_cancellation": checkpoints.retention != "RETAIN_ON_CANCELLATION",
        },
        "checkpoint_storage": "FileSystemCheckpointStorage",
        "unaligned_checkpoints": False,
        "tolerable_failed_checkpoints": _ANY_NUMBER,
        "aligned_checkpoint_timeout": 0,
        "checkpoints_after_tasks_finish": False,
        "retained": checkpoints.retained,
    }


def entry(info: CheckpointInfo, now_ms: int) -> dict[str, Any]:
    """One checkpoint or savepoint: ``GET /jobs/:jobid/checkpoints/details/:checkpointid``."""
    savepoint = info.kind is CheckpointKind.SAVEPOINT
    made: dict[str, Any] = {
        "className": info.status.value.lower(),
        "id": info.checkpoint_id,
        "status": info.status.value,
        "is_savepoint": savepoint,
        "savepointFormat": "NATIVE" if savepoint else None,
        "trigger_timestamp": info.trigger_ms,
        "latest_ack_timestamp": info.end_ms,
        "checkpointed_size": _written_bytes(info),
        "state_size": _state_bytes(info),
        "end_to_end_duration": _duration_ms(info, now_ms),
        "alignment_buffered": 0,
        "processed_data": 0,
        "persisted_data": 0,
        "num_subtasks": 0,
        "num_acknowledged_subtasks": 0,
        "checkpoint_type": _type(info),
        "tasks": {},
        "trigger": info.trigger.value,
        "commit-wait": info.commit_wait_ms,
        "pause": info.pause_ms,
        "copy": info.copy_ms,
        "persist": info.persist_ms,
        "queries": [_query(position) for position in info.positions],
    }
    if info.status is CheckpointStatus.COMPLETED:
        made |= {"external_path": info.external_path, "discarded": info.discarded}
    elif info.status is CheckpointStatus.FAILED:
        made |= {"failure_timestamp": info.end_ms, "failure_message": info.failure}
    return made


def _query(position: QueryPosition) -> dict[str, Any]:
    return {
        "name": position.query,
        "batch-id": position.batch_id,
        "committed": position.committed_ms,
        "watermark": position.watermark_ms,
        "sources": [
            {
                "description": source.description,
                "end-offset": source.end_offset,
                "input-rows": source.input_rows,
            }
            for source in position.sources
        ],
        "operators": [
            {
                "name": operator.name,
                "rows": operator.rows,
                "bytes": operator.bytes,
                "partitions": operator.partitions,
            }
            for operator in position.operators
        ],
    }


def _type(info: CheckpointInfo) -> str:
    if info.kind is CheckpointKind.CHECKPOINT:
        return "CHECKPOINT"
    return "SYNC_SAVEPOINT" if info.trigger is CheckpointTrigger.STOP else "SAVEPOINT"


def _latest(
    entries: Sequence[CheckpointInfo], now_ms: int, wanted: Callable[[CheckpointInfo], bool]
) -> dict[str, Any] | None:
    return next((entry(info, now_ms) for info in entries if wanted(info)), None)


def _state_bytes(info: CheckpointInfo) -> int:
    return sum(position.state_bytes for position in info.positions)


def _written_bytes(info: CheckpointInfo) -> int:
    """A checkpoint writes its manifest only: its batches are durable already."""
    return info.copied_bytes


def _duration_ms(info: CheckpointInfo, now_ms: int) -> int:
    return max(0, (now_ms if info.end_ms < 0 else info.end_ms) - info.trigger_ms)


def _summary(values: Sequence[int]) -> dict[str, Any]:
    if not values:
        return {"min": 0, "max": 0, "avg": 0, **dict.fromkeys(_QUANTILES, _NAN)}
    ordered = sorted(values)
    quantiles = {name: float(_quantile(ordered, part)) for name, part in _QUANTILES.items()}
    return {"min": ordered[0], "max": ordered[-1], "avg": sum(ordered) // len(ordered), **quantiles}


def _quantile(ordered: Sequence[int], part: float) -> int:
    """The smallest value that so large a part does not exceed."""
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))]
