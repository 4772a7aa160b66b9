"""kill -9 in the middle of a job on YARN: right results, as many containers as before, none too many."""

from __future__ import annotations

from pathlib import Path

import pytest

from integration.conftest import Started, wait_until
from integration.processes import DRIVER, EXECUTOR
from integration.yarn.jobs import FLIGHTS, TWO_TASK_MANAGERS, Yarn, application_id
from tests.patience import PATIENCE

#: on YARN it is the main process of its container
TASK_MANAGER = "yarnflow.entrypoint.yarn.taskmanager_main"
PACED = "-Dexecution.micro-batch.interval=2 s"


def _start(yarn: Yarn, flights: str, output: str) -> Started:
    """Start the job and wait until its first windows are committed."""
    started = yarn.start(
        "submit",
        *("-t", "yarn-per-job", *TWO_TASK_MANAGERS, PACED),
        *(FLIGHTS, "--input", flights, "--output", output),
    )

    def committed() -> bool:
        assert started.process.poll() is None, f"the job ended before the fault: {started.stderr[-2000:]}"
        return yarn.has_parts(output)

    wait_until(committed, "the first windows")
    return started


def _finish(yarn: Yarn, started: Started, output: str, scratch: Path) -> None:
    assert started.wait(PATIENCE.job_s) == 0, started.stderr[-3000:]
    yarn.assert_windows(output, scratch)
    assert yarn.ended(application_id(started))["finalStatus"] == "SUCCEEDED"


@pytest.mark.drill
@pytest.mark.parametrize("what", [TASK_MANAGER, EXECUTOR, DRIVER])
def test_process_killed(yarn: Yarn, flights: str, tmp_path: Path, what: str) -> None:
    output = f"/tests/killed-{what.rsplit('.', 1)[-1]}"
    started = _start(yarn, flights, output)
    application = application_id(started)
    assert len(yarn.containers(application)) == 3
    before = set(yarn.containers(application))
    victims = [process.pid for process in yarn.processes(what)]
    yarn.kill_one(what)
    if what == TASK_MANAGER:
        wait_until(lambda: len(set(yarn.containers(application)) - before) == 1, "another container")
    else:
        wait_until(lambda: [p for p in yarn.processes(what) if p.pid not in victims], f"another {what}")
    assert len(yarn.containers(application)) == 3
    _finish(yarn, started, output, tmp_path)


@pytest.mark.drill
def test_container_killed_through_yarn(yarn: Yarn, flights: str, tmp_path: Path) -> None:
    output = "/tests/container-killed"
    started = _start(yarn, flights, output)
    application = application_id(started)
    _master, victim, _other = yarn.containers(application)
    yarn.hadoop.run("yarn", "container", "-signal", victim, "FORCEFUL_SHUTDOWN")
    wait_until(
        lambda: len(ids := yarn.containers(application)) == 3 and victim not in ids,
        "another container in its place",
    )
    _finish(yarn, started, output, tmp_path)
    assert "TaskManager" in started.stderr
