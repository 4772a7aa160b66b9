"""How a master that is one of several starts and ends."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.entrypoint.yarn.master_world import DIRECTORY, LEADS, FakeCluster, World
from tests.entrypoint.yarn.test_master_main import keeps_spare
from tests.patience import PATIENCE
from yarnflow.core.resources.provider import ProviderState, WorkerExit
from yarnflow.core.yarn import Application, ApplicationState, FinalStatus
from yarnflow.entrypoint.yarn.master_main import MasterTimes
from yarnflow.errors import ResourceError
from yarnflow.process.clock import SystemClock
from yarnflow.staging.job_keys import JobKeys, KeyTaken
from yarnflow.testing.yarn_cluster import FakeYarnCluster


def running(application_id: str) -> Application:
    """A master of the cluster, as YARN reports it."""
    state, final, tag = ApplicationState.RUNNING, FinalStatus.UNDEFINED, "yarnflow-0123456789abcdef"
    return Application(application_id, "n", "ann", "q", state, final, (tag,))


class HaWorld(World):
    """A master of a highly available cluster; its JobManager leads as soon as it is started."""

    def __init__(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__(tmp_path, monkeypatch)
        options = {
            "high-availability.type": "zookeeper",
            "high-availability.storageDir": "hdfs://n:1/ha",
            "high-availability.zookeeper.quorum": "z:1",
        }
        self.deployment = replace(self.deployment, configuration=options, masters=2)
        self.yarn = FakeYarnCluster(running("application_1"))
        self.begin = lambda cluster: threading.Thread(
            target=cluster.listeners.on_role, args=(LEADS,)
        ).start()


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> HaWorld:
    return HaWorld(tmp_path, monkeypatch)


def test_the_end_of_the_cluster_is_told_and_the_directory_stays_for_other_masters(world: HaWorld) -> None:
    world.yarn.add(running("application_2"))
    assert world.run() == 0
    assert world.application.said[-1] == (FinalStatus.SUCCEEDED, "")
    assert f"{DIRECTORY}/result.json" in world.application.files_at_finish
    assert world.fs.status(DIRECTORY) is not None and not world.dismissed, "the last janitor deletes it"
    arguments = world.clusters[0].arguments
    assert arguments["highly_available"] and arguments["master_owner"] is not None


@pytest.mark.parametrize(("others", "written"), [(["application_2"], False), ([], True)])
def test_a_master_that_fails_ends_alone(world: HaWorld, others: list[str], written: bool) -> None:
    for other in others:
        world.yarn.add(running(other))
    world.end = lambda cluster: cluster.listeners.on_failure(ResourceError("no memory"))
    assert world.run() == 0
    assert world.application.said[-1] == (FinalStatus.FAILED, "no memory")
    assert (f"{DIRECTORY}/result.json" in world.application.files_at_finish) == written


def test_a_killed_master_says_nothing_about_the_cluster(world: HaWorld) -> None:
    world.times = MasterTimes(container_ends_s=0.01)
    world.end = lambda cluster: world.terminate()
    assert world.run() == 1
    assert not [said for said in world.application.said if isinstance(said, tuple)]
    assert world.directory.read_result() is None


def test_nobody_leads_before_it_is_certain_that_the_job_may_run(world: HaWorld) -> None:
    """TaskManagers would find the leader and work for a job that has lost its key."""
    keys = JobKeys(world.fs, world.deployment.layout, SystemClock())
    mine = keys.take("k", "0123456789abcdef", "1" * 32, lambda holder: False)
    assert isinstance(mine, KeyTaken)
    world.deployment = replace(world.deployment, job_key="k", key_generation=mine.generation)
    assert world.run() == 0
    assert world.clusters[-1].steps == ["spare", "jobmanager", "stop"]
    keys.take("k", "fedcba9876543210", "2" * 32, lambda holder: False)
    world.directory.create()
    assert world.run() == 0
    assert "jobmanager" not in world.clusters[-1].steps
    assert world.application.said[-1][0] is FinalStatus.FAILED


def test_a_standby_does_not_ask_for_the_key(world: HaWorld) -> None:
    world.deployment = replace(world.deployment, job_key="k", key_generation=7)
    assert world.run(standby=True) == 0
    assert world.application.said[-1] == (FinalStatus.SUCCEEDED, "")


@pytest.mark.parametrize(
    ("mode", "spares", "steps", "workers"),
    [("cold", 0, ["jobmanager"], 0), ("warm", 1, ["spare", "jobmanager"], 0), ("hot", 1, None, 3)],
)
def test_what_a_standby_has_ready(
    world: HaWorld, mode: str, spares: int, steps: list[str] | None, workers: int
) -> None:
    options = {**world.deployment.configuration, "high-availability.standby-mode": mode}
    world.deployment = replace(
        world.deployment, configuration=options, spare_drivers=spares, initial_task_managers=3
    )
    assert world.run(standby=True) == 0
    cluster = world.clusters[-1]
    assert steps is None or cluster.steps[: len(steps)] == steps
    assert cluster.arguments["workers"].expected == workers
    assert cluster.arguments["drivers"].hot_spares == (spares if mode == "hot" else 0)


def test_a_spare_driver_takes_the_place_of_one_that_is_used(world: HaWorld) -> None:
    world.deployment = replace(world.deployment, spare_drivers=1)
    assert keeps_spare(world, 1, PATIENCE.thread_s)


def test_workers_have_names_of_their_own_in_the_cluster(world: HaWorld) -> None:
    told: list[Any] = []
    workers = world.application.workers
    listeners: dict[str, Any] = {}
    workers.on_exit = lambda listener: listeners.update(exit=listener)
    workers.on_state = lambda listener: listeners.update(state=listener)
    workers.request_workers = workers.cancel_requests = lambda count: None
    workers.release_worker = told.append

    def end(cluster: FakeCluster) -> None:
        watched: Any = cluster
        watched.worker_exited = watched.provider_state = told.append
        listeners["exit"](WorkerExit("taskmanager_0", 1))
        listeners["state"](ProviderState(0, granted=("taskmanager_1",)))
        owner = cluster.arguments["workers"].owner
        owner.release_worker("application_1/taskmanager_1")
        owner.release_worker("application_2/taskmanager_1")
        cluster.finish()

    world.end = end
    assert world.run() == 0
    assert told == [
        WorkerExit("application_1/taskmanager_0", 1),
        ProviderState(0, granted=("application_1/taskmanager_1",)),
        "taskmanager_1",
    ]


@pytest.mark.parametrize("error", [ResourceError("not yet"), ValueError("whatever a library raises")])
def test_what_a_role_needs_is_tried_again(world: HaWorld, error: Exception) -> None:
    world.times = MasterTimes(retry_s=0.01)
    add, failures = world.application.add_web_page, [error]

    def refuse_once(url: str) -> None:
        if failures:
            raise failures.pop()
        add(url)

    world.application.add_web_page = refuse_once  # type: ignore[method-assign]
    assert world.run() == 0
    assert "http://node7:80" in world.application.said
