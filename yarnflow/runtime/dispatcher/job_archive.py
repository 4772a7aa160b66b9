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

from yarnflow.core.ha.ports import JobStores
from yarnflow.core.ids import JobId
from yarnflow.core.messages import JobDetails, JobSubmission

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class KeptJobs:
    """What earlier leaders have left."""

    #: oldest first
    ended: tuple[JobDetails, ...] = ()
    #: accepted and not over, in order of submission
    live: tuple[JobSubmission, ...] = ()
    #: those of the live ones whose end somebody wants
    canceled: frozenset[JobId] = frozenset()


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
        accepted = tuple(submission for submission in live if self._was_accepted(submission, live))
        canceled = frozenset(job.job_id for job in accepted if stores.job_graphs.is_canceled(job.job_id))
        return KeptJobs(tuple(stores.results.all()), accepted, canceled)

    def _was_accepted(self, submission: JobSubmission, others: Sequence[JobSubmission]) -> bool:
        """Whether a stored job has its key; one that was refused, and is still stored, has not."""
        stored = {other.job_id for other in others}
        owner = self._claim(submission, lambda job_id: job_id in stored)
        if owner == submission.job_id:
            return True
        logger.warning(
            "Job %s was refused, as job key %s is that of job %s; clearing it away.",
            submission.job_id, submission.job_key, owner,
        )  # fmt: skip
        self._stores.job_graphs.remove(submission.job_id)
        return False

    def result(self, job_id: JobId) -> JobDetails | None:
        """How a job ended, if it has."""
        return self._stores.results.get(job_id)

    def admit(self, submission: JobSubmission, owns_key: Callable[[JobId], bool]) -> JobId:
        """Make a submission durable, unless another job has its key.

        When it fails the submission may be stored all the same, see :meth:`withdraw`.

        Parameters
        ----------
        owns_key : callable
            Whether a job is known; what one that is not left of its key does not count.

        Returns
        -------
        JobId
            Who has the key: the submission's own id once it is accepted.
        """
        owner = self._claim(submission, owns_key)
        if owner == submission.job_id:
            self._stores.job_graphs.put(submission)
        return owner

    def withdraw(self, submission: JobSubmission) -> None:
        """The job was not accepted after all; the graph goes first, as nobody runs one without its key."""
        self._stores.job_graphs.remove(submission.job_id)
        if submission.job_key:
            self._stores.job_keys.release(submission.job_key, submission.job_id)

    def cancel(self, job_id: JobId) -> None:
        """Somebody wants the end of a job: the next leader knows, should this one not come to it."""
        self._stores.job_graphs.mark_canceled(job_id)

    def ended(self, details: JobDetails) -> None:
        """The job is over: no master runs it again."""
        self._stores.results.put(details)

    def clear(self, job_id: JobId, key: str) -> None:
        """After :meth:`ended`: give up key and graph."""
        if key:
            self._stores.job_keys.release(key, job_id)
        self._stores.job_graphs.remove(job_id)

    def _claim(self, submission: JobSubmission, owns_key: Callable[[JobId], bool]) -> JobId:
        keys, key, job_id = self._stores.job_keys, submission.job_key, submission.job_id
        if not key:
            return job_id
        while (owner := keys.claim(key, job_id)) != job_id and not owns_key(owner):
            keys.release(key, owner)
        return owner


def describe(jobs: Sequence[JobSubmission]) -> str:
    """Names and ids, for logs."""
    return ", ".join(f"{job.name} ({job.job_id})" for job in jobs) or "none"
