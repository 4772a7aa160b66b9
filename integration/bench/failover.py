"""How long a fault is felt: fault → all tasks running, fault → first new commit, largest gap of commits.

A job over numbered records, two queries with one executor, runs a batch every two seconds on a
standalone cluster with two masters, three ZooKeepers and HDFS.  (More often would be all that two
processors can do, and then a restart is not quicker than the load allows.)  "Commit" is Spark's own
file in the query's ``commits`` directory, its time that of HDFS.  Each fault comes several times;
medians are reported, with the parts

* ``elected_s``: another leader has published itself in ZooKeeper (leader and master faults),
* ``driver_s``: another driver holds the job's lease (driver and master faults),
* ``running_s``: the job's status is RUNNING with all executions,
* ``commit_s``: each query has committed a batch after the victim was dead.

``gap_ratio`` is the largest gap between two commits around the fault over the median gap of the same
run without one: about 1 means that the data did not notice.  ``memory_mib`` is what the processes of
the cluster take in that mode while the job runs (proportional set size).

``peer`` is plain Spark on YARN, on the same machine in the same run, with the same rates and the same
end point: ``spark-submit``, two attempts, its ApplicationMaster (which has the driver) or an executor
killed.  It has no counterpart of the other faults.
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

import psutil

from integration.bench.failover_peer import INTERVAL_S, PEER_FAULTS, run_peer
from integration.commits import Look, await_more, first_after_s, gaps_s, newest
from integration.conftest import Commands, marked_processes, wait_until
from integration.faults import injections
from integration.faults.ha_cluster import HaCluster, ha_cluster, task_manager_processes
from integration.faults.records import QUERIES
from integration.hadoop import HadoopCluster
from integration.processes import DRIVER, EXECUTOR, JOB_MANAGER, TASK_MANAGER, kill, tree

#: commits watched before a fault
WATCHED: Final = 8

#: what is timed; ready-made ones wait for their own consequences, which is not wanted here
FAULTS: Final[dict[str, Callable[[HaCluster, str], None]]] = {
    "leader_killed": lambda cluster, _job: kill(cluster.leader_process()),
    "driver_killed": lambda cluster, job: kill(cluster.driver_process(job)),
    "task_manager_killed": lambda cluster, job: kill_busy_task_manager(cluster, job),
    "executor_killed": injections.executor_killed,
    "master_killed": lambda cluster, job: kill_master(cluster, job),
}
MODES: Final = ("cold", "warm", "hot")
PARTS: Final = {
    "masters": ("yarnflow jobmanager", JOB_MANAGER),
    "drivers": (DRIVER, "org.apache.spark.deploy.PythonGatewayServer", "java_gateway"),
    "task_managers": ("yarnflow taskmanager", TASK_MANAGER),
    "executors": (EXECUTOR,),
}


def kill_master(cluster: HaCluster, job_id: str) -> None:
    """All of the master that has the job's driver: supervisor, JobManager, drivers."""
    victims = tree(cluster.owner_of(cluster.driver_process(job_id)))
    for process in victims:
        process.kill()
    psutil.wait_procs(victims, 20)


def kill_busy_task_manager(cluster: HaCluster, job_id: str) -> None:
    """One that has an executor of the job's driver."""
    driver = cluster.driver_process(job_id)
    ports = {
        str(connection.laddr.port)
        for process in tree(driver)
        for connection in process.net_connections()
        if connection.status == "LISTEN"
    }
    for process in task_manager_processes(cluster):
        for child in process.children(recursive=True):
            words = child.cmdline()
            if "--driver-url" in words and words[words.index("--driver-url") + 1].rsplit(":", 1)[1] in ports:
                kill(process)
                return
    raise SystemExit("no TaskManager has an executor of the job")


def measure(cluster: HaCluster, job_id: str, fault: str) -> dict[str, float]:
    """One fault on a job that runs."""
    look = partial(cluster.commits, job_id)
    await_steady(cluster, job_id, look)
    before = look()
    usual_s = statistics.median(gaps_s(before, before[-1].at_ms - 20_000))
    had = newest(before)
    epoch, lease = cluster.epoch(), cluster.lease(job_id)
    fault_ms = now_ms()
    FAULTS[fault](cluster, job_id)
    dead_ms = now_ms()
    seen: dict[str, float] = {}
    looks = itertools.count()

    def note(name: str) -> None:
        seen.setdefault(name, (now_ms() - fault_ms) / 1000)

    def recovered() -> bool:
        if cluster.epoch() > epoch:
            note("elected_s")
        now = cluster.lease(job_id)
        if now is not None and lease is not None and now["pid"] != lease["pid"]:
            note("driver_s")
        if next(looks) % 5:
            return False  # HDFS tells when a commit was, so it need not be asked all the time
        commit_s = first_after_s(look(), had, fault_ms, dead_ms)
        if commit_s is None:
            return False
        seen["commit_s"] = commit_s
        return True

    wait_until(recovered, f"commits after {fault}")
    details = info(cluster, job_id)
    running_ms = details["timestamps_ms"].get("RUNNING", 0)
    seen["running_s"] = max(0.0, (running_ms - fault_ms) / 1000)
    await_more(look, 3, QUERIES)
    seen["largest_gap_s"] = max(gaps_s(look(), fault_ms))
    seen["usual_gap_s"] = usual_s
    seen["gap_ratio"] = seen["largest_gap_s"] / usual_s
    return seen


def await_steady(cluster: HaCluster, job_id: str, look: Look) -> None:
    """Until the job has committed for a while with everything ready.

    A spare driver that is being prepared takes the processor, and would not be there in time; it may
    be wanted anew when a master has come back.
    """

    def steady() -> bool:
        if info(cluster, job_id)["waiting_for"]:
            await_more(look, 1, QUERIES)  # between two looks, which take the processor, too
            return False
        await_more(look, WATCHED, QUERIES)
        return not info(cluster, job_id)["waiting_for"]

    wait_until(steady, "everything to be ready", 300)


def now_ms() -> int:
    """By the clock that HDFS has, too."""
    return time.time_ns() // 1_000_000


def info(cluster: HaCluster, job_id: str) -> dict[str, Any]:
    """The job's details."""
    done = cluster.yarnflow("info", job_id)
    assert done.process.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


def memory_mib(cluster: HaCluster) -> dict[str, int]:
    """Part of the cluster → proportional set size of its processes, Python workers with executors."""
    found = dict.fromkeys(PARTS, 0.0)
    for process in marked_processes(cluster.commands.mark):
        try:
            ancestry = [" ".join(each.cmdline()) for each in (process, *process.parents())]
            part = next(
                (part for line in ancestry for part, words in PARTS.items() if any(w in line for w in words)),
                "",
            )
            if part:
                found[part] += process.memory_full_info().pss / 2**20
        except psutil.Error:
            continue
    return {name: round(mib) for name, mib in found.items()}


def run_mode(
    hadoop: HadoopCluster, scratch: Path, mode: str, faults: Iterable[str], rounds: int
) -> dict[str, Any]:
    """All faults in one standby mode, on one cluster with one job."""
    commands = Commands(scratch, uuid.uuid4().hex)
    found: dict[str, Any] = {}
    options = [f"-Dhigh-availability.standby-mode={mode}"]
    # as many slots as the job and its hot spare want, and one TaskManager that may be lost
    task_managers = 5 if mode == "hot" else 3
    with ha_cluster(hadoop, commands, scratch, task_managers=task_managers, options=options) as cluster:
        job = cluster.numbered("bench")
        job_id = cluster.submit(job, f"-Dexecution.micro-batch.interval={INTERVAL_S} s")
        cluster.await_status(job_id, "RUNNING")
        for fault in faults:
            measured = []
            for number in range(rounds):
                print(f"{mode}: {fault} {number + 1} of {rounds}", file=sys.stderr, flush=True)
                measured.append(measure(cluster, job_id, fault))
                print(json.dumps(measured[-1]), file=sys.stderr, flush=True)
                if fault == "master_killed":
                    cluster.start_master()
            found[fault] = medians(measured)
        wait_until(lambda: not info(cluster, job_id)["waiting_for"], "everything to be ready")
        found["memory_mib"] = memory_mib(cluster)
        assert cluster.yarnflow("cancel", job_id).process.returncode == 0
    return found


def medians(measured: list[Mapping[str, float]] | list[dict[str, float]]) -> dict[str, Any]:
    """Name → median and all values."""
    return {
        name: {
            "median": round(statistics.median(values), 2),
            "all": [round(value, 2) for value in values],
        }
        for name in sorted({name for one in measured for name in one})
        for values in [[one[name] for one in measured if name in one]]
    }


def main() -> None:
    """Run the rounds and print one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--mode", action="append", choices=(*MODES, "peer"), help="standby mode, or the peer (default: all)"
    )
    parser.add_argument("--fault", action="append", choices=sorted(FAULTS), help="(default: each)")
    parser.add_argument("--directory", type=Path, help="use the cluster that scripts/hadoop started there")
    arguments = parser.parse_args()
    faults = arguments.fault or sorted(FAULTS)
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
            for mode in arguments.mode or (*MODES, "peer"):
                directory = Path(scratch) / mode
                directory.mkdir()
                if mode == "peer":
                    wanted = [fault for fault in PEER_FAULTS if fault in faults]
                    measured = run_peer(hadoop, directory, wanted, arguments.rounds)
                    result["peer"] = {fault: medians(each) for fault, each in measured.items()}
                else:
                    result[mode] = run_mode(hadoop, directory, mode, faults, arguments.rounds)
            print(json.dumps(result))
        finally:
            if own:
                hadoop.stop()


if __name__ == "__main__":
    main()
