"""Joins of streams as a program calls them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from yarnflow.api import StreamExecutionEnvironment
from yarnflow.api.common import Time, Types, WatermarkStrategy
from yarnflow.api.datastream import DataStream, KeyedStream
from yarnflow.api.datastream.functions import ProcessJoinFunction
from yarnflow.api.datastream.window import TumblingEventTimeWindows, WindowAssigner
from yarnflow.api.executor import use_executor
from yarnflow.errors import GraphError, UnsupportedGraph
from yarnflow.graph.job_graph import JobGraph
from yarnflow.graph.operators import ElementKind, ElementOperator, SqlOperator
from yarnflow.testing.kept_graph import KeptGraph

HOUR: WindowAssigner[Any, Any] = TumblingEventTimeWindows.of(Time.hours(1))


class Pairs(ProcessJoinFunction):
    def process_element(self, left: Any, right: Any, ctx: ProcessJoinFunction.Context) -> Any:
        yield left, right


def streams(env: StreamExecutionEnvironment, timed: bool = True) -> tuple[DataStream, DataStream]:
    numbers = env.from_collection([(1, 2)], "k BIGINT, ms BIGINT")
    rows = numbers.select("k", "ms", "timestamp_millis(ms) AS ts")
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner("ts")
    both = rows, rows.select("k AS id", "ts")
    if not timed:
        return both
    left, right = (one.assign_timestamps_and_watermarks(strategy) for one in both)
    return left, right


def graph(env: StreamExecutionEnvironment) -> JobGraph:
    kept = KeptGraph()
    with use_executor(kept):
        env.execute_async("joins")
    return kept.graphs[-1]


def test_an_interval_join_of_fields_becomes_a_query() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    left, right = streams(env)
    joined = left.key_by("k").interval_join(right.key_by("id")).between(-1000, 2000).lower_bound_exclusive()
    joined.select("left.*", "right.id AS other").print()
    (query,) = (node for node in graph(env).nodes if isinstance(node.operator, SqlOperator))
    assert query.operator.query == (  # type: ignore[union-attr]
        "SELECT left.*, right.id AS other FROM `left` JOIN `right` ON left.k = right.id "
        "AND right.ts >= left.ts + INTERVAL '-999' MILLISECOND "
        "AND right.ts <= left.ts + INTERVAL '2000' MILLISECOND"
    )
    assert query.operator.stateful and not query.operator.keeps  # type: ignore[union-attr]
    assert (query.output_schema.names, query.output_schema.event_time) == (("k", "ms", "ts", "other"), "ts")


def test_joins_by_functions_have_two_keyed_inputs() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    left, right = streams(env)
    # keys of keyed streams are not those of a join
    left.key_by("k").join(right).where(lambda row: row.k).equal_to("id").window(HOUR).apply(min).print()
    groups = left.co_group(right).where("k").equal_to("id").window(HOUR)
    groups.apply(lambda a, b: [len(a)], Types.INT()).print()
    left.key_by("k").interval_join(right.key_by("id")).between(0, 5).process(Pairs()).print()
    found = [node.operator for node in graph(env).nodes if isinstance(node.operator, ElementOperator)]
    assert [one.kind for one in found] == [ElementKind.WINDOW, ElementKind.WINDOW, ElementKind.INTERVAL_JOIN]
    for one in found:
        assert one.stateful and [way.selector is not None for way in one.inputs] == [True, True]


Calls = Callable[[KeyedStream, KeyedStream], Any]


@pytest.mark.parametrize(
    ("call", "part"),
    [
        (lambda a, b: a.interval_join(b).in_processing_time(), "go by event time"),
        (lambda a, b: a.interval_join(b).between(5, 4).process(Pairs()), "no time is from 5 to 4 ms"),
        (lambda a, b: a.interval_join(b).between(0, True), "length of time"),
        (lambda a, b: a.interval_join(b).between(0, 4).process(len), "a ProcessJoinFunction is needed"),
        (lambda a, b: a.interval_join(b).between(0, 4).process(Pairs), "make an object of it"),
        (lambda a, b: a.key_by(len).interval_join(b).between(0, 4).select("left.k"), "keyed by a function"),
        (lambda a, b: a.key_by("k", "ms").interval_join(b).between(0, 4).select("left.k"), "2 and 1 fields"),
        (lambda a, b: a.join(b).where("k").equal_to(5), "neither a function"),
        (lambda a, b: a.join(b).where("k").equal_to("id").window(5), "a WindowAssigner is needed"),
        (lambda a, b: a.join(b).where("k").equal_to("id").window(HOUR).apply(5), "neither a function"),
    ],
)
def test_refused(call: Calls, part: str) -> None:
    left, right = streams(StreamExecutionEnvironment.get_execution_environment())
    with pytest.raises(GraphError, match=r"^\S*test_joins.py:\d+: ") as caught:
        call(left.key_by("k"), right.key_by("id"))
    assert part in str(caught.value)


def test_a_native_interval_join_needs_event_time() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    left, right = streams(env, timed=False)
    left.key_by("k").interval_join(right.key_by("id")).between(0, 5).select("left.k").print()
    with pytest.raises(UnsupportedGraph, match="the left stream has no event time; call assign_timestamps"):
        graph(env)
