"""A master on YARN whose processes, ApplicationMaster and file system are the test's."""

from __future__ import annotations

import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final, cast

import pytest

from tests.entrypoint.yarn.test_container import deployment, entered
from yarnflow.config.hadoop.conf import HadoopConf
from yarnflow.core.cluster_result import ClusterResult
from yarnflow.core.ids import DriverId
from yarnflow.core.states import JobStatus
from yarnflow.core.yarn import FinalStatus
from yarnflow.entrypoint.yarn import master_main
from yarnflow.entrypoint.yarn.janitor import Janitor
from yarnflow.entrypoint.yarn.master_main import MasterTimes, YarnMaster
from yarnflow.entrypoint.yarn.services import ContainerServices
from yarnflow.process.channel.messages import MasterRole
from yarnflow.process.cluster_settings import ClusterListeners
from yarnflow.staging.deployment import ApplicationDirectory
from yarnflow.staging.layout import prepare
from yarnflow.testing.file_system import MemoryFileSystem
from yarnflow.testing.yarn_cluster import FakeYarnCluster
from yarnflow.yarn.drivers import YarnDrivers

LEADS: Final = MasterRole(True, "node7:4711", "http://node7:80", "l", 1)
DIRECTORY: Final = "/user/ann/.yarnflow/applications/0123456789abcdef"


class FakeCluster:
    """A ClusterSupervisor without processes.

    Attributes
    ----------
    arguments : dict
        What it was made with; its callbacks are for the test to call.
    steps : list of str
        What it was told, in order.
    running : list of str
        Drivers there are.
    start_error, address_error : Exception, optional
        Raised by the start of the first process, and when the JobManager's address is asked for.
    """

    def __init__(self, arguments: dict[str, Any], begin: Callable[[FakeCluster], None]) -> None:
        self.arguments = arguments
        self.steps: list[str] = []
        self.driver_ends: list[tuple[DriverId, int]] = []
        self.running: list[str] = []
        self.start_error: Exception | None = None
        self.address_error: Exception | None = None
        self.on_spare_kept: Callable[[], None] = lambda: None
        self.drivers = SimpleNamespace(running=lambda: self.running)
        self._begin = begin

    @property
    def listeners(self) -> ClusterListeners:
        """Who is told of what happens."""
        listeners = self.arguments["listeners"]
        assert isinstance(listeners, ClusterListeners)
        return listeners

    def start_spare_driver(self, memory_mib: int) -> None:
        if self.start_error is not None:
            raise self.start_error
        self.steps.append("spare")

    def keep_spare_driver(self, memory_mib: int) -> None:
        self.steps.append("keep spare")
        self.on_spare_kept()

    def start_job_manager(self) -> None:
        self.steps.append("jobmanager")
        self._begin(self)

    def await_address(self, timeout_s: float) -> str:
        if self.address_error is not None:
            raise self.address_error
        return LEADS.address

    def stop(self, grace_s: float) -> None:
        self.steps.append("stop")

    def finish(self, result: ClusterResult = ClusterResult(JobStatus.FINISHED)) -> None:
        """The JobManager ends because its work is done."""
        self.listeners.on_end(result)

    def worker_exited(self, exit: Any) -> None: ...

    def driver_exited(self, driver_id: DriverId, exit_status: int, output_tail: str) -> None:
        self.driver_ends.append((driver_id, exit_status))

    def provider_state(self, state: Any) -> None: ...

    def requests_canceled(self, asked: int, withdrawn: int) -> None: ...

    def program_ended(self, status: int, tail: str) -> None: ...


class FakeApplication:
    """skein's ApplicationMaster: what it was told, in order."""

    def __init__(self, fs: MemoryFileSystem, on_published: Callable[[], None]) -> None:
        self.said: list[Any] = []
        self.drivers: YarnDrivers | None = None
        self.files_at_finish: list[str] = []
        self._fs = fs
        self._on_published = on_published
        self.workers = SimpleNamespace(
            on_exit=lambda listener: None,
            on_state=lambda listener: None,
            on_requests_canceled=lambda listener: None,
            start=lambda: self.said.append("watch"),
        )

    @property
    def ends(self) -> list[tuple[FinalStatus, str]]:
        """Final statuses it was told."""
        return [said for said in self.said if isinstance(said[0], FinalStatus)]

    def publish(self, key: str, value: bytes) -> None:
        self.said.append((key, value.decode()))

    def serve_drivers(self, drivers: YarnDrivers) -> None:
        self.said.append("drivers")
        self.drivers = drivers

    def add_web_page(self, url: str) -> None:
        self.said.append(url)
        self._on_published()

    def set_progress(self, progress: float) -> None: ...

    def finish(self, status: FinalStatus, diagnostics: str = "") -> None:
        self.files_at_finish = self._fs.paths(DIRECTORY)
        self.said.append((status, diagnostics))


class World:
    """One application of a user's on a file system in memory; its JobManager leads as soon as it is started.

    Attributes
    ----------
    begin : callable
        What happens when the JobManager is started, in the thread that starts it.
    end : callable
        What happens once the leader is published; by default its work is done.
    on_supervised : callable
        Called with each cluster as it is made.
    on_connect : callable
        Called before there is a connection to skein's ApplicationMaster.
    times : MasterTimes
        Of masters that are made from then on.
    """

    def __init__(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._tmp_path = tmp_path
        self.fs = MemoryFileSystem()
        self.yarn = FakeYarnCluster()
        self.deployment = deployment()
        self.dismissed = False
        self.clusters: list[FakeCluster] = []
        self.times = MasterTimes()
        self.begin: Callable[[FakeCluster], None] = lambda cluster: cluster.listeners.on_role(LEADS)
        self.end: Callable[[FakeCluster], None] = lambda cluster: cluster.finish()
        self.on_supervised: Callable[[FakeCluster], None] = lambda cluster: None
        self.on_connect: Callable[[], None] = lambda: None
        self.application = FakeApplication(self.fs, lambda: self.end(self.clusters[-1]))
        self._handlers: dict[int, Callable[[int, None], None]] = {}
        self._abandoned: list[Callable[[], None]] = []
        prepare(self.fs, self.deployment.layout, self.fs.user)
        self.directory.create()
        monkeypatch.setattr(master_main, "set_up_logging", lambda *arguments: None)
        monkeypatch.setattr("signal.signal", self._handlers.__setitem__)

    @property
    def directory(self) -> ApplicationDirectory:
        return ApplicationDirectory(self.fs, self.deployment.layout, self.deployment.deployment_id)

    def run(self, *, standby: bool = False) -> int:
        """Run a master to its end; returns its exit status."""
        container = replace(entered(self._tmp_path, self.deployment), standby=standby)
        services = ContainerServices(HadoopConf(self._tmp_path, {}), self.fs, self.yarn)
        return YarnMaster(
            container,
            cast(Janitor, SimpleNamespace(dismiss=self._dismiss)),
            lambda: services,
            self._connect,
            supervise=self._supervise,
            when_abandoned=self._abandoned.append,
            times=self.times,
        ).run()

    def terminate(self) -> None:
        """YARN takes the container away: SIGTERM."""
        self._handlers[signal.SIGTERM](signal.SIGTERM, None)

    def abandon(self) -> None:
        """skein's ApplicationMaster ends by itself."""
        for tell in self._abandoned:
            tell()

    def _connect(self, services: ContainerServices) -> Any:
        self.on_connect()
        return self.application

    def _supervise(self, directory: object, commands: object, **arguments: Any) -> Any:
        self.clusters.append(FakeCluster(arguments, lambda cluster: self.begin(cluster)))
        self.on_supervised(self.clusters[-1])
        return self.clusters[-1]

    def _dismiss(self) -> None:
        self.dismissed = True
