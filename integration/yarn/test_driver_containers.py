"""Drivers with containers of their own, in a session with two masters."""

from __future__ import annotations

from pathlib import Path

import psutil
import pytest

from integration.conftest import wait_until
from integration.faults.records import Numbered
from integration.processes import DRIVER
from integration.yarn.jobs import application_id, job_id
from integration.yarn.masters import MASTER, Masters

#: what supervises the one driver of a container
DRIVER_CONTAINER = "yarnflow.entrypoint.yarn.driver_main"


def container_of(process: psutil.Process) -> str:
    return next(part for part in Path(process.cwd()).parts if part.startswith("container_"))


@pytest.mark.drill
def test_a_driver_outlives_the_leader_and_leaves_nothing(masters: Masters, tmp_path: Path) -> None:
    """
    1. the driver has a container of its own, in the application of the standby
    2. kill -9 of all that is in the leader's container: the same driver goes on
    3. kill -9 of the driver's container: another driver goes on, in another container
    4. jobs that were drained and canceled have given their containers back
    """
    yarn, job, second_job = masters.yarn, Numbered("/tests/driver-1"), Numbered("/tests/driver-2")
    options = ("-Ddriver.placement=container", "-Dtaskmanager.numberOfTaskSlots=2")
    drops = "-Dexecution.checkpointing.externalized-checkpoint-retention=DELETE_ON_CANCELLATION"
    begun = yarn.run("session", "start", "-d", *masters.options, *options, drops)
    assert begun.process.returncode == 0, begun.stderr
    first, second = masters.await_two()
    assert application_id(begun) == first
    target = ("-t", "yarn-session", f"-Dyarn.application.id={first}")
    started = masters.start(*target, job.write_program(tmp_path / "job.py"))
    driver = masters.driver_of(job_id(started))
    assert driver in masters.processes_of(second, DRIVER) and not masters.processes_of(first, DRIVER)
    (supervisor,) = masters.processes_of(second, MASTER)
    place = container_of(driver)
    assert place != container_of(supervisor) and place in yarn.containers(second)
    logs = yarn.run("logs", second, "--container", "driver", "-n", "3").stdout
    assert place in logs and "driver-1.log" in logs and container_of(supervisor) not in logs

    (leader,) = masters.processes_of(first, MASTER)
    leader.kill()
    masters.await_commits(started)
    assert driver.is_running() and masters.driver_of(job_id(started)) == driver
    assert first not in masters.live()
    third = next(application for application in masters.await_two() if application != second)

    (host,) = masters.processes_of(second, DRIVER_CONTAINER)
    host.kill()
    masters.await_commits(started)
    assert not masters.processes_of(second, DRIVER) and place not in yarn.containers(second)
    another = masters.driver_of(job_id(started))
    assert another in masters.processes_of(third, DRIVER), "the standby of the new leader has it"

    program = second_job.write_program(tmp_path / "second.py")
    canceled = masters.start(*target, "--job-key", "second", program)
    assert len(yarn.processes(DRIVER_CONTAINER)) == 2, "one container for each driver"
    assert yarn.run("cancel", target[2], job_id(canceled)).process.returncode == 0
    wait_until(lambda: len(yarn.processes(DRIVER_CONTAINER)) == 1, "its container to be given back")
    masters.assert_each_record_once(started, job, second)
    wait_until(lambda: not yarn.processes(DRIVER_CONTAINER), "the last container to be given back")
    wait_until(lambda: len(yarn.containers(third)) == 1, "YARN to say so")
    assert yarn.run("session", "stop", second).process.returncode == 0
