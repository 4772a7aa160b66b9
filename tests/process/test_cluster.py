"""The supervisor of a whole cluster, and what it says about the end of its JobManager."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pytest

from tests.patience import PATIENCE
from tests.process.test_supervisor import World
from yarnflow.core.cluster_result import ClusterResult
from yarnflow.core.ids import DriverId, JobId
from yarnflow.core.json_codec import to_json
from yarnflow.core.messages import DriverAssignment, Fence
from yarnflow.core.resources.provider import ProviderState
from yarnflow.core.states import JobStatus
from yarnflow.errors import ResourceError, YarnflowError
from yarnflow.process.channel.job_manager_end import JobManagerEnd
from yarnflow.process.channel.messages import JobStatusReport, MasterRole
from yarnflow.process.cluster import ClusterSupervisor
from yarnflow.process.cluster_settings import ClusterListeners, DriverPlaces, OthersWorkers
from yarnflow.process.commands import ProcessCommands
from yarnflow.process.dirs import open_cluster_directory
from yarnflow.process.leftovers import MARK_ENVIRONMENT
from yarnflow.testing.resource_provider import FakeResourceProvider

JOB = JobId("a" * 32)


@pytest.fixture
def world() -> Iterator[World]:
    made = World()
    yield made
    for child in made.children:
        child.end(-9)


class Ends:
    """A cluster whose JobManager ends, and what is said about it."""

    def __init__(self, world: World, path: Path, *, highly_available: bool = False) -> None:
        self.processes: SimpleQueue[int] = SimpleQueue()
        self.directory = open_cluster_directory(path / "c")
        commands = ProcessCommands(
            self.directory.path, self.directory.conf_file, self.directory.secret_file, "python"
        )
        self.results: list[ClusterResult] = []
        self.failures: list[YarnflowError] = []
        self.statuses: SimpleQueue[JobStatusReport] = SimpleQueue()
        self.workers = FakeResourceProvider(withdrawn=0)
        self.cluster = ClusterSupervisor(
            self.directory,
            commands,
            workers=OthersWorkers(self.workers, 2 if highly_available else 0),
            drivers=DriverPlaces(1),
            job_manager_arguments=("--mode", "yarn-per-job"),
            highly_available=highly_available,
            listeners=ClusterListeners(
                on_job_status=self.statuses.put,
                on_end=self.results.append,
                on_failure=self.failures.append,
                on_process_ended=self.processes.put,
            ),
            supervisor=world.supervisor,
            schedule=lambda delay, action: world.scheduled.append((delay, action)),
            clock=world,
        )
        self.cluster.start_job_manager()
        self.job_manager = world.children[0]
        self._link: JobManagerEnd | None = None

    @property
    def link(self) -> JobManagerEnd:
        """The first JobManager's end of the channel."""
        if self._link is None:
            self._link = JobManagerEnd(self.job_manager.fds.pop())
        return self._link

    def launch(self, *driver_ids: str) -> None:
        """The first JobManager asks for drivers; returns when the supervisor has heard it."""
        for name in driver_ids:
            assignment = DriverAssignment(JOB, DriverId(name), "jm:1", Fence("l", 1), "file:/c", "/w")
            self.link.driver_launcher.launch(assignment, 1600)
        self.link.ask(JobStatusReport(JOB, JobStatus.RUNNING))
        self.statuses.get(timeout=PATIENCE.thread_s)

    def close(self) -> None:
        self.cluster.stop(0.0)
        if self._link is not None:
            self._link.close()
        self.directory.remove(keep_evidence=False)


class ElsewhereDrivers:
    """Drivers that are no processes of the supervisor."""

    def __init__(self) -> None:
        self.ids: list[DriverId] = []
        self.launched = threading.Event()

    def launch(self, assignment: DriverAssignment, memory_mib: int) -> None:
        self.ids.append(assignment.driver_id)
        self.launched.set()

    def kill(self, driver_id: DriverId, grace_ms: int = 0) -> None:
        self.ids.remove(driver_id)

    def running(self) -> list[DriverId]:
        return self.ids

    def kill_all(self) -> None:
        self.ids.clear()


def test_drivers_that_are_started_elsewhere(world: World, tmp_path: Path) -> None:
    """They run on when the JobManager is started again, which hears of them, and end with the cluster."""
    directory, drivers = open_cluster_directory(tmp_path / "c"), ElsewhereDrivers()
    commands = ProcessCommands(directory.path, directory.conf_file, directory.secret_file, "python")
    cluster = ClusterSupervisor(
        directory,
        commands,
        workers=OthersWorkers(FakeResourceProvider()),
        others_drivers=drivers,
        highly_available=True,
        supervisor=world.supervisor,
        schedule=lambda delay, action: world.scheduled.append((delay, action)),
        clock=world,
    )
    cluster.start_job_manager()
    directory.jobmanager_file.write_text("{}")
    first = JobManagerEnd(world.children[0].fds.pop())
    first.driver_launcher.launch(
        DriverAssignment(JOB, DriverId("driver-7"), "jm:1", Fence("l", 1), "file:/c", "/w"), 1600
    )
    assert drivers.launched.wait(PATIENCE.thread_s)
    first.close()
    world.children[0].end(1)
    world.run_scheduled()
    second, heard = JobManagerEnd(world.children[1].fds.pop()), SimpleQueue[Any]()
    second.on_running_drivers(lambda driver_ids: heard.put(list(driver_ids)))
    second.driver_launcher.on_exit(lambda driver_id, status, _tail: heard.put((driver_id, status)))
    second.start()
    assert heard.get(timeout=PATIENCE.thread_s) == ["driver-7"]
    cluster.driver_exited(DriverId("driver-7"), 3, "tail")
    assert heard.get(timeout=PATIENCE.thread_s) == ("driver-7", 3)
    assert [child.spec.name for child in world.children] == ["jobmanager", "jobmanager"]
    cluster.result_file.write_text(to_json(ClusterResult(JobStatus.FINISHED)))
    world.children[1].end(0)
    assert not drivers.ids
    second.close()
    cluster.stop(0.0)
    directory.remove(keep_evidence=False)


def test_further_arguments_of_the_job_manager(world: World, tmp_path: Path) -> None:
    ends = Ends(world, tmp_path)
    assert ends.job_manager.spec.command[-4:] == ("--mode", "yarn-per-job", "--drivers", "1")
    ends.close()


def test_files_of_a_spare_that_was_there_first_are_its_own(world: World, tmp_path: Path) -> None:
    """On YARN drivers come before the JobManager."""
    directory = open_cluster_directory(tmp_path / "c")
    left = directory.scratch / "driver-7"
    left.mkdir(parents=True)
    commands = ProcessCommands(directory.path, directory.conf_file, directory.secret_file, "python")
    cluster = ClusterSupervisor(
        directory, commands, workers=OthersWorkers(FakeResourceProvider()), supervisor=world.supervisor
    )
    assert not left.exists(), "a killed supervisor's"
    cluster.start_spare_driver(1600)
    (scratch,) = world.children[0].spec.directories
    scratch.mkdir(parents=True)
    cluster.start_job_manager()
    assert scratch.exists()
    cluster.stop(0.0)
    directory.remove(keep_evidence=False)


def test_a_job_manager_whose_work_is_done(world: World, tmp_path: Path) -> None:
    ends = Ends(world, tmp_path)
    ends.cluster.start_spare_driver(1600)
    result = ClusterResult(JobStatus.FAILED, "ValueError: bad row", "a" * 32)
    ends.cluster.result_file.write_text(to_json(result))
    ends.job_manager.end(0)
    assert ends.results == [result] and ends.cluster.result == result
    assert not ends.failures and ends.cluster.failure is None
    assert not world.children[1].alive, "its drivers have nobody to report to"
    with pytest.raises(ResourceError, match="ended already: ValueError: bad row"):
        ends.cluster.await_address(1.0)
    ends.close()


def test_the_address_is_known_once_the_job_manager_has_said_its_role(
    world: World, tmp_path: Path
) -> None:
    ends = Ends(world, tmp_path)
    with pytest.raises(ResourceError, match="did not serve within 0 s"):
        ends.cluster.await_address(0.0)
    ends.link.ask(MasterRole(True, "jm:1", "", "l", 1))
    assert ends.cluster.await_address(20.0) == "jm:1"
    ends.close()


@pytest.mark.parametrize(
    "status, content", [(0, ""), (0, "{broken"), (-9, to_json(ClusterResult(JobStatus.FINISHED)))]
)
def test_every_other_end_of_a_job_manager_is_a_failure(
    world: World, tmp_path: Path, status: int, content: str
) -> None:
    ends = Ends(world, tmp_path)
    if content:
        ends.cluster.result_file.write_text(content)
    ends.job_manager.end(status)
    assert not ends.results and ends.cluster.result is None
    (failure,) = ends.failures
    assert "the JobManager ended with" in failure.message
    ends.close()


def test_the_result_of_an_earlier_cluster_is_not_taken_for_this_ones(world: World, tmp_path: Path) -> None:
    directory = open_cluster_directory(tmp_path / "c")
    (directory.path / "result.json").write_text(to_json(ClusterResult(JobStatus.FINISHED)))
    ends = Ends(world, tmp_path)
    ends.job_manager.end(0)
    assert not ends.results and ends.failures
    ends.close()


def test_nothing_is_said_about_a_job_manager_that_was_stopped(world: World, tmp_path: Path) -> None:
    ends = Ends(world, tmp_path)
    ends.close()
    assert not ends.job_manager.alive
    assert not ends.results and not ends.failures


def test_a_driver_waits_for_its_predecessor(world: World, tmp_path: Path) -> None:
    ends = Ends(world, tmp_path)
    ends.launch("d-1", "d-2")
    assert len(world.children) == 2
    world.children[1].end(0)
    assert len(world.children) == 3
    assert "d-2" in world.children[2].lines[0]
    ends.close()


# --- with high availability ---


def serve(ends: Ends) -> None:
    ends.directory.jobmanager_file.write_text("{}")


def test_a_dead_job_manager_is_started_again_at_once_and_drivers_run_on(
    world: World, tmp_path: Path
) -> None:
    ends = Ends(world, tmp_path, highly_available=True)
    ends.launch("d-1")
    serve(ends)
    ends.job_manager.end(-9)
    assert world.run_scheduled() == 0
    assert [child.spec.name for child in world.children] == ["jobmanager", "driver-1", "jobmanager"]
    assert world.children[1].alive and not ends.failures
    ends.close()


@pytest.mark.parametrize(("known", "expects", "canceled"), [(True, False, [1]), (False, True, [])])
def test_requests_of_the_last_job_manager_are_withdrawn_or_its_successors(
    world: World, tmp_path: Path, known: bool, expects: bool, canceled: list[int]
) -> None:
    """Never both, or it would wait for TaskManagers nobody asks for any more."""
    ends = Ends(world, tmp_path, highly_available=True)
    assert ends.job_manager.spec.command[-2:] == ("--expected-workers", "2")
    serve(ends)
    if known:
        ends.cluster.provider_state(ProviderState(1, "", ("w1",)))
    ends.job_manager.end(-9)
    world.run_scheduled()
    assert ("--expected-workers" in world.children[-1].spec.command) == expects
    assert ends.workers.cancels == canceled
    ends.close()


def test_it_is_started_more_slowly_when_it_crashes_again_and_again(world: World, tmp_path: Path) -> None:
    ends = Ends(world, tmp_path, highly_available=True)
    serve(ends)
    delays = []
    for _ in range(4):
        world.children[-1].end(1)
        delays.append(world.run_scheduled())
    world.time_ms += 10_000
    world.children[-1].end(-9)
    delays.append(world.run_scheduled())
    assert delays == [0, 500, 1_000, 2_000, 0]
    ends.close()


def test_one_that_has_never_served_is_a_failure(world: World, tmp_path: Path) -> None:
    """A port that is taken, or an option that is wrong: nobody is helped by trying again."""
    ends = Ends(world, tmp_path, highly_available=True)
    ends.job_manager.end(56)
    assert ends.failures and not world.scheduled
    ends.close()


def test_the_end_of_the_cluster_is_the_end_of_its_masters(world: World, tmp_path: Path) -> None:
    ends = Ends(world, tmp_path, highly_available=True)
    ends.launch("d-1")
    serve(ends)
    ends.cluster.result_file.write_text(to_json(ClusterResult(JobStatus.FINISHED)))
    ends.job_manager.end(0)
    assert ends.results and not world.scheduled and not world.children[1].alive
    ends.close()


def test_a_new_job_manager_is_told_what_it_has_not_seen(
    world: World, tmp_path: Path
) -> None:
    """The first driver has ended while there was none, so that the second one was started."""
    ends = Ends(world, tmp_path, highly_available=True)
    ends.launch("d-1", "d-2")
    serve(ends)
    ends.job_manager.end(-9)
    ends.cluster.provider_state(ProviderState(0, "", ("w1",)))
    world.children[1].end(3)
    world.run_scheduled()
    link = JobManagerEnd(world.children[-1].fds.pop())
    heard: SimpleQueue[Any] = SimpleQueue()
    link.on_running_drivers(lambda driver_ids: heard.put(list(driver_ids)))
    link.driver_launcher.on_exit(lambda driver_id, status, _tail: heard.put((driver_id, status)))
    link.resource_provider.on_state(heard.put)
    link.start()
    assert heard.get(timeout=PATIENCE.thread_s) == ["d-2"]
    assert heard.get(timeout=PATIENCE.thread_s) == ("d-1", 3)
    assert heard.get(timeout=PATIENCE.thread_s) == ProviderState(0, "", ("w1",))
    link.close()
    ends.close()


def test_ended_processes_are_told_when_nothing_of_them_runs(world: World, tmp_path: Path) -> None:
    ends = Ends(world, tmp_path, highly_available=True)
    ends.cluster.start_spare_driver(1600)
    ends.launch("d-1")
    spec = world.children[1].spec
    name = MARK_ENVIRONMENT
    # a session of its own, as a driver's JVM has
    left = subprocess.Popen(
        [sys.executable, "-c", "import sys; print(flush=True); sys.stdin.read()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, name: spec.environment[name]},
        start_new_session=True,
    )
    assert left.stdout is not None and left.stdin is not None
    left.stdout.readline()
    world.children[1].end(-9)
    (teller,) = (thread for thread in threading.enumerate() if thread.name == "ended-1001")
    teller.join(0.2)
    assert teller.is_alive() and ends.processes.empty(), "told while its child still runs"
    left.stdin.close()
    left.wait(PATIENCE.thread_s)
    left.stdout.close()
    assert ends.processes.get(timeout=PATIENCE.thread_s) == 1001
    ends.close()


def test_a_job_manager_that_was_started_again_does_not_hide_the_end_of_the_first(
    world: World, tmp_path: Path
) -> None:
    ends = Ends(world, tmp_path, highly_available=True)
    ends.directory.jobmanager_file.write_text("{}")
    ends.job_manager.end(-9)
    assert ends.processes.get(timeout=PATIENCE.thread_s) == 1000
    world.scheduled.pop()[1]()
    first, second = (child.spec.environment[MARK_ENVIRONMENT] for child in world.children)
    assert first != second
    ends.close()


def test_a_cluster_can_be_stopped_while_its_processes_end(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is joined must have been started: joining it too early failed the whole application."""
    ends = Ends(world, tmp_path, highly_available=True)
    ends.cluster.start_spare_driver(1600)
    serve(ends)
    ends.job_manager.end(-9)
    assert ends.processes.get(timeout=PATIENCE.thread_s) == 1000, "nothing but the driver is to be waited for"
    start = threading.Thread.start
    errors: list[Exception] = []

    def stop() -> None:
        try:
            ends.cluster.stop(0.0)
        except RuntimeError as error:
            errors.append(error)

    stopper = threading.Thread(target=stop)

    def stopped_first(thread: threading.Thread) -> None:
        """Let somebody stop the cluster just before the thread is started."""
        if stopper.ident is None:
            start(stopper)
            stopper.join(0.2)
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", stopped_first)
    world.children[1].end(-9)
    stopper.join(PATIENCE.thread_s)
    assert stopper.ident is not None and not stopper.is_alive() and not errors
