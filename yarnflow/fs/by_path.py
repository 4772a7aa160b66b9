"""Directories of a file system that checks every path itself, and has no links, as HDFS."""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Iterator

from yarnflow.core.files import FileSystem
from yarnflow.errors import FileMissing


class DirectoryByPath:
    """:class:`yarnflow.core.files.HeldDirectory` whose every step names the path again.

    Raises
    ------
    FileMissing
        There is no such directory.
    """

    def __init__(self, fs: FileSystem, path: str) -> None:
        status = fs.status(path)
        if status is None or not status.is_directory:
            raise FileMissing(f"{fs.uri}{path} is not a directory, or does not exist; check the path")
        self._fs = fs
        self._path = path

    def read(self, path: str) -> bytes:
        """Return the whole content of a file."""
        return self._fs.read(posixpath.join(self._path, path))

    def names(self) -> list[str]:
        """Return its entries, sorted."""
        return [entry.name for entry in self._fs.list(self._path)]

    def files(self, below: str = "") -> list[str]:
        """Return the paths of all files in it, or in a directory below, relative to that."""
        return list(self._files_in(posixpath.join(self._path, below).rstrip("/")))

    def delete(self, path: str) -> bool:
        """Delete a file or a whole directory in it."""
        return self._fs.delete(posixpath.join(self._path, path))

    def remove(self, files: Collection[str]) -> None:
        """Delete the directory in one step: one for each file would be a call to the NameNode each."""
        self._fs.delete(self._path)

    def _files_in(self, directory: str, below: str = "") -> Iterator[str]:
        for entry in self._fs.list(directory):
            if entry.is_directory:
                yield from self._files_in(entry.path, f"{below}{entry.name}/")
            else:
                yield f"{below}{entry.name}"
