"""Names of a script's queries: from the place in the program, and from the checkpoint location."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from yarnflow.spark.script.places import CallPlaces, QueryNames, place_of


class Writer:
    """Its methods are called as those of a query's writer; it notes where from."""

    def __init__(self, places: CallPlaces) -> None:
        self.places = places
        self.found: list[str] = []

    def option(self, *_: object) -> Writer:
        return self

    def start(self) -> None:
        self.found.append(self.places.place(sys._getframe(1)))

    toTable = start


def run(directory: Path, text: str, **values: Any) -> list[str]:
    program = directory / "job.py"
    program.write_text(text)
    writer = Writer(CallPlaces(directory, program))
    exec(compile(text, str(program), "exec"), {"writer": writer, "__name__": "__main__", **values})
    return writer.found


def test_the_place_is_the_number_of_the_call_in_the_text(tmp_path: Path) -> None:
    text = (
        "def later():\n    (writer\n        .option(1)\n        .start())\n"
        "writer.start(); writer.option(1).toTable()\n"
        "later()\n"
        "[writer.start() for _ in range(2)]\n"
    )
    assert run(tmp_path, text) == ["start-2", "start-3", "start-1", "start-4", "start-4"]


def test_changes_between_the_calls_do_not_change_it(tmp_path: Path) -> None:
    assert run(tmp_path, "writer.start()\n") == run(tmp_path, "\nx = str(1)\nif x:\n    writer.start()\n")


def test_a_call_under_another_name_has_a_place_too(tmp_path: Path) -> None:
    assert run(tmp_path, "begin = writer.start\nprint()\nbegin()\nbegin()") == ["call-2", "call-3"]


def test_modules_and_threads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "helpers_of_places.py").write_text("def go(writer):\n    writer.start()\n")
    monkeypatch.syspath_prepend(str(tmp_path))

    def beside(target: Callable[..., None]) -> None:
        thread = threading.Thread(target=target)
        thread.start()
        thread.join()

    text = (
        "import helpers_of_places\nhelpers_of_places.go(writer)\n"
        "beside(lambda: writer.start())\nbeside(writer.start)\n"
    )
    assert run(tmp_path, text, beside=beside) == ["helpers_of_places.start-1", "start-1", "start-0"]


def test_names() -> None:
    one, other = QueryNames(), QueryNames()
    located = one.name("start-1", "file:/a")
    assert located == other.name("start-1", "file:/a") != one.name("start-1", "file:/b")
    assert [one.name("start-1", "") for _ in range(3)] == ["start-1", "start-1.2", "start-1.3"]
    for name in (located, "start-1", "start-1.2"):
        assert place_of(name) == "start-1"
    assert place_of("helpers.start-3-0123ab") == "helpers.start-3"
    assert [place_of(name) for name in ("copy", "start", "restart-1", "start-1-")] == [""] * 4
