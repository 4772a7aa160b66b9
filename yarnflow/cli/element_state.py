"""The state of operators on elements as text and as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from yarnflow.core.checkpoint.program_shape import OperatorShape, ProgramShape
from yarnflow.graph.state.shape import ELEMENT_QUERY

if TYPE_CHECKING:
    from yarnflow.operators.state.entries import SavedEntry
    from yarnflow.spark.state.element_state import ElementState

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_TIMER: Final = "timer"
#: columns of states, and of entries
STATES: Final = ("operator", "uid", "state", "kind", "keys", "entries")
ENTRIES: Final = ("state", "key", "window", "value")


def element_operators(program: ProgramShape, part: str) -> frozenset[str] | None:
    """Ids of the operators on elements that a name, a uid or the query means.

    Returns
    -------
    frozenset of str or None
        Empty = the query, all of them; None = none is called so.
    """
    query = next((query for query in program.queries if query.name == ELEMENT_QUERY), None)
    if query is None:
        return None
    if part == query.name:
        return frozenset()
    return frozenset(o.operator_hash for o in query.operators if part in (o.uid, o.name)) or None


def state_rows(program: ProgramShape, found: ElementState) -> list[tuple[str, ...]]:
    """Rows of :data:`STATES`, in the order of the operators."""
    shapes = {
        operator.operator_hash: (position, operator)
        for query in program.queries
        for position, operator in enumerate(query.operators)
    }
    unknown = (len(shapes), OperatorShape("", "", ""))

    def rows() -> Iterator[tuple[int, tuple[str, ...]]]:
        for (operator_id, state), known in found.overview.states.items():
            position, shape = shapes.get(operator_id, unknown)
            name = shape.name or operator_id
            yield position, (name, shape.uid, state, known.kind, f"{known.keys}", f"{known.entries}")

    return [row for _, row in sorted(rows())]


def entry_rows(found: ElementState) -> list[tuple[str, ...]]:
    """Rows of :data:`ENTRIES`."""
    return [_row(entry) for entry in found.entries]


def _row(entry: SavedEntry) -> tuple[str, ...]:
    window = "" if entry.namespace is None else repr(entry.namespace)
    value = _time(entry.value) if entry.kind == _TIMER else repr(entry.value)
    return entry.state, repr(entry.key), window, value


def _time(value_ms: Any) -> str:
    try:
        return (_EPOCH + timedelta(milliseconds=value_ms)).isoformat(timespec="milliseconds")
    except OverflowError:  # as far away as a time can be
        return f"{value_ms} ms"
