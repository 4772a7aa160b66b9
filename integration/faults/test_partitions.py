"""Hosts that do not reach each other, one way or both, and a network that is slow or wrong.

Every record is counted at the end, and what clients saw of the job meanwhile is a story that may be.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from integration.conftest import Commands
from integration.faults.history import watched
from integration.faults.hosted_cluster import hosted_cluster
from integration.faults.network_injections import CUTS, DRIVER_STAYS, RELAYED, NetworkFault, lead_elsewhere
from integration.hadoop import HadoopCluster

pytestmark = [
    pytest.mark.drill,
    pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root"),
]


@pytest.mark.parametrize("fault", CUTS)
def test_cut(fault: str, hadoop: HadoopCluster, yarnflow: Commands, tmp_path: Path) -> None:
    _survive({fault: CUTS[fault]}, hadoop, yarnflow, tmp_path)


@pytest.mark.parametrize("fault", RELAYED)
def test_slow_or_wrong(fault: str, hadoop: HadoopCluster, yarnflow: Commands, tmp_path: Path) -> None:
    _survive({fault: RELAYED[fault]}, hadoop, yarnflow, tmp_path, relays=True)


def _survive(
    faults: Mapping[str, NetworkFault],
    hadoop: HadoopCluster,
    yarnflow: Commands,
    tmp_path: Path,
    relays: bool = False,
) -> None:
    with hosted_cluster(hadoop, yarnflow, tmp_path, relays=relays) as cluster:
        job = cluster.numbered(next(iter(faults)))
        job_id = cluster.submit(job)
        cluster.await_running(job_id)
        with watched(cluster, job_id):
            for name, fault in faults.items():
                if name in DRIVER_STAYS:
                    lead_elsewhere(cluster, job_id)
                driver = cluster.driver_process(job_id).pid
                fault(cluster, job_id)
                cluster.await_commits(job_id)
                cluster.await_status(job_id, "RUNNING")
                if name in DRIVER_STAYS:
                    assert cluster.driver_process(job_id).pid == driver, "nothing ailed the driver"
            cluster.assert_each_record_once(job, job_id)
