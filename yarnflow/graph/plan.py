"""The plan of a job for people and tools: what ``yarnflow info`` prints.

Decides how operators are described and says, without Spark, what each task compiles to and
what each sink promises.  Flink counterpart: ``JsonPlanGenerator`` (``GET /jobs/:id/plan``).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from yarnflow.config.secrets import masked_text
from yarnflow.graph.connectors.elasticsearch import ElasticsearchSink
from yarnflow.graph.connectors.kafka import KafkaDelivery, KafkaSink, KafkaSource
from yarnflow.graph.connectors.lookups import JdbcLookup, Lookup
from yarnflow.graph.connectors.python import PythonSink, PythonSource
from yarnflow.graph.connectors.rabbitmq import RabbitMqSink, RabbitMqSource
from yarnflow.graph.connectors.redis import RedisSink
from yarnflow.graph.connectors.sinks import (
    CollectSink,
    DiscardSink,
    FileSink,
    ForeachBatchSink,
    JdbcSink,
    PrintSink,
    SocketSink,
)
from yarnflow.graph.connectors.sources import (
    CollectionSource,
    FileSource,
    RateSource,
    SequenceSource,
    SocketSource,
)
from yarnflow.graph.growing_state import growing_state
from yarnflow.graph.job_graph import JobGraph, JobVertex, ShipStrategy, StreamNode
from yarnflow.graph.operators import (
    AssignTimestamps,
    DropDuplicates,
    ElementOperator,
    FilterExpression,
    Key,
    KeyedReduce,
    LookupJoin,
    Operator,
    PartitionByKey,
    PartitionCustom,
    PythonOperator,
    RunningAggregate,
    SelectOperator,
    SideOutput,
    SqlOperator,
    UnionOperator,
    Window,
    WindowAggregate,
    WindowKind,
    WindowProcess,
)
from yarnflow.graph.schema import KEY_FIELD
from yarnflow.graph.stream_graph import is_sink

_UNITS_MS = (
    (86_400_000, "day"), (3_600_000, "hour"), (60_000, "minute"), (1_000, "second"), (1, "millisecond")
)


def plan(graph: JobGraph) -> dict[str, Any]:
    """The job as JSON-ready dicts and lists.

    Returns
    -------
    dict
        ``jid``, ``name``, ``type`` (STREAMING or BATCH), ``required_slots``, ``slot_sharing_groups`` (group →
        slots), ``nodes`` (operators), ``vertices`` (tasks), ``sinks`` and ``growing_state``.
    """
    vertex_of = {node_id: vertex for vertex in graph.vertices for node_id in vertex.chain}
    groups: dict[str, int] = {}
    for vertex in graph.vertices:
        groups[vertex.slot_sharing_group] = max(groups.get(vertex.slot_sharing_group, 0), vertex.parallelism)
    return {
        "jid": graph.job_id,
        "name": graph.name,
        "type": "BATCH" if graph.batch else "STREAMING",
        "required_slots": graph.required_slots(),
        "slot_sharing_groups": groups,
        "nodes": [_node_plan(graph, node, vertex_of) for node in graph.nodes],
        "vertices": [_vertex_plan(graph, vertex) for vertex in graph.vertices],
        "sinks": [
            {
                "id": n.node_id,
                "name": n.name,
                "description": describe(n.operator),
                "guarantee": guarantee(n.operator),
            }
            for n in graph.nodes
            if is_sink(n.operator)
        ],
        # before it is too large
        "growing_state": [
            {"id": one.node_id, "operator": one.name, "origin": one.origin, "why": one.why}
            for one in growing_state(graph)
        ],
    }


def plan_json(graph: JobGraph, indent: int | None = 2) -> str:
    """:func:`plan` as text."""
    return json.dumps(plan(graph), indent=indent, ensure_ascii=False)


def _node_plan(graph: JobGraph, node: StreamNode, vertex_of: dict[int, JobVertex]) -> dict[str, Any]:
    strategies = node.strategies or (ShipStrategy.FORWARD,) * len(node.inputs)
    inputs = [
        {"num": number, "id": input_id, "ship_strategy": strategy.value}
        for number, (input_id, strategy) in enumerate(zip(node.inputs, strategies, strict=True))
    ]
    elements = node.output_schema.element_type
    return {
        "id": node.node_id,
        "operator_id": node.operator_hash,
        "operator": node.name,
        "description": node.description or describe(node.operator),
        "parallelism": node.parallelism,
        "max_parallelism": node.max_parallelism,
        "slot_sharing_group": node.slot_sharing_group,
        "vertex": vertex_of[node.node_id].vertex_id,
        "origin": node.origin,
        "output": [{"name": f.name, "type": f.type} for f in node.output_schema.without(KEY_FIELD).fields],
        # what Python functions get: None = rows of the columns above
        "element_type": None if elements is None else repr(elements),
        # the column of its views in queries
        "event_time": node.output_schema.event_time,
        **_query_plan(node.operator),
        "inputs": inputs,
    }


def _query_plan(operator: Operator) -> dict[str, str]:
    if not isinstance(operator, SqlOperator):
        return {}
    return {"results": "new values of earlier ones" if operator.changes else "appended"}


def _vertex_plan(graph: JobGraph, vertex: JobVertex) -> dict[str, Any]:
    nodes = {node.node_id: node for node in graph.nodes}
    return {
        "id": vertex.vertex_id,
        "name": vertex.name,
        "parallelism": vertex.parallelism,
        "max_parallelism": vertex.max_parallelism,
        "slot_sharing_group": vertex.slot_sharing_group,
        "operators": list(vertex.chain),
        "compiles_to": compiles_to([nodes[node_id].operator for node_id in vertex.chain]),
        "inputs": [
            {"id": edge.source, "ship_strategy": edge.ship_strategy.value}
            for edge in graph.edges
            if edge.target == vertex.vertex_id
        ],
    }


def compiles_to(operators: Sequence[Operator]) -> str:
    """``native columns``, or how often records go to Python and back and for how many functions."""
    if not operators:
        return "the script's own queries"
    functions = trips = 0
    in_trip = False
    for operator in operators:
        if isinstance(operator, (KeyedReduce, WindowProcess)) or _is_keyed(operator):
            trips, functions, in_trip = trips + 1, functions + 1, False
        elif isinstance(operator, LookupJoin):
            trips, functions, in_trip = trips + 1, functions + 1, False
        elif isinstance(operator, (PythonOperator, ElementOperator)):
            trips, functions, in_trip = trips + (not in_trip), functions + 1, True
        elif isinstance(operator, (SideOutput, PartitionCustom, PartitionByKey)):
            continue  # only says which way elements go
        elif not (isinstance(operator, AssignTimestamps) and not operator.expression):
            # a watermark set by the function before it does not end the round trip
            in_trip = False
    if not trips:
        return "native columns"
    how_often = "one Arrow round trip" if trips == 1 else f"{trips} Arrow round trips"
    return f"{how_often} ({functions} function{'s' if functions > 1 else ''})"


def _is_keyed(operator: Operator) -> bool:
    return isinstance(operator, ElementOperator) and any(i.selector is not None for i in operator.inputs)


def guarantee(operator: Operator) -> str:
    """What a sink promises after a failure."""
    match operator:
        case FileSink() | JdbcSink() | RedisSink():
            return "exactly-once"
        case KafkaSink(delivery=delivery):
            return "none" if delivery is KafkaDelivery.NONE else delivery.value.lower().replace("_", "-")
        case PythonSink(of_streams=True):
            return "exactly-once if it commits no batch id twice, else at-least-once"
        case SocketSink():
            return "none"
        case ForeachBatchSink():
            return "exactly-once if the function uses commit_once or the batch id, else at-least-once"
        case _:
            return "at-least-once"


def describe(operator: Operator) -> str:
    """One line on what an operator does."""
    match operator:
        case CollectionSource(schema=schema):
            return f"collection of {_names(schema.names)}"
        case SequenceSource(first=first, last=last):
            return f"numbers from {first} to {last}"
        case FileSource() as source:
            way = "bounded" if source.bounded else "watched for new files"
            return f"{source.format} files of {source.path}, {way}"
        case KafkaSource() as kafka:
            form = "columns" if kafka.format is None else kafka.format.kind.value.lower()
            aside = f", malformed ones to side output '{kafka.malformed}'" if kafka.malformed else ""
            return f"{form} of Kafka {kafka.where}" + (", bounded" if kafka.bounded else "") + aside
        case PythonSource(data_source=closure, bounded=bounded):
            return f"Python {closure.name} ({closure.origin})" + (", bounded" if bounded else "")
        case RabbitMqSource() as queue:
            return f"{queue.format.kind.value.lower()} of {queue.where}"
        case SocketSource(host=host, port=port):
            return f"lines from {host}:{port}"
        case RateSource(rows_per_second=rate, count=count):
            return f"{rate} rows per second" + ("" if count is None else f", {count} in all")
        case SqlOperator(query=query):
            return " ".join(query.split())
        case SelectOperator(expressions=expressions):
            return f"select {', '.join(expressions)}"
        case FilterExpression(expression=expression):
            return f"where {expression}"
        case PythonOperator(kind=kind, closure=closure):
            return f"Python {kind.value.lower().replace('_', ' ')} {closure.name} ({closure.origin})"
        case AssignTimestamps(expression=expression, out_of_orderness_ms=late):
            return f"event time {expression or 'by Python'}, {duration(late)} out of order at most"
        case UnionOperator():
            return "union"
        case DropDuplicates(fields=fields, within_ms=within_ms):
            ever = "for ever" if within_ms is None else f"within {duration(within_ms)}" if within_ms else ""
            return f"first of each {', '.join(fields)} {ever}".strip()
        case LookupJoin(lookup=lookup, keys=pairs, left=left):
            by = ", ".join(mine if mine == theirs else f"{mine} = {theirs}" for mine, theirs in pairs)
            return f"{'left' if left else 'inner'} join with {_lookup(lookup)} by {by}"
        case RunningAggregate(key=key, aggregates=aggregates):
            return f"{', '.join(aggregates)} by {_key(key)}, running"
        case KeyedReduce(key=key, closure=closure):
            return f"Python reduce {closure.name} ({closure.origin}) by {_key(key)}, running"
        case WindowAggregate(key=key, window=window, aggregates=aggregates):
            return f"{', '.join(aggregates)} by {_key(key)}, {describe_window(window)}"
        case WindowProcess(key=key, window=window, closure=closure, kind=kind):
            function = f"Python {kind.value.lower()} {closure.name} ({closure.origin})"
            return f"{function} by {_key(key)}, {describe_window(window)}"
        case ElementOperator(kind=kind, closure=closure, inputs=inputs):
            keys = [i.selector.name for i in inputs if i.selector is not None]
            by = f" by {', '.join(dict.fromkeys(keys))}" if keys else ""
            return f"Python {kind.value.lower().replace('_', ' ')} {closure.name} ({closure.origin}){by}"
        case SideOutput(tag_id=tag_id):
            return f"side output {tag_id}"
        case PartitionByKey(selector=selector):
            return f"partitions by key {selector.name} ({selector.origin})"
        case PartitionCustom(partitioner=closure):
            return f"partitions by {closure.name} ({closure.origin})"
        case CollectSink(limit=limit):
            return "back to the program" + ("" if limit is None else f", {limit} elements at most")
        case DiscardSink():
            return "nowhere: nobody reads it"
        case PrintSink():
            return "standard output of the driver"
        case FileSink(path=path, format=file_format):
            return f"{file_format} files in {path}"
        case KafkaSink(topic=topic, topic_selector=selector, value=value):
            where = f"topic {topic}" if selector is None else f"topics by {selector.name} ({selector.origin})"
            return f"{value.kind.value.lower()} to Kafka {where}"
        case RabbitMqSink() as queue:
            return f"{queue.value.kind.value.lower()} to {queue.where}"
        case RedisSink(command=command, mapper=mapper, additional_key=key):
            name = f"{command.value} {key}".rstrip()
            return f"{name} by {mapper.name} ({mapper.origin}) to {operator.where}"
        case ElasticsearchSink() as documents:
            return f"documents in {documents.where}"
        case SocketSink(value=value):
            return f"lines of {value.kind.value.lower()} to {operator.where}"
        case JdbcSink(statement=statement, url=url):
            # what is behind the question mark may be a password
            return f"{masked_text(url.partition('?')[0])}: {' '.join(statement.split())}"
        case PythonSink(data_source=closure):
            return f"Python {closure.name} ({closure.origin})"
        case ForeachBatchSink(closure=closure):
            return f"Python {closure.name} ({closure.origin}) per batch"


def _lookup(lookup: Lookup) -> str:
    if isinstance(lookup, JdbcLookup):
        # what is behind the question mark may be a password
        where = masked_text(lookup.url.partition("?")[0])
        return f"{', '.join(lookup.columns.names)} of {' '.join(lookup.table.split())} in {where}"
    return f"{', '.join(lookup.columns.names)} of Python {lookup.what}"


def describe_window(window: Window) -> str:
    """``tumbling window of 1 hour``."""
    match window.kind:
        case WindowKind.TUMBLING:
            text = f"tumbling window of {duration(window.size_ms)}"
        case WindowKind.SLIDING:
            text = f"sliding window of {duration(window.size_ms)} every {duration(window.slide_ms)}"
        case WindowKind.SESSION:
            text = f"session window with a gap of {duration(window.gap_ms)}"
    return text + (f" from {duration(window.offset_ms)}" if window.offset_ms else "")


def duration(duration_ms: int) -> str:
    """``90000`` → ``90 seconds``: the largest unit that divides it."""
    for unit_ms, unit in _UNITS_MS:
        if duration_ms and duration_ms % unit_ms == 0:
            count = duration_ms // unit_ms
            return f"{count} {unit}{'s' if count != 1 else ''}"
    return "0 seconds"


def _key(key: Key) -> str:
    shown = zip(key.expressions, key.names, strict=True)
    return ", ".join(n if e in (KEY_FIELD, n) else f"{e} AS {n}" for e, n in shown)


def _names(names: tuple[str, ...]) -> str:
    return ", ".join(names) if names else "unknown fields"


def streaming_plan_json(graph: JobGraph) -> str:
    """The job as Flink's streaming plan, JSON text: ``{"nodes": [{"id": 1, "type": …}, …]}``.

    Flink counterpart: ``JSONGenerator``, whose ``side`` is always *second*.
    """
    nodes = []
    for node in graph.nodes:
        strategies = node.strategies or (ShipStrategy.FORWARD,) * len(node.inputs)
        kind = "Data Source" if not node.inputs else "Data Sink" if is_sink(node.operator) else "Operator"
        shown: dict[str, Any] = {
            "id": node.node_id,
            "type": node.name,
            "pact": kind,
            "contents": node.name,
            "parallelism": node.parallelism,
        }
        if node.inputs:
            shown["predecessors"] = [
                {"id": source, "ship_strategy": strategy.value, "side": "second"}
                for source, strategy in zip(node.inputs, strategies, strict=True)
            ]
        nodes.append(shown)
    return json.dumps({"nodes": nodes}, indent=2)
