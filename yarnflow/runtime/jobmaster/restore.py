"""Which state a job starts from.

The path a user named is passed on as it is; ``latest`` is looked up by the job's key.  A job starts empty
if a user said so, or if nothing was left that it could go on from; when that cannot be told, it fails and
names what there is.  Whether the state fits the program is checked by the driver.  Used in the JobMaster's
mailbox only.

Flink counterpart: ``SavepointRestoreSettings`` with ``tryRestoreExecutionGraphFromSavepoint``.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from yarnflow.core.checkpoint.manifest import METADATA_FILE, checkpoint_id_of
from yarnflow.core.checkpoint.messages import CheckpointKind, RestoredState, RestoreSettings
from yarnflow.core.ha.ports import UNMARKED, LatestState, LostJob
from yarnflow.core.ha.program_keys import check_same_program, was_lost
from yarnflow.core.ids import JobId
from yarnflow.core.messages import JobSubmission
from yarnflow.errors import DuplicateJob, StateUndecided, YarnflowError
from yarnflow.runtime.jobmaster.services import JobMasterServices, JobMasterSettings
from yarnflow.runtime.mailbox import Mailbox, TimerHandle, Work

logger = logging.getLogger(__name__)

#: pause before an unreachable file system is asked again
_RETRY_MS: Final = 1_000
#: checkpoints that a message names
_SHOWN: Final = 5


class RestoreChoice:
    """The state one job starts from.

    Parameters
    ----------
    submission, settings, services, mailbox
        The JobMaster's.
    on_failed : callable
        It cannot be looked up, and that will not change.
    is_new : bool
        The job begins; one that was taken over has begun with what there was then.
    """

    def __init__(
        self,
        submission: JobSubmission,
        settings: JobMasterSettings,
        services: JobMasterServices,
        mailbox: Mailbox,
        on_failed: Callable[[YarnflowError], None],
        is_new: bool,
    ) -> None:
        self._submission = submission
        self._settings = settings
        self._services = services
        self._mailbox = mailbox
        self._on_failed = on_failed
        self._is_new = is_new
        self._timer: TimerHandle | None = None
        self._checkpoint_id = 0
        #: what a deployment has to be told; None = start empty
        self.settings: RestoreSettings | None = None
        #: what to tell the user when the driver finds nothing there; empty = as the driver says
        self.note_if_gone = ""

    def resolve(self, on_resolved: Callable[[str], None]) -> None:
        """Find out; ``on_resolved`` is told what a user who asked for a state should know, or nothing."""
        wanted = self._settings.restore
        if wanted is not None and not wanted.latest:
            self.settings = wanted
        if self._submission.job_key or self._is_looked_up:
            self._look_up(on_resolved)
        else:
            on_resolved("")

    def end(self) -> None:
        """Nobody wants to know any more."""
        if self._timer is not None:
            self._timer.cancel()

    def restored(self, at_ms: int) -> RestoredState | None:
        """What the job runs on, now that it does."""
        if self.settings is None:
            return None
        path = self.settings.path.rstrip("/").removesuffix(f"/{METADATA_FILE}")
        number = checkpoint_id_of(path.rpartition("/")[2])
        return RestoredState(
            path=path,
            kind=CheckpointKind.SAVEPOINT if number is None else CheckpointKind.CHECKPOINT,
            checkpoint_id=self._checkpoint_id if number is None else number,
            restored_ms=at_ms,
            claim_mode=self.settings.claim_mode.value,
        )

    @property
    def _is_looked_up(self) -> bool:
        """Nobody named a path, or that the job starts empty."""
        wanted = self._settings.restore
        return self._settings.restore_if_lost if wanted is None else wanted.latest

    def _look_up(self, on_resolved: Callable[[str], None]) -> None:
        key, job_id = self._submission.job_key, self._submission.job_id
        latest = self._services.stores.latest_states(self._settings.checkpoint_root)

        def read() -> _Left:
            if not key:
                return _Left()
            latest.begin(key, job_id, self._submission.program_digest)
            if not self._is_looked_up:
                return _Left()
            state = latest.read(key)
            lost = latest.lost(key, job_id) if self._is_new else None
            if lost is not None:
                return _Left(state, lost=lost)
            if state is None and self._is_new:
                others = tuple(latest.left(key))
                if any(left.job_id == job_id for left in others):
                    return _Left()  # it goes on where it was, on a cluster that has forgotten it
                return _Left(others=others)
            if state is None or not state.path or latest.has(state.path):
                return _Left(state)
            return _Left(state, tuple(latest.left(key)), is_gone=True)

        def failed(error: YarnflowError) -> None:
            if error.retryable:
                logger.warning("Cannot look up the state of job key %s, trying on: %s", key, error)
                self._timer = self._mailbox.schedule(_RETRY_MS, lambda: self._look_up(on_resolved))
            elif not self._is_looked_up:  # what a user said does not depend on it
                logger.warning("Job key %s: what job %s leaves cannot be noted: %s", key, job_id, error)
                on_resolved("")
            else:
                self._on_failed(error)

        def found(left: _Left) -> None:
            try:
                note = self._found(left)
            except (StateUndecided, DuplicateJob) as error:
                self._on_failed(error)
            else:
                on_resolved(note)

        self._services.effects.perform(self._mailbox, read, found, failed, Work.STORAGE)

    def _found(self, left: _Left) -> str:
        if not self._is_looked_up:
            return ""
        wanted, state, key = self._settings.restore, left.state, self._submission.job_key
        if state is not None and state.job_id == self._submission.job_id:
            return ""  # it has started long ago, under an earlier master
        if left.lost is not None:
            if left.lost.path:
                self._check_program(left.lost.job_id, left.lost.program)
            return self._go_on_from(left.lost, state)
        if state is None and wanted is None:
            return self._without_a_record(left.others)
        if state is None and left.others:
            if len(left.others) > 1:
                raise _undecided(key, left.others)
            state = left.others[0]
        if state is not None and state.path and (wanted is not None or was_lost(state)):
            self._check_program(state.job_id, state.program)
            self.settings = replace(wanted or RestoreSettings(), path=state.path, latest=False)
            self._checkpoint_id = state.checkpoint_id
            if left.is_gone:  # from there; the job may have brought it into its own directory before
                self.note_if_gone = (
                    f"there is no state at {state.path} any more, where job key {key} left it; "
                    f"{_choices(left.others)}"
                )
            logger.info("Job %s starts from %s.", self._submission.name, state.path)
            return ""
        if wanted is None:
            return ""
        if not key:
            return "the job has no key (pipeline.job-key) under which a state could be found"
        return f"no state of job key {key} is retained"

    def _check_program(self, job_id: JobId, program: str) -> None:
        """Refuse to go on from another program's state, unless somebody said so."""
        if self._settings.restore is None:
            check_same_program(self._submission, job_id, program)

    def _go_on_from(self, lost: LostJob, before: LatestState | None) -> str:
        """The last job of the key had no checkpoint yet, but the state it was started from, or output."""
        if not lost.path:
            raise StateUndecided(_lost(self._submission.job_key, lost, before))
        self.settings = replace(
            self._settings.restore or RestoreSettings(), path=lost.path, latest=False
        )
        logger.info(
            "Job %s starts from %s, as job %s was lost or FAILED before its first checkpoint.",
            self._submission.name, lost.path, lost.job_id,
        )  # fmt: skip
        return ""

    def _without_a_record(self, others: Sequence[LatestState]) -> str:
        """Nobody asked for a state, and of jobs of the key there are checkpoints at most."""
        key = self._submission.job_key
        # an earlier version put nothing down of jobs that ended well, and left what jobs before had left
        earlier = [state for state in others if state.status == UNMARKED]
        lost = [state for state in others if state.status != UNMARKED and was_lost(state)]
        if lost:
            raise _undecided(key, lost)
        if not earlier:
            return ""
        note = (
            f"checkpoints of job key {key} were left by an earlier version, which has no record that the job "
            f"is to go on from them; to start from one, cancel the job and submit with -s PATH: "
            f"{_shown(earlier)}"
        )
        logger.warning("Job %s: %s", self._submission.name, note)
        return note


@dataclass(frozen=True, slots=True)
class _Left:
    """What jobs of the key left."""

    state: LatestState | None = None
    #: newest checkpoint of each job, where there is no state to go by
    others: tuple[LatestState, ...] = ()
    #: there is nothing where the state should be
    is_gone: bool = False
    #: a job after the one that left the state
    lost: LostJob | None = None


def _lost(key: str, lost: LostJob, before: LatestState | None) -> str:
    batches = ", ".join(f"batch {batch} of query {query}" for query, batch in lost.batches)
    before_path = before.path if before is not None else ""
    path = f"-s {before_path} to start from what was before it, or " if before_path else ""
    return (
        f"job {lost.job_id}, the last one of job key {key}, was lost or FAILED before its first checkpoint, "
        f"and its sinks may have what it read until then ({batches or 'its state'} in {lost.directory}); if "
        f"its cluster was lost and highly available, `yarnflow recover {lost.job_id}` lets it go on; else "
        f"submit with {path}--restore none to start empty"
    )


def _undecided(key: str, others: Sequence[LatestState]) -> StateUndecided:
    return StateUndecided(
        f"there is no record (any more) of the state that job key {key} left, but there are checkpoints of "
        f"it; {_choices(others)}"
    )


def _choices(others: Sequence[LatestState]) -> str:
    """What a user may do now."""
    if not others:
        return "submit with --restore none to start empty, or -s PATH to start from another state"
    return (
        "submit with -s PATH to start from one of them, or --restore none to start empty: " + _shown(others)
    )


def _shown(others: Sequence[LatestState]) -> str:
    shown = ", ".join(f"{state.path} (job {state.job_id})" for state in others[:_SHOWN])
    return f"{shown} and {len(others) - _SHOWN} more" if len(others) > _SHOWN else shown
