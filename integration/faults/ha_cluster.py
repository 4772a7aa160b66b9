"""A standalone cluster with high availability: masters and TaskManagers here, real ZooKeeper and HDFS.

What faults need is found out from ZooKeeper and the process table: who leads, which process is the
driver of a job, which ones belong to one master.
"""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeVar

import psutil
from hdfs.util import HdfsError
from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError, NotEmptyError

from integration.commits import Commit, await_more, commits_below
from integration.conftest import Commands, Started, wait_until
from integration.faults.records import PATIENT, QUERIES, Numbered, Taken, read_results
from integration.hadoop import HadoopCluster
from integration.processes import DRIVER, EXECUTOR, JOB_MANAGER, TASK_MANAGER, processes
from tests.patience import PATIENCE

#: so that frozen processes are noticed soon; killed ones are noticed at once in any case
SESSION_TIMEOUT_S: Final = 6
#: from one ``yarnflow info`` to the next
_STATUS_PAUSE_S: Final = 2.0


@dataclass
class HaCluster:
    """The cluster; made by :func:`ha_cluster`."""

    hadoop: HadoopCluster
    commands: Commands
    directory: Path
    cluster_id: str
    zookeeper: KazooClient
    #: further options of every process
    extra_options: tuple[str, ...] = ()
    masters: list[Started] = field(default_factory=list)
    task_managers: list[Started] = field(default_factory=list)

    # --- processes ---

    @property
    def client_options(self) -> list[str]:
        """How a command finds this cluster."""
        return [
            "-Dhigh-availability.type=zookeeper",
            f"-Dhigh-availability.zookeeper.quorum={self.hadoop.zookeeper}",
            f"-Dhigh-availability.cluster-id={self.cluster_id}",
            # the test looks at the nodes, too
            "-Dhigh-availability.zookeeper.client.acl=open",
            f"-Dio.tmp.dirs={self.directory}",
        ]

    @property
    def options(self) -> list[str]:
        """What the cluster's own processes are given."""
        return [
            *self.client_options,
            f"-Dhigh-availability.storageDir={self.hadoop_fs}/tests/{self.cluster_id}/ha",
            f"-Dhigh-availability.zookeeper.client.session-timeout={SESSION_TIMEOUT_S} s",
            *self.extra_options,
        ]

    @property
    def job_options(self) -> list[str]:
        """What a submit needs beyond :attr:`options`."""
        return [
            f"-Dexecution.checkpointing.dir={self.hadoop_fs}/tests/{self.cluster_id}/checkpoints",
            "-Dexecution.checkpointing.interval=2 s",
            "-Dexecution.micro-batch.interval=500 ms",
        ]

    @property
    def hadoop_fs(self) -> str:
        """``hdfs://host:port``."""
        if self.hadoop.folder not in _FS:
            _FS[self.hadoop.folder] = self.hadoop.run("hdfs", "getconf", "-confKey", "fs.defaultFS").strip()
        return _FS[self.hadoop.folder]

    def environment(self) -> dict[str, str]:
        """So that HDFS is known."""
        return self.hadoop.env()

    def master_environment(self) -> dict[str, str]:
        """What the next master is started with."""
        return self.environment()

    def start_master(self) -> Started:
        """One more candidate."""
        started = self.commands.start(
            "jobmanager", *self.options, "-Djobmanager.rpc.port=0", environment=self.master_environment()
        )
        self.masters.append(started)
        return started

    def start_task_manager(self, *options: str) -> Started:
        """One more TaskManager."""
        started = self.commands.start("taskmanager", *self.options, *options, environment=self.environment())
        self.task_managers.append(started)
        return started

    def yarnflow(self, verb: str, *arguments: str | Path, timeout_s: float | None = None) -> Started:
        """Run a verb against the cluster to its end."""
        started = self.start_verb(verb, *arguments)
        started.wait(timeout_s)
        return started

    def start_verb(self, verb: str, *arguments: str | Path) -> Started:
        """Start a verb against the cluster."""
        return self.commands.start(
            verb, "-t", "remote", *self.client_options, *arguments, environment=self.environment()
        )

    # --- ZooKeeper ---

    def _node(self, path: str) -> Any:
        try:
            content, _stat = self.zookeeper.get(f"/yarnflow/{self.cluster_id}{path}")
        except NoNodeError:
            return None
        return json.loads(content) if content else None

    def leader(self) -> dict[str, Any] | None:
        """What the leader has published; None while nobody leads."""
        found = self._node("/leader/connection_info")
        return found if isinstance(found, dict) else None

    def epoch(self) -> int:
        """Of the present leader; 0 = there is none."""
        leader = self.leader()
        return int(leader["fence"]["epoch"]) if leader else 0

    def await_leader(self, above_epoch: int = 0) -> dict[str, Any]:
        """The leader as soon as its epoch is above."""
        wait_until(lambda: self.epoch() > above_epoch, f"a leader above epoch {above_epoch}")
        leader = self.leader()
        assert leader is not None
        return leader

    def lease(self, job_id: str) -> dict[str, Any] | None:
        """Who holds the job's lease."""
        found = self._node(f"/jobs/{job_id}/driver")
        return found if isinstance(found, dict) else None

    def leader_process(self) -> psutil.Process:
        """The JobManager process that leads."""
        port = int(self.await_leader()["address"].rsplit(":", 1)[1])
        for process in processes(self.commands.mark, JOB_MANAGER):
            if _listens(process, port):
                return process
        raise AssertionError(f"nobody listens at the leader's port {port}")

    def driver_process(self, job_id: str) -> psutil.Process:
        """The driver that has the job's lease."""
        lease = wait_until(lambda: self.lease(job_id), f"a driver of job {job_id}")
        return psutil.Process(int(lease["pid"]))

    def owner_of(self, process: psutil.Process) -> psutil.Process:
        """The ``yarnflow jobmanager`` command a process belongs to."""
        supervisors = {started.process.pid for started in self.masters}
        for parent in process.parents():
            if parent.pid in supervisors:
                return parent
        raise AssertionError(f"{process} belongs to no master")

    def empty_zookeeper(self) -> None:
        """Delete all that the cluster has there, while its masters make some of it anew."""
        while True:
            try:
                self.zookeeper.delete(f"/yarnflow/{self.cluster_id}", recursive=True)
                return
            except NotEmptyError:
                continue

    # --- job and results ---

    def submit(self, job: Numbered, *options: str) -> str:
        """Submit the job and let go of it; returns its id."""
        return self.submit_program(job.write_program(self.directory / "numbered.py"), *options)

    def submit_program(self, program: Path, *options: str) -> str:
        """Submit a program of one job and let go of it; returns the job's id."""
        done = self.yarnflow("submit", "-d", *self.job_options, *options, program)
        assert done.process.returncode == 0, done.stderr
        found = re.search(r"[0-9a-f]{32}", done.stdout + done.stderr)
        assert found
        return found[0]

    def status(self, job_id: str) -> str:
        """The job's status as ``yarnflow info`` tells it."""
        return str(self.details(job_id)["overview"]["status"])

    def details(self, job_id: str) -> dict[str, Any]:
        """What ``yarnflow info`` tells of the job."""
        done = self.yarnflow("info", job_id)
        assert done.process.returncode == 0, done.stderr
        return dict(json.loads(done.stdout))

    def failure_levels(self, job_id: str) -> list[str]:
        """How far each failure of the job so far has reached; MASTER = it was adopted by another one."""
        return [str(failure["level"]) for failure in self.details(job_id)["failures"]]

    def files(self, directory: str) -> Iterable[bytes]:
        """Contents of the visible files of a directory on HDFS."""
        try:
            names = self.hadoop.hdfs.list(directory)
        except HdfsError:
            return
        for name in names:
            if name.startswith("part-"):
                yield self.hadoop.hdfs.read(f"{directory}/{name}")

    def stored_graphs(self, job_id: str) -> list[str]:
        """Paths on HDFS of what a new leader would read of a job."""
        directory = f"/tests/{self.cluster_id}/ha/{self.cluster_id}/jobgraphs"
        return [f"{directory}/{name}" for name in self.hadoop.hdfs.list(directory) if job_id in name]

    def commits(self, job_id: str) -> list[Commit]:
        """Those that are still there, by time."""
        return commits_below(self.hadoop.hdfs.client, f"/tests/{self.cluster_id}/checkpoints/{job_id}")

    def await_commits(self, job_id: str, more: int = 2) -> None:
        """Until both queries of the job have so many more."""
        await_more(lambda: self.commits(job_id), more, QUERIES)

    def await_running(self, job_id: str) -> None:
        """Until the job has committed and is RUNNING.

        By its commits first: each command that asks takes a second of processor time from the job.
        """
        self.await_commits(job_id, more=0)
        self.await_status(job_id, "RUNNING")

    def await_status(self, job_id: str, status: str, timeout_s: float | None = None) -> None:
        """Until the job has a status; FAILED fails the test."""

        def reached() -> bool:
            now = self.status(job_id)
            assert now == status or now not in ("FAILED", "CANCELED", "FINISHED"), f"the job is {now}"
            return now == status

        # each look is a command, which takes a second of processor time from the job
        wait_until(reached, f"the job to be {status}", timeout_s, _STATUS_PAUSE_S)

    def assert_each_record_once(self, job: Numbered, job_id: str) -> None:
        """Drain the job: no record is missing, none is there twice, the sums are right."""
        stopped = self.yarnflow(
            *("stop", "--drain", PATIENT, "-p", f"{job.output}/savepoints", job_id)
        )
        assert stopped.process.returncode == 0, stopped.stderr
        self.await_status(job_id, "FINISHED")
        inspected = self.commands.run(
            *("savepoint", "inspect", "--json", stopped.stdout.strip()), environment=self.environment()
        )
        assert inspected.process.returncode == 0, inspected.stderr
        self.assert_results(job, job.taken(json.loads(inspected.stdout)))

    def assert_results(self, job: Numbered, taken: Taken) -> None:
        """What stands on HDFS is what was taken, once."""
        path = job.output.removeprefix(self.hadoop_fs)
        verdict = taken.verdict(*read_results(lambda sink: self.files(f"{path}/{sink}")))
        assert verdict == "", verdict

    def numbered(self, name: str, count: int | None = None) -> Numbered:
        """A job that writes to HDFS."""
        return Numbered(f"{self.hadoop_fs}/tests/{self.cluster_id}/{name}", count=count)


_FS: dict[Path, str] = {}
C = TypeVar("C", bound=HaCluster)


@contextmanager
def ha_cluster(
    hadoop: HadoopCluster,
    commands: Commands,
    directory: Path,
    masters: int = 2,
    task_managers: int = 2,
    options: Iterable[str] = (),
) -> Iterator[HaCluster]:
    """A started cluster with a leader; ended at the end of the block."""
    with started_cluster(HaCluster, hadoop, commands, directory, masters, task_managers, options) as cluster:
        yield cluster


@contextmanager
def started_cluster(
    kind: Callable[..., C],
    hadoop: HadoopCluster,
    commands: Commands,
    directory: Path,
    masters: int,
    task_managers: int,
    options: Iterable[str],
) -> Iterator[C]:
    """The same of a cluster of any kind, whose constructor takes what that of `HaCluster` takes."""
    zookeeper = KazooClient(hosts=hadoop.zookeeper, timeout=10)
    zookeeper.start()
    cluster = kind(hadoop, commands, directory, f"test-{commands.mark[:12]}", zookeeper, tuple(options))
    try:
        for _ in range(masters):
            cluster.start_master()
        cluster.await_leader()
        for _ in range(task_managers):
            cluster.start_task_manager()
        yield cluster
    finally:
        for started in [*cluster.task_managers, *cluster.masters]:
            if started.process.poll() is None:
                started.process.send_signal(signal.SIGCONT)
                started.process.terminate()
        for started in [*cluster.task_managers, *cluster.masters]:
            started.process.wait(PATIENCE.process_s)
        zookeeper.delete(f"/yarnflow/{cluster.cluster_id}", recursive=True)
        zookeeper.stop()
        zookeeper.close()


@contextmanager
def frozen(victims: Iterable[psutil.Process]) -> Iterator[None]:
    """SIGSTOP, and SIGCONT at the end of the block."""
    first, *others = stopped = list(victims)
    try:
        first.send_signal(signal.SIGSTOP)
        for process in others:
            # it may just have ended
            with suppress(psutil.NoSuchProcess):
                process.send_signal(signal.SIGSTOP)
        yield
    finally:
        for process in stopped:
            with suppress(psutil.NoSuchProcess):
                process.send_signal(signal.SIGCONT)


def _listens(process: psutil.Process, port: int) -> bool:
    try:
        return any(c.status == "LISTEN" and c.laddr.port == port for c in process.net_connections())
    except psutil.Error:
        return False


def executors(cluster: HaCluster) -> list[psutil.Process]:
    """Spark executors of the cluster."""
    return processes(cluster.commands.mark, EXECUTOR)


def task_manager_processes(cluster: HaCluster) -> list[psutil.Process]:
    """TaskManager processes of the cluster."""
    return processes(cluster.commands.mark, TASK_MANAGER)


def driver_processes(cluster: HaCluster) -> list[psutil.Process]:
    """Driver processes of the cluster, spares included."""
    return processes(cluster.commands.mark, DRIVER)
