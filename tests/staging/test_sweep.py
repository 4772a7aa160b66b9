"""What is swept away, and above all what is not."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from tests.staging.fakes import application
from yarnflow.config.configuration import Configuration
from yarnflow.config.options import cluster
from yarnflow.core.yarn import ApplicationState, DeploymentMode
from yarnflow.errors import StorageDenied, YarnUnavailable, ZooKeeperUnavailable
from yarnflow.staging.deployment import ApplicationDirectory, Connection, Deployment
from yarnflow.staging.layout import StagingLayout, prepare
from yarnflow.staging.sweep import FORGET_FOR_MS, UPLOAD_DIED_MS, sweep
from yarnflow.testing.file_system import MemoryFileSystem
from yarnflow.testing.runtime import ManualClock
from yarnflow.testing.yarn_cluster import FakeYarnCluster

LAYOUT = StagingLayout("/user/ann/.yarnflow")
START_MS = 1_000_000
MINUTE_MS = 60_000


class World:
    def __init__(self) -> None:
        self.clock = ManualClock(START_MS)
        self.fs = MemoryFileSystem(self.clock)
        self.yarn = FakeYarnCluster()
        self.forgotten: list[tuple[str, str]] = []
        self.zookeeper_is_down = False
        prepare(self.fs, LAYOUT, "ann")

    def deployed(self, deployment_id: str, yarn_cluster: str) -> ApplicationDirectory:
        """What a client has submitted to one of several YARNs."""
        directory = self.directory(deployment_id)
        root = f"hdfs://n:1{LAYOUT.root}"
        mode = DeploymentMode.PER_JOB
        directory.write_deployment(
            Deployment(deployment_id, mode, root, directory.path, "ann", yarn_cluster=yarn_cluster)
        )
        return directory

    def highly_available(self, deployment_id: str) -> tuple[str, str]:
        """A cluster with its directory and its storage."""
        directory = self.directory(deployment_id)
        storage = f"{LAYOUT.high_availability}/yarnflow-{deployment_id}"
        options = {
            "high-availability.type": "zookeeper",
            "high-availability.cluster-id": f"yarnflow-{deployment_id}",
            "high-availability.storageDir": f"hdfs://n:1{LAYOUT.high_availability}",
        }
        directory.write_deployment(
            Deployment(
                deployment_id,
                DeploymentMode.PER_JOB,
                f"hdfs://n:1{LAYOUT.root}",
                directory.path,
                "ann",
                options,
            )
        )
        self.fs.make_directory(storage)
        return storage, directory.path

    def directory(self, deployment_id: str) -> ApplicationDirectory:
        directory = ApplicationDirectory(self.fs, LAYOUT, deployment_id)
        directory.create()
        directory.write_secret("00")
        return directory

    def sweep(self, after_ms: int = 0, yarn_cluster: str = "") -> list[str]:
        now_ms = START_MS + after_ms
        return sweep(self.fs, LAYOUT, self.yarn, "ann", now_ms, self.forget, yarn_cluster)

    def forget(self, options: Configuration, secret: str) -> None:
        if self.zookeeper_is_down:
            raise ZooKeeperUnavailable("no ZooKeeper of z:1 answers")
        self.forgotten.append((options.get(cluster.CLUSTER_ID), secret))


@pytest.fixture
def world() -> World:
    return World()


def test_a_running_application_is_kept(world: World) -> None:
    world.directory("d1")
    world.yarn.add(application("application_1", "d1", ApplicationState.RUNNING))
    assert world.sweep(1000 * MINUTE_MS) == []


@pytest.mark.parametrize("state", [state for state in ApplicationState if state.ended])
def test_an_ended_application(world: World, state: ApplicationState) -> None:
    directory = world.directory("d1")
    world.fs.make_directory("/user/ann/.skein/application_1")
    world.yarn.add(application("application_1", "d1", state, finished_ms=START_MS))
    # a client may still want to know how it ended
    assert world.sweep(MINUTE_MS) == []
    assert world.sweep(MINUTE_MS + 1) == [directory.path, "/user/ann/.skein/application_1"]
    assert not world.fs.list(LAYOUT.applications) and not world.fs.list("/user/ann/.skein")
    assert world.sweep(MINUTE_MS + 1) == []


def test_one_of_its_applications_lives(world: World) -> None:
    world.directory("d1")
    world.yarn.add(application("application_1", "d1", ApplicationState.KILLED))
    world.yarn.add(application("application_2", "d1", ApplicationState.RUNNING))
    assert world.sweep(1000 * MINUTE_MS) == []


def test_a_highly_available_cluster_goes_with_its_last_master(world: World) -> None:
    storage, directory = world.highly_available("d1")
    world.yarn.add(application("application_1", "d1", ApplicationState.KILLED, finished_ms=START_MS))
    world.yarn.add(application("application_2", "d1", ApplicationState.RUNNING))
    assert world.sweep(2 * MINUTE_MS) == [] and not world.forgotten
    world.yarn.add(application("application_2", "d1", ApplicationState.FINISHED, finished_ms=START_MS))
    assert world.sweep(2 * MINUTE_MS) == [storage, directory]
    assert world.forgotten == [("yarnflow-d1", "00")]


def test_a_cluster_that_zookeeper_keeps_is_tried_again_for_a_day(world: World) -> None:
    storage, directory = world.highly_available("d1")
    world.yarn.add(application("application_1", "d1", ApplicationState.FINISHED, finished_ms=START_MS))
    world.zookeeper_is_down = True
    assert world.sweep(2 * MINUTE_MS) == []
    assert world.fs.status(storage) and world.fs.status(directory)
    assert world.sweep(FORGET_FOR_MS + 1) == [storage, directory]


def test_a_submit_that_died(world: World) -> None:
    directory = world.directory("d1")
    assert world.sweep(10 * MINUTE_MS) == []
    assert world.sweep(10 * MINUTE_MS + 1) == [directory.path]


def test_an_application_yarn_does_not_list(world: World) -> None:
    directory = world.directory("d1")
    directory.publish_connection(Connection("application_1", "h:1", "", "l", 1, 1))
    world.yarn.add(application("application_1", "d1", ApplicationState.RUNNING))
    world.yarn.hidden.add("application_1")
    assert world.sweep(11 * MINUTE_MS) == []
    world.yarn.known.clear()
    assert world.sweep(11 * MINUTE_MS) == [directory.path]


def test_clusters_of_another_yarn_on_the_same_file_system_are_kept(world: World) -> None:
    other = world.deployed("d1", "http://other:8088")
    other.publish_connection(Connection("application_9_1", "h:1", "", "l", 1, 1))
    starting, own = world.deployed("d2", "http://other:8088"), world.deployed("d3", "http://rm:8088")
    assert world.sweep(1000 * MINUTE_MS, "http://rm:8088") == [own.path]
    assert world.fs.status(other.path) and world.fs.status(starting.path)
    # one name for two ResourceManagers is the administrator's matter; what YARN says of its own counts
    world.yarn.add(application("application_9_1", "d1", ApplicationState.KILLED, finished_ms=START_MS))
    assert world.sweep(1000 * MINUTE_MS, "http://rm:8088") == [other.path]


def test_a_submit_that_goes_on_just_now_is_kept(world: World) -> None:
    directory = world.directory("d1")
    asked = world.yarn.applications

    def meanwhile(**question: Any) -> Any:
        world.clock.advance(11 * MINUTE_MS)
        directory.write_secret("00")
        return asked(**question)

    world.yarn.applications = meanwhile  # type: ignore[method-assign]
    assert world.sweep(11 * MINUTE_MS) == []


def test_skein_directories_of_submits_that_were_killed(world: World) -> None:
    never, foreign, hidden = "application_5_2", "application_9_2", "application_5_3"
    for application_id in (never, foreign, hidden):
        world.fs.make_directory(f"/user/ann/.skein/{application_id}")
    assert world.sweep(UPLOAD_DIED_MS + 1) == [], "no id is known to be this YARN's"
    world.yarn.add(application("application_5_1", "d1", ApplicationState.RUNNING))
    world.yarn.add(application(hidden, "d2", ApplicationState.RUNNING))
    world.yarn.hidden.add(hidden)
    assert world.sweep(UPLOAD_DIED_MS) == []
    assert world.sweep(UPLOAD_DIED_MS + 1) == [f"/user/ann/.skein/{never}"]


def test_skein_directories_of_others_are_kept(world: World) -> None:
    world.fs.make_directory("/user/ann/.skein/application_7")
    assert world.sweep(1000 * MINUTE_MS) == []


def test_the_cache_and_the_keys_are_kept(world: World) -> None:
    world.fs.make_directory(f"{LAYOUT.cache}/ab")
    world.fs.make_directory(f"{LAYOUT.job_keys}/k")
    assert world.sweep(100_000 * MINUTE_MS) == []


def test_an_upload_that_died(world: World) -> None:
    world.fs.write(f"{LAYOUT.uploads}/ab", b"")
    assert world.sweep(24 * 60 * MINUTE_MS) == []
    assert world.sweep(24 * 60 * MINUTE_MS + 1) == [f"{LAYOUT.uploads}/ab"]


def test_yarn_is_not_asked_for_nothing(world: World) -> None:
    world.yarn.error = YarnUnavailable("no ResourceManager answers")
    assert world.sweep() == []


def test_a_sweep_never_fails_a_submit(world: World, caplog: pytest.LogCaptureFixture) -> None:
    directory = world.directory("d1")
    world.yarn.error = YarnUnavailable("no ResourceManager answers")
    with caplog.at_level(logging.WARNING):
        assert world.sweep(11 * MINUTE_MS) == []
    assert "no ResourceManager answers" in caplog.text
    world.yarn.error = None

    other = world.directory("d2")

    def deny(operation: str, path: str) -> None:
        if (operation, path) == ("delete", directory.path):
            raise StorageDenied("not yours")

    world.fs.before = deny
    assert world.sweep(11 * MINUTE_MS) == [other.path]
    assert "not yours" in caplog.text


def test_files_that_a_killed_master_was_writing(world: World) -> None:
    half = f"{LAYOUT.latest_states}/.flights.json.1d7c.tmp"
    world.fs.make_directory(LAYOUT.latest_states)
    for path in (half, f"{LAYOUT.latest_states}/flights.json"):
        world.fs.write(path, b"{}")
    assert world.sweep(FORGET_FOR_MS) == []
    assert world.sweep(FORGET_FOR_MS + 1) == [half]
