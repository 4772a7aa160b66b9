"""Tables with time-to-live: every value carries the time of its last access.

Values expire one by one: elements of a LIST and entries of a MAP have a time each, as in Flink.
Entries in memory are kept in the order of their last access, so that those which expired are the first ones.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Any

from yarnflow.operators.state.cells import Cells, last_access_ms
from yarnflow.operators.state.kinds import StateKind
from yarnflow.operators.state.tables import StateTable
from yarnflow.operators.state.ttl import TimeToLive


class ExpiringTable(StateTable):
    """A VALUE, REDUCING or AGGREGATING that expires; stored as ``(last access in ms, value)``."""

    __slots__ = ("_ttl_ms", "_on_read", "_return_expired")

    def __init__(self, name: str, kind: StateKind, ttl: TimeToLive) -> None:
        super().__init__(name, kind, ttl)
        self._ttl_ms, self._on_read, self._return_expired = ttl.ttl_ms, ttl.on_read, ttl.return_expired

    def clean_up(self) -> int:
        assert self.ttl is not None
        if not self.ttl.clean_up:
            return 0
        return self._clean_up(self._plain) + self._clean_up(self._spaced)

    def _clean_up(self, cells: Cells) -> int:
        limit_ms, kind, expired = self._now_ms - self._ttl_ms, self.kind, []
        for slot, entry in cells.values.items():
            if last_access_ms(kind, entry) <= limit_ms:
                expired.append(slot)
            elif cells.ordered:
                break
        for slot in expired:
            del cells.values[slot]
            cells.touched.add(slot)
        return len(expired)

    def _find(self, key: Any, namespace: Any) -> tuple[Cells, Any]:
        return (self._plain, key) if namespace is None else (self._spaced, (key, namespace))

    def _store(self, cells: Cells, slot: Any, entry: Any) -> None:
        """Put an entry last, or remove it if it is empty."""
        cells.values.pop(slot, None)
        if entry:
            cells.values[slot] = entry
        cells.touched.add(slot)

    def get(self, key: Any, namespace: Any = None, default: Any = None) -> Any:
        cells, slot = self._find(key, namespace)
        entry = cells.values.get(slot)
        if entry is None:
            return default
        last_ms, value = entry
        now_ms = self._now_ms
        if last_ms + self._ttl_ms <= now_ms:
            self._store(cells, slot, None)
            return value if self._return_expired else default
        if self._on_read and last_ms != now_ms:
            self._store(cells, slot, (now_ms, value))
        return value

    def put(self, key: Any, value: Any, namespace: Any = None) -> None:
        cells, slot = self._find(key, namespace)
        self._store(cells, slot, (self._now_ms, value))


class ExpiringListTable(ExpiringTable):
    """A LIST whose elements expire; stored as ``[(last access in ms, element), …]``, earliest first."""

    __slots__ = ()

    def get(self, key: Any, namespace: Any = None, default: Any = None) -> Any:
        cells, slot = self._find(key, namespace)
        elements = cells.values.get(slot)
        if elements is None:
            return default
        now_ms = self._now_ms
        kept = elements[self._expired(elements) :]
        shown = elements if self._return_expired else kept
        if self._on_read and kept and kept[0][0] != now_ms:
            kept = [(now_ms, value) for _, value in kept]
            self._store(cells, slot, kept)
        elif len(kept) != len(elements):
            self._store(cells, slot, kept)
        return [value for _, value in shown] if shown else default

    def put(self, key: Any, value: list[Any], namespace: Any = None) -> None:
        cells, slot = self._find(key, namespace)
        if value or slot in cells.values:
            self._store(cells, slot, [(self._now_ms, element) for element in value])

    def append(self, key: Any, value: Any, namespace: Any = None) -> None:
        self.extend(key, [value], namespace)

    def extend(self, key: Any, values: list[Any], namespace: Any = None) -> None:
        cells, slot = self._find(key, namespace)
        now_ms = self._now_ms
        added = [(now_ms, value) for value in values]
        elements = cells.values.get(slot)
        if elements is None:
            if added:
                self._store(cells, slot, added)
        # rewritten only where that at least halves it, else the append alone is recorded
        elif 2 * self._expired(elements) > len(elements):
            self._store(cells, slot, elements[self._expired(elements) :] + added)
        elif added:
            cells.touched_lists.setdefault(slot, len(elements))
            elements.extend(added)
            cells.values[slot] = cells.values.pop(slot)

    def _expired(self, elements: list[tuple[int, Any]]) -> int:
        """How many elements, the first ones, have expired."""
        limit_ms = self._now_ms - self._ttl_ms
        if elements[0][0] > limit_ms:
            return 0
        return bisect_right(elements, limit_ms, key=lambda element: element[0])


class ExpiringMapTable(ExpiringTable):
    """A MAP whose entries expire; stored as ``{key: (last access in ms, value)}``, earliest first."""

    __slots__ = ()

    def get(self, key: Any, namespace: Any = None, default: Any = None) -> Any:
        cells, slot = self._find(key, namespace)
        entries = cells.values.get(slot)
        if entries is None:
            return default
        shown = {entry: value for entry, (_, value) in entries.items()} if self._return_expired else None
        self._drop_expired(cells, slot, entries)
        if shown is None:
            shown = {entry: value for entry, (_, value) in entries.items()}
        if self._on_read:
            for entry in list(entries):
                self._touch(cells, slot, entries, entry)
        return shown or default

    def put(self, key: Any, value: dict[Any, Any], namespace: Any = None) -> None:
        cells, slot = self._find(key, namespace)
        if value or slot in cells.values:
            now_ms = self._now_ms
            self._store(cells, slot, {entry: (now_ms, item) for entry, item in value.items()})

    def get_entry(self, key: Any, entry: Any, namespace: Any = None, default: Any = None) -> Any:
        cells, slot = self._find(key, namespace)
        entries = cells.values.get(slot)
        found = None if entries is None else entries.get(entry)
        if entries is None or found is None:
            return default
        last_ms, value = found
        if last_ms + self._ttl_ms <= self._now_ms:
            self.remove_entry(key, entry, namespace)
            return value if self._return_expired else default
        if self._on_read:
            self._touch(cells, slot, entries, entry)
        return value

    def put_entry(self, key: Any, entry: Any, value: Any, namespace: Any = None) -> None:
        cells, slot = self._find(key, namespace)
        entries = cells.values.get(slot)
        if entries is None:
            self._store(cells, slot, {entry: (self._now_ms, value)})
            return
        entries.pop(entry, None)
        entries[entry] = (self._now_ms, value)
        cells.touched_maps.setdefault(slot, set()).add(entry)
        cells.values[slot] = cells.values.pop(slot)
        self._drop_expired(cells, slot, entries)

    def remove_entry(self, key: Any, entry: Any, namespace: Any = None) -> None:
        cells, slot = self._find(key, namespace)
        entries = cells.values.get(slot)
        if entries is not None and entry in entries:
            self._drop(cells, slot, entries, entry)

    def _touch(self, cells: Cells, slot: Any, entries: dict[Any, Any], entry: Any) -> None:
        last_ms, value = entries[entry]
        if last_ms != self._now_ms:
            del entries[entry]
            entries[entry] = (self._now_ms, value)
            cells.touched_maps.setdefault(slot, set()).add(entry)
            cells.values[slot] = cells.values.pop(slot)

    def _drop_expired(self, cells: Cells, slot: Any, entries: dict[Any, Any]) -> None:
        limit_ms, expired = self._now_ms - self._ttl_ms, []
        for entry, (last_ms, _) in entries.items():
            if last_ms > limit_ms:
                break
            expired.append(entry)
        for entry in expired:
            self._drop(cells, slot, entries, entry)

    def _drop(self, cells: Cells, slot: Any, entries: dict[Any, Any], entry: Any) -> None:
        del entries[entry]
        if entries:
            cells.touched_maps.setdefault(slot, set()).add(entry)
        else:
            self._store(cells, slot, None)
