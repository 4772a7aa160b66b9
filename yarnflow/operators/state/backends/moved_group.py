"""The state of some operators in a key group, taken from where each of them had it."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass

from yarnflow.errors import StateIncompatible
from yarnflow.operators.state.backends.group_storage import GroupHead, LogEntry
from yarnflow.operators.state.backends.missing_classes import TolerantReader, missing_class
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


def put_together(parts: Iterable[GroupPart], names: Mapping[str, str] | None = None) -> Snapshot:
    """What operators keep in a group, each of them in one of the parts.

    Objects of classes that cannot be imported are no hindrance where nobody wants them.

    Parameters
    ----------
    parts : iterable of GroupPart
    names : mapping, optional
        Operator id → what it is called in errors.

    Raises
    ------
    StateIncompatible
        What is wanted holds an object of a class that cannot be imported.
    InvariantViolated
        Entries that a head names are missing.
    """
    found, reader = Snapshot({}, {}, {}), TolerantReader()
    for part in parts:
        operators = part.operators
        snapshot = read_saved(part.head, part.entries, reader.loads, operators)
        found.tables.update((n, table) for n, table in snapshot.tables.items() if n[0] in operators)
        found.timers.update((o, timers) for o, timers in snapshot.timers.items() if o in operators)
        found.progress.update((n, v) for n, v in snapshot.progress.items() if _operator_of(n) in operators)
    if reader.found_missing:
        _check_complete(found, names or {})
    return found


def _check_complete(found: Snapshot, names: Mapping[str, str]) -> None:
    everything: tuple[tuple[str, str, object], ...] = (
        *((operator, f"state '{state}'", table) for (operator, state), table in found.tables.items()),
        *((operator, "its timers", timers) for operator, timers in found.timers.items()),
    )
    for operator, where, value in everything:
        if missing := missing_class(value):
            raise StateIncompatible(
                f"operator '{names.get(operator, operator)}': {where} holds an object of {missing}, which "
                "the workers cannot import: ship its module as before (-pyfs), or leave the operator out"
            )


def _operator_of(name: Hashable) -> object:
    """Whose progress it is: its name has the operator second."""
    return name[1] if isinstance(name, tuple) else None
