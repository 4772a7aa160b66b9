"""The one checkpoint that is being taken, and its steps.

Decides what a pending checkpoint waits for.  Never decides whether one is due
(:mod:`yarnflow.core.checkpoint.coordinator`).  Flink counterpart: ``PendingCheckpoint``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import Final

from yarnflow.core.checkpoint.effects import Effect, NeedId, OrderDriver, Persist
from yarnflow.core.checkpoint.messages import (
    AfterSavepoint,
    CheckpointInfo,
    CheckpointKind,
    CheckpointOrder,
    CheckpointRequest,
    CheckpointStatus,
    CheckpointTrigger,
)

#: ``checkpoint_id`` of one that has not been given a number
NO_ID: Final = 0


class Stage(Enum):
    """How far the pending one is."""

    #: waiting for a number
    DRAWING_ID = "DRAWING_ID"
    #: it has a number; the driver is to be ordered as soon as that may be
    NUMBERED = "NUMBERED"
    #: waiting for the driver
    ORDERED = "ORDERED"
    #: its positions are known; to be written as soon as that may be
    READY = "READY"
    #: being written
    PERSISTING = "PERSISTING"


@dataclass(frozen=True, slots=True)
class Pending:
    """The checkpoint that is being taken."""

    stage: Stage
    info: CheckpointInfo
    #: when it has failed; None = it cannot, see :meth:`CheckpointCoordinator.tick`
    expires_ms: int | None
    request: CheckpointRequest | None = None
    #: DRAWING_ID, READY: not to be tried (again) before
    not_before_ms: int = 0
    #: DRAWING_ID: the shell has been asked
    asked: bool = False
    attempts: int = 0
    #: first write of the record
    persist_began_ms: int = -1


def advanced(pending: Pending, at_ms: int) -> tuple[Pending, Effect | None]:
    """The pending one's next step, if it is the coordinator's turn."""
    if pending.stage is Stage.DRAWING_ID and not pending.asked and at_ms >= pending.not_before_ms:
        return replace(pending, asked=True), NeedId()
    if pending.stage is Stage.NUMBERED:
        assert pending.request is not None, "periodic ones are READY at once"
        order = CheckpointOrder(
            pending.info.checkpoint_id,
            pending.info.kind,
            pending.request.after,
            request_id=pending.request.request_id,
        )
        stops = order.after is not AfterSavepoint.CONTINUE
        expires_ms = None if stops else pending.expires_ms
        return replace(pending, stage=Stage.ORDERED, expires_ms=expires_ms), OrderDriver(order)
    if pending.stage is Stage.READY and at_ms >= pending.not_before_ms:
        began_ms = pending.persist_began_ms if pending.persist_began_ms >= 0 else at_ms
        return replace(pending, stage=Stage.PERSISTING, persist_began_ms=began_ms), Persist(pending.info)
    return pending, None


def periodic(trigger: CheckpointTrigger, at_ms: int) -> CheckpointInfo:
    return CheckpointInfo(NO_ID, CheckpointKind.CHECKPOINT, CheckpointStatus.IN_PROGRESS, trigger, at_ms)


def begun(request: CheckpointRequest, asked_ms: int) -> CheckpointInfo:
    if request.after is not AfterSavepoint.CONTINUE:
        trigger = CheckpointTrigger.STOP
    elif request.kind is CheckpointKind.SAVEPOINT:
        trigger = CheckpointTrigger.SAVEPOINT
    else:
        trigger = CheckpointTrigger.REQUESTED
    return CheckpointInfo(
        NO_ID,
        request.kind,
        CheckpointStatus.IN_PROGRESS,
        trigger,
        asked_ms,
        request_id=request.request_id,
    )
