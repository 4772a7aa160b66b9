"""What a cluster without high availability keeps: in memory, and checkpoints in files.

Flink counterparts: ``EmbeddedHaServices``, ``StandaloneCompletedCheckpointStore`` (which forgets
checkpoints; here they can be found again by their files).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from yarnflow.core.checkpoint.messages import CheckpointInfo, CheckpointKind
from yarnflow.core.files import FileSystems
from yarnflow.core.ha.ports import DriverLeaseInfo
from yarnflow.core.ids import DriverId, JobId
from yarnflow.core.json_codec import from_json, to_json
from yarnflow.core.messages import JobDetails, JobSubmission
from yarnflow.core.states import JobStatus
from yarnflow.errors import FileMissing, RpcProtocolError
from yarnflow.ha.stores.checkpoint_files import CheckpointFiles
from yarnflow.ha.stores.collected_files import CollectedFiles
from yarnflow.ha.stores.latest_states import FileLatestStates

logger = logging.getLogger(__name__)

_RECORD: Final = "_record.json"


class MemoryJobGraphs:
    """Implements :class:`yarnflow.core.ha.ports.JobGraphStore`."""

    def __init__(self) -> None:
        self._jobs: dict[JobId, JobSubmission] = {}
        self._canceled: set[JobId] = set()

    def put(self, submission: JobSubmission) -> None:
        self._jobs.setdefault(submission.job_id, submission)

    def get(self, job_id: JobId) -> JobSubmission | None:
        return self._jobs.get(job_id)

    def job_ids(self) -> Sequence[JobId]:
        return list(self._jobs)

    def forgotten(self) -> Sequence[JobId]:
        return ()

    def replace(self, submission: JobSubmission) -> None:
        """Memory does not decay."""
        if submission.job_id in self._jobs:
            self._jobs[submission.job_id] = submission

    def mark_canceled(self, job_id: JobId) -> None:
        if job_id in self._jobs:
            self._canceled.add(job_id)

    def is_canceled(self, job_id: JobId) -> bool:
        """Whether somebody wanted the job's end."""
        return job_id in self._canceled

    def remove(self, job_id: JobId) -> None:
        self._jobs.pop(job_id, None)
        self._canceled.discard(job_id)


class MemoryResults:
    """Implements :class:`yarnflow.core.ha.ports.JobResultStore`."""

    def __init__(self, capacity: int = 100) -> None:
        self._capacity = capacity
        self._results: dict[JobId, JobDetails] = {}

    def put(self, details: JobDetails) -> None:
        self._results.setdefault(details.overview.job_id, details)
        for job_id in list(self._results)[: -self._capacity]:
            del self._results[job_id]

    def get(self, job_id: JobId) -> JobDetails | None:
        return self._results.get(job_id)

    def has(self, job_id: JobId) -> bool:
        return job_id in self._results

    def all(self) -> Sequence[JobDetails]:
        return list(self._results.values())


class MemoryJobKeys:
    """Implements :class:`yarnflow.core.ha.ports.JobKeyStore`."""

    def __init__(self) -> None:
        self._owners: dict[str, JobId] = {}

    def claim(self, key: str, job_id: JobId) -> JobId:
        """Take the key unless it is taken."""
        return self._owners.setdefault(key, job_id)

    def release(self, key: str, job_id: JobId) -> None:
        if self._owners.get(key) == job_id:
            del self._owners[key]

    def key_of(self, job_id: JobId) -> str:
        """The key a job has."""
        return next((key for key, owner in self._owners.items() if owner == job_id), "")


class NoLeases:
    """Implements :class:`yarnflow.core.ha.ports.DriverLeases`: drivers end with the only master."""

    def holder(self, job_id: JobId) -> DriverLeaseInfo | None:
        return None

    def watch(self, job_id: JobId, listener: Callable[[DriverLeaseInfo | None], None]) -> None:
        """There is nothing to be told."""

    def unwatch(self, job_id: JobId) -> None:
        pass

    def revoke(self, job_id: JobId, driver_id: DriverId) -> None:
        """The master kills its own drivers."""

    def on_revoked(self, listener: Callable[[DriverId], None]) -> None:
        pass


class FileCheckpoints:
    """Implements :class:`yarnflow.core.ha.ports.CheckpointStore` by the job's checkpoint directory.

    What is known of savepoints is forgotten with the process; they are the user's in any case.
    """

    def __init__(self, fs_of: FileSystems, directory: str) -> None:
        self._files = CheckpointFiles(fs_of, directory)
        self._savepoints: dict[int, CheckpointInfo] = {}
        self._last_id = 0

    def next_id(self) -> int:
        """A number above all that were given before."""
        if not self._last_id:
            self._last_id = self._files.highest_id()
        self._last_id += 1
        return self._last_id

    def add(self, checkpoint: CheckpointInfo, metadata: bytes) -> CheckpointInfo:
        """Write a completed one; returns it with its path."""
        if checkpoint.kind is CheckpointKind.SAVEPOINT:
            self._savepoints[checkpoint.checkpoint_id] = checkpoint
            return checkpoint
        path = self._files.write(checkpoint.checkpoint_id, metadata)
        checkpoint = replace(checkpoint, external_path=path)
        self._files.write_beside(checkpoint.checkpoint_id, _RECORD, to_json(checkpoint).encode())
        return checkpoint

    def remove(self, checkpoint_id: int) -> None:
        """Delete a checkpoint, or forget a savepoint."""
        if self._savepoints.pop(checkpoint_id, None) is None:
            self._files.delete(checkpoint_id)

    def all(self) -> Sequence[CheckpointInfo]:
        """By id; unreadable ones are left out."""
        found = dict(self._savepoints)
        for checkpoint_id in self._files.ids():
            try:
                content = self._files.read_beside(checkpoint_id, _RECORD)
                found[checkpoint_id] = from_json(CheckpointInfo, content.decode())
            except (FileMissing, RpcProtocolError, UnicodeDecodeError) as error:
                logger.warning("Checkpoint %d is passed over: %s", checkpoint_id, error)
        return [found[checkpoint_id] for checkpoint_id in sorted(found)]

    def discard_all(self) -> None:
        self._files.delete_directory()

    def close_job(self, status: JobStatus) -> None:
        """The files stay."""
        self._files.release(status)


class MemoryJobStores:
    """Implements :class:`yarnflow.core.ha.ports.JobStores`.

    Parameters
    ----------
    fs_of : callable
        Opens the file system of a URI.
    """

    def __init__(self, fs_of: FileSystems) -> None:
        self._fs_of = fs_of
        self.job_graphs = MemoryJobGraphs()
        self.results = MemoryResults()
        self.job_keys = MemoryJobKeys()
        self.leases = NoLeases()

    @property
    def highly_available(self) -> bool:
        """No other master takes over."""
        return False

    def checkpoints(self, job_id: JobId, directory: str) -> FileCheckpoints:
        return FileCheckpoints(self._fs_of, directory)

    def checkpoint_directory(self, job_id: JobId) -> str:
        """Nothing is recorded but in the directory itself."""
        return ""

    def collected(self, directory: str) -> CollectedFiles:
        return CollectedFiles(self._fs_of, directory)

    def latest_states(self, root: str) -> FileLatestStates:
        return FileLatestStates(self._fs_of, root)
