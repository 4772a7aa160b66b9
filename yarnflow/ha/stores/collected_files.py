"""Parts with elements for the program, in the job's checkpoint directory."""

from __future__ import annotations

from yarnflow.core.checkpoint.query_files import COMMITS, DONE_FILE, query_directory
from yarnflow.core.collect import parts
from yarnflow.core.files import FileSystem, FileSystems


class CollectedFiles:
    """Implements :class:`yarnflow.core.ha.ports.CollectedParts`.

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
        #: name of the query; a job has one that writes parts
        self._query = ""

    def names(self) -> list[str]:
        """Of all parts there are."""
        fs, path = self._parts()
        if not self._query:
            found = [status.name for status in fs.list(path) if status.is_directory]
            if not found:
                return []
            self._query = found[0]
        return [status.name for status in fs.list(f"{path}/{self._query}") if not status.is_directory]

    def committed(self) -> int:
        """The last micro-batch that Spark committed; -1 = none."""
        if not self._query:
            return -1
        fs, path = self._fs_of(self._directory)
        query = f"{path}/{query_directory(self._query)}"
        commits = [status.name for status in fs.list(f"{query}/{COMMITS}")]
        last = max((int(name) for name in commits if name.isdigit()), default=-1)
        if last < 0 and fs.status(f"{query}/{DONE_FILE}") is not None:
            return 0
        return last

    def read(self, name: str) -> bytes:
        """A part's content, with its seal."""
        fs, path = self._parts()
        return fs.read(f"{path}/{self._query}/{name}")

    def delete(self, name: str) -> None:
        fs, path = self._parts()
        fs.delete(f"{path}/{self._query}/{name}")

    def delete_all(self) -> None:
        fs, path = self._parts()
        fs.delete(path)

    def _parts(self) -> tuple[FileSystem, str]:
        return self._fs_of(f"{self._directory}/{parts.DIRECTORY}")
