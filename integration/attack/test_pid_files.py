"""Scripts with processes in the background do not trust folders that another user has prepared."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from integration.attack.attacker import NEEDS_ROOT, attackers_folder, can_be_another_user, run_attack
from integration.conftest import ROOT, Commands, Started, marked_processes, wait_until
from tests.patience import PATIENCE

pytestmark = pytest.mark.skipif(not can_be_another_user(), reason=NEEDS_ROOT)

#: says what a cluster says, and waits
STANDS_IN = """#!/bin/sh
case "$*" in *standalone.background*) exec {python} "$@";; esac
case "$*" in *historyserver*) echo "History server serves at nowhere";; esac
echo "JobManager serves at nowhere:1 (pid $$); logs: nowhere"
exec sleep 300
"""


@dataclass
class Victim:
    """Who starts a cluster by the scripts, in a temporary directory of all users."""

    commands: Commands
    tmp: Path
    python: Path
    file: Path
    bystander: Started
    #: of the scripts, besides
    environment: dict[str, str] = field(default_factory=dict)

    def run(self, script: str, *arguments: str) -> Started:
        """Run a script to its end."""
        environment = {"TMPDIR": str(self.tmp), "YARNFLOW_PYTHON": str(self.python), **self.environment}
        done = self.commands.start_command([ROOT / "scripts" / script, *arguments], environment)
        done.wait()
        return done

    def prepared_by_the_attacker(self, name: str) -> Path:
        """A folder in the temporary directory."""
        run_attack("prepare_pid_folder", self.tmp / name, self.file, self.bystander.process.pid)
        return self.tmp / name

    def assert_unharmed(self) -> None:
        """Check that the file is as it was, and the bystander lives."""
        assert self.file.read_text() == "ten years of work"
        assert self.bystander.process.poll() is None


@pytest.fixture
def victim(yarnflow: Commands, tmp_path: Path) -> Iterator[Victim]:
    python = tmp_path / "python"
    python.write_text(STANDS_IN.format(python=sys.executable))
    python.chmod(0o755)
    file = tmp_path / "precious.txt"
    file.write_text("ten years of work")
    # its command line is that of a process of a cluster
    wait = "import signal, sys; print(sys.argv, flush=True); signal.pause()"
    bystander = yarnflow.start_command([sys.executable, "-c", wait, "yarnflow.cli historyserver"])
    wait_until(lambda: bystander.stdout, "the bystander to run", PATIENCE.process_s)
    with attackers_folder() as tmp:
        os.chown(tmp, 0, 0)
        tmp.chmod(0o1777)
        yield Victim(yarnflow, tmp, python, file, bystander)


@pytest.mark.gate
def test_a_folder_that_was_there_first_is_not_used(victim: Victim) -> None:
    victim.prepared_by_the_attacker(f"yarnflow-{os.geteuid()}-pids")
    started = victim.run("start-cluster.sh", "0")
    assert started.process.returncode == 0 and "serves at nowhere:1" in started.stdout, started.stderr
    victim.assert_unharmed()
    assert victim.run("historyserver.sh", "start").process.returncode == 0
    victim.assert_unharmed()
    stopped = victim.run("stop-cluster.sh")
    assert stopped.process.returncode == 0 and "taskmanager-9" not in stopped.stdout
    assert "jobmanager (pid" in stopped.stdout and ") stopped" in stopped.stdout
    assert "stopped" in victim.run("historyserver.sh", "stop").stdout
    victim.assert_unharmed()
    left = [process.pid for process in marked_processes(victim.commands.mark)]
    assert left == [victim.bystander.process.pid]


@pytest.mark.parametrize("configured", [True, False])
def test_a_folder_of_another_user_is_refused(victim: Victim, configured: bool) -> None:
    folder = victim.prepared_by_the_attacker("run" if configured else f"yarnflow-{os.geteuid()}")
    if configured:
        victim.environment["YARNFLOW_PID_DIR"] = str(folder)
    for script, *arguments in (
        ("start-cluster.sh", "0"), ("stop-cluster.sh",), ("historyserver.sh", "start"),
        ("historyserver.sh", "stop"),
    ):  # fmt: skip
        done = victim.run(script, *arguments)
        assert done.process.returncode == 1, done.stdout
        (line,) = done.stderr.splitlines()
        assert line.startswith(f"error: {folder} is not a directory of this user"), line
        assert "YARNFLOW_PID_DIR" in line
        victim.assert_unharmed()


def test_links_in_a_folder_of_ones_own_are_not_followed(victim: Victim) -> None:
    """Others could write there once, and no longer can."""
    folder = victim.prepared_by_the_attacker("run")
    os.chown(folder, os.geteuid(), os.getegid())
    victim.environment["YARNFLOW_PID_DIR"] = str(folder)
    done = victim.run("start-cluster.sh", "0")
    assert done.process.returncode == 1 and f"run: chmod 700 {folder}" in done.stderr, done.stderr
    folder.chmod(0o755)
    assert victim.run("start-cluster.sh", "0").process.returncode == 0
    stopped = victim.run("stop-cluster.sh").stdout
    assert "jobmanager (pid" in stopped and "taskmanager-9 was not running" in stopped
    victim.assert_unharmed()
