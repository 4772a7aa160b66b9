"""What each call of the API means, worked out when the job is executed.

Every function here gives a ``Definition``: handed the fields of the inputs it checks the call
and returns operator and output fields.  Nothing is checked earlier, because a stream's fields
may depend on calls made later (a ``uid`` does not, but a name is good to have), and errors are
all raised from one place, with the line of the call before them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from yarnflow.api.origin import definition_origin
from yarnflow.api.output_types import element_schema, key_type, record_schema
from yarnflow.errors import SchemaError, UnsupportedGraph
from yarnflow.graph.closures import make_closure
from yarnflow.graph.functions import ApplyAdapter, TimestampAdapter, TimestampAssigner, positional_arity
from yarnflow.graph.operators import (
    AssignTimestamps,
    CollectionSource,
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
from yarnflow.graph.types import checked_schema, to_schema

Inputs = tuple[Schema, ...]
Resolved = tuple[Operator, Schema]

#: the key field of results when the key is a function's
FUNCTION_KEY_NAME = "key"


def _closure(function: Any, origin: str) -> Any:
    return make_closure(function, definition_origin(function, origin))


def _known(schema: Schema) -> Schema:
    if not schema.known:
        raise SchemaError(
            "the fields of the stream are not known here; add schema='name TYPE, …' to the sql(…) before"
        )
    return schema


# --- sources and SQL ------------------------------------------------------------------


def collection(rows: Sequence[object], schema: object | None) -> Definition:
    """``from_collection``."""

    def define(_: Inputs) -> Resolved:
        from yarnflow.api.collection import encode_rows

        found, encoded = encode_rows(rows, None if schema is None else to_schema(schema))
        return CollectionSource(found, encoded), found

    return define


def sql(query: str, views: Sequence[str], schema: object | None) -> Definition:
    """``sql``."""

    def define(inputs: Inputs) -> Resolved:
        from yarnflow.graph.expressions import query_schema

        found = query_schema(query, dict(zip(views, inputs, strict=True)))
        return SqlOperator(query, tuple(views)), found if schema is None else to_schema(schema)

    return define


# --- one record at a time ----------------------------------------------------------------


def select(expressions: Sequence[str]) -> Definition:
    """``select``."""

    def define(inputs: Inputs) -> Resolved:
        from yarnflow.graph.expressions import select_schema

        return SelectOperator(tuple(expressions)), select_schema(expressions, inputs[0])

    return define


def filter_expression(expression: str) -> Definition:
    """``filter`` of text."""

    def define(inputs: Inputs) -> Resolved:
        from yarnflow.graph.expressions import check_filter

        check_filter(expression, inputs[0])
        return FilterExpression(expression), inputs[0]

    return define


def python(kind: PythonKind, function: Any, origin: str, output_type: object | None = None) -> Definition:
    """``map``, ``flat_map``, ``filter``, ``key_by`` and timestamps by a Python function."""

    def define(inputs: Inputs) -> Resolved:
        schema = _known(inputs[0])
        match kind:
            case PythonKind.MAP:
                schema = record_schema(function, "map", output_type)
            case PythonKind.FLAT_MAP:
                schema = element_schema(function, "flat_map", output_type)
            case PythonKind.KEY:
                field = Field(KEY_FIELD, key_type(function, output_type))
                schema = Schema((*schema.fields, field), schema.scalar)
        return PythonOperator(kind, _closure(function, origin)), schema

    return define


def timestamp_function(assigner: Any) -> Callable[..., Any]:
    """An assigner as a function of the record alone."""
    if not isinstance(assigner, TimestampAssigner) and positional_arity(assigner) == 2:
        return TimestampAdapter(assigner)
    function: Callable[..., Any] = assigner
    return function


def assign_timestamps(expression: str, out_of_orderness_ms: int) -> Definition:
    """``assign_timestamps_and_watermarks``; no expression = a Python function before it."""

    def define(inputs: Inputs) -> Resolved:
        from yarnflow.graph.expressions import check_event_time

        if expression:
            check_event_time(expression, inputs[0])
        return AssignTimestamps(expression, out_of_orderness_ms), inputs[0]

    return define


def union() -> Definition:
    """``union``."""

    def define(inputs: Inputs) -> Resolved:
        first, *others = inputs
        for number, other in enumerate(others, start=2):
            _check_same(first, other, number)
        fields = tuple(
            field if all(other.known and other.fields[i].type for other in others) else Field(field.name)
            for i, field in enumerate(first.fields)
        )
        return UnionOperator(), Schema(fields, all(schema.scalar for schema in inputs))

    return define


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
        from yarnflow.graph.expressions import key_fields, without_alias

        if not self.columns:
            hidden = schema.find(KEY_FIELD)
            field = Field(FUNCTION_KEY_NAME, hidden.type if hidden is not None else None)
            return Key((KEY_FIELD,), (FUNCTION_KEY_NAME,)), (field,), schema.without(KEY_FIELD)
        fields = key_fields(self.columns, schema)
        expressions = tuple(without_alias(column) for column in self.columns)
        return Key(expressions, tuple(field.name for field in fields)), fields, schema


@dataclass(frozen=True, slots=True)
class FieldAggregate:
    """``sum("x")``: a built-in aggregate of one field, which keeps its name."""

    function: str
    field: str


Aggregates = Sequence[str] | FieldAggregate


def _aggregate_texts(aggregates: Aggregates, schema: Schema) -> tuple[str, ...]:
    from yarnflow.graph.expressions import field_aggregate

    if isinstance(aggregates, FieldAggregate):
        return (field_aggregate(aggregates.function, aggregates.field, schema),)
    return tuple(aggregates)


def running_aggregate(key: KeyDefinition, aggregates: Aggregates) -> Definition:
    """Aggregates of a keyed stream without a window."""

    def define(inputs: Inputs) -> Resolved:
        from yarnflow.graph.expressions import aggregate_fields

        resolved, fields, schema = key.resolve(inputs[0])
        texts = _aggregate_texts(aggregates, schema)
        made = aggregate_fields(texts, schema, resolved.names)
        return RunningAggregate(resolved, texts), checked_schema((*fields, *made))

    return define


def keyed_reduce(key: KeyDefinition, function: Any, origin: str) -> Definition:
    """``reduce`` of a keyed stream without a window."""

    def define(inputs: Inputs) -> Resolved:
        resolved, _, schema = key.resolve(_known(inputs[0]))
        return KeyedReduce(resolved, _closure(function, origin)), schema

    return define


def window_aggregate(key: KeyDefinition, window: Window, aggregates: Aggregates) -> Definition:
    """Aggregates of a window."""

    def define(inputs: Inputs) -> Resolved:
        from yarnflow.graph.expressions import aggregate_fields

        resolved, fields, schema = key.resolve(inputs[0])
        texts = _aggregate_texts(aggregates, schema)
        made = aggregate_fields(texts, schema, resolved.names)
        bounds = (Field("window_start", "timestamp"), Field("window_end", "timestamp"))
        return WindowAggregate(resolved, window, texts), checked_schema((*fields, *bounds, *made))

    return define


def window_reduce(key: KeyDefinition, window: Window, function: Any, origin: str) -> Definition:
    """``reduce`` of a window."""

    def define(inputs: Inputs) -> Resolved:
        resolved, _, schema = key.resolve(_known(inputs[0]))
        closure = _closure(function, origin)
        return WindowProcess(resolved, window, WindowFunctionKind.REDUCE, closure), schema

    return define


def window_process(
    key: KeyDefinition, window: Window, function: Any, origin: str, output_type: object | None, apply: bool
) -> Definition:
    """``process`` and ``apply`` of a window."""

    def define(inputs: Inputs) -> Resolved:
        resolved, _, _ = key.resolve(_known(inputs[0]))
        schema = element_schema(function, "process", output_type)
        shipped = make_closure(
            ApplyAdapter(function) if apply else function, definition_origin(function, origin)
        )
        named = shipped if not apply else _renamed(shipped, function)
        return WindowProcess(resolved, window, WindowFunctionKind.PROCESS, named), schema

    return define


def _renamed(closure: Any, function: Any) -> Any:
    from dataclasses import replace

    from yarnflow.graph.closures import function_name

    return replace(closure, name=function_name(function))


# --- sinks ----------------------------------------------------------------------------------


def sink(make: Callable[[Schema], Operator]) -> Definition:
    """Any sink."""

    def define(inputs: Inputs) -> Resolved:
        return make(inputs[0]), inputs[0]

    return define


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
