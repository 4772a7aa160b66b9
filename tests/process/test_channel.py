"""Both ends of the channel over a real socket pair."""

from __future__ import annotations

import socket
from queue import SimpleQueue
from typing import Any

from yarnflow.core.ids import DriverId, JobId
from yarnflow.core.messages import DriverAssignment, Fence
from yarnflow.process.channel import (
    JobManagerLink,
    NoResourceProvider,
    SupervisorLink,
    assignment_from_json,
    assignment_to_json,
)

ASSIGNMENT = DriverAssignment(
    JobId("a" * 32), DriverId("d-1"), "localhost:1", Fence("l", 3), "file:/c", "/w", "a\n\"job\"", {"k": "v"}
)


class Owner:
    def __init__(self) -> None:
        self.calls: SimpleQueue[tuple[Any, ...]] = SimpleQueue()

    def launch(self, assignment: DriverAssignment, memory_mib: int) -> None:
        self.calls.put(("launch", assignment, memory_mib))
        if memory_mib < 0:
            raise RuntimeError("a bug")

    def kill(self, driver_id: DriverId, grace_ms: int = 0) -> None:
        self.calls.put(("kill", driver_id))

    def request_workers(self, count: int) -> None:
        self.calls.put(("request", count))

    def release_worker(self, worker_id: str) -> None:
        self.calls.put(("release", worker_id))


def test_assignment_is_one_line_and_comes_back() -> None:
    line = assignment_to_json(ASSIGNMENT)
    assert "\n" not in line
    assert assignment_from_json(line) == ASSIGNMENT


def test_requests_and_events() -> None:
    ours, theirs = socket.socketpair()
    owner = Owner()
    events: SimpleQueue[tuple[Any, ...]] = SimpleQueue()
    closed: SimpleQueue[str] = SimpleQueue()
    supervisor = JobManagerLink(ours, owner, owner)
    manager = SupervisorLink.from_fd(theirs.detach(), lambda: closed.put("closed"))
    manager.driver_launcher.on_exit(lambda *event: events.put(event))
    manager.resource_provider.on_worker_exit(lambda *event: events.put(event))
    supervisor.driver_exited(DriverId("early"), 1, "")  # before anybody reads
    supervisor.start()
    manager.start()
    assert events.get(timeout=10) == ("early", 1, "")

    manager.driver_launcher.launch(ASSIGNMENT, 1600)
    assert owner.calls.get(timeout=10) == ("launch", ASSIGNMENT, 1600)
    manager.driver_launcher.launch(ASSIGNMENT, -1)  # an error on the other side does not end the channel
    owner.calls.get(timeout=10)
    manager.driver_launcher.kill(DriverId("d-1"))
    assert owner.calls.get(timeout=10) == ("kill", "d-1")
    manager.resource_provider.request_workers(2)
    manager.resource_provider.release_worker("w")
    assert owner.calls.get(timeout=10) == ("request", 2)
    assert owner.calls.get(timeout=10) == ("release", "w")

    supervisor.worker_exited("w", -9)
    assert events.get(timeout=10) == ("w", -9)
    supervisor.driver_exited(DriverId("d-1"), 1, "two\nlines")
    assert events.get(timeout=10) == ("d-1", 1, "two\nlines")
    supervisor.close()
    assert closed.get(timeout=10) == "closed"
    manager.resource_provider.request_workers(1)  # nobody there: no exception
    manager.close()


def test_job_manager_knows_how_many_workers_there_can_be() -> None:
    ours, theirs = socket.socketpair()
    link = SupervisorLink.from_fd(theirs.detach(), max_workers=3)
    assert link.resource_provider.max_workers == 3
    link.close()
    ours.close()
    assert NoResourceProvider().max_workers is None


def test_lines_that_are_no_messages_are_ignored() -> None:
    ours, theirs = socket.socketpair()
    owner = Owner()
    link = JobManagerLink(ours, owner, NoResourceProvider())
    theirs.sendall(b'nonsense\n[1]\n{"op":"dance"}\n{"op":"kill_driver"}\n')
    theirs.sendall(b'{"op":"kill_driver","driver_id":"x"}\n')
    link.start()
    assert owner.calls.get(timeout=10) == ("kill", "x")
    link.close()
    theirs.close()
