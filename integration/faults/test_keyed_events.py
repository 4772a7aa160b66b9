"""kill -9 in the middle of a keyed, timed, windowed PyFlink program; each result must come out once."""

from __future__ import annotations

import signal
from pathlib import Path

import psutil
import pytest

from integration.conftest import Commands, Started, marked_processes, wait_until
from integration.faults.keyed_events import KeyedEvents
from integration.processes import DRIVER, EXECUTOR, TASK_MANAGER, driver_with_a_job, processes
from tests.patience import PATIENCE

_DAEMON = "yarnflow.spark.launch.worker_daemon"


def _python_worker(mark: str) -> psutil.Process | None:
    """One that an executor has forked to run functions."""
    for process in marked_processes(mark):
        try:
            parent = process.parent()
            if parent and _DAEMON in process.cmdline() and _DAEMON in parent.cmdline():
                return process
        except psutil.Error:
            continue
    return None


def _victim(yarnflow: Commands, what: str) -> psutil.Process:
    if what == "python worker":
        return wait_until(lambda: _python_worker(yarnflow.mark), "a Python worker")
    if what == DRIVER:
        driver = driver_with_a_job(yarnflow.mark)
        assert driver is not None
        return driver
    return processes(yarnflow.mark, what)[0]


def _started(yarnflow: Commands, job: KeyedEvents) -> Started:
    options = ("-p", "2", "-Dexecution.micro-batch.interval=500 ms")
    started = yarnflow.start("submit", *options, job.program)

    def in_the_middle() -> bool:
        assert started.process.poll() is None, "the job ended before the fault"
        return job.has_results_of_all_kinds()

    wait_until(in_the_middle, "results of all kinds", pause_s=0.3)
    return started


@pytest.mark.drill
@pytest.mark.parametrize(
    "what",
    [
        DRIVER,
        "python worker",
        EXECUTOR,
        TASK_MANAGER,
    ],
)
def test_results_are_those_of_an_uninterrupted_run(yarnflow: Commands, tmp_path: Path, what: str) -> None:
    # results of all kinds come with the first two
    job = KeyedEvents(tmp_path, files=12)
    job.write()
    started = _started(yarnflow, job)
    _victim(yarnflow, what).send_signal(signal.SIGKILL)
    assert started.process.poll() is None, "the job ended before the fault"
    assert started.wait(PATIENCE.job_s) == 0
    job.assert_each_result_once()
