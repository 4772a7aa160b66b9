"""What a program's saved state depends on, and whether a program can start from a state.

Decides by comparing shapes, before anything is read or written: queries are found again by name
(the uid or position of the operator they are cut at), and within a query sources and stateful
operators by their order, as Spark numbers them, checked against their uids.  Operators on elements are
found by their uids alone: where their state lies is put right when a job starts from it
(:mod:`yarnflow.spark.checkpoints.moving`).  What only Spark knows
(types of Python results, the plan of a SQL query) is left to Spark.  Of a script nothing but that
it is one is known.

Not compared, because state survives it: user functions, stateless operators, sinks, paths and
rates of sources.  Flink counterparts: ``StateAssignmentOperation``, ``Checkpoints`` (load and validate).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final, TypeVar

from yarnflow.core.checkpoint.program_shape import (
    FieldShape,
    OperatorShape,
    ProgramShape,
    QueryShape,
    SourceShape,
)
from yarnflow.core.messages import ProgramKind
from yarnflow.graph.element_places import ElementRegion, element_region
from yarnflow.graph.expressions import is_stateful_query
from yarnflow.graph.job_graph import JobGraph, StreamNode
from yarnflow.graph.operators import (
    SINKS,
    AssignTimestamps,
    CollectionSource,
    ElementOperator,
    FileSource,
    FilterExpression,
    Key,
    KeyedReduce,
    PartitionCustom,
    PythonOperator,
    RateSource,
    RunningAggregate,
    SelectOperator,
    SequenceSource,
    SideOutput,
    SocketSource,
    SqlOperator,
    Window,
    WindowAggregate,
    WindowProcess,
)
from yarnflow.graph.schema import Field

_STATELESS: Final = (
    SelectOperator, FilterExpression, PythonOperator, AssignTimestamps, SideOutput, PartitionCustom
)  # fmt: skip
_KEYED: Final = (RunningAggregate, KeyedReduce, WindowAggregate, WindowProcess)
_KINDS: Final[Mapping[type, str]] = {
    CollectionSource: "collection",
    FileSource: "file",
    RateSource: "rate",
    SequenceSource: "sequence",
    SocketSource: "socket",
    RunningAggregate: "running aggregate",
    KeyedReduce: "reduce",
    WindowAggregate: "window aggregate",
    WindowProcess: "window function",
    SqlOperator: "SQL",
}
_NEW_START: Final = "start without state (--restore none)"
_LEFT_BEHIND: Final = "leave its state behind (--allow-non-restored-state)"

#: name of the one query of a job that has all its operators on elements
ELEMENT_QUERY: Final = "elements"

_Part = TypeVar("_Part", SourceShape, OperatorShape)


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
    sinks = [node.node_id for node in graph.nodes if isinstance(node.operator, SINKS)]
    cuts = dict.fromkeys(_cut(nodes, sink) for sink in sinks if sink not in region.sinks)
    elements = (_element_query(nodes, region),) if region.sinks else ()
    return ProgramShape(
        kind=graph.kind.value,
        graph_hash=_graph_hash(graph),
        partitions=max((vertex.parallelism for vertex in graph.vertices), default=1),
        queries=(*elements, *(_query(nodes, cut) for cut in cuts)),
    )


def differences(
    saved: ProgramShape, program: ProgramShape, *, allow_non_restored: bool = False
) -> tuple[str, ...]:
    """Why a program cannot start from a state, one sentence each with what can be done; empty = it can.

    Queries and operators on elements that are new in the program are no difference: they start without
    state.

    Parameters
    ----------
    allow_non_restored : bool
        Nor are queries and operators on elements that are gone: their state is left behind.
    """
    if saved.kind != program.kind:
        kinds = {"GRAPH": "a DataStream program", "SCRIPT": "a PySpark script"}
        return (
            f"the state is of {kinds.get(saved.kind, saved.kind)} and this is "
            f"{kinds.get(program.kind, program.kind)}: submit the former, or {_NEW_START}",
        )
    found: list[str] = []
    by_name = {query.name: query for query in program.queries}
    for query in saved.queries:
        now = by_name.get(query.name)
        if now is not None:
            found.extend(_query_differences(query, now, allow_non_restored))
        elif not allow_non_restored:
            found.append(_missing(query))
    return tuple(found)


# --- making -------------------------------------------------------------------


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
        return bool(node.inputs) and is_stateful_query(operator.query)
    return isinstance(operator, _KEYED) or (isinstance(operator, ElementOperator) and operator.stateful)


def _source(node: StreamNode) -> SourceShape:
    operator, location, bounded = node.operator, "", True
    if isinstance(operator, FileSource):
        location, bounded = operator.path, operator.bounded
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


# --- comparing ------------------------------------------------------------------


def _missing(query: QueryShape) -> str:
    where = f"{query.operator} ({query.origin})" if query.origin else query.operator
    if query.uid:
        return (
            f"no query of the program has the uid '{query.uid}', whose state was saved (then {where}): "
            f"bring that operator back under its uid, {_LEFT_BEHIND}, or {_NEW_START}"
        )
    return (
        f"'{where}', whose state was saved, is not in the program, or not at the same place (it has no uid, "
        f"so it is known by its place only): submit the program as it was, {_LEFT_BEHIND}, or give sources "
        f"and stateful operators uids for the next time and {_NEW_START}"
    )


def _query_differences(
    saved: QueryShape, program: QueryShape, allow_non_restored: bool
) -> Iterator[str]:
    yield from _set_differences("source", saved, saved.sources, program.sources)
    if _in_step(saved.sources, program.sources):
        for was, now in zip(saved.sources, program.sources, strict=True):
            yield from _source_differences(was, now)
        yield from _bounded_differences(saved, program)
    if saved.name == ELEMENT_QUERY:
        yield from _element_differences(saved, program, allow_non_restored)
        return
    yield from _set_differences("stateful operator", saved, saved.operators, program.operators)
    if _in_step(saved.operators, program.operators):
        for before, after in zip(saved.operators, program.operators, strict=True):
            yield from _operator_differences(before, after)


def _element_differences(saved: QueryShape, program: QueryShape, allow_non_restored: bool) -> Iterator[str]:
    """State of operators on elements is found by their ids alone, wherever they stand."""
    there = {operator.operator_hash: operator for operator in program.operators}
    for was in saved.operators:
        now = there.get(was.operator_hash)
        if now is not None:
            yield from _operator_differences(was, now)
        elif not allow_non_restored:
            place = "" if was.uid else " (or not at the same place, by which it is known without a uid)"
            yield (
                f"stateful operator {_shown(was)} is not in the program any more{place}: bring it back, "
                f"{_LEFT_BEHIND}, or {_NEW_START}"
            )


def _set_differences(
    what: str, query: QueryShape, saved: Sequence[_Part], program: Sequence[_Part]
) -> Iterator[str]:
    if _in_step(saved, program):
        return
    gone = [part for part in saved if not any(_same(part, other) for other in program)]
    new = [part for part in program if not any(_same(other, part) for other in saved)]
    for part in gone:
        yield (
            f"{what} {_shown(part)} of query '{query.name}' is not in the program any more: bring it back, "
            f"or {_NEW_START}"
        )
    for part in new:
        yield (
            f"{what} {_shown(part)} is new in query '{query.name}', whose state has nothing for it: give it "
            f"a query (a sink) of its own, or {_NEW_START}"
        )
    if not gone and not new:
        yield (
            f"the {what}s of query '{query.name}' were {_listed(saved)} and are {_listed(program)}: restore "
            f"their order and number, or {_NEW_START}"
        )


def _in_step(saved: Sequence[_Part], program: Sequence[_Part]) -> bool:
    """The same parts in the same order, as Spark, which numbers them, would take them."""
    return len(saved) == len(program) and all(
        _same(was, now) or not (was.uid and now.uid) for was, now in zip(saved, program, strict=True)
    )


def _same(saved: _Part, program: _Part) -> bool:
    return saved.operator_hash == program.operator_hash


def _source_differences(saved: SourceShape, program: SourceShape) -> Iterator[str]:
    if saved.kind != program.kind:
        yield (
            f"source {_shown(program)} was a {saved.kind} source and is a {program.kind} source, to which "
            f"its offsets say nothing: make it a {saved.kind} source again, or {_NEW_START}"
        )


def _bounded_differences(saved: QueryShape, program: QueryShape) -> Iterator[str]:
    """Windows over input that ends have one more source, from which the end is told."""
    was, now = (all(source.bounded for source in query.sources) for query in (saved, program))
    if was != now and any(operator.window for operator in saved.operators):
        ways = {True: "to an end", False: "for ever"}
        yield (
            f"query '{saved.name}' has windows and was read {ways[was]}, and is read {ways[now]}: read its "
            f"sources {ways[was]} again, or {_NEW_START}"
        )


def _operator_differences(saved: OperatorShape, program: OperatorShape) -> Iterator[str]:
    shown = f"stateful operator {_shown(program)}"
    if saved.kind != program.kind:
        kinds = f"was a {saved.kind} and is a {program.kind}"
        yield f"{shown} {kinds}: make it a {saved.kind} again, or {_NEW_START}"
        return
    parts = (
        ("was keyed by", "is keyed by", _texts(saved.key), _texts(program.key)),
        ("had the window", "has the window", saved.window or "none", program.window or "none"),
        ("kept", "keeps", _texts(saved.state), _texts(program.state)),
    )
    for was, now, before, after in parts:
        if before != after:
            yield f"{shown} {was} {before} and {now} {after}: change it back, or {_NEW_START}"
    if saved.key == program.key:
        yield from _schema_differences(f"the key of {shown}", saved.key_schema, program.key_schema)
    if saved.state == program.state:
        yield from _schema_differences(f"the state of {shown}", saved.value_schema, program.value_schema)


def _schema_differences(
    what: str, saved: Sequence[FieldShape], program: Sequence[FieldShape]
) -> Iterator[str]:
    if not saved or not program:
        return  # only Spark knows it
    fits = len(saved) == len(program) and all(
        was.name.lower() == now.name.lower() and (was.type == now.type or not was.type or not now.type)
        for was, now in zip(saved, program, strict=True)
    )
    if not fits:
        yield (
            f"{what} had the fields {_fields(saved)} and has {_fields(program)}: give it the former fields, "
            f"or {_NEW_START}"
        )


def _shown(part: SourceShape | OperatorShape) -> str:
    uid = f"uid '{part.uid}'" if part.uid else "no uid"
    return f"'{part.name}' ({uid}{', ' if part.origin else ''}{part.origin})"


def _listed(parts: Sequence[SourceShape] | Sequence[OperatorShape]) -> str:
    return ", ".join(f"'{part.uid or part.name}'" for part in parts) or "none"


def _texts(texts: Sequence[str]) -> str:
    return ", ".join(texts) or "nothing"


def _fields(fields: Sequence[FieldShape]) -> str:
    return ", ".join(f"{field.name} {field.type}".rstrip() for field in fields)
