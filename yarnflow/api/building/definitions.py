"""What each call of the API means, worked out when the job is executed.

Every function here gives a ``Definition``: handed the fields of the inputs it checks the call
and returns operator and output fields.  Nothing is checked earlier, because a stream's fields
may depend on calls made later (a ``uid`` does not, but a name is good to have), and errors are
all raised from one place, with the line of the call before them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from yarnflow.api.building.output_types import element_columns, key_type, record_columns
from yarnflow.api.origin import definition_origin
from yarnflow.errors import SchemaError, UnsupportedGraph
from yarnflow.graph.closures import Closure, function_name, make_closure
from yarnflow.graph.connectors.sinks import CollectSink
from yarnflow.graph.connectors.sources import CollectionSource
from yarnflow.graph.element_schema import element_schema, to_ddl, type_of_schema
from yarnflow.graph.operators import (
    AssignTimestamps,
    DropDuplicates,
    FilterExpression,
    Key,
    KeyedReduce,
    Operator,
    PythonKind,
    PythonOperator,
    RunningAggregate,
    SelectOperator,
    SqlOperator,
    UnionOperator,
    Window,
    WindowAggregate,
    WindowFunctionKind,
    WindowProcess,
)
from yarnflow.graph.schema import KEY_FIELD, Field, Schema
from yarnflow.graph.stream_graph import Definition
from yarnflow.graph.type_info import PICKLED, TypeInfo, TypeInformation, checked_type
from yarnflow.graph.types import checked_schema, quote, to_schema
from yarnflow.operators.functions.base import positional_arity
from yarnflow.operators.functions.elements import TimestampAssigner
from yarnflow.operators.functions.fields_read import fields_read
from yarnflow.operators.process.adapters import ApplyAdapter, TimestampAdapter

Inputs = tuple[Schema, ...]
Resolved = tuple[Operator, Schema]

#: the key field of results when the key is a function's
FUNCTION_KEY_NAME = "key"


def _closure(function: Any, origin: str) -> Closure:
    """The function as it is now, as PyFlink does: what the program changes later is not seen by it."""
    return make_closure(function, definition_origin(function, origin))


def columns(schema: Schema) -> Schema:
    """A stream as an expression or a sink of columns sees it.

    Raises
    ------
    SchemaError
        The stream holds objects whose columns are not known.
    """
    if schema.element_type is not None and not schema.known:
        raise SchemaError(
            f"the elements of the stream ({schema.element_type!r}) have no columns; give the call that made "
            "them an output_type, such as 'name TYPE, …' or Types.ROW_NAMED(…), or annotate its function"
        )
    return schema.columns


def known_columns(schema: Schema) -> Schema:
    """A stream as :func:`columns`, whose fields are known here.

    Raises
    ------
    SchemaError
        They are not, or it holds objects.
    """
    schema = columns(schema)
    if not schema.known:
        raise SchemaError(
            "the fields of the stream are not known here; add schema='name TYPE, …' to the sql(…) before"
        )
    return schema


def key_columns(key_type: object | None) -> object | None:
    """The type of a key as a column, where it is one of Types."""
    if isinstance(key_type, (TypeInformation, list)):
        return to_ddl(checked_type(key_type, "key_type"))
    return key_type


# --- sources and SQL ------------------------------------------------------------------


#: lone values of these types are the same as columns and as objects
_SAME_AS_COLUMNS = {str: "string", int: "bigint"}


def collection(rows: Sequence[object], declared: object | None) -> Definition:
    """``from_collection``: columns where DDL text or a Python type says so, else elements."""

    def define(_: Inputs) -> Resolved:
        from yarnflow.api.building.collection import encode_elements, encode_rows

        if declared is None and (ddl := _lone_values(rows)):
            found, encoded = encode_rows(rows, to_schema(ddl))
        elif declared is not None and not isinstance(declared, (TypeInformation, list)):
            found, encoded = encode_rows(rows, to_schema(declared))
        else:
            kind: TypeInfo = PICKLED if declared is None else checked_type(declared, "type_info")
            found, encoded = element_schema(kind), encode_elements(rows, kind)
        return CollectionSource(found, encoded), found

    return define


def _lone_values(rows: Sequence[object]) -> str:
    """DDL of a collection of texts, or of whole numbers of 64 bits; else empty."""
    kinds = set(map(type, rows))
    ddl = _SAME_AS_COLUMNS.get(kinds.pop(), "") if len(kinds) == 1 else ""
    if ddl == "bigint" and not all(-(2**63) <= row < 2**63 for row in rows):  # type: ignore[operator]
        return ""
    return ddl


def sql(query: str, views: Sequence[str], schema: object | None) -> Definition:
    """``sql``."""

    def define(inputs: Inputs) -> Resolved:
        from yarnflow.graph.sql.queries import looked_at

        found = looked_at(query, dict(zip(views, map(columns, inputs), strict=True)))
        facts = found.facts
        operator = SqlOperator(found.text, tuple(views), facts.stateful, facts.changes, facts.keeps)
        if schema is None:
            return operator, found.schema
        return operator, replace(to_schema(schema), event_time=found.schema.event_time)

    return define


def interval_join(
    expressions: Sequence[str], keys: tuple[Sequence[str], Sequence[str]], lower_ms: int, upper_ms: int
) -> Definition:
    """``select`` of an interval join: a query over the views ``left`` and ``right``."""

    def define(inputs: Inputs) -> Resolved:
        sides = tuple(zip(("left", "right"), map(known_columns, inputs), strict=True))
        times = []
        for name, schema in sides:
            if schema.event_time is None:
                raise UnsupportedGraph(
                    f"the {name} stream has no event time; call assign_timestamps_and_watermarks(…) on "
                    "both before"
                )
            times.append(f"{name}.{quote(schema.event_time)}")
        for (name, schema), texts in zip(sides, keys, strict=True):
            for text in texts:
                if schema.find(text) is None:
                    raise UnsupportedGraph(
                        f"key '{text}' of the {name} stream is no field of it; select(…) it before"
                    )
        left, right = times
        conditions = [
            *(f"left.{quote(mine)} = right.{quote(theirs)}" for mine, theirs in zip(*keys, strict=True)),
            f"{right} >= {left} + INTERVAL '{lower_ms}' MILLISECOND",
            f"{right} <= {left} + INTERVAL '{upper_ms}' MILLISECOND",
        ]
        query = f"SELECT {', '.join(expressions)} FROM `left` JOIN `right` ON {' AND '.join(conditions)}"
        return sql(query, ("left", "right"), None)(inputs)

    return define


# --- one record at a time ----------------------------------------------------------------


def select(expressions: Sequence[str]) -> Definition:
    """``select``."""

    def define(inputs: Inputs) -> Resolved:
        from yarnflow.graph.sql.expressions import select_schema

        return SelectOperator(tuple(expressions)), select_schema(expressions, columns(inputs[0]))

    return define


def filter_expression(expression: str) -> Definition:
    """``filter`` of text."""

    def define(inputs: Inputs) -> Resolved:
        from yarnflow.graph.sql.expressions import check_filter

        schema = columns(inputs[0])
        check_filter(expression, schema)
        return FilterExpression(expression), schema

    return define


def python(kind: PythonKind, function: Any, origin: str, output_type: object | None = None) -> Definition:
    """``map``, ``flat_map``, ``filter``, ``key_by`` and timestamps by a Python function."""
    closure = _closure(function, origin)
    fields = fields_read(function)

    def define(inputs: Inputs) -> Resolved:
        schema = known_columns(inputs[0])
        match kind:
            case PythonKind.MAP:
                schema = record_columns(function, "map", output_type)
            case PythonKind.FLAT_MAP:
                schema = element_columns(function, "flat_map", output_type)
            case PythonKind.KEY:
                field = Field(KEY_FIELD, key_type(function, output_type))
                schema = Schema((*schema.fields, field), schema.scalar)
        return PythonOperator(kind, closure, fields), schema

    return define


def timestamp_function(assigner: Any) -> Callable[..., Any]:
    """An assigner as a function of the record alone."""
    if not isinstance(assigner, TimestampAssigner) and positional_arity(assigner) == 2:
        return TimestampAdapter(assigner)
    function: Callable[..., Any] = assigner
    return function


def assign_timestamps(
    expression: str, out_of_orderness_ms: int, idle_after_ms: int | None = None
) -> Definition:
    """``assign_timestamps_and_watermarks``; no expression = a Python function before it."""

    def define(inputs: Inputs) -> Resolved:
        from yarnflow.graph.sql.expressions import check_event_time

        schema = columns(inputs[0])
        if expression:
            check_event_time(expression, schema)
        return AssignTimestamps(expression, out_of_orderness_ms, idle_after_ms), schema

    return define


def drop_duplicates(fields: Sequence[str], within_ms: int | None) -> Definition:
    """``drop_duplicates``."""

    def define(inputs: Inputs) -> Resolved:
        from yarnflow.graph.sql.expressions import unknown_field

        schema = known_columns(inputs[0])
        names = []
        for name in fields or schema.names:
            field = schema.find(name)
            if field is None:
                raise unknown_field(name, schema)
            names.append(field.name)
        if schema.event_time is None and within_ms is not None:
            raise UnsupportedGraph(
                "within=… is a time, and the stream has none; call assign_timestamps_and_watermarks(…) before"
            )
        return DropDuplicates(tuple(names), None if schema.event_time is None else within_ms or 0), schema

    return define


def union() -> Definition:
    """``union``."""

    def define(inputs: Inputs) -> Resolved:
        if any(schema.element_type is not None for schema in inputs):
            return UnionOperator(), _union_of_elements(inputs)
        first, *others = inputs
        for number, other in enumerate(others, start=2):
            _check_same(first, other, number)
        fields = tuple(
            field if all(other.known and other.fields[i].type for other in others) else Field(field.name)
            for i, field in enumerate(first.fields)
        )
        return UnionOperator(), Schema(fields, all(schema.scalar for schema in inputs))

    return define


def _union_of_elements(inputs: Inputs) -> Schema:
    """Elements of one type stay elements; else all are columns, where all have them."""
    first, *others = inputs
    if all(other.element_type == first.element_type for other in others):
        same = all(other.columns == first.columns for other in others)
        return first if same else element_schema(type_of_schema(first), Schema(()))
    for number, other in enumerate(others, start=2):
        if type_of_schema(other) != type_of_schema(first):
            raise SchemaError(
                f"stream {number} has elements of {type_of_schema(other)!r}, the first of "
                f"{type_of_schema(first)!r}; give both one output_type"
            )
    return element_schema(type_of_schema(first))


def _check_same(first: Schema, other: Schema, number: int) -> None:
    if not first.known or not other.known:
        return
    if [name.lower() for name in first.names] != [name.lower() for name in other.names]:
        raise SchemaError(
            f"stream {number} has the fields {', '.join(other.names)}, the first has "
            f"{', '.join(first.names)}; "
            "select(…) the same fields in the same order"
        )
    for mine, theirs in zip(first.fields, other.fields, strict=True):
        if mine.type and theirs.type and mine.type != theirs.type:
            raise SchemaError(
                f"field '{mine.name}' is {mine.type} in the first stream and {theirs.type} in stream "
                f"{number}; CAST one"
            )


# --- keyed ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class KeyDefinition:
    """How a stream is keyed; ``columns`` is empty after a key function."""

    columns: tuple[str, ...] = ()

    def resolve(self, schema: Schema) -> tuple[Key, tuple[Field, ...], Schema]:
        """The key, its fields in results, and the record's fields without the hidden key."""
        from yarnflow.graph.sql.expressions import key_fields, without_alias

        if not self.columns:
            hidden = schema.find(KEY_FIELD)
            field = Field(FUNCTION_KEY_NAME, hidden.type if hidden is not None else None)
            return Key((KEY_FIELD,), (FUNCTION_KEY_NAME,)), (field,), schema.without(KEY_FIELD)
        schema = columns(schema)
        fields = key_fields(self.columns, schema)
        expressions = tuple(without_alias(column) for column in self.columns)
        return Key(expressions, tuple(field.name for field in fields)), fields, schema


@dataclass(frozen=True, slots=True)
class FieldAggregate:
    """``sum("x")``: a built-in aggregate of one field, which keeps its name."""

    function: str
    #: name, or position from 0
    field: str | int

    def name_in(self, schema: Schema) -> str:
        """The field's name.  Raises SchemaError if there is no such position."""
        if isinstance(self.field, str):
            return self.field
        if not 0 <= self.field < len(schema.names):
            raise SchemaError(f"no field {self.field} in a stream of {len(schema.names)} fields")
        return schema.names[self.field]


Aggregates = Sequence[str] | FieldAggregate


def _aggregate_texts(aggregates: Aggregates, schema: Schema) -> tuple[str, ...]:
    from yarnflow.graph.sql.expressions import field_aggregate

    if isinstance(aggregates, FieldAggregate):
        return (field_aggregate(aggregates.function, aggregates.name_in(schema), schema),)
    return tuple(aggregates)


def running_aggregate(key: KeyDefinition, aggregates: Aggregates) -> Definition:
    """Aggregates of a keyed stream without a window."""

    def define(inputs: Inputs) -> Resolved:
        from yarnflow.graph.sql.expressions import aggregate_fields

        resolved, fields, schema = key.resolve(columns(inputs[0]))
        texts = _aggregate_texts(aggregates, schema)
        made = aggregate_fields(texts, schema, resolved.names)
        return RunningAggregate(resolved, texts), checked_schema((*fields, *made))

    return define


def keyed_reduce(key: KeyDefinition, function: Any, origin: str) -> Definition:
    """``reduce`` of a keyed stream without a window."""
    closure = _closure(function, origin)

    def define(inputs: Inputs) -> Resolved:
        resolved, _, schema = key.resolve(known_columns(inputs[0]))
        return KeyedReduce(resolved, closure), schema

    return define


def window_aggregate(key: KeyDefinition, window: Window, aggregates: Aggregates) -> Definition:
    """Aggregates of a window."""

    def define(inputs: Inputs) -> Resolved:
        from yarnflow.graph.sql.expressions import aggregate_fields

        resolved, fields, schema = key.resolve(columns(inputs[0]))
        texts = _aggregate_texts(aggregates, schema)
        made = aggregate_fields(texts, schema, resolved.names)
        bounds = (Field("window_start", "timestamp"), Field("window_end", "timestamp"))
        return WindowAggregate(resolved, window, texts), checked_schema((*fields, *bounds, *made))

    return define


def window_reduce(key: KeyDefinition, window: Window, function: Any, origin: str) -> Definition:
    """``reduce`` of a window."""
    closure = _closure(function, origin)

    def define(inputs: Inputs) -> Resolved:
        resolved, _, schema = key.resolve(known_columns(inputs[0]))
        return WindowProcess(resolved, window, WindowFunctionKind.REDUCE, closure), schema

    return define


def window_process(
    key: KeyDefinition, window: Window, function: Any, origin: str, output_type: object | None, apply: bool
) -> Definition:
    """``process`` and ``apply`` of a window."""
    closure = make_closure(
        ApplyAdapter(function) if apply else function,
        definition_origin(function, origin),
        function_name(function),
    )

    def define(inputs: Inputs) -> Resolved:
        resolved, _, _ = key.resolve(known_columns(inputs[0]))
        schema = element_columns(function, "process", output_type)
        return WindowProcess(resolved, window, WindowFunctionKind.PROCESS, closure), schema

    return define


# --- sinks ----------------------------------------------------------------------------------


def sink(make: Callable[[Schema], Operator]) -> Definition:
    """Any sink."""

    def define(inputs: Inputs) -> Resolved:
        return make(inputs[0]), inputs[0]

    return define


def column_sink(make: Callable[[Schema], Operator]) -> Definition:
    """A sink of columns."""
    return sink(lambda schema: make(columns(schema)))


def collect_sink(limit: int | None) -> Definition:
    """``execute_and_collect``."""
    return sink(lambda _: CollectSink(limit))


def source(make: Callable[[], tuple[Operator, Schema]]) -> Definition:
    """Any source."""

    def define(_: Inputs) -> Resolved:
        return make()

    return define


def check_options(options: Mapping[str, object]) -> dict[str, str]:
    """Reader and writer options as the text Spark takes."""
    texts = {}
    for key, value in options.items():
        if value is None:
            raise UnsupportedGraph(f"option '{key}' is None; leave it out instead")
        texts[str(key)] = str(value).lower() if isinstance(value, bool) else str(value)
    return texts
