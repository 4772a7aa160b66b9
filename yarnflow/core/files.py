"""What yarnflow asks of a file system that all machines of a cluster share.

Never decides where anything lies on it: the layouts belong to those who write.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class FileStatus:
    """One entry of a distributed file system."""

    path: str
    is_directory: bool
    length_bytes: int
    modified_ms: int
    #: e.g. ``0o644``
    permission: int
    owner: str = ""

    @property
    def name(self) -> str:
        """Last part of the path."""
        return self.path.rpartition("/")[2]


class HeldDirectory(Protocol):
    """A directory that stays the same one while something in it is checked and deleted.

    Paths are relative to it.  Methods raise :class:`yarnflow.errors.StorageError`, or ``OSError``, which
    :meth:`FileSystem.hold` turns into one.
    """

    def read(self, path: str) -> bytes:
        """Return the whole content of a file."""

    def names(self) -> list[str]:
        """Return its entries, sorted."""

    def files(self, below: str = "") -> list[str]:
        """Return the paths of all files in it, or in a directory below, relative to that."""

    def delete(self, path: str) -> bool:
        """Delete a file or a whole directory in it; False when there was nothing."""

    def remove(self, files: Collection[str]) -> None:
        """Delete the directory itself with these files, which are all that it has."""


class FileSystem(Protocol):
    """A file system shared by all machines of a cluster.  Paths are absolute, without scheme.

    Every method raises :class:`yarnflow.errors.StorageError` (or a subclass) when the file system
    does not do what was asked.
    """

    @property
    def uri(self) -> str:
        """Scheme and authority, ``hdfs://host:port``; ``uri + path`` is what YARN and Spark read."""

    @property
    def user(self) -> str:
        """Who asks, as :attr:`FileStatus.owner` names users."""

    def home(self) -> str:
        """Home directory of the user."""

    def read(self, path: str) -> bytes:
        """Whole content.  Raises FileMissing."""

    def write(self, path: str, content: bytes, *, permission: int = 0o600) -> None:
        """Create or replace atomically: readers see the old content or the new one."""

    def create(self, path: str, content: bytes, *, permission: int = 0o600) -> bool:
        """Create with content if nothing is there, atomically; False = something is."""

    def upload(self, local: str, path: str, *, permission: int = 0o644) -> int:
        """Copy a local file there, atomically; returns its length in bytes."""

    def status(self, path: str) -> FileStatus | None:
        """The entry, or None when there is none."""

    def list(self, path: str) -> Sequence[FileStatus]:
        """Entries of a directory, sorted by path; empty when there is none."""

    def make_directory(self, path: str, *, permission: int = 0o700) -> None:
        """Create a directory and its missing parents.  Idempotent."""

    def rename(self, source: str, target: str) -> bool:
        """Move; False when the target exists already."""

    def delete(self, path: str) -> bool:
        """Delete a file or a whole directory; False when there was nothing."""

    def hold(self, path: str) -> AbstractContextManager[HeldDirectory]:
        """Hold a directory, so that what is checked in it is what is deleted.  Raises FileMissing."""


#: a URI → its file system and the path there
FileSystems = Callable[[str], tuple[FileSystem, str]]
