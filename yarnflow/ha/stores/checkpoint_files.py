"""What lies in a job's checkpoint directory beside Spark's own: ``chk-<n>/_metadata``."""

from __future__ import annotations

import re
from typing import Final

from yarnflow.core.checkpoint.manifest import CLAIMED, FREE, HELD, METADATA_FILE, checkpoint_name, manifest_in
from yarnflow.core.files import FileSystems
from yarnflow.core.states import JobStatus
from yarnflow.errors import FileMissing

_CHECKPOINT: Final = re.compile(r"chk-([0-9]+)")


def is_end(name: str) -> bool:
    """Whether a name is that of a marker of a job that has ended: only what was left can be claimed."""
    return name == FREE or name.startswith(CLAIMED)


class CheckpointFiles:
    """One job's directory.

    Parameters
    ----------
    fs_of : callable
        Opens the file system of a URI.
    directory : str
        The job's checkpoint directory (a URI).
    """

    def __init__(self, fs_of: FileSystems, directory: str) -> None:
        self._fs_of = fs_of
        self._directory = directory.rstrip("/")

    def write(self, checkpoint_id: int, metadata: bytes) -> str:
        """Write ``_metadata``; returns the checkpoint's directory (a URI)."""
        uri = self._uri(checkpoint_id)
        fs, path = self._fs_of(uri)
        fs.make_directory(path)
        fs.write(f"{path}/{METADATA_FILE}", metadata)
        return uri

    def write_if_absent(self, checkpoint_id: int, metadata: bytes) -> str:
        """Write ``_metadata`` unless somebody has; returns the checkpoint's directory (a URI)."""
        uri = self._uri(checkpoint_id)
        fs, path = self._fs_of(uri)
        fs.make_directory(path)
        fs.create(f"{path}/{METADATA_FILE}", metadata)
        return uri

    def write_beside(self, checkpoint_id: int, name: str, content: bytes) -> None:
        """Write another small file into a checkpoint's directory."""
        fs, path = self._fs_of(self._uri(checkpoint_id))
        fs.write(f"{path}/{name}", content)

    def read_beside(self, checkpoint_id: int, name: str) -> bytes:
        """Raises FileMissing."""
        fs, path = self._fs_of(self._uri(checkpoint_id))
        return fs.read(f"{path}/{name}")

    def exists(self, checkpoint_id: int) -> bool:
        """Its ``_metadata`` is there."""
        fs, path = self._fs_of(self._uri(checkpoint_id))
        return fs.status(f"{path}/{METADATA_FILE}") is not None

    def ids(self) -> list[int]:
        """Of all checkpoints there, in order."""
        fs, path = self._fs_of(self._directory)
        found = (_CHECKPOINT.fullmatch(status.name) for status in fs.list(path))
        return sorted(int(match[1]) for match in found if match)

    def highest_id(self) -> int:
        """0 when there is none."""
        return max(self.ids(), default=0)

    def delete(self, checkpoint_id: int) -> None:
        """Delete one checkpoint's record.  Idempotent."""
        fs, path = self._fs_of(self._uri(checkpoint_id))
        fs.delete(path)

    def release(self, status: JobStatus) -> None:
        """The job has ended and leaves its state to whoever wants it; the marker says how.  Idempotent."""
        fs, path = self._fs_of(self._directory)
        try:
            content = fs.read(f"{path}/{HELD}")
        except FileMissing:
            return
        fs.write(f"{path}/{HELD}", status.value.encode() + b"\n" + manifest_in(content))
        fs.rename(f"{path}/{HELD}", f"{path}/{FREE}")

    def exists_directory(self) -> bool:
        """The job has begun, and its state was not deleted."""
        fs, path = self._fs_of(self._directory)
        return fs.status(path) is not None

    def has_ended(self) -> bool:
        """Whether the job has ended in order, by its marker."""
        fs, path = self._fs_of(self._directory)
        names = {entry.name for entry in fs.list(path)}
        return HELD not in names and any(is_end(name) for name in names)

    def delete_directory(self) -> None:
        """Delete the job's whole directory, Spark's files included.  Idempotent."""
        fs, path = self._fs_of(self._directory)
        fs.delete(path)

    def _uri(self, checkpoint_id: int) -> str:
        return f"{self._directory}/{checkpoint_name(checkpoint_id)}"
