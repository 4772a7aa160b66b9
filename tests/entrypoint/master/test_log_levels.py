"""A change of a log level goes to all processes of a cluster, and none of them holds it up."""

from __future__ import annotations

import threading

import pytest

from tests.patience import PATIENCE
from yarnflow.core.ids import DriverId, JobId, TaskManagerId
from yarnflow.core.messages import DriverRegistration, LogLevel, TaskManagerRegistration
from yarnflow.entrypoint.master.log_levels import ClusterLogLevels
from yarnflow.errors import InvalidOption, RpcUnavailable
from yarnflow.testing.gateways.driver import FakeDriver
from yarnflow.testing.gateways.factory import FakeGateways
from yarnflow.testing.gateways.master import FakeMaster
from yarnflow.testing.gateways.task_executor import FakeTaskExecutor

LEVEL = LogLevel("yarnflow.runtime", "DEBUG")
JOB = JobId("ab" * 16)


class World:
    """A leader with a standby, a TaskManager and a driver."""

    def __init__(self, timeout_ms: int = 60_000) -> None:
        self.gateways = FakeGateways()
        self.master = self.gateways.masters["s:1"] = FakeMaster()
        self.worker = self.gateways.task_executors["t:1"] = FakeTaskExecutor()
        self.driver = self.gateways.drivers["d:1"] = FakeDriver()
        self.here: list[LogLevel] = []
        worker = TaskManagerRegistration(TaskManagerId("tm1"), "t:1", "t", 7, 2)
        driver = DriverRegistration(JOB, DriverId("driver-1"), "d:1", 8, "spark://d:2", "app")
        self.levels = ClusterLogLevels(
            self.gateways, lambda: ["s:1"], lambda: [worker], lambda: [driver], timeout_ms, self.here.append
        )


def test_all_processes_are_told() -> None:
    world = World()
    result = world.levels.change(LEVEL)
    assert world.here == world.master.levels == world.worker.levels == world.driver.levels == [LEVEL]
    assert [(answer.process, answer.error) for answer in result.processes] == [
        ("JobManager", ""),
        ("standby s:1", ""),
        ("TaskManager tm1 (t:1)", ""),
        (f"driver driver-1 of job {JOB} (d:1)", ""),
    ]


def test_those_that_fail_are_named_and_the_others_changed() -> None:
    world = World()
    world.worker.error = RpcUnavailable("nobody listens")
    answers = {answer.process: answer.error for answer in world.levels.change(LEVEL).processes}
    assert answers["TaskManager tm1 (t:1)"] == "nobody listens"
    assert world.driver.levels == [LEVEL]


def test_one_that_hangs_is_not_waited_for() -> None:
    world, over = World(timeout_ms=2_500), threading.Event()

    def hang(level: LogLevel) -> None:
        over.wait(PATIENCE.thread_s)

    world.driver.set_log_level = hang  # type: ignore[method-assign]
    answers = {answer.process: answer.error for answer in world.levels.change(LEVEL).processes}
    over.set()
    assert answers[f"driver driver-1 of job {JOB} (d:1)"] == "no answer within 2 s"
    assert answers["standby s:1"] == ""


def test_a_level_there_is_not_changes_nothing() -> None:
    def refuse(level: LogLevel) -> None:
        raise InvalidOption("no level")

    world = World()
    world.levels._set_here = refuse
    with pytest.raises(InvalidOption):
        world.levels.change(LEVEL)
    assert world.worker.levels == []
