"""Restart policy, driver pool, worker pool: with children that exist only here."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.patience import PATIENCE
from yarnflow.core.ids import DriverId, JobId
from yarnflow.core.messages import DriverAssignment, Fence
from yarnflow.core.resources.provider import WorkerExit
from yarnflow.errors import ResourceError
from yarnflow.process.cluster import ClusterSupervisor
from yarnflow.process.commands import ProcessCommands
from yarnflow.process.dirs import open_cluster_directory
from yarnflow.process.output.rotation import LogRotation
from yarnflow.process.pools import CANNOT_START_STATUS, SPARE_AFTER_S, DriverPool, WorkerPool
from yarnflow.process.spawn import ProcessSpec
from yarnflow.process.supervisor import NEVER, Child, RestartPolicy, Supervisor

ON_EXIT = RestartPolicy(restart=True)


class FakeChild:
    def __init__(self, spec: ProcessSpec, pid: int) -> None:
        self._spec, self._pid = spec, pid
        self.status: int | None = None
        self.lines: list[str] = []
        self.listeners: list[Callable[[int], None]] = []
        self.reads = True
        #: what the process was given, as long as it lives and the test has not taken it
        self.fds = [os.dup(fd) for fd in spec.pass_fds]

    @property
    def spec(self) -> ProcessSpec:
        return self._spec

    @property
    def pid(self) -> int:
        return self._pid

    @property
    def alive(self) -> bool:
        return self.status is None

    def on_exit(self, listener: Callable[[int], None]) -> None:
        if self.status is not None:
            listener(self.status)
        else:
            self.listeners.append(listener)

    def wait(self, timeout_s: float | None = None) -> int | None:
        return self.status

    def write_line(self, line: str) -> bool:
        self.lines.append(line)
        return self.reads

    def end(self, status: int) -> None:
        if self.status is None:
            self.status = status
            while self.fds:
                os.close(self.fds.pop())
            for listener in self.listeners:
                listener(status)

    def terminate_group(self, grace_s: float = 5.0) -> int | None:
        self.end(-15)
        return self.status

    def kill_group(self) -> None:
        self.end(-9)

    def output_tail(self, lines: int = 20) -> str:
        return f"tail of {self.spec.name}"


class World:
    """Everything outside the supervisor."""

    def __init__(self) -> None:
        self.children: list[FakeChild] = []
        self.scheduled: list[tuple[int, Callable[[], None]]] = []
        self.time_ms = 0
        self.broken = False
        self.supervisor = Supervisor(
            self.launch, lambda delay, action: self.scheduled.append((delay, action)), self
        )

    def launch(self, spec: ProcessSpec) -> FakeChild:
        if self.broken:
            raise ResourceError("no more processes")
        child = FakeChild(spec, 1000 + len(self.children))
        self.children.append(child)
        return child

    def now_ms(self) -> int:
        return self.time_ms

    def monotonic_ms(self) -> int:
        return self.time_ms

    def run_scheduled(self) -> int:
        delay, action = self.scheduled.pop(0)
        action()
        return delay


@pytest.fixture
def world() -> Iterator[World]:
    made = World()
    yield made
    for child in made.children:
        child.end(-9)


def _spec() -> ProcessSpec:
    return ProcessSpec("worker", ("true",))


def test_policy_doubles_up_to_its_maximum_and_starts_over() -> None:
    policy = RestartPolicy(restart=True, initial_ms=100, max_ms=350, reset_after_ms=1000)
    assert policy.next_delay_ms(None, 5) == 100
    assert policy.next_delay_ms(100, 5) == 200
    assert policy.next_delay_ms(200, 999) == 350
    assert policy.next_delay_ms(350, 1000) == 100
    assert NEVER.next_delay_ms(None, 5) is None


def test_only_an_end_that_nobody_wanted_is_a_warning(world: World, caplog: pytest.LogCaptureFixture) -> None:
    """Warnings stand on the terminal of a local cluster's command."""
    caplog.set_level("INFO")
    for name in ("ended", "died"):
        world.supervisor.start(name, _spec, ON_EXIT)
    world.supervisor.end("ended")
    world.children[1].end(-9)
    ends = [record.levelname for record in caplog.records if "signal 9" in record.getMessage()]
    assert ends == ["INFO", "WARNING"]


def test_child_is_started_again_with_growing_delay(world: World) -> None:
    ends: list[tuple[int, bool]] = []

    def observe(child: Child, status: int, again: bool) -> None:
        ends.append((status, again))

    world.supervisor.start("w", _spec, ON_EXIT, observe)
    world.children[0].end(-9)
    assert world.run_scheduled() == 500
    world.children[1].end(1)
    assert world.run_scheduled() == 1000
    world.time_ms = 60_000
    world.children[2].end(1)
    assert world.run_scheduled() == 500
    assert ends == [(-9, True), (1, True), (1, True)]
    assert len(world.children) == 4


def test_failed_restart_is_tried_again(world: World) -> None:
    world.supervisor.start("w", _spec, ON_EXIT)
    world.broken = True
    world.children[0].end(1)
    world.run_scheduled()
    world.broken = False
    assert world.run_scheduled() == 1000
    assert len(world.children) == 2


def test_child_without_policy_is_forgotten(world: World) -> None:
    world.supervisor.start("w", _spec)
    world.children[0].end(0)
    assert world.scheduled == []
    assert world.supervisor.names() == []


def test_ended_child_stays_ended(world: World) -> None:
    world.supervisor.start("w", _spec, ON_EXIT)
    world.supervisor.end("w")
    assert world.children[0].status == -9
    assert world.scheduled == []
    world.supervisor.end("unknown")


def test_child_ended_while_it_waits_for_its_restart(world: World) -> None:
    world.supervisor.start("w", _spec, ON_EXIT)
    world.children[0].end(1)
    world.supervisor.end("w")
    world.run_scheduled()
    assert len(world.children) == 1


def test_stop_ends_all_and_starts_nothing_any_more(world: World) -> None:
    world.supervisor.start("a", _spec, ON_EXIT)
    world.supervisor.start("b", _spec, ON_EXIT)
    world.children[1].end(1)
    world.supervisor.stop(1.0)
    assert world.children[0].status == -15
    world.run_scheduled()
    assert len(world.children) == 2
    assert world.supervisor.start("c", _spec) is None


def test_stop_at_once_needs_no_threads(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.supervisor.start("a", _spec, ON_EXIT)

    def at_shutdown(thread: threading.Thread) -> None:
        raise RuntimeError("can't create new thread at interpreter shutdown")

    monkeypatch.setattr(threading.Thread, "start", at_shutdown)
    world.supervisor.stop(0.0)
    assert world.children[0].status == -9


# --- drivers -----------------------------------------------------------------


def _assignment(driver_id: str) -> DriverAssignment:
    job = JobId("a" * 32)
    return DriverAssignment(job, DriverId(driver_id), "localhost:1", Fence("l", 1), "file:/c", "/w")


def _driver_pool(
    world: World, now_s: Callable[[], float] = lambda: 0.0
) -> tuple[DriverPool, list[tuple[str, int, str]]]:
    exits: list[tuple[str, int, str]] = []
    commands = ProcessCommands(Path("/c"), Path("/c/conf.json"), Path("/c/secret"), "python")
    pool = DriverPool(
        world.supervisor,
        commands,
        Path("/c/logs"),
        Path("/c/scratch"),
        lambda *exit: exits.append(exit),
        now_s=now_s,
    )
    return pool, exits


def test_spare_with_fitting_memory_takes_the_assignment(world: World) -> None:
    pool, exits = _driver_pool(world)
    pool.start_spare(1600)
    pool.start_spare(1600)
    assert len(world.children) == 1 and world.children[0].lines == []
    pool.launch(_assignment("d1"), 1600)
    assert json.loads(world.children[0].lines[0])["driver_id"] == "d1"
    pool.launch(_assignment("d1"), 1600)  # asked twice
    assert len(world.children) == 1
    world.children[0].end(3)
    assert exits == [("d1", 3, "tail of driver-1")]
    assert pool.running() == []


def test_a_driver_that_has_finished_a_job_gets_the_next_one(world: World) -> None:
    pool, exits = _driver_pool(world)
    pool.launch(_assignment("d1"), 1600)
    again = replace(_assignment("d1"), job_id=JobId("b" * 32))
    pool.launch(again, 1600)
    pool.launch(again, 1600)  # asked twice
    (child,) = world.children
    assert [json.loads(line)["job_id"][0] for line in child.lines] == ["a", "b"]
    child.end(3)
    assert exits == [("d1", 3, "tail of driver-1")]


def test_the_next_spare_waits_until_the_driver_is_up(world: World) -> None:
    now_s = 100.0
    pool, _ = _driver_pool(world, lambda: now_s)
    pool.keep_spare(1600)
    assert len(world.children) == 1, "no driver could be disturbed"
    pool.launch(_assignment("d1"), 1600)
    now_s += SPARE_AFTER_S - 1
    pool.keep_spare(1600)
    assert len(world.children) == 1
    now_s += 1
    pool.keep_spare(1600)
    assert len(world.children) == 2


def test_temporary_files_go_with_the_driver(world: World) -> None:
    pool, _ = _driver_pool(world)
    pool.start_spare(1600)
    spec = world.children[0].spec
    assert spec.directories == (Path("/c/scratch/driver-1"),)
    assert spec.command[spec.command.index("--scratch-dir") + 1] == "/c/scratch/driver-1"
    assert "TMPDIR" not in spec.environment, "what a program puts there is its user's"


@pytest.fixture
def job_dir(tmp_path: Path) -> Path:
    """As a driver makes it, with what it was sent."""
    return _make(tmp_path / "jobs" / "a")


def _make(job_dir: Path) -> Path:
    (job_dir / "program").mkdir(parents=True)
    (job_dir / "program" / "main.py").write_text("pass")
    return job_dir


def _await_removal(job_dir: Path) -> None:
    for thread in threading.enumerate():
        if thread.name == "remove-directories":
            thread.join(PATIENCE.thread_s)
    assert list(job_dir.parent.iterdir()) == []


def test_files_of_a_job_go_with_its_driver(world: World, job_dir: Path) -> None:
    pool, exits = _driver_pool(world)
    pool.start_spare(1600)
    pool.launch(replace(_assignment("d1"), work_dir=str(job_dir)), 1600)
    world.children[0].end(-9)
    assert not job_dir.exists(), "the next driver of the job makes it anew"
    _await_removal(job_dir)
    pool.launch(replace(_assignment("d2"), work_dir=str(job_dir)), 1600)
    _make(job_dir)
    world.children[1].end(0)
    _await_removal(job_dir)
    assert [exit[0] for exit in exits] == ["d1", "d2"]


def test_files_of_a_job_stay_for_the_driver_that_stands_by(world: World, job_dir: Path) -> None:
    pool, _ = _driver_pool(world)
    for driver_id in ("d1", "d2"):
        pool.launch(replace(_assignment(driver_id), work_dir=str(job_dir)), 1600)
    pool.launch(_assignment("d3"), 1600)
    world.children[0].end(-9)
    world.children[2].end(0)
    assert (job_dir / "program" / "main.py").exists()
    world.children[1].end(0)
    _await_removal(job_dir)


def test_files_of_a_job_go_when_its_driver_gets_another_one(world: World, job_dir: Path) -> None:
    pool, _ = _driver_pool(world)
    pool.launch(replace(_assignment("d1"), work_dir=str(job_dir)), 1600)
    again = _make(job_dir.with_name("b"))
    pool.launch(replace(_assignment("d1"), job_id=JobId("b" * 32), work_dir=str(again)), 1600)
    assert not job_dir.exists() and again.exists()
    world.children[0].end(0)
    _await_removal(job_dir)


def test_old_logs_of_drivers_are_removed(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of spares as well."""
    rotation = LogRotation()
    monkeypatch.setattr("yarnflow.process.cluster.own_rotation", lambda: rotation)
    directory = open_cluster_directory(tmp_path / "c")
    commands = ProcessCommands(directory.path, directory.conf_file, directory.secret_file, "python")
    cluster = ClusterSupervisor(directory, commands, supervisor=world.supervisor, kept_logs=1)
    for number, assignment in enumerate((_assignment("d1"), None, _assignment("d2"))):
        cluster.start_spare_driver(1600)
        if assignment is not None:
            cluster.drivers.launch(assignment, 1600)
        head = world.children[number].spec.log_file
        assert head is not None
        for file in (head, head.with_suffix(".log"), head.with_suffix(".jvm.log")):
            file.write_text("text")
        world.children[number].end(0)
        rotation.rotate(number)
        assert {path.name.split(".")[0] for path in directory.logs.iterdir()} == {f"driver-{number + 1}"}
    cluster.stop(0.0)


def test_spare_of_other_memory_makes_room(world: World) -> None:
    pool, exits = _driver_pool(world)
    pool.start_spare(1600)
    pool.launch(_assignment("d1"), 2048)
    assert not world.children[0].alive
    assert exits == []
    assert world.children[0].lines == []
    assert "2048" in world.children[1].spec.command
    assert len(world.children[1].lines) == 1


def test_dying_spare_is_replaced_by_a_new_driver(world: World) -> None:
    pool, exits = _driver_pool(world)
    pool.start_spare(1600)
    world.children[0].reads = False
    pool.launch(_assignment("d1"), 1600)
    assert len(world.children[1].lines) == 1
    world.children[0].end(1)
    assert exits == []  # it never was driver d1
    assert pool.running() == ["d1"]


def test_driver_that_cannot_be_started_is_reported(world: World) -> None:
    pool, exits = _driver_pool(world)
    world.broken = True
    pool.start_spare(1600)
    pool.launch(_assignment("d1"), 1600)
    assert exits == [("d1", CANNOT_START_STATUS, "no more processes")]


def test_kill_driver(world: World) -> None:
    pool, exits = _driver_pool(world)
    pool.launch(_assignment("d1"), 1600)
    pool.launch(_assignment("d2"), 1600)
    pool.kill(DriverId("d1"))
    pool.kill(DriverId("nobody"))
    assert [exit[:2] for exit in exits] == [("d1", -9)]
    assert pool.running() == ["d2"]


# --- workers -----------------------------------------------------------------


def test_dead_worker_is_replaced_under_new_ids_and_a_released_one_is_not(world: World) -> None:
    exits: list[WorkerExit] = []
    commands = ProcessCommands(Path("/c"), Path("/c/conf.json"), Path("/c/secret"), "python")
    pool = WorkerPool(world.supervisor, commands, Path("/c/logs"), exits.append)
    pool.request_workers(2)
    first, second = pool.worker_ids()
    assert pool.cancel_requests(1) == 0
    world.children[0].end(-9)
    assert exits == [WorkerExit(first, -9)]
    world.run_scheduled()
    assert first not in pool.worker_ids() and len(pool.worker_ids()) == 2
    assert world.children[0].spec.command != world.children[2].spec.command
    done: list[int] = []
    world.children[1].on_exit(done.append)
    pool.release_worker(second)
    while not done:
        pass
    assert world.scheduled == []
    assert exits[1:] == [WorkerExit(second, -15, released=True)]


def _worker_pool(world: World, limit: int | None = None) -> WorkerPool:
    commands = ProcessCommands(Path("/c"), Path("/c/conf.json"), Path("/c/secret"), "python")
    return WorkerPool(world.supervisor, commands, Path("/c/logs"), limit=limit)


def test_never_more_workers_than_the_limit(world: World) -> None:
    pool = _worker_pool(world, limit=2)
    pool.request_workers(1)
    pool.request_workers(15)
    pool.request_workers(1)
    assert len(world.children) == len(pool.worker_ids()) == 2
    world.children[0].end(-9)
    world.run_scheduled()
    assert len(pool.worker_ids()) == 2  # a replacement is not one more


def test_worker_that_could_not_be_started_is_none(world: World) -> None:
    world.broken = True
    pool = _worker_pool(world)
    pool.request_workers(1)
    assert pool.worker_ids() == []


@pytest.mark.parametrize("workers", [0, 2])
def test_job_manager_is_told_whether_workers_are_its_supervisors(
    world: World, workers: int, tmp_path: Path
) -> None:
    directory = open_cluster_directory(tmp_path / "c")
    commands = ProcessCommands(directory.path, directory.conf_file, directory.secret_file, "python")
    cluster = ClusterSupervisor(directory, commands, workers=workers, supervisor=world.supervisor)
    cluster.start_job_manager()
    command = world.children[0].spec.command
    assert command[command.index("--workers") + 1] == str(workers)
    if workers:
        cluster.start_workers()
        assert len(world.children) == 1 + workers
        cluster.add_worker()
        assert len(world.children) == 2 + workers
    cluster.stop(0.0)
    directory.remove(keep_evidence=False)


def test_cluster_without_a_single_worker_is_an_error(world: World, tmp_path: Path) -> None:
    directory = open_cluster_directory(tmp_path / "c")
    commands = ProcessCommands(directory.path, directory.conf_file, directory.secret_file, "python")
    cluster = ClusterSupervisor(directory, commands, workers=1, supervisor=world.supervisor)
    world.broken = True
    with pytest.raises(ResourceError, match="no TaskManager could be started"):
        cluster.start_workers()
    cluster.stop(0.0)
    directory.remove(keep_evidence=False)
