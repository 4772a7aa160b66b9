"""A cluster of one master with high availability, on this machine, that can be killed as a whole."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeVar

import psutil

from integration.conftest import Commands, Started, wait_until
from integration.processes import kill_tree
from integration.upgrade.places import put_secret

T = TypeVar("T")

CLUSTER_ID: Final = "upgrade"
_NODES: Final = "/yarnflow-upgrade"
#: the cluster's, in ZooKeeper
ROOT_NODE: Final = f"{_NODES}/{CLUSTER_ID}"


@dataclass
class UpgradeCluster:
    """The cluster; its files are in one directory, its nodes below :data:`ROOT_NODE`."""

    commands: Commands
    directory: Path
    #: addresses of ZooKeeper
    quorum: str
    processes: list[Started] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.secret_file = put_secret(self.directory)

    @property
    def options(self) -> list[str]:
        """Return how a process finds the cluster."""
        return [
            "-Dhigh-availability.type=zookeeper",
            f"-Dhigh-availability.zookeeper.quorum={self.quorum}",
            f"-Dhigh-availability.zookeeper.path.root={_NODES}",
            f"-Dhigh-availability.cluster-id={CLUSTER_ID}",
            f"-Dsecurity.cluster-secret-file={self.secret_file}",
            f"-Dio.tmp.dirs={self.directory}/tmp",
        ]

    def start(self, slots: int) -> None:
        """Start a master and a TaskManager."""
        (self.directory / "tmp").mkdir(exist_ok=True)
        options = [*self.options, f"-Dhigh-availability.storageDir=file://{self.directory}/ha"]
        address = ["-Djobmanager.rpc.address=127.0.0.1", "-Djobmanager.rpc.port=0"]
        self.processes.append(self.commands.start("jobmanager", *options, *address))
        slots_option = f"-Dtaskmanager.numberOfTaskSlots={slots}"
        self.processes.append(self.commands.start("taskmanager", *options, slots_option))

    def kill(self) -> None:
        """Kill all processes of the cluster and of its jobs at once."""
        running = [started for started in self.processes if started.process.poll() is None]
        for started in running:
            kill_tree(psutil.Process(started.process.pid))
            started.process.wait()

    def run(self, verb: str, *arguments: str | Path) -> Started:
        """Run a verb against the cluster to its end, which must be a good one."""
        done = self.commands.run(verb, "-t", "remote", *self.options, *arguments)
        assert done.process.returncode == 0, done.stderr
        return done

    def submit(self, *arguments: str | Path) -> str:
        """Submit a program and let go of it; returns the job's id."""
        done = self.run("submit", "-d", *arguments)
        assert done.job_id, done.stderr
        return done.job_id

    def follow(self, *arguments: str | Path) -> tuple[Started, str]:
        """Submit a program; returns the command, which ends with the job, and the job's id."""
        submit = self.commands.start("submit", "-t", "remote", *self.options, *arguments)
        return submit, wait_while_running(submit, lambda: submit.job_id, "the job's id")

    def status(self, job_id: str) -> str:
        """Return a job's status."""
        details = json.loads(self.run("info", job_id).stdout)
        return str(details["overview"]["status"])


def wait_while_running(command: Started, condition: Callable[[], T], what: str) -> T:
    """Wait for something that does not come any more when a command has ended."""

    def reached() -> T:
        assert command.process.poll() is None, command.stderr
        return condition()

    return wait_until(reached, what)


def checkpoints_in(place: Path) -> str:
    """Return the option for a job that has its state in a place."""
    return f"-Dexecution.checkpointing.dir=file://{place}/checkpoints"


@contextmanager
def ending(cluster: UpgradeCluster) -> Iterator[UpgradeCluster]:
    """Kill what is left of a cluster at the end: its jobs are of no further use."""
    try:
        yield cluster
    finally:
        cluster.kill()
