"""Accepts, lists and ends jobs; one JobMaster for each.

It decides whether a submission becomes a job, and nothing about how the job runs.  What must
outlive this process goes to the :class:`~yarnflow.runtime.dispatcher.job_archive.JobArchive`, before anybody
is told of it.  While the leadership is in doubt nothing is accepted.

Flink counterpart: ``Dispatcher``.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Final, Protocol

from yarnflow import __version__
from yarnflow.core.checkpoint.messages import CheckpointInfo, CheckpointRequest, JobCheckpoints
from yarnflow.core.collect.parts import CollectedPage
from yarnflow.core.ids import JobId, is_job_id
from yarnflow.core.job.description import JobDescription
from yarnflow.core.job_run.events import Adopted, Fresh, StartKind
from yarnflow.core.messages import (
    ClusterOverview,
    DriverRegistration,
    FaultInjected,
    FaultRequest,
    JobDetails,
    JobOverview,
    JobSubmission,
    JobSubmitted,
    LeaderInfo,
    LogLevel,
    LogLevelResult,
    RestAccess,
)
from yarnflow.core.states import JobStatus
from yarnflow.errors import (
    CheckpointError,
    JobError,
    JobNotFound,
    LeadershipLost,
    RpcTimeout,
    SlotUnavailable,
    SubmissionMissing,
    YarnflowError,
)
from yarnflow.runtime.dispatcher.ended_jobs import EndedJobs
from yarnflow.runtime.dispatcher.job_archive import JobArchive, KeptJobs, UnreadableJob, describe
from yarnflow.runtime.dispatcher.job_board import JobBoard
from yarnflow.runtime.dispatcher.job_endpoint import JobEndpointFactory
from yarnflow.runtime.dispatcher.job_router import JobRouter
from yarnflow.runtime.dispatcher.unrecovered_jobs import UnrecoveredJobs
from yarnflow.runtime.mailbox import Effects, Mailbox

logger = logging.getLogger(__name__)

#: the one that is under way, and those that wait for it
SUBMISSIONS_AT_ONCE: Final = 4


class SlotCounts(Protocol):
    """The ResourceManager as the Dispatcher's overview sees it."""

    def slot_counts(self) -> tuple[int, int, int]:
        """TaskManagers, slots in all, slots free."""


class Dispatcher(JobRouter):
    """The cluster's front door; implements ``DispatcherGateway`` and routes ``JobMasterGateway``.

    Parameters
    ----------
    mailbox : Mailbox
        Owns the table of live jobs.
    board : JobBoard
        Where JobMasters publish.
    new_job_endpoint : callable
        Makes the JobMaster of a submission.
    leader_info : callable
        This master's address and fence.
    slot_counts : SlotCounts
        For the cluster overview.
    on_shut_down : callable
        Ends the process; called once no job is left and none can come.
    call_timeout_ms : int
        How long a caller waits for the mailbox.
    archive, effects
        Where jobs are kept, and the pool in which that is done.
    max_jobs : int
        Drivers there is memory for, and so live jobs; 0 = no limit.
    faults : callable, optional
        Breaks what a drill asks for.
    log_levels : callable, optional
        Changes what loggers of all processes say.
    rest_access : callable, optional
        Address and tokens of the REST interface.
    on_ended : callable, optional
        Told of each job that has ended for good, once nothing of it is left but what may be known of it;
        returns at once.
    """

    def __init__(
        self,
        mailbox: Mailbox,
        board: JobBoard,
        new_job_endpoint: JobEndpointFactory,
        leader_info: Callable[[], LeaderInfo],
        slot_counts: SlotCounts,
        on_shut_down: Callable[[], None],
        call_timeout_ms: int,
        archive: JobArchive,
        effects: Effects,
        max_jobs: int = 0,
        faults: Callable[[FaultRequest], FaultInjected] | None = None,
        log_levels: Callable[[LogLevel], LogLevelResult] | None = None,
        rest_access: Callable[[], RestAccess] = RestAccess,
        on_ended: Callable[[JobId], object] = lambda _job_id: None,
    ) -> None:
        super().__init__()
        self._mailbox = mailbox
        self._board = board
        self._new_job_endpoint = new_job_endpoint
        self._leader_info = leader_info
        self._slot_counts = slot_counts
        self._on_shut_down = on_shut_down
        self._call_timeout_ms = call_timeout_ms
        self._archive = archive
        #: one submission at a time: it takes longer than the mailbox may be kept from other work
        self._submitting = threading.Lock()
        #: those that wait for that have a thread of the RPC server each
        self._places = threading.BoundedSemaphore(SUBMISSIONS_AT_ONCE)
        #: told when a job is cleared away
        self._changed = threading.Condition()
        #: accepted, but not started yet
        self._arriving: JobId | None = None
        self._over = EndedJobs(mailbox, effects, archive, board)
        self._unrecovered = UnrecoveredJobs(
            archive, board, mailbox.clock, self._take_over, self._owns_key
        )
        self._keys: dict[JobId, str] = {}
        self._max_jobs = max_jobs
        self._faults = faults
        self._log_levels = log_levels
        self._rest_access = rest_access
        self._on_ended = on_ended
        #: why no further job is accepted; empty = jobs are welcome
        self._closed = ""
        #: jobs that were about to be accepted are canceled as the others
        self._shutting_down = False

    # --- DispatcherGateway ---

    def leader(self) -> LeaderInfo:
        """Fence and address of this master."""
        return self._leader_info()

    def submit_job(self, submission: JobSubmission) -> JobSubmitted:
        """Accept a job; the same job id twice is one job, a live job key names the live job.

        The job is durable when this returns: a master that takes over runs it.
        """
        if not is_job_id(submission.job_id):
            raise JobError(f"{submission.job_id!r} is not a job id; a job id has 32 hexadecimal digits")
        if not self._places.acquire(blocking=False):
            raise RpcTimeout(
                f"job {submission.name}: {SUBMISSIONS_AT_ONCE} other jobs are being submitted; try again"
            )
        try:
            submission = self._archive.with_key(submission)
            self._await_key(submission)
            with self._turn(f"job {submission.name}"):
                if submission.job_id in self._unrecovered:
                    self._mailbox.assert_may_run()
                    self._unrecovered.supply(submission)
                    return JobSubmitted(submission.job_id)
                return self._submit(submission)
        finally:
            self._places.release()

    def register_driver(self, registration: DriverRegistration) -> None:
        """Route to the job; a driver may be asked for the job itself, and one of an unknown job must end."""
        if registration.job_id in self._unrecovered:
            if registration.submission is None:
                raise SubmissionMissing(f"this master cannot read job {registration.job_id}; send it along")
            self._mailbox.assert_may_run()
            with self._turn(f"driver {registration.driver_id}"):
                self._unrecovered.supply(registration.submission, registration.driver_id)
        super().register_driver(registration)

    def list_jobs(self) -> Sequence[JobOverview]:
        """All jobs known, oldest first."""
        return tuple(details.overview for details in self._board.all())

    def job_details(self, job_id: JobId) -> JobDetails:
        """Latest snapshot of one job."""
        return self._board.get(job_id)

    def await_job_change(self, job_id: JobId, seen_version: int, timeout_ms: int) -> JobDetails:
        """Long poll for a newer snapshot."""
        return self._board.await_change(job_id, seen_version, timeout_ms)

    def cancel_job(self, job_id: JobId) -> None:
        """Begin to cancel a live job; that it ends is certain when this returns, whoever leads then.

        Raises
        ------
        JobNotFound
            No such job.
        JobError
            The job has ended already.
        LeadershipLost
            Another master leads.
        HaError
            It begins, but may not have been written down: the next leader might not know.
        """
        self._mailbox.assert_may_run()
        if job_id in self._unrecovered:
            self._archive.cancel(job_id)
            with self._turn(f"the end of job {job_id}"):
                self._unrecovered.cancel(job_id)
            self._mailbox.post(self._end_process_if_idle)
        endpoint = self._live.get(job_id)
        if endpoint is None:
            status = self._board.get(job_id).overview.status
            if status is JobStatus.CANCELED:
                return
            raise JobError(f"job {job_id} is {status.value} already; there is nothing to cancel")
        self._cancel([job_id], endpoint.cancel)

    def cluster_overview(self) -> ClusterOverview:
        """Counts for ``GET /overview``."""
        task_managers, total, free = self._slot_counts.slot_counts()
        statuses = [details.overview.status for details in self._board.all()]
        return ClusterOverview(
            task_managers=task_managers,
            slots_total=total,
            slots_available=free,
            jobs_running=sum(not status.globally_terminal for status in statuses),
            jobs_finished=statuses.count(JobStatus.FINISHED),
            jobs_canceled=statuses.count(JobStatus.CANCELED),
            jobs_failed=statuses.count(JobStatus.FAILED),
            version=__version__,
        )

    def shut_down_cluster(self) -> None:
        """Cancel every job as :meth:`cancel_job`, then end the process."""
        self._mailbox.assert_may_run()
        for job_id in self._unrecovered.ids:
            self.cancel_job(job_id)
        self._cancel(self._live, lambda: self._mailbox.post(self._shut_down))

    def trigger_checkpoint(self, job_id: JobId, request: CheckpointRequest) -> None:
        """Begin a checkpoint or savepoint of a live job.

        Raises
        ------
        CheckpointError
            The job has ended, or cannot take one now.
        """
        self._mailbox.assert_may_run()
        endpoint = self._live.get(job_id)
        if endpoint is not None:
            endpoint.trigger_checkpoint(request)
        elif self._find_checkpoint(job_id, request.request_id) is None:
            raise self._no_checkpoint(job_id)

    def await_checkpoint(self, job_id: JobId, request_id: str, timeout_ms: int) -> CheckpointInfo:
        """What a request led to, also when the job ended with it."""
        endpoint = self._live.get(job_id)
        if endpoint is not None:
            return endpoint.await_checkpoint(request_id, timeout_ms)
        found = self._find_checkpoint(job_id, request_id)
        if found is None:
            raise self._no_checkpoint(job_id)
        return found

    def job_checkpoints(self, job_id: JobId) -> JobCheckpoints:
        """A job's checkpoints; of jobs that ended under an earlier leader none are known."""
        endpoint = self._live.get(job_id) or self._over.endpoint(job_id)
        if endpoint is not None:
            return endpoint.checkpoints()
        self._board.get(job_id)
        return self._over.checkpoints(job_id)

    def job_description(self, job_id: JobId) -> JobDescription | None:
        """What a job is; None when it ended under an earlier leader.

        Raises
        ------
        JobNotFound
            No such job.
        """
        endpoint = self._live.get(job_id) or self._over.endpoint(job_id)
        if endpoint is not None:
            return endpoint.description()
        self._board.get(job_id)
        return self._over.description(job_id)

    def await_collected(self, job_id: JobId, position: str, timeout_ms: int) -> CollectedPage:
        """Elements that the job's program collects; the page after the last one says that it has ended."""
        endpoint = self._live.get(job_id) or self._over.endpoint(job_id)
        page = CollectedPage((), position)
        if endpoint is not None:
            page = endpoint.await_collected(position, timeout_ms)
        if page.payloads:
            return page
        # a job that FINISHED has had all its elements read before
        return replace(page, ended=self._board.get(job_id).overview.status.globally_terminal)

    def rest_access(self) -> RestAccess:
        """Address and tokens of the REST interface."""
        return self._rest_access()

    def inject_fault(self, request: FaultRequest) -> FaultInjected:
        """Break something a job needs, for a drill.

        Raises
        ------
        HaError
            Nobody could take over.
        JobError, ResourceError
            The job has ended, or has nothing of the kind at the moment.
        """
        self._mailbox.assert_may_run()
        if self._faults is None:
            raise JobError("this cluster takes no drills")
        return self._faults(request)

    def change_log_level(self, level: LogLevel) -> LogLevelResult:
        """Change what a logger says in all processes of the cluster."""
        if self._log_levels is None:
            raise JobError("this cluster's logs cannot be changed while it runs")
        return self._log_levels(level)

    def close(self, reason: str) -> None:
        """Accept no further job; end the process when those there are have ended.

        Parameters
        ----------
        reason : str
            Told to whoever submits all the same.
        """
        self._mailbox.post(lambda: self._close(reason))

    # --- leadership ---

    def recover(self) -> None:
        """Take over what earlier leaders left; blocks, before anybody can call this Dispatcher.

        Raises
        ------
        YarnflowError
            The stores cannot be read.
        """
        kept = self._archive.load()
        for details in kept.ended:
            self._board.restore(details)
        if kept.live or kept.ended:
            logger.info("%d jobs have ended before; taking over: %s.", len(kept.ended), describe(kept.live))
        # nobody can be told to come again: drivers of jobs that are not known here must end
        self._mailbox.call(lambda: self._recover(kept), None)
        for job in kept.unreadable:
            self._unrecovered.found(job)
        # also those that were read, and could not be accepted
        for job_id in self._unrecovered.ids:
            if job_id in kept.canceled:
                self._unrecovered.cancel(job_id)

    def keep_end(self, details: JobDetails, shown: Callable[[], None]) -> None:
        """See :meth:`~yarnflow.runtime.dispatcher.ended_jobs.EndedJobs.keep_end`."""
        self._over.keep_end(details, shown)

    def _cancel(self, job_ids: Iterable[JobId], begin: Callable[[], None]) -> None:
        """Write down that jobs shall end, then begin with it."""
        try:
            for job_id in job_ids:
                self._archive.cancel(job_id)
        except LeadershipLost:
            raise
        except YarnflowError:
            # it may have been written down all the same, and must not come true at some later time
            begin()
            raise
        begin()

    # --- submission, in the caller's thread ---

    @contextmanager
    def _turn(self, what: str) -> Iterator[None]:
        if not self._submitting.acquire(timeout=self._call_timeout_ms / 1000):
            raise RpcTimeout(f"{what} waits for another submission; try again")
        try:
            yield
        finally:
            self._submitting.release()

    def _submit(self, submission: JobSubmission) -> JobSubmitted:
        self._mailbox.assert_may_run()
        key, job_id = submission.job_key, submission.job_id
        if self._is_known(job_id):
            return JobSubmitted(job_id)
        try:
            self._mailbox.call(lambda: self._begin_to_accept(job_id, key), self._call_timeout_ms)
            ended = self._archive.result(job_id)
            if ended is not None:  # so long ago that the board has forgotten it
                return JobSubmitted(job_id)
            return self._admit(submission)
        finally:
            self._mailbox.post(self._nothing_arrives)

    def _admit(self, submission: JobSubmission) -> JobSubmitted:
        try:
            owner = self._archive.admit(submission, self._owns_key)
            if owner == submission.job_id:
                self._mailbox.call(lambda: self._accept(submission, Fresh()), self._call_timeout_ms)
                return JobSubmitted(owner)
        except YarnflowError:
            # behind what was not answered in time: the job may be accepted all the same
            self._mailbox.post(lambda: self._refused(submission))
            raise
        if self._has_ended(owner):
            raise self._key_is_busy(submission)
        logger.info("Job key %s belongs to live job %s.", submission.job_key, owner)
        other = self._archive.is_other_program(submission, owner)
        return JobSubmitted(owner, attached_to_existing=True, other_program=other)

    def _await_key(self, submission: JobSubmission) -> None:
        """A job that is over keeps its key until its state is settled: the next one may start from that."""
        key = submission.job_key

        def is_free() -> bool:
            owners = [job_id for job_id, other in list(self._keys.items()) if other == key]
            return submission.job_id in owners or not any(self._has_ended(owner) for owner in owners)

        with self._changed:
            if key and not self._changed.wait_for(is_free, self._call_timeout_ms / 2_000):
                raise self._key_is_busy(submission)

    def _key_is_busy(self, submission: JobSubmission) -> RpcTimeout:
        return RpcTimeout(
            f"job {submission.name}: the last job of job key {submission.job_key} has ended, and what it "
            "leaves is still being put in order; try again"
        )

    def _owns_key(self, job_id: JobId) -> bool:
        if job_id in self._live or job_id in self._unrecovered:
            return True
        return self._over.endpoint(job_id) is not None

    def _take_over(self, submission: JobSubmission) -> None:
        start = Adopted(self._leader_info().fence.epoch)
        self._mailbox.call(lambda: self._accept(submission, start), self._call_timeout_ms)

    # --- in the mailbox ---

    def _begin_to_accept(self, job_id: JobId, key: str) -> None:
        self._mailbox.assert_mailbox_thread()
        if self._over.is_withdrawing(job_id):
            raise RpcTimeout(f"job {job_id} was refused and is still being cleared away; try again")
        if not any(self._keys.get(other) == key for other in self._live if key and self._lives(other)):
            if self._closed:
                raise JobError(self._closed)
            self._check_drivers()
        self._arriving = job_id

    def _nothing_arrives(self) -> None:
        self._arriving = None
        self._end_process_if_idle()

    def _accept(self, submission: JobSubmission, start: StartKind) -> None:
        self._mailbox.assert_mailbox_thread()
        job_id = submission.job_id
        if job_id in self._live:
            return
        endpoint = self._new_job_endpoint(
            submission, lambda ended: self._mailbox.post(lambda: self._ended(ended)), start
        )
        self._live = {**self._live, job_id: endpoint}
        if isinstance(start, Fresh):
            logger.info("Received job %s (%s).", submission.name, job_id)
        endpoint.start()
        if self._shutting_down:
            endpoint.cancel()
        self._keys[job_id] = submission.job_key  # on the board by now: whoever waits for its end looks there
        if self._outlook:
            endpoint.resources_wait(self._outlook)

    def _refused(self, submission: JobSubmission) -> None:
        if not self._is_known(submission.job_id):
            self._over.withdraw(submission)

    def _recover(self, kept: KeptJobs) -> None:
        start = Adopted(self._leader_info().fence.epoch)
        for submission in kept.live:
            try:
                self._accept(submission, start)
                if submission.job_id in kept.canceled:
                    self._live[submission.job_id].cancel()
            except YarnflowError as error:
                # it stays stored: a master that understands it may come
                job = UnreadableJob(submission.job_id, submission.job_key, submission.configuration)
                self._unrecovered.found(job, str(error))

    def _check_drivers(self) -> None:
        live = [job_id for job_id in self._live if self._lives(job_id)]
        if self._max_jobs and len(live) >= self._max_jobs:
            raise SlotUnavailable(
                f"{len(live)} jobs run already and this cluster has room for the drivers of "
                f"{self._max_jobs}; wait for one to end, cancel one, or start a cluster with a larger "
                "yarn.appmaster.drivers"
            )

    def _lives(self, job_id: JobId) -> bool:
        """A job whose end everybody can see already is over, although it may still be cleared away."""
        return job_id in self._live and not self._has_ended(job_id)

    def _has_ended(self, job_id: JobId) -> bool:
        try:
            return self._board.get(job_id).overview.status.globally_terminal
        except JobNotFound:  # so long ago that it is forgotten
            return True

    def _ended(self, job_id: JobId) -> None:
        live = dict(self._live)
        endpoint = live.pop(job_id, None)
        if endpoint is None:
            return
        # before it is not alive any more: it is always one of the two
        self._over.clear(job_id, self._keys.get(job_id, ""), endpoint, lambda: self._cleared(job_id))
        self._live = live

    def _cleared(self, job_id: JobId) -> None:
        with self._changed:
            self._keys.pop(job_id, None)
            self._changed.notify_all()
        self._on_ended(job_id)
        self._end_process_if_idle()

    def _shut_down(self) -> None:
        self._shutting_down = True
        self._close("the cluster is shutting down; submit to another one")
        for endpoint in self._live.values():
            endpoint.cancel()

    def _close(self, reason: str) -> None:
        self._closed = reason
        self._end_process_if_idle()

    def _end_process_if_idle(self) -> None:
        if self._closed and self._over.all_cleared and not (
            self._live or self._arriving or self._unrecovered.ids
        ):
            self._on_shut_down()

    def _is_known(self, job_id: JobId) -> bool:
        if job_id in self._live:
            return True
        try:
            self._board.get(job_id)
        except JobNotFound:
            return False
        return True

    def _find_checkpoint(self, job_id: JobId, request_id: str) -> CheckpointInfo | None:
        history = self.job_checkpoints(job_id).history
        return next((info for info in history if info.request_id == request_id), None)

    def _no_checkpoint(self, job_id: JobId) -> CheckpointError:
        status = self._board.get(job_id).overview.status
        return CheckpointError(f"job {job_id} is {status.value}; only a job that runs can take a checkpoint")
