"""Several masters on YARN as tests use them."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil
from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError

from integration.commits import Commit, await_more, commits_below
from integration.conftest import Started, wait_until
from integration.faults.records import QUERIES, Numbered
from integration.processes import JOB_MANAGER
from integration.yarn.jobs import Yarn, application_id, job_id
from integration.yarn.numbered import assert_each_record_once, drain
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
            "-Dhigh-availability.zookeeper.client.session-timeout=20 s",
            # the test looks at the nodes, too
            "-Dhigh-availability.zookeeper.client.acl=open",
            "-Dexecution.micro-batch.interval=1 s",
        ]

    def live(self) -> list[str]:
        """Applications of all masters, oldest first."""
        return sorted(self.yarn.live())

    def await_two(self) -> list[str]:
        """Both masters, once each is a candidate; one that was killed is one for the time of its session."""
        wait_until(lambda: len(self.candidates()) == len(self.live()) == 2, "a standby")
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
        content, _stat = self.zookeeper.retry(self.zookeeper.get, f"{ROOT}/{cluster}/jobs/{job}/driver")
        return psutil.Process(int(json.loads(content)["pid"]))

    def _children(self, path: str) -> list[str]:
        try:
            return list(self.zookeeper.retry(self.zookeeper.get_children, path))
        except NoNodeError:
            return []

    def processes_of(self, application: str, what: str) -> list[psutil.Process]:
        """Processes in the containers of one application."""
        number = application.removeprefix("application_")
        found = []
        for process in self.yarn.processes(what):
            with suppress(psutil.Error):
                # it may just have ended
                if number in process.cwd():
                    found.append(process)
        return found

    def log_of(self, application: str) -> str:
        """What the JobManager of a master that runs has said so far."""
        (process,) = self.processes_of(application, JOB_MANAGER)
        (path,) = {
            Path(value) for name, value in process.environ().items() if name == LOG_FILE_ENVIRONMENT
        }
        return path.read_text()

    def submit(self, job: Numbered, scratch: Path, *options: str) -> Started:
        """Submit the job in a cluster of its own and wait for its first commits."""
        program = job.write_program(scratch / "job.py")
        return self.start("-t", "yarn-per-job", *self.options, *options, program)

    def start(self, *arguments: str | Path) -> Started:
        """``yarnflow submit …``, and wait for the first commits of the job."""
        started = self.yarn.start("submit", *arguments)
        self.await_commits(started)
        return started

    def await_commits(self, started: Started) -> None:
        """Until both queries of the job have committed two batches more."""
        directory = f"{self.yarn.home}/.yarnflow/checkpoints/{job_id(started)}"

        def look() -> list[Commit]:
            assert started.process.poll() is None, f"the job ended: {started.stderr[-3000:]}"
            return commits_below(self.yarn.hdfs, directory)

        await_more(look, 2, QUERIES)

    def assert_each_record_once(self, started: Started, job: Numbered, application: str = "") -> None:
        """Drain the job: the command that waits for it ends well, and each record was counted once.

        ``application`` is that of a session.
        """
        savepoint = drain(self.yarn, job, job_id(started), application or application_id(started))
        assert started.wait() == 0, started.stderr[-3000:]
        assert_each_record_once(self.yarn, job, savepoint)
