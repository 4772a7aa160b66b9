"""Faults of the network between the hosts of a cluster, as functions of the cluster and its job.

Each lasts until the cluster has done what it promises while the fault is there, and returns when the network
is whole again.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Final

import psutil

from integration.conftest import wait_until
from integration.faults.ha_cluster import executors
from integration.faults.hosted_cluster import HostedCluster
from integration.faults.network import Host
from integration.faults.relay import Behaviour
from integration.processes import kill, lives
from tests.patience import PATIENCE

NetworkFault = Callable[[HostedCluster, str], None]
#: between two looks that are commands, each of which takes a second of processor time
_PAUSE_S: Final = 2.0


def lead_elsewhere(cluster: HostedCluster, job_id: str) -> None:
    """Have a master lead that does not have the job's driver, so that each can be cut off alone."""
    while cluster.leader_host() is cluster.host_of(cluster.driver_process(job_id)):
        epoch = cluster.epoch()
        kill(cluster.leader_process())
        cluster.await_leader(above_epoch=epoch)
        cluster.await_status(job_id, "RUNNING")


def _host_of_executor(cluster: HostedCluster) -> Host:
    return cluster.host_of(wait_until(lambda: executors(cluster), "an executor")[-1])


def _await_executor_elsewhere(cluster: HostedCluster, host: Host) -> None:
    def elsewhere() -> bool:
        for process in executors(cluster):
            try:
                if cluster.host_of(process) is not host:
                    return True
            except psutil.NoSuchProcess:
                continue
        return False

    wait_until(elsewhere, "an executor on another TaskManager")


def master_to_task_manager_cut(cluster: HostedCluster, job_id: str) -> None:
    """Nothing of the leader reaches the job's TaskManager, whose heartbeats reach it."""
    lead_elsewhere(cluster, job_id)
    victim = _host_of_executor(cluster)
    with cluster.network.cut(cluster.leader_host(), victim):
        _await_executor_elsewhere(cluster, victim)
        cluster.await_commits(job_id)


def task_manager_to_master_cut(cluster: HostedCluster, job_id: str) -> None:
    """Nothing of the job's TaskManager reaches the leader, whose calls reach it."""
    lead_elsewhere(cluster, job_id)
    victim = _host_of_executor(cluster)
    with cluster.network.cut(victim, cluster.leader_host()):
        _await_executor_elsewhere(cluster, victim)
        cluster.await_commits(job_id)


def driver_cut_from_zookeeper(cluster: HostedCluster, job_id: str) -> None:
    """The driver's host does not reach ZooKeeper any more, and HDFS as ever.

    Until another driver commits: the lease went elsewhere, so the first one must have ended before.
    """
    driver = cluster.driver_process(job_id)
    with cluster.network.cut_services([cluster.host_of(driver)], cluster.zookeeper_ports):

        def moved() -> bool:
            lease = cluster.lease(job_id)
            elsewhere = lease is not None and int(lease["pid"]) != driver.pid
            # in this order: it may end between the two
            assert not elsewhere or not lives(driver), "another driver has the lease, and the first one runs"
            return elsewhere

        wait_until(moved, "another driver to have the lease")
        cluster.await_commits(job_id)


def leader_cut_from_zookeeper(cluster: HostedCluster, job_id: str) -> None:
    """The leader does not reach ZooKeeper any more, and everybody else as ever; the driver is elsewhere."""
    lead_elsewhere(cluster, job_id)
    epoch = cluster.epoch()
    with cluster.network.cut_services([cluster.leader_host()], cluster.zookeeper_ports):
        cluster.await_leader(above_epoch=epoch)
        cluster.await_commits(job_id)


def driver_cut_from_executors(cluster: HostedCluster, job_id: str) -> None:
    """Driver and executors do not reach each other, and both reach the leader, until something is done."""
    lead_elsewhere(cluster, job_id)
    driver = cluster.driver_process(job_id)
    before = {process.pid for process in executors(cluster)}
    with cluster.network.cut_off(cluster.host_of(driver), cluster.hosts("taskmanager")):
        wait_until(
            lambda: {process.pid for process in executors(cluster)} != before
            or cluster.status(job_id) != "RUNNING",
            "the loss to be noticed",
            PATIENCE.condition_s,
            _PAUSE_S,
        )


def slow_network(cluster: HostedCluster, job_id: str) -> None:
    """All packets are late by 50 ms each way, and one of fifty is lost, on every host."""
    hosts = list(cluster.network.hosts.values())
    with ExitStack() as faults:
        faults.enter_context(cluster.network.relayed(hosts, Behaviour(delay_s=0.05)))
        faults.enter_context(cluster.network.loss(hosts, 0.02))
        cluster.await_commits(job_id, more=3)


def flipped_bits(cluster: HostedCluster, job_id: str) -> None:
    """Bits are flipped in what TaskManagers and driver say to the leader and it answers."""
    lead_elsewhere(cluster, job_id)
    hosts = list(cluster.network.hosts.values())
    port = int(cluster.await_leader()["address"].rpartition(":")[2])

    def flips() -> int:
        return sum(int(host.behave()["flipped"]) for host in hosts)

    before = flips()
    with cluster.network.relayed(hosts, Behaviour(flip_ports=[port], flip_share=0.2, seed=len(hosts))):
        wait_until(lambda: flips() - before >= 10, "bits to be flipped", PATIENCE.condition_s, 0.5)
    print(f"bits flipped: {flips() - before}")


#: those that a network without relays can have
CUTS: Final[dict[str, NetworkFault]] = {
    fault.__name__: fault
    for fault in (
        master_to_task_manager_cut,
        task_manager_to_master_cut,
        driver_cut_from_zookeeper,
        leader_cut_from_zookeeper,
        driver_cut_from_executors,
    )
}
RELAYED: Final[dict[str, NetworkFault]] = {
    fault.__name__: fault for fault in (slow_network, flipped_bits)
}
#: what leaves the driver alone: it must be the same one afterwards
DRIVER_STAYS: Final = (
    "master_to_task_manager_cut",
    "task_manager_to_master_cut",
    "leader_cut_from_zookeeper",
    "slow_network",
)
