"""What of a program its state depends on.

Left out, because state survives it: user functions, stateless operators, sinks, paths and rates of sources.
Of a script nothing but that it is one is known.  Flink counterpart: the operators of a ``JobGraph``, as
``StateAssignmentOperation`` looks at them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from yarnflow.core.checkpoint.program_shape import (
    FieldShape,
    OperatorShape,
    ProgramShape,
    QueryShape,
    SourceShape,
)
from yarnflow.core.messages import ProgramKind
from yarnflow.graph.connectors.kafka import KafkaSource
from yarnflow.graph.connectors.python import PythonSource
from yarnflow.graph.connectors.rabbitmq import RabbitMqSource
from yarnflow.graph.connectors.sources import (
    CollectionSource,
    FileSource,
    RateSource,
    SequenceSource,
    SocketSource,
)
from yarnflow.graph.element_places import ElementRegion, element_region
from yarnflow.graph.job_graph import JobGraph, StreamNode
from yarnflow.graph.operators import (
    AssignTimestamps,
    DropDuplicates,
    ElementOperator,
    FilterExpression,
    Key,
    KeyedReduce,
    LookupJoin,
    PartitionByKey,
    PartitionCustom,
    PythonOperator,
    RunningAggregate,
    SelectOperator,
    SideOutput,
    Sink,
    SqlOperator,
    Window,
    WindowAggregate,
    WindowProcess,
)
from yarnflow.graph.schema import Field

_STATELESS: Final = (
    SelectOperator, FilterExpression, PythonOperator, LookupJoin, AssignTimestamps, SideOutput,
    PartitionByKey, PartitionCustom,
)  # fmt: skip
_KEYED: Final = (RunningAggregate, KeyedReduce, WindowAggregate, WindowProcess)
_KINDS: Final[Mapping[type, str]] = {
    CollectionSource: "collection",
    FileSource: "file",
    KafkaSource: "Kafka",
    PythonSource: "Python",
    RabbitMqSource: "RabbitMQ",
    RateSource: "rate",
    SequenceSource: "sequence",
    SocketSource: "socket",
    RunningAggregate: "running aggregate",
    KeyedReduce: "reduce",
    WindowAggregate: "window aggregate",
    WindowProcess: "window function",
    SqlOperator: "SQL",
    DropDuplicates: "de-duplication",
}

#: name of the one query of a job that has all its operators on elements
ELEMENT_QUERY: Final = "elements"


def query_name(node: StreamNode) -> str:
    """The name of the query that is cut at a node: its uid where that is a file name, else its hash."""
    uid = node.uid
    safe = bool(uid) and all(c.isalnum() or c in "-_." for c in uid) and uid[0] not in "._"
    return uid if safe else node.operator_hash


def shape_of(graph: JobGraph) -> ProgramShape:
    """The shape of a program; of a script only its kind."""
    if graph.kind is not ProgramKind.GRAPH:
        return ProgramShape(graph.kind.value)
    nodes = {node.node_id: node for node in graph.nodes}
    region = element_region(nodes)
    sinks = [node.node_id for node in graph.nodes if isinstance(node.operator, Sink)]
    cuts = dict.fromkeys(_cut(nodes, sink) for sink in sinks if sink not in region.sinks)
    elements = (_element_query(nodes, region),) if region.sinks else ()
    return ProgramShape(
        kind=graph.kind.value,
        graph_hash=_graph_hash(graph),
        partitions=max((vertex.parallelism for vertex in graph.vertices), default=1),
        queries=(*elements, *(_query(nodes, cut) for cut in cuts)),
    )


def _cut(nodes: Mapping[int, StreamNode], sink: int) -> int:
    """Where the query of a sink begins: what is stateless and has one input belongs to the sinks."""
    node = nodes[nodes[sink].inputs[0]]
    while _is_stateless(node) and len(node.inputs) == 1:
        node = nodes[node.inputs[0]]
    return node.node_id


def _query(nodes: Mapping[int, StreamNode], cut: int) -> QueryShape:
    node = nodes[cut]
    before = list(_in_plan_order(nodes, cut))
    return QueryShape(
        name=query_name(node),
        operator=node.name,
        uid=node.uid,
        origin=node.origin,
        sources=tuple(_source(n) for n in before if not n.inputs and not isinstance(n.operator, SqlOperator)),
        operators=tuple(_operator(nodes, n) for n in before if _is_stateful(n)),
    )


def _element_query(nodes: Mapping[int, StreamNode], region: ElementRegion) -> QueryShape:
    """The query of all operators on elements; where their state lies is no part of it."""
    before = sorted({n.node_id for sink in region.sinks for n in _in_plan_order(nodes, sink)})
    return QueryShape(
        name=ELEMENT_QUERY,
        operator="operators on elements",
        sources=tuple(
            _source(nodes[node_id])
            for node_id in before
            if not nodes[node_id].inputs and not isinstance(nodes[node_id].operator, SqlOperator)
        ),
        operators=tuple(
            replace(shape, kind=_divided(shape.kind, nodes[node_id]))
            for node_id in before
            if isinstance(nodes[node_id].operator, ElementOperator) and _is_stateful(nodes[node_id])
            for shape in [_operator(nodes, nodes[node_id])]
        ),
    )


def _divided(kind: str, node: StreamNode) -> str:
    """With what state on disk is divided by: keys are found by their group."""
    operator = node.operator
    keyed = isinstance(operator, ElementOperator) and any(i.selector is not None for i in operator.inputs)
    groups = f"{node.max_parallelism} key groups" if keyed else f"parallelism {node.parallelism}"
    return f"{kind}, {groups}"


def _in_plan_order(nodes: Mapping[int, StreamNode], last: int) -> Iterator[StreamNode]:
    """All before the node and itself, each once: inputs before what reads them, the first input first."""
    seen: set[int] = set()
    waiting = [(last, False)]
    while waiting:
        node_id, inputs_done = waiting.pop()
        if inputs_done:
            yield nodes[node_id]
        elif node_id not in seen:
            seen.add(node_id)
            waiting.append((node_id, True))
            waiting.extend((input_id, False) for input_id in reversed(nodes[node_id].inputs))


def _is_stateless(node: StreamNode) -> bool:
    if isinstance(node.operator, ElementOperator):
        return not node.operator.stateful
    return isinstance(node.operator, _STATELESS)


def _is_stateful(node: StreamNode) -> bool:
    operator = node.operator
    if isinstance(operator, SqlOperator):
        return bool(node.inputs) and operator.stateful
    if isinstance(operator, DropDuplicates):
        return True
    return isinstance(operator, _KEYED) or (isinstance(operator, ElementOperator) and operator.stateful)


def _source(node: StreamNode) -> SourceShape:
    operator, location, bounded = node.operator, "", True
    if isinstance(operator, FileSource):
        location, bounded = operator.path, operator.bounded
    elif isinstance(operator, KafkaSource):
        location, bounded = operator.where, operator.stopping is not None
    elif isinstance(operator, PythonSource):
        location, bounded = operator.data_source.name, operator.bounded
    elif isinstance(operator, RabbitMqSource):
        location, bounded = operator.where, False
    elif isinstance(operator, SocketSource):
        location, bounded = f"{operator.host}:{operator.port}", False
    elif isinstance(operator, SequenceSource):
        location = f"{operator.first} to {operator.last}"
    elif isinstance(operator, RateSource):
        location, bounded = f"{operator.rows_per_second} rows/s", operator.count is not None
    return SourceShape(
        node.operator_hash, node.name, _KINDS[type(operator)], node.uid, node.origin, location, bounded
    )


def _operator(nodes: Mapping[int, StreamNode], node: StreamNode) -> OperatorShape:
    operator = node.operator
    record = nodes[node.inputs[0]].output_schema.fields
    output = node.output_schema.fields
    key: Key | None = None
    state: tuple[str, ...] = ()
    value: Sequence[Field] = ()
    window = ""
    if isinstance(operator, _KEYED):
        key = operator.key
    if isinstance(operator, (RunningAggregate, WindowAggregate)):
        state = tuple(_one_line(text) for text in operator.aggregates)
        value = output[len(output) - len(state) :] if len(output) >= len(state) else ()
    elif isinstance(operator, (KeyedReduce, WindowProcess)):
        value = record
    elif isinstance(operator, SqlOperator):
        state = (_one_line(operator.query),)
    elif isinstance(operator, DropDuplicates):
        state = operator.fields
    if isinstance(operator, (WindowAggregate, WindowProcess)):
        window = _window(operator.window)
    return OperatorShape(
        operator_hash=node.operator_hash,
        name=node.name,
        kind=_kind(operator),
        uid=node.uid,
        origin=node.origin,
        key=() if key is None else tuple(
            f"{_one_line(text)} AS {name}" for text, name in zip(key.expressions, key.names, strict=False)
        ),
        key_schema=() if key is None else _key_schema(key, output, record),
        state=state,
        value_schema=tuple(FieldShape(f.name, f.type or "") for f in value),
        window=window,
    )  # fmt: skip


def _kind(operator: object) -> str:
    if isinstance(operator, ElementOperator):
        return operator.kind.value.lower().replace("_", " ")
    return _KINDS[type(operator)]


def _key_schema(key: Key, output: Sequence[Field], record: Sequence[Field]) -> tuple[FieldShape, ...]:
    types = {field.name.lower(): field.type or "" for field in (*record, *output)}
    return tuple(FieldShape(name, types.get(name.lower(), "")) for name in key.names)


def _window(window: Window) -> str:
    parts = [window.kind.value.lower()]
    for name, value_ms in (
        ("size", window.size_ms),
        ("slide", window.slide_ms),
        ("offset", window.offset_ms),
        ("gap", window.gap_ms),
    ):
        if value_ms:
            parts.append(f"{name} {value_ms} ms")
    return ", ".join(parts)


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _graph_hash(graph: JobGraph) -> str:
    import hashlib  # loads OpenSSL, which a program that only builds streams never needs

    lines = [f"{n.operator_hash} {type(n.operator).__name__}" for n in graph.nodes]
    lines += [f"{e.source} {e.target} {e.ship_strategy.value}" for e in graph.edges]
    return hashlib.blake2b("\n".join(lines).encode(), digest_size=16).hexdigest()
