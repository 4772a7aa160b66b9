"""Several masters on YARN: each may be lost, the job goes on, and nothing is left at the end.

The numbered records of :mod:`integration.faults.records` are counted: whatever happens to the
masters, each one is in the results once.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest
from kazoo.client import KazooClient

from integration.commits import Commit, await_more, commits_below
from integration.conftest import Started, wait_until
from integration.faults.records import PATIENT, QUERIES, Numbered, read_results
from integration.processes import DRIVER, EXECUTOR, JOB_MANAGER
from integration.yarn.jobs import Yarn, application_id, job_id
from yarnflow.process.logs import LOG_FILE_ENVIRONMENT

#: of each master's supervisor
MASTER = "yarnflow.entrypoint.yarn.master_main"
ROOT = "/yarnflow-on-yarn"


@dataclass
class Masters:
    """Submits with high availability, and what is known of the masters."""

    yarn: Yarn
    zookeeper: KazooClient

    @property
    def options(self) -> list[str]:
        """Of a submit."""
        return [
            "-Dhigh-availability.type=zookeeper",
            f"-Dhigh-availability.zookeeper.quorum={self.yarn.hadoop.zookeeper}",
            f"-Dhigh-availability.zookeeper.path.root={ROOT}",
            "-Dhigh-availability.zookeeper.client.session-timeout=6 s",
            # the test looks at the nodes, too
            "-Dhigh-availability.zookeeper.client.acl=open",
            "-Dexecution.micro-batch.interval=1 s",
        ]

    def live(self) -> list[str]:
        """Applications of all masters, oldest first."""
        return sorted(self.yarn.live())

    def await_two(self) -> list[str]:
        """Both masters, once each is a candidate; the node of one that was killed stays for some seconds."""
        wait_until(lambda: len(self.candidates()) == len(self.live()) == 2, "a standby", 120)
        return self.live()

    def candidates(self) -> list[str]:
        """Nodes of the masters that stand for election, of the only cluster there is."""
        clusters = self._children(ROOT)
        return self._children(f"{ROOT}/{clusters[0]}/leader/latch") if clusters else []

    def clusters(self) -> list[str]:
        """Clusters that ZooKeeper knows."""
        return self._children(ROOT)

    def driver_of(self, job: str) -> psutil.Process:
        """The driver that has the job's lease, of the only cluster there is."""
        (cluster,) = self.clusters()
        content, _stat = self.zookeeper.get(f"{ROOT}/{cluster}/jobs/{job}/driver")
        return psutil.Process(int(json.loads(content)["pid"]))

    def _children(self, path: str) -> list[str]:
        return list(self.zookeeper.get_children(path)) if self.zookeeper.exists(path) else []

    def processes_of(self, application: str, what: str) -> list[psutil.Process]:
        """Processes in the containers of one application."""
        number = application.removeprefix("application_")
        return [process for process in self.yarn.processes(what) if number in process.cwd()]

    def log_of(self, application: str) -> str:
        """What the JobManager of a master that runs has said so far."""
        (process,) = self.processes_of(application, JOB_MANAGER)
        (path,) = {
            Path(value) for name, value in process.environ().items() if name == LOG_FILE_ENVIRONMENT
        }
        return path.read_text()

    def submit(self, job: Numbered, scratch: Path, *options: str) -> Started:
        """Submit the job and wait for its first commits."""
        started = self.yarn.start(
            "submit",
            "-t",
            "yarn-per-job",
            *self.options,
            *options,
            job.write_program(scratch / "job.py"),
        )
        self.await_commits(started)
        return started

    def await_commits(self, started: Started) -> None:
        """Until both queries of the job have committed two batches more."""
        directory = f"{self.yarn.home}/.yarnflow/checkpoints/{job_id(started)}"

        def look() -> list[Commit]:
            assert started.process.poll() is None, f"the job ended: {started.stderr[-3000:]}"
            return commits_below(self.yarn.hdfs, directory)

        await_more(look, 2, QUERIES)

    def assert_each_record_once(self, started: Started, job: Numbered) -> None:
        """Drain the job: the command that waits for it ends well, and each record was counted once."""
        where = f"-Dyarn.application.id={application_id(started)}"
        stopped = self.yarn.run(
            *("stop", where, "--drain", PATIENT, "-p", f"hdfs://{job.output}/savepoints", job_id(started)),
            timeout_s=360,
        )
        assert stopped.process.returncode == 0, stopped.stderr
        assert started.wait(120) == 0, started.stderr[-3000:]
        inspected = self.yarn.run("savepoint", "inspect", "--json", stopped.stdout.strip())
        assert inspected.process.returncode == 0, inspected.stderr
        taken = job.taken(json.loads(inspected.stdout))

        def files(sink: str) -> Iterator[bytes]:
            for name in self.yarn.below(f"{job.output}/{sink}"):
                if name.startswith("part-"):
                    with self.yarn.hdfs.read(f"{job.output}/{sink}/{name}") as reader:
                        yield reader.read()

        verdict = taken.verdict(*read_results(files))
        assert verdict == "", verdict


@pytest.fixture
def masters(yarn: Yarn) -> Iterator[Masters]:
    """For one test, which must leave nothing in ZooKeeper either."""
    zookeeper = KazooClient(hosts=yarn.hadoop.zookeeper)
    zookeeper.start()
    found = Masters(yarn, zookeeper)
    try:
        yield found
        yarn.assert_nothing_left()
        assert not yarn.below(f"{yarn.home}/.yarnflow/ha")
        # by the key of a job that was stopped its savepoint is found
        left = [path for path in yarn.retained_state() if "/checkpoints/job-keys/" not in path]
        assert not left, "state of a job that is FINISHED"
        wait_until(lambda: not found.clusters(), "ZooKeeper to be empty", 60)
    finally:
        zookeeper.stop()
        zookeeper.close()


def test_two_leaders_are_killed(masters: Masters, tmp_path: Path) -> None:
    """
    1. `yarn application -kill` of one master is a fault: the standby takes over and is given another
    2. kill -9 of the JobManager that leads now: the driver and its executors do not notice
    """
    job = Numbered("/tests/ha-application")
    started = masters.submit(job, tmp_path)
    first, second = masters.await_two()
    (named,) = {application_id(started)}
    assert named == first
    masters.yarn.hadoop.kill_application(first)
    masters.await_commits(started)
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
    wait_until(lambda: "is ready: driver" in masters.log_of(first), "the hot spare", 240)
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
    first, second = masters.await_two()
    masters.yarn.hadoop.kill_application(second)
    wait_until(lambda: second not in masters.live(), "the standby to end", 60)
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
