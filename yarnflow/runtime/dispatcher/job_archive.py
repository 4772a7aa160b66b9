"""What is kept of jobs beyond this process, written in the order that makes a crash harmless.

A job is accepted once its graph is stored, and over once its result is: whoever finds both takes
it for over and clears away what is left.  Every method may block and is called from no mailbox.

Flink counterparts: the ``ExecutionPlanStore`` and ``JobResultStore`` halves of ``Dispatcher``, and
``DispatcherResourceCleanerFactory``.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from yarnflow.config.options.job import STATE_RECOVERY_PATH
from yarnflow.core.checkpoint.messages import CheckpointKind
from yarnflow.core.ha.ports import JobStores, LatestState
from yarnflow.core.ha.program_keys import are_different, check_same_program, was_lost
from yarnflow.core.ids import DriverId, JobId
from yarnflow.core.messages import JobDetails, JobSubmission
from yarnflow.core.states import JobStatus
from yarnflow.core.uris import split_uri
from yarnflow.errors import LeadershipLost, SavepointNotFound, YarnflowError

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class UnreadableJob:
    """A job that was accepted and is not over, and nobody can read what it is to run."""

    job_id: JobId
    #: empty = it has none, or that is lost as well
    key: str
    #: its own over the cluster's, as far as they are known
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class KeptJobs:
    """What earlier leaders have left."""

    #: oldest first
    ended: tuple[JobDetails, ...] = ()
    #: accepted and not over, in order of submission
    live: tuple[JobSubmission, ...] = ()
    #: accepted and not over, too
    unreadable: tuple[UnreadableJob, ...] = ()
    #: those of the two kinds of live ones whose end somebody wants
    canceled: frozenset[JobId] = frozenset()


class JobArchive:
    """The stores of jobs as the Dispatcher uses them.

    Parameters
    ----------
    stores : JobStores
        Of this process's leadership.
    checkpoint_root : callable
        ``execution.checkpointing.dir`` (a URI) of a job with these options.
    settle : callable
        Puts in order what a job leaves whose master was lost after it had stored the result; may raise.
    """

    def __init__(
        self,
        stores: JobStores,
        checkpoint_root: Callable[[Mapping[str, str]], str],
        settle: Callable[[JobSubmission, JobDetails], None],
        goes_on_unasked: Callable[[JobSubmission], bool],
    ) -> None:
        self._stores = stores
        self._checkpoint_root = checkpoint_root
        self._settle = settle
        self._goes_on_unasked = goes_on_unasked

    def load(self) -> KeptJobs:
        """All jobs there are; what a master left half cleared away is cleared away."""
        stores = self._stores
        live: list[JobSubmission] = []
        unreadable: list[UnreadableJob] = []
        for job_id in stores.job_graphs.job_ids():
            submission = stores.job_graphs.get(job_id)
            key = stores.job_keys.key_of(job_id) if submission is None else submission.job_key
            if stores.results.has(job_id):
                logger.info("Job %s had ended already; clearing it away.", job_id)
                self._settle_end(job_id, key, submission)
                self.clear(job_id, key)
            elif submission is None:
                unreadable.append(UnreadableJob(job_id, key))
            else:
                live.append(submission)
        forgotten = stores.job_graphs.forgotten()
        if forgotten:
            logger.warning(
                "%d jobs are stored in high-availability.storageDir and unknown to ZooKeeper: %s; if it was "
                "emptied or restored, `yarnflow recover` brings them back.",
                len(forgotten),
                ", ".join(forgotten),
            )
        stored = {job.job_id for job in live} | {job.job_id for job in unreadable}
        accepted = tuple(submission for submission in live if self._was_accepted(submission, stored))
        known = {job.job_id for job in accepted} | {job.job_id for job in unreadable}
        canceled = frozenset(job_id for job_id in known if stores.job_graphs.is_canceled(job_id))
        return KeptJobs(tuple(stores.results.all()), accepted, tuple(unreadable), canceled)

    def restore(self, submission: JobSubmission) -> None:
        """Somebody has what a job is to run that could not be read."""
        self._stores.job_graphs.replace(submission)

    def claim_key(self, submission: JobSubmission, owns_key: Callable[[JobId], bool]) -> JobId:
        """Have a job that is stored own its key, if no other job does; returns who has it now."""
        return self._claim(submission, owns_key)

    def _settle_end(self, job_id: JobId, key: str, submission: JobSubmission | None) -> None:
        """The master that stored the result may have been lost before the job's state was in order."""
        details = self._stores.results.get(job_id)
        if details is None:
            return
        try:
            if submission is not None:
                self._settle(submission, details)
            else:
                status, end_ms = details.overview.status, details.overview.end_time_ms
                self.leave_state(UnreadableJob(job_id, key), end_ms, status)
        except LeadershipLost:
            raise
        except YarnflowError as error:
            logger.error("What job %s leaves is not in order: %s", job_id, error)

    def leave_state(
        self, job: UnreadableJob, now_ms: int, status: JobStatus = JobStatus.CANCELED
    ) -> None:
        """A job that nobody can read has ended: the next one of its key does not go on from its state.

        The state stays; whoever names it may have it.
        """
        directory = self._stores.checkpoint_directory(job.job_id)
        root = directory.rpartition("/")[0] or self._checkpoint_root(job.options).rstrip("/")
        checkpoints = self._stores.checkpoints(job.job_id, f"{root}/{job.job_id}")
        if job.key:
            latest = self._stores.latest_states(root)
            infos = [info for info in checkpoints.all() if info.kind is CheckpointKind.CHECKPOINT]
            newest = max(infos, key=lambda info: info.checkpoint_id, default=None)
            before = latest.read(job.key)
            path, number, name = "", 0, job.key
            if before is not None:
                path, number = before.path, before.checkpoint_id
                name = before.job_name if before.job_id == job.job_id else job.key
            if newest is not None:
                path, number = newest.external_path, newest.checkpoint_id
            latest.write(LatestState(job.key, job.job_id, name, status.value, path, number, now_ms))
        checkpoints.close_job(status)

    def runs_job(self, job_id: JobId, driver_id: DriverId) -> bool:
        """Whether a driver is the one that may write the job's state."""
        holder = self._stores.leases.holder(job_id)
        return holder is not None and holder.driver_id == driver_id

    def end_driver(self, job_id: JobId) -> None:
        """Tell the driver that runs a job, if there is one, that it must end."""
        holder = self._stores.leases.holder(job_id)
        if holder is not None:
            self._stores.leases.revoke(job_id, holder.driver_id)

    def _was_accepted(self, submission: JobSubmission, stored: Collection[JobId]) -> bool:
        """Whether a stored job has its key; one that was refused, and is still stored, has not."""
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

        Raises
        ------
        SavepointNotFound
            Nothing is where the job is to start from.

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
            self._check_state(submission)
            self._check_program(submission)
            self._stores.job_graphs.put(submission)
        return owner

    def is_other_program(self, submission: JobSubmission, owner: JobId) -> bool:
        """Return whether the job that has a submission's key is known to run something else."""
        stored = self._stores.job_graphs.get(owner)
        return stored is not None and are_different(submission.program_digest, stored.program_digest)

    def with_key(self, submission: JobSubmission) -> JobSubmission:
        """Return a submission with the key of its program, which jobs of an earlier version may have had."""
        earlier = submission.earlier_job_key
        if not earlier:
            return submission
        submission = replace(submission, earlier_job_key="")
        latest = self._stores.latest_states(self._checkpoint_root(submission.configuration))
        try:
            is_earlier = latest.adopt(earlier, submission.job_key)
        except YarnflowError as error:
            if error.retryable:
                raise
            # as where Spark alone can read
            logger.info("Keys of earlier versions are not looked for: %s", error)
            return submission
        return replace(submission, job_key=earlier) if is_earlier else submission

    def _check_state(self, submission: JobSubmission) -> None:
        """The client may be on another machine than the state that it names."""
        options = submission.configuration
        path = options.get(STATE_RECOVERY_PATH.key, "")
        if submission.restore is not None:
            path = submission.restore.path
        # what a path without a scheme means is up to the driver's file system; latest and none are none
        if not split_uri(path)[0]:
            return
        latest = self._stores.latest_states(self._checkpoint_root(options))
        try:
            # one that was lost goes on from what it has, and may have claimed its source
            is_there = latest.has(path) or latest.has_begun(submission.job_id)
        except YarnflowError as error:
            # as where Spark alone can read
            logger.info("The state in %s is not looked at before its job is accepted: %s", path, error)
            return
        if not is_there:
            raise SavepointNotFound(
                f"there is no savepoint or checkpoint in {path}, as the JobManager sees it: check the path, "
                "or use a file system that all machines of the cluster have"
            )

    def _check_program(self, submission: JobSubmission) -> None:
        """Refuse a job that would go on from another program's state, unless somebody said so."""
        if not submission.program_digest or not self._goes_on_unasked(submission):
            return
        latest = self._stores.latest_states(self._checkpoint_root(submission.configuration))
        try:
            state = latest.read(submission.job_key)
        except YarnflowError as error:
            # the job looks there itself, and waits if it has to
            logger.info("The last job of key %s is not looked at: %s", submission.job_key, error)
            return
        if state is None or not state.path or state.job_id == submission.job_id or not was_lost(state):
            return
        check_same_program(submission, state.job_id, state.program)

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
