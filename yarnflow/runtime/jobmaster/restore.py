"""Which state a job starts from.

The path a user named is passed on as it is; ``latest`` is looked up by the job's key.  Whether the
state fits the program is checked by the driver.  Used in the JobMaster's mailbox only.

Flink counterpart: ``SavepointRestoreSettings`` with ``tryRestoreExecutionGraphFromSavepoint``.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from yarnflow.core.checkpoint.manifest import METADATA_FILE, checkpoint_id_of
from yarnflow.core.checkpoint.messages import CheckpointKind, RestoredState, RestoreSettings
from yarnflow.core.ha.ports import LatestState
from yarnflow.core.messages import JobSubmission
from yarnflow.core.states import JobStatus
from yarnflow.errors import YarnflowError
from yarnflow.runtime.jobmaster.services import JobMasterServices, JobMasterSettings
from yarnflow.runtime.mailbox import Mailbox, TimerHandle, Work

logger = logging.getLogger(__name__)

#: pause before an unreachable file system is asked again
_RETRY_MS: Final = 1_000


class RestoreChoice:
    """The state one job starts from.

    Parameters
    ----------
    submission, settings, services, mailbox
        The JobMaster's.
    on_failed : callable
        It cannot be looked up, and that will not change.
    """

    def __init__(
        self,
        submission: JobSubmission,
        settings: JobMasterSettings,
        services: JobMasterServices,
        mailbox: Mailbox,
        on_failed: Callable[[YarnflowError], None],
    ) -> None:
        self._submission = submission
        self._settings = settings
        self._services = services
        self._mailbox = mailbox
        self._on_failed = on_failed
        self._timer: TimerHandle | None = None
        self._checkpoint_id = 0
        #: what a deployment has to be told; None = start empty
        self.settings: RestoreSettings | None = None

    def resolve(self, on_resolved: Callable[[str], None]) -> None:
        """Find out; ``on_resolved`` is told what a user who asked for a state should know, or nothing."""
        wanted = self._settings.restore
        if wanted is not None and not wanted.latest:
            self.settings = wanted
            on_resolved("")
        elif wanted is None and not self._settings.restore_if_lost:
            on_resolved("")
        else:
            self._look_up(on_resolved)

    def end(self) -> None:
        """Nobody wants to know any more."""
        if self._timer is not None:
            self._timer.cancel()

    @property
    def note_if_gone(self) -> str:
        """What to tell the user when the driver finds nothing there; empty = the job cannot start then.

        It starts empty if that was not the path a user named.
        """
        if self.settings is None or self._settings.restore == self.settings:
            return ""
        key = self._submission.job_key
        return f"there is no state at {self.settings.path} any more, where job key {key} left it"

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

    def _look_up(self, on_resolved: Callable[[str], None]) -> None:
        key = self._submission.job_key
        stores, root = self._services.stores, self._settings.checkpoint_root

        def read() -> LatestState | None:
            return stores.latest_states(root).read(key) if key else None

        def failed(error: YarnflowError) -> None:
            if error.retryable:
                logger.warning("Cannot look up the state of job key %s, trying on: %s", key, error)
                self._timer = self._mailbox.schedule(_RETRY_MS, lambda: self._look_up(on_resolved))
            elif self._settings.restore is None:  # nobody asked for it
                logger.warning("The state of job key %s cannot be looked up: %s", key, error)
                on_resolved("")
            else:
                self._on_failed(error)

        self._services.effects.perform(
            self._mailbox, read, lambda state: on_resolved(self._found(state)), failed, Work.STORAGE
        )

    def _found(self, state: LatestState | None) -> str:
        wanted = self._settings.restore
        if state is not None and state.job_id == self._submission.job_id:
            return ""  # it has started long ago, under an earlier master
        usable = state is not None and bool(state.path)
        if state is not None and usable and (wanted is not None or _was_lost(state)):
            self.settings = replace(wanted or RestoreSettings(), path=state.path, latest=False)
            self._checkpoint_id = state.checkpoint_id
            logger.info("Job %s starts from %s.", self._submission.name, state.path)
            return ""
        if wanted is None:
            return ""
        if not self._submission.job_key:
            return "the job has no key (pipeline.job-key) under which a state could be found"
        return f"no state of job key {self._submission.job_key} is retained"


def _was_lost(state: LatestState) -> bool:
    """The job that left it did not end as somebody wanted: FAILED, or its cluster vanished."""
    ended_well = (JobStatus.FINISHED.value, JobStatus.CANCELED.value)
    return state.status not in ended_well
