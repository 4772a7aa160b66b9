"""Twenty faults of all kinds in a row on one cluster, by a schedule that a number stands for.

``YARNFLOW_TEST_SEED`` chooses another schedule.
"""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from integration.conftest import Commands
from integration.faults.history import watched
from integration.faults.hosted_cluster import hosted_cluster
from integration.faults.injections import FAULTS
from integration.faults.network_injections import CUTS, RELAYED
from integration.faults.resource_injections import SHORTAGES
from integration.hadoop import HadoopCluster

SEED = 20261125
FAULTS_IN_A_ROW = 20
EVERY = {**FAULTS, **CUTS, **RELAYED, **SHORTAGES}


@pytest.mark.timeout(3600)
@pytest.mark.drill
@pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root")
def test_twenty_faults_in_a_row(hadoop: HadoopCluster, yarnflow: Commands, tmp_path: Path) -> None:
    """The schedule is told before it is carried out, so that a failure can be had again."""
    seed = int(os.environ.get("YARNFLOW_TEST_SEED", SEED))
    chosen = random.Random(seed).choices(sorted(EVERY), k=FAULTS_IN_A_ROW)
    print(f"seed {seed}: {', '.join(chosen)}")
    with hosted_cluster(hadoop, yarnflow, tmp_path, masters=3, task_managers=3, relays=True) as cluster:
        job = cluster.numbered("nemesis")
        job_id = cluster.submit(job)
        cluster.await_running(job_id)
        with watched(cluster, job_id):
            for fault in chosen:
                print(f"fault: {fault}")
                cluster.await_commits(job_id)
                EVERY[fault](cluster, job_id)
                cluster.await_commits(job_id)
                cluster.await_status(job_id, "RUNNING")
            cluster.assert_each_record_once(job, job_id)
