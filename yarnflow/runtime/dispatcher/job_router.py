"""Passes on to each job what is said to it, or to all jobs.

Flink counterparts: the routing half of ``Dispatcher``, and ``JobManagerRunnerRegistry``.
"""

from __future__ import annotations

from collections.abc import Sequence

from yarnflow.core.ids import AllocationId, JobId, TaskManagerId
from yarnflow.core.messages import DriverRegistration, DriverReport, ExecutorExited, SlotOffer
from yarnflow.errors import JobNotFound
from yarnflow.runtime.dispatcher.job_endpoint import JobEndpoint


class JobRouter:
    """The live jobs; implements ``JobMasterGateway``.  Any thread may call it."""

    def __init__(self) -> None:
        #: replaced, never changed in place: reports of drivers read it from other threads
        self._live: dict[JobId, JobEndpoint] = {}
        #: what jobs that lack slots wait for
        self._outlook = ""

    # --- leadership ---

    def suspended(self) -> None:
        """Whether this master leads is not certain: nothing may be decided for good."""
        for endpoint in self._live.values():
            endpoint.suspended()

    def resumed(self) -> None:
        """It led all the time."""
        for endpoint in self._live.values():
            endpoint.resumed()

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

    def driver_of(self, job_id: JobId) -> DriverRegistration | None:
        """The driver that runs a live job, or is about to; it may have ended since."""
        endpoint = self._live.get(job_id)
        return None if endpoint is None else endpoint.driver()

    def drivers(self) -> list[DriverRegistration]:
        """The drivers that run live jobs."""
        found = (endpoint.driver() for endpoint in self._live.values())
        return [driver for driver in found if driver is not None]

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

    def task_manager_diagnosed(self, task_manager_id: TaskManagerId, text: str) -> None:
        """Why a TaskManager was lost; each job knows whether it had slots there."""
        for endpoint in self._live.values():
            endpoint.task_manager_diagnosed(task_manager_id, text)

    def resources_wait(self, text: str) -> None:
        """What all jobs that lack slots wait for; empty = nothing is known (any more)."""
        self._outlook = text
        for endpoint in self._live.values():
            endpoint.resources_wait(text)

    def stop(self) -> None:
        """Stop the mailboxes of all jobs; their drivers are not touched."""
        for endpoint in self._live.values():
            endpoint.stop()

    def _endpoint(self, job_id: JobId) -> JobEndpoint:
        endpoint = self._live.get(job_id)
        if endpoint is None:
            raise JobNotFound(f"no live job {job_id} on this cluster; its driver must end")
        return endpoint
