"""What a master does when its JobManager leads, and that main() has its effect once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.entrypoint.yarn.test_container import deployment, entered
from yarnflow.core.ids import JobId
from yarnflow.core.messages import JobOverview
from yarnflow.core.states import JobStatus
from yarnflow.core.yarn import DeploymentMode
from yarnflow.entrypoint.yarn.leadership import LeadershipOnYarn
from yarnflow.errors import RpcUnavailable, StorageUnavailable, YarnflowError
from yarnflow.process.channel.messages import MasterRole
from yarnflow.staging.deployment import ApplicationDirectory
from yarnflow.staging.layout import prepare
from yarnflow.testing.file_system import MemoryFileSystem
from yarnflow.testing.gateways.dispatcher import details

JOB = details(JobId("1" * 32), 0, JobStatus.RUNNING).overview
STANDBY = MasterRole(False, "node7:1", "http://node7:80")


def leader(epoch: int, address: str = "node7:1") -> MasterRole:
    return MasterRole(True, address, "http://node7:80", f"l{epoch}", epoch)


class World:
    def __init__(self, tmp_path: Path) -> None:
        self.deployment = replace(
            deployment(),
            mode=DeploymentMode.APPLICATION,
            configuration={"high-availability.type": "zookeeper"},
        )
        self.fs = MemoryFileSystem()
        prepare(self.fs, self.deployment.layout, self.fs.user)
        self.directory = ApplicationDirectory(
            self.fs, self.deployment.layout, self.deployment.deployment_id
        )
        self.directory.create()
        self.jobs: list[JobOverview] = []
        self.error: YarnflowError | None = None
        self.pages: list[str] = []
        self.programs: list[tuple[str, Callable[[int, str], None]]] = []
        self.ended: list[str] = []
        self.told: list[tuple[int, str]] = []
        container = entered(tmp_path, self.deployment)
        supervisor: Any = SimpleNamespace(end=self.ended.append)
        self.leadership = LeadershipOnYarn(
            container,
            container.open_directory(),
            container.configuration(),
            supervisor,
            lambda status, tail: self.told.append((status, tail)),
            self._list_jobs,
            self._start,
        )

    def _start(
        self, container: Any, directory: Any, options: Any, supervisor: Any, on_end: Any, name: str
    ) -> None:
        self.programs.append((name, on_end))

    def _list_jobs(self, address: str) -> list[JobOverview]:
        if self.error is not None:
            raise self.error
        return self.jobs

    def changed(self, role: MasterRole) -> None:
        self.leadership.changed(role, self.directory, self.pages.append)

    @property
    def published_epoch(self) -> int:
        connection = self.directory.read_connection()
        return 0 if connection is None else connection.epoch


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_only_the_leader_is_published(world: World) -> None:
    world.changed(STANDBY)
    assert world.published_epoch == 0 and world.pages == ["http://node7:80"]
    world.changed(leader(2))
    connection = world.directory.read_connection()
    assert connection is not None and connection.highly_available
    assert (connection.address, connection.leader_id, connection.epoch) == ("node7:1", "l2", 2)
    assert world.pages == ["http://node7:80"]


def test_only_yarns_proxy_is_told_the_path_that_it_asks_for(world: World) -> None:
    role = replace(leader(2), proxy_path="a1")
    world.changed(role)
    assert world.pages == ["http://node7:80/a1"] and "a1" not in repr(role)


def test_a_leader_that_is_late_does_not_hide_a_later_one(world: World) -> None:
    world.changed(leader(3))
    world.changed(leader(2))
    assert world.published_epoch == 3


def test_the_program_is_run_by_the_first_leader(world: World) -> None:
    world.changed(STANDBY)
    assert not world.programs
    world.changed(leader(1))
    ((_name, on_end),) = world.programs
    on_end(0, "bye")
    assert world.told == [(0, "bye")] and world.ended == []


def test_the_program_is_not_run_again_once_it_has_submitted_a_job(world: World) -> None:
    world.jobs = [JOB]
    world.changed(leader(2))
    assert world.programs == [] and world.told == [(0, "")]


def test_the_program_is_run_again_when_it_did_not_get_that_far(world: World) -> None:
    world.changed(leader(1))
    world.changed(leader(3))
    names = [name for name, _ in world.programs]
    assert len(set(names)) == 2 and world.ended == [names[0]]
    for _, on_end in world.programs:
        on_end(0, "")
    assert world.told == [(0, "")], "the end of the first one means nothing"


def test_a_program_whose_job_manager_died_says_nothing_about_main(world: World) -> None:
    world.changed(leader(1))
    world.error = RpcUnavailable("gone")
    world.programs[0][1](70, "error: the JobManager is gone")
    assert world.told == []
    world.error = None
    world.changed(leader(2))
    world.programs[1][1](1, "ValueError")
    assert world.told == [(1, "ValueError")]


def test_what_cannot_be_done_now_is_done_once_later(world: World) -> None:
    world.error = RpcUnavailable("not yet")
    with pytest.raises(RpcUnavailable):
        world.changed(leader(1))
    world.error = None
    world.changed(leader(1))
    world.changed(leader(1))
    assert len(world.programs) == 1


def test_without_hdfs_there_is_no_program(world: World) -> None:
    def refuse(operation: str, path: str) -> None:
        raise StorageUnavailable("safe mode")

    world.fs.before = refuse
    with pytest.raises(StorageUnavailable):
        world.changed(leader(1))
    assert world.programs == []
