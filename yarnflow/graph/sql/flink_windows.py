"""Flink's window functions in SQL as Spark's.

``TABLE(TUMBLE(TABLE bids, DESCRIPTOR(ts), INTERVAL '10' MINUTES))`` becomes a subquery with a column
``window(ts, …)``, and ``window_start``, ``window_end`` and ``window_time`` what they are of it.  Where a
query groups by them it groups by the window, since that is what Spark drops state by.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NoReturn

from sqlglot import exp

from yarnflow.errors import InvalidExpression
from yarnflow.graph.sql.dialect import WINDOW_TABLES

#: the column of a window table's subquery
_WINDOW: Final = "flink_window"
_BOUNDS: Final = {"window_start": "start", "window_end": "end"}
_TIME: Final = "window_time"
#: functions of GROUP BY that Flink had before
_GROUPED: Final = frozenset(
    f"{name}_{part}"
    for name in ("TUMBLE", "HOP", "SESSION")
    for part in ("START", "END", "ROWTIME", "PROCTIME")
)


def as_spark_windows(tree: exp.Query) -> exp.Query | None:
    """A query with Spark's windows instead of Flink's; None = it has none of Flink's.

    Raises
    ------
    InvalidExpression
        A form that Spark has no counterpart of.
    """
    _refuse_grouped(tree)
    made = tree.copy()
    found = [node for node in made.find_all(exp.Table) if _window_call(node) is not None]
    if not found:
        return None
    selects: dict[int, exp.Select] = {}
    aliases: dict[int, list[str]] = {}
    for table in found:
        select = table.find_ancestor(exp.Select)
        assert select is not None, "a table stands in a SELECT"
        call = _window_call(table)
        assert call is not None, "looked for above"
        name = table.alias or _source(call).name
        table.replace(_subquery(call, name))
        selects[id(select)] = select
        aliases.setdefault(id(select), []).append(name)
    result = made
    for key, select in selects.items():
        changed = _with_bounds(select, aliases[key])
        if changed is not select:
            if select is made:
                result = changed
            else:
                select.replace(changed)
    return result


def _refuse_grouped(tree: exp.Query) -> None:
    for node in tree.find_all(exp.Anonymous):
        name = str(node.this).upper()
        if name in _GROUPED or (name in WINDOW_TABLES and not _has_table(node)):
            _refuse(
                f"{name}(…) of GROUP BY",
                "GROUP BY window(ts, '10 minutes') and window.start, or FROM TABLE(TUMBLE(TABLE …))",
            )


def _has_table(call: exp.Anonymous) -> bool:
    return bool(call.expressions) and isinstance(call.expressions[0], exp.Table)


def _window_call(table: exp.Table) -> exp.Anonymous | None:
    call = table.this
    if isinstance(call, exp.Anonymous) and str(call.this).upper() == "TABLE" and len(call.expressions) == 1:
        (call,) = call.expressions
    if isinstance(call, exp.Anonymous) and str(call.this).upper() in WINDOW_TABLES and _has_table(call):
        return call
    return None


def _source(call: exp.Anonymous) -> exp.Table:
    table = call.expressions[0]
    assert isinstance(table, exp.Table), "seen before"
    return table


def _subquery(call: exp.Anonymous, alias: str) -> exp.Subquery:
    name = str(call.this).upper()
    source = _source(call).copy()
    source.set("partition", None)
    if name == "CUMULATE":
        _refuse("CUMULATE", "a Python window with ContinuousEventTimeTrigger, or TUMBLE of its step")
    if len(call.expressions) < 3:
        wanted = f"{name}(TABLE t, DESCRIPTOR(ts), INTERVAL …)"
        _refuse(f"{name} of {len(call.expressions)} arguments", wanted)
    time = _time(name, call.expressions[1])
    lengths = [_interval(name, argument) for argument in call.expressions[2:]]
    if name == "SESSION" and len(lengths) == 1:
        window = exp.Anonymous(this="session_window", expressions=[time, *lengths])
    elif name == "HOP" and len(lengths) in (2, 3):
        # Flink: slide, size; Spark: size, slide
        window = exp.Anonymous(this="window", expressions=[time, lengths[1], lengths[0], *lengths[2:]])
    elif name == "TUMBLE" and len(lengths) in (1, 2):
        offset = [lengths[0].copy(), lengths[1]] if len(lengths) == 2 else []
        window = exp.Anonymous(this="window", expressions=[time, lengths[0], *offset])
    else:
        _refuse(f"{name} of {len(call.expressions)} arguments", "the arguments that Flink documents")
    select = exp.select("*", exp.alias_(window, _WINDOW)).from_(source)
    return _named(select, alias)


def _time(name: str, argument: exp.Expr) -> exp.Expr:
    inner = argument.expressions if isinstance(argument, exp.Anonymous) else []
    if str(argument.this).upper() != "DESCRIPTOR" or len(inner) != 1:
        _refuse(f"{name} by {argument.sql(dialect='spark')}", "DESCRIPTOR(column) as its second argument")
    column: exp.Expr = inner[0]
    return column.copy()


def _interval(name: str, argument: exp.Expr) -> exp.Expr:
    if not isinstance(argument, exp.Interval) or argument.unit is None:
        _refuse(f"{name} of {argument.sql(dialect='spark')}", "INTERVAL '10' MINUTES")
    return exp.Literal.string(f"{argument.this.name} {argument.unit.name.lower()}")


def _refuse(what: str, instead: str) -> NoReturn:
    raise InvalidExpression(f"{what} is not possible here; write {instead}")


# --- what stands on such a table -----------------------------------------------------------


def _with_bounds(select: exp.Select, aliases: Sequence[str]) -> exp.Select:
    """The SELECT with what ``window_start`` and its siblings are; around it another one for window_time."""
    for equality in list(select.find_all(exp.EQ)):
        if isinstance(equality.left, exp.Column) and isinstance(equality.right, exp.Column):
            _join_by_window((equality.left, equality.right), aliases)
    group = select.args.get("group")
    if group is None:
        _replace_bounds(select, aliases)
        return select
    keys = [key for key in group.expressions if _bound_of(key, aliases) is None]
    if len(keys) == len(group.expressions):
        _refuse("GROUP BY without window_start and window_end", "GROUP BY …, window_start, window_end")
    window = exp.column(_WINDOW, table=aliases[0] if len(aliases) > 1 else None)
    group.set("expressions", [*keys, window])
    if not any(_bound_of(item.unalias(), aliases) == _TIME for item in select.expressions):
        _replace_bounds(select, aliases)
        return select
    # Spark knows the time of a window only behind the aggregation
    names = [(item.alias_or_name, _bound_of(item.unalias(), aliases) == _TIME) for item in select.expressions]
    others = [item for item, (_, timed) in zip(select.expressions, names, strict=True) if not timed]
    select.set("expressions", [*others, window.copy()])
    _replace_bounds(select, aliases)
    time = exp.Anonymous(this=_TIME, expressions=[exp.column(_WINDOW)])
    outer = [exp.alias_(time.copy(), name) if timed else exp.column(name) for name, timed in names]
    return exp.select(*outer).from_(_named(select.copy(), "windows"))


def _named(query: exp.Query, name: str) -> exp.Subquery:
    return exp.Subquery(this=query, alias=exp.TableAlias(this=exp.to_identifier(name)))


def _bound_of(tree: exp.Expr, aliases: Sequence[str]) -> str | None:
    if not isinstance(tree, exp.Column) or tree.name.lower() not in (*_BOUNDS, _TIME):
        return None
    return tree.name.lower() if not tree.table or tree.table in aliases else None


def _join_by_window(sides: tuple[exp.Column, exp.Column], aliases: Sequence[str]) -> None:
    if all(_bound_of(side, aliases) in _BOUNDS for side in sides) and sides[0].name == sides[1].name:
        for side in sides:
            side.replace(exp.column(_WINDOW, table=side.table or None))


def _replace_bounds(select: exp.Select, aliases: Sequence[str]) -> None:
    for column in list(select.find_all(exp.Column)):
        bound = _bound_of(column, aliases)
        if bound is None or column.find_ancestor(exp.Select) is not select:
            continue
        window = exp.column(_WINDOW, table=column.table or None)
        made: exp.Expr
        if bound == _TIME:
            made = exp.Anonymous(this=_TIME, expressions=[window])
        else:
            made = exp.Dot(this=window, expression=exp.to_identifier(_BOUNDS[bound]))
        top = column.parent is select
        column.replace(exp.alias_(made, column.name) if top else made)
