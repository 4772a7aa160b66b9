"""What became of a job's checkpoints and savepoints, and which of them are kept.

Decides which completed checkpoints newer ones subsume, and of how many savepoints there is a record.
A savepoint is the user's and never subsumed; once newer ones have taken the place of its record, it is
known by its directory alone, which is all that a start from it and its disposal need.  Never decides
when one is taken (:mod:`yarnflow.core.checkpoint.coordinator`).  Flink counterparts:
``CheckpointStatsHistory``, ``CheckpointSubsumeHelper``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from yarnflow.core.checkpoint.messages import CheckpointInfo, CheckpointKind, CheckpointStatus

#: entries that are shown though nothing is left of them
_SHOWN: Final = 30
#: as ``execution.checkpointing.savepoint-records``
SAVEPOINT_RECORDS: Final = 20


@dataclass(frozen=True, slots=True)
class CheckpointHistory:
    """Checkpoints that ended; every method returns a new value."""

    #: completed checkpoints that are kept
    retained: int
    #: savepoints with a record
    savepoint_records: int = SAVEPOINT_RECORDS
    #: newest first; all that have a record, and the newest of the others
    entries: tuple[CheckpointInfo, ...] = ()
    #: since the job was first submitted, as far as this master knows
    completed: int = 0
    failed: int = 0
    #: committed batch of each query in the newest completed checkpoint
    recorded: tuple[tuple[str, int], ...] = ()

    @property
    def newest(self) -> CheckpointInfo | None:
        """The newest completed checkpoint that was not discarded; no savepoint."""
        return next((info for info in self.entries if _is_kept_checkpoint(info)), None)

    def find(self, request_id: str) -> CheckpointInfo | None:
        """What a request led to."""
        return next((info for info in self.entries if info.request_id == request_id), None)

    def has_completed(self, checkpoint_id: int) -> bool:
        """Whether it is among the entries, as a completed one."""
        return any(
            info.checkpoint_id == checkpoint_id and info.status is CheckpointStatus.COMPLETED
            for info in self.entries
        )

    def recovered(self, infos: Iterable[CheckpointInfo]) -> tuple[CheckpointHistory, tuple[int, ...]]:
        """Begin with what earlier masters completed; returns also the subsumed ones, as :meth:`ended`."""
        newest_first = sorted(infos, key=lambda info: info.checkpoint_id, reverse=True)
        # those whose record is gone count, too, if they were counted when they were recorded
        completed = max((info.completed for info in newest_first), default=0)
        history = replace(
            self, entries=tuple(newest_first), completed=max(completed, len(newest_first))
        )
        if history.newest is not None:
            history = replace(history, recorded=_batches(history.newest))
        return history._subsumed()

    def ended(self, info: CheckpointInfo) -> tuple[CheckpointHistory, tuple[int, ...]]:
        """One completed or failed.

        Returns
        -------
        tuple
            The new history, and the ids of those whose records are to be removed now: with their files
            those of checkpoints, without those of savepoints.
        """
        entries = (info, *self.entries)
        if info.status is CheckpointStatus.FAILED:
            return replace(self, entries=_bounded(entries), failed=self.failed + 1), ()
        history = replace(self, entries=entries, completed=self.completed + 1)
        if info.kind is CheckpointKind.CHECKPOINT:
            history = replace(history, recorded=_batches(info))
        return history._subsumed()

    def _subsumed(self) -> tuple[CheckpointHistory, tuple[int, ...]]:
        kept = [info.checkpoint_id for info in self.entries if _is_kept_checkpoint(info)]
        gone = frozenset(kept[self.retained :])
        savepoints = [info.checkpoint_id for info in self.entries if _is_savepoint(info)]
        forgotten = frozenset(savepoints[self.savepoint_records :])
        entries = tuple(
            replace(info, discarded=True) if info.checkpoint_id in gone else info
            for info in self.entries
            if info.checkpoint_id not in forgotten
        )
        return replace(self, entries=_bounded(entries)), tuple(sorted(gone | forgotten))


def _is_kept_checkpoint(info: CheckpointInfo) -> bool:
    return _has_files(info) and info.kind is CheckpointKind.CHECKPOINT


def _is_savepoint(info: CheckpointInfo) -> bool:
    return _has_files(info) and info.kind is CheckpointKind.SAVEPOINT


def _has_files(info: CheckpointInfo) -> bool:
    return info.status is CheckpointStatus.COMPLETED and not info.discarded


def _bounded(entries: tuple[CheckpointInfo, ...]) -> tuple[CheckpointInfo, ...]:
    return tuple(info for place, info in enumerate(entries) if place < _SHOWN or _has_files(info))


def _batches(info: CheckpointInfo) -> tuple[tuple[str, int], ...]:
    return tuple((position.query, position.batch_id) for position in info.positions)
