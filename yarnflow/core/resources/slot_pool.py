"""The slots one job has: the JobMaster's side.

Decides which offered slots a job keeps and what is lost with a TaskManager.  It never asks
for slots (the JobMaster declares ``missing`` to the ResourceManager) and does not know which
subtask runs where (:mod:`yarnflow.core.job.execution_graph`).

Flink counterpart: ``DefaultDeclarativeSlotPool``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from yarnflow.core.ids import AllocationId, JobId, TaskManagerId
from yarnflow.core.messages import SlotOffer


@dataclass(frozen=True, slots=True)
class SlotPool:
    """The accepted slots of one job; every method returns a new value."""

    job_id: JobId
    #: slots the job wants
    required: int = 0
    #: accepted offers, in order of acceptance
    slots: tuple[SlotOffer, ...] = ()

    @property
    def missing(self) -> int:
        """Slots the job still lacks."""
        return max(0, self.required - len(self.slots))

    @property
    def is_complete(self) -> bool:
        """The job has all the slots it wants."""
        return self.missing == 0

    @property
    def task_manager_ids(self) -> tuple[TaskManagerId, ...]:
        """The TaskManager of each slot, sorted, one entry per slot (``ExecutionGraph.assign_slots``)."""
        return tuple(sorted(slot.task_manager_id for slot in self.slots))

    def offer(self, offers: Iterable[SlotOffer]) -> tuple[SlotPool, tuple[AllocationId, ...]]:
        """Take offered slots up to ``required``.

        Returns
        -------
        tuple
            The new pool and the accepted allocations; an offer the pool has already is accepted
            again, so that a repeated call gets the same answer.
        """
        pool = self
        accepted: list[AllocationId] = []
        for offer in offers:
            if any(slot.allocation_id == offer.allocation_id for slot in pool.slots):
                accepted.append(offer.allocation_id)
            elif pool.missing:
                pool = replace(pool, slots=(*pool.slots, offer))
                accepted.append(offer.allocation_id)
        return pool, tuple(accepted)

    def task_manager_lost(self, task_manager_id: str) -> tuple[SlotPool, tuple[SlotOffer, ...]]:
        """A TaskManager is gone; returns its slots too."""
        return self._without(lambda slot: slot.task_manager_id == task_manager_id)

    def release(self, allocation_ids: Iterable[AllocationId]) -> tuple[SlotPool, tuple[SlotOffer, ...]]:
        """Give slots up; returns the ones the pool had.  Unknown allocations are ignored."""
        wanted = frozenset(allocation_ids)
        return self._without(lambda slot: slot.allocation_id in wanted)

    def _without(self, gone: Callable[[SlotOffer], bool]) -> tuple[SlotPool, tuple[SlotOffer, ...]]:
        kept = tuple(slot for slot in self.slots if not gone(slot))
        return replace(self, slots=kept), tuple(slot for slot in self.slots if gone(slot))
