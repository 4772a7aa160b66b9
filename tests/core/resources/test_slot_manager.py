"""The ResourceManager's slot decisions: scenarios, and that no slot is ever given twice."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from yarnflow.core.ids import AllocationId, JobId, TaskManagerId
from yarnflow.core.messages import SlotStatus
from yarnflow.core.resources.slot_manager import (
    AllocationLost,
    FreeSlot,
    RequestSlot,
    Slot,
    SlotManager,
    SlotState,
    TaskManagerSlots,
    check_invariants,
)
from yarnflow.core.resources.workers import Demand
from yarnflow.errors import TaskManagerNotFound

A, B = TaskManagerId("tm-a"), TaskManagerId("tm-b")
J, K = JobId("j" * 32), JobId("k" * 32)


def ids() -> Iterator[AllocationId]:
    number = 0
    while True:
        number += 1
        yield AllocationId(f"alloc-{number}")


def cluster(**slots: int) -> SlotManager:
    manager = SlotManager()
    for name, count in slots.items():
        manager = manager.register_task_manager(TaskManagerId(f"tm-{name}"), f"{name}:1", count, 0)
    return manager


def states(manager: SlotManager, name: TaskManagerId) -> list[str]:
    return [slot.state.value for slot in manager.task_managers[name].slots]


def test_a_job_gets_what_it_declares() -> None:
    """1. two slots are requested 2. both confirmed 3. matching again asks for nothing."""
    manager, effects = cluster(a=3).declare_requirements(J, 2).match(10, ids())
    assert effects == (
        RequestSlot(A, "a:1", 0, J, AllocationId("alloc-1")),
        RequestSlot(A, "a:1", 1, J, AllocationId("alloc-2")),
    )
    assert states(manager, A) == ["PENDING", "PENDING", "FREE"]
    for effect in effects:
        manager = manager.request_confirmed(effect.allocation_id, 11)
    assert states(manager, A) == ["ALLOCATED", "ALLOCATED", "FREE"]
    assert (manager.slots_total, manager.slots_free, manager.slots_of(J)) == (3, 1, 2)
    assert manager.missing() == {}
    assert manager.match(12, ids()) == (manager, ())


def test_the_task_manager_with_most_free_slots_is_filled_first() -> None:
    _, effects = cluster(a=2, b=3, c=3).declare_requirements(J, 4).match(0, ids())
    assert [(effect.task_manager_id, effect.slot_index) for effect in effects] == [
        ("tm-b", 0), ("tm-b", 1), ("tm-b", 2), ("tm-c", 0)
    ]  # fmt: skip


def test_the_first_job_is_served_first_and_the_rest_is_missing() -> None:
    manager, effects = cluster(a=3).declare_requirements(J, 2).declare_requirements(K, 2).match(0, ids())
    assert [effect.job_id for effect in effects] == [J, J, K]
    assert manager.missing() == {K: 1}
    manager = manager.register_task_manager(B, "b:1", 2, 5)
    manager, effects = manager.match(6, iter([AllocationId("next")]))
    assert [(effect.task_manager_id, effect.job_id) for effect in effects] == [(B, K)]


def test_registering_again_keeps_the_slots() -> None:
    manager, _ = cluster(a=1).declare_requirements(J, 1).match(0, ids())
    assert manager.register_task_manager(A, "a:1", 1, 9) == manager


def test_a_lost_task_manager_loses_its_allocations_and_they_are_missing_again() -> None:
    manager, _ = cluster(a=2).declare_requirements(J, 1).match(0, ids())
    manager, lost = manager.unregister_task_manager(A, "heartbeat timed out")
    assert lost == (AllocationLost(A, J, AllocationId("alloc-1"), "heartbeat timed out"),)
    assert manager.missing() == {J: 1}
    assert manager.unregister_task_manager(A, "again") == (manager, ())


def test_a_job_that_is_over_frees_all_its_slots() -> None:
    manager, _ = cluster(a=2, b=1).declare_requirements(J, 2).declare_requirements(K, 1).match(0, ids())
    manager, effects = manager.free_job(J, 5)
    assert {effect.allocation_id for effect in effects} == {"alloc-1", "alloc-2"}
    assert manager.requirements == {K: 1} and manager.slots_of(K) == 1 and manager.slots_free == 2


def test_a_refused_slot_stays_out_for_a_while() -> None:
    """1. a request fails 2. an immediate match leaves the slot alone 3. a later one takes it."""
    manager, _ = cluster(a=1).declare_requirements(J, 1).match(0, ids())
    manager = manager.request_failed(AllocationId("alloc-1"), 10, retry_after_ms=100)
    assert manager.match(109, ids()) == (manager, ())
    _, effects = manager.match(110, ids())
    assert len(effects) == 1


def test_late_answers_change_nothing() -> None:
    manager, _ = cluster(a=1).declare_requirements(J, 1).match(0, ids())
    confirmed = manager.request_confirmed(AllocationId("alloc-1"), 1)
    assert confirmed.request_failed(AllocationId("alloc-1"), 2) == confirmed
    assert confirmed.request_confirmed(AllocationId("alloc-9"), 2) == confirmed
    assert confirmed.free_slot(AllocationId("alloc-9"), 2) == (confirmed, ())


def test_a_request_without_answer_expires_and_is_taken_back() -> None:
    manager, _ = cluster(a=1).declare_requirements(J, 1).match(100, ids())
    assert manager.expire_pending(199, 100) == (manager, ())
    manager, effects = manager.expire_pending(200, 100)
    assert effects == (FreeSlot(A, "a:1", AllocationId("alloc-1")),)
    assert manager.missing() == {J: 1}


def test_demand_names_the_task_managers_no_job_needs_and_how_many_more_they_need() -> None:
    manager, _ = cluster(a=2, b=1).declare_requirements(J, 1).match(0, ids())
    assert manager.demand(1) == Demand(0, {B: 0})
    assert manager.declare_requirements(K, 9).demand(1) == Demand(4, {})  # 7 slots beyond the 2 free ones
    assert SlotManager().declare_requirements(K, 9).demand(4) == Demand(3, {})
    manager, _ = manager.free_job(J, 60)
    assert manager.demand(1) == Demand(0, {A: 60, B: 0})


def test_free_slots_that_may_not_be_given_away_yet_count_for_those_who_lack_some() -> None:
    manager, effects = cluster(a=2, b=1).declare_requirements(J, 2).match(0, ids())
    for effect in effects:
        manager = manager.request_failed(effect.allocation_id, 5)
    assert manager.demand(1) == Demand(0, {B: 0})
    assert manager.declare_requirements(K, 3).demand(1) == Demand(1, {})


# --- reports ----------------------------------------------------------------


def test_a_report_confirms_a_pending_slot() -> None:
    manager, _ = cluster(a=1).declare_requirements(J, 1).match(0, ids())
    manager, effects = manager.reported(A, [SlotStatus(0, "alloc-1", J)], 5)
    assert (states(manager, A), effects) == (["ALLOCATED"], ())


def test_a_report_that_crossed_the_request_is_ignored() -> None:
    manager, _ = cluster(a=1).declare_requirements(J, 1).match(0, ids())
    assert manager.reported(A, [SlotStatus(0)], 5) == (manager, ())


def test_an_allocation_nobody_knows_is_freed() -> None:
    manager, effects = cluster(a=2).reported(A, [SlotStatus(0), SlotStatus(1, "old", K)], 5)
    assert effects == (FreeSlot(A, "a:1", AllocationId("old")),)
    assert states(manager, A) == ["FREE", "FREE"]


def test_an_allocated_slot_is_lost_after_two_contradicting_reports_in_a_row() -> None:
    """1. contradicted 2. confirmed: the count starts anew 3. contradicted twice: lost, matched again."""
    manager, _ = cluster(a=1).declare_requirements(J, 1).match(0, ids())
    manager = manager.request_confirmed(AllocationId("alloc-1"), 1)
    free, good = [SlotStatus(0)], [SlotStatus(0, "alloc-1", J)]
    for report in (free, good, free):
        manager, effects = manager.reported(A, report, 5)
        assert (states(manager, A), effects) == (["ALLOCATED"], ())
    manager, effects = manager.reported(A, free, 6)
    assert [type(effect) for effect in effects] == [AllocationLost]
    assert effects[0].allocation_id == "alloc-1"
    _, again = manager.match(7, ids())
    assert len(again) == 1


# --- slots given by an earlier leader ---


def held(*jobs: tuple[int, JobId]) -> tuple[SlotStatus, ...]:
    return tuple(SlotStatus(index, f"old-{index}", job_id) for index, job_id in jobs)


def test_slots_of_an_earlier_leader_are_their_jobs_from_the_first_moment() -> None:
    manager = SlotManager().declare_requirements(J, 2)
    manager = manager.register_task_manager(A, "a:1", 3, 5, held((0, J), (2, J)))
    assert states(manager, A) == ["ALLOCATED", "FREE", "ALLOCATED"]
    assert manager.missing() == {} and manager.match(6, ids())[1] == ()
    manager, effects = manager.reported(A, held((0, J), (2, J)), 7)
    assert effects == (), "a known allocation is freed"
    assert manager.expire_unclaimed(10**9, 20)[1] == ()


def test_slots_of_a_job_nobody_knows_are_kept_for_a_while() -> None:
    manager = SlotManager().register_task_manager(A, "a:1", 2, 0, held((0, J), (1, K)))
    manager = manager.declare_requirements(K, 1)
    check_invariants(manager)
    assert manager.expire_unclaimed(19, 20) == (manager, ())
    assert manager.reported(A, held((0, J), (1, K)), 19)[1] == ()
    manager, effects = manager.expire_unclaimed(20, 20)
    assert effects == (FreeSlot(A, "a:1", AllocationId("old-0")),)
    assert states(manager, A) == ["FREE", "ALLOCATED"]


def test_an_allocation_is_adopted_once() -> None:
    manager = SlotManager().register_task_manager(A, "a:1", 1, 0, held((0, J)))
    manager = manager.register_task_manager(B, "b:1", 1, 0, held((0, J)))
    check_invariants(manager)
    assert states(manager, B) == ["FREE"]


def test_a_report_of_an_unknown_task_manager_makes_it_register_again() -> None:
    with pytest.raises(TaskManagerNotFound, match="tm-a is not registered; register again"):
        SlotManager().reported(A, [], 0)


class AgainstTaskManagers(RuleBasedStateMachine):
    """The manager against simulated TaskManagers, whose answers and reports come late or never."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0
        self.manager = SlotManager()
        self.ids = ids()
        #: the truth on the other side: (TaskManager, slot) → (allocation, job)
        self.truth: dict[tuple[TaskManagerId, int], tuple[AllocationId, JobId]] = {}
        self.requests: list[RequestSlot] = []

    def perform(self, effects: tuple[object, ...]) -> None:
        for effect in effects:
            if isinstance(effect, RequestSlot):
                self.requests.append(effect)
            elif isinstance(effect, FreeSlot):
                self.truth = {k: v for k, v in self.truth.items() if v[0] != effect.allocation_id}

    @rule(name=st.sampled_from([A, B]), slots=st.integers(1, 3))
    def register(self, name: TaskManagerId, slots: int) -> None:
        self.manager = self.manager.register_task_manager(name, str(name), slots, self.now)

    @rule(name=st.sampled_from([A, B]))
    def lose(self, name: TaskManagerId) -> None:
        self.manager, _ = self.manager.unregister_task_manager(name, "lost")
        self.truth = {key: value for key, value in self.truth.items() if key[0] != name}
        self.requests = [request for request in self.requests if request.task_manager_id != name]

    @rule(job=st.sampled_from([J, K]), slots=st.integers(0, 4))
    def declare(self, job: JobId, slots: int) -> None:
        self.manager = self.manager.declare_requirements(job, slots)

    @rule(job=st.sampled_from([J, K]))
    def end_job(self, job: JobId) -> None:
        self.manager, effects = self.manager.free_job(job, self.now)
        self.perform(effects)

    @rule()
    def match(self) -> None:
        before = self.manager
        self.manager, effects = self.manager.match(self.now, self.ids)
        for effect in effects:
            slot = before.task_managers[effect.task_manager_id].slots[effect.slot_index]
            assert slot.state is SlotState.FREE, "a slot that is not free was given away"
        for job, wanted in self.manager.requirements.items():
            assert self.manager.slots_of(job) <= max(wanted, before.slots_of(job))
        assert len({effect.allocation_id for effect in effects}) == len(effects)
        self.perform(effects)

    @rule(index=st.integers(0, 9), answer_arrives=st.booleans())
    def answer(self, index: int, answer_arrives: bool) -> None:
        if not self.requests:
            return
        request = self.requests.pop(index % len(self.requests))
        key = (request.task_manager_id, request.slot_index)
        if key in self.truth:
            self.manager = self.manager.request_failed(request.allocation_id, self.now)
            return
        self.truth[key] = (request.allocation_id, request.job_id)
        if answer_arrives:
            self.manager = self.manager.request_confirmed(request.allocation_id, self.now)

    def report(self, name: TaskManagerId) -> None:
        statuses = []
        for slot in self.manager.task_managers[name].slots:
            allocation_id, job_id = self.truth.get((name, slot.index), ("", ""))
            statuses.append(SlotStatus(slot.index, allocation_id, job_id))
        self.manager, effects = self.manager.reported(name, statuses, self.now)
        self.perform(effects)

    @rule(name=st.sampled_from([A, B]))
    def heartbeat(self, name: TaskManagerId) -> None:
        if name in self.manager.task_managers:
            self.report(name)

    @rule(ms=st.integers(1, 2000))
    def time_passes(self, ms: int) -> None:
        self.now += ms
        self.manager, effects = self.manager.expire_pending(self.now, 1500)
        self.perform(effects)

    @invariant()
    def consistent(self) -> None:
        check_invariants(self.manager)

    def teardown(self) -> None:
        """When all is quiet, a few reports make both sides agree."""
        while self.requests:
            self.answer(0, True)
        for _ in range(3):
            self.now += 1500
            self.manager, effects = self.manager.expire_pending(self.now, 1500)
            self.perform(effects)
            for name in tuple(self.manager.task_managers):
                self.report(name)
        ours = {
            (tm.task_manager_id, slot.index): (slot.allocation_id, slot.job_id)
            for tm in self.manager.task_managers.values()
            for slot in tm.slots
            if slot.state is not SlotState.FREE
        }
        assert ours == self.truth


TestAgainstTaskManagers = AgainstTaskManagers.TestCase
TestAgainstTaskManagers.settings = settings(max_examples=100, stateful_step_count=40, deadline=None)


def test_what_jobs_lack_is_found_in_one_pass_over_the_slots() -> None:
    """500 jobs and 1,000 TaskManagers that come one by one: a pass for each job took minutes in all."""
    passes = [0]

    class Counted(tuple[Slot, ...]):
        def __iter__(self) -> Iterator[Slot]:
            passes[0] += 1
            return super().__iter__()

    jobs = [JobId(f"{number:032x}") for number in range(50)]
    slots = Counted(
        Slot(index, SlotState.ALLOCATED, AllocationId(f"a-{index}"), jobs[index]) for index in range(40)
    )
    tm = TaskManagerId("tm")
    manager = SlotManager({tm: TaskManagerSlots(tm, "tm:1", slots)}, dict.fromkeys(jobs, 1))
    assert manager.missing() == dict.fromkeys(jobs[40:], 1)
    assert passes == [1]
