"""Tables: how operators read and write one state.

A table is made once per operator and state and bound to the entries of one key group at a time.
Tables trust their callers: they check no kind of value and copy nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from yarnflow.errors import InvalidStateUse
from yarnflow.operators.state.cells import TableData
from yarnflow.operators.state.kinds import StateKind
from yarnflow.operators.state.ttl import TimeToLive


class StateTable:
    """Entries by key and namespace of one state of one operator, in the key group bound at present.

    ``namespace`` None means no namespace; windows use one.  What ``get`` returns may be the stored
    object itself: it is to be changed through the table only, or the change is lost with the worker.

    Attributes
    ----------
    name, kind
        As registered.
    ttl : TimeToLive or None
        Entries that nobody used for this time are gone.
    """

    __slots__ = ("name", "kind", "ttl", "_plain", "_spaced", "_plain_values", "_spaced_values", "_now_ms")

    def __init__(self, name: str, kind: StateKind, ttl: TimeToLive | None = None) -> None:
        self.name = name
        self.kind = kind
        self.ttl = ttl
        self._now_ms = 0
        self.bind(TableData(kind, ttl is not None))

    def bind(self, data: TableData) -> None:
        """Work on the entries of another key group."""
        self._plain, self._spaced = data.plain, data.spaced
        self._plain_values, self._spaced_values = data.plain.values, data.spaced.values

    def set_now(self, processing_time_ms: int) -> None:
        """Tell tables with time-to-live the time."""
        self._now_ms = processing_time_ms

    def clean_up(self) -> int:
        """Remove what has expired; returns how many entries."""
        return 0

    def slots(self) -> Iterator[tuple[Any, Any]]:
        """``(key, namespace)`` of all entries of this key group; the table may be changed meanwhile."""
        for key in list(self._plain_values):
            yield key, None
        yield from list(self._spaced_values)  # type: ignore[misc]

    def contains(self, key: Any, namespace: Any = None) -> bool:
        """Whether there is an entry."""
        return self.get(key, namespace, self) is not self

    # every kind

    def get(self, key: Any, namespace: Any = None, default: Any = None) -> Any:
        """The entry: a value, a list (LIST) or a dict (MAP)."""
        if namespace is None:
            return self._plain_values.get(key, default)
        return self._spaced_values.get((key, namespace), default)

    def put(self, key: Any, value: Any, namespace: Any = None) -> None:
        """Replace the entry as a whole; the table keeps ``value`` itself, no copy."""
        if namespace is None:
            self._plain_values[key] = value
            self._plain.touched.add(key)
        else:
            slot = (key, namespace)
            self._spaced_values[slot] = value
            self._spaced.touched.add(slot)

    def remove(self, key: Any, namespace: Any = None) -> None:
        """Remove the entry, if there is one."""
        if namespace is None:
            if key in self._plain_values:
                del self._plain_values[key]
                self._plain.touched.add(key)
        else:
            slot = (key, namespace)
            if slot in self._spaced_values:
                del self._spaced_values[slot]
                self._spaced.touched.add(slot)

    # LIST

    def append(self, key: Any, value: Any, namespace: Any = None) -> None:
        """Add an element to a LIST; only it is made durable, not the list."""
        raise self._not(StateKind.LIST)

    def extend(self, key: Any, values: list[Any], namespace: Any = None) -> None:
        """Add elements to a LIST."""
        raise self._not(StateKind.LIST)

    # MAP

    def get_entry(self, key: Any, entry: Any, namespace: Any = None, default: Any = None) -> Any:
        """One value of a MAP."""
        raise self._not(StateKind.MAP)

    def put_entry(self, key: Any, entry: Any, value: Any, namespace: Any = None) -> None:
        """Put one value into a MAP; only it is made durable, not the map."""
        raise self._not(StateKind.MAP)

    def remove_entry(self, key: Any, entry: Any, namespace: Any = None) -> None:
        """Remove one value of a MAP; a map without values is gone."""
        raise self._not(StateKind.MAP)

    def _not(self, kind: StateKind) -> InvalidStateUse:
        return InvalidStateUse(f"state '{self.name}' is a {self.kind.value} state, not a {kind.value} state")


class ListTable(StateTable):
    """A LIST: entries are Python lists, never empty."""

    __slots__ = ()

    def put(self, key: Any, value: list[Any], namespace: Any = None) -> None:
        if value:
            super().put(key, value, namespace)
        else:
            self.remove(key, namespace)

    def append(self, key: Any, value: Any, namespace: Any = None) -> None:
        cells = self._plain if namespace is None else self._spaced
        slot = key if namespace is None else (key, namespace)
        elements = cells.values.get(slot)
        if elements is None:
            cells.values[slot] = [value]
            cells.touched.add(slot)
        else:
            if slot not in cells.touched_lists:
                cells.touched_lists[slot] = len(elements)
            elements.append(value)

    def extend(self, key: Any, values: list[Any], namespace: Any = None) -> None:
        cells = self._plain if namespace is None else self._spaced
        slot = key if namespace is None else (key, namespace)
        elements = cells.values.get(slot)
        if elements is None:
            if values:
                cells.values[slot] = list(values)
                cells.touched.add(slot)
        else:
            if slot not in cells.touched_lists:
                cells.touched_lists[slot] = len(elements)
            elements.extend(values)


class MapTable(StateTable):
    """A MAP: entries are dicts, never empty."""

    __slots__ = ()

    def put(self, key: Any, value: dict[Any, Any], namespace: Any = None) -> None:
        if value:
            super().put(key, value, namespace)
        else:
            self.remove(key, namespace)

    def get_entry(self, key: Any, entry: Any, namespace: Any = None, default: Any = None) -> Any:
        entries = self.get(key, namespace)
        return default if entries is None else entries.get(entry, default)

    def put_entry(self, key: Any, entry: Any, value: Any, namespace: Any = None) -> None:
        cells = self._plain if namespace is None else self._spaced
        slot = key if namespace is None else (key, namespace)
        entries = cells.values.get(slot)
        if entries is None:
            cells.values[slot] = {entry: value}
            cells.touched.add(slot)
            return
        entries[entry] = value
        touched = cells.touched_maps.get(slot)
        if touched is None:
            cells.touched_maps[slot] = {entry}
        else:
            touched.add(entry)

    def remove_entry(self, key: Any, entry: Any, namespace: Any = None) -> None:
        cells = self._plain if namespace is None else self._spaced
        slot = key if namespace is None else (key, namespace)
        entries = cells.values.get(slot)
        if entries is None or entry not in entries:
            return
        if len(entries) == 1:
            self.remove(key, namespace)
            return
        del entries[entry]
        cells.touched_maps.setdefault(slot, set()).add(entry)
