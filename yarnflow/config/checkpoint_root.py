"""Where checkpoints of jobs lie that another master may take over.

Flink counterpart: none; there, ``execution.checkpointing.dir`` has no default.
"""

from __future__ import annotations

from yarnflow.config.configuration import Configuration
from yarnflow.config.options.job import CHECKPOINT_DIR


def shared_checkpoint_root(configuration: Configuration, storage_dir: str) -> str:
    """Parent (a URI) of the checkpoint directories of a job.

    Parameters
    ----------
    configuration : Configuration
        With the job's options over the cluster's.
    storage_dir : str
        ``high-availability.storageDir`` of the cluster; empty = no other master takes its jobs over.

    Returns
    -------
    str
        Empty where nothing says it, so that the cluster's own directory on its machine counts.
    """
    root = configuration.get(CHECKPOINT_DIR) or (storage_dir and f"{storage_dir.rstrip('/')}/checkpoints")
    return root.rstrip("/")
