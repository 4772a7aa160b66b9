"""Slots, registration and the loss of TaskManagers, with fakes all around."""

from __future__ import annotations

import itertools

import pytest

from yarnflow.core.ids import AllocationId, JobId, TaskManagerId
from yarnflow.core.messages import (
    Fence,
    LeaderInfo,
    SlotStatus,
    TaskManagerHeartbeat,
    TaskManagerRegistration,
)
from yarnflow.errors import RpcUnavailable, TaskManagerNotFound
from yarnflow.runtime.resource_manager import ResourceManager, ResourceManagerSettings
from yarnflow.testing.gateways import FakeGateways, FakeResourceProvider
from yarnflow.testing.runtime import InlineEffects, InlineMailbox, ManualClock

JOB = JobId("a" * 32)
LEADER = LeaderInfo(Fence("leader", 1), "jm:6123", "0", "default")


class Bench:
    """A ResourceManager and whom it tells."""

    def __init__(self, replaces_workers: bool = False, workers_expected: int = 0) -> None:
        self.clock = ManualClock()
        self.gateways = FakeGateways()
        self.provider = FakeResourceProvider(replaces_workers)
        self.lost: list[tuple[str, str]] = []
        self.slots_lost: list[tuple[JobId, AllocationId]] = []
        self.refused: list[str] = []
        self.mailbox = InlineMailbox("rm", self.clock)
        ids = (f"{number:032x}" for number in itertools.count(1))
        self.manager = ResourceManager(
            ResourceManagerSettings(10_000, 2, 1_000, 5_000, 2, workers_expected),
            self.clock,
            self.mailbox,
            InlineEffects(),
            self.gateways,
            self.provider,
            lambda: LEADER,
            lambda: next(ids),
            lambda: self,
        )
        self.manager.start()
        self.run()

    def task_manager_lost(self, task_manager_id: TaskManagerId, reason: str) -> None:
        self.lost.append((task_manager_id, reason))

    def slot_lost(self, job_id: JobId, allocation_id: AllocationId, reason: str) -> None:
        self.slots_lost.append((job_id, allocation_id))

    def slots_unfulfillable(self, job_id: JobId, message: str) -> None:
        self.refused.append(message)

    def run(self, ms: int = 0) -> None:
        self.clock.advance(ms)
        self.mailbox.run_pending()

    def register(self, name: str, slots: int = 2, worker: str = "") -> LeaderInfo:
        info = self.manager.register_task_manager(
            TaskManagerRegistration(TaskManagerId(name), f"{name}:1", "host", 1, slots, worker)
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


def test_a_refused_slot_is_tried_again() -> None:
    bench = Bench()
    fake = bench.gateways.task_executors.setdefault("tm-1:1", type(bench.gateways.task_executor("x"))())
    fake.error = RpcUnavailable("nobody there")
    bench.manager.declare_requirements(JOB, 1)
    bench.register("tm-1")
    assert fake.requests == []
    fake.error = None
    bench.run(1_000)
    assert len(fake.requests) == 1


def test_workers_are_asked_for_only_when_slots_are_missing() -> None:
    bench = Bench()
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
    bench.gateways.task_executors["tm-1:1"] = fake = type(bench.gateways.task_executor("x"))()
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
    bench = Bench()
    bench.provider.max_workers = 2
    bench.register("tm-1", worker="w1")
    bench.manager.declare_requirements(JOB, 5)
    bench.run()
    assert bench.provider.requested == 1, "more workers than there can be were asked for"
    assert bench.refused == []
    bench.register("tm-2", worker="w2")
    assert bench.refused == [
        "needs 5 slots and this cluster can have no more than 4; lower the parallelism or raise "
        "taskmanager.numberOfTaskSlots"
    ]
