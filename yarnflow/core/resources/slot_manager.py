"""Who gets which slot: the ResourceManager's decider.

Knows the registered TaskManagers, their slots, and how many slots each job wants; decides
which free slot to request for which job, and repairs its view from heartbeat reports.  It
never calls a TaskManager: :class:`RequestSlot` and :class:`FreeSlot` are for the shell to
perform, and every answer comes back as a method call.

A slot is FREE, PENDING (requested, the TaskManager has not confirmed) or ALLOCATED.  Two
heartbeats in a row must contradict an allocated slot before it is given up, because one
report may have been written before the allocation reached the TaskManager.

The other two owners of slots are :mod:`yarnflow.core.resources.slot_pool` (one job's) and
:mod:`yarnflow.core.resources.slot_table` (one TaskManager's).

Flink counterparts: ``FineGrainedSlotManager``, ``DefaultSlotStatusSyncer``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Final

from yarnflow.core.ids import AllocationId, JobId, TaskManagerId
from yarnflow.core.messages import SlotStatus
from yarnflow.core.resources.workers import Demand
from yarnflow.errors import InvariantViolated, TaskManagerNotFound

#: consecutive reports that must contradict an ALLOCATED slot before it counts as lost
CONTRADICTIONS_TO_LOSE: Final = 2
_NO_ALLOCATION: Final = AllocationId("")
_NO_JOB: Final = JobId("")


class SlotState(Enum):
    """A slot as the ResourceManager sees it."""

    FREE = "FREE"
    #: requested from the TaskManager, not confirmed
    PENDING = "PENDING"
    ALLOCATED = "ALLOCATED"


@dataclass(frozen=True, slots=True)
class Slot:
    """One slot of a TaskManager."""

    index: int
    state: SlotState = SlotState.FREE
    #: empty when FREE
    allocation_id: AllocationId = _NO_ALLOCATION
    job_id: JobId = _NO_JOB
    #: time of the last change of state
    since_ms: int = 0
    #: FREE only: not to be requested before this time, because the last request failed
    not_before_ms: int = 0
    #: ALLOCATED only: reports in a row that did not show the allocation
    contradictions: int = 0
    #: ALLOCATED only: given by an earlier leader, to a job that has not asked for slots here yet
    unclaimed: bool = False


@dataclass(frozen=True, slots=True)
class TaskManagerSlots:
    """A registered TaskManager."""

    task_manager_id: TaskManagerId
    #: ``host:port`` of its Thrift server
    address: str
    slots: tuple[Slot, ...]
    registered_ms: int = 0

    @property
    def free(self) -> int:
        """Slots nobody has or was promised."""
        return sum(slot.state is SlotState.FREE for slot in self.slots)

    @property
    def idle_since_ms(self) -> int:
        """Since when all slots are free; -1 = some are not."""
        if self.free < len(self.slots):
            return -1
        return max((slot.since_ms for slot in self.slots), default=self.registered_ms)


# --- effects ----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RequestSlot:
    """Call ``request_slot`` at the TaskManager; post the outcome back."""

    task_manager_id: TaskManagerId
    address: str
    slot_index: int
    job_id: JobId
    allocation_id: AllocationId


@dataclass(frozen=True, slots=True)
class FreeSlot:
    """Call ``free_slot`` at the TaskManager; a failure may be ignored, the next report repairs it."""

    task_manager_id: TaskManagerId
    address: str
    allocation_id: AllocationId


@dataclass(frozen=True, slots=True)
class AllocationLost:
    """Tell the job's JobMaster that a slot it has is gone."""

    task_manager_id: TaskManagerId
    job_id: JobId
    allocation_id: AllocationId
    reason: str


SlotEffect = RequestSlot | FreeSlot | AllocationLost


@dataclass(frozen=True, slots=True)
class SlotManager:
    """All slots of a cluster; every method returns a new value."""

    task_managers: Mapping[TaskManagerId, TaskManagerSlots] = field(default_factory=dict)
    #: job → slots it wants, in order of first declaration
    requirements: Mapping[JobId, int] = field(default_factory=dict)

    # --- reading ------------------------------------------------------------

    @property
    def slots_total(self) -> int:
        """Slots of all TaskManagers."""
        return sum(len(tm.slots) for tm in self.task_managers.values())

    @property
    def slots_free(self) -> int:
        """Slots nobody has or was promised."""
        return sum(tm.free for tm in self.task_managers.values())

    def slots_of(self, job_id: JobId) -> int:
        """Slots a job has or was promised."""
        return sum(
            slot.job_id == job_id and slot.state is not SlotState.FREE
            for tm in self.task_managers.values()
            for slot in tm.slots
        )

    def missing(self) -> dict[JobId, int]:
        """Job → slots it still wants and no free slot was promised for; only jobs that lack some."""
        # once through all slots and not once for each job: it is asked whenever a TaskManager comes
        held = Counter(
            slot.job_id
            for tm in self.task_managers.values()
            for slot in tm.slots
            if slot.state is not SlotState.FREE
        )
        lacks = {job_id: wanted - held[job_id] for job_id, wanted in self.requirements.items()}
        return {job_id: count for job_id, count in lacks.items() if count > 0}

    def demand(self, slots_per_worker: int) -> Demand:
        """Which TaskManagers the jobs do not need, and how many more they do.

        Free slots that :meth:`match` may not give away yet count for the jobs that lack some.

        Parameters
        ----------
        slots_per_worker : int
            Slots a new worker brings, as long as no TaskManager shows it.
        """
        lacking = sum(self.missing().values())
        idle: dict[TaskManagerId, int] = {}
        for tm in self._fullest_last():
            if tm.idle_since_ms >= 0 and lacking <= 0:
                idle[tm.task_manager_id] = tm.idle_since_ms
            lacking -= tm.free
        per_worker = max((len(tm.slots) for tm in self.task_managers.values()), default=slots_per_worker)
        return Demand(-(-max(lacking, 0) // per_worker), idle)

    # --- TaskManagers -------------------------------------------------------

    def register_task_manager(
        self,
        task_manager_id: TaskManagerId,
        address: str,
        slots: int,
        at_ms: int,
        allocations: Sequence[SlotStatus] = (),
    ) -> SlotManager:
        """A TaskManager joins with ``slots`` slots.  Idempotent by id.

        Parameters
        ----------
        allocations : sequence of SlotStatus
            What it holds already, given by an earlier leader: those slots are their jobs' from the
            first moment.  A job that is not known (yet) keeps them for a while, see
            :meth:`expire_unclaimed`.
        """
        if task_manager_id in self.task_managers:
            return self
        held = {status.index: status for status in allocations if status.allocation_id and status.job_id}
        joined = TaskManagerSlots(
            task_manager_id,
            address,
            tuple(
                self._adopted(held[index], at_ms) if index in held else Slot(index, since_ms=at_ms)
                for index in range(slots)
            ),
            at_ms,
        )
        return replace(self, task_managers={**self.task_managers, task_manager_id: joined})

    def _adopted(self, status: SlotStatus, at_ms: int) -> Slot:
        allocation_id, job_id = AllocationId(status.allocation_id), JobId(status.job_id)
        if self._find(allocation_id) is not None:
            return Slot(status.index, since_ms=at_ms)  # it is somebody else's; the next report repairs it
        unclaimed = job_id not in self.requirements
        return Slot(status.index, SlotState.ALLOCATED, allocation_id, job_id, at_ms, unclaimed=unclaimed)

    def expire_unclaimed(self, at_ms: int, grace_ms: int) -> tuple[SlotManager, tuple[FreeSlot, ...]]:
        """Take back slots of an earlier leader whose job has not turned up for ``grace_ms``."""
        manager = self
        effects: list[FreeSlot] = []
        for tm in self.task_managers.values():
            for slot in tm.slots:
                if slot.unclaimed and at_ms - slot.since_ms >= grace_ms:
                    manager = manager._put(tm.task_manager_id, Slot(slot.index, since_ms=at_ms))
                    effects.append(FreeSlot(tm.task_manager_id, tm.address, slot.allocation_id))
        return manager, tuple(effects)

    def unregister_task_manager(
        self, task_manager_id: TaskManagerId, reason: str
    ) -> tuple[SlotManager, tuple[AllocationLost, ...]]:
        """A TaskManager is gone, and all its slots with it.  Idempotent."""
        left = dict(self.task_managers)
        gone = left.pop(task_manager_id, None)
        if gone is None:
            return self, ()
        lost = tuple(
            AllocationLost(task_manager_id, slot.job_id, slot.allocation_id, reason)
            for slot in gone.slots
            if slot.state is not SlotState.FREE
        )
        return replace(self, task_managers=left), lost

    # --- jobs ---------------------------------------------------------------

    def declare_requirements(self, job_id: JobId, slots: int) -> SlotManager:
        """A job wants ``slots`` slots in all; 0 withdraws.  Slots it has already are kept."""
        wanted = dict(self.requirements)
        if slots > 0:
            wanted[job_id] = slots
        else:
            wanted.pop(job_id, None)
        manager = replace(self, requirements=wanted)
        if slots <= 0 or job_id in self.requirements:
            return manager
        for tm in self.task_managers.values():
            for slot in tm.slots:
                if slot.unclaimed and slot.job_id == job_id:
                    manager = manager._put(tm.task_manager_id, replace(slot, unclaimed=False))
        return manager

    def free_job(self, job_id: JobId, at_ms: int) -> tuple[SlotManager, tuple[FreeSlot, ...]]:
        """A job is over: withdraw its requirements and take all its slots back."""
        manager = self.declare_requirements(job_id, 0)
        effects: list[FreeSlot] = []
        for tm in self.task_managers.values():
            for slot in tm.slots:
                if slot.state is not SlotState.FREE and slot.job_id == job_id:
                    effects.append(FreeSlot(tm.task_manager_id, tm.address, slot.allocation_id))
                    manager = manager._put(tm.task_manager_id, Slot(slot.index, since_ms=at_ms))
        return manager, tuple(effects)

    def free_slot(self, allocation_id: AllocationId, at_ms: int) -> tuple[SlotManager, tuple[FreeSlot, ...]]:
        """A job gives one slot back.  Unknown allocations are ignored."""
        found = self._find(allocation_id)
        if found is None:
            return self, ()
        tm, slot = found
        manager = self._put(tm.task_manager_id, Slot(slot.index, since_ms=at_ms))
        return manager, (FreeSlot(tm.task_manager_id, tm.address, allocation_id),)

    # --- requests -----------------------------------------------------------

    def match(
        self, at_ms: int, new_allocation_ids: Iterator[AllocationId]
    ) -> tuple[SlotManager, tuple[RequestSlot, ...]]:
        """Promise free slots to the jobs that lack some.

        Jobs are served in order of their declaration; the TaskManager with the most free slots
        is filled first, then the next, ties by id: few TaskManagers mean few executors.

        Parameters
        ----------
        at_ms : int
            Now; slots whose last request failed stay out until their time.
        new_allocation_ids : iterator
            One fresh id is taken per request.
        """
        missing = self.missing()
        if not missing:
            return self, ()
        available = [
            (tm, slot)
            for tm in self._fullest_last()
            for slot in tm.slots
            if slot.state is SlotState.FREE and slot.not_before_ms <= at_ms
        ]
        manager = self
        effects: list[RequestSlot] = []
        for job_id, lacking in missing.items():
            taken, available = available[:lacking], available[lacking:]
            for tm, slot in taken:
                allocation_id = next(new_allocation_ids)
                pending = Slot(slot.index, SlotState.PENDING, allocation_id, job_id, at_ms)
                manager = manager._put(tm.task_manager_id, pending)
                effects.append(
                    RequestSlot(tm.task_manager_id, tm.address, slot.index, job_id, allocation_id)
                )
        return manager, tuple(effects)

    def request_confirmed(self, allocation_id: AllocationId, at_ms: int) -> SlotManager:
        """The TaskManager has the request.  Late answers about other allocations are ignored."""
        found = self._find(allocation_id)
        if found is None or found[1].state is not SlotState.PENDING:
            return self
        tm, slot = found
        return self._put(tm.task_manager_id, replace(slot, state=SlotState.ALLOCATED, since_ms=at_ms))

    def request_failed(
        self, allocation_id: AllocationId, at_ms: int, retry_after_ms: int = 1000
    ) -> SlotManager:
        """The TaskManager refused or did not answer; the slot stays out for ``retry_after_ms``."""
        found = self._find(allocation_id)
        if found is None or found[1].state is not SlotState.PENDING:
            return self
        tm, slot = found
        freed = Slot(slot.index, since_ms=at_ms, not_before_ms=at_ms + retry_after_ms)
        return self._put(tm.task_manager_id, freed)

    def expire_pending(self, at_ms: int, timeout_ms: int) -> tuple[SlotManager, tuple[FreeSlot, ...]]:
        """Give up requests that were not confirmed for ``timeout_ms``.

        The TaskManager may have obeyed without our knowing, hence the effects.
        """
        manager = self
        effects: list[FreeSlot] = []
        for tm in self.task_managers.values():
            for slot in tm.slots:
                if slot.state is SlotState.PENDING and at_ms - slot.since_ms >= timeout_ms:
                    manager = manager._put(tm.task_manager_id, Slot(slot.index, since_ms=at_ms))
                    effects.append(FreeSlot(tm.task_manager_id, tm.address, slot.allocation_id))
        return manager, tuple(effects)

    # --- reconciliation -----------------------------------------------------

    def reported(
        self, task_manager_id: TaskManagerId, statuses: Sequence[SlotStatus], at_ms: int
    ) -> tuple[SlotManager, tuple[FreeSlot | AllocationLost, ...]]:
        """Compare a heartbeat's slot report with our view, and repair.

        ================  =====================  ============================================
        ours              reported               what happens
        ================  =====================  ============================================
        PENDING a         a                      confirmed: ALLOCATED
        any               b, unknown here        FreeSlot(b): nobody would ever use it
        ALLOCATED a       free or another        second time in a row: ours is freed, the job
                                                 told; call :meth:`match` afterwards
        PENDING a         free                   nothing: the request may be on its way
        ================  =====================  ============================================

        Raises
        ------
        TaskManagerNotFound
            It must register again.
        """
        tm = self.task_managers.get(task_manager_id)
        if tm is None:
            raise TaskManagerNotFound(f"TaskManager {task_manager_id} is not registered; register again")
        shown = {status.index: status.allocation_id for status in statuses}
        manager = self
        effects: list[FreeSlot | AllocationLost] = []
        for slot in tm.slots:
            if slot.index not in shown:
                continue
            theirs = AllocationId(shown[slot.index])
            if theirs and theirs != slot.allocation_id:
                effects.append(FreeSlot(task_manager_id, tm.address, theirs))
            if slot.state is SlotState.PENDING and theirs == slot.allocation_id:
                manager = manager.request_confirmed(slot.allocation_id, at_ms)
            elif slot.state is SlotState.ALLOCATED:
                seen = 0 if theirs == slot.allocation_id else slot.contradictions + 1
                if seen == slot.contradictions:
                    continue  # the usual report: nothing to copy
                if seen < CONTRADICTIONS_TO_LOSE:
                    manager = manager._put(task_manager_id, replace(slot, contradictions=seen))
                else:
                    manager = manager._put(task_manager_id, Slot(slot.index, since_ms=at_ms))
                    reason = f"TaskManager {task_manager_id} does not have the allocation any more"
                    effects.append(AllocationLost(task_manager_id, slot.job_id, slot.allocation_id, reason))
        return manager, tuple(effects)

    # --- helpers ------------------------------------------------------------

    def _fullest_last(self) -> list[TaskManagerSlots]:
        """In the order in which they are filled."""
        return sorted(self.task_managers.values(), key=lambda tm: (-tm.free, tm.task_manager_id))

    def _find(self, allocation_id: AllocationId) -> tuple[TaskManagerSlots, Slot] | None:
        for tm in self.task_managers.values():
            for slot in tm.slots:
                if slot.state is not SlotState.FREE and slot.allocation_id == allocation_id:
                    return tm, slot
        return None

    def _put(self, task_manager_id: TaskManagerId, slot: Slot) -> SlotManager:
        tm = self.task_managers[task_manager_id]
        slots = tuple(slot if old.index == slot.index else old for old in tm.slots)
        return replace(self, task_managers={**self.task_managers, task_manager_id: replace(tm, slots=slots)})


def check_invariants(manager: SlotManager) -> None:
    """Raise :class:`InvariantViolated` when a slot or an allocation is used twice or half."""
    seen: set[AllocationId] = set()
    for tm in manager.task_managers.values():
        if [slot.index for slot in tm.slots] != list(range(len(tm.slots))):
            raise InvariantViolated(f"TaskManager {tm.task_manager_id}: wrong slot indexes in {tm.slots}")
        for slot in tm.slots:
            taken = slot.state is not SlotState.FREE
            if taken != bool(slot.allocation_id) or taken != bool(slot.job_id):
                raise InvariantViolated(f"TaskManager {tm.task_manager_id}: slot {slot} contradicts itself")
            claimed = slot.state is not SlotState.ALLOCATED or slot.job_id in manager.requirements
            if slot.unclaimed and claimed:
                raise InvariantViolated(f"TaskManager {tm.task_manager_id}: slot {slot} has a job")
            if slot.allocation_id in seen:
                raise InvariantViolated(f"allocation {slot.allocation_id} is used for two slots")
            if taken:
                seen.add(slot.allocation_id)
