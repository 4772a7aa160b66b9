"""A script's main and the signal that ends it."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.patience import PATIENCE
from yarnflow.spark.progress.collector import ProgressCollector
from yarnflow.spark.script import program as script
from yarnflow.spark.script.program import ScriptProgram


class FakeSpark:
    """A session without queries."""

    def __init__(self) -> None:
        self.streams = SimpleNamespace(active=[])
        self.canceled = 0
        self.sparkContext = SimpleNamespace(cancelAllJobs=self._cancel, addPyFile=lambda path: None)
        self.conf = SimpleNamespace(get=lambda key, default: default, set=lambda key, value: None)

    def _cancel(self) -> None:
        self.canceled += 1


@pytest.fixture
def _interrupts_ignored() -> Iterator[None]:
    """As in a driver process."""
    old = signal.signal(signal.SIGINT, signal.SIG_IGN)
    yield
    signal.signal(signal.SIGINT, old)


def program(spark: Any, source: str, directory: Path) -> ScriptProgram:
    return ScriptProgram(spark, {"job.py": source.encode()}, ["job.py"], directory, "", ProgressCollector())


@pytest.mark.usefixtures("_interrupts_ignored")
@pytest.mark.parametrize("busy", ["time.sleep(LIMIT)", "while time.time() < end: pass"])
def test_stop_interrupts_a_main_that_never_looks(
    busy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(script, "_GRACE_S", 0.0)
    begun, ended = tmp_path / "begun", tmp_path / "ended"
    source = (
        f"import time, pathlib\nLIMIT = {PATIENCE.thread_s}\nend = time.time() + LIMIT\n"
        f"pathlib.Path({str(begun)!r}).touch()\n{busy}\npathlib.Path({str(ended)!r}).touch()\n"
    )
    made = program(FakeSpark(), source, tmp_path)
    made.prepare()
    made.start()

    def stop() -> None:
        while not begun.exists():
            threading.Event().wait(0.01)
        made.stop()

    stopping = threading.Thread(target=stop)
    stopping.start()
    made.await_end()
    stopping.join()
    assert not ended.exists()
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN


def test_jobs_of_threads_that_main_left_are_canceled_at_its_end(tmp_path: Path) -> None:
    spark = FakeSpark()
    made = program(spark, "raise SystemExit(0)\n", tmp_path)
    made.prepare()
    made.start()
    made.await_end()
    assert spark.canceled == 1


@pytest.mark.usefixtures("_interrupts_ignored")
def test_lines_it_prints_are_not_held_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "out.txt"
    source = f"import pathlib\nprint('first')\nassert pathlib.Path({str(file)!r}).read_text() == 'first\\n'"
    with file.open("w") as piped:
        monkeypatch.setattr(sys, "stdout", piped)
        made = program(FakeSpark(), source, tmp_path)
        made.prepare()
        made.start()
        made.await_end()
