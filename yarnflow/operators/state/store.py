"""All state and timers of one key group of one level.

A store is advanced by one batch, then asked for what changed; both are made durable by the caller.
An attempt that failed leaves its store half advanced: it is thrown away and loaded again.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from typing import Any

from yarnflow.errors import StateIncompatible
from yarnflow.operators.state.cells import TableChanges, TableData, TableSnapshot
from yarnflow.operators.state.kinds import StateKind
from yarnflow.operators.state.timers import TimerChanges, TimerData, TimerSnapshot


@dataclass(slots=True)
class Changes:
    """What changed in a store since the last commit.

    Refers to live values: to be pickled, in one go, before the store is used again.
    """

    #: (operator id, state name) → changes of the state
    tables: dict[tuple[str, str], TableChanges] = field(default_factory=dict)
    #: operator id → changes of its timers
    timers: dict[str, TimerChanges] = field(default_factory=dict)
    #: name → new value of what else the runner keeps, such as watermarks
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


class GroupStore:
    """State of all operators in one key group (or of one subtask of operators that are not keyed)."""

    __slots__ = ("_tables", "_timers", "_progress", "_progress_changed")

    def __init__(self) -> None:
        self._tables: dict[tuple[str, str], TableData] = {}
        self._timers: dict[str, TimerData] = {}
        self._progress: dict[Hashable, Any] = {}
        self._progress_changed: set[Hashable] = set()

    @classmethod
    def load(cls, snapshot: Snapshot | None, tail: Iterable[Changes] = ()) -> GroupStore:
        """The store as of the last of some changes made since a snapshot; the snapshot is used up.

        Parameters
        ----------
        snapshot : Snapshot or None
            None: the store began empty.
        tail : iterable of Changes
            All changes since the snapshot, in the order of their commits.
        """
        store = cls()
        if snapshot is not None:
            for name, table in snapshot.tables.items():
                store._tables[name] = TableData(table.kind, table.timed, table.plain, table.spaced)
            store._timers = {operator: TimerData(timers) for operator, timers in snapshot.timers.items()}
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

    def snapshot(self) -> Snapshot:
        """Everything; what changed since the last :meth:`changes` is still told by the next one."""
        return Snapshot(
            {name: table.snapshot() for name, table in self._tables.items() if not table.empty},
            {operator: timers.snapshot() for operator, timers in self._timers.items() if not timers.empty},
            dict(self._progress),
        )

    def table(self, operator_id: str, name: str, kind: StateKind, timed: bool) -> TableData:
        """Entries of one state; empty ones where there were none.

        Raises
        ------
        StateIncompatible
            What is stored under the name is of another kind.
        """
        found = self._tables.get((operator_id, name))
        if found is None or (found.empty and (found.kind, found.timed) != (kind, timed)):
            found = self._tables[operator_id, name] = TableData(kind, timed)
        elif (found.kind, found.timed) != (kind, timed):
            raise StateIncompatible(
                f"operator '{operator_id}': state '{name}' is stored as {_words(found.kind, found.timed)}, "
                f"the program registers it as {_words(kind, timed)}; give the new state another name"
            )
        return found

    def timers(self, operator_id: str) -> TimerData:
        """Timers of one operator."""
        found = self._timers.get(operator_id)
        if found is None:
            found = self._timers[operator_id] = TimerData()
        return found

    def get_progress(self, name: Hashable, default: Any = None) -> Any:
        """A small value of the runner."""
        return self._progress.get(name, default)

    def put_progress(self, name: Hashable, value: Any) -> None:
        """Keep a small value; written whole when it changed."""
        if name not in self._progress or self._progress[name] != value:
            self._progress[name] = value
            self._progress_changed.add(name)

    def next_processing_time_ms(self) -> int | None:
        """When the earliest processing timer of any operator is due."""
        times = (timers.processing.next_ms() for timers in self._timers.values())
        return min((time for time in times if time is not None), default=None)


def _words(kind: StateKind, timed: bool) -> str:
    return f"{kind.value} state with{'' if timed else 'out'} time-to-live"
