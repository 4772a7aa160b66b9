"""A driver with the slots and executors that are its own.

A job has two of them: the *active* one runs it, the *spare* one could go on with it at once.  Which
is which, and what the loss of a part means, is decided by :mod:`yarnflow.core.job_run.decider`.  Times are
milliseconds of a clock that does not jump.

Flink has no counterpart: there is one JobMaster per job, and its slots are all the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from yarnflow.core.ids import AllocationId, DriverId, ExecutorId, TaskManagerId
from yarnflow.core.messages import DriverRegistration, ExecutorDescriptor, SlotOffer
from yarnflow.core.resources.executor_pool import ExecutorPool, ExecutorRecord
from yarnflow.core.resources.slot_pool import SlotPool

#: so many executors in a row that never came up are no accident
MAX_FAILED_STARTS: Final = 3
#: before a call is made again: one that was not made, or was for an executor whose slot was not free yet
CALL_RETRY_MS: Final = 1_000


@dataclass(frozen=True, slots=True)
class Driver:
    """One driver process, from the moment it is asked for."""

    driver_id: DriverId
    #: its last sign of life, or when it was asked for
    heard_ms: int
    #: launched by an earlier master, and so perhaps another supervisor's child
    adopted: bool = False
    #: it is not started yet, as others are or it has no container
    waits: bool = False
    #: what it brought; None until it can take executors
    registration: DriverRegistration | None = None
    #: attempt it was told to run; 0 = none yet
    deployed_attempt: int = 0
    #: it has said that it is as warm as it will be
    rehearsed: bool = False
    #: jobs that it has finished
    jobs_before: int = 0

    def registered(self, registration: DriverRegistration, at_ms: int) -> Driver:
        """It can take executors now."""
        attempt = max(self.deployed_attempt, registration.attempt)
        return replace(self, registration=registration, deployed_attempt=attempt, heard_ms=at_ms)

    def silent_ms(self, heartbeat_ms: int, registration_ms: int) -> int | None:
        """When it is given up, unless it says something; None = others wait for it."""
        if self.registration is not None:
            return self.heard_ms + heartbeat_ms + 1
        return None if self.adopted or self.waits else self.heard_ms + registration_ms + 1


@dataclass(frozen=True, slots=True)
class DriverGroup:
    """A driver, if there is one, its slots and its executors; every method returns new values."""

    slots: SlotPool
    driver: Driver | None = None
    executors: ExecutorPool = ExecutorPool()
    #: executors in a row that ended before the driver saw them
    failed_starts: int = 0
    #: executors whose slot was not free yet, and when each is asked for again
    retries: tuple[tuple[ExecutorId, int], ...] = ()
    #: no executor is started before: a crash loop must not spin
    not_before_ms: int = 0

    # --- reading ---

    @property
    def registration(self) -> DriverRegistration | None:
        """What the driver brought; None until it can take executors."""
        return None if self.driver is None else self.driver.registration

    @property
    def driver_id(self) -> DriverId | None:
        """The driver there is, or is being started."""
        return None if self.driver is None else self.driver.driver_id

    @property
    def could_run_at_once(self) -> bool:
        """Slots, driver and executors are all there, and warm."""
        return (
            self.driver is not None
            and self.driver.registration is not None
            and self.driver.rehearsed
            and self.slots.is_complete
            and self.executors.all_registered
        )

    @property
    def given_up(self) -> bool:
        """Executor after executor ended before its driver saw it."""
        return self.failed_starts >= MAX_FAILED_STARTS

    @property
    def executors_seen(self) -> str:
        """How many executors of those asked for the driver sees."""
        seen = sum(record.registered for record in self.executors.records)
        return f"{seen} of {len(self.executors.records)}"

    def has_driver(self, driver_id: DriverId) -> bool:
        """Whether this driver is the group's."""
        return self.driver is not None and self.driver.driver_id == driver_id

    def runs_for(self, driver_id: DriverId) -> bool:
        """Whether executors of this driver ran on some of the slots when they were offered."""
        return any(slot.runs_for(driver_id) for slot in self.slots.slots)

    # --- driver ---

    def heard(self, at_ms: int) -> DriverGroup:
        """A sign of life of the driver."""
        return self if self.driver is None else replace(self, driver=replace(self.driver, heard_ms=at_ms))

    def start_waits(self, driver_id: DriverId, waits: bool, at_ms: int) -> DriverGroup:
        """The driver, if it is this one, is started later, or is started now."""
        if self.driver is None or self.driver.driver_id != driver_id:
            return self
        return replace(self, driver=replace(self.driver, waits=waits, heard_ms=at_ms))

    def without_driver(self) -> tuple[DriverGroup, tuple[ExecutorRecord, ...]]:
        """The driver is gone; returns the executors that end with it.  The slots stay."""
        executors, orphans = self.executors.driver_lost()
        after = replace(
            self, driver=None, executors=executors, failed_starts=0, retries=(), not_before_ms=0
        )
        return after, orphans

    # --- slots ---

    def offered(
        self, offers: Iterable[SlotOffer], at_ms: int
    ) -> tuple[DriverGroup, tuple[AllocationId, ...]]:
        """Take offered slots up to the required number; returns the accepted allocations."""
        slots, accepted = self.slots.offer(offers)
        return replace(self, slots=slots).adopting_executors(at_ms), accepted

    def with_slots(self, offers: Iterable[SlotOffer]) -> DriverGroup:
        """Have these slots instead, up to the required number."""
        slots, _ = replace(self.slots, slots=()).offer(offers)
        return replace(self, slots=slots)

    def task_manager_gone(self, task_manager_id: TaskManagerId) -> tuple[DriverGroup, bool]:
        """A TaskManager is gone with slots and executors; returns whether there was any slot."""
        slots, dropped = self.slots.task_manager_lost(task_manager_id)
        if not dropped:
            return self, False
        return replace(self, slots=slots, executors=self.executors.task_manager_lost(task_manager_id)), True

    def without_slots(
        self, allocation_ids: Iterable[AllocationId]
    ) -> tuple[DriverGroup, tuple[SlotOffer, ...], tuple[ExecutorRecord, ...]]:
        """Give slots up; returns those it had, and executors that have to end, forgotten already."""
        slots, dropped = self.slots.release(allocation_ids)
        executors, ended = self.executors, []
        for slot in dropped:
            record = executors.serving(slot.allocation_id)
            if record is not None:
                executors = executors.without(record.executor_id)
                ended.append(record)
        return replace(self, slots=slots, executors=executors), dropped, tuple(ended)

    # --- executors ---

    def adopting_executors(self, at_ms: int) -> DriverGroup:
        """Take over what an earlier master started for the driver that was adopted."""
        if self.driver is None or not self.driver.adopted:
            return self
        executors = self.executors.adopt(self.slots.slots, self.driver.driver_id, at_ms)
        return replace(self, executors=executors)

    def foreign_executors(self) -> Sequence[tuple[str, ExecutorId]]:
        """TaskManager addresses and executors of other drivers that ran on the slots when offered."""
        found = {
            (slot.address, slot.executor.executor_id)
            for slot in self.slots.slots
            if slot.executor is not None and slot.executor.driver_id != self.driver_id
        }
        return sorted(found)

    def starting_missing(
        self, at_ms: int, first_number: int
    ) -> tuple[DriverGroup, tuple[ExecutorRecord, ...]]:
        """Plan executors on the slots that have none, numbered from ``first_number`` on.

        Those that wait there since an earlier job of the driver come first.
        """
        driver = self.driver
        if driver is None or driver.registration is None or at_ms < self.not_before_ms:
            return self, ()
        executors = self.executors
        waiting: tuple[ExecutorRecord, ...] = ()
        if driver.jobs_before:
            executors, waiting = executors.take_waiting(self.slots.slots, driver.driver_id, at_ms)
        executors, started = executors.start_missing(self.slots.slots, at_ms, first_number)
        return replace(self, executors=executors), (*waiting, *started)

    def trying_again(self, at_ms: int) -> tuple[DriverGroup, tuple[ExecutorRecord, ...]]:
        """Executors whose slot may be free now; they are asked for again."""
        due = [executor_id for executor_id, due_ms in self.retries if due_ms <= at_ms]
        found = [self.executors.find(executor_id) for executor_id in due]
        left = tuple(retry for retry in self.retries if retry[1] > at_ms)
        return replace(self, retries=left), tuple(record for record in found if record is not None)

    def seen_by_driver(
        self, executor_ids: Iterable[ExecutorId], at_ms: int, missing_ms: int, starting_ms: int
    ) -> tuple[DriverGroup, tuple[ExecutorRecord, ...]]:
        """Note what the driver sees; returns executors to give up, which are not forgotten yet."""
        executors = self.executors.seen_by_driver(executor_ids, at_ms)
        failed_starts = 0 if executors.any_registered else self.failed_starts
        after = replace(self, executors=executors, failed_starts=failed_starts)
        return after, executors.overdue(at_ms, missing_ms, starting_ms)

    def without_executor(self, executor_id: ExecutorId, resume_ms: int) -> DriverGroup:
        """A known executor is gone; none is started before ``resume_ms``."""
        record = self.executors.find(executor_id)
        came_up = record is not None and record.ever_registered
        return replace(
            self,
            executors=self.executors.without(executor_id),
            failed_starts=0 if came_up else self.failed_starts + 1,
            not_before_ms=resume_ms,
        )

    def descriptor(self, record: ExecutorRecord, job_slots: int) -> ExecutorDescriptor | None:
        """What a TaskManager has to know to start an executor of a job; None = no driver is ready."""
        registration = self.registration
        if registration is None:
            return None
        return ExecutorDescriptor(
            job_id=registration.job_id,
            driver_id=registration.driver_id,
            executor_id=record.executor_id,
            driver_url=registration.driver_url,
            app_id=registration.app_id,
            cores=record.cores,
            allocation_ids=record.allocation_ids,
            java_options=registration.java_options,
            environment=registration.environment,
            job_slots=job_slots,
        )
