"""What a query over streams does with event time, state and results.

Pure: follows names of columns through SELECT, FROM, JOIN and GROUP BY; Spark resolves the query itself later
and refuses what it cannot run.  Flink counterpart: time attributes and changelog modes of its planner.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from sqlglot import exp

from yarnflow.errors import InvalidExpression
from yarnflow.graph.sql.functions import is_aggregate


class TimeKind(Enum):
    """How a column holds event time."""

    #: a timestamp
    TIME = "TIME"
    #: a window of it, as Spark's ``window(…)`` gives it
    WINDOW = "WINDOW"


@dataclass(frozen=True, slots=True)
class QueryFacts:
    """What a query does."""

    #: Spark keeps state for it
    stateful: bool
    #: a result may replace an earlier one
    changes: bool
    #: columns of the result with event time, name → kind
    times: Mapping[str, TimeKind]
    #: parts of the query whose state no watermark ever drops, for people
    keeps: tuple[str, ...]


def query_facts(tree: exp.Query, views: Mapping[str, str | None]) -> QueryFacts:
    """What a query over streams does.

    Parameters
    ----------
    tree : sqlglot.exp.Query
        The query.
    views : mapping
        Name of each stream in it → its column of event time; None = it has none.

    Raises
    ------
    InvalidExpression
        It sorts a stream, uses OVER on one, or goes on with results that change.
    """
    looked = _Query({name.lower(): time for name, time in views.items()})
    result = looked.relation(tree, {})
    return QueryFacts(looked.stateful, result.changes, dict(result.times), tuple(looked.keeps))


@dataclass(frozen=True, slots=True)
class _Relation:
    """A table of the query: of a stream, or static."""

    streaming: bool = False
    changes: bool = False
    #: name in lower case → kind
    times: Mapping[str, TimeKind] = field(default_factory=dict)


_Scope = dict[str, _Relation]
_WINDOWS: Final = ("window", "session_window")
#: comparison → whether its first side is the lesser one
_LESSER_FIRST: Final[Mapping[type[exp.Expr], bool]] = {
    exp.LT: True, exp.LTE: True, exp.GT: False, exp.GTE: False
}  # fmt: skip
_RANKS: Final = ("row_number", "rank", "dense_rank")


class _Query:
    """Looks at a query from its innermost part outwards."""

    def __init__(self, views: Mapping[str, str | None]) -> None:
        self._views = views
        self.stateful = False
        self.keeps: list[str] = []

    def relation(self, tree: exp.Expr | None, known: _Scope) -> _Relation:
        """What a query, or a part of it, gives."""
        if isinstance(tree, exp.Query) and tree.ctes:
            known = dict(known)
            for cte in tree.ctes:
                known[cte.alias.lower()] = self.relation(cte.this, known)
        match tree:
            case exp.Subquery():
                return self.relation(tree.this, known)
            case exp.SetOperation():
                return self._set_operation(tree, known)
            case exp.Select():
                return self._select(tree, known)
            case exp.Table() if isinstance(tree.this, exp.Identifier) and not tree.db:
                name = tree.name.lower()
                return known.get(name) or self._view(name)
        return _Relation()

    def _view(self, name: str) -> _Relation:
        if name not in self._views:
            return _Relation()
        time = self._views[name]
        return _Relation(True, False, {} if time is None else {time.lower(): TimeKind.TIME})

    def _set_operation(self, tree: exp.SetOperation, known: _Scope) -> _Relation:
        first, second = self.relation(tree.left, known), self.relation(tree.right, known)
        times = {name: kind for name, kind in first.times.items() if second.times.get(name) is kind}
        made = _Relation(first.streaming or second.streaming, first.changes or second.changes, times)
        if isinstance(tree, exp.Union) and not tree.args.get("distinct"):
            return made
        return self._distinct(made, f"{tree.key.upper()} without ALL", times)

    def _distinct(self, made: _Relation, what: str, times: Mapping[str, TimeKind]) -> _Relation:
        if not made.streaming:
            return made
        self._begin_state(made, what)
        if times:
            return made
        self.keeps.append(
            f"{what} keeps every row for ever; use drop_duplicates(…), or select event time as well"
        )
        return _Relation(True, True, made.times)

    def _begin_state(self, made: _Relation, what: str) -> None:
        if made.changes:
            raise InvalidExpression(
                f"{what} of results that change is not possible: they come from an aggregation without a "
                "window; "
                "GROUP BY window(…) of event time there"
            )
        self.stateful = True

    # --- SELECT ---------------------------------------------------------------------------

    def _select(self, select: exp.Select, known: _Scope) -> _Relation:
        scope: _Scope = {}
        source = select.args.get("from_")
        if source is not None:
            scope[source.this.alias_or_name.lower()] = self.relation(source.this, known)
        for join in select.args.get("joins") or ():
            self._join(select, join, scope, known)
        streaming = any(one.streaming for one in scope.values())
        changes = any(one.changes for one in scope.values())
        if streaming:
            _refuse_windows(select)
        read = _Relation(streaming, changes)
        columns = _Columns(scope)
        if _aggregates(select):
            changes = self._aggregation(select, read, columns) or changes
        made = _Relation(streaming, changes, columns.of_result(select))
        if select.args.get("distinct"):
            return self._distinct(made, "DISTINCT", made.times)
        if streaming and select.args.get("limit"):
            self._begin_state(made, "LIMIT")
        return made

    def _aggregation(self, select: exp.Select, read: _Relation, columns: _Columns) -> bool:
        """Whether the results of an aggregation change."""
        if not read.streaming:
            return False
        self._begin_state(read, "an aggregation")
        keys = list(_group_keys(select))
        if any(columns.kind(key) is not None for key in keys):
            columns.windowed = True
            return False
        if keys:
            shown = ", ".join(key.sql(dialect="spark") for key in keys)
            self.keeps.append(
                f"GROUP BY {shown} keeps every group for ever; GROUP BY window(…) of event time as well"
            )
        return True

    def _join(self, select: exp.Select, join: exp.Join, scope: _Scope, known: _Scope) -> None:
        name = join.this.alias_or_name.lower()
        joined = self.relation(join.this, known)
        left = [key for key, one in scope.items() if one.streaming]
        scope[name] = joined
        if not left or not joined.streaming:
            return
        for one in (joined, *(scope[key] for key in left)):
            self._begin_state(one, "a join")
        inner = not join.side and join.kind.upper() in ("", "INNER", "CROSS")
        conditions = [join.args.get("on")]
        where = select.args.get("where")
        if inner and where is not None:
            conditions.append(where.this)
        using = {column.name.lower() for column in join.args.get("using") or ()}
        bounds = _Bounds(_Columns(scope), name)
        for condition in conditions:
            bounds.add(condition)
        of_left = {time for key in left for time in scope[key].times}
        if not bounds.closed and not (using & joined.times.keys() & of_left):
            self.keeps.append(
                f"the join with {join.this.alias_or_name} keeps both streams for ever; compare their "
                "event times "
                "as well, both ways: b.ts BETWEEN a.ts - INTERVAL 1 HOUR AND a.ts"
            )


class _Columns:
    """Which expressions over a scope are event time."""

    def __init__(self, scope: _Scope) -> None:
        self._scope = scope
        #: the SELECT groups by a window
        self.windowed = False

    def kind(self, tree: exp.Expr) -> TimeKind | None:
        """What an expression is; None = no event time."""
        match tree:
            case exp.Alias() | exp.Paren():
                return self.kind(tree.this)
            case exp.Column() if not isinstance(tree.this, exp.Star) and not tree.db:
                owner = self.owner(tree)
                if owner is not None:
                    return self._scope[owner].times[tree.name.lower()]
                if self.windowed and not tree.table and tree.name.lower() in _WINDOWS:
                    return TimeKind.WINDOW
            case exp.Anonymous() if tree.expressions:
                inner = self.kind(tree.expressions[0])
                name = str(tree.this).lower()
                if inner is not None and name in _WINDOWS:
                    return TimeKind.WINDOW
                if inner is TimeKind.WINDOW and name == "window_time":
                    return TimeKind.TIME
        return None

    def owner(self, column: exp.Column) -> str | None:
        """The table whose event time a column is."""
        wanted = column.table.lower()
        for name, one in self._scope.items():
            if column.name.lower() in one.times and wanted in ("", name):
                return name
        return None

    def owners(self, tree: exp.Expr) -> set[str]:
        """The tables whose event time an expression is made of."""
        return {owner for column in tree.find_all(exp.Column) if (owner := self.owner(column)) is not None}

    def of_result(self, select: exp.Select) -> dict[str, TimeKind]:
        """Columns of the SELECT's result that are event time."""
        times: dict[str, TimeKind] = {}
        for projection in select.expressions:
            if projection.is_star:
                of_one = projection.table.lower() if isinstance(projection, exp.Column) else ""
                star = projection.this if isinstance(projection, exp.Column) else projection
                dropped = {item.name.lower() for item in star.args.get("except_") or ()}
                for name, one in self._scope.items():
                    if of_one in ("", name):
                        times.update({key: kind for key, kind in one.times.items() if key not in dropped})
                continue
            kind = self.kind(projection)
            if kind is not None:
                name = projection.alias_or_name
                if not name and isinstance(projection, exp.Anonymous):
                    name = str(projection.this)
                times[name.lower()] = kind
        return times


class _Bounds:
    """Whether conditions hold two streams together in time."""

    def __init__(self, columns: _Columns, joined: str) -> None:
        self._columns = columns
        self._joined = joined
        self._joined_is_later = self._joined_is_earlier = False

    @property
    def closed(self) -> bool:
        """Whether neither stream may be ahead of the other by any time."""
        return self._joined_is_later and self._joined_is_earlier

    def add(self, condition: exp.Expr | None) -> None:
        """A condition that holds for all results."""
        match condition:
            case exp.And():
                self.add(condition.left)
                self.add(condition.right)
            case exp.Paren():
                self.add(condition.this)
            case exp.EQ():
                if self._columns.kind(condition.left) and self._columns.kind(condition.right):
                    self._order(condition.left, condition.right)
                    self._order(condition.right, condition.left)
            case exp.Between():
                self._order(condition.args["low"], condition.this)
                self._order(condition.this, condition.args["high"])
            case exp.LT() | exp.LTE() | exp.GT() | exp.GTE():
                sides = (condition.left, condition.right)
                self._order(*(sides if _LESSER_FIRST[type(condition)] else reversed(sides)))

    def _order(self, lesser: exp.Expr, greater: exp.Expr) -> None:
        before, behind = self._columns.owners(lesser), self._columns.owners(greater)
        if self._joined in behind and before - {self._joined}:
            self._joined_is_later = True
        if self._joined in before and behind - {self._joined}:
            self._joined_is_earlier = True


def _aggregates(select: exp.Select) -> bool:
    if select.args.get("group") is not None:
        return True
    having = select.args.get("having")
    parts = [*select.expressions, *([having] if having is not None else [])]
    return any(is_aggregate(node) for part in parts for node in _outside_queries(part))


def _outside_queries(tree: exp.Expr) -> Iterator[exp.Expr]:
    return tree.walk(prune=lambda node: isinstance(node, exp.Query) and node is not tree)


def _group_keys(select: exp.Select) -> Iterator[exp.Expr]:
    """What a SELECT groups by, positions and names of results replaced by what they stand for."""
    group = select.args.get("group")
    if group is None:
        return
    if group.args.get("all"):
        yield from (p for p in select.expressions if not any(map(is_aggregate, p.walk())))
    named = {p.alias.lower(): p.this for p in select.expressions if isinstance(p, exp.Alias)}
    listed = list(group.expressions)
    for more in ("cube", "rollup", "grouping_sets"):
        for found in group.args.get(more) or ():
            listed += found.expressions if isinstance(found, exp.Expr) else ()
    for key in listed:
        if isinstance(key, exp.Literal) and key.is_int and 0 < int(key.name) <= len(select.expressions):
            yield select.expressions[int(key.name) - 1]
        elif isinstance(key, exp.Column) and not key.table and key.name.lower() in named:
            yield named[key.name.lower()]
        else:
            yield key


def _refuse_windows(select: exp.Select) -> None:
    order = select.args.get("order")
    if order is not None:
        shown = order.sql(dialect="spark").strip()
        raise InvalidExpression(f"{shown}: a stream cannot be sorted; drop ORDER BY")
    qualify = select.args.get("qualify")
    for part in (*select.expressions, *([qualify] if qualify is not None else [])):
        for node in _outside_queries(part):
            if isinstance(node, exp.Window):
                raise InvalidExpression(_without_over(node))


def _without_over(node: exp.Window) -> str:
    shown = node.this.sql(dialect="spark")
    if node.this.key.lower() in ("rownumber", "rank", "denserank") or shown.lower().rstrip("()") in _RANKS:
        return (
            f"{shown} OVER is not possible on a stream; for the first of each key call drop_duplicates(…), "
            "for the largest of each window GROUP BY window(…) and take max_by(x, y), or for the n largest "
            "slice(sort_array(collect_list(struct(y, x)), false), 1, n); without windows write a "
            "KeyedProcessFunction"
        )
    return f"{shown} OVER is not possible on a stream; GROUP BY window(…) of event time instead"
