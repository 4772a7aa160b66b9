"""Requests that begin something, and what became of it, in the shapes of Flink's REST interface."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType, field

from yarnflow.rest.answers.jobs import FailureCause, OperationStatus, failure_cause
from yarnflow.rest.answers.shapes import Kebab
from yarnflow.rest.framework.operations import Outcome

TriggerId = Annotated[str, Meta(pattern="^[0-9a-fA-F]{32}$")]
#: a URI, or a path of the cluster's file system
Path = Annotated[str, Meta(min_length=1, max_length=4096)]
#: yarnflow has one format; Flink's client names CANONICAL when it was told nothing
SavepointFormat = Literal["CANONICAL", "NATIVE"]


class Triggered(Kebab):
    """What was begun."""

    request_id: str


class Operation(Kebab, omit_defaults=True):
    """How it ended; nothing in it = well."""

    location: str | None = None
    checkpoint_id: int | None = field(name="checkpointId", default=None)
    failure_cause: FailureCause | None = None


class OperationAnswer(msgspec.Struct):
    """What became of a trigger."""

    status: OperationStatus
    operation: Operation | None


class SavepointRequest(Kebab):
    """``POST /jobs/:jobid/savepoints``."""

    target_directory: Path | None = None
    cancel_job: bool | None = False
    format_type: SavepointFormat | None = field(name="formatType", default=None)
    trigger_id: TriggerId | None = field(name="triggerId", default=None)


class StopRequest(msgspec.Struct, rename="camel"):
    """``POST /jobs/:jobid/stop``."""

    target_directory: Path | None = None
    drain: bool | None = False
    format_type: SavepointFormat | None = None
    trigger_id: TriggerId | None = None


class StopRequestWithToken(StopRequest, rename="camel"):
    """``PUT /jobs/:jobid/yarn-stop``, for YARN's web proxy, which passes on no headers."""

    token: str | UnsetType = UNSET


class CheckpointRequestBody(msgspec.Struct, rename="camel"):
    """``POST /jobs/:jobid/checkpoints``; every checkpoint here is whole, so the type changes nothing."""

    checkpoint_type: Literal["CONFIGURED", "FULL", "INCREMENTAL"] | None = None
    trigger_id: TriggerId | None = None


class DisposalRequest(Kebab):
    """``POST /savepoint-disposal``."""

    savepoint_path: Path


class TokenBody(msgspec.Struct):
    """For YARN's web proxy, which passes on no headers."""

    token: str | UnsetType = UNSET


def operation(outcome: Outcome | None) -> OperationAnswer:
    """What became of a trigger; None = it goes on."""
    if outcome is None:
        return OperationAnswer(OperationStatus("IN_PROGRESS"), None)
    if outcome.error is not None:
        made = Operation(failure_cause=failure_cause(outcome.error.code, outcome.error.message))
    elif isinstance(outcome.result, int):
        made = Operation(checkpoint_id=outcome.result)
    else:
        made = Operation(location=outcome.result if isinstance(outcome.result, str) else None)
    return OperationAnswer(OperationStatus("COMPLETED"), made)
