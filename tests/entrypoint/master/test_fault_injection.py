"""What a drill may hit, and what is refused."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from yarnflow.config.configuration import Configuration
from yarnflow.core.ha.ports import MasterInfo
from yarnflow.core.ids import DriverId, JobId, TaskManagerId, VertexId
from yarnflow.core.messages import (
    DriverRegistration,
    ExecutionInfo,
    FaultKind,
    FaultRequest,
    JobDetails,
    JobOverview,
    TaskManagerRegistration,
    VertexInfo,
)
from yarnflow.core.states import ExecutionState, JobStatus
from yarnflow.entrypoint.master.fault_injection import FaultInjector, MasterFaults, is_supervisor
from yarnflow.errors import DriverLost, HaError, JobError, TaskManagerNotFound
from yarnflow.testing.gateways.factory import FakeGateways
from yarnflow.testing.ha.election import election_with
from yarnflow.testing.runtime import ManualClock

JOB = JobId("ab" * 16)


class Bench:
    """A leader whose job runs twice on tm-2 and once on tm-1."""

    def __init__(self, directory: Path, masters: int = 2) -> None:
        self.halted: list[int] = []
        #: sessions that were ended: directory and process
        self.sessions: list[tuple[str, int]] = []
        self.supervised = True
        self.later: list[Callable[[], None]] = []
        self.gateways = FakeGateways()
        self.status = JobStatus.RUNNING
        self.driver: DriverRegistration | None = DriverRegistration(JOB, DriverId("d"), "d:1", 7, "", "")
        self.task_managers = [registration("tm-1"), registration("tm-2")]
        election = election_with(*(MasterInfo(str(number), "", "", 1) for number in range(masters)))
        self.injector = FaultInjector(
            ManualClock(),
            self.gateways,
            MasterFaults(
                Configuration.empty(),
                directory,
                election,
                may_fail_over=masters > 0,
                halt=self.halted.append,
                later=self.later.append,
                may_be_killed=lambda pid: self.supervised,
                end_session=self._end_session,
            ),
            lambda job_id: self.details(),
            lambda job_id: self.driver,
            lambda: self.task_managers,
        )

    def _end_session(self, configuration: Configuration, directory: Path, pid: int) -> bool:
        self.sessions.append((directory.name, pid))
        return True

    def details(self) -> JobDetails:
        executions = tuple(
            ExecutionInfo(index, 1, ExecutionState.RUNNING, name)
            for index, name in enumerate(["tm-1", "tm-2", "tm-2"])
        )
        vertex = VertexInfo(VertexId("v"), "v", 3, 3, "", executions)
        return JobDetails(JobOverview(JOB, "numbered", self.status, 0, -1), 1, vertices=(vertex,))

    def inject(self, kind: FaultKind, check_only: bool = False) -> str:
        return self.injector.inject(FaultRequest(kind, JOB, check_only)).victim


def registration(name: str) -> TaskManagerRegistration:
    return TaskManagerRegistration(TaskManagerId(name), f"{name}:1", name, 9, 2)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_the_jobs_driver_is_asked_to_die(bench: Bench) -> None:
    assert "pid 7" in bench.inject(FaultKind.DRIVER)
    assert bench.gateways.drivers["d:1"].halts == 1
    bench.driver = None
    with pytest.raises(DriverLost, match="no driver at the moment"):
        bench.inject(FaultKind.DRIVER)


def test_the_task_manager_with_most_of_the_job_is_asked_to_die(bench: Bench) -> None:
    assert "tm-2" in bench.inject(FaultKind.TASK_MANAGER)
    assert bench.gateways.task_executors["tm-2:1"].halts == 1
    del bench.task_managers[1]
    assert "tm-1" in bench.inject(FaultKind.TASK_MANAGER)
    bench.task_managers.clear()
    with pytest.raises(TaskManagerNotFound):
        bench.inject(FaultKind.TASK_MANAGER)


def test_a_leader_kills_itself(bench: Bench) -> None:
    assert str(os.getpid()) in bench.inject(FaultKind.LEADER)
    assert bench.halted == [os.getpid()]


def test_an_application_is_killed_by_its_supervisor(bench: Bench) -> None:
    bench.inject(FaultKind.APPLICATION)
    assert bench.halted == [os.getppid()]
    bench.supervised = False
    with pytest.raises(HaError, match="no supervisor"):
        bench.inject(FaultKind.APPLICATION)
    assert len(bench.halted) == 1


def test_a_session_is_ended_after_the_answer(bench: Bench) -> None:
    bench.inject(FaultKind.ZOOKEEPER)
    assert not bench.sessions
    bench.later[0]()
    assert bench.sessions == [("zookeeper-sessions", os.getpid())]


@pytest.mark.parametrize("kind", list(FaultKind))
def test_a_check_breaks_nothing(kind: FaultKind, bench: Bench) -> None:
    assert bench.inject(kind, check_only=True)
    assert not bench.halted and not bench.later
    assert not any(fake.halts for fake in bench.gateways.drivers.values())
    assert not any(fake.halts for fake in bench.gateways.task_executors.values())


@pytest.mark.parametrize("kind", [FaultKind.LEADER, FaultKind.APPLICATION, FaultKind.ZOOKEEPER])
def test_without_high_availability_the_master_is_spared(kind: FaultKind, tmp_path: Path) -> None:
    bench = Bench(tmp_path, masters=0)
    with pytest.raises(HaError, match="end of its jobs"):
        bench.inject(kind)
    assert not bench.halted and not bench.later
    bench.inject(FaultKind.DRIVER)


def test_the_only_master_is_not_killed_whole(tmp_path: Path) -> None:
    bench = Bench(tmp_path, masters=1)
    with pytest.raises(HaError, match="start a standby"):
        bench.inject(FaultKind.APPLICATION)
    bench.inject(FaultKind.LEADER)  # its supervisor starts it again


def test_a_job_that_is_over_needs_no_drill(bench: Bench) -> None:
    bench.status = JobStatus.FINISHED
    with pytest.raises(JobError, match="is FINISHED"):
        bench.inject(FaultKind.DRIVER)


def test_supervisors_are_known_by_their_command() -> None:
    assert not is_supervisor(1)
    assert not is_supervisor(2**22 + 1)
