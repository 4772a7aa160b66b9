"""What lies in a job's checkpoint directory beside Spark's own: ``chk-<n>/_metadata``."""

from __future__ import annotations

import re
from typing import Final

from yarnflow.core.checkpoint.manifest import METADATA_FILE, checkpoint_name
from yarnflow.core.files import FileSystems

_CHECKPOINT: Final = re.compile(r"chk-([0-9]+)")


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

    def delete_directory(self) -> None:
        """Delete the job's whole directory, Spark's files included.  Idempotent."""
        fs, path = self._fs_of(self._directory)
        fs.delete(path)

    def _uri(self, checkpoint_id: int) -> str:
        return f"{self._directory}/{checkpoint_name(checkpoint_id)}"
