"""Both ends of the channel over a real socket pair."""

from __future__ import annotations

import socket
from queue import SimpleQueue
from typing import Any

from tests.patience import PATIENCE
from yarnflow.core.cluster_result import ProgramEnd
from yarnflow.core.ids import DriverId, JobId
from yarnflow.core.json_codec import from_json, to_json
from yarnflow.core.messages import DriverAssignment, Fence
from yarnflow.core.resources.provider import ProviderState, WorkerExit
from yarnflow.core.states import JobStatus
from yarnflow.errors import ResourceError
from yarnflow.process.channel.job_manager_end import JobManagerEnd
from yarnflow.process.channel.messages import (
    DriverExited,
    DriverWaits,
    JobStatusReport,
    MasterRole,
    RequestsCanceled,
    RunningDrivers,
    StartMaster,
)
from yarnflow.process.channel.supervisor_end import SupervisorEnd
from yarnflow.process.no_workers import NoResourceProvider

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
        if count > 99:
            raise ResourceError("no more containers")

    def cancel_requests(self, count: int) -> int | None:
        self.calls.put(("cancel", count))
        return None if count > 99 else count - 1

    def release_worker(self, worker_id: str) -> None:
        self.calls.put(("release", worker_id))

    def start_master(self) -> None:
        self.calls.put(("start_master",))
        raise ResourceError("the queue is full")


def test_assignment_is_one_line_and_comes_back() -> None:
    line = to_json(ASSIGNMENT)
    assert "\n" not in line
    assert from_json(DriverAssignment, line) == ASSIGNMENT


def test_requests_and_events() -> None:
    ours, theirs = socket.socketpair()
    owner = Owner()
    events: SimpleQueue[tuple[Any, ...]] = SimpleQueue()
    closed: SimpleQueue[str] = SimpleQueue()
    reports: SimpleQueue[JobStatusReport] = SimpleQueue()
    roles: SimpleQueue[MasterRole] = SimpleQueue()
    supervisor = SupervisorEnd(
        ours, owner, owner, on_job_status=reports.put, on_role=roles.put, masters=owner
    )
    manager = JobManagerEnd(theirs.detach(), lambda: closed.put("closed"))
    manager.driver_launcher.on_exit(lambda *event: events.put(event))
    manager.driver_launcher.on_wait(lambda *event: events.put(event))
    manager.resource_provider.on_worker_exit(lambda exit: events.put((exit,)))
    manager.resource_provider.on_requests_canceled(lambda *event: events.put(event))
    manager.resource_provider.on_state(lambda state: events.put((state,)))
    manager.on_program_ended(lambda *event: events.put(event))
    manager.on_running_drivers(lambda *event: events.put(event))
    supervisor.tell(DriverExited(DriverId("early"), 1, ""))  # before anybody reads
    supervisor.start()
    manager.start()
    assert events.get(timeout=PATIENCE.thread_s) == ("early", 1, "")

    manager.driver_launcher.launch(ASSIGNMENT, 1600)
    assert owner.calls.get(timeout=PATIENCE.thread_s) == ("launch", ASSIGNMENT, 1600)
    manager.driver_launcher.launch(ASSIGNMENT, -1)  # an error on the other side does not end the channel
    owner.calls.get(timeout=PATIENCE.thread_s)
    manager.driver_launcher.kill(DriverId("d-1"))
    assert owner.calls.get(timeout=PATIENCE.thread_s) == ("kill", "d-1")
    manager.resource_provider.request_workers(2)
    manager.resource_provider.release_worker("w")
    assert owner.calls.get(timeout=PATIENCE.thread_s) == ("request", 2)
    assert owner.calls.get(timeout=PATIENCE.thread_s) == ("release", "w")

    manager.resource_provider.cancel_requests(2)
    assert owner.calls.get(timeout=PATIENCE.thread_s) == ("cancel", 2)
    assert events.get(timeout=PATIENCE.thread_s) == (2, 1)
    manager.resource_provider.cancel_requests(100)  # the answer comes later
    assert owner.calls.get(timeout=PATIENCE.thread_s) == ("cancel", 100)
    supervisor.tell(RequestsCanceled(100, 3))
    assert events.get(timeout=PATIENCE.thread_s) == (100, 3)
    manager.resource_provider.request_workers(100)  # every one of them has failed
    ends = [events.get(timeout=PATIENCE.thread_s) for _ in range(100)]
    assert set(ends) == {(WorkerExit("", None, "no more containers"),)}
    manager.ask(JobStatusReport(JobId("a" * 32), JobStatus.FAILED, "boom", "job"))
    assert reports.get(timeout=PATIENCE.thread_s) == JobStatusReport(
        JobId("a" * 32), JobStatus.FAILED, "boom", "job"
    )

    supervisor.tell(WorkerExit("w", -9))
    assert events.get(timeout=PATIENCE.thread_s) == (WorkerExit("w", -9),)
    supervisor.tell(WorkerExit("w", None, "beyond memory\nlimits", released=True))
    assert events.get(timeout=PATIENCE.thread_s) == (WorkerExit("w", None, "beyond memory\nlimits", True),)
    state = ProviderState(2, "queue is full", ("w1", "w2"))
    supervisor.tell(state)
    assert events.get(timeout=PATIENCE.thread_s) == (state,)
    supervisor.tell(ProgramEnd(3, "last words"))
    assert events.get(timeout=PATIENCE.thread_s) == (3, "last words")
    supervisor.tell(RunningDrivers((DriverId("d-1"), DriverId("d-2"))))
    assert events.get(timeout=PATIENCE.thread_s) == (("d-1", "d-2"),)
    role = MasterRole(True, "jm:1", "http://jm:2", "leader", 4)
    manager.ask(role)
    assert roles.get(timeout=PATIENCE.thread_s) == role
    assert owner.calls.get(timeout=PATIENCE.thread_s) == ("request", 100)
    manager.ask(StartMaster())
    assert owner.calls.get(timeout=PATIENCE.thread_s) == ("start_master",)
    supervisor.tell(DriverExited(DriverId("d-1"), 1, "two\nlines"))
    assert events.get(timeout=PATIENCE.thread_s) == ("d-1", 1, "two\nlines")
    supervisor.tell(DriverWaits(DriverId("d-1"), True))
    assert events.get(timeout=PATIENCE.thread_s) == ("d-1", True)
    supervisor.close()
    assert closed.get(timeout=PATIENCE.thread_s) == "closed"
    manager.resource_provider.request_workers(1)  # nobody there: no exception
    manager.close()


def test_job_manager_knows_how_many_workers_there_can_be() -> None:
    ours, theirs = socket.socketpair()
    link = JobManagerEnd(theirs.detach(), max_workers=3)
    assert link.resource_provider.max_workers == 3
    assert link.resource_provider.replaces_workers
    link.close()
    ours.close()
    assert NoResourceProvider().max_workers is None


def test_a_supervisor_on_yarn_does_not_replace_workers() -> None:
    ours, theirs = socket.socketpair()
    link = JobManagerEnd(theirs.detach(), replaces_workers=False)
    assert link.resource_provider.max_workers is None
    assert not link.resource_provider.replaces_workers
    link.close()
    ours.close()


def test_lines_that_are_no_messages_are_ignored() -> None:
    ours, theirs = socket.socketpair()
    owner = Owner()
    link = SupervisorEnd(ours, owner, NoResourceProvider())
    theirs.sendall(b"nonsense\n[1]\n\xff\nDance {}\nKillDriver {}\nKillDriver\n")
    theirs.sendall(b'ProgramEnd {"exit_status":0}\n')  # an event, no request
    theirs.sendall(b'KillDriver {"driver_id":"x"}\n')
    link.start()
    assert owner.calls.get(timeout=PATIENCE.thread_s) == ("kill", "x")
    link.close()
    theirs.close()


def test_job_manager_knows_which_drivers_its_supervisor_has() -> None:
    ours, theirs = socket.socketpair()
    owner = Owner()
    supervisor = SupervisorEnd(ours, owner, owner)
    manager = JobManagerEnd(theirs.detach())
    launcher = manager.driver_launcher
    ends: SimpleQueue[str] = SimpleQueue()
    launcher.on_exit(lambda driver_id, *_: ends.put(driver_id))
    supervisor.start()
    manager.start()
    supervisor.tell(RunningDrivers((DriverId("of the process before"),)))
    launcher.launch(ASSIGNMENT, 1600)
    assert launcher.runs(ASSIGNMENT.driver_id)
    supervisor.tell(DriverExited(ASSIGNMENT.driver_id, 0, ""))
    assert ends.get(timeout=PATIENCE.thread_s) == ASSIGNMENT.driver_id
    assert not launcher.runs(ASSIGNMENT.driver_id)
    assert launcher.runs(DriverId("of the process before"))
    manager.close()
    supervisor.close()


def test_whoever_listens_late_hears_what_came_before() -> None:
    """A standby has no jobs; once it leads, its parts want to know."""
    ours, theirs = socket.socketpair()
    owner = Owner()
    supervisor = SupervisorEnd(ours, owner, owner)
    heard: SimpleQueue[str] = SimpleQueue()
    manager = JobManagerEnd(theirs.detach())
    manager.on_program_ended(lambda *_: heard.put("program"))
    supervisor.start()
    manager.start()
    supervisor.tell(DriverExited(DriverId("d-1"), 1, ""))
    supervisor.tell(ProviderState(1, "", ("w1",)))
    supervisor.tell(ProgramEnd(0, ""))
    assert heard.get(timeout=PATIENCE.thread_s) == "program"
    ends: list[str] = []
    states: list[ProviderState] = []
    manager.driver_launcher.on_exit(lambda driver_id, *_: ends.append(driver_id))
    manager.resource_provider.on_state(states.append)
    assert ends == ["d-1"] and states == [ProviderState(1, "", ("w1",))]
    manager.close()
    supervisor.close()
