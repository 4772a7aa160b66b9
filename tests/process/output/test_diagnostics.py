"""What a process shows of itself."""

from __future__ import annotations

import os
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.patience import PATIENCE
from yarnflow.core.resources.diagnostics import MAX_PART_BYTES
from yarnflow.errors import FileMissing
from yarnflow.process.output import diagnostics as module
from yarnflow.process.output.diagnostics import Diagnostics, java_threads

DUMP = """\
24328:
2026-11-26 11:30:00
Full thread dump OpenJDK 64-Bit Server VM (17.0.15+6 mixed mode, sharing):

Threads class SMR info:
_java_thread_list=0x00007f, length=2

"main" #1 prio=5 os_prio=0 cpu=1.0ms elapsed=3.2s tid=0x1 nid=0x2 waiting on condition  [0x3]
   java.lang.Thread.State: TIMED_WAITING (sleeping)
\tat java.lang.Thread.sleep(java.base@17.0.15/Native Method)

"GC Thread#0" os_prio=0 cpu=0.9ms elapsed=3.2s tid=0x4 nid=0x5 runnable

JNI global refs: 12, weak refs: 0
"""


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    directory = tmp_path / "logs"
    directory.mkdir()
    (directory / "jobmanager.log").write_bytes(b"0123456789")
    (directory / "driver.out").write_bytes(b"x")
    (directory / ".hidden").write_bytes(b"x")
    (directory / "below").mkdir()
    (directory / "below" / "file.log").write_bytes(b"x")
    (tmp_path / "secret").write_bytes(b"the cluster's")
    (directory / "link.log").symlink_to(tmp_path / "secret")
    os.mkfifo(directory / "pipe.log")
    return directory


def test_files_of_the_directory_are_listed(logs: Path) -> None:
    found = Diagnostics(logs).log_files()
    assert [(file.name, file.size_bytes) for file in found] == [("driver.out", 1), ("jobmanager.log", 10)]
    assert Diagnostics(logs / "nothing").log_files() == ()


def test_its_own_output_is_marked(logs: Path) -> None:
    found = Diagnostics(logs, "", "driver.out").log_files()
    assert [file.name for file in found if file.own_output] == ["driver.out"]


def test_the_newest_of_very_many_files_are_listed(logs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_FILES", 1)
    os.utime(logs / "driver.out", (1, 1))
    assert [file.name for file in Diagnostics(logs).log_files()] == ["jobmanager.log"]


@pytest.mark.parametrize(
    "offset, most, content, first",
    [
        (0, 100, b"0123456789", 0),
        (3, 4, b"3456", 3),
        (-3, 100, b"789", 7),
        (-100, 2, b"01", 0),
        (10, 5, b"", 10),
        (1 << 60, 5, b"", 1 << 60),
        (0, -1, b"", 0),
        (0, MAX_PART_BYTES * 2, b"0123456789", 0),
    ],
)
def test_parts_of_a_file(logs: Path, offset: int, most: int, content: bytes, first: int) -> None:
    part = Diagnostics(logs).read_log("jobmanager.log", offset, most)
    assert (part.content, part.offset, part.size_bytes) == (content, first, 10)


def test_a_part_is_never_longer_than_the_bound(logs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_PART_BYTES", 4)
    assert Diagnostics(logs).read_log("jobmanager.log", 0, 100).content == b"0123"


@pytest.mark.parametrize(
    "name",
    ["", "none.log", "../secret", "/etc/passwd", "below/file.log", "below", ".hidden", "..", ".", "link.log",
     "pipe.log", "jobmanager.log\0", "a" * 5000, "x\udc80"],
)  # fmt: skip
def test_no_other_file_is_read(logs: Path, name: str) -> None:
    with pytest.raises(FileMissing, match="no file"):
        Diagnostics(logs).read_log(name, 0, 100)


def test_its_own_log(logs: Path) -> None:
    assert Diagnostics(logs, "driver.out").read_log("", 0, 9).content == b"x"


def test_threads_with_their_names_and_places(logs: Path) -> None:
    free = threading.Event()

    def waits_for_the_test() -> None:
        free.wait(PATIENCE.thread_s)

    thread = threading.Thread(target=waits_for_the_test, name="one that waits", daemon=True)
    thread.start()
    try:
        (found,) = [info for info in Diagnostics(logs).thread_dump() if info.name == "one that waits"]
    finally:
        free.set()
        thread.join()
    assert found.stack.startswith('"one that waits" Id=') and "daemon" in found.stack
    assert "in waits_for_the_test" in found.stack


def test_threads_of_a_jvm() -> None:
    main, collector = java_threads("executor 1", DUMP)
    assert main.name == "executor 1: main" and "Thread.sleep" in main.stack
    assert collector.name == "executor 1: GC Thread#0"


def test_a_java_without_its_tools_is_said(logs: Path, tmp_path: Path) -> None:
    shown = Diagnostics(logs, "", "", lambda: {"executor 1": 7}, lambda: tmp_path).thread_dump()
    assert "pid 7" in shown[-1].stack and "JDK" in shown[-1].stack


@pytest.mark.parametrize(
    "script, said",
    [("cat <<'X'\n" + DUMP + "X", "Thread.sleep"), ("echo no such process >&2; exit 1", "no such process")],
)
def test_threads_of_executors_are_asked_of_them(logs: Path, tmp_path: Path, script: str, said: str) -> None:
    program = tmp_path / "bin" / "jcmd"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\ntest \"$2\" = Thread.print || exit 9\n{script}\n")
    program.chmod(0o755)
    shown = Diagnostics(logs, "", "", lambda: {"executor 1": 7}, lambda: tmp_path).thread_dump()
    assert any(said in info.stack for info in shown)


def test_jvms_are_asked_beside_each_other_and_have_one_time_together(
    logs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first are asked at the same moment and take 5 s, the next all there is; the last are not asked."""
    time_s = 0.0
    first, lock = threading.Barrier(module._JCMD_PARALLEL), threading.Lock()
    limits: list[float] = []

    def run(command: list[str], *, timeout: float, **options: Any) -> Any:
        nonlocal time_s
        with lock:
            limits.append(timeout)
            number = len(limits)
        if number <= module._JCMD_PARALLEL:
            first.wait(PATIENCE.thread_s)
            with lock:
                # the next one may have been asked already
                time_s = max(time_s, 5.0)
            return subprocess.CompletedProcess(command, 0, DUMP.encode(), b"")
        with lock:
            time_s = module._JCMD_TIMEOUT_S
        raise subprocess.TimeoutExpired(command, timeout)

    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.setattr("time.monotonic", lambda: time_s)
    program = tmp_path / "bin" / "jcmd"
    program.parent.mkdir()
    program.touch()
    executors = {f"executor {number:02}": number for number in range(20)}
    shown = Diagnostics(logs, "", "", lambda: executors, lambda: tmp_path).thread_dump()
    assert limits[: module._JCMD_PARALLEL] == [module._JCMD_TIMEOUT_S] * module._JCMD_PARALLEL
    assert 0 < len(limits[module._JCMD_PARALLEL :]) <= module._JCMD_PARALLEL
    assert all(limit <= module._JCMD_TIMEOUT_S - 5 for limit in limits[module._JCMD_PARALLEL :])
    stacks = {name: [info.stack for info in shown if info.name.startswith(name)] for name in executors}
    assert all("Thread.sleep" in "".join(stacks[name]) for name in list(executors)[: module._JCMD_PARALLEL])
    assert "not asked, as others took 6 s" in stacks["executor 19"][0]
    told = "".join(info.stack for info in shown)
    assert told.count("did not tell of its threads") == len(limits) - module._JCMD_PARALLEL
