"""The executors of one job: asks TaskManagers for them and keeps account of them.

Which executors there should be is decided by :mod:`yarnflow.core.resources.executor_pool`; what their loss
means for the job by the JobMaster.  Used in the JobMaster's mailbox only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from yarnflow.core.ids import AllocationId, DriverId, ExecutorId, JobId, TaskManagerId
from yarnflow.core.messages import DriverRegistration, ExecutorDescriptor, SlotOffer
from yarnflow.core.resources.executor_pool import ExecutorPool, ExecutorRecord
from yarnflow.errors import RpcError, SlotUnavailable, YarnflowError
from yarnflow.runtime.jobmaster.services import JobMasterServices, JobMasterSettings
from yarnflow.runtime.mailbox import Mailbox

#: so many executors in a row that never came up are no accident
MAX_FAILED_STARTS: Final = 3
SLOT_RETRY_MS: Final = 1_000


class ExecutorFleet:
    """Executors of a job's current driver.

    Parameters
    ----------
    job_id : JobId
        Whose.
    services, settings, mailbox
        The JobMaster's.
    on_lost : callable
        ``(executor id, reason)``: one could not be started.
    on_refused : callable
        ``(error, TaskManager)``: none can be started there, now or later.
    """

    def __init__(
        self,
        job_id: JobId,
        services: JobMasterServices,
        settings: JobMasterSettings,
        mailbox: Mailbox,
        on_lost: Callable[[ExecutorId, str], None],
        on_refused: Callable[[YarnflowError, TaskManagerId], None],
    ) -> None:
        self._job_id = job_id
        self._services = services
        self._settings = settings
        self._mailbox = mailbox
        self._on_lost = on_lost
        self._on_refused = on_refused
        self.pool = ExecutorPool()
        self._failed_starts = 0

    @property
    def given_up(self) -> bool:
        """Executor after executor ended before its driver saw it."""
        return self._failed_starts >= MAX_FAILED_STARTS

    def report_to(
        self,
        on_lost: Callable[[ExecutorId, str], None],
        on_refused: Callable[[YarnflowError, TaskManagerId], None],
    ) -> None:
        """Tell others of losses from now on."""
        self._on_lost, self._on_refused = on_lost, on_refused

    def start_missing(
        self, slots: Sequence[SlotOffer], registration: DriverRegistration, first_number: int = 0
    ) -> None:
        """Start executors on the slots that have none, with numbers from ``first_number`` on."""
        self.pool, started = self.pool.start_missing(slots, self._now_ms(), first_number)
        for record in started:
            self._start(record, registration)

    def adopt(self, slots: Sequence[SlotOffer], driver_id: DriverId) -> None:
        """Take over what an earlier master started for the driver on these slots."""
        self.pool = self.pool.adopt(slots, driver_id, self._now_ms())

    def seen_by_driver(self, executor_ids: Iterable[ExecutorId]) -> tuple[ExecutorRecord, ...]:
        """Note what the driver sees; returns executors to give up, which the caller forgets."""
        now_ms = self._now_ms()
        self.pool = self.pool.seen_by_driver(executor_ids, now_ms)
        if self.pool.any_registered:
            self._failed_starts = 0
        return self.pool.overdue(now_ms, self._settings.executor_missing_ms, self._settings.executor_start_ms)

    def forget(self, executor_id: ExecutorId) -> ExecutorRecord | None:
        """An executor is gone; returns its record, None when it was not (any longer) known."""
        record = self.pool.find(executor_id)
        if record is not None:
            self.pool = self.pool.without(executor_id)
            self._failed_starts = 0 if record.ever_registered else self._failed_starts + 1
        return record

    def slot_lost(self, allocation_id: AllocationId) -> None:
        """End the executor that served a slot the job does not have any more."""
        record = self.pool.serving(allocation_id)
        if record is not None:
            self.pool = self.pool.without(record.executor_id)
            self.stop(record)

    def task_manager_lost(self, task_manager_id: TaskManagerId) -> None:
        """A TaskManager is gone with its executors."""
        self.pool = self.pool.task_manager_lost(task_manager_id)

    def driver_lost(self) -> None:
        """The driver is gone; executors end with it, but are told all the same."""
        self._failed_starts = 0
        self.pool, orphans = self.pool.driver_lost()
        for record in orphans:
            self.stop(record)

    def stop(self, record: ExecutorRecord) -> None:
        """End one executor; its TaskManager frees what it held in any case."""
        gateway = self._services.gateways.task_executor(record.address)
        self._services.effects.perform(
            self._mailbox,
            lambda: gateway.stop_executor(self._job_id, record.executor_id),
            lambda _none: None,
            lambda _error: None,
        )

    def _start_again(self, record: ExecutorRecord, registration: DriverRegistration) -> None:
        if self.pool.find(record.executor_id) is not None:
            self._start(record, registration)

    def _start(self, record: ExecutorRecord, registration: DriverRegistration) -> None:
        descriptor = ExecutorDescriptor(
            job_id=self._job_id,
            driver_id=registration.driver_id,
            executor_id=record.executor_id,
            driver_url=registration.driver_url,
            app_id=registration.app_id,
            cores=record.cores,
            allocation_ids=record.allocation_ids,
            java_options=registration.java_options,
            environment=registration.environment,
        )
        gateway = self._services.gateways.task_executor(record.address)

        def failed(error: YarnflowError) -> None:
            if self.pool.find(record.executor_id) is None:
                return  # of a driver or a slot that is gone
            if isinstance(error, SlotUnavailable):
                # its predecessor is still ending, or the slot is lost and we will hear of it
                self._mailbox.schedule(SLOT_RETRY_MS, lambda: self._start_again(record, registration))
                return
            self.stop(record)  # after a time-out it may be there
            if error.retryable or isinstance(error, RpcError):
                self._on_lost(record.executor_id, f"could not be started: {error}")
            else:
                self._on_refused(error, record.task_manager_id)

        self._services.effects.perform(
            self._mailbox, lambda: gateway.start_executor(descriptor), lambda _none: None, failed
        )

    def _now_ms(self) -> int:
        return self._services.clock.monotonic_ms()
