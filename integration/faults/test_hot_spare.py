"""A job of a cluster in standby mode ``hot``: another driver is ready, and steps in.

Which driver it is that goes on is what tells a job with a hot spare from one without.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from integration.conftest import Commands, wait_until
from integration.faults.ha_cluster import HaCluster, ha_cluster
from integration.hadoop import HadoopCluster
from integration.living_files import files_below
from integration.processes import DRIVER, kill, kill_tree, processes

HOT = "-Dhigh-availability.standby-mode=hot"


def _await_hot_spare(cluster: HaCluster, job_id: str) -> None:
    cluster.await_running(job_id)

    def ready() -> bool:
        details = cluster.details(job_id)
        assert details["overview"]["status"] == "RUNNING", details
        # a job that has begun a moment ago waits for nothing either
        return not details["waiting_for"] and _hot_spares(cluster) >= 1

    wait_until(ready, "the hot spare")


def _hot_spares(cluster: HaCluster) -> int:
    logs = files_below(cluster.directory, "jobmanager.log")
    return sum(path.read_text().count("The hot spare of job numbered is ready") for path in logs)


@pytest.mark.drill
def test_a_hot_spare_steps_in(hadoop: HadoopCluster, yarnflow: Commands, tmp_path: Path) -> None:
    with ha_cluster(hadoop, yarnflow, tmp_path, task_managers=3, options=[HOT]) as cluster:
        job = cluster.numbered("hot-spare")
        job_id = cluster.submit(job)
        _await_hot_spare(cluster, job_id)
        there_already = {process.pid for process in processes(yarnflow.mark, DRIVER)}
        cluster.await_commits(job_id)

        kill(cluster.driver_process(job_id))
        cluster.await_commits(job_id)
        assert cluster.driver_process(job_id).pid in there_already
        assert cluster.details(job_id)["restarts"] == 1

        wait_until(lambda: _hot_spares(cluster) == 2, "the next hot spare")
        drivers = {process.pid for process in processes(yarnflow.mark, DRIVER)}
        kill(cluster.leader_process())
        cluster.await_commits(job_id)
        assert cluster.failure_levels(job_id) == ["MASTER"], "the running driver was not adopted"
        wait_until(lambda: not cluster.details(job_id)["waiting_for"], "the new leader to know all")
        assert {process.pid for process in processes(yarnflow.mark, DRIVER)} == drivers, "it was adopted, too"

        cluster.assert_each_record_once(job, job_id)


@pytest.mark.drill
def test_a_hot_spare_outlives_the_leader(
    hadoop: HadoopCluster, yarnflow: Commands, tmp_path: Path
) -> None:
    """It is kept by another master than the driver, so the loss of a whole master is no worse."""
    with ha_cluster(hadoop, yarnflow, tmp_path, task_managers=3, options=[HOT]) as cluster:
        job = cluster.numbered("outlives")
        job_id = cluster.submit(job)
        _await_hot_spare(cluster, job_id)
        driver = cluster.driver_process(job_id)
        master = cluster.owner_of(driver)
        there_already = {process.pid for process in processes(yarnflow.mark, DRIVER)}
        cluster.await_commits(job_id)
        kill_tree(master)
        cluster.await_commits(job_id)
        assert cluster.driver_process(job_id).pid in there_already - {driver.pid}
        cluster.assert_each_record_once(job, job_id)
