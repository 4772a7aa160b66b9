"""Which savepoints a master deletes when it is asked by REST: the cluster's own.

Whoever may ask is not the user of the cluster for that reason: a directory is deleted only where the cluster
keeps state, or if a job that it knows wrote a savepoint to it.  Flink, in contrast, deletes any.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from yarnflow.config.checkpoint_root import cluster_storage
from yarnflow.config.configuration import Configuration
from yarnflow.config.hadoop.conf import HadoopConf
from yarnflow.config.hadoop.variables import names_hadoop
from yarnflow.config.options import job
from yarnflow.core.checkpoint.messages import CheckpointKind, JobCheckpoints
from yarnflow.core.files import FileSystems
from yarnflow.core.ids import JobId
from yarnflow.core.job.description import JobDescription
from yarnflow.core.uris import file_uri
from yarnflow.errors import InvalidOption, JobNotFound, StorageDenied
from yarnflow.fs.saved_state import delete_savepoint, state_directory, state_uri


class KnownJobs(Protocol):
    """What a master knows of the state of its jobs."""

    def job_ids(self) -> list[JobId]:
        """Of all that it knows."""

    def job_checkpoints(self, job_id: JobId) -> JobCheckpoints:
        """Return the checkpoints and savepoints of one.  Raises JobNotFound."""

    def job_description(self, job_id: JobId) -> JobDescription | None:
        """Return what one is.  Raises JobNotFound."""


class SavepointDisposal:
    """Deletes savepoints of one cluster.

    Parameters
    ----------
    configuration : Configuration
        The cluster's.
    cluster_dir : Path
        Where it keeps its files on this machine.
    jobs : KnownJobs
    file_systems : FileSystems
    """

    def __init__(
        self, configuration: Configuration, cluster_dir: Path, jobs: KnownJobs, file_systems: FileSystems
    ) -> None:
        self._configuration = configuration
        self._cluster_dir = cluster_dir
        self._jobs = jobs
        self._file_systems = file_systems

    def dispose(self, path: str) -> None:
        """Delete a savepoint.

        Raises
        ------
        StorageDenied
            It is not the cluster's; whether it is there was not even looked at.
        CheckpointError
            There is none, or its directory has files of others; nothing is deleted.
        """
        uri = state_directory(self._uri(path))
        if not self._is_own(uri):
            raise StorageDenied(
                f"{uri} is neither below a directory of this cluster nor a savepoint of a job that it knows, "
                f"so it is not deleted for others; set {job.SAVEPOINT_DIR.key} of the cluster to its parent "
                "directory, or delete it as your own user with: yarnflow savepoint dispose"
            )
        delete_savepoint(self._file_systems, uri)

    def _is_own(self, uri: str) -> bool:
        return any(uri.startswith(f"{root.rstrip('/')}/") for root in self._roots()) or uri in self._made()

    def _roots(self) -> Iterator[str]:
        """Return the directories (URIs) below which the cluster keeps state."""
        get = self._configuration.get
        yield file_uri(self._cluster_dir)
        configured = [get(job.SAVEPOINT_DIR), get(job.CHECKPOINT_DIR), cluster_storage(self._configuration)]
        for job_id in self._jobs.job_ids():
            try:
                description = self._jobs.job_description(job_id)
                configured.append(self._jobs.job_checkpoints(job_id).directory)
            except JobNotFound:
                continue  # forgotten this very moment
            configured.append("" if description is None else description.savepoint_dir)
        for directory in configured:
            if directory:
                try:
                    yield self._uri(directory)
                except InvalidOption:
                    continue  # of a file system that savepoints are not deleted on anyway

    def _made(self) -> Iterator[str]:
        """Return the savepoints (URIs) that jobs have written, wherever they were told to."""
        for job_id in self._jobs.job_ids():
            try:
                history = self._jobs.job_checkpoints(job_id).history
            except JobNotFound:
                continue
            for info in history:
                if info.kind is CheckpointKind.SAVEPOINT and info.external_path:
                    yield self._uri(info.external_path)

    def _uri(self, path: str) -> str:
        def home() -> str:
            return self._file_systems(HadoopConf.load(os.environ).default_fs)[0].home()

        return state_uri(path, os.environ, on_hadoop=names_hadoop(os.environ), home=home)
