"""Places of log files, and files of one container that come one after the other."""

from __future__ import annotations

import pytest

from yarnflow.client.diagnose import log_files
from yarnflow.client.diagnose.log_files import CollectedFiles, being_rotated, shown_files


def test_places() -> None:
    names = ["a.log", "a.log.1", "a.log.10", "a.log.2", "b.out", "c.1", ".a.log.copying", "directory.info"]
    assert shown_files(names) == {
        "a.log.10": ("a.log", 10),
        "a.log.2": ("a.log", 2),
        "a.log.1": ("a.log", 1),
        "a.log": ("a.log", 0),
        "b.out": ("b.out", 0),
        "c.1": ("c", 1),
    }
    assert [*shown_files(names)][:4] == ["a.log.10", "a.log.2", "a.log.1", "a.log"]
    assert being_rotated(names) == frozenset()


def test_a_copy_has_the_place_that_its_rotation_would_have_given_it() -> None:
    names = ["a.log", "a.log.1", "a.log.2", "a.log.4", ".a.log.rotating"]
    assert [*shown_files(names).items()] == [
        ("a.log.4", ("a.log", 4)),
        ("a.log.2", ("a.log", 3)),
        ("a.log.1", ("a.log", 2)),
        (".a.log.rotating", ("a.log", 1)),
        ("a.log", ("a.log", 0)),
    ]
    assert being_rotated(names) == {"a.log"}


def test_large_files_are_read_back_from_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_files, "_IN_MEMORY_BYTES", 1000)
    lines = [f"{number:09d} {'x' * 90}\n" for number in range(200)]
    with CollectedFiles() as files:
        for number, line in enumerate(lines):
            files.add("ab"[number // 50 % 2], line)
        files.add("c", "no end, ü")
        assert list(files.lines("a")) == lines[:50] + lines[100:150]
        assert list(files.lines("b")) == lines[50:100] + lines[150:]
        assert list(files.lines("c")) == ["no end, ü"]
        assert files.lengths() == {"a": 10100, "b": 10100, "c": 10}
