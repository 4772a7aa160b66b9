"""What a key group holds, told entry by entry."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final, cast

from yarnflow.operators.state.cells import TableSnapshot
from yarnflow.operators.state.kinds import StateKind
from yarnflow.operators.state.store import TYPE, Snapshot

EVENT_TIMERS: Final = "event timers"
PROCESSING_TIMERS: Final = "processing timers"


@dataclass(frozen=True, slots=True)
class SavedEntry:
    """One entry of a state, or one timer."""

    operator_id: str
    #: as registered; :data:`EVENT_TIMERS`, :data:`PROCESSING_TIMERS`
    state: str
    #: ``value``, ``list``, … with the type, where one was declared, and time-to-live; ``timer``
    kind: str
    key: Any
    #: a window; None = none
    namespace: Any
    #: of a timer its time, ms since the epoch
    value: Any


@dataclass(slots=True)
class SavedState:
    """What is known of one state of one operator."""

    kind: str
    keys: int = 0
    entries: int = 0


@dataclass(slots=True)
class Overview:
    """All states of all operators, counted group by group."""

    #: (operator id, state) → state
    states: dict[tuple[str, str], SavedState] = field(default_factory=dict)

    def add(self, entries: list[SavedEntry]) -> None:
        """Count the entries of one more key group, whose keys are in no other."""
        keys: dict[tuple[str, str], set[Any]] = {}
        counts: Counter[tuple[str, str]] = Counter()
        for entry in entries:
            name = entry.operator_id, entry.state
            self.states.setdefault(name, SavedState(entry.kind))
            keys.setdefault(name, set()).add(entry.key)
            counts[name] += 1
        for name, count in counts.items():
            self.states[name].keys += len(keys[name])
            self.states[name].entries += count


def entries_of(snapshot: Snapshot) -> Iterator[SavedEntry]:
    """All entries and timers of a key group."""
    for (operator_id, state), table in snapshot.tables.items():
        declared = snapshot.progress.get((TYPE, operator_id, state), "")
        kind = table.kind.value + (f" of {declared}" if declared else "")
        kind += ", time-to-live" if table.timed else ""
        for key, entry in table.plain.items():
            yield SavedEntry(operator_id, state, kind, key, None, _value(table, entry))
        for slot, entry in table.spaced.items():
            key, namespace = cast("tuple[Any, Any]", slot)
            yield SavedEntry(operator_id, state, kind, key, namespace, _value(table, entry))
    for operator_id, timers in snapshot.timers.items():
        for state, found in ((EVENT_TIMERS, timers.event), (PROCESSING_TIMERS, timers.processing)):
            for timestamp_ms, key, namespace in found:
                yield SavedEntry(operator_id, state, "timer", key, namespace, timestamp_ms)


def _value(table: TableSnapshot, entry: Any) -> Any:
    """An entry without the times of its last accesses."""
    if not table.timed:
        return entry
    if table.kind is StateKind.LIST:
        return [value for _, value in entry]
    if table.kind is StateKind.MAP:
        return {key: value for key, (_, value) in entry.items()}
    return entry[1]
