"""Server-sent events of a job."""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import UNSET, UnsetType

from yarnflow.rest.answers.checkpoints import Checkpoint
from yarnflow.rest.answers.jobs import Query, Stop
from yarnflow.rest.answers.shapes import Kebab

HEARTBEAT: Final = b": heartbeat\n\n"


class StateEvent(Kebab):
    """``event: state``: the job's state is new."""

    jid: str
    state: str
    timestamp: int
    restarts: int
    waiting_for: str
    #: of a job that was stopped
    stop: Stop | UnsetType = UNSET


class ProgressEvent(Kebab):
    """``event: progress``: what its queries last said."""

    jid: str
    now: int
    slots_allocated: int
    slots_required: int
    queries: list[Query]


class CheckpointEvent(Kebab):
    """``event: checkpoint``: one began, was completed or failed."""

    jid: str
    checkpoint: Checkpoint


def event(name: str, data: StateEvent | ProgressEvent | CheckpointEvent, event_id: str) -> bytes:
    """One event as it is sent.

    Parameters
    ----------
    event_id : str
        A client that comes back with it goes on behind this event.
    """
    return b"id: %s\nevent: %s\ndata: %s\n\n" % (event_id.encode(), name.encode(), msgspec.json.encode(data))
