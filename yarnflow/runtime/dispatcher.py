"""Accepts, lists and ends jobs; one JobMaster for each.

It decides whether a submission becomes a job, and nothing about how the job runs.

Flink counterpart: ``Dispatcher``.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Protocol

from yarnflow import __version__
from yarnflow.core.ids import AllocationId, JobId, TaskManagerId, is_job_id
from yarnflow.core.messages import (
    ClusterOverview,
    DriverRegistration,
    DriverReport,
    ExecutorExited,
    JobDetails,
    JobOverview,
    JobSubmission,
    JobSubmitted,
    LeaderInfo,
    SlotOffer,
)
from yarnflow.core.states import JobStatus
from yarnflow.errors import JobError, JobNotFound
from yarnflow.runtime.job_board import JobBoard
from yarnflow.runtime.mailbox import Mailbox

logger = logging.getLogger(__name__)


class JobEndpoint(Protocol):
    """A JobMaster as the Dispatcher sees it; every method only posts, except those with answers."""

    def start(self) -> None: ...

    def cancel(self) -> None: ...

    def stop(self) -> None: ...

    def offer_slots(self, offers: Sequence[SlotOffer]) -> Sequence[AllocationId]: ...

    def executor_exited(self, report: ExecutorExited) -> None: ...

    def register_driver(self, registration: DriverRegistration) -> None: ...

    def report(self, report: DriverReport) -> None: ...

    def task_manager_lost(self, task_manager_id: TaskManagerId, reason: str) -> None: ...

    def slot_lost(self, allocation_id: AllocationId, reason: str) -> None: ...

    def slots_unfulfillable(self, message: str) -> None: ...


#: (submission, called once with the job's id when it is globally terminal) → endpoint
JobEndpointFactory = Callable[[JobSubmission, Callable[[JobId], None]], JobEndpoint]


class SlotCounts(Protocol):
    """The ResourceManager as the Dispatcher's overview sees it."""

    def slot_counts(self) -> tuple[int, int, int]:
        """TaskManagers, slots in all, slots free."""


class Dispatcher:
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
        Ends the process; called once all jobs have ended.
    call_timeout_ms : int
        How long a caller waits for the mailbox.
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
    ) -> None:
        self._mailbox = mailbox
        self._board = board
        self._new_job_endpoint = new_job_endpoint
        self._leader_info = leader_info
        self._slot_counts = slot_counts
        self._on_shut_down = on_shut_down
        self._call_timeout_ms = call_timeout_ms
        #: replaced, never changed in place: reports of drivers read it from other threads
        self._live: dict[JobId, JobEndpoint] = {}
        self._key_owner: dict[str, JobId] = {}
        self._shutting_down = False

    # --- DispatcherGateway ---

    def leader(self) -> LeaderInfo:
        """Fence and address of this master."""
        return self._leader_info()

    def submit_job(self, submission: JobSubmission) -> JobSubmitted:
        """Accept a job; the same job id twice is one job, a live job key names the live job."""
        return self._mailbox.call(lambda: self._submit(submission), self._call_timeout_ms)

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
        """Begin to cancel a live job.

        Raises
        ------
        JobNotFound
            No such job.
        JobError
            The job has ended already.
        """
        endpoint = self._live.get(job_id)
        if endpoint is None:
            status = self._board.get(job_id).overview.status
            if status is JobStatus.CANCELED:
                return
            raise JobError(f"job {job_id} is {status.value} already; there is nothing to cancel")
        endpoint.cancel()

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
        """Cancel every job, then end the process."""
        self._mailbox.post(self._shut_down)

    # --- JobMasterGateway, routed to the job's own mailbox ---

    def offer_slots(self, job_id: JobId, offers: Sequence[SlotOffer]) -> Sequence[AllocationId]:
        """Route to the job; an unknown job accepts nothing."""
        endpoint = self._live.get(job_id)
        return () if endpoint is None else endpoint.offer_slots(offers)

    def executor_exited(self, report: ExecutorExited) -> None:
        """Route to the job; the executors of ended jobs interest nobody."""
        endpoint = self._live.get(report.job_id)
        if endpoint is not None:
            endpoint.executor_exited(report)

    def register_driver(self, registration: DriverRegistration) -> None:
        """Route to the job; a driver of an unknown job is told so and must end."""
        self._endpoint(registration.job_id).register_driver(registration)

    def report(self, report: DriverReport) -> None:
        """Route to the job; a driver of an unknown job is told so and must end."""
        self._endpoint(report.job_id).report(report)

    # --- ResourceManager → jobs ---

    def task_manager_lost(self, task_manager_id: TaskManagerId, reason: str) -> None:
        """Tell every job; each knows whether it had slots there."""
        for endpoint in self._live.values():
            endpoint.task_manager_lost(task_manager_id, reason)

    def slot_lost(self, job_id: JobId, allocation_id: AllocationId, reason: str) -> None:
        """One slot is not the job's any more; its TaskManager lives."""
        endpoint = self._live.get(job_id)
        if endpoint is not None:
            endpoint.slot_lost(allocation_id, reason)

    def slots_unfulfillable(self, job_id: JobId, message: str) -> None:
        """The job's slots can never be had; tell it."""
        endpoint = self._live.get(job_id)
        if endpoint is not None:
            endpoint.slots_unfulfillable(message)

    def stop(self) -> None:
        """Stop the mailboxes of all jobs; their drivers are not touched."""
        for endpoint in self._live.values():
            endpoint.stop()

    # --- in the mailbox ---

    def _submit(self, submission: JobSubmission) -> JobSubmitted:
        self._mailbox.assert_mailbox_thread()
        if not is_job_id(submission.job_id):
            raise JobError(f"{submission.job_id!r} is not a job id; a job id has 32 hexadecimal digits")
        if self._shutting_down:
            raise JobError("the cluster is shutting down; submit to another one")
        if self._is_known(submission.job_id):
            return JobSubmitted(submission.job_id)
        owner = self._key_owner.get(submission.job_key) if submission.job_key else None
        if owner is not None:
            logger.info("Job key %s belongs to live job %s.", submission.job_key, owner)
            return JobSubmitted(owner, attached_to_existing=True)
        endpoint = self._new_job_endpoint(
            submission, lambda job_id: self._mailbox.post(lambda: self._ended(job_id))
        )
        self._live = {**self._live, submission.job_id: endpoint}
        if submission.job_key:
            self._key_owner[submission.job_key] = submission.job_id
        logger.info("Received job %s (%s).", submission.name, submission.job_id)
        endpoint.start()
        return JobSubmitted(submission.job_id)

    def _ended(self, job_id: JobId) -> None:
        live = dict(self._live)
        endpoint = live.pop(job_id, None)
        self._live = live
        self._key_owner = {key: owner for key, owner in self._key_owner.items() if owner != job_id}
        if endpoint is not None:
            endpoint.stop()
        self._end_process_if_idle()

    def _shut_down(self) -> None:
        self._shutting_down = True
        for endpoint in self._live.values():
            endpoint.cancel()
        self._end_process_if_idle()

    def _end_process_if_idle(self) -> None:
        if self._shutting_down and not self._live:
            self._on_shut_down()

    def _is_known(self, job_id: JobId) -> bool:
        if job_id in self._live:
            return True
        try:
            self._board.get(job_id)
        except JobNotFound:
            return False
        return True

    def _endpoint(self, job_id: JobId) -> JobEndpoint:
        endpoint = self._live.get(job_id)
        if endpoint is None:
            raise JobNotFound(f"no live job {job_id} on this cluster; its driver must end")
        return endpoint
