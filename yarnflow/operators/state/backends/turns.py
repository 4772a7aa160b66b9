"""Which form a group's state has: ``state.backend.type``.

Each backend reads what the other wrote: a group that comes up in the other form is written anew in this
one, within its turn.  Flink counterpart: ``StateBackend``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Protocol

from yarnflow.operators.state.backends.group_log import GroupLog, KeptGroup
from yarnflow.operators.state.backends.group_pages import GroupPages, PagedGroup
from yarnflow.operators.state.backends.group_storage import GroupStorage, LogHead, PagesHead
from yarnflow.operators.state.store import GroupStore, Snapshot

HASHMAP: Final = "hashmap"
ROCKSDB: Final = "rocksdb"


class GroupTurn(Protocol):
    """A group's state from the first of its blocks in a micro-batch to the last."""

    @property
    def store(self) -> GroupStore:
        """What operators work on."""

    def commit(self) -> KeptGroup | None:
        """Write what changed; what a worker may keep for the group's next turn."""


class Backends:
    """Opens groups in either form.

    Parameters
    ----------
    dumps, loads : callable
        Pickle's, or others of that form.
    new_token : callable
        A text that no other call in any process gives.
    stable_hash : callable
        Hash of a key, the same in every process.
    """

    def __init__(
        self,
        dumps: Callable[[Any], bytes],
        loads: Callable[[bytes], Any],
        new_token: Callable[[], str],
        stable_hash: Callable[[Any], int],
    ) -> None:
        self._log = GroupLog(dumps, loads, new_token)
        self._pages = GroupPages(dumps, loads, stable_hash)

    def open(self, backend: str, storage: GroupStorage, kept: KeptGroup | None = None) -> GroupTurn:
        """The state of a group as last committed.

        Parameters
        ----------
        backend : str
            ``hashmap`` or ``rocksdb``: the form in which it is committed.
        storage : GroupStorage
            Of the group.
        kept : KeptGroup, optional
            What this worker kept of the group.
        """
        head = storage.head()
        return self._open_pages(storage, head) if backend == ROCKSDB else self._open_log(storage, head, kept)

    def write(self, backend: str, storage: GroupStorage, snapshot: Snapshot) -> None:
        """Write a group's state where there is none yet.

        Parameters
        ----------
        backend : str
            ``hashmap`` or ``rocksdb``: in which form.
        storage : GroupStorage
            Of the group.
        snapshot : Snapshot
            All of it; it is used up.
        """
        if backend == ROCKSDB:
            group = self._pages.open(storage, None)
            group.fill(snapshot)
            group.commit()
        else:
            self._log.begin(storage, snapshot)

    def _open_log(
        self, storage: GroupStorage, head: LogHead | PagesHead | None, kept: KeptGroup | None
    ) -> GroupTurn:
        if isinstance(head, PagesHead):
            head, kept = self._log.begin(storage, self._pages.open(storage, head).take_out()), None
        return _LogTurn(self._log, storage, head, self._log.open(storage, head, kept))

    def _open_pages(self, storage: GroupStorage, head: LogHead | PagesHead | None) -> GroupTurn:
        if not isinstance(head, LogHead):
            return _PagesTurn(self._pages.open(storage, head))
        snapshot = self._log.open(storage, head).snapshot()
        self._log.clear(storage, head)
        converted = self._pages.open(storage, None)
        converted.fill(snapshot)
        return _PagesTurn(converted)


class _LogTurn:
    def __init__(
        self, log: GroupLog, storage: GroupStorage, head: LogHead | None, store: GroupStore
    ) -> None:
        self._log = log
        self._storage = storage
        self._head = head
        self.store = store

    def commit(self) -> KeptGroup | None:
        return self._log.commit(self._storage, self._head, self.store)


class _PagesTurn:
    def __init__(self, group: PagedGroup) -> None:
        self._group = group
        self.store = group.store

    def commit(self) -> None:
        self._group.commit()
