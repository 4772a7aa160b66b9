"""How long a fault is felt: fault → all tasks running, fault → first new commit, largest gap of commits.

A job over numbered records commits about twice a second on a standalone cluster with two masters,
three ZooKeepers and HDFS.  "Commit" is Spark's own file in the query's ``commits`` directory, its
time that of HDFS.  Each fault comes several times; medians are reported, with the parts

* ``elected_s``: another leader has published itself in ZooKeeper (leader faults),
* ``driver_s``: another driver holds the job's lease (driver and master faults),
* ``running_s``: the job's status is RUNNING with all executions,
* ``commit_s``: the first batch above those there were at the fault is committed.

``gap_ratio`` is the largest gap between two commits around the fault over the median gap of the same
run without one: about 1 means that the data did not notice.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import psutil
from hdfs.util import HdfsError

from integration.conftest import Commands, wait_until
from integration.faults import injections
from integration.faults.ha_cluster import HaCluster, ha_cluster, kill, task_manager_processes, tree
from integration.hadoop import HadoopCluster

#: enough for a run of any length
ENDLESS: Final = 10_000_000
#: of the job
QUERIES: Final = 2
#: commits watched before and after a fault
WATCHED: Final = 12

#: what is timed; ready-made ones wait for their own consequences, which is not wanted here
FAULTS: Final[dict[str, Callable[[HaCluster, str], None]]] = {
    "leader_killed": lambda cluster, _job: kill(cluster.leader_process()),
    "driver_killed": lambda cluster, job: kill(cluster.driver_process(job)),
    "task_manager_killed": lambda cluster, _job: kill(task_manager_processes(cluster)[0]),
    "executor_killed": injections.executor_killed,
    "master_killed": lambda cluster, job: _kill_master(cluster, job),
}
MODES: Final = ("cold", "warm", "hot")


def _kill_master(cluster: HaCluster, job_id: str) -> None:
    for process in tree(cluster.owner_of(cluster.driver_process(job_id))):
        process.kill()


@dataclass(frozen=True)
class Commit:
    """One committed batch."""

    query: str
    batch_id: int
    at_ms: int


def commits(cluster: HaCluster, job_id: str) -> list[Commit]:
    """All that are still on HDFS, by time."""
    client = cluster.hadoop.hdfs.client
    root = f"/tests/{cluster.cluster_id}/checkpoints/{job_id}"
    found = []
    for query in client.list(root):
        if query.startswith("query-"):
            try:
                entries = client.list(f"{root}/{query}/commits", status=True)
            except HdfsError:
                continue
            found += [
                Commit(query, int(name), int(status["modificationTime"]))
                for name, status in entries
                if name.isdigit()
            ]
    return sorted(found, key=lambda commit: commit.at_ms)


def gaps_s(found: list[Commit], since_ms: int) -> list[float]:
    """Seconds between neighbouring commits of the same query from a time on."""
    gaps = []
    for query in {commit.query for commit in found}:
        times = [commit.at_ms for commit in found if commit.query == query]
        gaps += [(b - a) / 1000 for a, b in zip(times, times[1:], strict=False) if b >= since_ms]
    return gaps


def await_more(cluster: HaCluster, job_id: str, more: int) -> None:
    """Until every query has so many more commits."""
    before = newest(commits(cluster, job_id))

    def reached() -> bool:
        now = newest(commits(cluster, job_id))
        return bool(now) and all(now.get(query, -1) >= batch + more for query, batch in before.items())

    wait_until(reached, f"{more} more commits", 180)


def newest(found: list[Commit]) -> dict[str, int]:
    """Query → its newest batch."""
    return {commit.query: commit.batch_id for commit in sorted(found, key=lambda commit: commit.batch_id)}


def measure(cluster: HaCluster, job_id: str, fault: str) -> dict[str, float]:
    """One fault on a job that runs."""
    wait_until(lambda: len(newest(commits(cluster, job_id))) == QUERIES, "the first commits", 180)
    # a spare driver that is being prepared takes the processor, and would not be ready
    wait_until(lambda: not info(cluster, job_id)["waiting_for"], "everything to be ready", 180)
    await_more(cluster, job_id, WATCHED)
    before = commits(cluster, job_id)
    usual_s = statistics.median(gaps_s(before, before[-1].at_ms - 20_000))
    had = newest(before)
    epoch, lease = cluster.epoch(), cluster.lease(job_id)
    fault_ms = time.time_ns() // 1_000_000
    FAULTS[fault](cluster, job_id)
    seen: dict[str, float] = {}

    def note(name: str) -> None:
        seen.setdefault(name, (time.time_ns() // 1_000_000 - fault_ms) / 1000)

    def recovered() -> bool:
        if cluster.epoch() > epoch:
            note("elected_s")
        now = cluster.lease(job_id)
        if now is not None and lease is not None and now["pid"] != lease["pid"]:
            note("driver_s")
        # a batch that was all but committed at the fault is no sign of recovery
        fresh = {c.query for c in commits(cluster, job_id) if c.batch_id > had.get(c.query, -1) + 1}
        return fresh == set(had)

    wait_until(recovered, f"commits after {fault}", 180)
    after = [c for c in commits(cluster, job_id) if c.batch_id > had.get(c.query, -1)]
    first = [min(c.at_ms for c in after if c.query == query and c.at_ms > fault_ms) for query in had]
    seen["commit_s"] = (max(first) - fault_ms) / 1000
    details = info(cluster, job_id)
    running_ms = details["timestamps_ms"].get("RUNNING", 0)
    seen["running_s"] = max(0.0, (running_ms - fault_ms) / 1000)
    await_more(cluster, job_id, 3)
    seen["largest_gap_s"] = max(gaps_s(commits(cluster, job_id), fault_ms))
    seen["usual_gap_s"] = usual_s
    seen["gap_ratio"] = seen["largest_gap_s"] / usual_s
    return seen


def info(cluster: HaCluster, job_id: str) -> dict[str, Any]:
    """The job's details."""
    done = cluster.yarnflow("info", job_id)
    assert done.process.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


def run_mode(
    hadoop: HadoopCluster, scratch: Path, mode: str, faults: list[str], rounds: int
) -> dict[str, Any]:
    """All faults in one standby mode, on one cluster with one job."""
    commands = Commands(scratch, uuid.uuid4().hex)
    found: dict[str, Any] = {}
    options = [f"-Dhigh-availability.standby-mode={mode}"]
    task_managers = 3 if mode == "hot" else 2
    with ha_cluster(hadoop, commands, scratch, task_managers=task_managers, options=options) as cluster:
        job = cluster.numbered("bench", rate=50, count=ENDLESS)
        job_id = cluster.submit(job)
        cluster.await_status(job_id, "RUNNING")
        for fault in faults:
            measured = []
            for number in range(rounds):
                print(f"{mode}: {fault} {number + 1} of {rounds}", file=sys.stderr)
                measured.append(measure(cluster, job_id, fault))
                if fault == "master_killed":
                    cluster.start_master()
            found[fault] = {
                name: {
                    "median": round(statistics.median(values), 2),
                    "all": [round(value, 2) for value in values],
                }
                for name in sorted({name for one in measured for name in one})
                for values in [[one[name] for one in measured if name in one]]
            }
        assert cluster.yarnflow("cancel", job_id).process.returncode == 0
    return found


def main() -> None:
    """Run the rounds and print one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--mode", action="append", choices=MODES, help="standby mode (default: each)")
    parser.add_argument("--fault", action="append", choices=sorted(FAULTS), help="(default: each)")
    parser.add_argument("--directory", type=Path, help="use the cluster that scripts/hadoop started there")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        own = arguments.directory is None
        hadoop = (
            HadoopCluster.start(Path(scratch) / "hadoop", zookeepers=3)
            if own
            else HadoopCluster(arguments.directory)
        )
        try:
            result: dict[str, Any] = {
                "bench": "failover",
                "rounds": arguments.rounds,
                "processors": psutil.cpu_count(),
                "load": round(psutil.getloadavg()[0], 1),
            }
            for mode in arguments.mode or MODES:
                directory = Path(scratch) / mode
                directory.mkdir()
                faults = arguments.fault or sorted(FAULTS)
                result[mode] = run_mode(hadoop, directory, mode, faults, arguments.rounds)
            print(json.dumps(result))
        finally:
            if own:
                hadoop.stop()


if __name__ == "__main__":
    main()
