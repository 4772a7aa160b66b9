"""What the client can tell about Spark SQL expressions without Spark.

Decides whether an expression parses, which fields it needs, what its results are called and,
where that is certain, their types.  Never rewrites an expression: Spark gets the user's own
text.  The parser is loaded only when the first expression is looked at.
Spark counterparts: ``CatalystSqlParser``, ``ResolveReferences``.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from yarnflow.errors import InvalidExpression, SchemaError, UnknownField
from yarnflow.graph.schema import Field, Schema
from yarnflow.graph.sql.functions import is_aggregate
from yarnflow.graph.types import DataType, checked_schema, parse_type, quote

if TYPE_CHECKING:
    from sqlglot import exp

#: inferred types that are the same in Spark; the parser's decimals and small integers are not
_CERTAIN_TYPES: Final = frozenset(
    ["boolean", "int", "bigint", "float", "double", "string", "binary", "date", "timestamp", "timestamp_ntz"]
)


@dataclass(frozen=True, slots=True)
class Projection:
    """One parsed expression of a list."""

    text: str
    tree: exp.Expr

    @property
    def bare(self) -> exp.Expr:
        """The expression without its alias."""
        from sqlglot import exp

        tree = self.tree
        return tree.this if isinstance(tree, (exp.Alias, exp.Aliases)) else tree


def parse(text: str) -> Projection:
    """Parse one expression, with or without ``AS name``.

    Raises
    ------
    InvalidExpression
        It does not parse, is a list or a whole query, or has a subquery.
    """
    from sqlglot import exp

    from yarnflow.graph.sql.dialect import parse_sql

    if not isinstance(text, str):
        raise InvalidExpression(f"{text!r} is no expression; write it as text")
    if not text.strip():
        raise InvalidExpression("an empty expression")
    # parsed as a select list, so that trailing junk is seen for what it is
    query = parse_sql(f"SELECT {text}", text)
    projections = query.expressions
    if not isinstance(query, exp.Select) or any(v for k, v in query.args.items() if k != "expressions" and v):
        raise InvalidExpression(f"'{text}' is more than one expression")
    if len(projections) != 1:
        raise InvalidExpression(f"'{text}' is {len(projections)} expressions; pass them one by one")
    if query.find(exp.Subquery, exp.Exists) or any(s is not query for s in query.find_all(exp.Select)):
        raise InvalidExpression(f"'{text}': a subquery is not possible here; use sql()")
    tree: exp.Expr = projections[0]
    tree.pop()
    return Projection(text, tree)


# --- fields ------------------------------------------------------------------------


def unknown_field(name: str, schema: Schema) -> UnknownField:
    """The error for a name the stream does not have, with the nearest one it has."""
    lower = {field.lower(): field for field in schema.names}
    near = difflib.get_close_matches(name.lower(), lower, n=1)
    hint = f"; did you mean '{lower[near[0]]}'?" if near else "."
    shown = ", ".join(schema.names[:16]) + (", …" if len(schema.names) > 16 else "")
    return UnknownField(f"no field '{name}' in the stream{hint} Fields: {shown}")


def check_fields(projection: Projection, schema: Schema) -> None:
    """Every column the expression names is a field of the schema, in any case.

    Raises
    ------
    UnknownField
        Naming the column, the nearest field and all fields.
    """
    if not schema.known:
        return
    for parts in _column_paths(projection.tree):
        field = schema.find(parts[0])
        if field is None:
            raise unknown_field(parts[0], schema)
        _nested_type(field, parts)


def fields_named(text: str, schema: Schema) -> frozenset[str] | None:
    """The schema's fields that an expression reads; None = it may be all of them, or that is not certain."""
    from sqlglot import exp

    tree = parse(text).tree
    if any(not isinstance(star.parent, exp.Count) for star in tree.find_all(exp.Star)):
        return None
    # the parameters of a function's function may be called like a field
    fields = [schema.find(parts[0]) for parts in _column_paths(tree)]
    if None in fields:
        return None
    # the parser takes the unit of date_trunc(unit, …) for a word of the language, and it may be a field
    words = {schema.find(word) for word in re.findall(r"\w+", text)}
    return frozenset(field.name for field in {*fields, *words} if field is not None)


def _column_paths(tree: exp.Expr) -> Iterator[list[str]]:
    from sqlglot import exp

    for column in tree.find_all(exp.Column):
        parts = [part.name for part in column.parts if not isinstance(part, exp.Star)]
        if parts:
            yield parts


def _nested_type(field: Field, parts: Sequence[str]) -> str | None:
    """The type of ``field.a.b``; None when it is not known.  Raises UnknownField."""
    if field.type is None or len(parts) == 1:
        return field.type
    kind = parse_type(field.type)
    for depth, part in enumerate(parts[1:], start=1):
        # an array of structs gives an array of the field; a map gives the value of the key
        if kind.name != "struct":
            if kind.name in ("array", "map", "variant"):
                return None
            raise UnknownField(
                f"no field '{'.'.join(parts)}': '{'.'.join(parts[:depth])}' is {kind.ddl()}, no struct"
            )
        inner = {name.lower(): child for name, child in kind.children}
        if part.lower() not in inner:
            names = Schema(tuple(Field(name) for name, _ in kind.children))
            raise UnknownField(f"'{'.'.join(parts[:depth])}': {unknown_field(part, names)}")
        kind = inner[part.lower()]
    return kind.ddl()


# --- aggregates -----------------------------------------------------------------------


def _aggregates(tree: exp.Expr) -> list[exp.Expr]:
    return [node for node in tree.walk() if is_aggregate(node)]


def _refuse_aggregates(projection: Projection) -> None:
    _refuse_windows(projection)
    found = _aggregates(projection.tree)
    if found:
        name = found[0].sql(dialect="spark")
        raise InvalidExpression(
            f"'{name}' is an aggregate; aggregates need key_by(…), then aggregate(…) with or without "
            "window(…)"
        )


def _refuse_windows(projection: Projection) -> None:
    from sqlglot import exp

    if projection.tree.find(exp.Window):
        raise InvalidExpression(
            f"'{projection.text}': OVER is not possible on a stream; use key_by(…).window(…)"
        )


# --- names and types -----------------------------------------------------------------------


def _output_names(projection: Projection) -> tuple[str, ...]:
    from sqlglot import exp

    tree = projection.tree
    if isinstance(tree, exp.Aliases):
        return tuple(alias.name for alias in tree.args["expressions"])
    if isinstance(tree, exp.Alias):
        return (tree.alias,)
    if isinstance(tree, (exp.Column, exp.Dot)):
        return (tree.name,)
    raise SchemaError(f"'{projection.text}' needs a name; write '{projection.text} AS name'")


def infer_type(projection: Projection, schema: Schema) -> str | None:
    """The DDL type of the expression's value where the client can be certain, else None."""
    from sqlglot import exp
    from sqlglot.errors import SqlglotError
    from sqlglot.optimizer.annotate_types import annotate_types

    bare = projection.bare
    if isinstance(bare, exp.Column):
        parts = next(_column_paths(bare), None)
        field = schema.find(parts[0]) if parts else None
        return _nested_type(field, parts) if field is not None and parts else None
    if isinstance(bare, exp.Cast):
        target = _spark_type(bare.to)
        if target is not None:
            return target.ddl()
    tree = bare.copy()
    for literal in tree.find_all(exp.Literal):
        if not literal.is_string and not literal.is_int:
            return None  # a decimal in Spark, a double in the parser
    for column in tree.find_all(exp.Column):
        parts = [part.name for part in column.parts]
        field = schema.find(parts[0])
        known = _nested_type(field, parts) if field is not None else None
        if known is None or not _all_certain(parse_type(known)):
            return None
        column.type = exp.DataType.build(known, dialect="spark")
    try:
        annotated = annotate_types(tree, dialect="spark", overwrite_types=False).type
    except (SqlglotError, ValueError, TypeError, AttributeError, KeyError):
        return None  # inference is a courtesy; Spark resolves the type in the driver
    kind = _spark_type(annotated) if annotated is not None else None
    return kind.ddl() if kind is not None and _all_certain(kind) else None


def _spark_type(kind: Any) -> DataType | None:
    try:
        return parse_type(kind.sql(dialect="spark"))
    except SchemaError:
        return None


def _all_certain(kind: DataType) -> bool:
    if kind.children:
        return all(_all_certain(child) for _, child in kind.children)
    return kind.name in _CERTAIN_TYPES


# --- what the operators ask --------------------------------------------------------------


def select_schema(expressions: Sequence[str], schema: Schema) -> Schema:
    """Check a projection and tell its output.

    Raises
    ------
    InvalidExpression, UnknownField, SchemaError
        Naming the expression at fault.
    """
    from sqlglot import exp

    if not expressions:
        raise InvalidExpression("no expression to select")
    fields: list[Field] = []
    for text in expressions:
        projection = parse(text)
        _refuse_aggregates(projection)
        check_fields(projection, schema)
        if isinstance(projection.tree, exp.Star):
            if not schema.known:
                return Schema(())
            fields.extend(_star(projection.tree, schema))
        elif isinstance(projection.tree, exp.Column) and isinstance(projection.tree.this, exp.Star):
            fields.extend(_struct_star(projection, schema))
        else:
            names = _output_names(projection)
            kind = infer_type(projection, schema) if len(names) == 1 else None
            fields.extend(Field(name, kind) for name in names)
    made = checked_schema(tuple(fields))
    kept = None if schema.event_time is None else _kept_field(expressions, schema.event_time)
    field = None if kept is None else made.find(kept)
    return made if field is None else replace(made, event_time=field.name)


def _star(star: exp.Expr, schema: Schema) -> Iterator[Field]:
    dropped: set[str] = set()
    for key, value in star.args.items():
        if not value:
            continue
        if key.rstrip("_") != "except":
            raise InvalidExpression(f"'{star.sql(dialect='spark')}' is not possible; only '* EXCEPT (…)' is")
        for item in value if isinstance(value, list) else [value]:
            if schema.find(item.name) is None:
                raise unknown_field(item.name, schema)
            dropped.add(item.name.lower())
    return (field for field in schema.fields if field.name.lower() not in dropped)


def _struct_star(projection: Projection, schema: Schema) -> Iterator[Field]:
    parts = next(_column_paths(projection.tree), [])
    field = schema.find(parts[0]) if parts else None
    known = _nested_type(field, parts) if field is not None else None
    kind = parse_type(known) if known is not None else None
    if kind is None or kind.name != "struct":
        raise SchemaError(
            f"'{projection.text}': the fields of '{'.'.join(parts)}' are not known; name them one by one"
        )
    return (Field(name, child.ddl()) for name, child in kind.children)


def _kept_field(expressions: Sequence[str], name: str) -> str | None:
    """The name under which a projection hands on a field as it is; None = it does not."""
    from sqlglot import exp

    for text in expressions:
        projection = parse(text)
        if isinstance(projection.tree, exp.Star):
            return name
        if isinstance(projection.bare, exp.Column) and len(projection.bare.parts) == 1:
            if projection.bare.name.lower() == name.lower():
                return str(projection.tree.alias_or_name)
    return None


def check_filter(text: str, schema: Schema) -> None:
    """Check a condition.  Raises InvalidExpression, UnknownField."""
    projection = parse(text)
    _refuse_aggregates(projection)
    check_fields(projection, schema)
    if projection.bare is not projection.tree:
        raise InvalidExpression(f"'{text}': a condition has no name; drop the AS")
    kind = infer_type(projection, schema)
    if kind not in (None, "boolean"):
        raise InvalidExpression(f"'{text}' is {kind}, a condition must be boolean")


def check_event_time(text: str, schema: Schema) -> None:
    """Check an event-time expression, which must be a timestamp where its type is known."""
    projection = parse(text)
    _refuse_aggregates(projection)
    check_fields(projection, schema)
    kind = infer_type(projection, schema)
    if kind in (None, "timestamp", "timestamp_ntz"):
        return
    ways = {"bigint": f"timestamp_millis({text})", "int": f"timestamp_seconds({text})"}
    way = ways.get(str(kind), f"CAST({text} AS TIMESTAMP)")
    raise InvalidExpression(f"'{text}' is {kind}, event time must be a timestamp; write {way}")


def key_fields(columns: Sequence[str], schema: Schema) -> tuple[Field, ...]:
    """Check the key's columns or expressions and tell the key fields of results."""
    fields = []
    for text in columns:
        projection = parse(text)
        _refuse_aggregates(projection)
        check_fields(projection, schema)
        (name,) = _single_name(projection)
        fields.append(Field(name, infer_type(projection, schema)))
    return checked_schema(tuple(fields)).fields


def _single_name(projection: Projection) -> tuple[str, ...]:
    names = () if projection.tree.is_star else _output_names(projection)
    if len(names) != 1:
        raise InvalidExpression(f"'{projection.text}' is no single value")
    return names


def without_alias(text: str) -> str:
    """The expression's own text less its ``AS name``."""
    from sqlglot.dialects.spark import Spark
    from sqlglot.tokenizer_core import TokenType

    projection = parse(text)
    if projection.bare is projection.tree:
        return text
    tokens = Spark().tokenize(text)
    name_at = len(tokens) - 1
    has_as = tokens[name_at - 1].token_type is TokenType.ALIAS
    return text[: tokens[name_at - has_as].start].rstrip()


def aggregate_fields(aggregates: Sequence[str], schema: Schema, keys: Iterable[str]) -> tuple[Field, ...]:
    """Check aggregate expressions and tell the fields they make.

    Raises
    ------
    InvalidExpression
        Not an aggregate, an aggregate inside another, or a field neither aggregated nor key.
    UnknownField, SchemaError
        As for a projection.
    """
    if not aggregates:
        raise InvalidExpression("no aggregate; write for example aggregate('count(*) AS n')")
    key_names = {key.lower() for key in keys}
    fields = []
    for text in aggregates:
        projection = parse(text)
        _refuse_windows(projection)
        check_fields(projection, schema)
        found = _aggregates(projection.tree)
        if not found:
            raise InvalidExpression(f"'{text}' is no aggregate; use one such as count, sum, min, max or avg")
        for node in found:
            if _inside(node, is_aggregate):
                raise InvalidExpression(f"'{text}': an aggregate inside an aggregate is not possible")
        _refuse_unaggregated(projection, key_names)
        (name,) = _single_name(projection)
        fields.append(Field(name, infer_type(projection, schema)))
    return tuple(fields)


def _refuse_unaggregated(projection: Projection, key_names: set[str]) -> None:
    from sqlglot import exp

    def aggregated(node: exp.Expr) -> bool:
        return is_aggregate(node) or isinstance(node, (exp.Filter, exp.WithinGroup))

    for column in projection.tree.find_all(exp.Column):
        name = column.parts[0].name
        if name.lower() not in key_names and not _inside(column, aggregated):
            raise InvalidExpression(
                f"'{projection.text}': '{name}' is neither aggregated nor part of the key"
            )


def _inside(node: exp.Expr, test: Callable[[exp.Expr], bool]) -> bool:
    parent = node.parent
    while parent is not None:
        if test(parent):
            return True
        parent = parent.parent
    return False


def field_aggregate(function: str, name: str, schema: Schema) -> str:
    """``sum(x) AS x`` for a field called by its plain name, not by an expression."""
    if schema.known and schema.find(name) is None:
        raise unknown_field(name, schema)
    return f"{function}({quote(name)}) AS {quote(name)}"
