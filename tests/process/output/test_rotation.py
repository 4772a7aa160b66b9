"""Files that children write to are bounded, and nothing of them is lost in a rotation."""

from __future__ import annotations

import errno
import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest

from yarnflow.process.output import series
from yarnflow.process.output.rotation import LogRotation
from yarnflow.process.output.series import rotated_file, whole_copy
from yarnflow.process.spawn import ProcessSpec, spawn, tail


def appended(file: Path, text: str) -> None:
    """As a child does it, which has the file open."""
    with file.open("a") as stream:
        stream.write(text)


def test_sizes_and_numbers_are_bounded(tmp_path: Path) -> None:
    file, rotation = tmp_path / "a.out", LogRotation(max_bytes=10, kept=2)
    rotation.watch(file)
    rotation.rotate(0)
    assert not file.exists(), "nothing was written yet"
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o640)
    for number in range(4):
        os.write(descriptor, f"line {number}\n".encode() * 2)
        rotation.rotate(number)
    os.write(descriptor, b"last\n")
    rotation.rotate(5)
    os.close(descriptor)
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {
        "a.out": "last\n", "a.out.1": "line 3\n" * 2, "a.out.2": "line 2\n" * 2,
    }  # fmt: skip
    assert rotated_file(file, 1).stat().st_mode & 0o777 == file.stat().st_mode & 0o777


def test_a_file_nobody_writes_any_more_is_left(tmp_path: Path) -> None:
    file, rotation = tmp_path / "a.out", LogRotation(max_bytes=1)
    rotation.watch(file)
    rotation.watch(file)
    appended(file, "one")
    rotation.release(file)
    rotation.rotate(0)
    appended(file, "two")
    rotation.release(file)
    rotation.rotate(2)
    assert file.read_text() == "two" and rotated_file(file, 1).read_text() == "one"


def test_a_rotation_that_fails_is_said_once_and_tried_again_after_a_minute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    file, rotation = tmp_path / "a.out", LogRotation(max_bytes=1)
    rotation.watch(file)
    appended(file, "one")
    tries = 0

    def broken(*_: object) -> None:
        nonlocal tries
        tries += 1
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patched, caplog.at_level(logging.WARNING):
        patched.setattr(series, "_copy", broken)
        for now_s in (0, 2, 59, 60, 62, 119):
            rotation.rotate(now_s)
    assert tries == 2
    assert [path.name for path in tmp_path.iterdir()] == ["a.out"] and file.read_text() == "one"
    assert [record.getMessage() for record in caplog.records] == [
        f"{file} cannot be rotated: [Errno 5] Input/output error"
    ]
    rotation.rotate(119)
    assert file.read_text() == "one"
    rotation.rotate(120)
    assert rotated_file(file, 1).read_text() == "one"


def test_a_rotation_that_failed_at_its_end_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, rotation = tmp_path / "a.out", LogRotation(max_bytes=4)
    rotation.watch(file)
    appended(file, "one\n")

    def broken(*_: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patched:
        patched.setattr(series, "_give_place", broken)
        rotation.rotate(0)
    appended(file, "2\n")
    rotation.rotate(60)
    assert len(list(tmp_path.iterdir())) == 2
    assert file.read_text() == "2\n" and rotated_file(file, 1).read_text() == "one\n"


def test_what_a_killed_process_left_is_found(tmp_path: Path) -> None:
    # of another file, which nobody rotates any more
    (tmp_path / whole_copy("driver-1.out")).write_text("one\n")
    rotation = LogRotation()
    rotation.watch(tmp_path / "driver-2.out")
    rotation.rotate(0)
    assert [path.name for path in tmp_path.iterdir()] == ["driver-1.out.1"]


def test_what_a_child_writes_is_rotated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rotation = LogRotation(max_bytes=1000, kept=20)
    monkeypatch.setattr("yarnflow.process.spawn.own_rotation", lambda: rotation)
    file = tmp_path / "logs/child.out"
    # until it was rotated three times
    text = "import os, sys\nn = 0\nwhile not os.path.exists(sys.argv[1]): os.write(1, b'%d\\n' % n); n += 1"
    command = (sys.executable, "-c", text, str(rotated_file(file, 3)))
    child = spawn(ProcessSpec("child", command, log_file=file))
    while child.alive:
        rotation.rotate(0)
    assert child.exit_status == 0
    files = sorted(file.parent.iterdir(), key=lambda path: -int(path.suffix[1:] if path != file else "0"))
    numbers = [int(line) for path in files for line in path.read_text().splitlines()]
    assert len(files) >= 3 and numbers == sorted(set(numbers)), "in order, and none twice"
    rotation.rotate(0)
    assert not rotation._files, "it has ended"


def test_a_forked_child_rotates_although_another_thread_had_the_lock(tmp_path: Path) -> None:
    script = """
import os, signal, sys
from pathlib import Path
from yarnflow.process import spawn
from yarnflow.process.output import rotation

parents = rotation.own_rotation()
parents.watch(Path(sys.argv[1]))
# as another thread would hold them that is just in there
rotation._lock.acquire()
spawn._threads_lock.acquire()
if (pid := os.fork()) == 0:
    signal.alarm(60)
    assert rotation.own_rotation() is not parents
    assert spawn.spawn(spawn.ProcessSpec("x", ("true",), log_file=Path(sys.argv[1]))).wait(30) == 0
    os._exit(0)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""
    command = [sys.executable, "-c", script, str(tmp_path / "a.out")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    assert subprocess.run(command, env=environment).returncode == 0


def test_the_last_lines_are_there_after_a_rotation(tmp_path: Path) -> None:
    file = tmp_path / "a.out"
    appended(file, "3\n")
    appended(rotated_file(file, 1), "1\n2\n")
    assert tail(file, 2) == "2\n3"
    assert tail(file, 1) == "3"
    assert tail(tmp_path / "none") == ""
    # a line of which the end was written after the rotation
    appended(rotated_file(file, 1), "2.")
    assert tail(file, 2) == "2\n2.3"
    assert tail(file, 1) == "2.3"


def test_last_lines_do_not_go_on_in_another_file_than_they_end_in(tmp_path: Path) -> None:
    file = tmp_path / "a.out"
    appended(file, "one\n" + "x" * 20 + "\nlast\n")
    appended(rotated_file(file, 1), "older\n")
    # too long to be read whole, so what comes before is in the file itself
    assert tail(file, 3, limit_bytes=10) == "xxxx\nlast"
    assert tail(file, 9, limit_bytes=file.stat().st_size) == "one\n" + "x" * 20 + "\nlast"
    assert tail(file, 9) == "older\none\n" + "x" * 20 + "\nlast"
