"""A cluster that has too little of something for a while goes on afterwards, and loses nothing."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from integration.conftest import Commands
from integration.faults.ha_cluster import HaCluster, ha_cluster
from integration.faults.history import watched
from integration.faults.injections import Fault
from integration.faults.resource_injections import SHORTAGES, disk_full, small_disk
from integration.hadoop import HadoopCluster

pytestmark = pytest.mark.drill


@pytest.mark.parametrize("fault", SHORTAGES)
def test_shortage(fault: str, hadoop: HadoopCluster, yarnflow: Commands, tmp_path: Path) -> None:
    with ha_cluster(hadoop, yarnflow, tmp_path) as cluster:
        _survive(cluster, SHORTAGES[fault])


@pytest.mark.skipif(os.geteuid() != 0, reason="a file system is mounted by root")
def test_full_disk(hadoop: HadoopCluster, yarnflow: Commands, tmp_path: Path) -> None:
    with (
        small_disk(tmp_path / "disk", 256) as directory,
        ha_cluster(hadoop, yarnflow, directory) as cluster,
    ):
        _survive(cluster, disk_full)


def _survive(cluster: HaCluster, fault: Fault) -> None:
    job = cluster.numbered(fault.__name__)
    job_id = cluster.submit(job)
    cluster.await_running(job_id)
    with watched(cluster, job_id):
        fault(cluster, job_id)
        cluster.await_commits(job_id)
        cluster.await_status(job_id, "RUNNING")
        cluster.assert_each_record_once(job, job_id)
