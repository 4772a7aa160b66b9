"""Several masters on YARN: each may be lost, the job goes on, and nothing is left at the end.

The numbered records of :mod:`integration.faults.records` are counted: whatever happens to the
masters, each one is in the results once.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from integration.conftest import wait_until
from integration.faults.records import Numbered
from integration.processes import DRIVER, EXECUTOR, JOB_MANAGER
from integration.rest.client import Follower
from integration.yarn.jobs import Yarn, application_id, job_id
from integration.yarn.masters import MASTER, Masters
from integration.yarn.web import proxied, with_token


def _batches(follower: Follower) -> list[int]:
    """Of the job's query, as told; a new leader knows of none before the driver's first report."""
    return [told["queries"][0]["batch-id"] for told in follower.of("progress") if told["queries"]]


@pytest.mark.gate
def test_two_leaders_are_killed(masters: Masters, tmp_path: Path) -> None:
    """
    0. what the standby is asked by REST the leader answers, and so it goes on after
    1. `yarn application -kill` of one master is a fault: the standby takes over and is given another
    2. kill -9 of the JobManager that leads now: the driver and its executors do not notice
    """
    job = Numbered("/tests/ha-application")
    started = masters.submit(job, tmp_path)
    first, second = masters.await_two()
    (named,) = {application_id(started)}
    assert named == first
    # the standby passes requests on, also those of YARN's proxy, and event streams
    path, proxy = f"/jobs/{job_id(started)}", proxied(masters.yarn, second)
    assert proxy.get(path)["state"] == "RUNNING"
    (standby,) = wait_until(lambda: proxy.get("/jobmanager/leadership")["standbys"], "a known standby")
    assert standby["application-id"] == second
    rest = with_token(masters.yarn, f"-Dyarn.application.id={first}")
    rest = replace(rest, url=standby["web-address"])
    before = Follower(rest, job_id(started))
    wait_until(lambda: _batches(before), "progress")
    masters.yarn.hadoop.kill_application(first)
    masters.await_commits(started)
    # the same addresses and the same token, now of the leader
    assert proxy.get(path)["state"] in ("RUNNING", "RESTARTING")
    assert proxy.get("/jobmanager/leadership")["leader"]["epoch"] > 1
    after = Follower(rest, job_id(started), before.events[-1].id)
    batch = _batches(before)[-1]
    wait_until(lambda: [told for told in _batches(after) if told > batch], "events of the new leader")
    after.leave()
    listed = masters.yarn.run("list", f"-Dyarn.application.id={first}")
    assert re.search(r"\b[0-9a-f]{32}\b.*numbered", listed.stdout), "a dead master's name leads nowhere"
    assert first not in masters.live() and second in masters.live()
    third = next(application for application in masters.await_two() if application != second)

    driver = masters.driver_of(job_id(started))
    assert driver in masters.processes_of(second, DRIVER)
    (leader,) = masters.processes_of(second, JOB_MANAGER)
    leader.kill()
    masters.await_commits(started)
    assert driver.is_running(), "the driver of a job was ended with its JobManager"
    assert masters.driver_of(job_id(started)) == driver
    assert masters.live() == [second, third]
    masters.assert_each_record_once(started, job)
    ends = {masters.yarn.ended(application)["finalStatus"] for application in (second, third)}
    assert ends == {"SUCCEEDED"}


@pytest.mark.drill
def test_hot_standby_has_everything_ready(masters: Masters, tmp_path: Path) -> None:
    """The driver that goes on after the leader's application is lost ran in the standby's before."""
    job = Numbered("/tests/ha-hot")
    started = masters.submit(job, tmp_path, "-Dhigh-availability.standby-mode=hot")
    first, second = masters.await_two()
    wait_until(lambda: "is ready: driver" in masters.log_of(first), "the hot spare")
    ready = {process.pid for process in masters.processes_of(second, DRIVER)}
    executors = {process.pid for process in masters.processes_of(second, EXECUTOR)}
    assert ready and executors
    masters.yarn.hadoop.kill_application(first)
    masters.await_commits(started)
    assert executors & {process.pid for process in masters.processes_of(second, EXECUTOR)}, "new executors"
    assert ready & {process.pid for process in masters.processes_of(second, DRIVER)}, "a new driver"
    assert "steps in" in masters.log_of(second)
    masters.assert_each_record_once(started, job)


@pytest.mark.drill
def test_container_of_the_leader_is_killed(masters: Masters, tmp_path: Path) -> None:
    """kill -9 of the master's supervisor: everything in its container dies with it."""
    job = Numbered("/tests/ha-container")
    started = masters.submit(job, tmp_path)
    first, second = masters.await_two()
    (supervisor,) = masters.processes_of(first, MASTER)
    supervisor.kill()
    masters.await_commits(started)
    assert second in masters.live()
    masters.assert_each_record_once(started, job)


@pytest.mark.drill
def test_standby_is_killed(masters: Masters, tmp_path: Path) -> None:
    """The leader starts another one; the job does not even notice."""
    job = Numbered("/tests/ha-standby")
    started = masters.submit(job, tmp_path)
    _first, second = masters.await_two()
    masters.yarn.hadoop.kill_application(second)
    wait_until(lambda: second not in masters.live(), "the standby to end")
    assert len(masters.await_two()) == 2
    masters.assert_each_record_once(started, job)
    assert "RESTARTING" not in started.stderr


@pytest.mark.drill
def test_program_beside_the_leader(masters: Masters, tmp_path: Path) -> None:
    """Application mode: main() has its effect once, although its container is lost."""
    job = Numbered("/tests/ha-program")
    program = job.write_program(tmp_path / "job.py")
    started = masters.yarn.start("submit", "-t", "yarn-application", *masters.options, program)
    masters.await_commits(started)
    first, _second = masters.await_two()
    masters.yarn.hadoop.kill_application(first)
    masters.await_commits(started)
    masters.assert_each_record_once(started, job)


def test_quorum_that_does_not_answer(yarn: Yarn, endless: Path) -> None:
    done = yarn.run(
        *("submit", "-t", "yarn-per-job", "-Dhigh-availability.type=zookeeper"),
        "-Dhigh-availability.zookeeper.quorum=localhost:1",
        "-Dhigh-availability.zookeeper.client.connection-timeout=2 s",
        endless,
    )
    assert done.process.returncode == 63
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("error:")]
    assert "localhost:1" in line and "high-availability.zookeeper.quorum" in line
