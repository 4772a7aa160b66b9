"""Workers run their exit callbacks, which Spark's own do not."""

from __future__ import annotations

import atexit
import io
import os
import signal
import sys
import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.patience import PATIENCE
from yarnflow.spark.launch.worker_daemon import ExitCallbacks, limit_memory


def written_by_child(
    main: Callable[[Any, Any], None], then: Callable[[int], None] = lambda _: None, errors: bool = False
) -> bytes:
    """What a forked worker writes: ``T`` in its task, ``C`` in an exit callback of its own.

    With ``errors`` that is what its callbacks write to standard error, too.
    """
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            atexit.register(os.write, writing, b"D")

            def task(infile: Any, outfile: Any) -> None:
                os.write(writing, b"T")
                atexit.register(os.write, writing, b"C")
                main(infile, outfile)

            ExitCallbacks(task, writing if errors else None)(io.BytesIO(), io.BytesIO())
        except SystemExit:
            pass
        finally:
            os._exit(0)
    os.close(writing)
    found = os.read(reading, 1)
    then(pid)
    while more := os.read(reading, 10):
        found += more
    os.close(reading)
    os.waitpid(pid, 0)
    return found


def test_a_worker_that_must_end_runs_its_own_callbacks_but_not_those_of_the_daemon() -> None:
    assert written_by_child(lambda infile, outfile: sys.exit(-1)) == b"TC"


def test_a_worker_that_waits_for_the_next_task_runs_none() -> None:
    assert written_by_child(lambda infile, outfile: None) == b"T"
    assert written_by_child(lambda infile, outfile: sys.exit(0)) == b"T"


def test_callbacks_have_the_standard_error_of_the_executor() -> None:
    def main(infile: Any, outfile: Any) -> None:
        atexit.register(os.write, 2, b"E")
        sys.exit(-1)

    assert written_by_child(main, errors=True) == b"TEC"


@pytest.mark.parametrize("hangs", [False, True])
def test_a_worker_without_executor_runs_them_for_a_limited_time(hangs: bool) -> None:
    def main(infile: Any, outfile: Any) -> None:
        if hangs:
            atexit.register(signal.pause)
        signal.pause()

    found = written_by_child(main, then=_hang_up_when_waiting)
    assert found == (b"T" if hangs else b"TC")


def _hang_up_when_waiting(pid: int) -> None:
    deadline_s = time.monotonic() + PATIENCE.process_s
    while time.monotonic() < deadline_s:
        with open(f"/proc/{pid}/stat") as stat:
            if stat.read().rpartition(")")[2].split()[0] == "S":
                break
    os.kill(pid, signal.SIGHUP)


@pytest.mark.parametrize(
    ("limit", "share", "expected"),
    [
        ("4000", "1500", "1500"),
        ("4000", "300", "1024"),  # with less no worker could start
        ("1200", "1500", "1200"),
        ("4000", "", "4000"),
    ],
)
def test_workers_of_an_executor_with_some_of_the_slots_have_its_share(
    limit: str, share: str, expected: str
) -> None:
    environment = {"PYSPARK_EXECUTOR_MEMORY_MB": limit, "YARNFLOW_PYTHON_MEMORY_MIB": share}
    limit_memory(environment)
    assert environment["PYSPARK_EXECUTOR_MEMORY_MB"] == expected
    unlimited = {"YARNFLOW_PYTHON_MEMORY_MIB": "1500"}
    limit_memory(unlimited)
    assert "PYSPARK_EXECUTOR_MEMORY_MB" not in unlimited
