"""The supervisor of the one driver of a container."""

from __future__ import annotations

import json
import stat
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.process.test_supervisor import World
from yarnflow.core.ids import DriverId, JobId
from yarnflow.core.messages import DriverAssignment, Fence
from yarnflow.entrypoint.yarn import driver_main
from yarnflow.entrypoint.yarn.driver_main import DriverContainer
from yarnflow.process.commands import ProcessCommands
from yarnflow.process.dirs import open_cluster_directory
from yarnflow.yarn.application import YarnApplication

JOB = JobId("a" * 32)
ASSIGNMENT = DriverAssignment(JOB, DriverId("driver-1"), "jm:1", Fence("l", 1), "hdfs:///c", "/elsewhere")


class Place:
    def __init__(self, path: Path) -> None:
        self.world = World()
        self.directory = open_cluster_directory(path / "c")
        self.closed: list[int] = []
        commands = ProcessCommands(
            self.directory.path, self.directory.conf_file, self.directory.secret_file, "python"
        )
        self.driver = DriverContainer(
            self.directory, commands, self.closed.append, self.world.supervisor
        )


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    made = Place(tmp_path)
    yield made
    made.world.supervisor.stop(0.0)
    made.directory.remove(keep_evidence=False)


@pytest.mark.parametrize(("status", "told"), [(0, 0), (42, 42), (-9, 137)])
def test_the_container_ends_as_its_driver_does(
    place: Place, capfd: pytest.CaptureFixture[str], status: int, told: int
) -> None:
    place.driver.warm_up(1600)
    (process,) = place.world.children
    assert not process.lines, "its JVM starts before anybody knows the job"
    place.driver.launch(ASSIGNMENT, 1600)
    (line,) = process.lines
    assert json.loads(line)["work_dir"] == str(place.directory.path / "jobs" / JOB)
    process.end(status)
    assert place.driver.run() == told
    assert place.closed == [process.pid], "the next driver need not wait for the lease"
    assert "tail of driver-1" in capfd.readouterr().err, "the NodeManager shows it"
    assert len(place.world.children) == 1, "nothing is restarted here"


def test_a_container_that_is_taken_away_ends_its_driver(place: Place) -> None:
    place.driver.launch(ASSIGNMENT, 1600)
    (process,) = place.world.children
    waiting = threading.Timer(0.0, place.driver.end)
    waiting.start()
    status = place.driver.run()
    waiting.join()
    assert status != 0 and not process.alive


class Application:
    def __init__(self, kept: dict[str, bytes]) -> None:
        self.kept = kept

    def take_value(self, key: str) -> bytes | None:
        return self.kept.pop(key, None)


def test_only_one_container_takes_an_assignment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    application = Application({"key": b"secret"})
    monkeypatch.setattr(YarnApplication, "from_current", lambda: application)
    monkeypatch.setattr("os.nice", lambda _increment: 0)
    first, second = tmp_path / "first", tmp_path / "second"
    for file in (first, second):
        monkeypatch.setattr("sys.argv", ["main", "--take-assignment", "key", str(file)])
        assert driver_main.main() == 0
    assert first.read_bytes() == b"secret" and stat.S_IMODE(first.stat().st_mode) == 0o600
    assert not second.exists()
