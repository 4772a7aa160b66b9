"""Slots, registration and the loss of TaskManagers, with fakes all around."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import TypeVar

import pytest

from yarnflow.core.ids import AllocationId, JobId, TaskManagerId
from yarnflow.core.messages import (
    Fence,
    LeaderInfo,
    MetricDump,
    SlotStatus,
    TaskManagerHeartbeat,
    TaskManagerRegistration,
)
from yarnflow.core.metrics import ScopeKind
from yarnflow.errors import (
    CallSuspended,
    RpcUnavailable,
    TaskManagerDismissed,
    TaskManagerNotFound,
    YarnflowError,
)
from yarnflow.runtime.leader_clock import LeaderClock
from yarnflow.runtime.mailbox import Mailbox, Work
from yarnflow.runtime.resourcemanager.resource_manager import ResourceManager, ResourceManagerSettings
from yarnflow.testing.gateways.factory import FakeGateways
from yarnflow.testing.gateways.task_executor import FakeTaskExecutor
from yarnflow.testing.resource_provider import FakeResourceProvider
from yarnflow.testing.runtime import InlineEffects, InlineMailbox, ManualClock

JOB = JobId("a" * 32)
LEADER = LeaderInfo(Fence("leader", 1), "jm:6123", "0", "default")


class Bench:
    """A ResourceManager and whom it tells."""

    def __init__(
        self,
        replaces_workers: bool = False,
        workers_expected: int = 0,
        redundant_workers: int = 0,
        max_workers: int | None = None,
        lead: bool = False,
        max_slots: int | None = None,
    ) -> None:
        self.clock = ManualClock()
        self.time = LeaderClock(self.clock)
        clock = self.time if lead else self.clock
        self.gateways = FakeGateways()
        self.provider = FakeResourceProvider(replaces_workers, max_workers)
        self.lost: list[tuple[str, str]] = []
        self.slots_lost: list[tuple[JobId, AllocationId]] = []
        self.refused: list[str] = []
        self.diagnosed: list[tuple[str, str]] = []
        self.waits: list[str] = []
        self.mailbox = InlineMailbox("rm", clock, may_run=self.time.is_certain if lead else None)
        self.measured: list[tuple[str, tuple[MetricDump, ...]]] = []
        ids = (f"{number:032x}" for number in itertools.count(1))
        self.manager = ResourceManager(
            ResourceManagerSettings(
                10_000, 2, 1_000, 5_000, 2, workers_expected, redundant_workers, max_slots=max_slots
            ),
            clock,
            self.mailbox,
            InlineEffects(),
            self.gateways,
            self.provider,
            lambda: LEADER,
            lambda: next(ids),
            lambda: self,
            lambda worker: not worker.startswith("theirs"),
            lambda task_manager_id, dumps: self.measured.append((task_manager_id, tuple(dumps))),
        )
        self.manager.start()
        self.run()

    def task_manager_lost(self, task_manager_id: TaskManagerId, reason: str) -> None:
        self.lost.append((task_manager_id, reason))

    def slot_lost(self, job_id: JobId, allocation_id: AllocationId, reason: str) -> None:
        self.slots_lost.append((job_id, allocation_id))

    def slots_unfulfillable(self, job_id: JobId, message: str) -> None:
        self.refused.append(message)

    def task_manager_diagnosed(self, task_manager_id: TaskManagerId, text: str) -> None:
        self.diagnosed.append((task_manager_id, text))

    def resources_wait(self, text: str) -> None:
        self.waits.append(text)

    def run(self, ms: int = 0) -> None:
        self.clock.advance(ms)
        self.mailbox.run_pending()

    def needs_slot_of(self, name: str) -> bool:
        """Whether a TaskManager that comes with a slot of the job is asked for another one."""
        self.manager.release_slots(JOB)
        self.run()
        self.register(name, held=(SlotStatus(0, f"held-{name}", JOB),))
        self.manager.declare_requirements(JOB, 1)
        self.run()
        asked = self.gateways.task_executors.get(f"{name}:1")
        return asked is not None and bool(asked.requests)

    def register(
        self, name: str, slots: int = 2, worker: str = "", held: tuple[SlotStatus, ...] = ()
    ) -> LeaderInfo:
        info = self.manager.register_task_manager(
            TaskManagerRegistration(
                TaskManagerId(name), f"{name}:1", "host", 1, slots, worker, allocations=held
            )
        )
        self.run()
        return info


def test_slots_go_to_the_job_that_wants_them() -> None:
    bench = Bench()
    bench.manager.declare_requirements(JOB, 3)
    assert bench.register("tm-1") == LEADER
    bench.register("tm-2")
    requests = [r for fake in bench.gateways.task_executors.values() for r in fake.requests]
    assert [(r.job_id, r.slot_index) for r in requests] == [(JOB, 0), (JOB, 1), (JOB, 0)]
    assert bench.manager.slot_counts() == (2, 4, 1)
    bench.manager.release_slots(JOB)
    bench.run()
    assert bench.manager.slot_counts() == (2, 4, 4)
    assert sum(len(fake.freed) for fake in bench.gateways.task_executors.values()) == 3


def test_a_task_manager_at_what_is_no_address_gives_no_slots_and_costs_no_master() -> None:
    bench = Bench()
    bench.gateways.bad_addresses = {"tm-1:1"}
    bench.register("tm-1", held=(SlotStatus(0, AllocationId("left"), JOB),))
    bench.manager.declare_requirements(JOB, 1)
    bench.run()
    bench.manager.release_slots(JOB)
    bench.run(5_000)
    bench.manager.connection_closed("tm-1")
    bench.run()
    bench.run(100)
    assert [name for name, _ in bench.lost] == ["tm-1"]


def test_a_refused_slot_is_tried_again() -> None:
    bench = Bench()
    fake = bench.gateways.task_executors.setdefault("tm-1:1", FakeTaskExecutor())
    fake.error = RpcUnavailable("nobody there")
    bench.manager.declare_requirements(JOB, 1)
    bench.register("tm-1")
    assert fake.requests == []
    fake.error = None
    bench.run(1_000)
    assert len(fake.requests) == 1


def test_workers_are_asked_for_only_when_slots_are_missing() -> None:
    bench = Bench(workers_expected=1)
    bench.register("tm-1", worker="w1")
    bench.manager.declare_requirements(JOB, 2)
    bench.run()
    assert bench.provider.requested == 0
    bench.manager.declare_requirements(JOB, 5)
    bench.run()
    assert bench.provider.requested == 2
    bench.manager.declare_requirements(JOB, 5)
    bench.run()
    assert bench.provider.requested == 2, "pending workers were asked for again"


def test_workers_that_are_being_started_are_waited_for() -> None:
    bench = Bench(replaces_workers=True, workers_expected=1)
    bench.manager.declare_requirements(JOB, 2)
    bench.run()
    assert bench.provider.requested == 0
    bench.register("tm-1", worker="w1")
    bench.provider.end("w1", -9)
    bench.run()
    assert bench.lost == [("tm-1", "its process ended with status -9")]
    assert bench.provider.requested == 0, "the provider replaces it by itself"


def test_a_closed_connection_of_a_dead_task_manager_is_noticed_at_once() -> None:
    bench = Bench()
    bench.register("tm-1")
    bench.gateways.task_executors["tm-1:1"] = fake = FakeTaskExecutor()
    fake.error = RpcUnavailable("connection refused")
    bench.manager.connection_closed("tm-1")
    bench.run()
    assert bench.lost == [], "one failed call is not enough"
    bench.run(100)
    assert [name for name, _reason in bench.lost] == ["tm-1"]
    assert bench.manager.slot_counts() == (0, 0, 0)


def test_a_closed_connection_of_a_living_task_manager_is_nothing() -> None:
    bench = Bench()
    bench.register("tm-1")
    bench.manager.connection_closed("tm-1")
    bench.run(1_000)
    assert bench.lost == []


def test_a_silent_task_manager_is_lost() -> None:
    bench = Bench()
    bench.register("tm-1")
    bench.register("tm-2")
    for _ in range(12):
        bench.run(1_000)
        bench.manager.heartbeat(TaskManagerHeartbeat(TaskManagerId("tm-2")))
    bench.run(1_000)
    assert bench.lost == [("tm-1", "no heartbeat for 10 s")]
    with pytest.raises(TaskManagerNotFound, match="must register again"):
        bench.manager.heartbeat(TaskManagerHeartbeat(TaskManagerId("tm-1")))


def test_a_slot_nobody_knows_is_freed() -> None:
    bench = Bench()
    bench.register("tm-1")
    bench.manager.heartbeat(TaskManagerHeartbeat(TaskManagerId("tm-1"), (SlotStatus(0, "old", JOB),)))
    bench.run()
    assert bench.gateways.task_executors["tm-1:1"].freed == ["old"]


def test_one_lost_slot_is_the_loss_of_one_slot() -> None:
    bench = Bench()
    bench.manager.declare_requirements(JOB, 2)
    bench.register("tm-1")
    first, second = (r.allocation_id for r in bench.gateways.task_executors["tm-1:1"].requests)
    for _ in range(2):  # one report may have been written before the allocation
        bench.manager.heartbeat(
            TaskManagerHeartbeat(TaskManagerId("tm-1"), (SlotStatus(0, first, JOB), SlotStatus(1)))
        )
        bench.run()
    assert bench.slots_lost == [(JOB, second)]
    assert bench.lost == []
    assert len(bench.gateways.task_executors["tm-1:1"].requests) == 3, "no other slot was asked for"


def test_a_replaced_worker_is_waited_for_whichever_sign_comes_first() -> None:
    bench = Bench(replaces_workers=True, workers_expected=1)
    bench.manager.declare_requirements(JOB, 2)
    bench.register("tm-1", worker="w1")
    bench.manager.disconnect_task_manager(TaskManagerId("tm-1"), "stopped")
    bench.run()
    bench.provider.end("w1", 0)
    bench.run(1_000)
    assert bench.provider.requested == 0
    bench.register("tm-2", worker="w2")
    assert bench.provider.requested == 0


def test_slots_that_can_never_be_had_are_said_at_once() -> None:
    bench = Bench(replaces_workers=True, workers_expected=1, max_workers=2)
    bench.register("tm-1", worker="w1")
    bench.manager.declare_requirements(JOB, 5)
    bench.run()
    assert bench.provider.requested == 1, "more workers than there can be were asked for"
    assert bench.refused == []
    bench.register("tm-2", worker="w2")
    assert bench.refused == [
        "needs 5 slots and this cluster can have no more than 4; lower the parallelism or raise "
        "taskmanager.numberOfTaskSlots or slotmanager.number-of-slots.max"
    ]


def test_no_more_slots_are_asked_for_than_there_may_be() -> None:
    """slotmanager.number-of-slots.max: of 5 slots, with 2 on a TaskManager, 4 are whole TaskManagers'."""
    bench = Bench(max_slots=5)
    bench.manager.declare_requirements(JOB, 9)
    bench.run()
    assert bench.provider.requests == [2]
    bench.register("tm-1", worker="w1")
    bench.register("tm-2", worker="w2")
    assert bench.refused == [
        "needs 9 slots and this cluster can have no more than 4; lower the parallelism or raise "
        "taskmanager.numberOfTaskSlots or slotmanager.number-of-slots.max"
    ]


# --- workers that come and go ------------------------------------------------


def test_workers_are_asked_for_in_one_request_and_withdrawn_when_the_need_falls() -> None:
    bench = Bench()
    bench.manager.declare_requirements(JOB, 5)
    bench.run()
    assert bench.provider.requests == [3]
    bench.manager.declare_requirements(JOB, 2)
    bench.run()
    assert bench.provider.cancels == [2]
    bench.manager.declare_requirements(JOB, 4)
    bench.run()
    assert bench.provider.requests == [3], "the cancel has no answer yet"
    bench.provider.answer(2)
    bench.run()
    assert bench.provider.requests == [3, 1]


def test_a_provider_that_answers_a_cancel_at_once() -> None:
    """Standalone: nobody is asked, so nothing stays open when TaskManagers come by themselves."""
    bench = Bench()
    bench.provider.withdrawn = 1
    bench.manager.declare_requirements(JOB, 2)
    bench.register("tm-1")
    bench.manager.declare_requirements(JOB, 4)
    bench.run()
    assert bench.provider.requests == [1, 1]


def test_an_idle_task_manager_is_disconnected_and_given_back() -> None:
    bench = Bench()
    bench.manager.declare_requirements(JOB, 1)
    bench.register("tm-1", worker="w1")
    bench.manager.release_slots(JOB)
    bench.run()
    for _ in range(29):
        bench.manager.heartbeat(TaskManagerHeartbeat(TaskManagerId("tm-1")))
        bench.run(1_000)
    assert bench.provider.released == []
    bench.run(1_000)
    assert bench.provider.released == ["w1"]
    assert bench.manager.slot_counts() == (0, 0, 0)
    with pytest.raises(TaskManagerNotFound):
        bench.manager.heartbeat(TaskManagerHeartbeat(TaskManagerId("tm-1")))
    with pytest.raises(TaskManagerDismissed, match="tm-1 was given back and must end"):
        bench.register("tm-1", worker="w1")
    bench.provider.end("w1", 143, released=True)
    bench.run(60_000)
    assert (bench.lost, bench.diagnosed, bench.provider.requests) == ([], [], [1])


def test_standalone_and_local_task_managers_are_never_given_back() -> None:
    for bench, worker in ((Bench(), ""), (Bench(replaces_workers=True, workers_expected=1), "w1")):
        bench.register("tm-1", worker=worker)
        for _ in range(60):
            bench.manager.heartbeat(TaskManagerHeartbeat(TaskManagerId("tm-1")))
            bench.run(1_000)
        assert bench.provider.released == []
        assert bench.manager.slot_counts() == (1, 2, 2)


def test_a_redundant_task_manager_takes_the_place_of_a_lost_one() -> None:
    bench = Bench(redundant_workers=1)
    bench.manager.declare_requirements(JOB, 2)
    bench.run()
    assert bench.provider.requests == [2]
    bench.register("tm-1", worker="w1")
    bench.register("tm-2", worker="w2")
    assert bench.provider.released == []
    bench.provider.end("w1", 137)
    bench.run()
    assert len(bench.gateways.task_executors["tm-2:1"].requests) == 2
    assert bench.provider.requests == [2, 1]


def test_diagnostics_that_come_late_are_told_once() -> None:
    bench = Bench()
    bench.manager.declare_requirements(JOB, 1)
    bench.register("tm-1", worker="w1")
    bench.gateways.task_executors["tm-1:1"].error = RpcUnavailable("connection refused")
    bench.manager.connection_closed("tm-1")
    bench.run()
    bench.run(100)
    assert [name for name, _reason in bench.lost] == ["tm-1"]
    assert bench.provider.requests == [1, 1], "the replacement does not wait for YARN's report"
    for _ in range(2):
        bench.provider.end("w1", -104, "running beyond physical memory limits")
        bench.run(2_000)
    assert bench.diagnosed == [
        ("tm-1", "its process ended with status -104: running beyond physical memory limits")
    ]
    assert len(bench.lost) == 1


def test_diagnostics_that_come_first_are_the_reason() -> None:
    bench = Bench(workers_expected=1)
    bench.register("tm-1", worker="w1")
    bench.provider.end("w1", -104, "running beyond physical memory limits")
    bench.run()
    assert bench.lost == [
        ("tm-1", "its process ended with status -104: running beyond physical memory limits")
    ]
    assert bench.diagnosed == []


def test_a_hanging_task_manager_is_ended() -> None:
    bench = Bench()
    bench.manager.declare_requirements(JOB, 1)
    bench.register("tm-1", worker="w1")
    for _ in range(10):
        bench.run(1_000)
    assert bench.lost == [("tm-1", "no heartbeat for 10 s")]
    assert bench.provider.released == ["w1"]
    assert bench.provider.requests == [1, 1]


def test_jobs_that_lack_slots_are_told_what_is_waited_for() -> None:
    bench = Bench()
    bench.manager.declare_requirements(JOB, 1)
    bench.run()
    bench.provider.grant(ungranted=1, message="queue default is full")
    bench.run()
    bench.provider.grant(ungranted=1, message="queue default is full")
    bench.run()
    assert bench.waits == ["queue default is full"]
    bench.provider.grant("w1")
    bench.run()
    assert bench.waits == ["queue default is full", ""]
    bench.provider.end("w1", 1, "no such python")
    bench.run()
    text = "TaskManagers fail before they register: its process ended with status 1: no such python"
    assert bench.waits[2:] == [text]
    bench.register("tm-1", worker="w2")
    assert bench.waits[2:] == [text, ""]


def test_start_failures_make_pauses_and_asking_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    bench = Bench()
    bench.manager.declare_requirements(JOB, 1)
    bench.run()
    for number in range(11):
        bench.provider.end(f"w{number}", 1)
        bench.run()
    assert bench.provider.requested == 11
    assert "11 failed within a minute, so nothing is asked for during 3 s" in caplog.text
    bench.run(2_999)
    assert bench.provider.requested == 11
    bench.run(1)
    assert bench.provider.requested == 12


def test_expected_workers_are_not_asked_for_again() -> None:
    bench = Bench(workers_expected=2)
    bench.manager.declare_requirements(JOB, 4)
    bench.run()
    assert bench.provider.requests == []
    bench.provider.end("w1", 1, "exit before registration")
    bench.run()
    assert bench.provider.requests == [1]


def test_what_a_task_manager_holds_already_is_not_asked_for_again() -> None:
    bench = Bench()
    bench.manager.declare_requirements(JOB, 2)
    bench.register("tm-1", held=(SlotStatus(0, "a0", JOB),))
    (request,) = bench.gateways.task_executors["tm-1:1"].requests
    assert request.slot_index == 1
    assert bench.manager.slot_counts() == (1, 2, 0)


def test_slots_whose_job_does_not_turn_up_are_freed() -> None:
    bench = Bench()
    bench.register("tm-1", held=(SlotStatus(0, "a0", JOB),))
    for _ in range(20):
        bench.manager.heartbeat(TaskManagerHeartbeat(TaskManagerId("tm-1"), (SlotStatus(0, "a0", JOB),)))
        bench.run(999)
    assert "tm-1:1" not in bench.gateways.task_executors, "freed before the job could turn up"
    bench.run(1_000)
    bench.run(1_000)
    assert bench.gateways.task_executors["tm-1:1"].freed == ["a0"]


def test_what_a_lost_task_manager_held_is_not_its_jobs_any_more() -> None:
    """The JobMaster has replaced it meanwhile."""
    bench = Bench()
    bench.manager.declare_requirements(JOB, 1)
    bench.register("tm-1")
    bench.manager.disconnect_task_manager(TaskManagerId("tm-1"), "gone")
    bench.run()
    bench.register("tm-1", held=(SlotStatus(0, "old", JOB),))
    requests = bench.gateways.task_executors["tm-1:1"].requests
    assert len(requests) == 2 and requests[-1].allocation_id != "old"


def test_an_idle_task_manager_of_another_master_is_dismissed() -> None:
    bench = Bench()
    bench.register("tm-1", worker="theirs-1")
    for _ in range(5):
        bench.run(5_900)
        bench.manager.heartbeat(TaskManagerHeartbeat(TaskManagerId("tm-1")))
    bench.run(600)
    with pytest.raises(TaskManagerNotFound):
        bench.manager.heartbeat(TaskManagerHeartbeat(TaskManagerId("tm-1")))
    with pytest.raises(TaskManagerDismissed):
        bench.register("tm-1", worker="theirs-1")


@pytest.mark.parametrize(("number", "remembered"), [(99, False), (100, True)])
def test_task_managers_that_are_given_up_are_forgotten_some_day(number: int, remembered: bool) -> None:
    """A thousand are remembered: what they held is not their jobs' any more."""
    bench = Bench()
    for given_up in range(1_100):
        bench.register(f"tm-{given_up}")
        bench.manager.disconnect_task_manager(TaskManagerId(f"tm-{given_up}"), "it was stopped")
    bench.run()
    assert bench.needs_slot_of(f"tm-{number}") == remembered


def test_a_worker_that_never_registered_is_no_task_manager_that_was_given_up() -> None:
    bench = Bench()
    bench.manager.declare_requirements(JOB, 2)
    bench.run()
    bench.provider.grant("w-1")
    bench.run()
    bench.manager.release_slots(JOB)
    bench.run(60_000)
    assert not bench.needs_slot_of("w-1") and not bench.needs_slot_of("")


T = TypeVar("T")


class NotedEffects(InlineEffects):
    """Notes whom effects wait for, and of whom a sign of life was noted."""

    def __init__(self) -> None:
        super().__init__()
        self.targets: list[str] = []
        self.heard: list[str] = []
        self.living: list[str] = []

    def perform(
        self,
        mailbox: Mailbox,
        effect: Callable[[], T],
        on_success: Callable[[T], None],
        on_failure: Callable[[YarnflowError], None],
        work: Work = Work.CALL,
        target: str = "",
    ) -> None:
        self.targets.append(target)
        super().perform(mailbox, effect, on_success, on_failure, work, target)

    def heard_of(self, target: str) -> None:
        self.heard.append(target)

    def alive(self, target: str) -> None:
        self.living.append(target)


def test_each_task_manager_is_a_target_and_a_ping_waits_for_no_other_call() -> None:
    bench = Bench()
    effects = NotedEffects()
    bench.manager._effects = effects
    bench.register("tm-1")
    bench.manager.declare_requirements(JOB, 1)
    bench.run()
    bench.manager.connection_closed("tm-1")
    bench.run()
    request, ping = effects.targets
    assert request == "tm-1:1" and ping != request
    assert set(effects.heard) == {request, ping}, "what its predecessor at the address failed to do counts"
    assert not effects.living
    bench.manager.heartbeat(TaskManagerHeartbeat(TaskManagerId("tm-1"), ()))
    bench.run()
    assert set(effects.living) == {request, ping}, "who sends heartbeats is called"


def test_a_ping_that_is_not_sent_is_no_failure_of_the_task_manager() -> None:
    bench = Bench()
    bench.register("tm-1")
    task_executor = bench.gateways.task_executors.setdefault("tm-1:1", FakeTaskExecutor())
    task_executor.error = CallSuspended("it was not reached 3 times in a row")
    bench.manager.connection_closed("tm-1")
    for _ in range(8):
        bench.run(1_000)
    assert task_executor.pings > 5 and not bench.lost
    task_executor.error = RpcUnavailable("gone")
    for _ in range(5):
        bench.run(1_000)
    assert bench.lost


def test_what_a_task_manager_measured_is_passed_on() -> None:
    bench = Bench()
    bench.register("tm-1")
    dump = MetricDump(ScopeKind.TASK_MANAGER, counts={"a": 1})
    bench.manager.heartbeat(TaskManagerHeartbeat(TaskManagerId("tm-1"), metrics=(dump,)))
    bench.manager.heartbeat(TaskManagerHeartbeat(TaskManagerId("tm-1")))
    with pytest.raises(TaskManagerNotFound):
        bench.manager.heartbeat(TaskManagerHeartbeat(TaskManagerId("tm-2"), metrics=(dump,)))
    assert bench.measured == [("tm-1", (dump,))]


def test_task_managers_that_are_on_their_way_are_counted() -> None:
    bench = Bench()
    assert bench.manager.pending_task_managers() == 0
    bench.manager.declare_requirements(JOB, 3)
    bench.run()
    assert bench.manager.pending_task_managers() == 2, "of two slots each"
