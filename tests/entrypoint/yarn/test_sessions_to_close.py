"""Sessions of processes whose container, with all files, is gone."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from yarnflow.entrypoint.yarn.sessions_to_close import LeftSessions
from yarnflow.process.logs import LOG_FILE_ENVIRONMENT


class World:
    def __init__(self, folder: Path, timeout_s: float = 10.0) -> None:
        self.sessions, self.logs = folder / "sessions", folder / "logs"
        self.sessions.mkdir()
        self.logs.mkdir()
        self.closed: list[tuple[int, str]] = []
        self.left = LeftSessions(self.sessions, self.logs, self._close, timeout_s)

    def _close(self, directory: Path, pid: int) -> None:
        file = directory / f"{pid}.json"
        assert file.stat().st_mode & 0o777 == 0o600
        self.closed.append((pid, file.read_text()))


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_they_are_known_after_the_files_are_gone(world: World) -> None:
    (world.sessions / "11.json").write_text("gone long ago")
    world.left.look()
    (world.sessions / "11.json").unlink()
    (world.sessions / "12.json").write_text("mine")
    world.left.look()
    shutil.rmtree(world.sessions)
    shutil.rmtree(world.logs)
    world.left.look()
    world.left.close()
    assert world.closed == [(12, "mine")]


def test_nothing_is_ended_while_something_may_still_write(tmp_path: Path) -> None:
    world = World(tmp_path, timeout_s=0.05)
    log = world.logs / "driver-1.log"
    log.touch()
    (world.sessions / "12.json").write_text("mine")
    world.left.look()
    command = [sys.executable, "-c", "input()"]
    environment = {LOG_FILE_ENVIRONMENT: str(log)}
    with subprocess.Popen(command, env=environment, stdin=subprocess.PIPE):
        world.left.close()
        assert world.closed == []
    world.left.close()
    assert world.closed == [(12, "mine")]
