"""Clocks that jump: what counts as lost, stale or late is told by time that only runs."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from integration.conftest import Commands
from integration.faults.clocks import ClockedCluster, environment
from integration.faults.ha_cluster import started_cluster
from integration.faults.history import watched
from integration.hadoop import HadoopCluster

pytestmark = pytest.mark.drill

#: longer than all time-outs of heartbeats and sessions
JUMP_S = 70
_BOTH = "import time; time.sleep(0.01); print(time.time(), time.monotonic())"


def test_a_clock_is_set_and_time_runs_on(tmp_path: Path) -> None:
    clock = tmp_path / "clock"
    clock.write_text("+3600\n")
    out = subprocess.check_output(
        [sys.executable, "-c", _BOTH], env={**os.environ, **environment(clock)}, text=True
    )
    wall, running = (float(word) for word in out.split())
    assert 3500 < wall - time.time() < 3700
    assert abs(running - time.monotonic()) < 1000


def test_the_clock_of_leader_and_driver_jumps(
    hadoop: HadoopCluster, yarnflow: Commands, tmp_path: Path
) -> None:
    """Forward and back: driver, TaskManagers and leader are the same afterwards, as nothing ailed them."""
    with started_cluster(ClockedCluster, hadoop, yarnflow, tmp_path, 2, 2, ()) as cluster:
        job = cluster.numbered("clocks")
        job_id = cluster.submit(job)
        cluster.await_running(job_id)
        driver, epoch = cluster.driver_process(job_id), cluster.epoch()
        with watched(cluster, job_id):
            for seconds in (JUMP_S, 0):
                cluster.set_clock(cluster.master_of(driver), seconds)
                cluster.await_commits(job_id, more=3)
                cluster.await_status(job_id, "RUNNING")
            assert cluster.driver_process(job_id).pid == driver.pid
            assert cluster.epoch() == epoch
            assert cluster.failure_levels(job_id) == []
            cluster.assert_each_record_once(job, job_id)
