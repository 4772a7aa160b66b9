"""The rows of a savepoint's state, read by a Spark session of this command's own."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from yarnflow.client.saved_state import SavedState
from yarnflow.core.checkpoint.program_shape import ProgramShape
from yarnflow.errors import SavepointNotFound

if TYPE_CHECKING:
    from yarnflow.spark.state.reader import StateStore, StateTable


def state_table(state: SavedState, part: str, limit: int, *, as_json: bool = False) -> str:
    """Rows of one operator's state, as text or JSON.

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
    from yarnflow.spark.state.reader import describe, read_state, reader_session

    # one line instead of what Spark's launcher says about it
    find_java()
    with reader_session() as spark:
        store = find_store(state, describe(spark, state.uri), part)
        table = read_state(spark, state.uri, store.query, store.operator, limit, store.store)
    return _json(table) if as_json else format_table(table)


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
    rows = [table.columns, *table.rows]
    widths = [max(len(row[column]) for row in rows) for column in range(len(table.columns))]
    lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
    if not table.rows:
        lines.append("(no rows)")
    if table.more:
        lines.append("… and more; see --limit")
    return "\n".join(lines)


def _json(table: StateTable) -> str:
    rows = [dict(zip(table.columns, row, strict=True)) for row in table.rows]
    return json.dumps({"rows": rows, "more": table.more}, indent=2, ensure_ascii=False)
