"""Slots and executors of one job, and what their losses mean for it.

Spark reruns the tasks of lost executors on others, so a loss interrupts the job only when no
executor is left; here that is noticed and put down in the job's record.  Restarts are decided by
the JobMaster.  Used in the JobMaster's mailbox only.

Flink counterparts: the slot and task failure handling of ``DefaultScheduler``.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from yarnflow.core.ids import AllocationId, DriverId, ExecutorId, TaskManagerId
from yarnflow.core.messages import DriverRegistration, ExecutorExited, JobSubmission, SlotOffer
from yarnflow.core.resources.executor_pool import ExecutorPool
from yarnflow.core.states import JobStatus, RestartLevel
from yarnflow.errors import ExecutorLost, SlotUnavailable, TaskManagerLost, YarnflowError
from yarnflow.runtime.jobmaster.driver_process import DriverLink
from yarnflow.runtime.jobmaster.executor_fleet import MAX_FAILED_STARTS, ExecutorFleet
from yarnflow.runtime.jobmaster.failures import ended_by, error_info
from yarnflow.runtime.jobmaster.hot_spare import HotSpare
from yarnflow.runtime.jobmaster.record import JobRecord
from yarnflow.runtime.jobmaster.services import JobMasterServices, JobMasterSettings
from yarnflow.runtime.jobmaster.slots import JobSlots
from yarnflow.runtime.mailbox import Mailbox

logger = logging.getLogger(__name__)


class JobResources:
    """What a job runs on.

    Parameters
    ----------
    submission : JobSubmission
        Whose.
    slots_required : int
        How many slots it wants.
    settings, services, mailbox, record, driver
        The JobMaster's.
    on_changed : callable
        Something may have become possible.
    on_failed : callable
        ``(error, location, final)``: the job cannot go on as it does; final = no restart helps.
    on_stranded : callable
        ``(error, location)``: the job has no executor and its hot spare is complete; returns whether
        that goes on.
    recovered : bool
        Some of the slots may be those of a job that runs.
    """

    def __init__(
        self,
        submission: JobSubmission,
        slots_required: int,
        settings: JobMasterSettings,
        services: JobMasterServices,
        mailbox: Mailbox,
        record: JobRecord,
        driver: DriverLink,
        on_changed: Callable[[], None],
        on_failed: Callable[[YarnflowError, str, bool], None],
        on_stranded: Callable[[YarnflowError, str], bool],
        recovered: bool = False,
    ) -> None:
        self._name = submission.name
        self._settings = settings
        self._mailbox = mailbox
        self._record = record
        self._driver = driver
        self._on_changed = on_changed
        self._on_failed = on_failed
        self._on_stranded = on_stranded
        self.slots = JobSlots(
            submission,
            slots_required,
            settings.scheduler,
            services,
            mailbox,
            lambda: self.pool.any_registered,
            on_changed,
            lambda error, final: on_failed(error, "", final),
        )
        self._fleet = ExecutorFleet(
            submission.job_id, services, settings, mailbox, self._executor_gone, self._executors_refused
        )
        self.hot_spare = HotSpare(
            submission,
            slots_required if settings.hot_spare else 0,
            settings,
            services,
            mailbox,
            driver,
            self.slots,
            on_changed,
            settled=not recovered,
        )

    @property
    def pool(self) -> ExecutorPool:
        """The executors there are."""
        return self._fleet.pool

    @property
    def waiting_for(self) -> str:
        """What the job, or at least its hot spare, lacks."""
        missing = self.slots.waiting_for
        if self._record.status is JobStatus.RUNNING:
            return missing or self.hot_spare.waiting_for
        # the adaptive scheduler begins with fewer, so what is missing may not be what holds it up
        if missing and not self.slots.may_run:
            return missing
        if self._driver.registration is None:
            return "driver"
        if not self.pool.all_registered:
            seen = sum(record.registered for record in self.pool.records)
            return f"executors: {seen} of {len(self.pool.records)}"
        return "queries to start"

    # --- gains ---

    def offer(self, offers: Sequence[SlotOffer]) -> tuple[AllocationId, ...]:
        """Take what the job lacks; returns the accepted allocations."""
        own, others = self.hot_spare.sort(offers)
        accepted = self.slots.offer(own)
        self.adopt()
        left = [*others, *(offer for offer in own if offer.allocation_id not in accepted)]
        return (*accepted, *self.hot_spare.offer(left))

    def adopt(self) -> None:
        """Take over executors on the job's slots that an earlier master started for its driver."""
        driver_id = self._driver.driver_id
        if driver_id is not None and self._driver.adopted:
            self._fleet.adopt(self.slots.offers, driver_id)

    def runs_for(self, driver_id: DriverId) -> tuple[SlotOffer, ...]:
        """The job's slots on which executors of this driver ran when they were offered."""
        return tuple(slot for slot in self.slots.offers if slot.runs_for(driver_id))

    def change_to(self, driver_id: DriverId) -> None:
        """Have the slots whose executors are those of the driver that was adopted, wherever they are.

        Others are the hot spare's until it is known that no more of these come.
        """
        others = self.slots.give_all_but(driver_id)
        self.slots.offer(self.hot_spare.give(driver_id))
        taken = self.hot_spare.offer(others)
        self.slots.offer([slot for slot in others if slot.allocation_id not in taken])
        self.adopt()

    def start_executors(self, registration: DriverRegistration) -> None:
        """Start executors on the slots that have none."""
        self._fleet.start_missing(self.slots.offers, registration, self.hot_spare.next_number)

    def prepare_hot_spare(self) -> None:
        """Let the hot spare, if there is to be one, come further."""
        self.hot_spare.advance(self._record.status is JobStatus.RUNNING, self.pool.next_number)

    # --- losses ---

    def executor_exited(self, report: ExecutorExited) -> None:
        """A TaskManager reports the end of an executor."""
        if self._driver.is_current(report.driver_id):
            self._executor_gone(report.executor_id, ended_by(report.exit_status, report.output_tail))
        else:
            self.hot_spare.executor_exited(report)

    def seen_by_driver(self, executor_ids: Sequence[ExecutorId]) -> None:
        """Note what the driver sees; executors it misses for too long are given up."""
        for record in self._fleet.seen_by_driver(executor_ids):
            self._fleet.stop(record)
            self._executor_gone(record.executor_id, "is not seen by its driver")

    def task_manager_lost(self, task_manager_id: TaskManagerId, reason: str) -> None:
        """A TaskManager is gone with everything on it."""
        self.hot_spare.task_manager_lost(task_manager_id)
        if not self.slots.task_manager_lost(task_manager_id) or self._record.status.terminal:
            return
        self._fleet.task_manager_lost(task_manager_id)
        self._lost(task_manager_id, TaskManagerLost(f"TaskManager {task_manager_id} is lost: {reason}"))
        self._on_changed()

    def slot_lost(self, allocation_id: AllocationId, reason: str) -> None:
        """One slot is not the job's any more."""
        self.hot_spare.slot_lost(allocation_id)
        dropped = self.slots.slot_lost(allocation_id)
        if not dropped or self._record.status.terminal:
            return
        self._fleet.slot_lost(allocation_id)
        (slot,) = dropped
        where = slot.task_manager_id
        self._lost(where, SlotUnavailable(f"slot {slot.slot_index} of {where} is lost: {reason}"))
        self._on_changed()

    def drop_driver(self) -> None:
        """End the job's driver for good; its executors end with it, the slots stay."""
        self._driver.drop()
        self._fleet.driver_lost()
        self.slots.driver_lost()

    def step_in(self) -> bool:
        """Go on with the hot spare's driver, slots and executors; whether they can run at once."""
        hot_spare = self.hot_spare
        ready = hot_spare.ready
        if hot_spare.exists:
            self._fleet = hot_spare.step_in(self._fleet)
            self._fleet.report_to(self._executor_gone, self._executors_refused)
        return ready

    def refused(self, message: str) -> None:
        """The cluster can never give all the slots."""
        if not self.hot_spare.refused():
            self.slots.refused(message)

    def release(self) -> None:
        """The job is over: give everything back."""
        self.hot_spare.end()
        self._fleet.driver_lost()
        self.slots.release()

    def confirm_running(self) -> None:
        """The queries are active: executions whose executor is there are running."""
        self._record.running_on({r.task_manager_id for r in self.pool.records if r.registered})
        # the driver may know it before their TaskManagers say so
        error = ExecutorLost("no executor is registered with the driver")
        if self._stranded and not self._goes_on_elsewhere(error, ""):
            self._record.interrupted(error_info(error))

    def _executor_gone(self, executor_id: ExecutorId, reason: str) -> None:
        record = self._fleet.forget(executor_id)
        if record is None or not self._record.wants_executors:
            return
        where = record.task_manager_id
        if self._fleet.given_up:
            message = (
                f"{MAX_FAILED_STARTS} executors in a row ended before they registered, "
                f"the last one on {where} {reason}"
            )
            self._on_failed(ExecutorLost(message), where, False)
            return
        self._lost(where, ExecutorLost(f"executor {executor_id} of job {self._name} on {where} {reason}"))
        self._mailbox.schedule(self._settings.executor_replacement_delay_ms, self._on_changed)

    def _executors_refused(self, error: YarnflowError, task_manager_id: TaskManagerId) -> None:
        self._on_failed(error, task_manager_id, False)

    def _lost(self, task_manager_id: TaskManagerId, error: YarnflowError) -> None:
        """Some executors are gone; Spark reruns their tasks elsewhere, or waits for new executors."""
        if self._goes_on_elsewhere(error, task_manager_id):
            return
        info = error_info(error)
        logger.warning("%s; Spark goes on with what is left, and gets others.", error)
        self._record.failure(info, task_manager_id, RestartLevel.TASKS, recovered=True)
        if self._record.wants_executors:
            self._record.lost_on(task_manager_id, info)
        if self._stranded:
            self._record.interrupted(info)
        self._record.publish()

    @property
    def _stranded(self) -> bool:
        """A job whose query has no executor is not RUNNING, whatever its driver says."""
        return self._record.status is JobStatus.RUNNING and not self.pool.any_registered

    def _goes_on_elsewhere(self, error: YarnflowError, location: str) -> bool:
        """Whether the hot spare has stepped in: it is quicker than executors that are still to start."""
        return self._stranded and self.hot_spare.complete and self._on_stranded(error, location)
