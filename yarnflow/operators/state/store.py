"""All state and timers of one key group of one level.

A store is advanced by one batch, then asked for what changed; both are made durable by the caller.
An attempt that failed leaves its store half advanced: it is thrown away and loaded again.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from yarnflow.errors import InvalidStateUse, StateIncompatible
from yarnflow.operators.state.cells import TableChanges, TableData, TableSnapshot
from yarnflow.operators.state.kinds import StateKind
from yarnflow.operators.state.timers import TimerChanges, TimerData, TimerSnapshot
from yarnflow.operators.state.type_names import reads
from yarnflow.operators.types.coerce import shown

#: first part of the names of declared types among progress
TYPE: Final = "type"


@dataclass(slots=True)
class Changes:
    """What changed in a store since the last commit.

    Refers to live values: to be pickled, in one go, before the store is used again.
    """

    #: (operator id, state name) → changes of the state
    tables: dict[tuple[str, str], TableChanges] = field(default_factory=dict)
    #: operator id → changes of its timers
    timers: dict[str, TimerChanges] = field(default_factory=dict)
    #: name → new value of what else the runner keeps, such as watermarks; the second part of a name is the
    #: id of an operator
    progress: dict[Hashable, Any] = field(default_factory=dict)

    @property
    def empty(self) -> bool:
        """Nothing changed: nothing needs to be written."""
        return not (self.tables or self.timers or self.progress)


@dataclass(slots=True)
class Snapshot:
    """All of a store.  Refers to live values, as :class:`Changes` do."""

    tables: dict[tuple[str, str], TableSnapshot]
    timers: dict[str, TimerSnapshot]
    progress: dict[Hashable, Any]

    @property
    def empty(self) -> bool:
        """There is nothing in it."""
        return not (self.tables or self.timers or self.progress)


class EntryReader(Protocol):
    """Port to the state of one key group where it is too large for memory.

    What is read comes in pieces, each once: entries by the name of their state, those that were asked for
    and maybe others with them.
    """

    def read(self, operator_id: str, keys: Iterable[Any]) -> Iterable[Mapping[str, TableSnapshot]]:
        """All entries of these keys, in all states and namespaces of an operator, as last committed."""

    def read_all(self, operator_id: str) -> Iterable[Mapping[str, TableSnapshot]]:
        """All entries of an operator."""

    def read_expiring(
        self, operator_id: str, ttl_ms: int, now_ms: int
    ) -> Iterable[Mapping[str, TableSnapshot]]:
        """Some entries, so that all are looked at once in the time after which they expire."""

    def timers(self, operator_id: str) -> TimerData:
        """Timers of an operator, which are read as they come up."""


class GroupStore:
    """State of all operators in one key group (or of one subtask of operators that are not keyed).

    Parameters
    ----------
    reader : EntryReader, optional
        Where entries are read from that were not touched yet; None: all are in memory.
    """

    __slots__ = ("_tables", "_timers", "_progress", "_progress_changed", "_reader", "_read_keys")

    def __init__(self, reader: EntryReader | None = None) -> None:
        self._reader = reader
        #: operator id → keys whose entries are in memory; only with a reader
        self._read_keys: dict[str, set[Any]] = {}
        self._tables: dict[tuple[str, str], TableData] = {}
        self._timers: dict[str, TimerData] = {}
        self._progress: dict[Hashable, Any] = {}
        self._progress_changed: set[Hashable] = set()

    @classmethod
    def load(
        cls, snapshot: Snapshot | None, tail: Iterable[Changes] = (), reader: EntryReader | None = None
    ) -> GroupStore:
        """The store as of the last of some changes made since a snapshot; the snapshot is used up.

        Parameters
        ----------
        snapshot : Snapshot or None
            None: the store began empty.
        tail : iterable of Changes
            All changes since the snapshot, in the order of their commits.
        reader : EntryReader, optional
            As for the constructor.
        """
        store = cls(reader)
        if snapshot is not None:
            for name, table in snapshot.tables.items():
                store._tables[name] = TableData(table.kind, table.timed, table.plain, table.spaced)
            for operator, timers in snapshot.timers.items():
                store._timers[operator] = TimerData.in_memory(timers)
            store._progress = snapshot.progress
        for changes in tail:
            store.apply(changes)
        return store

    def apply(self, changes: Changes) -> None:
        """Redo one commit of another worker: for a store that is behind."""
        for name, table in changes.tables.items():
            if name not in self._tables:
                self._tables[name] = TableData(table.kind, table.timed)
            self._tables[name].apply(table)
        for operator, timers in changes.timers.items():
            self.timers(operator).apply(timers)
        self._progress.update(changes.progress)

    def changes(self) -> Changes:
        """What changed since the last call."""
        found = Changes()
        for name, table in self._tables.items():
            if (changed := table.changes()) is not None:
                found.tables[name] = changed
        for operator, timers in self._timers.items():
            if (timers_changed := timers.changes()) is not None:
                found.timers[operator] = timers_changed
        found.progress = {name: self._progress[name] for name in self._progress_changed}
        self._progress_changed.clear()
        return found

    def not_stored(self, changes: Changes, error: Exception, dumps: Callable[[Any], bytes]) -> Exception:
        """The error for changes that cannot be pickled, with state, key and value; else the error itself."""
        for name, table in changes.tables.items():
            for cells in (table.plain, table.spaced):
                for slot, entry in () if cells is None else cells.entries():
                    try:
                        dumps(entry)
                    except Exception as reason:
                        where = self._tables[name].where or f"operator '{name[0]}', state '{name[1]}'"
                        return InvalidStateUse(
                            f"{where}: {shown(entry)} was stored under {shown(slot)} and cannot be kept: "
                            f"{reason}; store plain values, or objects that can be pickled"
                        )
        return error

    def snapshot(self) -> Snapshot:
        """Everything; what changed since the last :meth:`changes` is still told by the next one."""
        return Snapshot(
            {name: table.snapshot() for name, table in self._tables.items() if not table.empty},
            {operator: timers.snapshot() for operator, timers in self._timers.items() if not timers.empty},
            dict(self._progress),
        )

    def prefetch(self, operator_id: str, keys: Iterable[Any]) -> None:
        """Have the entries of some keys of an operator in memory before they are used."""
        if self._reader is None:
            return
        read = self._read_keys.setdefault(operator_id, set())
        missing = set(keys) - read
        if missing:
            read |= missing
            self._take_in(operator_id, self._reader.read(operator_id, missing))

    def prefetch_all(self, operator_id: str) -> None:
        """Have all entries of an operator in memory."""
        if self._reader is not None:
            self._take_in(operator_id, self._reader.read_all(operator_id))

    def prefetch_expiring(self, operator_id: str, ttl_ms: int, now_ms: int) -> None:
        """Have some entries in memory that may have expired; in time this comes to all."""
        if self._reader is not None:
            self._take_in(operator_id, self._reader.read_expiring(operator_id, ttl_ms, now_ms))

    def _take_in(self, operator_id: str, pieces: Iterable[Mapping[str, TableSnapshot]]) -> None:
        for piece in pieces:
            for state, entries in piece.items():
                found = self._tables.get((operator_id, state))
                if found is None:
                    found = self._tables[operator_id, state] = self._new_table(entries.kind, entries.timed)
                elif not _same_form(found, entries):
                    raise _incompatible(operator_id, state, entries, found)
                found.plain.values.update(entries.plain)
                found.spaced.values.update(entries.spaced)

    def _new_table(self, kind: StateKind, timed: bool) -> TableData:
        return TableData(kind, timed, ordered=self._reader is None)

    def table(self, operator_id: str, name: str, kind: StateKind, timed: bool) -> TableData:
        """Entries of one state; empty ones where there were none.

        Raises
        ------
        StateIncompatible
            What is stored under the name is of another kind.
        """
        found = self._tables.get((operator_id, name))
        if found is None or (found.empty and (found.kind, found.timed) != (kind, timed)):
            found = self._tables[operator_id, name] = self._new_table(kind, timed)
        elif (found.kind, found.timed) != (kind, timed):
            raise _incompatible(operator_id, name, found, TableData(kind, timed))
        return found

    def entries_by_operator(self) -> dict[str, int]:
        """Operator id → keys and namespaces in memory, once for each state."""
        found: dict[str, int] = {}
        for (operator_id, _), table in self._tables.items():
            entries = len(table.plain.values) + len(table.spaced.values)
            found[operator_id] = found.get(operator_id, 0) + entries
        return found

    def check_type(self, operator_id: str, name: str, declared: str) -> None:
        """Note the declared type of a state, for whoever opens the store next.

        Raises
        ------
        StateIncompatible
            Entries of the state were written as another type.
        """
        noted = (TYPE, operator_id, name)
        stored = self._progress.get(noted, "")
        if not declared or stored == declared:
            return
        table = self._tables.get((operator_id, name))
        empty = self._reader is None and (table is None or table.empty)
        if stored and not empty and not reads(declared, stored):
            raise StateIncompatible(
                f"operator '{operator_id}': state '{name}' is stored as {stored}, the program registers it "
                f"as {declared}; give the new state another name"
            )
        self.put_progress(noted, declared)

    def timers(self, operator_id: str) -> TimerData:
        """Timers of one operator."""
        found = self._timers.get(operator_id)
        if found is None:
            reader = self._reader
            found = TimerData.in_memory() if reader is None else reader.timers(operator_id)
            self._timers[operator_id] = found
        return found

    def get_progress(self, name: Hashable, default: Any = None) -> Any:
        """A small value of the runner."""
        return self._progress.get(name, default)

    def progress(self) -> dict[Hashable, Any]:
        """All small values."""
        return dict(self._progress)

    def put_progress(self, name: Hashable, value: Any) -> None:
        """Keep a small value; written whole when it changed."""
        if name not in self._progress or self._progress[name] != value:
            self._progress[name] = value
            self._progress_changed.add(name)


def _same_form(one: TableData | TableSnapshot, other: TableData | TableSnapshot) -> bool:
    return (one.kind, one.timed) == (other.kind, other.timed)


def _incompatible(
    operator_id: str, name: str, stored: TableData | TableSnapshot, registered: TableData
) -> StateIncompatible:
    return StateIncompatible(
        f"operator '{operator_id}': state '{name}' is stored as {_words(stored.kind, stored.timed)}, the "
        f"program registers it as {_words(registered.kind, registered.timed)}; "
        "give the new state another name"
    )


def _words(kind: StateKind, timed: bool) -> str:
    return f"{kind.value} state with{'' if timed else 'out'} time-to-live"
