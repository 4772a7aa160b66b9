"""Machines that have too little of something: memory, descriptors, room on disk or on HDFS.

As in `injections`, a fault returns when it is over; what became of the job is for the test to see.
"""

from __future__ import annotations

import errno
import json
import resource
import subprocess
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import psutil

from integration.commits import newest
from integration.conftest import marked_processes, wait_until
from integration.faults.ha_cluster import HaCluster
from integration.faults.injections import Fault
from integration.processes import kill, tree

#: between two looks that are commands, each of which takes a second of processor time
_PAUSE_S: Final = 2.0
#: commits that show that a fault hurts nobody
_UNHURT: Final = 4


def _await_effect(cluster: HaCluster, job_id: str) -> None:
    """Until the job has failed once more, or goes on as if nothing was."""
    failures = _failures(cluster, job_id)
    before = newest(cluster.commits(job_id))

    def shown() -> bool:
        now = newest(cluster.commits(job_id))
        unhurt = [now.get(query, -1) >= batch + _UNHURT for query, batch in before.items()]
        return (bool(unhurt) and all(unhurt)) or _failures(cluster, job_id) > failures

    wait_until(shown, "the fault to show, or not to hurt", pause_s=_PAUSE_S)


def _failures(cluster: HaCluster, job_id: str) -> int:
    """How many the job had; 0 = the command that asks was itself hurt by the fault."""
    done = cluster.yarnflow("info", job_id)
    return len(json.loads(done.stdout)["failures"]) if done.process.returncode == 0 else 0


def out_of_memory(cluster: HaCluster, job_id: str) -> None:
    """The kernel kills the process that has most memory, as it does when there is none left."""

    def size(process: psutil.Process) -> int:
        try:
            return int(process.memory_info().rss)
        except psutil.NoSuchProcess:
            return 0

    kill(max(marked_processes(cluster.commands.mark), key=size))


@contextmanager
def _no_descriptors(victims: Iterable[psutil.Process]) -> Iterator[None]:
    """Processes cannot open anything: no file, no connection."""
    limits = {process: process.rlimit(resource.RLIMIT_NOFILE) for process in victims}
    try:
        for process, (_soft, hard) in limits.items():
            process.rlimit(resource.RLIMIT_NOFILE, (process.num_fds(), hard))
        yield
    finally:
        for process, limit in limits.items():
            try:
                process.rlimit(resource.RLIMIT_NOFILE, limit)
            except psutil.NoSuchProcess:
                continue


def driver_out_of_descriptors(cluster: HaCluster, job_id: str) -> None:
    """The driver and its JVM cannot open anything until it shows."""
    with _no_descriptors(tree(cluster.driver_process(job_id))):
        _await_effect(cluster, job_id)


def leader_out_of_descriptors(cluster: HaCluster, job_id: str) -> None:
    """The leader's JobManager process cannot open anything; data goes on."""
    with _no_descriptors([cluster.leader_process()]):
        # commands cannot ask it: looked at by the files of the job
        cluster.await_commits(job_id, more=_UNHURT)


def hdfs_quota_reached(cluster: HaCluster, job_id: str) -> None:
    """No room is left in the directory of all files of job and cluster, until it shows."""
    directory = f"/tests/{cluster.cluster_id}"
    cluster.hadoop.hdfs.set_space_quota(directory, 1)
    try:
        _await_effect(cluster, job_id)
    finally:
        cluster.hadoop.hdfs.set_space_quota(directory, -1)


def datanode_restarted(cluster: HaCluster, job_id: str) -> None:
    """The only DataNode is killed under load, and comes back once it shows."""
    cluster.hadoop.kill("datanode")
    try:
        _await_effect(cluster, job_id)
    finally:
        cluster.hadoop.restart("datanode")


def disk_full(cluster: HaCluster, job_id: str) -> None:
    """The disk with all local files of the cluster is full, until it shows."""
    filler = cluster.directory / "filler"
    try:
        with filler.open("wb", buffering=0) as file:
            _fill(lambda: file.write(bytes(1 << 16)))
        _await_effect(cluster, job_id)
    finally:
        filler.unlink(missing_ok=True)


def _fill(write: Callable[[], object]) -> None:
    while True:
        try:
            write()
        except OSError as error:
            if error.errno == errno.ENOSPC:
                return
            raise


@contextmanager
def small_disk(directory: Path, mebibytes: int) -> Iterator[Path]:
    """A file system of its own in memory, of so many MiB; needs root."""
    directory.mkdir()
    _run("mount", "-t", "tmpfs", "-o", f"size={mebibytes}m", "yarnflow-test", str(directory))
    try:
        yield directory
    finally:
        # not before those that had a file there have ended, which the kernel takes a moment for
        wait_until(lambda: _run("umount", str(directory), check=False), "the file system to be free")


def _run(*words: str, check: bool = True) -> bool:
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0 or not check, f"{' '.join(words)}: {done.stderr}"
    return done.returncode == 0


#: those that any cluster can have
SHORTAGES: Final[dict[str, Fault]] = {
    fault.__name__: fault
    for fault in (
        out_of_memory,
        driver_out_of_descriptors,
        leader_out_of_descriptors,
        hdfs_quota_reached,
        datanode_restarted,
    )
}
