"""kill -9 of each process in the middle of a job; every window must come out once.

The job is paced (one small file in each micro-batch, ten batches and more to go when the fault
comes), so that there always is a middle.
"""

from __future__ import annotations

import signal
from functools import partial
from pathlib import Path

import pytest

from integration.conftest import ROOT, Commands, Started, wait_until
from integration.flights import assert_every_window_once
from integration.living_files import files_below
from integration.processes import (
    DRIVER,
    EXECUTOR,
    JOB_MANAGER,
    TASK_MANAGER,
    kill_driver,
    kill_one,
    none_is_left,
    processes,
    replace_executor,
)
from tests.patience import PATIENCE

FLIGHTS = ROOT / "examples" / "flight_delays.py"
#: of what it writes nothing is looked at
_ENDLESS = """
from yarnflow.api import *
env = StreamExecutionEnvironment.get_execution_environment()
rows = env.from_source(RateSource(rows_per_second=20))
doubled = rows.map(lambda row: row.value * 2, output_type=int)
doubled.sink_to(FileSink.for_path({output!r}).format("parquet").build())
env.execute("endless")
"""


def _start(yarnflow: Commands, output: Path, *options: str) -> Started:
    """Start the job and wait until its first windows are committed."""
    paced = (*options, "-Dexecution.micro-batch.interval=1 s")
    return _committed(yarnflow.start("submit", *paced, FLIGHTS, "--output", output), output)


def _start_endless(yarnflow: Commands, directory: Path) -> Started:
    """Start a job with Python workers and wait until its first batch is committed."""
    program, output = directory / "endless.py", directory / "rows"
    program.write_text(_ENDLESS.format(output=str(output)))
    return _committed(yarnflow.start("submit", "-p", "2", program), output)


def _committed(started: Started, output: Path) -> Started:
    def committed() -> bool:
        assert started.process.poll() is None, "the job ended before the fault"
        return any(files_below(output, "part-*.parquet"))

    wait_until(committed, "the first results")
    return started


def _finish(started: Started, output: Path) -> None:
    assert started.wait(PATIENCE.job_s) == 0
    assert "to FINISHED" in started.stderr
    assert_every_window_once(output)


@pytest.mark.drill
def test_executor_killed(yarnflow: Commands, tmp_path: Path) -> None:
    output = tmp_path / "windows"
    started = _start(yarnflow, output, "-p", "2")
    replace_executor(yarnflow.mark)
    _finish(started, output)
    assert "executor 0" in started.stderr, "the user was not told of the lost executor"


# every run has jobs on elements whose driver is killed, and such a job on a cluster of several masters
@pytest.mark.drill
def test_driver_killed(yarnflow: Commands, tmp_path: Path) -> None:
    output = tmp_path / "windows"
    started = _start(yarnflow, output, "-p", "2")
    task_managers = {p.pid for p in processes(yarnflow.mark, TASK_MANAGER)}
    kill_driver(yarnflow.mark)
    _finish(started, output)
    assert "to RESTARTING" in started.stderr
    assert task_managers, "no TaskManager was seen"


def test_task_manager_killed(yarnflow: Commands, tmp_path: Path) -> None:
    output = tmp_path / "windows"
    started = _start(yarnflow, output, "-p", "2", "-Dminicluster.number-of-taskmanagers=2")
    before = {p.pid for p in processes(yarnflow.mark, TASK_MANAGER)}
    assert len(before) == 2
    kill_one(yarnflow.mark, TASK_MANAGER)
    wait_until(lambda: len(processes(yarnflow.mark, TASK_MANAGER)) == 2, "a TaskManager in its place")
    _finish(started, output)


@pytest.mark.gate
def test_job_manager_killed_without_high_availability(yarnflow: Commands, tmp_path: Path) -> None:
    """Nobody else knows the job, so the command ends with an error and takes everything along."""
    started = _start_endless(yarnflow, tmp_path)
    kill_one(yarnflow.mark, JOB_MANAGER)
    assert started.wait() not in (0, 1)
    (line,) = [line for line in started.stderr.splitlines() if line.startswith("error:")]
    assert "JobManager" in line


@pytest.mark.parametrize(
    "number",
    [
        signal.SIGINT,
        pytest.param(signal.SIGTERM, marks=pytest.mark.drill),
        pytest.param(signal.SIGKILL, marks=pytest.mark.gate),
    ],
)
def test_command_ended_by_a_signal_leaves_nothing(
    yarnflow: Commands, tmp_path: Path, number: signal.Signals
) -> None:
    """The fixture fails the test when a process is left."""
    started = _start_endless(yarnflow, tmp_path)
    started.process.send_signal(number)
    status = started.wait()
    assert status == {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGKILL: -9}[number]
    # each dies with its parent, one after the other
    for what in (DRIVER, TASK_MANAGER, EXECUTOR):
        wait_until(partial(none_is_left, yarnflow.mark, what), f"every {what} to be gone", PATIENCE.process_s)
