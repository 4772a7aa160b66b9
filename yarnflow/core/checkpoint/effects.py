"""What the checkpoint coordinator wants done, as plain values.

Performed by the JobMaster, which answers as each says; :mod:`yarnflow.core.checkpoint.coordinator` decides.
"""

from __future__ import annotations

from dataclasses import dataclass

from yarnflow.core.checkpoint.messages import CheckpointInfo, CheckpointOrder


@dataclass(frozen=True, slots=True)
class NeedId:
    """Draw a number; answer with ``id_given`` or ``id_failed``."""


@dataclass(frozen=True, slots=True)
class OrderDriver:
    """Hand the order to the driver, its target filled in; answer with ``outcome``."""

    order: CheckpointOrder


@dataclass(frozen=True, slots=True)
class Persist:
    """Write the record; answer with ``persisted`` or ``persist_failed``.  May come again for one id."""

    info: CheckpointInfo


@dataclass(frozen=True, slots=True)
class Discard:
    """Remove record and body; no answer."""

    checkpoint_id: int


@dataclass(frozen=True, slots=True)
class Ended:
    """One is COMPLETED or FAILED: tell who waits."""

    info: CheckpointInfo


Effect = NeedId | OrderDriver | Persist | Discard | Ended
