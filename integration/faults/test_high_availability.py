"""A master that dies does not stop the data; every record of the job is counted, whatever happens.

Each fault comes in the middle of a job over numbered records; after it more must be committed,
and at the end every record must be in the results once.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import pytest

from integration.conftest import Commands, wait_until
from integration.faults.ha_cluster import HaCluster, ha_cluster
from integration.faults.injections import FAULTS
from integration.faults.keyed_events import KeyedEvents
from integration.faults.records import Taken
from integration.hadoop import HadoopCluster
from integration.processes import kill, lives
from tests.patience import PATIENCE

#: faults that leave driver and executors alone: the job must not even restart
UNNOTICED = ("leader_killed", "zombie_leader", "zookeeper_node_restarted")
SEED = 20261121
FAULTS_IN_A_ROW = 10


def _survive(cluster: HaCluster, job_id: str, fault: str) -> None:
    cluster.await_commits(job_id)
    driver = cluster.driver_process(job_id).pid
    FAULTS[fault](cluster, job_id)
    cluster.await_commits(job_id)
    cluster.await_status(job_id, "RUNNING")
    if fault in UNNOTICED:
        assert cluster.driver_process(job_id).pid == driver, "a driver that nothing ailed was replaced"


@pytest.mark.drill
def test_a_killed_leader_and_a_killed_driver(
    hadoop: HadoopCluster, yarnflow: Commands, tmp_path: Path
) -> None:
    """One after the other, so that a new leader has the driver's death to deal with."""
    _test(["leader_killed", "driver_killed"], hadoop, yarnflow, tmp_path)


@pytest.mark.drill
def test_a_job_whose_stored_graph_is_damaged_when_the_leader_is_killed(
    hadoop: HadoopCluster, yarnflow: Commands, tmp_path: Path
) -> None:
    """Its driver has it, goes on, and gives it to the next leader, which stores it again."""
    with ha_cluster(hadoop, yarnflow, tmp_path) as cluster:
        job = cluster.numbered("damaged")
        job_id = cluster.submit(job)
        cluster.await_running(job_id)
        driver = cluster.driver_process(job_id).pid
        damaged = cluster.stored_graphs(job_id)
        assert damaged
        for path in damaged:
            hadoop.hdfs.client.write(path, b"", overwrite=True)
        FAULTS["leader_killed"](cluster, job_id)
        cluster.await_status(job_id, "RUNNING")
        assert cluster.failure_levels(job_id) == ["MASTER"], "the job was not adopted, or restarted"
        assert cluster.driver_process(job_id).pid == driver, "a driver that nothing ailed was replaced"
        (stored,) = cluster.stored_graphs(job_id)
        assert stored not in damaged and hadoop.hdfs.read(stored)
        cluster.await_commits(job_id)
        cluster.assert_each_record_once(job, job_id)


@pytest.mark.drill
def test_a_zookeeper_that_is_emptied(hadoop: HadoopCluster, yarnflow: Commands, tmp_path: Path) -> None:
    """Masters, TaskManagers and clients follow the next incarnation; the job is recovered from HDFS."""
    with ha_cluster(hadoop, yarnflow, tmp_path) as cluster:
        job = cluster.numbered("emptied")
        job_id = cluster.submit(job)
        cluster.await_running(job_id)
        driver = cluster.driver_process(job_id)
        cluster.empty_zookeeper()
        wait_until(lambda: cluster.epoch() > 1_000_000, "the next incarnation")
        wait_until(lambda: not lives(driver), "the driver to end")
        assert job_id not in cluster.yarnflow("list", "--all").stdout
        storage = f"-Dhigh-availability.storageDir={cluster.hadoop_fs}/tests/{cluster.cluster_id}/ha"
        recovered = cluster.yarnflow("recover", storage)
        assert recovered.process.returncode == 0 and f"{job_id} " in recovered.stdout, recovered.stderr
        cluster.await_status(job_id, "RUNNING")
        cluster.await_commits(job_id)
        again = cluster.yarnflow("recover", storage)
        assert "is known to the cluster: RUNNING" in again.stdout
        cluster.assert_each_record_once(job, job_id)


@pytest.mark.drill
@pytest.mark.parametrize("fault", sorted(FAULTS))
def test_fault(fault: str, hadoop: HadoopCluster, yarnflow: Commands, tmp_path: Path) -> None:
    _test([fault], hadoop, yarnflow, tmp_path)


def _test(faults: Sequence[str], hadoop: HadoopCluster, yarnflow: Commands, tmp_path: Path) -> None:
    with ha_cluster(hadoop, yarnflow, tmp_path) as cluster:
        job = cluster.numbered(faults[0])
        job_id = cluster.submit(job)
        cluster.await_running(job_id)
        for fault in faults:
            _survive(cluster, job_id, fault)
        cluster.assert_each_record_once(job, job_id)


@pytest.mark.drill
def test_a_job_that_ends_by_itself(
    hadoop: HadoopCluster, yarnflow: Commands, tmp_path: Path
) -> None:
    """Under another leader than it began with."""
    count = 50 * 90
    with ha_cluster(hadoop, yarnflow, tmp_path) as cluster:
        job = cluster.numbered("ends", count=count)
        job_id = cluster.submit(job)
        cluster.await_running(job_id)
        cluster.await_commits(job_id)
        FAULTS["leader_killed"](cluster, job_id)
        cluster.await_status(job_id, "FINISHED", PATIENCE.job_s)
        cluster.assert_results(job, Taken(count, count))


@pytest.mark.drill
def test_a_keyed_job_in_the_middle_of_which_the_leader_is_killed(
    hadoop: HadoopCluster, yarnflow: Commands, tmp_path: Path
) -> None:
    """With state, timers and windows of elements: the next leader adopts it, and no result is another one."""
    job = KeyedEvents(tmp_path)
    job.write()
    with ha_cluster(hadoop, yarnflow, tmp_path) as cluster:
        job_id = cluster.submit_program(job.program, "-p", "2")
        wait_until(job.has_results_of_all_kinds, "results of all kinds")
        driver = cluster.driver_process(job_id).pid
        epoch = cluster.epoch()
        kill(cluster.leader_process())
        cluster.await_leader(above_epoch=epoch)
        wait_until(lambda: cluster.failure_levels(job_id) == ["MASTER"], "the next leader to adopt the job")
        assert cluster.driver_process(job_id).pid == driver, "a driver that nothing ailed was replaced"
        assert job.results() != job.expected(), "the job ended before the next leader led"
        count = sum(results.total() for results in job.expected().values())
        wait_until(
            lambda: sum(r.total() for r in job.results().values()) >= count, "all results", PATIENCE.job_s
        )
        cluster.await_status(job_id, "FINISHED")
        job.assert_each_result_once()


@pytest.mark.drill
def test_faults_in_a_row(hadoop: HadoopCluster, yarnflow: Commands, tmp_path: Path) -> None:
    """The schedule is written before it is carried out, so that a failure can be had again."""
    chosen = random.Random(SEED).choices(sorted(FAULTS), k=FAULTS_IN_A_ROW)
    (tmp_path / "schedule.txt").write_text(f"seed {SEED}\n" + "\n".join(chosen) + "\n")
    print(f"seed {SEED}: {', '.join(chosen)}")
    with ha_cluster(hadoop, yarnflow, tmp_path, masters=3, task_managers=3) as cluster:
        job = cluster.numbered("row")
        job_id = cluster.submit(job)
        cluster.await_running(job_id)
        for fault in chosen:
            print(f"fault: {fault}")
            _survive(cluster, job_id, fault)
        cluster.assert_each_record_once(job, job_id)
