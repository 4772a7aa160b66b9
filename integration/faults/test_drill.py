"""``yarnflow drill`` on a cluster that runs: what it breaks is broken, and the records are all there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from integration.conftest import Commands
from integration.faults.ha_cluster import HaCluster, ha_cluster
from integration.faults.records import Numbered
from integration.hadoop import HadoopCluster


def _drill(cluster: HaCluster, *arguments: str) -> dict[str, Any]:
    done = cluster.yarnflow("drill", *arguments, "--yes", "--json")
    print(done.stdout)
    assert done.process.returncode == 0, done.stdout + done.stderr
    report: dict[str, Any] = json.loads(done.stdout)
    assert report["passed"] is True
    assert report["gaps"]["exact"] is True
    times = [event["after_fault_ms"] for event in report["events"]]
    assert times == sorted(times) and report["events"][0]["name"] == "fault"
    return report


def _names(report: dict[str, Any]) -> set[str]:
    return {event["name"] for event in report["events"]}


def _start(cluster: HaCluster, name: str) -> tuple[Numbered, str]:
    job = cluster.numbered(name)
    job_id = cluster.submit(job)
    cluster.await_running(job_id)
    cluster.await_commits(job_id)
    return job, job_id


@pytest.mark.drill
def test_leader(hadoop: HadoopCluster, yarnflow: Commands, tmp_path: Path) -> None:
    with ha_cluster(hadoop, yarnflow, tmp_path) as cluster:
        job, job_id = _start(cluster, "drill-leader")
        driver, leader, epoch = cluster.driver_process(job_id), cluster.leader_process(), cluster.epoch()
        refused = cluster.yarnflow("drill", "leader", job_id)
        assert refused.process.returncode == 12 and "--yes is needed" in refused.stderr
        assert leader.is_running() and cluster.epoch() == epoch, "a drill nobody confirmed was carried out"
        report = _drill(cluster, "leader", job_id)
        assert not leader.is_running()
        assert cluster.epoch() > epoch
        assert {"detected", "elected", "adopted", "running", "commit"} <= _names(report)
        assert report["replay"]["records"] == 0
        assert cluster.driver_process(job_id).pid == driver.pid
        # the driver belongs to another master's supervisor now
        report = _drill(cluster, "driver")
        assert not driver.is_running()
        assert "restored" in _names(report)
        cluster.assert_each_record_once(job, job_id)


@pytest.mark.drill
def test_driver(hadoop: HadoopCluster, yarnflow: Commands, tmp_path: Path) -> None:
    with ha_cluster(hadoop, yarnflow, tmp_path) as cluster:
        job, job_id = _start(cluster, "drill-driver")
        driver, epoch = cluster.driver_process(job_id), cluster.epoch()
        report = _drill(cluster, "driver", job_id)
        assert not driver.is_running() and cluster.epoch() == epoch
        assert {"detected", "restored", "running", "commit"} <= _names(report)
        assert "elected" not in _names(report)
        assert report["replay"]["records"] is not None
        assert "exactly" in report["replay"]["offsets"] or report["replay"]["offsets"] == "not comparable"
        cluster.assert_each_record_once(job, job_id)


@pytest.mark.drill
@pytest.mark.parametrize("kind", ["taskmanager", "zookeeper", "application", "hdfs"])
def test_other_faults(
    kind: str, hadoop: HadoopCluster, yarnflow: Commands, tmp_path: Path
) -> None:
    with ha_cluster(hadoop, yarnflow, tmp_path) as cluster:
        job, job_id = _start(cluster, f"drill-{kind}")
        report = _drill(cluster, kind, job_id, *(["--for", "8"] if kind == "hdfs" else []))
        expected = {"hdfs": "lifted", "taskmanager": "detected"}.get(kind, "elected")
        assert expected in _names(report)
        cluster.assert_each_record_once(job, job_id)
