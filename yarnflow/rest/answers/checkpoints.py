"""A job's checkpoints in the shapes of Flink's REST answers.

A checkpoint here is the record of committed batches of whole queries: a batch is committed when all subtasks
have done their part, so all of them acknowledge it at once, and none has numbers or an alignment of its own.
What Flink does not have (``trigger``, ``queries``, the split of the duration) is added.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from msgspec import UNSET, UnsetType, field

from yarnflow.core.checkpoint.messages import (
    CheckpointInfo,
    CheckpointKind,
    CheckpointStatus,
    CheckpointTrigger,
    JobCheckpoints,
    QueryPosition,
)
from yarnflow.core.messages import VertexInfo
from yarnflow.rest.answers.shapes import NAN, Kebab, NotANumber, Snake, quantile

_QUANTILES: Final = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p999": 0.999}
#: Flink's word for: checkpoints that fail never fail the job
_ANY_NUMBER: Final = 2**31 - 1
#: Flink's word for: no checkpoint is begun by time
_NEVER_MS: Final = 2**63 - 1


class Counts(Snake):
    """Since the job was first submitted."""

    restored: int
    total: int
    in_progress: int
    completed: int
    failed: int


class Summary(Snake):
    """Of one number of the completed ones in the history."""

    min: int
    max: int
    avg: int
    p50: float | NotANumber
    p90: float | NotANumber
    p95: float | NotANumber
    p99: float | NotANumber
    p999: float | NotANumber


class Summaries(Snake):
    """Of all numbers."""

    checkpointed_size: Summary
    state_size: Summary
    end_to_end_duration: Summary
    alignment_buffered: Summary
    processed_data: Summary
    persisted_data: Summary


class SourcePosition(Kebab):
    """Where one source of a query stood."""

    description: str
    end_offset: str
    input_rows: int


class OperatorState(Kebab):
    """State of one stateful operator of a query."""

    name: str
    rows: int
    bytes: int
    partitions: int


class Position(Kebab):
    """One query as of one committed batch."""

    name: str
    batch_id: int
    committed: int
    watermark: int
    sources: list[SourcePosition]
    operators: list[OperatorState]


class VertexCheckpoint(Snake):
    """A vertex in one checkpoint; what is null is known of whole queries only."""

    id: int
    status: str
    latest_ack_timestamp: int
    checkpointed_size: int | None
    state_size: int | None
    end_to_end_duration: int
    alignment_buffered: int | None
    processed_data: int | None
    persisted_data: int | None
    num_subtasks: int
    num_acknowledged_subtasks: int


class Checkpoint(Snake):
    """One checkpoint or savepoint."""

    class_name: str = field(name="className")
    id: int
    status: str
    is_savepoint: bool
    savepoint_format: str | None = field(name="savepointFormat")
    trigger_timestamp: int
    latest_ack_timestamp: int
    checkpointed_size: int
    state_size: int
    end_to_end_duration: int
    alignment_buffered: int
    processed_data: int
    persisted_data: int
    num_subtasks: int
    num_acknowledged_subtasks: int
    checkpoint_type: str
    #: id of each vertex; only in the details of one
    tasks: dict[str, VertexCheckpoint]
    trigger: str
    commit_wait: int = field(name="commit-wait")
    pause: int
    copy: int
    persist: int
    queries: list[Position]
    external_path: str | UnsetType = UNSET
    discarded: bool | UnsetType = UNSET
    failure_timestamp: int | UnsetType = UNSET
    failure_message: str | UnsetType = UNSET


class Restored(Snake):
    """What the job started from."""

    id: int
    restore_timestamp: int
    is_savepoint: bool
    external_path: str
    claim_mode: str = field(name="claim-mode")


class Latest(Snake):
    """The newest of each kind."""

    completed: Checkpoint | None
    savepoint: Checkpoint | None
    failed: Checkpoint | None
    restored: Restored | None


class Checkpoints(Snake):
    """``GET /jobs/:jobid/checkpoints``."""

    counts: Counts
    summary: Summaries
    latest: Latest
    history: list[Checkpoint]
    directory: str
    #: up to when nothing that the job has done is missing in its checkpoints; -1 = not known
    kept_until_timestamp: int


class Externalization(Snake):
    """What becomes of them when the job is canceled."""

    enabled: bool
    delete_on_cancellation: bool


class CheckpointsConfiguration(Snake, kw_only=True):
    """``GET /jobs/:jobid/checkpoints/config``."""

    mode: str
    #: 0 = a checkpoint of every batch
    interval: int
    timeout: int
    min_pause: int
    max_concurrent: int
    externalization: Externalization
    state_backend: str | UnsetType = UNSET
    checkpoint_storage: str
    unaligned_checkpoints: bool
    tolerable_failed_checkpoints: int
    aligned_checkpoint_timeout: int
    checkpoints_after_tasks_finish: bool
    retained: int


def checkpoints(known: JobCheckpoints, vertices: Sequence[VertexInfo], now_ms: int) -> Checkpoints:
    """``GET /jobs/:jobid/checkpoints``; the newest comes first."""

    def latest(
        entries: Sequence[CheckpointInfo], wanted: Callable[[CheckpointInfo], bool]
    ) -> Checkpoint | None:
        return next((checkpoint(info, vertices, now_ms) for info in entries if wanted(info)), None)

    entries = known.history
    completed = [info for info in entries if info.status is CheckpointStatus.COMPLETED]
    in_progress = sum(info.status is CheckpointStatus.IN_PROGRESS for info in entries)
    restored = known.restored
    return Checkpoints(
        counts=Counts(
            restored=0 if restored is None else 1,
            total=known.completed + known.failed + in_progress,
            in_progress=in_progress,
            completed=known.completed,
            failed=known.failed,
        ),
        summary=Summaries(
            checkpointed_size=_summary([_written_bytes(info) for info in completed]),
            state_size=_summary([_state_bytes(info) for info in completed]),
            end_to_end_duration=_summary([_duration_ms(info, now_ms) for info in completed]),
            alignment_buffered=_summary([]),
            processed_data=_summary([]),
            persisted_data=_summary([]),
        ),
        latest=Latest(
            completed=latest(completed, lambda info: info.kind is CheckpointKind.CHECKPOINT),
            savepoint=latest(completed, lambda info: info.kind is CheckpointKind.SAVEPOINT),
            failed=latest(entries, lambda info: info.status is CheckpointStatus.FAILED),
            restored=(
                None
                if restored is None
                else Restored(
                    id=restored.checkpoint_id,
                    restore_timestamp=restored.restored_ms,
                    is_savepoint=restored.kind is CheckpointKind.SAVEPOINT,
                    external_path=restored.path,
                    claim_mode=restored.claim_mode,
                )
            ),
        ),
        history=[checkpoint(info, vertices, now_ms) for info in entries],
        directory=known.directory,
        kept_until_timestamp=known.kept_until_ms,
    )


def configuration(known: JobCheckpoints, state_backend: str = "") -> CheckpointsConfiguration:
    """``GET /jobs/:jobid/checkpoints/config``."""
    return CheckpointsConfiguration(
        mode="exactly_once",
        interval=known.interval_ms if known.interval_ms >= 0 else _NEVER_MS,
        timeout=known.timeout_ms,
        min_pause=known.min_pause_ms,
        max_concurrent=1,
        externalization=Externalization(
            enabled=known.retention != "NO_EXTERNALIZED_CHECKPOINTS",
            delete_on_cancellation=known.retention != "RETAIN_ON_CANCELLATION",
        ),
        state_backend=state_backend or UNSET,
        checkpoint_storage="FileSystemCheckpointStorage",
        unaligned_checkpoints=False,
        tolerable_failed_checkpoints=_ANY_NUMBER,
        aligned_checkpoint_timeout=0,
        checkpoints_after_tasks_finish=False,
        retained=known.retained,
    )


def checkpoint_details(info: CheckpointInfo, vertices: Sequence[VertexInfo], now_ms: int) -> Checkpoint:
    """``GET /jobs/:jobid/checkpoints/details/:checkpointid``."""
    made = checkpoint(info, vertices, now_ms)
    made.tasks = {vertex.vertex_id: _of_vertex(info, vertex, now_ms) for vertex in vertices}
    return made


def checkpoint(info: CheckpointInfo, vertices: Sequence[VertexInfo], now_ms: int) -> Checkpoint:
    """One checkpoint or savepoint of a job with these vertices."""
    subtasks = sum(vertex.parallelism for vertex in vertices)
    savepoint = info.kind is CheckpointKind.SAVEPOINT
    completed = info.status is CheckpointStatus.COMPLETED
    failed = info.status is CheckpointStatus.FAILED
    return Checkpoint(
        class_name=info.status.value.lower(),
        id=info.checkpoint_id,
        status=info.status.value,
        is_savepoint=savepoint,
        savepoint_format="NATIVE" if savepoint else None,
        trigger_timestamp=info.trigger_ms,
        latest_ack_timestamp=info.end_ms,
        checkpointed_size=_written_bytes(info),
        state_size=_state_bytes(info),
        end_to_end_duration=_duration_ms(info, now_ms),
        alignment_buffered=0,
        processed_data=0,
        persisted_data=0,
        num_subtasks=subtasks,
        num_acknowledged_subtasks=subtasks if completed else 0,
        checkpoint_type=_type(info),
        tasks={},
        trigger=info.trigger.value,
        commit_wait=info.commit_wait_ms,
        pause=info.pause_ms,
        copy=info.copy_ms,
        persist=info.persist_ms,
        queries=[_position(position) for position in info.positions],
        external_path=info.external_path if completed else UNSET,
        discarded=info.discarded if completed else UNSET,
        failure_timestamp=info.end_ms if failed else UNSET,
        failure_message=info.failure if failed else UNSET,
    )


def _of_vertex(info: CheckpointInfo, vertex: VertexInfo, now_ms: int) -> VertexCheckpoint:
    completed = info.status is CheckpointStatus.COMPLETED
    return VertexCheckpoint(
        id=info.checkpoint_id,
        status=info.status.value,
        latest_ack_timestamp=info.end_ms,
        checkpointed_size=None,
        state_size=None,
        end_to_end_duration=_duration_ms(info, now_ms),
        alignment_buffered=None,
        processed_data=None,
        persisted_data=None,
        num_subtasks=vertex.parallelism,
        num_acknowledged_subtasks=vertex.parallelism if completed else 0,
    )


def _position(position: QueryPosition) -> Position:
    return Position(
        name=position.query,
        batch_id=position.batch_id,
        committed=position.committed_ms,
        watermark=position.watermark_ms,
        sources=[
            SourcePosition(
                description=source.description, end_offset=source.end_offset, input_rows=source.input_rows
            )
            for source in position.sources
        ],
        operators=[
            OperatorState(
                name=operator.name,
                rows=operator.rows,
                bytes=operator.bytes,
                partitions=operator.partitions,
            )
            for operator in position.operators
        ],
    )


def _type(info: CheckpointInfo) -> str:
    if info.kind is CheckpointKind.CHECKPOINT:
        return "CHECKPOINT"
    return "SYNC_SAVEPOINT" if info.trigger is CheckpointTrigger.STOP else "SAVEPOINT"


def _state_bytes(info: CheckpointInfo) -> int:
    return sum(position.state_bytes for position in info.positions)


def _written_bytes(info: CheckpointInfo) -> int:
    """A checkpoint writes its manifest only: its batches are durable already."""
    return info.copied_bytes


def _duration_ms(info: CheckpointInfo, now_ms: int) -> int:
    return max(0, (now_ms if info.end_ms < 0 else info.end_ms) - info.trigger_ms)


def _summary(values: Sequence[int]) -> Summary:
    if not values:
        return Summary(min=0, max=0, avg=0, p50=NAN, p90=NAN, p95=NAN, p99=NAN, p999=NAN)
    ordered = sorted(values)
    quantiles: dict[str, float] = {name: float(quantile(ordered, part)) for name, part in _QUANTILES.items()}
    return Summary(min=ordered[0], max=ordered[-1], avg=sum(ordered) // len(ordered), **quantiles)
