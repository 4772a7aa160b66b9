"""Figures of a cluster over time, and whether they level off.

What grows for ever (memory, descriptors, threads, nodes of ZooKeeper, files) ends a cluster one day.  At its
start everything grows; so only the second half of the time counts, and single peaks do not.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psutil
from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError

from integration.faults.ha_cluster import HaCluster
from integration.processes import DRIVER, DRIVER_JVM, EXECUTOR, JOB_MANAGER, TASK_MANAGER, processes

#: role → what the command lines of its processes have
ROLES: Final = {
    "jobmanager": JOB_MANAGER,
    "driver": DRIVER,
    "driver-jvm": DRIVER_JVM,
    "taskmanager": TASK_MANAGER,
    "executor": EXECUTOR,
}
#: from one half of the later half to the other, a figure may grow by this share of it …
_SHARE: Final = 0.1
#: … or by so much, where it is small
_LEAST: Final = {"mib": 16.0, "descriptors": 12.0, "threads": 8.0, "znodes": 12.0, "files": 24.0}
#: a JVM takes more of its heap when it pleases
_LEAST_OF_JVMS: Final = {"driver-jvm mib": 64.0, "executor mib": 64.0}

#: ``"jobmanager mib"`` → 120.5
Figures = Mapping[str, float]


def growing(samples: Sequence[Figures]) -> list[str]:
    """Figures that grow still, each with how much; empty = all of them have levelled off.

    Parameters
    ----------
    samples : sequence of Figures
        By time, at even distances; 8 or more.
    """
    assert len(samples) >= 8, f"{len(samples)} samples are too few to tell"
    later = samples[len(samples) // 2 :]
    middle = len(later) // 2
    found = []
    for name in samples[-1]:
        values = [sample[name] for sample in later if name in sample]
        # a figure that was missing is none that grew
        if len(values) < len(later):
            continue
        before, after = statistics.median(values[:middle]), statistics.median(values[middle:])
        least = _LEAST_OF_JVMS.get(name) or _LEAST[name.rpartition(" ")[2]]
        if after - before > max(_SHARE * before, least):
            found.append(f"{name}: {before:.0f}, later {after:.0f}")
    return found


@dataclass(frozen=True)
class Gauge:
    """Reads the figures of a cluster."""

    cluster: HaCluster

    def read(self) -> dict[str, float]:
        """All of them, now; those of a role are of its largest process."""
        found: dict[str, float] = {}
        for role, what in ROLES.items():
            found.update(largest(role, processes(self.cluster.commands.mark, what)))
        path = f"/yarnflow/{self.cluster.cluster_id}"
        found["zookeeper znodes"] = sum(1 for _ in _nodes(self.cluster.zookeeper, path))
        found["local files"] = sum(1 for path in self._local_files())
        content = self.cluster.hadoop.hdfs.client.content
        for folder in ("ha", "checkpoints"):
            answer = content(f"/tests/{self.cluster.cluster_id}/{folder}", strict=False)
            found[f"hdfs {folder} files"] = float(answer["fileCount"] if answer else 0)
        return found

    def _local_files(self) -> Iterator[Path]:
        for path in self.cluster.directory.rglob("*"):
            # output of the commands of the test itself
            if not path.name.startswith("command-"):
                yield path


def largest(role: str, processes: Iterable[psutil.Process]) -> dict[str, float]:
    """Each figure of a role, of the process that has most; nothing when there is none."""
    found: dict[str, float] = {}
    for process in processes:
        for name, value in _of_process(process).items():
            found[f"{role} {name}"] = max(value, found.get(f"{role} {name}", 0.0))
    return found


def _of_process(process: psutil.Process) -> dict[str, float]:
    try:
        return {
            "mib": process.memory_info().rss / 2**20,
            "descriptors": float(process.num_fds()),
            "threads": float(process.num_threads()),
        }
    except psutil.Error:
        return {}


def _nodes(zookeeper: KazooClient, path: str) -> Iterator[str]:
    try:
        children = zookeeper.get_children(path)
    except NoNodeError:
        return
    yield path
    for child in children:
        yield from _nodes(zookeeper, f"{path}/{child}")
