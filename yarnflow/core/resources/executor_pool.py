"""Which Spark executors a job's slots should have, and which it has.

One executor serves all slots that a TaskManager gave the job at one time; slots that come later
get an executor of their own.  Executor ids are numbers that rise over all drivers of the job,
because Spark refuses an id it has seen.

Not here: starting processes (``runtime.taskexecutor``), slots themselves (``core.resources.slot_pool``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from yarnflow.core.ids import AllocationId, DriverId, ExecutorId, TaskManagerId
from yarnflow.core.messages import SlotOffer

#: ids of executors that ended before the job was adopted are not known, and must not be used again
_ADOPTION_GAP: Final = 100


@dataclass(frozen=True, slots=True)
class ExecutorRecord:
    """One executor that was asked for."""

    executor_id: ExecutorId
    task_manager_id: TaskManagerId
    #: the TaskManager's Thrift address
    address: str
    allocation_ids: tuple[AllocationId, ...]
    #: since when the driver does not see it; -1 = it does
    missing_since_ms: int
    #: the driver has seen it at some time
    ever_registered: bool = False

    @property
    def registered(self) -> bool:
        """The driver sees it now: it can run tasks."""
        return self.missing_since_ms < 0

    @property
    def cores(self) -> int:
        """Task threads: one for each slot."""
        return len(self.allocation_ids)


@dataclass(frozen=True, slots=True)
class ExecutorPool:
    """The executors of a job's current driver; every method returns new values."""

    records: tuple[ExecutorRecord, ...] = ()
    next_number: int = 0
    #: executors that were adopted at some time: offers name them as long as the slots are the job's
    adopted: frozenset[tuple[DriverId, ExecutorId]] = frozenset()

    def start_missing(
        self, slots: Sequence[SlotOffer], at_ms: int, first_number: int = 0
    ) -> tuple[ExecutorPool, tuple[ExecutorRecord, ...]]:
        """Plan an executor for each TaskManager with slots that no executor serves.

        Parameters
        ----------
        slots : sequence of SlotOffer
            All that are to be served.
        at_ms : int
            Now.
        first_number : int
            No lower one is given: other executors of the job may have it.  Neither is one that an
            executor has had, perhaps for another driver, on one of the slots.

        Returns
        -------
        ExecutorPool, tuple of ExecutorRecord
            The pool with the new records, and the new records alone.
        """
        served = {allocation for record in self.records for allocation in record.allocation_ids}
        uncovered: dict[TaskManagerId, list[SlotOffer]] = {}
        for slot in slots:
            if slot.allocation_id not in served:
                uncovered.setdefault(slot.task_manager_id, []).append(slot)
        had = [number_of(slot.executor.executor_id) + 1 for slot in slots if slot.executor is not None]
        number = max(self.next_number, first_number, *had, 0)
        started = tuple(
            ExecutorRecord(
                executor_id=ExecutorId(str(number + index)),
                task_manager_id=task_manager_id,
                address=offers[0].address,
                allocation_ids=tuple(offer.allocation_id for offer in offers),
                missing_since_ms=at_ms,
            )
            for index, (task_manager_id, offers) in enumerate(sorted(uncovered.items()))
        )
        if not started:
            return self, ()
        return (
            replace(self, records=self.records + started, next_number=number + len(started)),
            started,
        )

    def adopt(self, slots: Sequence[SlotOffer], driver_id: DriverId, at_ms: int) -> ExecutorPool:
        """Take over the executors an earlier master started on these slots for the driver.

        Those of other drivers are left out: they end with them.

        Parameters
        ----------
        slots : sequence of SlotOffer
            All slots the job has, those without an executor included.
        driver_id : DriverId
            The driver that was adopted.
        at_ms : int
            Now; until the driver reports they are not registered.
        """
        return self._with(self._running_for(slots, driver_id), driver_id, at_ms, _ADOPTION_GAP)[0]

    def take_waiting(
        self, slots: Sequence[SlotOffer], driver_id: DriverId, at_ms: int
    ) -> tuple[ExecutorPool, tuple[ExecutorRecord, ...]]:
        """Take the executors that wait on these slots since an earlier job of the driver, each once.

        One that has further slots, which are not the job's, is left out: it would have more task threads
        than the job has slots there.

        Returns
        -------
        ExecutorPool, tuple of ExecutorRecord
            The pool with the new records, and the new records alone.
        """
        found = {
            executor_id: offers
            for executor_id, offers in self._running_for(slots, driver_id).items()
            if offers[0].executor is not None and offers[0].executor.cores == len(offers)
        }
        return self._with(found, driver_id, at_ms, 1)

    def _running_for(
        self, slots: Sequence[SlotOffer], driver_id: DriverId
    ) -> dict[ExecutorId, list[SlotOffer]]:
        """Executors of a driver that ran on slots when they were offered, and were never taken over."""
        known = set(self.executor_ids)
        found: dict[ExecutorId, list[SlotOffer]] = {}
        for slot in slots:
            executor = slot.executor
            if executor is None or executor.driver_id != driver_id or executor.executor_id in known:
                continue
            if (driver_id, executor.executor_id) not in self.adopted:
                found.setdefault(executor.executor_id, []).append(slot)
        return found

    def _with(
        self, found: dict[ExecutorId, list[SlotOffer]], driver_id: DriverId, at_ms: int, gap: int
    ) -> tuple[ExecutorPool, tuple[ExecutorRecord, ...]]:
        taken = tuple(
            ExecutorRecord(
                executor_id=executor_id,
                task_manager_id=offers[0].task_manager_id,
                address=offers[0].address,
                allocation_ids=tuple(offer.allocation_id for offer in offers),
                missing_since_ms=at_ms,
                ever_registered=True,
            )
            for executor_id, offers in sorted(found.items())
        )
        pool = replace(
            self,
            records=self.records + taken,
            adopted=self.adopted | {(driver_id, record.executor_id) for record in taken},
            next_number=max([self.next_number, *(number_of(r.executor_id) + gap for r in taken)]),
        )
        return pool, taken

    def find(self, executor_id: ExecutorId) -> ExecutorRecord | None:
        """The record of an executor, if it is (still) known."""
        return next((record for record in self.records if record.executor_id == executor_id), None)

    def serving(self, allocation_id: AllocationId) -> ExecutorRecord | None:
        """The executor that serves a slot."""
        return next((record for record in self.records if allocation_id in record.allocation_ids), None)

    def without(self, executor_id: ExecutorId) -> ExecutorPool:
        """Forget an executor.  Unknown ids are ignored."""
        return self._keep(lambda record: record.executor_id != executor_id)

    def task_manager_lost(self, task_manager_id: TaskManagerId) -> ExecutorPool:
        """Forget the executors of a TaskManager."""
        return self._keep(lambda record: record.task_manager_id != task_manager_id)

    def driver_lost(self) -> tuple[ExecutorPool, tuple[ExecutorRecord, ...]]:
        """Forget all executors: they end with their driver."""
        return replace(self, records=()), self.records

    def seen_by_driver(self, executor_ids: Iterable[ExecutorId], at_ms: int) -> ExecutorPool:
        """Note which executors the driver has now."""
        seen = set(executor_ids)

        def noted(record: ExecutorRecord) -> ExecutorRecord:
            if record.executor_id in seen:
                return replace(record, missing_since_ms=-1, ever_registered=True)
            return replace(record, missing_since_ms=at_ms) if record.registered else record

        return replace(self, records=tuple(noted(record) for record in self.records))

    def overdue(self, at_ms: int, missing_ms: int, starting_ms: int) -> tuple[ExecutorRecord, ...]:
        """Executors the driver has missed for too long although nobody reported their end.

        Parameters
        ----------
        at_ms : int
            Now.
        missing_ms, starting_ms : int
            Patience with one that was there already, and with one that has never come.
        """
        return tuple(
            record
            for record in self.records
            if not record.registered
            and at_ms - record.missing_since_ms >= (missing_ms if record.ever_registered else starting_ms)
        )

    @property
    def any_registered(self) -> bool:
        """At least one executor can run tasks."""
        return any(record.registered for record in self.records)

    @property
    def all_registered(self) -> bool:
        """Every executor asked for can run tasks, and there is one."""
        return bool(self.records) and all(record.registered for record in self.records)

    @property
    def executor_ids(self) -> tuple[ExecutorId, ...]:
        """Ids of all executors asked for."""
        return tuple(record.executor_id for record in self.records)

    def _keep(self, kept: Callable[[ExecutorRecord], bool]) -> ExecutorPool:
        return replace(self, records=tuple(record for record in self.records if kept(record)))


def number_of(executor_id: ExecutorId) -> int:
    """The number an executor's id is."""
    return int(executor_id) if executor_id.isdecimal() else 0
