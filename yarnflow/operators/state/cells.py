"""Entries of one state in one key group, with what changed since the last commit.

A *slot* says whose entry it is: the key alone, or ``(key, namespace)`` where there is a namespace;
the two live in cells of their own, so that no key can look like the other form.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field
from typing import Any

from yarnflow.errors import InvariantViolated
from yarnflow.operators.state.kinds import StateKind

Slot = Hashable


@dataclass(slots=True)
class CellChanges:
    """What changed in cells since the last commit; picklable."""

    #: whole entries, new or replaced
    put: dict[Slot, Any] = field(default_factory=dict)
    removed: list[Slot] = field(default_factory=list)
    #: LIST: elements appended to an entry that was there before
    appended: dict[Slot, list[Any]] = field(default_factory=dict)
    #: MAP: entries of the user's put, and keys of the user's removed, in a map that was there before
    map_put: dict[Slot, dict[Any, Any]] = field(default_factory=dict)
    map_removed: dict[Slot, list[Any]] = field(default_factory=dict)

    def entries(self) -> Iterator[tuple[Slot, Any]]:
        """What was put or added, whole or in part."""
        yield from self.put.items()
        yield from self.appended.items()
        yield from self.map_put.items()


class Cells:
    """Values by slot.  Tables write :attr:`values` themselves and note each write in a touched set."""

    __slots__ = ("values", "ordered", "touched", "touched_lists", "touched_maps")

    def __init__(self, values: dict[Slot, Any] | None = None, ordered: bool = True) -> None:
        self.values: dict[Slot, Any] = {} if values is None else values
        #: with time-to-live: entries stand in the order of their last access
        self.ordered = ordered
        #: slots put or removed whole
        self.touched: set[Slot] = set()
        #: LIST: slot → length at the last commit; only where elements were appended
        self.touched_lists: dict[Slot, int] = {}
        #: MAP: slot → keys of the user's put or removed; only where the map was there before
        self.touched_maps: dict[Slot, set[Any]] = {}

    def changes(self) -> CellChanges | None:
        """What changed since the last call; None = nothing."""
        if not (self.touched or self.touched_lists or self.touched_maps):
            return None
        values, found = self.values, CellChanges()
        for slot in self.touched:
            if slot in values:
                found.put[slot] = values[slot]
            else:
                found.removed.append(slot)
        for slot, start in self.touched_lists.items():
            if slot not in self.touched:
                found.appended[slot] = values[slot][start:]
        for slot, user_keys in self.touched_maps.items():
            if slot not in self.touched:
                entries = values[slot]
                found.map_put[slot] = {key: entries[key] for key in user_keys if key in entries}
                found.map_removed[slot] = [key for key in user_keys if key not in entries]
        self.touched.clear()
        self.touched_lists.clear()
        self.touched_maps.clear()
        return found

    def apply(self, changes: CellChanges) -> None:
        """Redo changes of an earlier run."""
        values = self.values
        for slot in changes.removed:
            values.pop(slot, None)
        values.update(changes.put)
        for slot, elements in changes.appended.items():
            values[slot].extend(elements)
        for slot, user_keys in changes.map_removed.items():
            entries = values[slot]
            for key in user_keys:
                entries.pop(key, None)
        for slot, put in changes.map_put.items():
            values[slot].update(put)

    def order_by_access(self, changes: CellChanges, kind: StateKind) -> None:
        """Move what changed behind the rest, earliest access first, as the run that wrote it did."""
        values = self.values
        moved = {*changes.put, *changes.appended, *changes.map_put, *changes.map_removed}
        for slot in sorted(moved, key=lambda slot: last_access_ms(kind, values[slot])):
            values[slot] = values.pop(slot)


def last_access_ms(kind: StateKind, entry: Any) -> int:
    """When an entry of a state with time-to-live was last written, or read where reading counts."""
    if kind is StateKind.LIST:
        return int(max(element[0] for element in entry))
    if kind is StateKind.MAP:
        return int(max(value[0] for value in entry.values()))
    return int(entry[0])


@dataclass(slots=True)
class TableChanges:
    """What changed in one state of one key group since the last commit."""

    kind: StateKind
    #: values carry the time of their last access, for time-to-live
    timed: bool
    #: entries without a namespace; None = no change
    plain: CellChanges | None
    #: entries with one
    spaced: CellChanges | None


@dataclass(slots=True)
class TableSnapshot:
    """All entries of one state of one key group."""

    kind: StateKind
    timed: bool
    plain: dict[Slot, Any]
    spaced: dict[Slot, Any]


class TableData:
    """One state of one key group at rest; tables work on it.

    Attributes
    ----------
    check : callable or None
        Looks at what changed and raises where it is not what the state was registered for.
    where : str
        Operator and state, for errors; empty = nobody has registered it.
    """

    __slots__ = ("kind", "timed", "plain", "spaced", "check", "where")

    def __init__(
        self,
        kind: StateKind,
        timed: bool,
        plain: dict[Slot, Any] | None = None,
        spaced: dict[Slot, Any] | None = None,
        ordered: bool = True,
    ) -> None:
        self.kind = kind
        self.timed = timed
        self.check: Callable[[TableChanges], None] | None = None
        self.where = ""
        self.plain = Cells(plain, ordered)
        self.spaced = Cells(spaced, ordered)

    def changes(self) -> TableChanges | None:
        """What changed since the last call; None = nothing.  Raises what the check raises."""
        plain, spaced = self.plain.changes(), self.spaced.changes()
        if plain is None and spaced is None:
            return None
        found = TableChanges(self.kind, self.timed, plain, spaced)
        if self.check is not None:
            self.check(found)
        return found

    def apply(self, changes: TableChanges) -> None:
        """Redo changes of an earlier run."""
        if (changes.kind, changes.timed) != (self.kind, self.timed):
            raise InvariantViolated(f"changes of a {changes.kind.value} state for a {self.kind.value} state")
        for cells, changed in ((self.plain, changes.plain), (self.spaced, changes.spaced)):
            if changed is not None:
                cells.apply(changed)
                if self.timed:
                    cells.order_by_access(changed, self.kind)

    def snapshot(self) -> TableSnapshot:
        """All entries, not copied: to be pickled before the next change."""
        return TableSnapshot(self.kind, self.timed, self.plain.values, self.spaced.values)

    @property
    def empty(self) -> bool:
        """No entry at all."""
        return not (self.plain.values or self.spaced.values)
