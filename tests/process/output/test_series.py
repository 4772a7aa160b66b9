"""Whatever moment a rotation is killed in, and whatever fails in it, no line is lost."""

from __future__ import annotations

import errno
import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest

from yarnflow.process.output import series
from yarnflow.process.output.series import recover, rotate, rotated_file

KEPT = 4
#: forks one process for each line of code of a rotation, and kills it before it runs that line; says how many
KILLED_AT_EACH_LINE = """
import os, signal, sys
from pathlib import Path
from yarnflow.process.output import series

def killed_before(number):
    def trace(frame, event, argument):
        nonlocal number
        if frame.f_code.co_filename != series.__file__:
            return None
        if event == "line":
            number -= 1
            if number < 0:
                os.kill(os.getpid(), signal.SIGKILL)
        return trace
    return trace

root, numbers, status = Path(sys.argv[1]), sys.argv[2], 1
number = 0
while status != 0:
    directory = root / str(number)
    directory.mkdir()
    for rotated in [int(text) for text in numbers.split()]:
        (directory / f"a.out.{rotated}").write_text(f"{-rotated}\\n")
    (directory / "a.out").write_text("0\\n1\\n2\\n")
    if (pid := os.fork()) == 0:
        sys.settrace(killed_before(number))
        series.rotate(directory / "a.out", %d)
        os._exit(0)
    status = os.waitpid(pid, 0)[1]
    number += 1
print(number)
""" % KEPT


def lines(directory: Path) -> list[int]:
    """All there are, the oldest first; refuses files that no reader would look at."""
    files = [rotated_file(directory / "a.out", number) for number in range(KEPT, 0, -1)]
    files.append(directory / "a.out")
    assert {*directory.iterdir()} <= {*files}
    return [int(line) for file in files if file.exists() for line in file.read_text().splitlines()]


@pytest.mark.parametrize("rotated", [[], [1], [2, 3], [1, 3], [1, 2, 3], [1, 2, 3, 4]])
def test_a_kill_loses_no_line(tmp_path: Path, rotated: list[int]) -> None:
    said = subprocess.run(
        [sys.executable, "-c", KILLED_AT_EACH_LINE, str(tmp_path), " ".join(map(str, rotated))],
        stdout=subprocess.PIPE, text=True, check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    ).stdout  # fmt: skip
    kills = int(said)
    assert kills > 40, "it was killed at all of its lines"
    # the oldest one may go where there are as many as may be
    expected = [-number for number in reversed(rotated) if number < KEPT] + [0, 1, 2]
    twice = 0
    for number in range(kills):
        directory = tmp_path / str(number)
        recover(directory, KEPT)
        found = lines(directory)
        without_oldest = [line for line in found if line > -KEPT]
        if without_oldest != expected:
            # by a kill after the copy was whole and before the file was empty
            assert without_oldest == [*expected, 0, 1, 2]
            twice += 1
        # and it goes on from there
        with (directory / "a.out").open("a") as stream:
            stream.write("3\n")
        rotate(directory / "a.out", KEPT)
        assert [line for line in lines(directory) if line >= 0][-4:] == [0, 1, 2, 3]
    assert 0 < twice < 20


@pytest.mark.parametrize("rotated", [[1, 2], [2, 3]])
def test_no_failure_loses_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rotated: list[int]
) -> None:
    calls = 0

    def failing_at(number: int, patched: pytest.MonkeyPatch) -> None:
        for name in ("open", "ftruncate", "pread", "write", "rename", "replace"):
            real = getattr(os, name)

            def failing(*arguments: object, real: object = real, **options: object) -> object:
                nonlocal calls
                calls += 1
                if calls == number:
                    raise OSError(errno.EIO, "Input/output error")
                return real(*arguments, **options)  # type: ignore[operator]

            patched.setattr(os, name, failing)

    number, failed = 0, True
    while failed:
        number += 1
        directory = tmp_path / str(number)
        directory.mkdir()
        for old in rotated:
            rotated_file(directory / "a.out", old).write_text(f"{-old}\n")
        (directory / "a.out").write_text("0\n1\n")
        calls = 0
        with monkeypatch.context() as patched:
            failing_at(number, patched)
            try:
                rotate(directory / "a.out", KEPT)
                failed = False
            except OSError as error:
                assert error.errno == errno.EIO
        recover(directory, KEPT)
        assert lines(directory) == [*(-old for old in reversed(rotated)), 0, 1], "nothing is there twice"
    assert number > 8


def test_an_interrupt_after_the_file_is_empty_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.out").write_text("0\n")
    real = os.ftruncate

    def interrupted(descriptor: int, length: int) -> None:
        content = os.fstat(descriptor).st_size
        real(descriptor, length)
        if content:
            raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(os, "ftruncate", interrupted)
        with pytest.raises(KeyboardInterrupt):
            rotate(tmp_path / "a.out", KEPT)
    recover(tmp_path, KEPT)
    assert lines(tmp_path) == [0]


def test_files_are_shifted_up_to_the_first_gap(tmp_path: Path) -> None:
    file = tmp_path / "a.out"
    for number in (1, 3, 4):
        rotated_file(file, number).write_text(f"{-number}\n")
    file.write_text("0\n")
    rotate(file, KEPT)
    assert lines(tmp_path) == [-4, -3, -1, 0]
    file.write_text("1\n")
    rotate(file, KEPT)
    assert lines(tmp_path) == [-3, -1, 0, 1]


def test_the_oldest_make_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "a.out"
    for number in (1, 2, 3):
        rotated_file(file, number).write_text(f"{-number}\n")
    file.write_text("0\n1\n2\n")
    real = os.write

    def write(descriptor: int, block: bytes) -> int:
        # a disk with room for two rotated files and a byte
        if len(list(tmp_path.glob("a.out.*"))) > 1:
            if os.fstat(descriptor).st_size:
                raise OSError(errno.ENOSPC, "No space left on device")
            return real(descriptor, block[:1])
        return real(descriptor, block)

    with monkeypatch.context() as patched:
        patched.setattr(os, "write", write)
        rotate(file, KEPT)
    assert lines(tmp_path) == [-1, 0, 1, 2]
    assert [record.getMessage() for record in caplog.records] == [
        f"{file}.{number} is removed: there is no space left to rotate {file}" for number in (3, 2)
    ]


def test_without_anything_to_remove_the_file_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def write(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    (tmp_path / "a.out").write_text("0\n")
    monkeypatch.setattr(os, "write", write)
    with pytest.raises(OSError, match="No space left"):
        rotate(tmp_path / "a.out", KEPT)
    assert lines(tmp_path) == [0]


def test_a_rotation_of_a_process_that_lives_is_its_own(tmp_path: Path) -> None:
    file, copy = tmp_path / "a.out", tmp_path / series.whole_copy("a.out")
    file.write_text("1\n")
    copy.write_text("0\n")
    with copy.open() as living:
        fcntl.flock(living, fcntl.LOCK_EX)
        recover(tmp_path, KEPT)
        with pytest.raises(BlockingIOError):
            rotate(file, KEPT)
        assert copy.read_text() == "0\n" and file.read_text() == "1\n"
    recover(tmp_path, KEPT)
    assert lines(tmp_path) == [0, 1]


def test_names_of_copies() -> None:
    assert series.original(series.whole_copy("a.out")) == "a.out"
    assert series.is_begun_copy(series.begun_copy("a.out"))
    for name in ("a.out", ".rotating", "a.out.rotating", series.begun_copy("a.out")):
        assert series.original(name) is None
    for name in ("a.out", ".copying", "a.out.copying", series.whole_copy("a.out")):
        assert not series.is_begun_copy(name)
