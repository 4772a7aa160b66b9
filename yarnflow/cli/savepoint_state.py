"""The rows of a savepoint's state, read by a Spark session of this command's own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from yarnflow.cli.element_state import ENTRIES, STATES, element_operators, entry_rows, state_rows
from yarnflow.cli.output import Shown
from yarnflow.core.checkpoint.program_shape import ProgramShape
from yarnflow.errors import SavepointNotFound
from yarnflow.fs.saved_state import SavedState
from yarnflow.graph.state.shape import ELEMENT_QUERY

if TYPE_CHECKING:
    from yarnflow.spark.state.reader import StateStore, StateTable

#: characters of a value in a table; --json has all
_WIDEST: Final = 120


def shown_state(state: SavedState, part: str, limit: int) -> Shown:
    """Rows of one operator's state, as a table and as a document.

    Parameters
    ----------
    part : str
        Name or uid of the operator, or name of its query where that has one operator.
    limit : int
        Rows at most.

    Raises
    ------
    SavepointNotFound
        It has no such state; the message lists what it has.
    """
    from yarnflow.spark.launch.java import find_java
    from yarnflow.spark.launch.spark_home import LOG4J_CONFIG
    from yarnflow.spark.state.reader import describe, read_state, reader_session

    # one line instead of what Spark's launcher says about it
    find_java()
    operators = element_operators(state.metadata.program, part)
    if operators is not None:
        return _element_state(state, operators, limit)
    with reader_session(LOG4J_CONFIG) as spark:
        store = find_store(state, describe(spark, state.uri), part)
        table = read_state(spark, state.uri, store.query, store.operator, limit, store.store)
    return Shown(_document(table), format_table(table))


def _element_state(state: SavedState, operators: frozenset[str], limit: int) -> Shown:
    from yarnflow.spark.launch.spark_home import LOG4J_CONFIG
    from yarnflow.spark.state.element_state import read_elements
    from yarnflow.spark.state.reader import StateTable, reader_session

    with reader_session(LOG4J_CONFIG) as spark:
        found = read_elements(spark, state.uri, ELEMENT_QUERY, operators, limit)
    states = StateTable(STATES, tuple(state_rows(state.metadata.program, found)))
    entries = StateTable(ENTRIES, tuple(entry_rows(found)), found.more)
    text = "\n\n".join(map(format_table, (states, entries) if operators else (states,)))
    return Shown({"states": _dicts(states), **_document(entries)}, text)


def find_store(state: SavedState, stores: Sequence[StateStore], part: str) -> StateStore:
    """The store that a user means by an operator or query.

    Raises
    ------
    SavepointNotFound
        None, or several.
    """
    named = _operators_called(state.metadata.program, part)
    found = [s for s in stores if (s.query, s.operator) in named or s.query == part]
    # operators with several stores have one that is called so
    default = [s for s in found if s.store == "default"] or found
    if len(default) == 1:
        return default[0]
    exact = [s for s in stores if part in (f"{s.query}/{s.operator}", f"{s.query}/{s.operator}/{s.store}")]
    if exact:
        return exact[0]
    listed = ", ".join(f"{s.query}/{s.operator} ({s.operator_name})" for s in stores)
    several = f"means {len(default)} states of" if default else "names no state in"
    raise SavepointNotFound(f"{part!r} {several} {state.uri}; it has {listed or 'none'}")


def _operators_called(program: ProgramShape, name: str) -> set[tuple[str, int]]:
    """(query, Spark's number) of the operators with a name or uid; Spark numbers them in their order."""
    return {
        (query.name, number)
        for query in program.queries
        for number, operator in enumerate(query.operators)
        if name in (operator.uid, operator.name)
        or (name in (query.uid, query.operator) and len(query.operators) == 1)
    }


def format_table(table: StateTable) -> str:
    """Columns side by side; a last line when there are more rows."""
    rows = [table.columns, *(tuple(map(_cut, row)) for row in table.rows)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(table.columns))]
    lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
    if not table.rows:
        lines.append("(no rows)")
    if table.more:
        lines.append("… and more; see --limit")
    return "\n".join(lines)


def _cut(text: str) -> str:
    return text if len(text) <= _WIDEST else f"{text[: _WIDEST - 1]}…"


def _document(table: StateTable) -> dict[str, Any]:
    return {"rows": _dicts(table), "more": table.more}


def _dicts(table: StateTable) -> list[dict[str, str]]:
    return [dict(zip(table.columns, row, strict=True)) for row in table.rows]
