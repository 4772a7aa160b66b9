"""Where the state of a key group lies between batches: a head and numbered entries.

The head is written last and says in which form the entries are: as a log of changes (backend
``hashmap``, :mod:`~yarnflow.operators.state.backends.group_log`) or as pages (backend ``rocksdb``,
:mod:`~yarnflow.operators.state.backends.group_pages`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class LogHead:
    """The entries are a log; what the state consists of."""

    #: differs for every commit of every attempt
    token: str
    #: number of the snapshot's entry, or of the first of all
    first: int
    #: number of the entry that comes next
    next: int
    snapshot_bytes: int
    #: of the changes after the snapshot
    tail_bytes: int


@dataclass(frozen=True, slots=True)
class PagesHead:
    """The entries are pages; what finds them."""

    #: pickled; small
    root: bytes


GroupHead = LogHead | PagesHead


def values_of(head: GroupHead) -> tuple[str | int | bytes | None, ...]:
    """A head of either form as one row: those of a LogHead, and the root of a PagesHead."""
    return (None,) * 5 + (head.root,) if isinstance(head, PagesHead) else (*astuple(head), None)


def head_of(values: Sequence[Any]) -> GroupHead:
    """The head that :func:`values_of` gave these values of."""
    *log, root = values
    return LogHead(*log) if root is None else PagesHead(bytes(root))


@dataclass(frozen=True, slots=True)
class LogEntry:
    """One commit of a log, or one page."""

    #: the commit it goes on from; empty for a snapshot, which needs none, and for a page
    previous: str
    #: pickled Changes, pickled Snapshot, or a page
    body: bytes


class GroupStorage(Protocol):
    """State of one group; what is written holds if the batch is committed.

    Each call is a round trip to another process.
    """

    def head(self) -> GroupHead | None:
        """The head; None = nothing was written yet."""

    def set_head(self, head: GroupHead) -> None:
        """Replace the head."""

    def entry(self, number: int) -> LogEntry | None:
        """One entry; None = there is none of that number."""

    def put_entry(self, number: int, entry: LogEntry) -> None:
        """Write an entry, in place of the one that has the number."""

    def remove_entry(self, number: int) -> None:
        """Remove an entry."""
