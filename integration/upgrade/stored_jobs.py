"""Jobs of the recorded cluster: two that ran when all its processes were killed, and one that had ended."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from integration.upgrade.cases import KINDS, Files, Kind
from integration.upgrade.cluster import UpgradeCluster, checkpoints_in
from integration.upgrade.places import DATA, VERSION

#: all files of the cluster
STORED_CLUSTER: Final = DATA / VERSION / "cluster.tar.xz"
#: what it had in ZooKeeper
STORED_NODES: Final = DATA / VERSION / "zookeeper.json"
_NOTES: Final = "jobs.json"


@dataclass(frozen=True)
class StoredJob:
    """A job of the cluster."""

    kind: Kind
    backend: str
    job_key: str = ""


RUNNING: Final = (
    StoredJob(KINDS["keyed_state"], "rocksdb", "nightly/a.b"),
    StoredJob(KINDS["columns"], "hashmap"),
)
FINISHED: Final = StoredJob(KINDS["typed_functions"], "hashmap")


class JobPlace:
    """Where a job of the cluster has its files."""

    def __init__(self, cluster: UpgradeCluster, job: StoredJob) -> None:
        self.cluster = cluster
        self.job = job
        self.directory = cluster.directory / job.kind.name
        self.files = Files(job.kind, self.directory)

    @property
    def state(self) -> Path:
        """Return the directory of its state."""
        return self.directory / "checkpoints" / self.job_id

    @property
    def job_id(self) -> str:
        """Return what was noted when the job was submitted."""
        return str(json.loads((self.directory / _NOTES).read_text(encoding="utf-8")))

    def submit(self, bounded: bool = False) -> str:
        """Submit the job and let go of it; returns the job's id."""
        job = self.job
        key = ["--job-key", job.job_key] if job.job_key else []
        return self.cluster.submit(
            f"-Dstate.backend.type={job.backend}",
            checkpoints_in(self.directory),
            *key,
            self.cluster.directory / "programs" / job.kind.program.name,
            *self.files.arguments(bounded),
        )

    def note(self, job_id: str) -> None:
        """Keep a job's id for those who have the files only."""
        (self.directory / _NOTES).write_text(json.dumps(job_id), encoding="utf-8")
