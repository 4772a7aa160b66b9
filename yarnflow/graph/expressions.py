"""What the client can tell about Spark SQL expressions without Spark.

Decides whether an expression parses, which fields it needs, what its results are called and,
where that is certain, their types.  Never rewrites an expression: Spark gets the user's own
text.  The only importer of sqlglot, and only when the first expression is looked at.
Spark counterparts: ``CatalystSqlParser``, ``ResolveReferences``.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from yarnflow.errors import InvalidExpression, SchemaError, UnknownField
from yarnflow.graph.schema import Field, Schema
from yarnflow.graph.types import DataType, checked_schema, parse_type, quote

if TYPE_CHECKING:
    from sqlglot import exp

#: aggregates of Spark that the parser takes for ordinary functions
_MORE_AGGREGATES: Final = frozenset(
    "any bit_and bit_or bit_xor bool_and bool_or collect_list collect_set corr count_min_sketch "
    "covar_pop covar_samp every first_value grouping histogram_numeric hll_sketch_agg "
    "hll_union_agg kurtosis last_value listagg max_by min_by percentile percentile_approx "
    "regr_avgx regr_avgy regr_count regr_intercept regr_r2 regr_slope regr_sxx regr_sxy "
    "regr_syy skewness some std string_agg try_avg try_sum var_pop var_samp variance "
    "bitmap_construct_agg bitmap_or_agg mode median".split()
)
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

    if not isinstance(text, str):
        raise InvalidExpression(f"{text!r} is no expression; write it as text")
    if not text.strip():
        raise InvalidExpression("an empty expression")
    # parsed as a select list, so that trailing junk is seen for what it is
    query = _parse_query(f"SELECT {text}", text)
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


def _parse_query(sql: str, shown: str) -> Any:
    import sqlglot
    from sqlglot.errors import ParseError, SqlglotError

    try:
        return sqlglot.parse_one(sql, read="spark")
    except ParseError as exc:
        first = exc.errors[0] if exc.errors else {}
        near = str(first.get("highlight") or "").strip()
        raise InvalidExpression(
            f"'{shown}' is not valid SQL" + (f" near '{near}'" if near and near != "SELECT" else "")
        ) from exc
    except SqlglotError as exc:
        raise InvalidExpression(f"'{shown}' is not valid SQL: {str(exc).splitlines()[0]}") from exc


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


def _is_aggregate(node: exp.Expr) -> bool:
    from sqlglot import exp

    if isinstance(node, exp.Anonymous):
        return str(node.this).lower() in _MORE_AGGREGATES
    return isinstance(node, exp.AggFunc)


def _aggregates(tree: exp.Expr) -> list[exp.Expr]:
    return [node for node in tree.walk() if _is_aggregate(node)]


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
    return checked_schema(tuple(fields))


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
            if _inside(node, _is_aggregate):
                raise InvalidExpression(f"'{text}': an aggregate inside an aggregate is not possible")
        _refuse_unaggregated(projection, key_names)
        (name,) = _single_name(projection)
        fields.append(Field(name, infer_type(projection, schema)))
    return tuple(fields)


def _refuse_unaggregated(projection: Projection, key_names: set[str]) -> None:
    from sqlglot import exp

    def aggregated(node: exp.Expr) -> bool:
        return _is_aggregate(node) or isinstance(node, (exp.Filter, exp.WithinGroup))

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


# --- whole queries -----------------------------------------------------------------------


def query_schema(query: str, views: Mapping[str, Schema]) -> Schema:
    """What a SQL query over the given views gives; ``Schema(())`` when only Spark can tell.

    Raises
    ------
    InvalidExpression
        The text is no single query, or a view of the program is not used in it.
    UnknownField
        A column that none of the views has, where all tables are views of known fields.
    """
    from sqlglot import exp

    tree = _parse_query(query, query)
    if not isinstance(tree, exp.Query):
        raise InvalidExpression(f"'{query}' is no query; only SELECT is possible")
    local = {cte.alias.lower() for cte in tree.find_all(exp.CTE)}
    tables = {t.name.lower() for t in tree.find_all(exp.Table)} - local
    unused = [view for view in views if view.lower() not in tables]
    if unused:
        raise InvalidExpression(f"the stream '{unused[0]}' is not used in the query")
    known = {view.lower(): schema for view, schema in views.items()}
    complete = tables <= known.keys() and all(schema.known for schema in known.values())
    if complete and tables:
        return _resolved_query(tree, known)
    names = tree.named_selects
    if not names or any(not name or name == "*" for name in names):
        return Schema(())
    return checked_schema(tuple(Field(name) for name in names))


def _resolved_query(tree: Any, views: Mapping[str, Schema]) -> Schema:
    from sqlglot import exp
    from sqlglot.errors import OptimizeError, SqlglotError
    from sqlglot.optimizer.qualify import qualify

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


def is_stateful_query(query: str) -> bool:
    """Whether Spark keeps state for the query: aggregation, DISTINCT, or a join of streams."""
    from sqlglot import exp

    tree = _parse_query(query, query)
    return tree.find(exp.Group, exp.Distinct, exp.Join) is not None or bool(_aggregates(tree))
