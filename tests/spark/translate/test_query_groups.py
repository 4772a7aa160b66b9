"""Which sinks share a query: pure."""

from __future__ import annotations

from typing import Any

import pytest

from yarnflow.core.ids import JobId, VertexId
from yarnflow.core.messages import ProgramKind
from yarnflow.errors import UnsupportedGraph
from yarnflow.graph.connectors.sinks import PrintSink
from yarnflow.graph.connectors.sources import FileSource, RateSource
from yarnflow.graph.job_graph import JobEdge, JobGraph, JobVertex, ShipStrategy, StreamNode
from yarnflow.graph.operators import (
    FilterExpression,
    Key,
    RunningAggregate,
    SelectOperator,
    UnionOperator,
    Window,
    WindowAggregate,
    WindowKind,
)
from yarnflow.graph.schema import Field, Schema
from yarnflow.spark.translate.query_groups import GraphIndex, query_groups

SCHEMA = Schema((Field("n", "bigint"),))
KEY = Key(("n",), ("n",))
BOUNDED = FileSource("/in", "csv", SCHEMA)
WINDOW = WindowAggregate(KEY, Window(WindowKind.TUMBLING, size_ms=1000), ("count(*) AS c",))
AGGREGATE = RunningAggregate(KEY, ("count(*) AS c",))


def graph(*operators: tuple[Any, ...], uids: dict[int, str] | None = None) -> JobGraph:
    """Operators with the positions (from 1) of their inputs."""
    nodes = tuple(
        StreamNode(
            n,
            type(op).__name__,
            f"{n:032x}",
            op,
            tuple(inputs),
            SCHEMA,
            1,
            128,
            "default",
            (uids or {}).get(n, ""),
            "job.py:1",
        )
        for n, (op, *inputs) in enumerate(operators, 1)
    )
    return JobGraph(JobId("0" * 32), "job", ProgramKind.GRAPH, nodes)


def test_sinks_behind_one_source_share_a_query() -> None:
    (group,) = query_groups(
        graph(
            (BOUNDED,),
            (FilterExpression("n > 1"), 1),
            (PrintSink(), 2),
            (SelectOperator(("n",)), 2),
            (PrintSink(), 4),
        )
    )
    assert (group.cut, group.base, group.sinks) == (1, 2, (3, 5))
    assert group.bounded and not group.windowed and group.output_mode == "append"


def test_a_single_sink_takes_its_tail_into_the_plan() -> None:
    (group,) = query_groups(graph((BOUNDED,), (FilterExpression("n > 1"), 1), (PrintSink(), 2)))
    assert group.base == 2


def test_a_stateful_operator_or_union_is_a_cut() -> None:
    groups = query_groups(
        graph(
            (BOUNDED,),
            (AGGREGATE, 1),
            (PrintSink(), 2),
            (UnionOperator(), 1, 1),
            (PrintSink(), 4),
            (PrintSink(), 1),
        )
    )
    assert [(g.cut, g.output_mode) for g in groups] == [(2, "update"), (4, "append"), (1, "append")]


def test_unbounded_source_makes_the_query_unbounded() -> None:
    (group,) = query_groups(graph((BOUNDED,), (RateSource(1),), (UnionOperator(), 1, 2), (PrintSink(), 3)))
    assert not group.bounded
    (group,) = query_groups(graph((RateSource(1, 5),), (PrintSink(), 1)))
    assert group.bounded


def test_name_is_the_cuts_uid_or_position() -> None:
    program = ((BOUNDED,), (PrintSink(), 1))
    assert query_groups(graph(*program))[0].name == f"{1:032x}"
    assert query_groups(graph(*program, uids={1: "orders"}))[0].name == "orders"
    assert query_groups(graph(*program, uids={1: "../x"}))[0].name == f"{1:032x}"
    more = (*program, (FilterExpression("n > 1"), 1), (PrintSink(), 3))
    assert query_groups(graph(*more))[0].name == f"{1:032x}"


def test_update_and_another_stateful_operator_are_refused() -> None:
    with pytest.raises(
        UnsupportedGraph, match="'RunningAggregate' .* cannot stand in one query with 'WindowAggregate'"
    ):
        query_groups(graph((BOUNDED,), (WINDOW, 1), (AGGREGATE, 2), (PrintSink(), 3)))
    (group,) = query_groups(graph((BOUNDED,), (WINDOW, 1), (WINDOW, 2), (PrintSink(), 3)))
    assert group.windowed


def test_no_sink() -> None:
    with pytest.raises(UnsupportedGraph, match="no sink"):
        query_groups(graph((BOUNDED,)))


def test_index_knows_vertices_and_edges() -> None:
    nodes = graph((BOUNDED,), (FilterExpression("true"), 1), (PrintSink(), 2)).nodes
    a, b = VertexId("a" * 32), VertexId("b" * 32)
    vertices = (JobVertex(a, "a", (1, 2), 1, 128, "default"), JobVertex(b, "b", (3,), 2, 128, "default"))
    edges = (JobEdge(a, b, ShipStrategy.REBALANCE),)
    index = GraphIndex(JobGraph(JobId("0" * 32), "job", ProgramKind.GRAPH, nodes, vertices, edges))
    assert index.chained(1, 2) and not index.chained(2, 3)
    assert index.rebalanced(2, 3) and not index.rebalanced(1, 2)
