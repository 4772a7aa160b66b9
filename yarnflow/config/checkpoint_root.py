"""Where checkpoints of jobs lie that another master may take over.

Flink counterpart: none; there, ``execution.checkpointing.dir`` has no default.
"""

from __future__ import annotations

from yarnflow.config.configuration import Configuration
from yarnflow.config.hadoop.paths import with_file_system
from yarnflow.config.options import ha
from yarnflow.config.options.cluster import CLUSTER_ID
from yarnflow.config.options.job import CHECKPOINT_DIR


def cluster_storage(configuration: Configuration) -> str:
    """A cluster's own directory (a URI) below ``high-availability.storageDir``; empty = that is not set."""
    storage = configuration.get(ha.STORAGE_DIR)
    name = configuration.get(CLUSTER_ID).strip("/")
    return f"{with_file_system(storage).rstrip('/')}/{name}" if storage else ""


def shared_checkpoint_root(configuration: Configuration, storage: str) -> str:
    """Parent (a URI) of the checkpoint directories of a job.

    Parameters
    ----------
    configuration : Configuration
        With the job's options over the cluster's.
    storage : str
        What :func:`cluster_storage` says of the cluster; empty = no other master takes its jobs over.

    Returns
    -------
    str
        Empty where nothing says it, so that the cluster's own directory on its machine counts.
    """
    root = configuration.get(CHECKPOINT_DIR) or (storage and f"{storage}/checkpoints")
    return with_file_system(root).rstrip("/")
