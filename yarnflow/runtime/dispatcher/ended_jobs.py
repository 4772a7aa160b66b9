"""What becomes of jobs that are over, or were refused: it is tried until they are cleared away.

Never decides whether a job is over, or refused.  What can be asked from any thread is said where it is
asked; all else is called in the Dispatcher's mailbox.

Flink counterpart: ``DispatcherResourceCleanerFactory`` with its retries.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final, TypeVar

from yarnflow.core.checkpoint.messages import JobCheckpoints
from yarnflow.core.ids import JobId
from yarnflow.core.job.description import JobDescription
from yarnflow.core.messages import JobDetails, JobSubmission
from yarnflow.errors import YarnflowError
from yarnflow.runtime.dispatcher.job_archive import JobArchive
from yarnflow.runtime.dispatcher.job_board import JobBoard
from yarnflow.runtime.dispatcher.job_endpoint import JobEndpoint
from yarnflow.runtime.mailbox import Effects, Mailbox, Work

T = TypeVar("T")

logger = logging.getLogger(__name__)

#: before something is written or cleared away again that could not be
ARCHIVE_RETRY_MS: Final = 1_000


class EndedJobs:
    """Those of one Dispatcher.

    Parameters
    ----------
    mailbox, effects, archive, board
        The Dispatcher's.
    """

    def __init__(self, mailbox: Mailbox, effects: Effects, archive: JobArchive, board: JobBoard) -> None:
        self._mailbox = mailbox
        self._effects = effects
        self._archive = archive
        self._board = board
        #: refused and still stored
        self._withdrawing: set[JobId] = set()
        #: over and still to be cleared away; replaced, never changed in place
        self._ending: dict[JobId, JobEndpoint] = {}
        #: of those that were cleared away; replaced likewise
        self._checkpoints: dict[JobId, JobCheckpoints] = {}
        #: likewise
        self._descriptions: dict[JobId, JobDescription] = {}

    # --- any thread ---

    @property
    def all_cleared(self) -> bool:
        """Nothing of them is left but what is kept on purpose."""
        return not self._ending

    def endpoint(self, job_id: JobId) -> JobEndpoint | None:
        """The JobMaster of a job that is over and still to be cleared away."""
        return self._ending.get(job_id)

    def checkpoints(self, job_id: JobId) -> JobCheckpoints:
        """Those of a job that was cleared away; of one that ended under an earlier leader none are known."""
        return self._checkpoints.get(job_id) or JobCheckpoints(job_id)

    def description(self, job_id: JobId) -> JobDescription | None:
        """Of a job that was cleared away; None when it ended under an earlier leader."""
        return self._descriptions.get(job_id)

    def keep_end(self, details: JobDetails, shown: Callable[[], None]) -> None:
        """Write a job's end down, then call ``shown``; returns at once.

        Nobody may see the end of a job that another master might run again.
        """
        problem = f"The end of job {details.overview.job_id} is not written down yet"
        self._until_done(problem, lambda: self._archive.ended(details), lambda _none: shown())

    # --- in the mailbox ---

    def is_withdrawing(self, job_id: JobId) -> bool:
        """Whether a job was refused and is still stored."""
        return job_id in self._withdrawing

    def withdraw(self, submission: JobSubmission) -> None:
        """Nobody may run what was refused, so it is tried until it is gone."""
        job_id = submission.job_id
        self._withdrawing.add(job_id)
        self._until_done(
            f"Job {job_id} was refused, but is still stored",
            lambda: self._archive.withdraw(submission),
            lambda _none: self._withdrawing.discard(job_id),
        )

    def clear(
        self, job_id: JobId, key: str, endpoint: JobEndpoint, on_cleared: Callable[[], None]
    ) -> None:
        """Clear a job away that is over, then call ``on_cleared``."""
        self._ending = {**self._ending, job_id: endpoint}

        def clear() -> JobCheckpoints:
            checkpoints = _checkpoints_of(job_id, endpoint)
            details = self._board.last(job_id)
            if details is not None:
                self._archive.ended(details)
            self._archive.clear(job_id, key)
            return checkpoints

        def cleared(checkpoints: JobCheckpoints) -> None:
            self._checkpoints = self._of_known({**self._checkpoints, job_id: checkpoints})
            self._descriptions = self._of_known({**self._descriptions, job_id: endpoint.description()})
            ending = dict(self._ending)
            ending.pop(job_id).stop()
            self._ending = ending
            self._board.show(job_id)
            on_cleared()

        self._until_done(f"Job {job_id} is not cleared away yet", clear, cleared)

    def _of_known(self, values: dict[JobId, T]) -> dict[JobId, T]:
        """Without those of jobs that are forgotten."""
        return {job_id: value for job_id, value in values.items() if self._board.last(job_id) is not None}

    def _until_done(self, problem: str, work: Callable[[], T], on_done: Callable[[T], None]) -> None:
        def failed(error: YarnflowError) -> None:
            logger.warning("%s: %s", problem, error)
            self._mailbox.schedule(ARCHIVE_RETRY_MS, lambda: self._until_done(problem, work, on_done))

        self._effects.perform(self._mailbox, work, on_done, failed, Work.STORAGE)


def _checkpoints_of(job_id: JobId, endpoint: JobEndpoint) -> JobCheckpoints:
    try:
        return endpoint.checkpoints()
    except YarnflowError as error:
        logger.info("The checkpoints of job %s are not known any more: %s", job_id, error)
        return JobCheckpoints(job_id)
