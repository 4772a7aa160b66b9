"""A cluster that runs, restarts and savepoints jobs all the time does not grow.

``YARNFLOW_TEST_SOAK_MINUTES`` says how long (30); ``YARNFLOW_TEST_SOAK_REPORT`` names a file for all figures.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from integration.conftest import Commands
from integration.faults.ha_cluster import HaCluster, ha_cluster
from integration.faults.levels import Gauge, growing
from integration.faults.records import Taken
from integration.hadoop import HadoopCluster
from integration.processes import kill
from tests.patience import PATIENCE

MINUTES = float(os.environ.get("YARNFLOW_TEST_SOAK_MINUTES", "30"))
#: lists of ended jobs, and logs of ended processes, so that there are as many as may be soon
_FEW = ("-Djobstore.max-capacity=4", "-Dyarnflow.log.retained-processes=4")
#: records of a short job
_COUNT = 250
_CYCLES_PER_KILL = 3


@pytest.mark.timeout(MINUTES * 60 + 1800)
@pytest.mark.drill
def test_figures_level_off(hadoop: HadoopCluster, yarnflow: Commands, tmp_path: Path) -> None:
    samples: list[dict[str, float]] = []
    with ha_cluster(hadoop, yarnflow, tmp_path, task_managers=3, options=_FEW) as cluster:
        job = cluster.numbered("soak")
        job_id = cluster.submit(job)
        cluster.await_running(job_id)
        gauge, began, savepoint = Gauge(cluster), time.monotonic(), ""
        while time.monotonic() < began + MINUTES * 60:
            _run_a_short_job(cluster, len(samples))
            savepoint = _take_savepoint(cluster, job_id, f"{job.output}/savepoints", savepoint)
            if len(samples) % _CYCLES_PER_KILL == 0:
                kill(cluster.driver_process(job_id))
                cluster.await_commits(job_id)
                cluster.await_status(job_id, "RUNNING", PATIENCE.job_s)
            samples.append({"at_s": round(time.monotonic() - began, 1), **gauge.read()})
            print(json.dumps(samples[-1]), flush=True)
        cluster.assert_each_record_once(job, job_id)
    if report := os.environ.get("YARNFLOW_TEST_SOAK_REPORT"):
        Path(report).write_text(json.dumps({"minutes": MINUTES, "samples": samples}, indent=1))
    figures = [{name: value for name, value in one.items() if name != "at_s"} for one in samples]
    found = growing(figures)
    assert not found, "\n".join(found)


def _run_a_short_job(cluster: HaCluster, number: int) -> None:
    name = f"short-{number}"
    job = cluster.numbered(name, count=_COUNT)
    # else its name is its key, which the long job has
    job_id = cluster.submit(job, "--job-key", name)
    # a savepoint of the other job may be ahead of it, on a machine that does all of this at once
    cluster.await_status(job_id, "FINISHED", PATIENCE.job_s)
    cluster.assert_results(job, Taken(_COUNT, _COUNT))


def _take_savepoint(cluster: HaCluster, job_id: str, directory: str, last: str) -> str:
    """Take one and remove the last one; returns its path."""
    patient = f"-Dclient.timeout={PATIENCE.job_s:.0f} s"
    taken = cluster.yarnflow(
        "savepoint", patient, job_id, directory, timeout_s=PATIENCE.job_s + PATIENCE.command_s
    )
    assert taken.process.returncode == 0, taken.stderr
    if last:
        removed = cluster.commands.run(
            *("savepoint", "dispose", "-t", "remote", *cluster.client_options, "--yes", last),
            environment=cluster.environment(),
        )
        assert removed.process.returncode == 0, removed.stderr
    return taken.stdout.strip()
