"""Levels planned from programs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from yarnflow.api import FileSource, StreamExecutionEnvironment
from yarnflow.api.common import Duration, Row, SimpleStringSchema, Types, WatermarkStrategy
from yarnflow.api.common.watermark_strategy import TimestampAssigner
from yarnflow.api.datastream import OutputTag
from yarnflow.api.datastream.connectors.kafka import KafkaSource
from yarnflow.api.datastream.functions import KeyedProcessFunction
from yarnflow.api.executor import use_executor
from yarnflow.graph.connectors.messages import MALFORMED_MESSAGE
from yarnflow.graph.job_graph import JobGraph
from yarnflow.graph.state.shape import ELEMENT_QUERY, shape_of
from yarnflow.operators.elements import Chunk
from yarnflow.operators.task.plan import ChainedRoute, Exchange, ExchangeRoute, SinkRoute
from yarnflow.operators.task.planner import LevelsPlan
from yarnflow.spark.translate.query_groups import query_groups
from yarnflow.testing.in_memory_levels import InMemoryLevels
from yarnflow.testing.kept_graph import KeptGraph


def environment() -> StreamExecutionEnvironment:
    return StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)


def planned(env: StreamExecutionEnvironment) -> tuple[JobGraph, LevelsPlan]:
    kept = KeptGraph()
    with use_executor(kept):
        env.execute_async("planned")
    (group,) = query_groups(kept.graphs[0])
    assert group.levels is not None and group.name == ELEMENT_QUERY
    return kept.graphs[0], group.levels


def places(plan: LevelsPlan, graph: JobGraph) -> dict[str, list[int]]:
    """Operator's name → its levels."""
    names = {node.node_id: node.name for node in graph.nodes}
    found: dict[int, list[int]] = {}
    for level in [*(source.level for source in plan.sources), *plan.levels]:
        for operator in level.operators:
            found.setdefault(operator.node_id, []).append(level.level)
    return {names[node_id]: levels for node_id, levels in found.items()}


def identity(value: Any) -> Any:
    return value


def numbers(env: StreamExecutionEnvironment) -> Any:
    return env.from_collection([1, 2, 3], type_info=Types.LONG())


def test_functions_stand_behind_the_source_and_keyed_ones_a_level_further() -> None:
    env = environment()
    mapped = numbers(env).map(identity).name("map")
    counted = mapped.key_by(identity).reduce(lambda a, b: a).name("first")
    counted.map(identity).name("after").key_by(identity).reduce(lambda a, b: a).name("second").print()
    graph, plan = planned(env)
    assert places(plan, graph) == {"map": [0], "first": [1], "after": [1], "second": [2]}
    assert [level.stateful for level in plan.levels] == [True, True]
    (source,) = plan.sources
    assert isinstance(source.level.head[0], ChainedRoute)
    (route,) = plan.levels[0].operators[1].routes
    assert isinstance(route, ExchangeRoute) and (route.level, route.exchange) == (2, Exchange.HASH)


def test_a_function_behind_a_union_runs_in_each_level_it_is_fed_from() -> None:
    env = environment().set_parallelism(1)
    stream = numbers(env)
    reduced = stream.key_by(identity).reduce(lambda a, b: a).name("reduce")
    stream.map(identity, Types.LONG()).name("plain").union(reduced).map(identity).name("both").print()
    graph, plan = planned(env)
    assert places(plan, graph) == {"plain": [0], "both": [0, 1], "reduce": [1]}


def test_a_source_with_a_side_output_is_spread_as_without() -> None:
    """What stands where, and so a state, does not change by it."""
    builder = KafkaSource.builder().set_bootstrap_servers("h").set_topics("a")
    builder.set_value_only_deserializer(SimpleStringSchema()).set_malformed_output(OutputTag("bad"))
    env = environment()
    stream = env.from_source(builder.build(), WatermarkStrategy.no_watermarks(), "kafka")
    stream.rebalance().map(identity).name("map").print()
    stream.get_side_output(OutputTag("bad")).print()
    graph, plan = planned(env)
    assert places(plan, graph) == {"map": [0]}
    (source,) = plan.sources
    assert source.spread == 2
    chained, aside = source.level.head
    assert isinstance(chained, ChainedRoute) and chained.side is None
    assert isinstance(aside, SinkRoute) and (aside.side, aside.element_type) == ("bad", MALFORMED_MESSAGE)


def test_every_channel_of_an_input_has_its_own_watermark() -> None:
    env = environment()
    left, right = numbers(env).map(identity), numbers(env).map(identity)
    left.union(right).key_by(identity).reduce(lambda a, b: a).print()
    _, plan = planned(env)
    ((_, channels),) = plan.levels[0].channels.items()
    assert len(channels) == len(set(channels)) == 2 == len(plan.sources)


def test_side_outputs_and_several_sinks() -> None:
    env = environment()
    tag = OutputTag("late", Types.LONG())
    from yarnflow.api.datastream.functions import ProcessFunction

    class Both(ProcessFunction):
        def process_element(self, value: Any, ctx: ProcessFunction.Context) -> Any:
            yield value
            yield tag, value

    processed = numbers(env).process(Both(), Types.LONG())
    processed.print()
    processed.get_side_output(tag).print()
    _, plan = planned(env)
    routes = plan.sources[0].level.operators[-1].routes
    assert sorted(str(route.side) for route in routes if isinstance(route, SinkRoute)) == ["None", "late"]


def test_savepoints_know_by_what_the_state_of_each_operator_is_divided() -> None:
    env = environment()
    first = numbers(env).key_by(identity).reduce(lambda a, b: a).uid("first")
    first.key_by(identity).reduce(lambda a, b: a).uid("second").print()
    graph, _ = planned(env)
    (query,) = shape_of(graph).queries
    assert query.name == ELEMENT_QUERY
    assert [(o.uid, o.kind) for o in query.operators] == [
        ("first", "reduce, 128 key groups"),
        ("second", "reduce, 128 key groups"),
    ]


@pytest.mark.parametrize("readers", ["two widths", "sink", "key", "side by side"])
def test_a_source_is_spread_only_where_all_that_read_it_want_the_same(readers: str) -> None:
    env = environment()
    stream = numbers(env)
    wide = stream.map(identity, Types.LONG()).name("wide")
    if readers == "two widths":
        stream.map(identity, Types.LONG()).name("one").set_parallelism(1).print()
    elif readers == "sink":
        stream.print().set_parallelism(1)
    elif readers == "key":
        stream.key_by(identity).reduce(lambda a, b: a).name("key").print()
    else:
        stream.map(identity, Types.LONG()).name("other").print()
    # what is behind it shows whether savepoints know the level as well
    wide.key_by(identity).reduce(lambda a, b: a).name("behind").print()
    graph, plan = planned(env)
    together = readers == "side by side"
    found = places(plan, graph)
    assert (found["wide"], found["behind"]) == (([0], [1]) if together else ([1], [2]))
    assert found.get("one", [0]) == [0] and found.get("key", [1]) == [1]
    assert plan.sources[0].spread == (2 if together else 0)
    if not together:
        exchanges = [route for route in plan.sources[0].level.head if isinstance(route, ExchangeRoute)]
        assert [r.groups for r in exchanges if r.exchange is Exchange.REBALANCE] == [2]


class EventTime(TimestampAssigner):
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return int(value)


def test_watermarks_behind_a_keyed_operator_are_those_of_subtasks() -> None:
    env = environment()
    reduced = numbers(env).key_by(identity).reduce(lambda a, b: a)
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(EventTime())
    timed = reduced.map(identity, Types.LONG()).name("chained").assign_timestamps_and_watermarks(strategy)
    timed.name("times").key_by(identity).reduce(lambda a, b: a).name("last").print()
    graph, plan = planned(env)
    assert places(plan, graph) == {"Reduce": [1], "chained": [1], "times": [2], "last": [3]}
    operators = {operator.name: operator for level in plan.levels for operator in level.operators}
    assert (operators["chained"].groups, operators["times"].groups) == (128, 2)
    assert operators["times"].stateful


def test_sinks_have_subtasks_of_their_own() -> None:
    env = environment()
    mapped = numbers(env).map(identity)
    mapped.print()
    mapped.print().set_parallelism(3)
    mapped.broadcast().print()
    mapped.partition_custom(lambda key, n: 0, identity).print()
    _, plan = planned(env)
    (operator,) = plan.sources[0].level.operators
    found = [(r.exchange, r.groups) for r in operator.routes if isinstance(r, SinkRoute)]
    assert found == [
        (Exchange.FORWARD, 2), (Exchange.REBALANCE, 3), (Exchange.BROADCAST, 2), (Exchange.CUSTOM, 2)
    ]  # fmt: skip
    last = operator.routes[-1]
    assert isinstance(last, SinkRoute) and last.partitioner is not None and last.selector is not None


class At(TimestampAssigner):
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return int(value["at"])


class Alarm(KeyedProcessFunction):
    """Says when it is ten ms later."""

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        timestamp = ctx.timestamp()
        assert timestamp is not None
        ctx.timer_service().register_event_time_timer(timestamp + 10)
        return iter(())

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterator[Any]:
        yield timestamp


def timed(env: StreamExecutionEnvironment, assigner: Any = At(), late_ms: int = 5) -> Any:
    """A stream of columns with event time."""
    rows = env.from_source(FileSource("/in", "csv", schema="k BIGINT, at BIGINT"))
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(late_ms))
    return rows.assign_timestamps_and_watermarks(strategy.with_timestamp_assigner(assigner))


ROW = Types.ROW_NAMED(["k", "at"], [Types.LONG(), Types.LONG()])
TIMED: dict[str, Callable[[StreamExecutionEnvironment], Any]] = {
    "a Python function": timed,
    "an expression": lambda env: timed(env, "timestamp_millis(at)"),
    "columns in between": lambda env: timed(env).filter("k > 0").select("k", "at"),
    "elements in between": lambda env: timed(env).map(identity, ROW).filter(identity),
    "a union": lambda env: timed(env).union(timed(env, late_ms=1)),
}


@pytest.mark.parametrize("stream", TIMED)
def test_timers_behind_columns_with_event_time_fire_before_the_end_of_input(stream: str) -> None:
    env = environment()
    alarms = TIMED[stream](env).key_by(lambda row: row["k"]).process(Alarm()).name("alarm")
    alarms.map(identity, Types.LONG()).print()
    graph, plan = planned(env)
    assert places(plan, graph)["alarm"] == [1]
    job = InMemoryLevels([source.level for source in plan.sources], plan.levels, groups=128)
    found: list[list[Any]] = []
    for times in ([[100, 104]], [[115], [200]], [[], [116]], [[90]], [[300]]):
        parts = [[Chunk([Row(k=1, at=at) for at in part], list(part))] if part else [] for part in times]
        job.run_batch({0: parts})
        found.append([line for lines in job.sinks.values() for line in lines])
        job.sinks.clear()
    # 104 - 5 - 1, then the least of the partitions, none of those without elements, and never back
    assert [sorted(line.split("> ")[1] for line in lines) for lines in found] == [
        [], [], ["110"], [], ["100", "114", "125", "126", "210"],
    ]  # fmt: skip


@pytest.mark.parametrize("other", ["without time", "by SQL"])
def test_columns_that_lost_their_event_time_bring_no_watermark(other: str) -> None:
    env = environment()
    stream = timed(env)
    if other == "by SQL":
        stream = env.sql("SELECT k, at FROM t", t=stream)
    else:
        stream = stream.union(env.from_source(FileSource("/in", "csv", schema="k BIGINT, at BIGINT")))
    stream.key_by(lambda row: row["k"]).process(Alarm()).print()
    _, plan = planned(env)
    assert [source.level.operators for source in plan.sources] == [()]
