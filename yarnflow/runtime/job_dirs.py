"""Where jobs have their files below a cluster's directory on this machine.

Used by every master, as a standby keeps drivers, too.  Never creates any of them.
"""

from __future__ import annotations

from pathlib import Path

from yarnflow.core.ids import JobId


def work_dirs(cluster_dir: Path) -> Path:
    """Parent of the jobs' scratch directories."""
    return cluster_dir / "jobs"


def work_dir(cluster_dir: Path, job_id: JobId) -> Path:
    """Scratch directory of a job's drivers; goes with the last of them."""
    return work_dirs(cluster_dir) / job_id


def local_checkpoints(cluster_dir: Path) -> Path:
    """Parent of the jobs' checkpoint directories, where neither they nor the cluster name another one."""
    return cluster_dir / "checkpoints"
