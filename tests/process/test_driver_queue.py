"""Drivers wait for each other."""

from __future__ import annotations

from yarnflow.core.ids import DriverId, JobId
from yarnflow.core.messages import DriverAssignment, Fence
from yarnflow.process.driver_queue import DriverQueue
from yarnflow.testing.driver_launcher import FakeDriverLauncher


def assignment(name: str) -> DriverAssignment:
    return DriverAssignment(JobId("a" * 32), DriverId(name), "jm:1", Fence("l", 1), "file:/c", "/w")


def launched(drivers: FakeDriverLauncher) -> list[str]:
    return [each.driver_id for each in drivers.assignments]


def test_one_driver_at_a_time() -> None:
    drivers = FakeDriverLauncher()
    queue = DriverQueue(drivers, 1)
    for name in "abc":
        queue.launch(assignment(name), 1600)
    assert launched(drivers) == ["a"]
    queue.exited(DriverId("unknown"))
    assert launched(drivers) == ["a"], "room for one although none has gone"
    queue.kill(DriverId("b"))
    queue.exited(DriverId("a"))
    assert launched(drivers) == ["a", "c"], "a driver that was killed while it waited was started"
    queue.exited(DriverId("c"))
    queue.launch(assignment("d"), 1600)
    assert launched(drivers) == ["a", "c", "d"]


def test_no_limit() -> None:
    drivers = FakeDriverLauncher()
    queue = DriverQueue(drivers, 0)
    for name in "abc":
        queue.launch(assignment(name), 1600)
    queue.exited(DriverId("a"))
    assert launched(drivers) == ["a", "b", "c"]


def test_a_driver_that_is_there_gets_its_next_job_at_once() -> None:
    drivers = FakeDriverLauncher()
    queue = DriverQueue(drivers, 1)
    for _ in range(2):
        queue.launch(assignment("a"), 1600)
    assert launched(drivers) == ["a", "a"]
