"""A whole query over streams: what Spark gets, what comes out, what it keeps.

Never rewrites a query but for Flink's window functions: Spark gets the user's own text.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlglot import exp
from sqlglot.errors import OptimizeError, SqlglotError
from sqlglot.optimizer.qualify import qualify

from yarnflow.errors import InvalidExpression, SchemaError
from yarnflow.graph.schema import Field, Schema
from yarnflow.graph.sql.dialect import parse_sql
from yarnflow.graph.sql.event_time import QueryFacts, TimeKind, query_facts
from yarnflow.graph.sql.expressions import unknown_field
from yarnflow.graph.sql.flink_windows import as_spark_windows
from yarnflow.graph.types import checked_schema


@dataclass(frozen=True, slots=True)
class Query:
    """A query as far as the client can tell."""

    #: what Spark gets
    text: str
    #: ``Schema(())`` where only Spark can tell the fields; its event time is told all the same
    schema: Schema
    facts: QueryFacts


def looked_at(query: str, views: Mapping[str, Schema]) -> Query:
    """A SQL query over streams, each a view of the name it is under.

    Raises
    ------
    InvalidExpression
        The text is no single query, a view of the program is not used in it, or it cannot run on streams.
    UnknownField
        A column that none of the views has, where all tables are views of known fields.
    """
    tree = parse_sql(query, query)
    if not isinstance(tree, exp.Query):
        raise InvalidExpression(f"'{query}' is no query; only SELECT is possible")
    rewritten = as_spark_windows(tree)
    if rewritten is not None:
        tree, query = rewritten, rewritten.sql(dialect="spark")
    local = {cte.alias.lower() for cte in tree.find_all(exp.CTE)}
    tables = {t.name.lower() for t in tree.find_all(exp.Table)} - local
    unused = [view for view in views if view.lower() not in tables]
    if unused:
        others = ", ".join(sorted(tables - {view.lower() for view in views}))
        more = f", which reads {others}" if others else ""
        raise InvalidExpression(f"the stream '{unused[0]}' is not used in the query{more}")
    facts = query_facts(tree, {view: schema.event_time for view, schema in views.items()})
    known = {view.lower(): schema.as_view for view, schema in views.items()}
    complete = tables <= known.keys() and all(schema.known for schema in known.values())
    found = _resolved(tree, known) if complete and tables else _named(tree)
    time = _event_time(facts, found)
    return Query(query, Schema(found.fields, found.scalar, None, time), facts)


def _event_time(facts: QueryFacts, found: Schema) -> str | None:
    """The one column of a result that is its event time, as later views have it."""
    if len(facts.times) != 1 or facts.changes:
        return None
    ((name, kind),) = facts.times.items()
    if kind is TimeKind.WINDOW:
        return found.free_time_name
    field = found.find(name)
    return name if field is None else field.name


def _named(tree: exp.Query) -> Schema:
    names = tree.named_selects
    if not names or any(not name or name == "*" for name in names):
        return Schema(())
    return checked_schema(tuple(Field(name) for name in names))


def _resolved(tree: Any, views: Mapping[str, Schema]) -> Schema:
    if any(isinstance(projection, exp.Aliases) for projection in tree.selects):
        return Schema(())
    for projection in tree.selects:
        if not isinstance(projection, (exp.Alias, exp.Column, exp.Star, exp.Dot)):
            text = projection.sql(dialect="spark")
            raise SchemaError(f"'{text}' needs a name; write '{text} AS name'")
    columns: dict[str, object] = {
        view: {field.name: field.type or "string" for field in schema.fields}
        for view, schema in views.items()
    }
    try:
        resolved = qualify(tree.copy(), schema=columns, dialect="spark", quote_identifiers=False)
    except OptimizeError as exc:
        message = str(exc).splitlines()[0]
        every = Schema(tuple(f for schema in views.values() for f in schema.fields))
        quoted = message.split("'")[1] if message.count("'") >= 2 else ""
        if _is_of_struct(tree, quoted):
            return _named(tree)
        # the parser's messages vary; only a name it quotes and no view has is certainly wrong
        if quoted and "could not be resolved" in message and every.find(quoted) is None:
            raise unknown_field(quoted, every) from exc
        return Schema(())
    except (SqlglotError, ValueError, KeyError, AttributeError):
        return Schema(())
    starred = any(p.is_star for p in tree.selects)
    # resolving lowers the case of names: written ones are taken as written, starred ones as in the views
    original = {f.name.lower(): f for schema in views.values() for f in schema.fields}
    shown = [p.alias_or_name for p in (resolved if starred else tree).selects]
    fields = []
    for name, projection in zip(shown, resolved.selects, strict=True):
        bare = projection.this if isinstance(projection, exp.Alias) else projection
        source = original.get(bare.name.lower()) if isinstance(bare, exp.Column) else None
        if starred and source is not None and source.name.lower() == name.lower():
            name = source.name
        fields.append(Field(name, source.type if source is not None and len(views) == 1 else None))
    if not fields or any(not field.name or field.name == "*" for field in fields):
        return Schema(())
    return checked_schema(tuple(fields))


def _is_of_struct(tree: exp.Query, name: str) -> bool:
    """Whether a name is a field of a column, such as ``window.start``, or what Spark calls a window."""
    tables = {source.alias_or_name.lower() for source in tree.find_all(exp.Table, exp.Subquery, exp.CTE)}
    columns = [column for column in tree.find_all(exp.Column) if column.name.lower() == name.lower()]
    return any(column.table and column.table.lower() not in tables for column in columns) or any(
        name.lower() == added for added in ("window", "session_window")
    )
