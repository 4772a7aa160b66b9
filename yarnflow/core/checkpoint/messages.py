"""What processes say to each other about checkpoints and savepoints, as plain values.

As in :mod:`yarnflow.core.messages`, every structure has a Thrift struct of the same name with a
``T`` before it.  A checkpoint here is the record of committed batches: one position per streaming
query.  Flink counterparts: ``CompletedCheckpoint``, ``PendingCheckpointStats``,
``SavepointRestoreSettings``.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from yarnflow.core.ids import JobId


@dataclass(frozen=True, slots=True)
class SourceProgress:
    """Where one source of a query stands.  Spark: ``SourceProgress``."""

    #: as Spark describes it, e.g. ``FileStreamSource[hdfs://…]``
    description: str
    #: JSON as Spark writes it; per partition where the source has some; empty = none yet
    start_offset: str = ""
    end_offset: str = ""
    latest_offset: str = ""
    input_rows: int = 0

    @property
    def behind(self) -> dict[str, int]:
        """Messages there are and that were not read yet: ``topic-partition`` → count, of Kafka alone."""
        latest, end = _by_partition(self.latest_offset), _by_partition(self.end_offset)
        return {place: max(0, offset - end[place]) for place, offset in latest.items() if place in end}


@dataclass(frozen=True, slots=True)
class StateOperatorProgress:
    """State of one stateful operator of a query.  Spark: ``StateOperatorProgress``."""

    #: Spark's name, e.g. ``stateStoreSave``
    name: str
    rows: int = 0
    #: memory in use
    bytes: int = 0
    rows_updated: int = 0
    rows_removed: int = 0
    #: shuffle partitions
    partitions: int = 0


@dataclass(frozen=True, slots=True)
class QueryPosition:
    """One query as of one committed batch."""

    query: str
    #: committed; -1 = nothing was committed yet
    batch_id: int
    #: Spark's checkpoint directory of the query (a URI)
    directory: str = ""
    #: when the batch was committed
    committed_ms: int = -1
    #: event time; -1 = no watermark
    watermark_ms: int = -1
    sources: tuple[SourceProgress, ...] = ()
    operators: tuple[StateOperatorProgress, ...] = ()

    @property
    def state_rows(self) -> int:
        """Rows of all its operators."""
        return sum(operator.rows for operator in self.operators)

    @property
    def state_bytes(self) -> int:
        """Bytes of all its operators."""
        return sum(operator.bytes for operator in self.operators)


class CheckpointKind(Enum):
    """Who a checkpoint is for."""

    #: for restarts; yarnflow removes it when newer ones subsume it
    CHECKPOINT = "CHECKPOINT"
    #: for the user, self-contained; only the user disposes of it
    SAVEPOINT = "SAVEPOINT"


class CheckpointStatus(Enum):
    """Flink: ``CheckpointStatsStatus``."""

    IN_PROGRESS = "IN_PROGRESS"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"


class CheckpointTrigger(Enum):
    """Why a checkpoint was begun."""

    #: ``execution.checkpointing.interval`` is over
    INTERVAL = "INTERVAL"
    #: Spark is about to forget the batch of the newest one
    RETENTION = "RETENTION"
    #: ``yarnflow checkpoint``
    REQUESTED = "REQUESTED"
    #: ``yarnflow savepoint``
    SAVEPOINT = "SAVEPOINT"
    #: ``yarnflow stop``
    STOP = "STOP"


class AfterSavepoint(Enum):
    """What the job does once its savepoint is complete."""

    CONTINUE = "CONTINUE"
    #: end FINISHED; nothing is read after the savepoint
    STOP = "STOP"
    #: end FINISHED after all windows have fired, as at the end of input
    DRAIN = "DRAIN"


@dataclass(frozen=True, slots=True)
class CheckpointInfo:
    """One checkpoint or savepoint.  Flink: an entry of ``GET /jobs/:id/checkpoints``."""

    checkpoint_id: int
    kind: CheckpointKind
    status: CheckpointStatus
    trigger: CheckpointTrigger
    trigger_ms: int
    #: complete or failed; -1 = in progress
    end_ms: int = -1
    #: until the batches it consists of were committed
    commit_wait_ms: int = 0
    #: for which no batch could begin
    pause_ms: int = 0
    #: files copied (savepoints)
    copy_ms: int = 0
    #: ``_metadata`` and the pointer to it written
    persist_ms: int = 0
    positions: tuple[QueryPosition, ...] = ()
    #: directory with ``_metadata`` (a URI); empty while there is none
    external_path: str = ""
    #: size of the savepoint's files
    copied_bytes: int = 0
    #: its files are gone: subsumed by newer ones, or disposed of
    discarded: bool = False
    #: FAILED: why, one line
    failure: str = ""
    #: of the request that caused it; empty for periodic ones
    request_id: str = ""
    #: checkpoints and savepoints of the job completed with this one; 0 = nobody counted
    completed: int = 0


@dataclass(frozen=True, slots=True)
class RestoredState:
    """What a job started from."""

    #: directory with ``_metadata``, or a retained job directory
    path: str
    kind: CheckpointKind
    checkpoint_id: int
    restored_ms: int
    claim_mode: str = "NO_CLAIM"


@dataclass(frozen=True, slots=True)
class JobCheckpoints:
    """All that is known of a job's checkpoints.  Flink: ``GET /jobs/:id/checkpoints``."""

    job_id: JobId
    #: since the job was first submitted, over all masters
    completed: int = 0
    failed: int = 0
    #: newest first, bounded
    history: tuple[CheckpointInfo, ...] = ()
    restored: RestoredState | None = None
    #: 0 = every batch; -1 = not known, as the job ended under an earlier leader
    interval_ms: int = -1
    min_pause_ms: int = 0
    timeout_ms: int = 0
    retained: int = 1
    #: Flink's name of the retention: what happens to them when the job is canceled
    retention: str = "RETAIN_ON_CANCELLATION"
    #: the job's directory (a URI)
    directory: str = ""
    #: when last no query had anything to do, and no checkpoint lacked a batch; -1 = this was not seen
    up_to_date_ms: int = -1

    @property
    def kept_until_ms(self) -> int:
        """Up to when nothing that the job has done is missing in its checkpoints; -1 = not known.

        A job that has nothing to do makes no checkpoint (savepoints do not count), and needs none.
        """
        done = (
            info.end_ms
            for info in self.history
            if info.status is CheckpointStatus.COMPLETED and info.kind is CheckpointKind.CHECKPOINT
        )
        return max(next(done, -1), self.up_to_date_ms)


@dataclass(frozen=True, slots=True)
class CheckpointRequest:
    """A user wants a checkpoint or a savepoint now."""

    #: chosen by the client, so that asking again is no second checkpoint
    request_id: str
    kind: CheckpointKind
    #: SAVEPOINT: parent directory (a URI); empty = ``execution.checkpointing.savepoint-dir``
    target_dir: str = ""
    after: AfterSavepoint = AfterSavepoint.CONTINUE


@dataclass(frozen=True, slots=True)
class CheckpointOrder:
    """JobMaster → driver: say at which committed batches the queries stand, and copy them."""

    checkpoint_id: int
    kind: CheckpointKind
    after: AfterSavepoint = AfterSavepoint.CONTINUE
    #: SAVEPOINT: the savepoint's own directory (a URI), made by the driver
    target: str = ""
    #: of the request it is for: another master may give an order again for the same one
    request_id: str = ""


@dataclass(frozen=True, slots=True)
class CheckpointOutcome:
    """Driver → JobMaster: what became of an order; repeated in every report, so idempotent."""

    checkpoint_id: int
    #: why it failed, one line; empty = done
    failure: str = ""
    positions: tuple[QueryPosition, ...] = ()
    commit_wait_ms: int = 0
    pause_ms: int = 0
    copy_ms: int = 0
    copied_bytes: int = 0
    # of the order, which another master may have given
    request_id: str = ""
    kind: CheckpointKind = CheckpointKind.CHECKPOINT
    target: str = ""
    after: AfterSavepoint = AfterSavepoint.CONTINUE


@dataclass(frozen=True, slots=True)
class JobStop:
    """How a FINISHED job was stopped.  Flink: what ``flink stop`` answers; its jobs do not tell it later."""

    #: the savepoint (a URI); empty = it could not be recorded
    savepoint: str
    #: of who asked for it
    request_id: str
    #: all windows have fired: nothing goes on from there
    drained: bool = False

    @classmethod
    def of(cls, outcomes: Sequence[CheckpointOutcome]) -> JobStop | None:
        """That of a driver that has finished, by what it was ordered; None = no order has ended it.

        The savepoint is not recorded yet.
        """
        for outcome in reversed(outcomes):
            if outcome.after is not AfterSavepoint.CONTINUE and not outcome.failure:
                return cls("", outcome.request_id, outcome.after is AfterSavepoint.DRAIN)
        return None


class ClaimMode(Enum):
    """Who owns the files a job starts from.  Flink: ``RecoveryClaimMode``."""

    #: they are copied and stay the user's
    NO_CLAIM = "NO_CLAIM"
    #: they are moved: the job owns them, and they are gone with it
    CLAIM = "CLAIM"


@dataclass(frozen=True, slots=True)
class RestoreSettings:
    """From which state a submission starts.  Flink: ``SavepointRestoreSettings``."""

    #: a savepoint's or checkpoint's directory or its ``_metadata`` (a URI); empty = see ``latest``
    path: str = ""
    claim_mode: ClaimMode = ClaimMode.NO_CLAIM
    #: the newest retained checkpoint of the job key; without one the job starts empty
    latest: bool = False


def _by_partition(offset: str) -> dict[str, int]:
    try:
        topics = json.loads(offset)
        return {f"{topic}-{part}": int(at) for topic, parts in topics.items() for part, at in parts.items()}
    except (ValueError, TypeError, AttributeError):
        # of another source
        return {}
