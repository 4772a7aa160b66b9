"""Drivers wait for each other."""

from __future__ import annotations

from yarnflow.core.ids import DriverId, JobId
from yarnflow.core.messages import DriverAssignment, Fence
from yarnflow.process.driver_queue import DriverQueue


def assignment(name: str) -> DriverAssignment:
    return DriverAssignment(JobId("a" * 32), DriverId(name), "jm:1", Fence("l", 1), "file:/c", "/w")


class Drivers:
    def __init__(self) -> None:
        self.launched: list[str] = []
        self.killed: list[str] = []

    def launch(self, assignment: DriverAssignment, memory_mib: int) -> None:
        self.launched.append(assignment.driver_id)

    def kill(self, driver_id: DriverId, grace_ms: int = 0) -> None:
        self.killed.append(driver_id)


def test_one_driver_at_a_time() -> None:
    drivers = Drivers()
    queue = DriverQueue(drivers, 1)
    for name in "abc":
        queue.launch(assignment(name), 1600)
    assert drivers.launched == ["a"]
    queue.exited(DriverId("unknown"))
    assert drivers.launched == ["a"], "room for one although none has gone"
    queue.kill(DriverId("b"))
    queue.exited(DriverId("a"))
    assert drivers.launched == ["a", "c"], "a driver that was killed while it waited was started"
    queue.exited(DriverId("c"))
    queue.launch(assignment("d"), 1600)
    assert drivers.launched == ["a", "c", "d"]


def test_no_limit() -> None:
    drivers = Drivers()
    queue = DriverQueue(drivers, 0)
    for name in "abc":
        queue.launch(assignment(name), 1600)
    queue.exited(DriverId("a"))
    assert drivers.launched == ["a", "b", "c"]
