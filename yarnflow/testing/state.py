"""Where state lies, for tests: key groups in memory, with each attempt apart until its commit, and who
owns the files of savepoints."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field

from yarnflow.core.checkpoint.ownership import DIRECTORY_MODE, FILE_MODE, Access
from yarnflow.operators.state.backends.group_storage import GroupHead, LogEntry


@dataclass
class StoredGroup:
    """A :class:`~yarnflow.operators.state.backends.group_storage.GroupStorage` in memory.

    Attributes
    ----------
    stored_head : LogHead, PagesHead or None
    entries : dict
        By number.
    reads, writes : list of int
        Numbers of entries that were asked for, and written or removed.
    """

    stored_head: GroupHead | None = None
    entries: dict[int, LogEntry] = field(default_factory=dict)
    reads: list[int] = field(default_factory=list)
    writes: list[int] = field(default_factory=list)

    def attempt(self) -> StoredGroup:
        """A copy to work on: it becomes the group if the attempt succeeds, else it is forgotten."""
        return StoredGroup(copy.copy(self.stored_head), dict(self.entries))

    @property
    def stored_bytes(self) -> int:
        """Of all entries."""
        return sum(len(entry.body) for entry in self.entries.values())

    def head(self) -> GroupHead | None:
        return self.stored_head

    def set_head(self, head: GroupHead) -> None:
        self.stored_head = head

    def entry(self, number: int) -> LogEntry | None:
        self.reads.append(number)
        return self.entries.get(number)

    def put_entry(self, number: int, entry: LogEntry) -> None:
        self.writes.append(number)
        self.entries[number] = entry

    def remove_entry(self, number: int) -> None:
        self.writes.append(number)
        del self.entries[number]


@dataclass
class OwnersInMemory:
    """An :class:`~yarnflow.core.checkpoint.ownership.Owners` that is told what to say.

    Attributes
    ----------
    name : str
        Of the user; empty = a file system without permissions.
    found : dict
        Path → access.
    """

    name: str = "alice"
    found: dict[str, Access] = field(default_factory=dict)

    def add(self, root: str, *paths: str) -> None:
        """A directory and files below it, as the user alone makes them."""
        self.found[root] = Access(self.name, DIRECTORY_MODE)
        for path in paths:
            parts = path.split("/")
            for count in range(1, len(parts)):
                self.found["/".join((root, *parts[:count]))] = Access(self.name, DIRECTORY_MODE)
            self.found[f"{root}/{path}"] = Access(self.name, FILE_MODE)

    def user(self, path: str) -> str:
        return self.name

    def access(self, path: str) -> Access:
        """What is not known lies above, and is the administrator's."""
        return self.found.get(path, Access("hdfs", 0o755))

    def accesses(self, directory: str) -> dict[str, Access]:
        below = {path.rpartition("/")[2]: path for path in self.found if path.rpartition("/")[0] == directory}
        return {name: self.found[path] for name, path in below.items()}
