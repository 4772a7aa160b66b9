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
from typing import Any, Final

from yarnflow.errors import InvariantViolated
from yarnflow.operators.state.backends.group_storage import GroupStorage, LogEntry, LogHead
from yarnflow.operators.state.store import GroupStore, Snapshot

#: a snapshot is worth its writing when the changes to be read after a loss are as large as the state
_SMALL_TAIL_BYTES: Final = 64 * 1024
#: each entry costs a read of its own
_MAX_TAIL_ENTRIES: Final = 32


@dataclass(frozen=True, slots=True)
class KeptGroup:
    """A store that a worker keeps, as of a commit."""

    token: str
    #: the head's ``next`` at that commit
    next: int
    store: GroupStore
    #: in the log
    stored_bytes: int


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

    def open(self, storage: GroupStorage, head: LogHead | None, kept: KeptGroup | None = None) -> GroupStore:
        """The state as of the head; a kept store is used, and advanced, where it can be."""
        if head is None:
            return GroupStore()
        if kept is not None and (kept.token == head.token or self._catch_up(storage, head, kept)):
            return kept.store
        entries = _entries(storage, head.first, head.next)
        bodies = [self._loads(entry.body) for entry in entries]
        if entries and not entries[0].previous:
            return GroupStore.load(bodies[0], bodies[1:])
        if head.first != 0:
            raise InvariantViolated(f"the log of a key group begins with entry {head.first}, no snapshot")
        return GroupStore.load(None, bodies)

    def _catch_up(self, storage: GroupStorage, head: LogHead, kept: KeptGroup) -> bool:
        """Apply what was committed since; false if the store is of another history."""
        if not head.first <= kept.next < head.next:
            return False
        entries = _entries(storage, kept.next, head.next)
        if entries[0].previous != kept.token:
            return False
        for entry in entries:
            kept.store.apply(self._loads(entry.body))
        return True

    def commit(self, storage: GroupStorage, head: LogHead | None, store: GroupStore) -> KeptGroup | None:
        """Write what changed since the last commit; the store to keep, None if nothing changed."""
        changes = store.changes()
        if changes.empty:
            if head is None:
                return None
            return KeptGroup(head.token, head.next, store, head.snapshot_bytes + head.tail_bytes)
        token = self._new_token()
        if head is None:
            head = LogHead(_BEFORE_ALL, 0, 0, 0, 0)
        try:
            body = self._dumps(changes)
        except Exception as error:
            raise store.not_stored(changes, error, self._dumps) from None
        tail_bytes = head.tail_bytes + len(body)
        entries = head.next + 1 - head.first
        if tail_bytes > max(_SMALL_TAIL_BYTES, head.snapshot_bytes) or entries > _MAX_TAIL_ENTRIES:
            self.clear(storage, head)
            new = self._put_snapshot(storage, head.next, token, store.snapshot())
        else:
            storage.put_entry(head.next, LogEntry(head.token, body))
            new = LogHead(token, head.first, head.next + 1, head.snapshot_bytes, tail_bytes)
        storage.set_head(new)
        return KeptGroup(token, new.next, store, new.snapshot_bytes + new.tail_bytes)

    def clear(self, storage: GroupStorage, head: LogHead) -> None:
        """Remove all entries of a log."""
        for number in range(head.first, head.next):
            storage.remove_entry(number)

    def begin(self, storage: GroupStorage, snapshot: Snapshot) -> LogHead:
        """Write a log of one snapshot."""
        head = self._put_snapshot(storage, 0, self._new_token(), snapshot)
        storage.set_head(head)
        return head

    def _put_snapshot(self, storage: GroupStorage, number: int, token: str, snapshot: Snapshot) -> LogHead:
        body = self._dumps(snapshot)
        storage.put_entry(number, LogEntry("", body))
        return LogHead(token, number, number + 1, len(body), 0)


def _entries(storage: GroupStorage, first: int, end: int) -> list[LogEntry]:
    found = []
    for number in range(first, end):
        entry = storage.entry(number)
        assert entry is not None, "the head names it"
        found.append(entry)
    return found


#: token of the state before the first commit; never empty, so that no change looks like a snapshot
_BEFORE_ALL: Final = "-"
