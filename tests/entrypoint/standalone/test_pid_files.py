"""Which processes pid files are believed to name."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.patience import PATIENCE
from yarnflow.core.resources.processes import process_stat
from yarnflow.entrypoint.standalone.pid_files import (
    PidFolder,
    RecordedProcess,
    opened,
    pid_folder,
)
from yarnflow.errors import ConfigError

WAIT = "import signal, sys; print('waits', flush=True); signal.pause()"


@pytest.fixture
def process() -> Iterator[subprocess.Popen[str]]:
    """One whose command line is that of a process of a cluster."""
    command = [sys.executable, "-c", WAIT, "yarnflow.cli"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout and process.stdout.readline() == "waits\n"
        yield process
        process.kill()


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[PidFolder]:
    with opened(tmp_path / "pids") as folder:
        yield folder


def test_what_was_recorded_runs_until_it_ends(folder: PidFolder, process: subprocess.Popen[str]) -> None:
    folder.record("jobmanager", process.pid)
    recorded = folder.recorded("jobmanager")
    assert recorded is not None and recorded.pid == process.pid and recorded.runs
    assert (folder.path / "jobmanager.pid").stat().st_mode & 0o777 == 0o600
    process.kill()
    process.wait(PATIENCE.process_s)
    ended = folder.recorded("jobmanager")
    assert ended is not None and not ended.runs
    folder.forget("jobmanager")
    folder.forget("jobmanager")
    assert folder.recorded("jobmanager") is None and folder.names("*") == []


def test_another_process_of_the_number_is_not_meant(process: subprocess.Popen[str]) -> None:
    stat = process_stat(process.pid)
    assert stat is not None and RecordedProcess(process.pid, stat.began).runs
    assert not RecordedProcess(process.pid, str(int(stat.began) - 1)).runs


def test_earlier_versions_recorded_the_number_only(process: subprocess.Popen[str]) -> None:
    assert RecordedProcess(process.pid).runs
    assert not RecordedProcess(os.getpid()).runs or "yarnflow.cli" in " ".join(sys.orig_argv)


@pytest.mark.skipif(os.geteuid() != 0, reason="the first process of the machine is this user's only as root")
def test_processes_of_other_users_are_not_meant(
    process: subprocess.Popen[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 47113)
    assert not RecordedProcess(process.pid).runs


@pytest.mark.parametrize("content", ["", "x", "12 34 x y\n", "-\n"])
def test_what_is_not_a_pid_file(folder: PidFolder, content: str) -> None:
    (folder.path / "jobmanager.pid").write_text(content)
    assert folder.recorded("jobmanager") is None
    assert folder.names("job*") == ["jobmanager"]


def test_links_and_pipes_are_not_read(folder: PidFolder, tmp_path: Path) -> None:
    (tmp_path / "other.pid").write_text("1\n")
    (folder.path / "link.pid").symlink_to(tmp_path / "other.pid")
    os.mkfifo(folder.path / "pipe.pid")
    assert folder.recorded("link") is None and folder.recorded("pipe") is None


def test_output_never_goes_to_a_file_that_is_there(folder: PidFolder, tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("old")
    folder.output("jobmanager").symlink_to(tmp_path / "precious")
    file = folder.new_output("jobmanager")
    os.write(file, b"new")
    os.close(file)
    assert (tmp_path / "precious").read_text() == "old" and folder.output("jobmanager").read_text() == "new"
    assert not folder.output("jobmanager").is_symlink()


@pytest.mark.parametrize("mode", [0o770, 0o702, 0o777])
def test_a_folder_that_others_may_write_to_is_refused(tmp_path: Path, mode: int) -> None:
    tmp_path.chmod(mode)
    with pytest.raises(ConfigError, match=f"others may write to {tmp_path}.*chmod 700"), opened(tmp_path):
        pass


def test_what_runs_can_be_stopped_where_the_group_may_write(tmp_path: Path) -> None:
    tmp_path.chmod(0o770)
    with opened(tmp_path, to_stop=True) as folder:
        assert folder.names("*") == []
    tmp_path.chmod(0o777)
    with pytest.raises(ConfigError, match="others may write"), opened(tmp_path, to_stop=True):
        pass


def test_a_folder_that_is_a_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    with pytest.raises(ConfigError, match="cannot use .*link for pid files"), opened(tmp_path / "link"):
        pass


def test_a_folder_that_others_may_read_can_be_named(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    assert pid_folder({"YARNFLOW_PID_DIR": str(tmp_path)}) == tmp_path
    with opened(tmp_path) as folder:
        assert folder.names("*") == []


@dataclass
class Machine:
    """A temporary directory, and the module as scripts run it."""

    tmp: Path
    environment: dict[str, str]

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run it to its end."""
        command = [sys.executable, "-P", "-m", "yarnflow.entrypoint.standalone.background", *arguments]
        return subprocess.run(command, env=self.environment, capture_output=True, text=True)

    def start(self, program: str) -> subprocess.CompletedProcess[str]:
        """Start a program that says that it waits."""
        return self.run("start", "jobmanager", "waits", sys.executable, "-c", program)

    def stop(self) -> str:
        """Stop it; returns what is said."""
        done = self.run("stop", "cluster", "start-cluster.sh", "taskmanager-*", "jobmanager")
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("YARNFLOW_")}
    return Machine(tmp_path, {**environment, "TMPDIR": str(tmp_path)})


def test_a_process_is_started_and_stopped(machine: Machine) -> None:
    assert machine.start(WAIT).stdout == "waits\n"
    (file,) = machine.tmp.glob(f"yarnflow-{os.geteuid()}/pids/jobmanager.pid")
    pid = int(file.read_text().split()[0])
    again = machine.start(WAIT)
    assert again.returncode == 1
    assert again.stderr == f"error: jobmanager runs already (pid {pid}); stop it first\n"
    assert machine.stop() == f"jobmanager (pid {pid}) stopped\n" and not file.exists()
    assert "No cluster of this user was started by start-cluster.sh" in machine.stop()


def test_a_process_that_ends_at_once(machine: Machine) -> None:
    done = machine.start("print('why')")
    assert (done.returncode, done.stderr) == (1, "error: jobmanager ended at once:\nwhy\n\n")
    assert not list(machine.tmp.glob("*/pids/*.pid"))


def test_a_process_that_does_not_say_it(machine: Machine) -> None:
    machine.environment["YARNFLOW_START_TIMEOUT"] = "0.1"
    done = machine.start("import signal; signal.pause()")
    assert done.returncode == 1 and "jobmanager did not start within 0.1 s; see " in done.stderr
    assert done.stderr.endswith("/pids/jobmanager.out\n")
    assert "stopped" in machine.stop()


def test_one_that_does_not_end_is_killed(machine: Machine) -> None:
    machine.environment["YARNFLOW_STOP_TIMEOUT"] = "0.1"
    machine.start(f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); {WAIT}")
    assert "killed" in machine.stop()


@pytest.mark.parametrize("mode, is_believed", [(0o700, True), (0o755, False), (0o777, False)])
def test_what_an_earlier_version_started(
    machine: Machine, process: subprocess.Popen[str], mode: int, is_believed: bool
) -> None:
    older = machine.tmp / f"yarnflow-{os.geteuid()}-pids"
    older.mkdir()
    older.chmod(mode)
    (older / "taskmanager-1.pid").write_text(f"{process.pid}\n")
    assert ("taskmanager-1 (pid" in machine.stop()) is is_believed
    assert (process.poll() is not None) is is_believed
