"""Whose a job's checkpoint directory is: a marker in it, which changes hands by being renamed.

The driver that runs a job holds the marker; the job's end lays it down; whoever claims the state takes it
from there, and for good.  So the state of a job that may run is nobody else's, of two that claim it one
gets it, and a driver that comes back to a directory which was claimed finds out before it writes.  A job
whose cluster vanished still holds its marker, as nobody can tell it from one that runs; only the next job of
its key takes that from it, as a key has one live job.  Never decides where a job goes on from.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Final

from yarnflow.core.checkpoint.manifest import (
    CLAIMED,
    FREE,
    HELD,
    METADATA_FILE,
    RESTORED_FILE,
    SavepointMetadata,
    checkpoint_id_of,
    from_bytes,
)
from yarnflow.core.files import FileSystem, FileSystems
from yarnflow.core.ha.ports import DriverLeaseInfo
from yarnflow.core.ids import JobId
from yarnflow.core.states import GLOBALLY_TERMINAL
from yarnflow.errors import FileMissing, StateInUse
from yarnflow.ha.stores.latest_states import FileLatestStates

logger = logging.getLogger(__name__)

_OVER: Final = frozenset(status.value for status in GLOBALLY_TERMINAL)


class FileStateOwner:
    """Implements :class:`yarnflow.core.ha.ports.StateOwner`.

    Parameters
    ----------
    fs_of : callable
        Opens the file system of a URI.
    directory : str
        The job's checkpoint directory (a URI).
    job_id : JobId
    holder : callable
        The driver that has the lease of a job in this cluster.
    """

    def __init__(
        self,
        fs_of: FileSystems,
        directory: str,
        job_id: JobId,
        holder: Callable[[JobId], DriverLeaseInfo | None],
    ) -> None:
        self._fs_of = fs_of
        self._directory = directory.rstrip("/")
        self._job_id = job_id
        self._holder = holder

    def hold(self) -> None:
        """Hold the marker of the job's own directory."""
        fs, path = self._fs_of(self._directory)
        names = _names(fs, path)
        self._check_not_claimed(names)
        if HELD in names:
            return  # by an earlier driver of the job
        if FREE in names:
            fs.rename(f"{path}/{FREE}", f"{path}/{HELD}")
        else:
            fs.make_directory(path)
            fs.create(f"{path}/{HELD}", b"")
        # it may have been claimed in between
        self._check_not_claimed(_names(fs, path))

    def describe(self, manifest: bytes) -> None:
        """Put the manifest into the marker, see :mod:`yarnflow.ha.stores.lost_jobs`."""
        fs, path = self._fs_of(self._directory)
        fs.write(f"{path}/{HELD}", manifest)

    def claim(self, path: str, job_key: str) -> None:
        """Take the marker of the job that a checkpoint (a URI) is of; a savepoint has none."""
        uri = path.rstrip("/").removesuffix(f"/{METADATA_FILE}")
        directory, _, name = uri.rpartition("/")
        if checkpoint_id_of(name) is None or directory == self._directory:
            return
        fs, where = self._fs_of(directory)
        names, mine = self._lay_down_void(fs, where, directory), f"{CLAIMED}{self._job_id}"
        if mine in names:
            return  # by an earlier driver of this job
        try:
            metadata = from_bytes(fs.read(f"{where}/{name}/{METADATA_FILE}"), uri)
        except FileMissing:
            return  # whoever restores says so
        why = self._why_not(names, metadata, directory, job_key)
        marker = next((marker for marker in (HELD, FREE) if marker in names), "")
        if marker == HELD and not why:
            logger.warning(
                "Job %s has not ended in order and no driver runs it; job %s, which has its key now, takes "
                "its state.", metadata.job_id, self._job_id,
            )  # fmt: skip
        if not why and not _take(fs, where, mine, marker):
            why = "another job is claiming it, or its own has begun again"
        if why:
            raise StateInUse(
                f"{uri} cannot be claimed: {why}; end that job first, or start with --claim-mode NO_CLAIM, "
                "which leaves the state as it is"
            )

    def give_back(self, path: str) -> None:
        """Lay the marker down again, unless the state was brought here: then its source may be gone."""
        directory, _, name = path.rstrip("/").removesuffix(f"/{METADATA_FILE}").rpartition("/")
        if checkpoint_id_of(name) is None or directory == self._directory:
            return
        own_fs, own = self._fs_of(self._directory)
        if RESTORED_FILE in _names(own_fs, own):
            return
        fs, where = self._fs_of(directory)
        if f"{CLAIMED}{self._job_id}" in _names(fs, where):
            _lay_down(fs, where, f"{CLAIMED}{self._job_id}")

    def _lay_down_void(self, fs: FileSystem, where: str, directory: str) -> list[str]:
        """Names in a job's directory, without the claim of a job that has ended and took nothing.

        Its driver may have been lost before it could give the state back.
        """
        names = _names(fs, where)
        for name in names:
            claimer = name.removeprefix(CLAIMED)
            if claimer in (name, self._job_id):
                continue
            beside_fs, beside = self._fs_of(f"{directory.rpartition('/')[0]}/{claimer}")
            left = _names(beside_fs, beside)
            if FREE in left and HELD not in left and RESTORED_FILE not in left:
                _lay_down(fs, where, name)
                return _names(fs, where)
        return names

    def _why_not(
        self, names: Sequence[str], metadata: SavepointMetadata, directory: str, job_key: str
    ) -> str:
        """What says that somebody else has the state; empty = nothing does."""
        job = f"job {metadata.job_name} ({metadata.job_id})"
        claimed = [name.removeprefix(CLAIMED) for name in names if name.startswith(CLAIMED)]
        if claimed:
            return f"job {claimed[0]} has claimed it"
        if self._holder(metadata.job_id) is not None:
            return f"a driver runs {job}"
        root = directory.rpartition("/")[0]
        if job_key and metadata.job_key == job_key:
            states = FileLatestStates(self._fs_of, root)
            if states.began_before(job_key, metadata.job_id, self._job_id):
                return ""
        if HELD in names:
            return f"{job} may still run, as it has not ended in order ({directory}/{HELD})"
        if metadata.job_key:
            latest = FileLatestStates(self._fs_of, root).read(metadata.job_key)
            if latest is not None and latest.job_id == metadata.job_id and latest.status not in _OVER:
                return f"{job} was {latest.status} when it last recorded a checkpoint"
        return ""

    def _check_not_claimed(self, names: Sequence[str]) -> None:
        claimed = [name.removeprefix(CLAIMED) for name in names if name.startswith(CLAIMED)]
        if claimed:
            raise StateInUse(
                f"job {claimed[0]} has claimed the state of job {self._job_id} in {self._directory}, so this "
                "job cannot go on; submit a new one"
            )


def _take(fs: FileSystem, directory: str, mine: str, marker: str) -> bool:
    """Make the marker this job's; False = somebody else has it, or is about to."""
    try:
        if marker:
            taken = fs.rename(f"{directory}/{marker}", f"{directory}/{mine}")
        else:  # of a job that an earlier version ran
            taken = fs.create(f"{directory}/{mine}", b"")
    except FileMissing:
        taken = False
    others = (name for name in _names(fs, directory) if name != mine)
    # a local file system moves in two steps, and whoever creates a marker has not taken it from anybody
    if taken and not any(name == HELD or name.startswith(CLAIMED) for name in others):
        return True
    fs.delete(f"{directory}/{mine}")
    return False


def _lay_down(fs: FileSystem, directory: str, marker: str) -> None:
    """Leave a directory that was claimed to whoever wants it."""
    try:
        fs.rename(f"{directory}/{marker}", f"{directory}/{FREE}")
    except FileMissing:
        pass  # somebody else has done so


def _names(fs: FileSystem, path: str) -> list[str]:
    return [entry.name for entry in fs.list(path)]
