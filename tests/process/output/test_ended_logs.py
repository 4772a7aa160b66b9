"""The newest logs of ended processes stay, and all logs of those that live."""

from __future__ import annotations

import errno
import fcntl
import logging
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.patience import PATIENCE
from yarnflow.process.output.ended_logs import (
    DRIVERS,
    EXECUTORS,
    EndedLogs,
    ProcessLogs,
    by_process,
    open_head,
    surplus,
)
from yarnflow.process.output.rotation import LogRotation
from yarnflow.process.spawn import ProcessSpec, spawn


def names(logs: Sequence[ProcessLogs]) -> list[str]:
    return [one.process for one in logs]


def test_all_files_of_a_process_are_found() -> None:
    names = [
        *("driver-1.out", "driver-1.log", "driver-1.log.1", "driver-1.jvm.log", "driver-1.jvm.log.10"),
        *(".driver-1.out.copying", ".driver-1.jvm.log.rotating", "driver-12.out"),
        *("driver-3.log", "jobmanager.out", "supervisor-7.log", "my-driver-1.out", "driver-1", "driver-.out"),
        *("h.example.com-taskmanager-9-1-a1b2c3-executor-0-12345678.log", "executor-1-12345678.log.1"),
    ]
    first, second = by_process(names, DRIVERS)
    assert first.head == "driver-1.out" and sorted(first.others) == sorted(names[1:7])
    assert second == ProcessLogs("driver-12", "driver-12.out", ()), "driver-3 has no head: perhaps it lives"


def test_files_of_executors() -> None:
    prefix = "h.example.com-taskmanager-9-1-a1b2c3-"
    names = [
        *(f"{prefix}executor-0-12345678.log", f"{prefix}executor-0-12345678.log.1"),
        *("executor-1-12345678.log", f".{prefix}executor-0-12345678.log.copying"),
        *("driver-1.out", "taskmanager-9-1.log", "taskmanager-9-1.out"),
    ]
    found = {logs.process: logs for logs in by_process(names, EXECUTORS)}
    assert set(found) == {f"{prefix}executor-0-12345678", "executor-1-12345678"}
    assert found[f"{prefix}executor-0-12345678"].others == (names[3], names[1])


@pytest.mark.parametrize(
    "kept, gone", [(0, []), (1, ["b", "a", "c"]), (3, ["b"]), (4, []), (9, [])], ids=str
)
def test_the_newest_stay(kept: int, gone: list[str]) -> None:
    written = {"a": 2, "b": 1, "c": 2, "d": 3}
    logs = [ProcessLogs(name, f"{name}.out", (), at_ns) for name, at_ns in written.items()]
    assert names(surplus(logs, kept)) == gone


def write_logs(directory: Path, *numbers: int) -> None:
    """Of drivers that have ended one after another."""
    directory.mkdir(exist_ok=True)
    for number in numbers:
        for end in ("out", "log", "jvm.log", "jvm.log.1"):
            file = directory / f"driver-{number}.{end}"
            file.write_text(f"{number}\n")
            os.utime(file, (number, number))


def left(directory: Path) -> list[int]:
    """Drivers of which there are logs, all four or none."""
    found: dict[int, int] = {}
    for path in directory.iterdir():
        number = int(path.name.split(".")[0].removeprefix("driver-"))
        found[number] = found.get(number, 0) + 1
    assert set(found.values()) <= {4}, found
    return sorted(found)


def test_logs_from_before_the_start_and_of_those_that_end_later(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    write_logs(tmp_path, *range(1, 6))
    logs, rotation = EndedLogs(tmp_path, DRIVERS, 3), LogRotation()
    rotation.limit(logs)
    rotation.rotate(0)
    assert left(tmp_path) == [3, 4, 5]
    assert "driver-1 are removed" in caplog.text and "yarnflow.log.retained-processes" in caplog.text
    write_logs(tmp_path, 6)
    rotation.rotate(2)
    assert left(tmp_path) == [3, 4, 5, 6], "nobody has said that one has ended"
    logs.process_ended()
    rotation.rotate(4)
    assert left(tmp_path) == [4, 5, 6]
    write_logs(tmp_path, 7)
    logs.process_ended()
    rotation.release_limit(logs)
    rotation.rotate(6)
    assert left(tmp_path) == [4, 5, 6, 7]


def test_the_logs_of_a_process_count_by_the_newest_of_them(tmp_path: Path) -> None:
    write_logs(tmp_path, 1, 2)
    os.utime(tmp_path / "driver-1.jvm.log", (9, 9))
    EndedLogs(tmp_path, DRIVERS, 1).remove_surplus()
    assert left(tmp_path) == [1]


def test_all_stay_where_there_is_no_limit(tmp_path: Path) -> None:
    write_logs(tmp_path, *range(1, 6))
    logs = EndedLogs(tmp_path, DRIVERS, 0)
    logs.process_ended()
    assert not logs.due
    logs.remove_surplus()
    assert left(tmp_path) == [1, 2, 3, 4, 5]


def test_no_log_of_a_process_that_lives(tmp_path: Path) -> None:
    """Not those of a quiet one, nor of one that has ended but for what it has started."""
    write_logs(tmp_path, 1, 2, 3)
    outlives = "import subprocess, sys; subprocess.Popen(['sh', '-c', 'read line'], start_new_session=True)"
    quiet = spawn(ProcessSpec("1", ("sh", "-c", "read line"), tmp_path / "driver-1.out", stdin_pipe=True))
    read, write = os.pipe()
    head = subprocess.Popen(
        (sys.executable, "-c", outlives), stdin=read, stderr=open_head(tmp_path / "driver-2.out", 0o640)
    )
    os.close(read)
    head.wait(PATIENCE.process_s)
    for number in (1, 2):
        os.utime(tmp_path / f"driver-{number}.out", (number, number))
    logs = EndedLogs(tmp_path, DRIVERS, 1)
    logs.remove_surplus()
    assert left(tmp_path) == [1, 2, 3]
    write_logs(tmp_path, 4)
    quiet.kill_group()
    quiet.wait(PATIENCE.process_s)
    logs.remove_surplus()
    assert left(tmp_path) == [2, 4]
    os.close(write)


def test_another_cluster_s_process_in_the_same_directory_lives(tmp_path: Path) -> None:
    write_logs(tmp_path, 1, 2)
    script = (
        "import sys, pathlib\n"
        "from yarnflow.process.spawn import ProcessSpec, spawn\n"
        "spawn(ProcessSpec('1', ('sleep', '600'), pathlib.Path(sys.argv[1])))\n"
        "print('started', flush=True)\n"
        "sys.stdin.read()\n"
    )
    other = subprocess.Popen(
        (sys.executable, "-c", script, str(tmp_path / "driver-1.out")),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert other.stdin is not None and other.stdout is not None
    assert other.stdout.readline() == "started\n"
    os.utime(tmp_path / "driver-1.out", (1, 1))
    EndedLogs(tmp_path, DRIVERS, 1).remove_surplus()
    assert left(tmp_path) == [1, 2]
    with other:
        other.kill()


def test_a_process_that_starts_under_the_name_of_an_ended_one_has_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its log is removed, by another process, in the moment between opening and locking it."""
    write_logs(tmp_path, 1, 2)
    flock, removed = fcntl.flock, 0

    def removing(descriptor: int, operation: int) -> None:
        nonlocal removed
        if removed == 0:
            removed = 1
            EndedLogs(tmp_path, DRIVERS, 1).remove_surplus()
        flock(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", removing)
    descriptor = open_head(tmp_path / "driver-1.out", 0o640)
    os.write(descriptor, b"new\n")
    os.close(descriptor)
    assert removed and (tmp_path / "driver-1.out").read_text() == "new\n"
    (tmp_path / "driver-1.out").unlink()
    assert left(tmp_path) == [2]


def test_a_log_that_cannot_be_locked_is_written_to_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def without_locks(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", without_locks)
    os.close(open_head(tmp_path / "driver-1.out", 0o640))
    assert "driver-1.out cannot be locked" in caplog.text
    write_logs(tmp_path, 1, 2)
    EndedLogs(tmp_path, DRIVERS, 1).remove_surplus()
    assert left(tmp_path) == [1, 2], "who lives is not known"


def test_what_could_not_be_removed_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    write_logs(tmp_path, 1, 2)
    rotation = LogRotation()
    rotation.limit(EndedLogs(tmp_path, DRIVERS, 1))

    def broken(path: Path, missing_ok: bool = False) -> None:
        raise OSError(errno.EIO, "Input/output error", str(path))

    with monkeypatch.context() as patched:
        patched.setattr(Path, "unlink", broken)
        rotation.rotate(0)
        rotation.rotate(60)
    assert caplog.text.count("cannot be removed: [Errno 5] Input/output error") == 1
    rotation.rotate(119)
    assert left(tmp_path) == [1, 2]
    rotation.rotate(120)
    assert left(tmp_path) == [2]


def test_a_directory_that_is_gone_has_no_logs(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    rotation = LogRotation()
    rotation.limit(EndedLogs(tmp_path / "logs", DRIVERS, 1))
    rotation.rotate(0)
    assert caplog.text == ""
