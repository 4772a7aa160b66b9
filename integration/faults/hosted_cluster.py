"""A cluster with high availability each of whose masters and TaskManagers has a host of its own.

ZooKeeper and HDFS are this machine's, so that a host can be cut off from one of the two alone.  Commands run
on this machine, which no fault cuts off.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

import psutil

from integration.conftest import Commands, Started, wait_until
from integration.faults.ha_cluster import HaCluster, started_cluster
from integration.faults.network import Host, Network, network
from integration.hadoop import HadoopCluster
from integration.processes import JOB_MANAGER, TASK_MANAGER

#: so that a silent TaskManager or driver is noticed in seconds, as one that is gone is
_IMPATIENT: Final = (
    "-Dheartbeat.interval=2 s",
    "-Dheartbeat.timeout=10 s",
    "-Ddriver.heartbeat.timeout=10 s",
    "-Drpc.ask.timeout=5 s",
)


@dataclass(kw_only=True)
class HostedCluster(HaCluster):
    """The cluster; made by :func:`hosted_cluster`."""

    network: Network
    _places: dict[int, Host] = field(default_factory=dict)

    def start_master(self, *options: str) -> Started:
        """One more candidate, on one more host."""
        started = self._start("jobmanager", *options, "-Djobmanager.rpc.port=0")
        self.masters.append(started)
        return started

    def start_task_manager(self, *options: str) -> Started:
        """One more TaskManager, on one more host."""
        started = self._start("taskmanager", *options)
        self.task_managers.append(started)
        return started

    def _start(self, verb: str, *options: str) -> Started:
        host = self.network.host(f"{verb}-{len(self.network.hosts)}")
        # whatever runs on the host is reached by its address
        key = "jobmanager.rpc.address" if verb == "jobmanager" else "taskmanager.host"
        words = [*self.options, f"-D{key}={host.address}", *options]
        started = self.commands.start_command(
            host.command([Path(sys.executable).with_name("yarnflow"), verb, *words]),
            environment=self.environment(),
        )
        self._places[started.process.pid] = host
        return started

    # --- who is where ---

    def host_of(self, process: psutil.Process) -> Host:
        """The host of a process of the cluster."""
        for parent in [process, *process.parents()]:
            if host := self._places.get(parent.pid):
                return host
        raise AssertionError(f"{process} is on no host")

    def leader_host(self) -> Host:
        """That of the master that leads."""
        address = str(self.await_leader()["address"]).rpartition(":")[0]
        return next(host for host in self.network.hosts.values() if host.address == address)

    def leader_process(self) -> psutil.Process:
        """The JobManager process that leads."""
        host = self.leader_host()
        return wait_until(lambda: self._process(host, JOB_MANAGER), "the leader's process")

    def _process(self, host: Host, what: str) -> psutil.Process | None:
        for pid, place in self._places.items():
            if place is host:
                for process in psutil.Process(pid).children(recursive=True):
                    if any(what in word for word in process.cmdline()):
                        return process
        return None

    def hosts(self, verb: str) -> Sequence[Host]:
        """Those of all masters (``jobmanager``) or TaskManagers (``taskmanager``)."""
        return [host for name, host in self.network.hosts.items() if name.startswith(verb)]

    def task_manager_process(self, host: Host) -> psutil.Process | None:
        """The TaskManager process of a host."""
        return self._process(host, TASK_MANAGER)

    @property
    def zookeeper_ports(self) -> list[int]:
        """Of all servers of the quorum."""
        return [int(server.rpartition(":")[2]) for server in self.hadoop.zookeeper.split(",")]


def _services(hadoop: HadoopCluster) -> list[int]:
    """Ports of ZooKeeper's servers and of HDFS."""
    ports = json.loads((hadoop.folder / "yarnflow-hadoop.json").read_text())["ports"]
    found = [int(server.rpartition(":")[2]) for server in hadoop.zookeeper.split(",")]
    return found + [int(port) for daemon in ("namenode", "datanode") for port in ports[daemon].values()]


@contextmanager
def hosted_cluster(
    hadoop: HadoopCluster,
    commands: Commands,
    directory: Path,
    masters: int = 2,
    task_managers: int = 2,
    options: Iterable[str] = (),
    relays: bool = False,
) -> Iterator[HostedCluster]:
    """A started cluster with a leader; ended at the end of the block, and its network with it."""
    with network(_services(hadoop), relays) as made:
        kind = partial(HostedCluster, network=made)
        with started_cluster(
            kind, hadoop, commands, directory, masters, task_managers, [*_IMPATIENT, *options]
        ) as cluster:
            yield cluster
