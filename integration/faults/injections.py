"""Every fault a cluster must survive, as a function of the cluster and its job.

A fault returns when it has been injected, and where it ends by itself (a restart, a frozen
process that goes on) when it is over; what became of the job is for the test to see.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from integration.conftest import wait_until
from integration.faults.ha_cluster import (
    HaCluster,
    executors,
    frozen,
    task_manager_processes,
)
from integration.processes import kill, kill_tree, lives, tree

Fault = Callable[[HaCluster, str], None]


def leader_killed(cluster: HaCluster, job_id: str) -> None:
    """``kill -9`` of the leader's JobManager process; its supervisor and drivers stay."""
    epoch = cluster.epoch()
    kill(cluster.leader_process())
    cluster.await_leader(above_epoch=epoch)


def master_killed(cluster: HaCluster, job_id: str) -> None:
    """``kill -9`` of the whole master that has the job's driver, as the loss of its container is."""
    driver = cluster.driver_process(job_id)
    owner = cluster.owner_of(driver)
    kill_tree(owner)
    wait_until(lambda: not lives(driver), "the driver to be gone")
    cluster.start_master()
    cluster.await_leader()


def driver_killed(cluster: HaCluster, job_id: str) -> None:
    """``kill -9`` of the job's driver."""
    kill(cluster.driver_process(job_id))


def executor_killed(cluster: HaCluster, job_id: str) -> None:
    """``kill -9`` of one executor."""
    kill(wait_until(lambda: executors(cluster), "an executor")[0])


def task_manager_killed(cluster: HaCluster, job_id: str) -> None:
    """``kill -9`` of a TaskManager process, and with it of its executors."""
    kill(wait_until(lambda: task_manager_processes(cluster), "a TaskManager")[0])


def zombie_leader(cluster: HaCluster, job_id: str) -> None:
    """The leader's JobManager process is halted until another one leads, then goes on."""
    epoch = cluster.epoch()
    with frozen([cluster.leader_process()]):
        cluster.await_leader(above_epoch=epoch)


def zombie_driver(cluster: HaCluster, job_id: str) -> None:
    """The driver's Python and JVM are halted until another driver has the lease, then go on."""
    driver = cluster.driver_process(job_id)
    with frozen(tree(driver)):
        wait_until(
            lambda: (lease := cluster.lease(job_id)) is not None and int(lease["pid"]) != driver.pid,
            "another driver",
        )


def zombie_master(cluster: HaCluster, job_id: str) -> None:
    """The whole master that has the driver is halted, its supervisor too, until another driver runs."""
    driver = cluster.driver_process(job_id)
    with frozen(tree(cluster.owner_of(driver))):
        wait_until(
            lambda: (lease := cluster.lease(job_id)) is not None and int(lease["pid"]) != driver.pid,
            "another driver",
        )


def zookeeper_node_restarted(cluster: HaCluster, job_id: str) -> None:
    """One server of the quorum is killed and started again."""
    cluster.hadoop.kill("zookeeper-1")
    cluster.hadoop.restart("zookeeper-1")


def zookeeper_quorum_restarted(cluster: HaCluster, job_id: str) -> None:
    """All servers are killed and started again."""
    names = ("zookeeper-1", "zookeeper-2", "zookeeper-3")
    for name in names:
        cluster.hadoop.kill(name)
    cluster.hadoop.restart_quorum(names)
    cluster.await_leader()


def namenode_restarted(cluster: HaCluster, job_id: str) -> None:
    """HDFS is away for a while."""
    cluster.hadoop.kill("namenode")
    cluster.hadoop.restart("namenode")


FAULTS: Final[dict[str, Fault]] = {
    fault.__name__: fault
    for fault in (
        leader_killed,
        master_killed,
        driver_killed,
        executor_killed,
        task_manager_killed,
        zombie_leader,
        zombie_driver,
        zombie_master,
        zookeeper_node_restarted,
        zookeeper_quorum_restarted,
        namenode_restarted,
    )
}
