"""How a master starts and ends: what comes first, what YARN and HDFS are told."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest

from tests.entrypoint.yarn.master_world import DIRECTORY, LEADS, FakeCluster, World
from tests.patience import PATIENCE
from tests.runtime.driver.driver_harness import ASSIGNMENT
from yarnflow.core.cluster_result import ClusterResult
from yarnflow.core.ids import DriverId, JobId
from yarnflow.core.states import JobStatus
from yarnflow.core.yarn import DeploymentMode, FinalStatus
from yarnflow.entrypoint.yarn.container import JOB_MANAGER_KEY
from yarnflow.entrypoint.yarn.master_main import MasterTimes
from yarnflow.errors import ResourceError, StorageUnavailable, UserCodeError, YarnflowError, YarnUnavailable
from yarnflow.process.channel.messages import JobStatusReport
from yarnflow.process.clock import SystemClock
from yarnflow.process.cluster_settings import DriverPlaces
from yarnflow.staging.job_keys import JobKeys, KeyTaken

#: a spare driver that is not kept by then is not kept at all; far above the interval of the looks
NOT_KEPT_S: Final = 0.3


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    return World(tmp_path, monkeypatch)


def test_the_slowest_is_started_first_and_the_address_is_told(world: World) -> None:
    published: list[Any] = []

    def end(cluster: FakeCluster) -> None:
        published.append(world.directory.read_connection())
        cluster.finish()

    world.end = end
    assert world.run() == 0
    assert world.clusters[0].steps == ["spare", "jobmanager", "stop"]
    assert world.application.said == [
        "watch",
        (JOB_MANAGER_KEY, LEADS.address),
        "http://node7:80",
        (FinalStatus.SUCCEEDED, ""),
    ]
    assert (published[0].address, published[0].application_id) == (LEADS.address, "application_1")


@pytest.mark.parametrize(
    ("end", "expected"),
    [
        (ClusterResult(JobStatus.FINISHED), (FinalStatus.SUCCEEDED, "")),
        (ClusterResult(JobStatus.FAILED, "KeyError: 'a'"), (FinalStatus.FAILED, "KeyError: 'a'")),
        (ClusterResult(JobStatus.CANCELED, "job x was canceled"), (FinalStatus.KILLED, "job x was canceled")),
        (ResourceError("the JobManager ended"), (FinalStatus.FAILED, "the JobManager ended")),
    ],
)
def test_yarn_sees_the_truth(
    world: World, end: ClusterResult | YarnflowError, expected: tuple[FinalStatus, str]
) -> None:
    def tell(cluster: FakeCluster) -> None:
        if isinstance(end, ClusterResult):
            cluster.listeners.on_end(end)
        else:
            cluster.listeners.on_failure(end)

    world.end = tell
    assert world.run() == 0
    assert world.application.said[-1] == expected


def test_the_result_is_there_before_yarn_knows_and_nothing_afterwards(world: World) -> None:
    assert world.run() == 0
    assert f"{DIRECTORY}/result.json" in world.application.files_at_finish
    assert world.fs.status(DIRECTORY) is None
    assert world.dismissed


def test_a_job_whose_key_was_taken_over_never_gets_task_managers(world: World) -> None:
    keys = JobKeys(world.fs, world.deployment.layout, SystemClock())
    mine = keys.take("k", "0123456789abcdef", "1" * 32, lambda holder: False)
    assert isinstance(mine, KeyTaken)
    assert isinstance(keys.take("k", "fedcba9876543210", "2" * 32, lambda holder: False), KeyTaken)
    world.deployment = replace(world.deployment, job_key="k", key_generation=mine.generation)
    assert world.run() == 0
    status, diagnostics = world.application.said[-1]
    assert status is FinalStatus.FAILED
    assert "job key k was taken over" in diagnostics
    assert not any(JOB_MANAGER_KEY in said for said in world.application.said if isinstance(said, tuple))


def test_the_holder_of_a_key_runs(world: World) -> None:
    keys = JobKeys(world.fs, world.deployment.layout, SystemClock())
    mine = keys.take("k", "0123456789abcdef", "1" * 32, lambda holder: False)
    assert isinstance(mine, KeyTaken)
    world.deployment = replace(world.deployment, job_key="k", key_generation=mine.generation)
    assert world.run() == 0
    assert world.application.said[-1] == (FinalStatus.SUCCEEDED, "")
    holder = keys.holder("k")
    assert holder is not None and holder.application_id == "application_1"


def test_without_hdfs_yarn_is_told_and_the_janitor_stays(world: World) -> None:
    def refuse(operation: str, path: str) -> None:
        raise StorageUnavailable("HDFS is in safe mode")

    world.deployment = replace(world.deployment, configuration={"client.timeout": "0 s"})
    world.fs.before = refuse
    assert world.run() == 0
    assert world.application.said[-1] == (FinalStatus.FAILED, "HDFS is in safe mode")
    assert not world.dismissed


def test_a_start_waits_for_hdfs(world: World) -> None:
    """A NameNode that is in safe mode for a moment ends nobody's job."""
    world.times = MasterTimes(retry_s=0.01)
    keys = JobKeys(world.fs, world.deployment.layout, SystemClock())
    mine = keys.take("k", "0123456789abcdef", "1" * 32, lambda holder: False)
    assert isinstance(mine, KeyTaken)
    world.deployment = replace(world.deployment, job_key="k", key_generation=mine.generation)
    refused: list[str] = []

    def refuse_once(operation: str, path: str) -> None:
        what = f"{operation} {path.rpartition('/')[2]}"
        if operation in ("create", "write") and what not in refused:
            refused.append(what)
            raise StorageUnavailable("HDFS is in safe mode")

    world.fs.before = refuse_once
    assert world.run() == 0
    assert world.application.said[-1] == (FinalStatus.SUCCEEDED, "")
    assert "write connection.json" in refused and any("create" in what for what in refused)


def test_if_yarn_cannot_be_told_the_exit_status_tells_skein(world: World) -> None:
    def finish(status: FinalStatus, diagnostics: str = "") -> None:
        raise ResourceError("skein's ApplicationMaster does not answer")

    world.application.finish = finish  # type: ignore[method-assign]
    assert world.run() == 1
    assert not world.dismissed


def test_any_error_at_the_start_ends_the_application(world: World) -> None:
    def begin(cluster: FakeCluster) -> None:
        cluster.address_error = UserCodeError("no port is free")

    world.begin = begin
    assert world.run() == 0
    assert world.application.said[-1] == (FinalStatus.FAILED, "no port is free")


@pytest.mark.parametrize(
    ("error", "said"),
    [(YarnUnavailable("gone"), "gone"), (ValueError("odd"), "the master broke: ValueError: odd")],
)
def test_a_single_master_that_cannot_be_published_ends_its_application(
    world: World, error: Exception, said: str
) -> None:
    def refuse(url: str) -> None:
        raise error

    world.application.add_web_page = refuse  # type: ignore[method-assign]
    assert world.run() == 0
    assert world.application.said[-1] == (FinalStatus.FAILED, said)


def test_an_end_before_anything_was_connected_is_told_and_cleaned_up(world: World) -> None:
    """Of two threads that connect, the one that tells the end does not wait for the other."""
    main, told = threading.current_thread(), threading.Event()

    def on_connect() -> None:
        if threading.current_thread() is not main:
            told.wait(PATIENCE.thread_s)

    def on_supervised(cluster: FakeCluster) -> None:
        cluster.start_error = ResourceError("broken")

    world.on_connect, world.on_supervised = on_connect, on_supervised
    assert world.run() == 0
    assert world.application.said == [(FinalStatus.FAILED, "broken")]
    assert world.fs.list(DIRECTORY) == [] and world.dismissed
    told.set()


def test_arguments_of_the_job_manager(world: World) -> None:
    world.deployment = replace(world.deployment, initial_task_managers=3, drivers=2)
    world.run()
    arguments = world.clusters[0].arguments
    given = arguments["job_manager_arguments"]
    assert given[given.index("--mode") + 1] == "yarn-per-job"
    assert arguments["workers"].expected == 3
    assert given[given.index("--submission") + 1].endswith("/submission.json")
    assert arguments["drivers"] == DriverPlaces(2)
    assert arguments["kept_logs"] == 100, "a session has many jobs"


def keeps_spare(world: World, running: int, patience_s: float) -> bool:
    """Whether a spare driver is started beside so many that run, in such a time."""
    timers: list[threading.Timer] = []

    def end_later(cluster: FakeCluster) -> None:
        timers.append(threading.Timer(patience_s, cluster.finish))
        timers[-1].daemon = True
        timers[-1].start()

    def on_supervised(cluster: FakeCluster) -> None:
        cluster.running = ["driver"] * running
        cluster.on_spare_kept = cluster.finish

    world.times = MasterTimes(spare_interval_s=0.01)
    world.end, world.on_supervised = end_later, on_supervised
    assert world.run() == 0
    for timer in timers:
        timer.cancel()
    return "keep spare" in world.clusters[-1].steps


@pytest.mark.parametrize(
    ("mode", "running", "expected"),
    [
        (DeploymentMode.SESSION, 1, True),
        (DeploymentMode.SESSION, 2, False),
        (DeploymentMode.PER_JOB, 0, False),
    ],
)
def test_a_session_keeps_a_spare_driver_while_there_is_memory(
    world: World, mode: DeploymentMode, running: int, expected: bool
) -> None:
    world.deployment = replace(world.deployment, mode=mode, drivers=2)
    assert keeps_spare(world, running, PATIENCE.thread_s if expected else NOT_KEPT_S) == expected


def test_drivers_with_containers_of_their_own(world: World) -> None:
    """No driver is started in the master's container; those of YARN end with the cluster."""
    configuration = {**world.deployment.configuration, "driver.placement": "container"}
    world.deployment = replace(
        world.deployment, mode=DeploymentMode.SESSION, drivers=2, configuration=configuration
    )
    assert not keeps_spare(world, 0, NOT_KEPT_S)
    cluster = world.clusters[-1]
    assert "spare" not in cluster.steps
    drivers = world.application.drivers
    assert drivers is not None and cluster.arguments["others_drivers"] is drivers
    drivers.launch(replace(ASSIGNMENT, driver_id=DriverId("driver-1")), 100_000)
    assert [driver_id for driver_id, _status in cluster.driver_ends] == ["driver-1"], "too large"


@pytest.mark.parametrize("sign", ["terminate", "abandon"])
def test_a_killed_master_leaves_the_rest_to_yarn_and_the_janitor(world: World, sign: str) -> None:
    """Nobody has canceled the job, and YARN may start the application anew."""
    world.times = MasterTimes(container_ends_s=0.01)
    world.end = lambda cluster: getattr(world, sign)()
    assert world.run() == 1
    assert world.directory.read_result() is None and world.fs.status(DIRECTORY) is not None
    assert not world.application.ends
    assert not world.dismissed


def test_the_end_of_the_cluster_counts_though_the_container_is_taken_away(world: World) -> None:
    def begin(cluster: FakeCluster) -> None:
        world.terminate()
        cluster.finish(ClusterResult(JobStatus.CANCELED, "job x was canceled"))
        world.abandon()

    world.begin = begin
    assert world.run() == 0
    assert world.application.ends == [(FinalStatus.KILLED, "job x was canceled")]


def test_the_thread_that_talks_to_yarn_survives_everything(world: World) -> None:
    seen: list[float] = []

    def broken(progress: float) -> None:
        seen.append(progress)
        raise KeyError("whatever a library raises")

    def begin(cluster: FakeCluster) -> None:
        cluster.listeners.on_job_status(JobStatusReport(JobId("a" * 32), JobStatus.RUNNING))
        cluster.listeners.on_role(LEADS)

    world.application.set_progress = broken  # type: ignore[method-assign]
    world.begin = begin
    assert world.run() == 0
    assert seen == [0.5]
    assert LEADS.web_address in world.application.said
    assert world.application.ends == [(FinalStatus.SUCCEEDED, "")]
