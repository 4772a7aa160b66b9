"""How the state of a key group becomes durable: a log of changes with a snapshot now and then.

The log's entries are numbered; its head says which of them make up the state.  A worker keeps the
store of a group between batches; such a copy is used again only if its token is that of the head,
or of an entry the head goes on from, so a copy that a failed attempt has advanced never passes for the
committed one.  Decides when a snapshot is written; never where entries are kept.  Flink counterpart:
changelog state backend.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Protocol

from yarnflow.errors import InvariantViolated
from yarnflow.operators.state.store import GroupStore

#: a snapshot is worth its writing when the changes to be read after a loss are as large as the state
_SMALL_TAIL_BYTES: Final = 64 * 1024
#: each entry costs a read of its own
_MAX_TAIL_ENTRIES: Final = 32


@dataclass(frozen=True, slots=True)
class LogHead:
    """What the state consists of."""

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
class LogEntry:
    """One commit."""

    #: the commit it goes on from; empty for a snapshot, which needs none
    previous: str
    #: pickled Changes, or pickled Snapshot
    body: bytes


class LogStorage(Protocol):
    """Where the log of one group lies; what is written holds if the batch is committed."""

    def head(self) -> LogHead | None:
        """The head; None = nothing was written yet."""

    def set_head(self, head: LogHead) -> None:
        """Replace the head."""

    def entry(self, number: int) -> LogEntry:
        """One entry between the head's first and next."""

    def put_entry(self, number: int, entry: LogEntry) -> None:
        """Write an entry."""

    def remove_entry(self, number: int) -> None:
        """Remove an entry."""


@dataclass(frozen=True, slots=True)
class KeptGroup:
    """A store that a worker keeps, as of a commit."""

    token: str
    #: the head's ``next`` at that commit
    next: int
    store: GroupStore


class GroupLog:
    """Reads and writes logs.

    Parameters
    ----------
    dumps, loads : callable
        Pickle's, or others of that form.
    new_token : callable
        A text that no other call in any process gives.
    """

    def __init__(
        self,
        dumps: Callable[[Any], bytes],
        loads: Callable[[bytes], Any],
        new_token: Callable[[], str],
    ) -> None:
        self._dumps = dumps
        self._loads = loads
        self._new_token = new_token

    def open(self, storage: LogStorage, kept: KeptGroup | None) -> tuple[LogHead | None, GroupStore]:
        """The state as of the head; a kept store is used, and advanced, where it can be."""
        head = storage.head()
        if head is None:
            return None, GroupStore()
        if kept is not None:
            if kept.token == head.token:
                return head, kept.store
            if self._catch_up(storage, head, kept):
                return head, kept.store
        entries = [storage.entry(number) for number in range(head.first, head.next)]
        bodies = [self._loads(entry.body) for entry in entries]
        if entries and not entries[0].previous:
            return head, GroupStore.load(bodies[0], bodies[1:])
        if head.first != 0:
            raise InvariantViolated(f"the log of a key group begins with entry {head.first}, no snapshot")
        return head, GroupStore.load(None, bodies)

    def _catch_up(self, storage: LogStorage, head: LogHead, kept: KeptGroup) -> bool:
        """Apply what was committed since; false if the store is of another history."""
        if not head.first <= kept.next < head.next:
            return False
        entries = [storage.entry(number) for number in range(kept.next, head.next)]
        if entries[0].previous != kept.token:
            return False
        for entry in entries:
            kept.store.apply(self._loads(entry.body))
        return True

    def commit(self, storage: LogStorage, head: LogHead | None, store: GroupStore) -> KeptGroup | None:
        """Write what changed since the last commit; the store to keep, None if nothing changed."""
        changes = store.changes()
        if changes.empty:
            return None if head is None else KeptGroup(head.token, head.next, store)
        token = self._new_token()
        if head is None:
            head = LogHead(_BEFORE_ALL, 0, 0, 0, 0)
        body = self._dumps(changes)
        tail_bytes = head.tail_bytes + len(body)
        entries = head.next + 1 - head.first
        if tail_bytes > max(_SMALL_TAIL_BYTES, head.snapshot_bytes) or entries > _MAX_TAIL_ENTRIES:
            snapshot = self._dumps(store.snapshot())
            for number in range(head.first, head.next):
                storage.remove_entry(number)
            storage.put_entry(head.next, LogEntry("", snapshot))
            new = LogHead(token, head.next, head.next + 1, len(snapshot), 0)
        else:
            storage.put_entry(head.next, LogEntry(head.token, body))
            new = LogHead(token, head.first, head.next + 1, head.snapshot_bytes, tail_bytes)
        storage.set_head(new)
        return KeptGroup(token, new.next, store)


#: token of the state before the first commit; never empty, so that no change looks like a snapshot
_BEFORE_ALL: Final = "-"
