"""What is kept of jobs beyond this process, written in the order that makes a crash harmless.

A job is accepted once its graph is stored, and over once its result is: whoever finds both takes
it for over and clears away what is left.  Every method may block and is called from no mailbox.

Flink counterparts: the ``ExecutionPlanStore`` and ``JobResultStore`` halves of ``Dispatcher``, and
``DispatcherResourceCleanerFactory``.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from yarnflow.core.ha import JobStores
from yarnflow.core.ids import JobId
from yarnflow.core.messages import JobDetails, JobSubmission
from yarnflow.errors import YarnflowError

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class KeptJobs:
    """What earlier leaders have left."""

    #: oldest first
    ended: tuple[JobDetails, ...] = ()
    #: accepted and not over, in order of submission
    live: tuple[JobSubmission, ...] = ()


class JobArchive:
    """The stores of jobs as the Dispatcher uses them.

    Parameters
    ----------
    stores : JobStores
        Of this process's leadership.
    """

    def __init__(self, stores: JobStores) -> None:
        self._stores = stores

    def load(self) -> KeptJobs:
        """All jobs there are; what a master left half cleared away is cleared away."""
        stores = self._stores
        live: list[JobSubmission] = []
        for job_id in stores.job_graphs.job_ids():
            submission = stores.job_graphs.get(job_id)
            if submission is None:
                continue
            if stores.results.get(job_id) is None:
                live.append(submission)
            else:
                logger.info("Job %s had ended already; clearing it away.", job_id)
                self.clear(job_id, submission.job_key)
        return KeptJobs(tuple(stores.results.all()), tuple(live))

    def result(self, job_id: JobId) -> JobDetails | None:
        """How a job ended, if it has."""
        return self._stores.results.get(job_id)

    def admit(self, submission: JobSubmission, lives: Callable[[JobId], bool]) -> JobId:
        """Make a submission durable, unless a live job has its key.

        Parameters
        ----------
        lives : callable
            Whether a job is not over; what a dead job left of its key does not count.

        Returns
        -------
        JobId
            Who has the key: the submission's own id once it is accepted.
        """
        keys, key, job_id = self._stores.job_keys, submission.job_key, submission.job_id
        if key:
            while (owner := keys.claim(key, job_id)) != job_id:
                if lives(owner):
                    return owner
                keys.release(key, owner)
        try:
            self._stores.job_graphs.put(submission)
        except YarnflowError:
            self._release(key, job_id)
            raise
        return job_id

    def withdraw(self, submission: JobSubmission) -> None:
        """The job was not accepted after all."""
        try:
            self.clear(submission.job_id, submission.job_key)
        except YarnflowError as error:
            logger.warning("Job %s was refused, but is still stored: %s", submission.job_id, error)

    def ended(self, details: JobDetails) -> None:
        """The job is over: no master runs it again."""
        self._stores.results.put(details)

    def clear(self, job_id: JobId, key: str) -> None:
        """After :meth:`ended`: give up key and graph."""
        if key:
            self._stores.job_keys.release(key, job_id)
        self._stores.job_graphs.remove(job_id)

    def _release(self, key: str, job_id: JobId) -> None:
        try:
            if key:
                self._stores.job_keys.release(key, job_id)
        except YarnflowError as error:
            logger.warning("Job key %s could not be released: %s", key, error)


def describe(jobs: Sequence[JobSubmission]) -> str:
    """Names and ids, for logs."""
    return ", ".join(f"{job.name} ({job.job_id})" for job in jobs) or "none"
