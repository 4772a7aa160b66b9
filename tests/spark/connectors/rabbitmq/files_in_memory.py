"""Files of one directory."""

from __future__ import annotations

from yarnflow.spark.hadoop_files import DirectoryEntry


class FilesInMemory:
    """Implements :class:`~yarnflow.spark.connectors.rabbitmq.parts.SmallFiles`."""

    def __init__(self) -> None:
        self.contents: dict[str, bytes] = {}
        #: of the next times something is written
        self.failures: list[Exception] = []

    def copy(self) -> FilesInMemory:
        """What is there now, which nobody who has the other one changes."""
        found = FilesInMemory()
        found.contents = dict(self.contents)
        return found

    def parts(self) -> list[str]:
        """Paths of parts."""
        return [path for path in list(self.contents) if path.endswith(".arrow")]

    def entries(self, path: str, is_there: bool = False) -> list[DirectoryEntry]:
        found = dict(self.contents)
        return [DirectoryEntry(name.rpartition("/")[2], False, len(c)) for name, c in found.items()]

    def exists(self, path: str) -> bool:
        return path in self.contents

    def read(self, path: str) -> bytes:
        return self.contents[path]

    def write(self, path: str, content: bytes) -> None:
        if self.failures:
            raise self.failures.pop(0)
        self.contents[path] = content

    def delete(self, path: str) -> None:
        self.contents.pop(path, None)
