"""The slots of one TaskManager: its own truth.

Decides whether a slot can be given to a job.  A slot is FREE, ALLOCATED (given to a job whose
JobMaster has not accepted it) or ACTIVE (accepted; the job's executor may count it).  It never
starts or ends executors: the shell does when a job's slots change.

Flink counterpart: ``TaskSlotTableImpl``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final

from yarnflow.core.ids import AllocationId, JobId
from yarnflow.core.messages import SlotStatus
from yarnflow.errors import SlotUnavailable

_NO_ALLOCATION: Final = AllocationId("")
_NO_JOB: Final = JobId("")


class TaskSlotState(Enum):
    """A slot as its TaskManager sees it."""

    FREE = "FREE"
    #: offered to the job's JobMaster, no answer yet
    ALLOCATED = "ALLOCATED"
    #: the JobMaster accepted it
    ACTIVE = "ACTIVE"


@dataclass(frozen=True, slots=True)
class TaskSlot:
    """One slot."""

    index: int
    state: TaskSlotState = TaskSlotState.FREE
    #: empty when FREE
    allocation_id: AllocationId = _NO_ALLOCATION
    job_id: JobId = _NO_JOB
    #: time of the last change of state
    since_ms: int = 0


@dataclass(frozen=True, slots=True)
class TaskSlotTable:
    """All slots of a TaskManager; every method returns a new value."""

    slots: tuple[TaskSlot, ...]

    @classmethod
    def of_size(cls, slots: int) -> TaskSlotTable:
        """A table of free slots."""
        return cls(tuple(TaskSlot(index) for index in range(slots)))

    def statuses(self) -> tuple[SlotStatus, ...]:
        """The slot report of a heartbeat."""
        return tuple(SlotStatus(slot.index, slot.allocation_id, slot.job_id) for slot in self.slots)

    def find(self, allocation_id: AllocationId) -> TaskSlot | None:
        """The slot of an allocation, if any."""
        if not allocation_id:
            return None
        return next((slot for slot in self.slots if slot.allocation_id == allocation_id), None)

    def of_job(self, job_id: JobId) -> tuple[TaskSlot, ...]:
        """The slots a job has here, accepted or not."""
        return tuple(slot for slot in self.slots if slot.allocation_id and slot.job_id == job_id)

    def jobs(self) -> tuple[JobId, ...]:
        """The jobs that have slots here, in order of slot."""
        taken = (slot.job_id for slot in self.slots if slot.state is not TaskSlotState.FREE)
        return tuple(dict.fromkeys(taken))

    def not_accepted(self, job_id: JobId) -> tuple[TaskSlot, ...]:
        """The slots to offer (again) to a job's JobMaster."""
        return tuple(slot for slot in self.of_job(job_id) if slot.state is TaskSlotState.ALLOCATED)

    def all_free(self, indexes: Iterable[int]) -> bool:
        """Whether nobody has any of these slots."""
        return all(self.slots[index].state is TaskSlotState.FREE for index in indexes)

    def allocate(
        self, slot_index: int, job_id: JobId, allocation_id: AllocationId, at_ms: int
    ) -> TaskSlotTable:
        """Give a slot to a job.  Idempotent by allocation id.

        Raises
        ------
        SlotUnavailable
            No such slot, another allocation has it, or the allocation has another slot.
        """
        if not 0 <= slot_index < len(self.slots):
            raise SlotUnavailable(f"slot {slot_index} does not exist; this TaskManager has {len(self.slots)}")
        holder = self.find(allocation_id)
        if holder is not None:
            if holder.index == slot_index and holder.job_id == job_id:
                return self
            raise SlotUnavailable(
                f"allocation {allocation_id} has slot {holder.index} for job {holder.job_id}; use a new id"
            )
        slot = self.slots[slot_index]
        if slot.state is not TaskSlotState.FREE:
            raise SlotUnavailable(
                f"slot {slot_index} belongs to job {slot.job_id} (allocation {slot.allocation_id}); "
                "ask for another slot"
            )
        return self._put(TaskSlot(slot_index, TaskSlotState.ALLOCATED, allocation_id, job_id, at_ms))

    def activate(self, allocation_id: AllocationId, at_ms: int) -> TaskSlotTable:
        """The JobMaster accepted the slot.  Idempotent.

        Raises
        ------
        SlotUnavailable
            The slot was freed in the meantime.
        """
        slot = self.find(allocation_id)
        if slot is None:
            raise SlotUnavailable(f"allocation {allocation_id} is not known here any more; ask again")
        if slot.state is TaskSlotState.ACTIVE:
            return self
        return self._put(replace(slot, state=TaskSlotState.ACTIVE, since_ms=at_ms))

    def offered_anew(self, at_ms: int) -> TaskSlotTable:
        """Another master leads: no JobMaster of it has accepted any slot yet."""
        return TaskSlotTable(
            tuple(
                replace(slot, state=TaskSlotState.ALLOCATED, since_ms=at_ms)
                if slot.state is TaskSlotState.ACTIVE
                else slot
                for slot in self.slots
            )
        )

    def free(self, allocation_id: AllocationId, at_ms: int) -> TaskSlotTable:
        """Take a slot back.  Idempotent; :meth:`find` says beforehand what it is."""
        slot = self.find(allocation_id)
        return self if slot is None else self._put(TaskSlot(slot.index, since_ms=at_ms))

    def _put(self, slot: TaskSlot) -> TaskSlotTable:
        return TaskSlotTable(tuple(slot if old.index == slot.index else old for old in self.slots))
