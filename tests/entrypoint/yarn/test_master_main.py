"""How a master starts and ends: what comes first, what YARN and HDFS are told."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import pytest

from tests.entrypoint.yarn.test_container import deployment, entered
from yarnflow.core.cluster_result import ClusterResult
from yarnflow.core.states import JobStatus
from yarnflow.core.yarn import DeploymentMode, FinalStatus
from yarnflow.entrypoint.yarn import master_main
from yarnflow.entrypoint.yarn.container import JOB_MANAGER_KEY
from yarnflow.entrypoint.yarn.master_end import End, first_end
from yarnflow.entrypoint.yarn.master_main import YarnMaster
from yarnflow.errors import ResourceError, StorageUnavailable, UserCodeError, YarnflowError, YarnUnavailable
from yarnflow.process.channel.messages import MasterRole
from yarnflow.process.clock import SystemClock
from yarnflow.staging.deployment import ApplicationDirectory
from yarnflow.staging.job_keys import JobKeys, KeyTaken
from yarnflow.staging.layout import prepare
from yarnflow.testing.file_system import MemoryFileSystem

ADDRESS: Final = "node7:4711"


class FakeCluster:
    """A ClusterSupervisor without processes; ``act`` is what happens once TaskManagers may come."""

    made: list[FakeCluster] = []

    def __init__(self, directory: Any, commands: Any, **arguments: Any) -> None:
        FakeCluster.made.append(self)
        self.directory = directory
        self.arguments = arguments
        self.steps: list[str] = []
        self.drivers = SimpleNamespace(running=lambda: [])

    def start_spare_driver(self, memory_mib: int) -> None:
        self.steps.append("spare")

    def keep_spare_driver(self, memory_mib: int) -> None:
        self.steps.append("spare")

    def start_job_manager(self) -> None:
        """It leads at once."""
        self.steps.append("jobmanager")
        self.arguments["on_role"](MasterRole(True, ADDRESS, "http://node7:80", "l", 1))

    def await_address(self, timeout_s: float) -> str:
        return ADDRESS

    def stop(self, grace_s: float) -> None:
        self.steps.append("stop")

    def worker_exited(self, exit: Any) -> None: ...

    def provider_state(self, state: Any) -> None: ...

    def requests_canceled(self, asked: int, withdrawn: int) -> None: ...

    def program_ended(self, status: int, tail: str) -> None: ...


class FakeApplication:
    def __init__(self, fs: MemoryFileSystem, on_published: Callable[[], None]) -> None:
        self.said: list[Any] = []
        self.files_at_finish: list[str] = []
        self._fs = fs
        self._on_published = on_published
        self.workers = SimpleNamespace(
            on_exit=lambda listener: None,
            on_state=lambda listener: None,
            on_requests_canceled=lambda listener: None,
            start=lambda: self.said.append("watch"),
        )

    def publish(self, key: str, value: bytes) -> None:
        self.said.append((key, value.decode()))

    def add_web_page(self, url: str) -> None:
        self.said.append(url)
        self._on_published()

    def set_progress(self, progress: float) -> None: ...

    def finish(self, status: FinalStatus, diagnostics: str = "") -> None:
        self.files_at_finish = [entry.path for entry in self._fs.list(DIRECTORY)]
        self.said.append((status, diagnostics))


DIRECTORY: Final = "/user/ann/.yarnflow/applications/0123456789abcdef"


class World:
    """One application of a user's on a file system in memory."""

    def __init__(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._tmp_path = tmp_path
        self.fs = MemoryFileSystem()
        self.deployment = deployment()
        self.dismissed = False
        self.end: Callable[[FakeCluster], None] = lambda cluster: cluster.arguments["on_end"](
            ClusterResult(JobStatus.FINISHED)
        )
        self.application = FakeApplication(self.fs, lambda: self.end(FakeCluster.made[-1]))
        self.files: Any = self.fs
        prepare(self.fs, self.deployment.layout, self.fs.user)
        self.directory.create()
        FakeCluster.made.clear()
        monkeypatch.setattr(master_main, "ClusterSupervisor", FakeCluster)
        monkeypatch.setattr(master_main, "set_up_logging", lambda *arguments: None)
        monkeypatch.setattr("signal.signal", lambda number, handler: None)

    @property
    def directory(self) -> ApplicationDirectory:
        return ApplicationDirectory(self.fs, self.deployment.layout, self.deployment.deployment_id)

    def master(self) -> YarnMaster:
        def dismiss() -> None:
            self.dismissed = True

        container = entered(self._tmp_path, self.deployment)
        services = SimpleNamespace(fs=self.files, cluster=None, conf=None)
        return YarnMaster(
            container,
            SimpleNamespace(dismiss=dismiss),  # type: ignore[arg-type]
            lambda: services,  # type: ignore[arg-type, return-value]
            lambda _services: self.application,  # type: ignore[arg-type, return-value]
        )

    def run(self) -> int:
        return self.master().run()


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    yield World(tmp_path, monkeypatch)


def test_the_slowest_is_started_first_and_the_address_is_told(world: World) -> None:
    published: list[Any] = []

    def end(cluster: FakeCluster) -> None:
        published.append(world.directory.read_connection())
        cluster.arguments["on_end"](ClusterResult(JobStatus.FINISHED))

    world.end = end
    assert world.run() == 0
    assert FakeCluster.made[0].steps == ["spare", "jobmanager", "stop"]
    assert world.application.said == [
        "watch",
        (JOB_MANAGER_KEY, ADDRESS),
        "http://node7:80",
        (FinalStatus.SUCCEEDED, ""),
    ]
    assert (published[0].address, published[0].application_id) == (ADDRESS, "application_1")


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
    listener = "on_end" if isinstance(end, ClusterResult) else "on_failure"
    world.end = lambda cluster: cluster.arguments[listener](end)
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
    def refuse(*arguments: Any, **named: Any) -> None:
        raise StorageUnavailable("HDFS is in safe mode")

    world.deployment = replace(world.deployment, configuration={"client.timeout": "0 s"})
    world.files = SimpleNamespace(write=refuse, delete=refuse, read=refuse, list=refuse)
    assert world.run() == 0
    assert world.application.said[-1] == (FinalStatus.FAILED, "HDFS is in safe mode")
    assert not world.dismissed


def test_a_start_waits_for_hdfs(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A NameNode that is in safe mode for a moment ends nobody's job."""
    monkeypatch.setattr(master_main, "_RETRY_S", 0.01)
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


def test_any_error_at_the_start_ends_the_application(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(timeout_s: float) -> str:
        raise UserCodeError("no port is free")

    def start(self: FakeCluster) -> None:
        self.await_address = broken  # type: ignore[method-assign]

    monkeypatch.setattr(FakeCluster, "start_job_manager", start)
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
    assert world.master()._finish(End(FinalStatus.FAILED, "broken")) == 0
    assert world.application.said == [(FinalStatus.FAILED, "broken")]
    assert world.fs.list(DIRECTORY) == [] and world.dismissed


def test_arguments_of_the_job_manager(world: World) -> None:
    world.deployment = replace(world.deployment, initial_task_managers=3, drivers=2)
    world.run()
    arguments = FakeCluster.made[0].arguments
    given = arguments["job_manager_arguments"]
    assert given[given.index("--mode") + 1] == "yarn-per-job"
    assert arguments["expected_workers"] == 3
    assert given[given.index("--submission") + 1].endswith("/submission.json")
    assert arguments["drivers"] == 2


@pytest.mark.parametrize(
    ("mode", "running", "expected"),
    [
        (DeploymentMode.SESSION, 1, ["spare"]),
        (DeploymentMode.SESSION, 2, []),
        (DeploymentMode.PER_JOB, 0, []),
    ],
)
def test_a_session_keeps_a_spare_driver_while_there_is_memory(
    world: World, mode: DeploymentMode, running: int, expected: list[str]
) -> None:
    world.deployment = replace(world.deployment, mode=mode, drivers=2)
    master = world.master()
    cluster = FakeCluster(None, None)
    cluster.drivers.running = lambda: ["driver"] * running
    master._cluster = cluster  # type: ignore[assignment]
    master._keep_spare()
    assert cluster.steps == expected


@pytest.mark.parametrize("sign", ["_terminated", "_abandoned"])
def test_a_killed_master_leaves_the_rest_to_yarn_and_the_janitor(
    world: World, monkeypatch: pytest.MonkeyPatch, sign: str
) -> None:
    """Nobody has canceled the job, and YARN may start the application anew."""
    monkeypatch.setattr(master_main, "_CONTAINER_ENDS_S", 0.01)
    master = world.master()
    world.end = lambda cluster: getattr(master, sign)()
    assert master.run() == 1
    assert world.directory.read_result() is None and world.fs.status(DIRECTORY) is not None
    assert not [said for said in world.application.said if isinstance(said[0], FinalStatus)]
    assert not world.dismissed


def test_the_end_of_the_cluster_counts_though_the_container_is_taken_away(world: World) -> None:
    master = world.master()
    master._terminated()
    master._ends.put(End(FinalStatus.KILLED, "job x was canceled", of_cluster=True))
    master._abandoned()
    assert master._finish(first_end(master._ends)) == 0
    assert world.application.said[-1] == (FinalStatus.KILLED, "job x was canceled")


def test_the_thread_that_talks_to_yarn_survives_everything(world: World) -> None:
    master = world.master()
    master._application = world.application  # type: ignore[assignment]

    def broken(application: Any) -> None:
        raise KeyError("whatever a library raises")

    master._calls.put(broken)
    master._next_call()
