"""What checkpoints there are, by the checkpoints themselves: their ``_metadata`` says whose they are.

How the job of a checkpoint ended is said by the marker beside it (:mod:`yarnflow.ha.stores.state_owner`).
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Final

from yarnflow.core.checkpoint.manifest import (
    FREE,
    HELD,
    METADATA_FILE,
    SavepointMetadata,
    checkpoint_id_of,
    from_bytes,
)
from yarnflow.core.files import FileStatus, FileSystems
from yarnflow.core.ha.ports import LOST, UNMARKED, LatestState
from yarnflow.core.ids import JobId, is_job_id
from yarnflow.core.states import JobStatus
from yarnflow.errors import FileMissing, SavepointInvalid, StorageError
from yarnflow.ha.stores.checkpoint_files import is_end

logger = logging.getLogger(__name__)

_STATUSES: Final = frozenset(status.value for status in JobStatus if status.globally_terminal)
#: directories of jobs that are read at the same time: each takes several round trips
_THREADS: Final = 16
#: how long a driver may come back and must find that its directory was claimed
_MARKER_KEPT_MS: Final = 90 * 86_400_000


class LeftStates:
    """Checkpoints below one ``execution.checkpointing.dir``.

    Parameters
    ----------
    fs_of : callable
        Opens the file system of a URI.
    root : str
        That directory (a URI).
    """

    def __init__(self, fs_of: FileSystems, root: str) -> None:
        self._fs_of = fs_of
        self._root = root.rstrip("/")

    def has(self, uri: str) -> bool:
        """Whether a directory has a complete checkpoint or savepoint."""
        fs, path = self._fs_of(uri.rstrip("/").removesuffix(f"/{METADATA_FILE}"))
        return fs.status(f"{path}/{METADATA_FILE}") is not None

    def newest_beside(self, uri: str) -> LatestState | None:
        """The newest checkpoint of the job that a checkpoint is of; None for a savepoint."""
        directory, _, name = uri.rstrip("/").rpartition("/")
        return None if checkpoint_id_of(name) is None else self._newest(directory)

    def newest_of(self, job_id: JobId) -> LatestState | None:
        """The newest checkpoint of a job."""
        return self._newest(f"{self._root}/{job_id}") if job_id else None

    def of_key(self, job_key: str) -> list[LatestState]:
        """The newest checkpoint of each job of a key, the newest first.

        Reads the directories of all jobs, several at a time, and deletes those of which a marker alone is
        left that nobody looks for any more.
        """
        fs, path = self._fs_of(self._root)
        entries = fs.list(path)
        # the file system's own time, or somewhat before it
        now_ms = max((entry.modified_ms for entry in entries), default=0)

        def newest(entry: FileStatus) -> LatestState | None:
            return self._newest(f"{self._root}/{entry.name}", now_ms - entry.modified_ms)

        jobs = [entry for entry in entries if entry.is_directory and is_job_id(entry.name)]
        if not jobs:
            return []
        with ThreadPoolExecutor(min(_THREADS, len(jobs)), thread_name_prefix="left-states") as pool:
            found = list(pool.map(newest, jobs))
        states = [state for state in found if state is not None and state.job_key == job_key]
        return sorted(states, key=lambda state: state.written_ms, reverse=True)

    def _newest(self, directory: str, unchanged_ms: int = 0) -> LatestState | None:
        fs, path = self._fs_of(directory)
        names = [entry.name for entry in fs.list(path)]
        for number, metadata in self._checkpoints(directory, names):
            return LatestState(
                job_key=metadata.job_key,
                job_id=metadata.job_id,
                job_name=metadata.job_name,
                status=self._status(directory, names),
                path=f"{directory}/chk-{number}",
                checkpoint_id=number,
                written_ms=metadata.created_ms,
            )
        if unchanged_ms > _MARKER_KEPT_MS and names and all(is_end(name) for name in names):
            try:
                fs.delete(path)
            except StorageError as error:
                logger.info("%s is of no use any more, and cannot be deleted: %s", directory, error)
        return None

    def _status(self, directory: str, names: Collection[str]) -> str:
        """How the job ended whose directory has entries of these names."""
        if FREE in names:
            fs, path = self._fs_of(directory)
            try:
                said = fs.read(f"{path}/{FREE}").partition(b"\n")[0].decode(errors="replace")
            except FileMissing:
                return LOST  # the job has just begun again, or another one claims it
            return said if said in _STATUSES else LOST
        return LOST if any(name == HELD or is_end(name) for name in names) else UNMARKED

    def _checkpoints(
        self, directory: str, names: Collection[str]
    ) -> Iterator[tuple[int, SavepointMetadata]]:
        """Those whose ``_metadata`` can be understood, the newest first."""
        fs, path = self._fs_of(directory)
        numbers = (checkpoint_id_of(name) for name in names)
        for number in sorted((number for number in numbers if number is not None), reverse=True):
            where = f"{directory}/chk-{number}/{METADATA_FILE}"
            try:
                yield number, from_bytes(fs.read(f"{path}/chk-{number}/{METADATA_FILE}"), where)
            except FileMissing:
                continue  # not complete, or just deleted
            except SavepointInvalid as error:
                logger.error("%s is passed over: %s", where, error)


def of_this_version(state: LatestState) -> LatestState:
    """The state of a job that this version has run: without a marker it has not ended."""
    return replace(state, status=LOST) if state.status == UNMARKED else state
