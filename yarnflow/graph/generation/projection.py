"""Which fields of a source's messages somebody reads: the others are neither parsed nor moved.

Decides over the graph alone.  A field that nobody reads may be malformed: nobody notices.
Flink counterpart: ``SupportsProjectionPushDown``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from yarnflow.graph.connectors.kafka import KafkaSource
from yarnflow.graph.connectors.messages import MessageFormatKind
from yarnflow.graph.job_graph import StreamNode
from yarnflow.graph.operators import (
    AssignTimestamps,
    FilterExpression,
    PythonKind,
    PythonOperator,
    RunningAggregate,
    SelectOperator,
    WindowAggregate,
)
from yarnflow.graph.schema import KEY_FIELD, Schema

#: names of fields; None = all
_Fields = frozenset[str] | None
_NEW_RECORDS = (PythonKind.MAP, PythonKind.FLAT_MAP)


def projected(nodes: Sequence[StreamNode]) -> tuple[StreamNode, ...]:
    """The nodes of a graph, where sources of messages say which fields are read."""
    readers: dict[int, list[StreamNode]] = {}
    for node in nodes:
        for before in node.inputs:
            readers.setdefault(before, []).append(node)
    return tuple(_projected(node, readers) for node in nodes)


def fields_of_record(operators: Iterable[object], schema: Schema) -> tuple[str, ...]:
    """The fields that a run of Python functions reads of what comes in, in the schema's order.

    All of them where that is not certain, or where records leave the run as they came.
    """
    found: set[str] = set()
    for operator in operators:
        if not isinstance(operator, PythonOperator):
            continue
        names = _by_function(operator, schema)
        if names is None:
            break
        found |= names
        if operator.kind in _NEW_RECORDS:
            # none at all would leave nothing that says how many records there are
            return tuple(name for name in schema.names if name in found) or schema.names[:1]
    return schema.names


def _projected(node: StreamNode, readers: dict[int, list[StreamNode]]) -> StreamNode:
    source = node.operator
    if not isinstance(source, KafkaSource) or source.format is None:
        return node
    form = source.format
    if form.kind is not MessageFormatKind.JSON:
        return node
    # here fields that nobody reads decide as well which messages there are
    if form.ignore_errors or source.malformed or form.options.get("fail_on_missing_field"):
        return node
    schema = node.output_schema.columns
    found = _read(node.node_id, schema, readers)
    if not found or len(found) == len(schema.names):
        return node
    return replace(
        node, operator=replace(source, fields=tuple(name for name in schema.names if name in found))
    )


def _read(node_id: int, schema: Schema, readers: dict[int, list[StreamNode]]) -> _Fields:
    """What all that is behind a node reads of its records, which have the schema."""
    found: set[str] = set()
    for reader in readers.get(node_id, []):
        operator = reader.operator
        own = _by_operator(operator, schema)
        if own is None:
            return None
        found |= own
        if _hands_on(operator):
            behind = _read(reader.node_id, schema, readers)
            if behind is None:
                return None
            found |= behind
    return frozenset(found)


def _hands_on(operator: object) -> bool:
    """Whether records leave an operator as they came."""
    if isinstance(operator, PythonOperator):
        return operator.kind not in _NEW_RECORDS
    return isinstance(operator, (FilterExpression, AssignTimestamps))


def _by_operator(operator: object, schema: Schema) -> _Fields:
    match operator:
        case SelectOperator(expressions=expressions):
            return _by_expressions(expressions, schema)
        case FilterExpression(expression=expression):
            return _by_expressions([expression], schema)
        case AssignTimestamps(expression=expression):
            return _by_expressions([expression] if expression else [], schema)
        case WindowAggregate() | RunningAggregate():
            texts = [*operator.key.expressions, *operator.aggregates]
            return _by_expressions([text for text in texts if text != KEY_FIELD], schema)
        case PythonOperator():
            return _by_function(operator, schema)
    return None


def _by_expressions(expressions: Iterable[str], schema: Schema) -> _Fields:
    from yarnflow.graph.sql.expressions import fields_named

    found: set[str] = set()
    for text in expressions:
        names = fields_named(text, schema)
        if names is None:
            return None
        found |= names
    return frozenset(found)


def _by_function(operator: PythonOperator, schema: Schema) -> _Fields:
    names = operator.fields
    if names is None or schema.scalar or not set(names) <= set(schema.names):
        return None
    return frozenset(names)
