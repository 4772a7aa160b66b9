"""The state of some operators in a key group, taken from where each of them had it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from yarnflow.operators.state.backends.group_storage import GroupHead, LogEntry
from yarnflow.operators.state.backends.saved_group import read_saved
from yarnflow.operators.state.store import Snapshot


@dataclass(frozen=True, slots=True)
class GroupPart:
    """What some operators keep in a group, beside what others do."""

    head: GroupHead
    #: all of the head's, by number
    entries: Mapping[int, LogEntry]
    #: ids
    operators: Collection[str]


def put_together(parts: Iterable[GroupPart], loads: Callable[[bytes], Any]) -> Snapshot:
    """What operators keep in a group, each of them in one of the parts.

    Parameters
    ----------
    parts : iterable of GroupPart
    loads : callable
        Pickle's.

    Raises
    ------
    InvariantViolated
        Entries that a head names are missing.
    """
    found = Snapshot({}, {}, {})
    for part in parts:
        snapshot, operators = read_saved(part.head, part.entries, loads), part.operators
        found.tables.update((n, table) for n, table in snapshot.tables.items() if n[0] in operators)
        found.timers.update((o, timers) for o, timers in snapshot.timers.items() if o in operators)
        found.progress.update((n, v) for n, v in snapshot.progress.items() if _operator_of(n) in operators)
    return found


def _operator_of(name: Hashable) -> object:
    """Whose progress it is: its name has the operator second."""
    return name[1] if isinstance(name, tuple) else None
