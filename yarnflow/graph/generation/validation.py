"""Combinations of operators that Spark cannot run, found before anything is submitted.

Decides by the kinds of operators and their order alone.  Spark's rules behind it: one output
mode per query, so running (update) and windowed (append) results do not mix; in append mode
a window may follow a window as long as nothing in between hides the event time; a watermark
is defined once on the way from a source to a sink.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, NoReturn

from yarnflow.errors import UnsupportedGraph
from yarnflow.graph.connectors.kafka import KafkaSource
from yarnflow.graph.connectors.sinks import FileSink
from yarnflow.graph.operators import (
    AssignTimestamps,
    DropDuplicates,
    ElementKind,
    ElementOperator,
    FilterExpression,
    KeyedReduce,
    LookupJoin,
    PythonOperator,
    RunningAggregate,
    SelectOperator,
    SideOutput,
    Source,
    SqlOperator,
    WindowAggregate,
    WindowProcess,
)
from yarnflow.graph.stream_graph import GraphNode, StreamGraph, is_sink

_ON_COLUMNS: Final = (
    SelectOperator,
    FilterExpression,
    DropDuplicates,
    RunningAggregate,
    WindowAggregate,
    SqlOperator,
)


@dataclass(frozen=True, slots=True)
class _Story:
    """What happened to a stream so far; each value is the ``line: call()`` that did it."""

    timestamps: str = ""
    #: event time is gone since
    timestamps_lost: str = ""
    running: str = ""
    #: the query whose results change
    query: str = ""
    window: str = ""
    #: no window can follow the last one since
    window_closed: str = ""


def validate(graph: StreamGraph) -> None:
    """Refuse what cannot run.

    Raises
    ------
    UnsupportedGraph
        Naming the line of the operator that is one too many and the one it clashes with.
    """
    if not graph.nodes:
        raise UnsupportedGraph("the program defines no operators; read a source and write it to a sink first")
    _check_uids(graph)
    _check_side_outputs(graph)
    read = {input_id for node in graph.nodes.values() for input_id, _ in node.inputs}
    one_batch = _is_one_batch(graph)
    stories: dict[int, _Story] = {}
    for node in graph.nodes.values():
        if node.node_id not in read and not is_sink(node.operator):
            _refuse(node, "its result goes nowhere; add a sink, for example print()")
        story = _merged(node, [stories[input_id] for input_id, _ in node.inputs])
        if isinstance(node.operator, FileSink) and story.query and not one_batch:
            _refuse(
                node,
                f"files cannot take results that change, and those of {story.query} do; GROUP BY window(…) "
                "of event time there, or write them with JdbcSink, KafkaSink or foreach_batch(…), or run in "
                "BATCH mode",
            )
        _check_columns(graph, node)
        stories[node.node_id] = _advance(node, story, one_batch)


def _check_columns(graph: StreamGraph, node: GraphNode) -> None:
    """Side outputs are elements, never columns, whatever their type."""
    if not isinstance(node.operator, _ON_COLUMNS):
        return
    for input_id, _ in node.inputs:
        before = graph.nodes[input_id]
        if isinstance(before.operator, SideOutput):
            _refuse(
                node,
                f"expressions and SQL cannot follow '{before.name}' ({before.origin}); write it as a "
                "function, for example map(…), filter(…) or reduce(…)",
            )


def _is_one_batch(graph: StreamGraph) -> bool:
    mode = graph.settings.configuration.get("execution.runtime-mode", "")
    sources = [node.operator for node in graph.nodes.values() if isinstance(node.operator, Source)]
    ends = all(source.bounded for source in sources)
    return mode == "BATCH" or (mode == "AUTOMATIC" and ends)


def _check_uids(graph: StreamGraph) -> None:
    seen: dict[str, GraphNode] = {}
    for node in graph.nodes.values():
        if node.uid and node.uid in seen:
            _refuse(node, f"uid '{node.uid}' is taken by '{seen[node.uid].name}' ({seen[node.uid].origin})")
        if not node.uid and not graph.settings.auto_uids:
            _refuse(node, "the operator has no uid, and disable_auto_generated_uids() wants one; add .uid(…)")
        seen[node.uid] = node


def _check_side_outputs(graph: StreamGraph) -> None:
    for node in graph.nodes.values():
        if isinstance(node.operator, SideOutput):
            source = graph.nodes[node.inputs[0][0]]
            if isinstance(source.operator, ElementOperator):
                continue
            if isinstance(source.operator, KafkaSource) and node.operator.tag_id in dict(
                source.operator.side_outputs
            ):
                continue
            _refuse(
                node,
                f"'{source.name}' ({source.origin}) has no side output '{node.operator.tag_id}'; call "
                "get_side_output() on the result of process() or of a window, or give a KafkaSource "
                "set_malformed_output(tag)",
            )


def _merged(node: GraphNode, inputs: Sequence[_Story]) -> _Story:
    if not inputs:
        return _Story()
    first = inputs[0]
    running = next((s.running for s in inputs if s.running), "")
    window = next((s.window for s in inputs if s.window), "")
    if running and window:
        _refuse(
            node, f"running results ({running}) and windowed results ({window}) cannot go into one stream"
        )
    without = next((s for s in inputs if not s.timestamps), None)
    return replace(
        first,
        # windows need the event time of every record
        timestamps=first.timestamps if without is None else "",
        timestamps_lost=next((s.timestamps_lost for s in inputs if s.timestamps_lost), ""),
        running=running,
        query=next((s.query for s in inputs if s.query), ""),
        window=window,
        window_closed=next((s.window_closed for s in inputs if s.window_closed), ""),
    )


def _advance(node: GraphNode, story: _Story, one_batch: bool) -> _Story:
    here = f"{node.origin}: {node.call}()"
    match node.operator:
        case AssignTimestamps():
            if story.timestamps:
                _refuse(node, f"event time is assigned already ({story.timestamps})")
            if story.running or story.window:
                _refuse(node, f"event time must be assigned before {story.running or story.window}")
            return replace(story, timestamps=here, timestamps_lost="")
        case SqlOperator() as operator:
            return _after_sql(node, operator, story, here)
        case DropDuplicates():
            return _with_state(node, story, here)
        case ElementOperator() as operator:
            return _after_elements(node, operator, story, here, one_batch)
        case PythonOperator() | LookupJoin():
            return replace(story, window_closed=story.window and (story.window_closed or here))
        case RunningAggregate() | KeyedReduce():
            _refuse_second(node, story)
            return replace(story, running=here)
        case WindowAggregate() | WindowProcess():
            _check_window(node, story)
            closed = here if isinstance(node.operator, WindowProcess) else story.window_closed
            return replace(story, window=here, window_closed=closed)
    return story


def _after_sql(node: GraphNode, operator: SqlOperator, story: _Story, here: str) -> _Story:
    if operator.changes:
        _refuse_second(node, story)
        lost = here if story.timestamps else story.timestamps_lost
        return replace(story, timestamps="", timestamps_lost=lost, running=here, query=here)
    if operator.stateful:
        story = _with_state(node, story, here)
    if node.schema.event_time is not None:
        return replace(story, timestamps=here, timestamps_lost="")
    lost = here if story.timestamps else story.timestamps_lost
    return replace(story, timestamps="", timestamps_lost=lost)


def _with_state(node: GraphNode, story: _Story, here: str) -> _Story:
    if story.running:
        _refuse_second(node, story)
    if story.window_closed:
        _refuse(
            node,
            f"state after {story.window} is possible only when nothing but select() and filter(expression) "
            f"lies between; {story.window_closed} hides the event time",
        )
    return replace(story, window=here)


def _after_elements(
    node: GraphNode, operator: ElementOperator, story: _Story, here: str, one_batch: bool
) -> _Story:
    before = story.running or story.window
    if before and not one_batch:
        kept = (
            "give it an output_type as DDL text ('name TYPE, …'), with which it works on columns, "
            if operator.kind in (ElementKind.MAP, ElementKind.FLAT_MAP)
            else ""
        )
        _refuse(
            node,
            f"a function on Python objects cannot follow {before}, which keeps its state in columns; {kept}"
            "do that by a function as well, run in BATCH mode, or read the results in another job",
        )
    if operator.kind is ElementKind.TIMESTAMPS:
        # watermarks travel with elements, so they may be assigned anew anywhere
        return replace(story, timestamps=here, timestamps_lost="", window="", window_closed="")
    # what comes out carries its own time, whatever window it was in
    return replace(story, window="", window_closed="")


def _check_window(node: GraphNode, story: _Story) -> None:
    if story.running:
        _refuse_second(node, story)
    if story.timestamps_lost and not story.timestamps:
        _refuse(
            node,
            f"a window needs event time, which {story.timestamps_lost} drops; select exactly one column "
            "there that is event time, or window_time(…) of a window",
        )
    if not story.timestamps:
        _refuse(
            node,
            "a window needs event time; call assign_timestamps_and_watermarks(…) before key_by(…)"
            + (" on every stream of the union" if len(node.inputs) > 1 else ""),
        )
    if story.window and story.window_closed:
        _refuse(
            node,
            f"a second window (after {story.window}) is possible only when nothing but "
            f"select() and filter(expression) lies between; {story.window_closed} hides the event time",
        )


def _refuse_second(node: GraphNode, story: _Story) -> None:
    if story.running:
        _refuse(node, f"keyed state after running results is not possible; they come from {story.running}")
    if story.window:
        _refuse(
            node, f"running results after a window are not possible ({story.window}); use a window here too"
        )


def _refuse(node: GraphNode, message: str) -> NoReturn:
    raise UnsupportedGraph(f"{node.origin}: {node.call}(): {message}")
