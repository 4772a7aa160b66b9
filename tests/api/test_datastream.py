"""Streams: what each call becomes, and what it refuses with which line."""

import datetime
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import pytest

from tests.api.conftest import Jobs
from yarnflow.api import (
    Duration,
    EventTimeSessionWindows,
    FileSink,
    KeySelector,
    MapFunction,
    Row,
    SlidingEventTimeWindows,
    Time,
    TimestampAssigner,
    TumblingEventTimeWindows,
    WatermarkStrategy,
)
from yarnflow.api.building.windows import native_window
from yarnflow.errors import GraphError, InvalidExpression, SchemaError, UnknownField, UnsupportedGraph
from yarnflow.graph import operators as o
from yarnflow.graph.closures import load_closure
from yarnflow.graph.connectors import sinks
from yarnflow.graph.job_graph import ShipStrategy
from yarnflow.operators.process.adapters import window_context

EVENTS = "ts TIMESTAMP, user STRING, n INT"
BY_TS = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_minutes(5)).with_timestamp_assigner("ts")


class Count(NamedTuple):
    word: str
    n: int


def split(line: str) -> Iterable[str]:
    yield from line.split()


def line_here() -> int:
    """Line of the caller."""
    return sys._getframe(1).f_lineno


def test_the_line_of_the_call_comes_first(jobs: Jobs) -> None:
    stream = jobs.rows("dep_delay DOUBLE, origin STRING")
    stream.select("origin", "dep_dealy").print()
    line = line_here() - 1
    with pytest.raises(UnknownField) as caught:
        jobs.env.execute()
    assert str(caught.value) == (
        f"test_datastream.py:{line}: select(): no field 'dep_dealy' in the stream; "
        "did you mean 'dep_delay'? Fields: dep_delay, origin"
    )


def test_native_operators(jobs: Jobs) -> None:
    jobs.rows(EVENTS).filter("n > 1").select("user", "n * 2 AS twice").print()
    nodes = jobs.graph().nodes
    assert nodes[1].operator == o.FilterExpression("n > 1")
    assert nodes[2].operator == o.SelectOperator(("user", "n * 2 AS twice"))
    assert nodes[2].output_schema.names == ("user", "twice")


def test_python_operators_and_their_types(jobs: Jobs) -> None:
    def count(word: str) -> Count:
        return Count(word, 1)

    lines = jobs.env.from_collection(["a b"], str)
    lines.flat_map(split).map(count).filter(lambda row: row.n > 0).map(
        lambda row: row.n, output_type="INT"
    ).print()
    nodes = jobs.graph().nodes
    kinds = [n.operator.kind for n in nodes if isinstance(n.operator, o.PythonOperator)]
    assert kinds == [o.PythonKind.FLAT_MAP, o.PythonKind.MAP, o.PythonKind.FILTER, o.PythonKind.MAP]
    assert [
        n.output_schema.names for n in nodes[1:5]
    ] == [("value",), ("word", "n"), ("word", "n"), ("value",)]
    assert [n.output_schema.scalar for n in nodes[1:5]] == [True, False, False, True]
    closure = nodes[1].operator.closure  # type: ignore[union-attr]
    assert (closure.name, closure.origin) == ("split", f"test_datastream.py:{split.__code__.co_firstlineno}")
    assert list(load_closure(closure)("x y")) == ["x", "y"]


def test_function_classes_and_builtins(jobs: Jobs) -> None:
    class Upper(MapFunction):
        def map(self, value: str) -> str:
            return value.upper()

    jobs.env.from_collection(["1"], str).map(Upper()).map(int).print()
    nodes = jobs.graph().nodes
    assert [n.output_schema.fields[0].type for n in nodes[1:3]] == ["string", "bigint"]
    assert load_closure(nodes[1].operator.closure)("a") == "A"  # type: ignore[union-attr]


def _untyped(value):  # type: ignore[no-untyped-def]
    return value


def _wrong_flat_map(value: str) -> int:
    return 1


@pytest.mark.parametrize(
    ("call", "function"),
    [
        ("map", lambda value: value),
        ("map", _untyped),
        ("map", len),
        ("flat_map", _untyped),
        ("flat_map", _wrong_flat_map),
    ],
)
def test_without_a_type_columns_become_objects(jobs: Jobs, call: str, function: Any) -> None:
    getattr(jobs.env.from_collection(["a"], str), call)(function).print()
    node = jobs.graph().nodes[1]
    assert isinstance(node.operator, o.ElementOperator) and node.operator.kind.value == call.upper()
    assert node.output_schema.pickled and not node.output_schema.known


def test_types_that_cannot_be_read(jobs: Jobs) -> None:
    jobs.env.from_collection(["a"], str).map(len, output_type="NUMBER").print()
    with pytest.raises(SchemaError, match=r"^test_datastream.py:\d+: map\(\): output_type: "):
        jobs.env.execute()


def test_timestamps(jobs: Jobs) -> None:
    class Assigner(TimestampAssigner):
        def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
            return int(value.n) + record_timestamp

    jobs.rows(EVENTS).assign_timestamps_and_watermarks(BY_TS).print()
    assert jobs.operator() == o.AssignTimestamps("ts", 300_000)
    for assigner in (Assigner(), lambda row: row.n - 1, lambda row, at: row.n + at):
        monotonous = WatermarkStrategy.for_monotonous_timestamps()
        # as in PyFlink, the strategy itself changes
        assert monotonous.with_timestamp_assigner(assigner) is monotonous
        jobs.rows(EVENTS).assign_timestamps_and_watermarks(monotonous).print()
        nodes = jobs.graph().nodes
        python = nodes[1].operator
        assert isinstance(python, o.PythonOperator) and python.kind is o.PythonKind.TIMESTAMP
        assert load_closure(python.closure)(Row(n=5)) == 4
        assert nodes[2].operator == o.AssignTimestamps("", 0)
        assert nodes[2].output_schema == nodes[0].output_schema
    with pytest.raises(GraphError, match="with_timestamp_assigner"):
        jobs.rows(EVENTS).assign_timestamps_and_watermarks(WatermarkStrategy.for_monotonous_timestamps())


def test_event_time_must_be_a_timestamp(jobs: Jobs) -> None:
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner("user")
    jobs.rows(EVENTS).assign_timestamps_and_watermarks(strategy).print()
    with pytest.raises(
        InvalidExpression, match=r"assign_timestamps_and_watermarks\(\): .*CAST\(user AS TIMESTAMP\)"
    ):
        jobs.env.execute()


@pytest.mark.parametrize(
    ("call", "aggregate", "field"),
    [
        (lambda s: s.sum("n"), "sum(n) AS n", ("n", "bigint")),
        (lambda s: s.min("n"), "min(n) AS n", ("n", "int")),
        (lambda s: s.max("n"), "max(n) AS n", ("n", "int")),
        (lambda s: s.count(), "count(*) AS count", ("count", "bigint")),
        (lambda s: s.aggregate("avg(n) AS mean"), "avg(n) AS mean", ("mean", "double")),
    ],
)
def test_aggregates(jobs: Jobs, call: Any, aggregate: str, field: tuple[str, str]) -> None:
    call(jobs.rows(EVENTS).key_by("user AS who")).print()
    graph = jobs.graph()
    key = o.Key(("user",), ("who",))
    assert graph.nodes[1].operator == o.RunningAggregate(key, (aggregate,))
    assert [(f.name, f.type) for f in graph.nodes[1].output_schema.fields] == [("who", "string"), field]
    assert graph.edges[0].ship_strategy is ShipStrategy.HASH
    timed = jobs.rows(EVENTS).assign_timestamps_and_watermarks(BY_TS)
    call(timed.key_by("user AS who").window(TumblingEventTimeWindows.of("1 hour"))).print()
    bounds = [("window_start", "timestamp"), ("window_end", "timestamp")]
    node = jobs.graph().nodes[2]
    assert node.operator == o.WindowAggregate(key, o.Window(o.WindowKind.TUMBLING, 3_600_000), (aggregate,))
    assert [(f.name, f.type) for f in node.output_schema.fields] == [("who", "string"), *bounds, field]


def test_key_functions(jobs: Jobs) -> None:
    class User(KeySelector):
        def get_key(self, value: Any) -> str:
            return str(value.user)

    keyed = jobs.rows(EVENTS).key_by(User())
    keyed.aggregate("sum(n) AS n").print()
    keyed.count().print()
    nodes = jobs.graph().nodes
    assert [type(n.operator).__name__ for n in nodes].count("PythonOperator") == 1
    assert nodes[1].output_schema.names == ("ts", "user", "n", "__key")
    assert nodes[2].operator == o.RunningAggregate(o.Key(("__key",), ("key",)), ("sum(n) AS n",))
    assert nodes[2].output_schema.names == ("key", "n")
    jobs.rows(EVENTS).key_by(lambda row: (row.user, row.n), key_type=tuple[str, int]).count().print()
    assert jobs.fields() == [("key", "struct<f0:string,f1:bigint>"), ("count", "bigint")]


def test_key_by_refuses(jobs: Jobs) -> None:
    stream = jobs.rows(EVENTS)
    wrong: list[tuple[Any, ...]] = [(split, split, split), ("user", split), (1,)]
    for keys in wrong:
        with pytest.raises(GraphError, match=r"^test_datastream.py:\d+: key_by\(\)"):
            stream.key_by(*keys)
    stream.key_by(lambda row: row.user).count().print()
    with pytest.raises(SchemaError, match=r"key_by\(\): .*add key_type="):
        jobs.env.execute()


def test_a_function_without_state_gets_elements_by_their_key(jobs: Jobs) -> None:
    keyed = jobs.rows(EVENTS).key_by(lambda row: row.user)
    keyed.map(lambda row: row.n, output_type=int).print()
    keyed.filter(lambda row: row.n > 1).print()
    nodes = jobs.graph().nodes
    assert [(n.name, *(s.value for s in n.strategies)) for n in nodes] == [
        ("Source: Collection Source",),
        ("Key By", "HASH"),
        ("Map", "FORWARD"),
        ("Sink: Print to Std. Out", "FORWARD"),
        ("Filter", "FORWARD"),
        ("Sink: Print to Std. Out", "FORWARD"),
    ]
    assert [n.inputs for n in nodes] == [(), (1,), (2,), (3,), (2,), (5,)]


def test_operators_on_columns_need_no_exchange_by_key(jobs: Jobs) -> None:
    jobs.rows(EVENTS).key_by("user").filter("n > 1").print()
    assert [n.name for n in jobs.graph().nodes] == [
        "Source: Collection Source", "Filter", "Sink: Print to Std. Out"
    ]


def test_an_exchange_by_key_changes_no_id_of_an_operator(jobs: Jobs) -> None:
    def hashes(keyed: bool) -> list[str]:
        stream = jobs.rows(EVENTS).map(lambda row: row.n, int)
        if keyed:
            stream = stream.key_by(lambda n: n)
        stream.map(lambda n: n, int).key_by(lambda n: n).reduce(max).print()
        nodes = [n for n in jobs.graph().nodes if not isinstance(n.operator, o.PartitionByKey)]
        return [n.operator_hash for n in nodes]

    assert hashes(keyed=True) == hashes(keyed=False)


def test_window_functions(jobs: Jobs) -> None:
    def span(key: str, context: Any, elements: Iterable[Any]) -> Iterator[tuple[str, int]]:
        yield key, context.window().end

    def apply(key: str, window: Any, elements: Iterable[Any]) -> list[Count]:
        return [Count(key, window.max_timestamp())]

    windowed = (
        jobs.rows(EVENTS)
        .assign_timestamps_and_watermarks(BY_TS)
        .key_by("user")
        .window(EventTimeSessionWindows.with_gap(datetime.timedelta(minutes=1)))
    )
    windowed.process(span).print()
    windowed.apply(apply).print()
    windowed.reduce(lambda a, b: a).print()
    nodes = [n for n in jobs.graph().nodes if isinstance(n.operator, o.WindowProcess)]
    assert [n.output_schema.names for n in nodes] == [("f0", "f1"), ("word", "n"), ("ts", "user", "n")]
    operators: list[Any] = [n.operator for n in nodes]
    assert [op.closure.name for op in operators] == ["span", "apply", "<lambda>"]
    assert {op.window for op in operators} == {o.Window(o.WindowKind.SESSION, gap_ms=60_000)}
    context = window_context(0, 10)
    assert list(load_closure(operators[0].closure)("k", context, [])) == [("k", 10)]
    assert list(load_closure(operators[1].closure)("k", context, [])) == [("k", 9)]


def test_windows() -> None:
    sliding = native_window(SlidingEventTimeWindows.of(Time.hours(1), "15 min", Duration.of_seconds(1)))
    assert sliding == o.Window(o.WindowKind.SLIDING, 3_600_000, 900_000, 1_000)
    tumbling = native_window(TumblingEventTimeWindows.of(Time.days(1), Time.hours(-8)))
    assert tumbling == o.Window(o.WindowKind.TUMBLING, 86_400_000, offset_ms=57_600_000)
    assert native_window(SlidingEventTimeWindows.of("1 s", "2 s")) is None
    wrong: list[Callable[[], object]] = [
        lambda: TumblingEventTimeWindows.of("1 our"),
        lambda: TumblingEventTimeWindows.of(Duration(0)),
        lambda: TumblingEventTimeWindows.of("1 s", "1 s"),
        lambda: EventTimeSessionWindows.with_gap("0 s"),
    ]
    for make in wrong:
        with pytest.raises(GraphError):
            make()


def test_windows_need_event_time(jobs: Jobs) -> None:
    jobs.rows(EVENTS).key_by("user").window(TumblingEventTimeWindows.of("1 h")).count().print()
    with pytest.raises(
        UnsupportedGraph, match=r"^test_datastream.py:\d+: count\(\): a window needs event time"
    ):
        jobs.env.execute()


def test_union(jobs: Jobs) -> None:
    one, two = jobs.rows("a INT, b STRING"), jobs.rows("A INT, b STRING")
    one.union(two).print()
    assert jobs.fields() == [("a", "int"), ("b", "string")]
    for schema, part in [("a INT", "stream 2 has the fields a"), ("a INT, b INT", "CAST one")]:
        jobs.rows("a INT, b STRING").union(jobs.rows(schema)).print()
        with pytest.raises(SchemaError, match=part):
            jobs.env.execute()
        jobs.begin_again()


def test_settings_reach_the_graph(jobs: Jobs) -> None:
    stream = jobs.rows("a INT").rebalance().filter("a > 1").name("Keep").uid("keep").set_parallelism(2)
    stream.set_max_parallelism(9).slot_sharing_group("g").print().set_parallelism(2)
    graph = jobs.graph()
    node = graph.nodes[1]
    assert (node.name, node.uid, node.parallelism, node.max_parallelism) == ("Keep", "keep", 2, 9)
    assert [n.slot_sharing_group for n in graph.nodes] == ["default", "g", "g"]
    assert graph.edges[0].ship_strategy is ShipStrategy.REBALANCE
    jobs.rows("a INT").filter("a > 1").start_new_chain().filter("a > 2").disable_chaining().print()
    assert [v.chain for v in jobs.graph().vertices] == [(1,), (2,), (3,), (4,)]


def test_sinks(jobs: Jobs) -> None:
    stream = jobs.rows("a INT, b INT")
    stream.print("out")
    stream.sink_to(FileSink.for_path("/o").format("csv").option("header", True).partition_by("a").build())
    stream.foreach_batch(lambda frame, batch_id: None)
    found: list[Any] = [n.operator for n in jobs.graph().nodes[1:]]
    assert found[:2] == [sinks.PrintSink("out"), sinks.FileSink("/o", "csv", {"header": "true"}, ("a",))]
    assert load_closure(found[2].closure)(None, 1) is None
