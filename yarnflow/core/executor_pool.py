"""Which Spark executors a job's slots should have, and which it has.

One executor serves all slots that a TaskManager gave the job at one time; slots that come later
get an executor of their own.  Executor ids are numbers that rise over all drivers of the job,
because Spark refuses an id it has seen.

Not here: starting processes (``runtime.job_master``), slots themselves (``core.slots``).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from yarnflow.core.ids import AllocationId, ExecutorId, TaskManagerId
from yarnflow.core.messages import SlotOffer


@dataclass(frozen=True, slots=True)
class ExecutorRecord:
    """One executor that was asked for."""

    executor_id: ExecutorId
    task_manager_id: TaskManagerId
    #: the TaskManager's Thrift address
    address: str
    allocation_ids: tuple[AllocationId, ...]
    #: the driver has seen it
    registered: bool = False

    @property
    def cores(self) -> int:
        """Task threads: one for each slot."""
        return len(self.allocation_ids)


@dataclass(frozen=True, slots=True)
class ExecutorPool:
    """The executors of a job's current driver."""

    records: tuple[ExecutorRecord, ...] = ()
    next_number: int = 0

    def start_missing(self, slots: Sequence[SlotOffer]) -> tuple[ExecutorPool, tuple[ExecutorRecord, ...]]:
        """Plan an executor for each TaskManager with slots that no executor serves.

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
        started = tuple(
            ExecutorRecord(
                executor_id=ExecutorId(str(self.next_number + index)),
                task_manager_id=task_manager_id,
                address=offers[0].address,
                allocation_ids=tuple(offer.allocation_id for offer in offers),
            )
            for index, (task_manager_id, offers) in enumerate(sorted(uncovered.items()))
        )
        return (
            replace(self, records=self.records + started, next_number=self.next_number + len(started)),
            started,
        )

    def exited(self, executor_id: ExecutorId) -> tuple[ExecutorPool, ExecutorRecord | None]:
        """Forget an executor; the record is None when it was not (any longer) known."""
        gone = next((record for record in self.records if record.executor_id == executor_id), None)
        kept = tuple(record for record in self.records if record.executor_id != executor_id)
        return replace(self, records=kept), gone

    def task_manager_lost(self, task_manager_id: TaskManagerId) -> ExecutorPool:
        """Forget the executors of a TaskManager."""
        kept = tuple(record for record in self.records if record.task_manager_id != task_manager_id)
        return replace(self, records=kept)

    def driver_lost(self) -> tuple[ExecutorPool, tuple[ExecutorRecord, ...]]:
        """Forget all executors: they end with their driver."""
        return replace(self, records=()), self.records

    def seen_by_driver(self, executor_ids: Iterable[ExecutorId]) -> ExecutorPool:
        """Note which executors the driver has now."""
        seen = set(executor_ids)
        return replace(
            self,
            records=tuple(replace(record, registered=record.executor_id in seen) for record in self.records),
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

    @property
    def total_cores(self) -> int:
        """Task threads of all executors asked for."""
        return sum(record.cores for record in self.records)
