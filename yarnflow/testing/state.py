"""Where the state of a key group lies, for tests: in memory, with each attempt apart until its commit."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field

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
