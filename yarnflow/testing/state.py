"""State that is kept outside of memory, for tests: commits go in, entries come out."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from typing import Any

from yarnflow.operators.state.store import Changes, GroupStore, StoredEntry


class StoredEntries:
    """An :class:`~yarnflow.operators.state.store.EntryReader` over all changes committed so far.

    Attributes
    ----------
    read_keys : list
        Keys asked for, in order.
    """

    def __init__(self) -> None:
        self._store = GroupStore()
        self.read_keys: list[Any] = []

    def commit(self, store: GroupStore) -> None:
        """Take over what changed in a store, and let it forget its entries."""
        changes: Changes = pickle.loads(pickle.dumps(store.changes()))
        self._store.apply(changes)
        store.forget_entries()

    def read(self, operator_id: str, keys: Sequence[Any]) -> Iterator[StoredEntry]:
        self.read_keys += keys
        for entry in self._entries(operator_id):
            if entry.key in keys:
                yield entry

    def keys(self, operator_id: str) -> list[Any]:
        return list(dict.fromkeys(entry.key for entry in self._entries(operator_id)))

    def _entries(self, operator_id: str) -> Iterator[StoredEntry]:
        tables = pickle.loads(pickle.dumps(self._store.snapshot().tables))
        for (operator, state), table in tables.items():
            if operator == operator_id:
                for key, entry in table.plain.items():
                    yield StoredEntry(state, table.kind, table.timed, key, None, entry)
                for (key, namespace), entry in table.spaced.items():
                    yield StoredEntry(state, table.kind, table.timed, key, namespace, entry)
