"""PyFlink's programs: what every call becomes, whether types are given or not, and what is refused."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator
from typing import Any, cast

import pytest

from tests.api.conftest import Jobs
from yarnflow.api import KeyedStream, RateSource
from yarnflow.api.common import Duration, Row, Time, Types, WatermarkStrategy
from yarnflow.api.common.watermark_strategy import TimestampAssigner
from yarnflow.api.datastream import (
    AggregateFunction,
    AsyncDataStream,
    AsyncFunction,
    BroadcastProcessFunction,
    CoFlatMapFunction,
    CoMapFunction,
    CoProcessFunction,
    DataStream,
    KeyedBroadcastProcessFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    KeySelector,
    MapFunction,
    OutputTag,
    ProcessFunction,
    ProcessWindowFunction,
    RuntimeContext,
    WindowFunction,
)
from yarnflow.api.datastream.functions import ProcessAllWindowFunction
from yarnflow.api.datastream.state import MapStateDescriptor
from yarnflow.api.datastream.window import (
    CountTrigger,
    CountTumblingWindowAssigner,
    EventTimeSessionWindows,
    GlobalWindows,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
)
from yarnflow.errors import GraphError, SchemaError, UnsupportedGraph
from yarnflow.graph import operators as o
from yarnflow.graph.job_graph import JobGraph, ShipStrategy, StreamNode
from yarnflow.graph.operators import ElementKind
from yarnflow.graph.type_info import PICKLED
from yarnflow.operators.elements import Chunk

WORDS = Types.TUPLE([Types.STRING(), Types.INT()])
MINUTE: Any = TumblingEventTimeWindows.of(Time.minutes(1))


class Emitted:
    """An Output that keeps what it is given."""

    def __init__(self) -> None:
        self.values: list[Any] = []

    def emit(self, chunk: Chunk) -> None:
        self.values += chunk.values

    def emit_side(self, tag_id: str, chunk: Chunk) -> None:
        self.values += [(tag_id, value) for value in chunk.values]


def words(jobs: Jobs) -> DataStream:
    return jobs.env.from_collection([("a", 1), ("b", 2)], WORDS)


def element(node: StreamNode) -> o.ElementOperator:
    assert isinstance(node.operator, o.ElementOperator), node.operator
    return node.operator


def definition(node: StreamNode) -> Any:
    """What the node's operator ships."""
    return pickle.loads(element(node).closure.payload)


def selector(node: StreamNode, number: int = 0) -> Callable[[Any], Any]:
    found = element(node).inputs[number].selector
    assert found is not None
    select = pickle.loads(found.payload).build()
    return lambda value: select([value])[0]


def one(graph: JobGraph, kind: ElementKind) -> StreamNode:
    (found,) = [
        n for n in graph.nodes if isinstance(n.operator, o.ElementOperator) and n.operator.kind is kind
    ]
    return found


# --- one element at a time ------------------------------------------------------------------


def test_types_of_pyflink_make_elements(jobs: Jobs) -> None:
    words(jobs).map(lambda word: word[1], Types.INT()).flat_map(lambda n: [n] * n).filter(bool).print()
    nodes = jobs.graph().nodes
    assert [element(node).kind for node in nodes[1:4]] == [
        ElementKind.MAP, ElementKind.FLAT_MAP, ElementKind.FILTER
    ]  # fmt: skip
    assert [node.output_schema.element_type for node in nodes] == [
        WORDS, Types.INT(), PICKLED, PICKLED, PICKLED
    ]  # fmt: skip
    assert definition(nodes[1]).function(("a", 7)) == 7
    assert [node.name for node in nodes[1:4]] == ["Map", "Flat Map", "Filter"]
    assert not any(element(node).stateful for node in nodes[1:4])


def test_columns_with_types_of_pyflink_become_elements(jobs: Jobs) -> None:
    row = Types.ROW_NAMED(["n"], [Types.LONG()])
    jobs.env.from_source(RateSource(1)).map(lambda r: Row(n=r.value), row).print()
    node = jobs.graph().nodes[1]
    assert element(node).kind is ElementKind.MAP
    assert node.output_schema.element_type == row and node.output_schema.names == ("n",)


def test_a_list_of_types_is_a_row(jobs: Jobs) -> None:
    words(jobs).map(lambda word: word, [Types.STRING(), Types.INT()]).print()
    assert jobs.graph().nodes[1].output_schema.element_type == Types.ROW([Types.STRING(), Types.INT()])


def test_annotations_say_columns_and_change_nothing(jobs: Jobs) -> None:
    def count(word: Any) -> tuple[str, int]:
        return word, 1

    stream = words(jobs).map(count)
    stream.print()
    stream.select("f0 AS word").print()
    stream.key_by("f0").sum("f1").print()
    nodes = jobs.graph().nodes
    assert nodes[1].output_schema.pickled and nodes[1].output_schema.names == ("f0", "f1")
    select = next(n for n in nodes if isinstance(n.operator, o.SelectOperator))
    assert select.output_schema.element_type is None and select.output_schema.names == ("word",)
    assert any(isinstance(n.operator, o.RunningAggregate) for n in nodes)


@pytest.mark.parametrize("call", ["select", "filter"])
def test_expressions_need_columns(jobs: Jobs, call: str) -> None:
    getattr(words(jobs).map(lambda word: word), call)("f0").print()
    with pytest.raises(SchemaError, match=rf"^test_elements.py:\d+: {call}\(\): .*have no columns"):
        jobs.env.execute()


def test_functions_with_a_context_see_elements(jobs: Jobs) -> None:
    class Opened(MapFunction):
        def open(self, runtime_context: RuntimeContext) -> None:
            self.task = runtime_context.get_index_of_this_subtask()

        def map(self, value: str) -> str:
            return value

    jobs.env.from_collection(["a"], str).map(Opened()).print()
    node = jobs.graph().nodes[1]
    assert element(node).kind is ElementKind.MAP and node.output_schema.names == ("value",)


def test_process_functions(jobs: Jobs) -> None:
    class Split(ProcessFunction):
        def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
            yield value

    stream = words(jobs).process(Split(), Types.STRING())
    late = stream.get_side_output(OutputTag("late", Types.LONG()))
    late.print()
    stream.print()
    graph = jobs.graph()
    node = one(graph, ElementKind.PROCESS)
    assert (node.name, node.output_schema.element_type) == ("PROCESS", Types.STRING())
    assert element(node).side_outputs == (("late", Types.LONG()),)
    assert definition(node).side_outputs
    side = next(n for n in graph.nodes if isinstance(n.operator, o.SideOutput))
    assert side.inputs == (node.node_id,) and side.output_schema.element_type == Types.LONG()


def test_without_side_outputs_nothing_looks_for_them(jobs: Jobs) -> None:
    class Same(ProcessFunction):
        def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
            yield value

    words(jobs).process(Same()).print()
    node = one(jobs.graph(), ElementKind.PROCESS)
    assert not definition(node).side_outputs and element(node).side_outputs == ()


def test_a_side_output_has_one_type(jobs: Jobs) -> None:
    class Same(ProcessFunction):
        def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
            yield value

    stream = words(jobs).process(Same())
    stream.get_side_output(OutputTag("late")).print()
    with pytest.raises(SchemaError, match=r"^test_elements.py:\d+: get_side_output\(\): .*has the types"):
        stream.get_side_output(OutputTag("late", Types.INT()))


def test_side_outputs_of_what_has_none(jobs: Jobs) -> None:
    jobs.rows("a INT").get_side_output(OutputTag("late")).print()
    with pytest.raises(UnsupportedGraph, match=r"get_side_output\(\): .*has no side outputs"):
        jobs.env.execute()


def test_projection(jobs: Jobs) -> None:
    words(jobs).project(1, 0).print()
    node = jobs.graph().nodes[1]
    assert node.output_schema.element_type == Types.TUPLE([Types.INT(), Types.STRING()])
    assert definition(node).function(("a", 1)) == (1, "a")
    jobs.env.from_collection([1], Types.INT()).project(0).print()
    with pytest.raises(SchemaError, match="only tuples can be projected"):
        jobs.env.execute()


@pytest.mark.parametrize(
    ("use", "part"),
    [
        (lambda s: s.map("upper"), r"map\(\): 'upper' is neither a function"),
        (lambda s: s.process(lambda v, c: v), r"process\(\): a ProcessFunction is needed, not function"),
        (lambda s: s.process(ProcessFunction), r"make an object of it: ProcessFunction\(\)"),
        (lambda s: s.sink_to(print), r"sink_to\(\): .* is no sink"),
        (lambda s: s.broadcast("x"), r"broadcast\(\): a MapStateDescriptor is needed"),
        (lambda s: s.partition_custom(lambda k, n: 0, 1), "neither a function"),
        (lambda s: s.key_by(lambda v: v).process(1), "a KeyedProcessFunction is needed"),
        (lambda s: s.key_by(lambda v: v).reduce(1), "neither a function"),
        (lambda s: s.key_by(lambda v: v).sum(1.5), "neither a position nor a name"),
        (lambda s: s.key_by(lambda v: v).window(5), "is no WindowAssigner"),
        (lambda s: s.key_by(lambda v: v).window(MINUTE).aggregate(max), "a AggregateFunction"),
        (lambda s: s.key_by(lambda v: v).set_parallelism(2), "the parallelism of a KeyedStream"),
        (lambda s: s.key_by(lambda v: v).rebalance(), "partitioning of a KeyedStream"),
        (lambda s: s.cache().name("x"), "the name of a CachedDataStream"),
        (lambda s: s.connect(s).map(1), "a CoMapFunction is needed"),
        (lambda s: s.set_uid_hash("x"), "must be 32 hexadecimal digits"),
        (lambda s: AsyncDataStream.ordered_wait(s, cast(Any, 1), "1 s"), "a AsyncFunction is needed"),
    ],
)
def test_wrong_calls_name_their_line(jobs: Jobs, use: Callable[[Any], Any], part: str) -> None:
    with pytest.raises(GraphError, match=rf"^test_elements.py:\d+: .*{part}"):
        use(words(jobs))


# --- keyed ----------------------------------------------------------------------------------------


class Count(KeyedProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        yield ctx.get_current_key()


def test_keyed_process(jobs: Jobs) -> None:
    words(jobs).key_by(lambda word: word[0], key_type=Types.STRING()).process(Count()).uid("count").print()
    graph = jobs.graph()
    node = one(graph, ElementKind.KEYED_PROCESS)
    assert (node.name, node.uid, element(node).stateful) == ("KEYED PROCESS", "count", True)
    assert selector(node)(("a", 1)) == "a"
    assert node.strategies == (ShipStrategy.HASH,)
    assert len(graph.nodes) == 3, "a key function is no operator of its own"


def test_key_types_by_position_and_checked(jobs: Jobs) -> None:
    words(jobs).key_by(lambda word: word[1], Types.STRING()).process(Count()).print()
    select = selector(one(jobs.graph(), ElementKind.KEYED_PROCESS))
    with pytest.raises(Exception, match="'key of Count' declares String and emitted 1"):
        select(("a", 1))
    with pytest.raises(SchemaError, match=r"^test_elements.py:\d+: key_by\(\)"):
        words(jobs).key_by(lambda word: word, key_type="NUMBER")


def test_key_selectors(jobs: Jobs) -> None:
    class First(KeySelector):
        def open(self, runtime_context: RuntimeContext) -> None:
            self.position = 0

        def get_key(self, value: Any) -> Any:
            return value[self.position]

    words(jobs).key_by(First()).process(Count()).print()
    assert selector(one(jobs.graph(), ElementKind.KEYED_PROCESS))(("a", 1)) == "a"


@pytest.mark.parametrize(
    ("keys", "record", "key"),
    [(("user",), {"user": "a", "n": 1}, "a"), (("user", "N"), {"user": "a", "n": 1}, ("a", 1))],
)
def test_process_of_streams_keyed_by_fields(jobs: Jobs, keys: tuple[str, ...], record: Any, key: Any) -> None:
    jobs.rows("user STRING, n INT").key_by(*keys).process(Count()).print()
    assert selector(one(jobs.graph(), ElementKind.KEYED_PROCESS))(record) == key


def test_process_of_streams_keyed_by_expressions(jobs: Jobs) -> None:
    jobs.rows("user STRING").key_by("upper(user) AS user").process(Count()).print()
    with pytest.raises(UnsupportedGraph, match=r"process\(\): key 'upper\(user\) AS user' is an expression"):
        jobs.env.execute()


def test_reductions_are_per_element(jobs: Jobs) -> None:
    keyed = words(jobs).key_by(lambda word: word[0])
    for stream in (
        keyed.reduce(lambda a, b: a),
        keyed.sum(1),
        keyed.min(1),
        keyed.max(1),
        keyed.min_by(1),
        keyed.max_by(1),
    ):
        stream.print()
    nodes = [n for n in jobs.graph().nodes if isinstance(n.operator, o.ElementOperator)]
    assert {(element(n).kind, element(n).stateful) for n in nodes} == {(ElementKind.REDUCE, True)}
    assert {n.output_schema.element_type for n in nodes} == {WORDS}
    assert [element(n).closure.name for n in nodes] == [
        "<lambda>", "sum(1)", "min(1)", "max(1)", "min_by(1)", "max_by(1)"
    ]  # fmt: skip
    assert definition(nodes[4]).position == 1


def test_reductions_by_columns_stay_native(jobs: Jobs) -> None:
    keyed = jobs.rows("user STRING, n INT").key_by("user")
    keyed.reduce(lambda a, b: a).print()
    keyed.sum(1).print()
    keyed.max_by("n").print()
    kinds = [type(n.operator).__name__ for n in jobs.graph().nodes if "Sink" not in n.name][1:]
    assert kinds == ["KeyedReduce", "RunningAggregate", "ElementOperator"]


def test_keyed_functions_of_one_element(jobs: Jobs) -> None:
    class Seen(MapFunction):
        def open(self, runtime_context: RuntimeContext) -> None:
            """Has state."""

        def map(self, value: Any) -> Any:
            return value

    keyed = words(jobs).key_by(lambda word: word[0])
    keyed.map(Seen()).print()
    keyed.map(lambda word: word).print()
    with_state, without = (n for n in jobs.graph().nodes if isinstance(n.operator, o.ElementOperator))
    assert element(with_state).stateful and selector(with_state)(("a", 1)) == "a"
    assert not element(without).stateful and element(without).inputs == (o.ElementInput(),)


def test_a_stream_can_be_keyed_anew(jobs: Jobs) -> None:
    keyed = words(jobs).key_by(lambda word: word[0]).key_by(lambda word: word[1])
    assert isinstance(keyed, KeyedStream)
    keyed.process(Count()).print()
    assert selector(one(jobs.graph(), ElementKind.KEYED_PROCESS))(("a", 1)) == 1


# --- windows -------------------------------------------------------------------------------------


class Largest(AggregateFunction):
    def create_accumulator(self) -> Any:
        return 0

    def add(self, value: Any, accumulator: Any) -> Any:
        return max(value[1], accumulator)

    def get_result(self, accumulator: Any) -> Any:
        return accumulator

    def merge(self, acc_a: Any, acc_b: Any) -> Any:
        return max(acc_a, acc_b)


class Span(ProcessWindowFunction[Any, Any, Any, Any]):
    def process(self, key: Any, context: Any, elements: Iterable[Any]) -> Iterator[tuple[str, int]]:
        yield key, context.window().end


class Ends(WindowFunction[Any, Any, Any, Any]):
    def apply(self, key: Any, window: Any, inputs: Iterable[Any]) -> Iterable[Any]:
        return [window.end]


def timed(jobs: Jobs) -> DataStream:
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda word: word[1])
    return words(jobs).assign_timestamps_and_watermarks(strategy)


def test_windows_of_functions(jobs: Jobs) -> None:
    late = OutputTag("late", WORDS)
    windowed = timed(jobs).key_by(lambda word: word[0]).window(MINUTE)
    results = windowed.allowed_lateness(500).side_output_late_data(late).process(Span(), Types.STRING())
    results.print()
    results.get_side_output(late).print()
    node = one(jobs.graph(), ElementKind.WINDOW)
    found = definition(node)
    assert (found.allowed_lateness_ms, found.late_tag.tag_id, found.side_outputs) == (500, "late", False)
    assert element(node).side_outputs == (("late", WORDS),) and element(node).stateful
    assert node.name == "TumblingEventTimeWindows" and node.output_schema.element_type == Types.STRING()
    assert element(node).closure.name == "Window(TumblingEventTimeWindows(60000, 0), EventTimeTrigger, Span)"


@pytest.mark.parametrize(
    ("use", "name"),
    [
        (lambda w: w.reduce(lambda a, b: a), "function"),
        (lambda w: w.reduce(lambda a, b: a, Span()), "function, Span"),
        (lambda w: w.aggregate(Largest()), "Largest"),
        (lambda w: w.aggregate(Largest(), Ends()), "Largest, Ends"),
        (lambda w: w.aggregate(Largest(), Ends(), Types.INT(), Types.INT()), "Largest, Ends"),
        (lambda w: w.aggregate(Largest(), window_function=Ends(), output_type=Types.INT()), "Largest, Ends"),
        (lambda w: w.apply(Ends()), "Ends"),
    ],
)
def test_what_windows_evaluate_to(jobs: Jobs, use: Callable[[Any], DataStream], name: str) -> None:
    use(timed(jobs).key_by(lambda word: word[0]).window(MINUTE)).print()
    assert element(one(jobs.graph(), ElementKind.WINDOW)).closure.name.endswith(f", {name})")


def test_types_of_windows(jobs: Jobs) -> None:
    windowed = timed(jobs).key_by(lambda word: word[0]).window(MINUTE)
    windowed.reduce(lambda a, b: a).print()
    assert one(jobs.graph(), ElementKind.WINDOW).output_schema.element_type == WORDS


@pytest.mark.parametrize(
    "assigner",
    [
        TumblingProcessingTimeWindows.of(Time.seconds(1)),
        GlobalWindows.create(),
        CountTumblingWindowAssigner.of(3),
        EventTimeSessionWindows.with_gap(Time.seconds(1)),
    ],
)
def test_every_assigner_has_the_window_operator(jobs: Jobs, assigner: Any) -> None:
    timed(jobs).key_by(lambda word: word[0]).window(assigner).apply(Ends()).print()
    assert type(definition(one(jobs.graph(), ElementKind.WINDOW)).assigner) is type(assigner)


def test_triggers_and_count_windows(jobs: Jobs) -> None:
    keyed = words(jobs).key_by(lambda word: word[0])
    keyed.count_window(3).apply(Ends()).print()
    keyed.count_window(3, 2).apply(Ends()).print()
    keyed.window(GlobalWindows.create()).trigger(CountTrigger.of(2)).apply(Ends()).print()
    names = [n.name for n in jobs.graph().nodes if isinstance(n.operator, o.ElementOperator)]
    assert names == ["CountTumblingWindowAssigner", "CountSlidingWindowAssigner", "GlobalWindows"]


def test_windows_of_columns_by_function_classes(jobs: Jobs) -> None:
    stream = jobs.rows("ts TIMESTAMP, user STRING").assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner("ts")
    )
    stream.key_by("user").window(MINUTE).process(Span(), "f0 STRING, f1 BIGINT").print()
    node = one(jobs.graph(), ElementKind.WINDOW)
    assert selector(node)({"user": "a"}) == "a"
    assert node.output_schema.names == ("f0", "f1") and node.output_schema.element_type is not None


def test_expressions_over_windows(jobs: Jobs) -> None:
    windowed = timed(jobs).key_by("f0").window(TumblingProcessingTimeWindows.of(Time.seconds(1)))
    with pytest.raises(UnsupportedGraph, match=r"^test_elements.py:\d+: count\(\): .*a Python function"):
        windowed.count()
    with pytest.raises(UnsupportedGraph, match=r"aggregate\(\): .*without trigger"):
        timed(jobs).key_by("f0").window(MINUTE).allowed_lateness(5).aggregate("count(*) AS n")


@pytest.mark.parametrize(
    ("use", "part"),
    [
        (lambda w: w.process(lambda k, c, e: e), "<lambda> is a plain function.*a ProcessWindowFunction"),
        (lambda w: w.apply(lambda k, w, e: e), "make it a WindowFunction"),
        (lambda w: w.reduce(lambda a, b: a, Largest()), "Largest is no WindowFunction or Proc"),
        (lambda w: w.allowed_lateness(-1).apply(Ends()), "below 0"),
    ],
)
def test_windows_that_are_refused(jobs: Jobs, use: Callable[[Any], Any], part: str) -> None:
    with pytest.raises(GraphError, match=rf"^test_elements.py:\d+: \w+\(\): .*{part}"):
        use(timed(jobs).key_by(lambda word: word[0]).window(MINUTE))


def test_windows_of_all_elements(jobs: Jobs) -> None:
    class All(ProcessAllWindowFunction[Any, Any, Any]):
        def process(self, context: Any, elements: Iterable[Any]) -> Iterable[Any]:
            return elements

    jobs.env.set_parallelism(4)
    timed(jobs).window_all(MINUTE).process(All()).print()
    node = one(jobs.graph(), ElementKind.WINDOW)
    assert node.parallelism == 1 and selector(node)(("a", 1)) == selector(node)(("b", 2))
    assert element(node).closure.name.startswith("AllWindow(")
    with pytest.raises(GraphError, match="Span is no AllWindowFunction or ProcessAllWindowFunction"):
        timed(jobs).window_all(MINUTE).process(Span())  # type: ignore[arg-type]


# --- time ---------------------------------------------------------------------------------------


def test_timestamps_of_elements(jobs: Jobs) -> None:
    class Second(TimestampAssigner):
        def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
            return int(value[1])

    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(2))
    idle = strategy.with_timestamp_assigner(Second()).with_idleness(Duration.of_minutes(1))
    words(jobs).assign_timestamps_and_watermarks(idle).print()
    node = one(jobs.graph(), ElementKind.TIMESTAMPS)
    found = definition(node)
    assert (found.out_of_orderness_ms, found.idle_after_ms) == (2_000, 60_000)
    assert node.output_schema.element_type == WORDS
    assert found.assigner.extract_timestamp(("a", 5), -1) == 5


@pytest.mark.parametrize("assigner", [lambda word: word[1], lambda word, before: word[1] + before + 1])
def test_plain_functions_tell_the_time(jobs: Jobs, assigner: Callable[..., int]) -> None:
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(assigner)
    words(jobs).assign_timestamps_and_watermarks(strategy).print()
    assert definition(one(jobs.graph(), ElementKind.TIMESTAMPS)).assigner(("a", 5), -1) == 5


def test_elements_may_keep_their_times(jobs: Jobs) -> None:
    words(jobs).assign_timestamps_and_watermarks(WatermarkStrategy.for_monotonous_timestamps()).print()
    assert definition(one(jobs.graph(), ElementKind.TIMESTAMPS)).assigner is None


def test_sources_take_strategies_without_a_time(jobs: Jobs) -> None:
    jobs.env.from_source(RateSource(1), WatermarkStrategy.for_monotonous_timestamps(), "rate").print()
    assert [n.name for n in jobs.graph().nodes] == ["Source: rate", "Sink: Print to Std. Out"]


# --- two streams --------------------------------------------------------------------------------------


class Both(CoMapFunction):
    def map1(self, value: Any) -> Any:
        return value

    def map2(self, value: Any) -> Any:
        return value


class BothFlat(CoFlatMapFunction):
    def flat_map1(self, value: Any) -> Iterable[Any]:
        return [value]

    def flat_map2(self, value: Any) -> Iterable[Any]:
        return []


class Together(CoProcessFunction):
    def process_element1(self, value: Any, ctx: Any) -> Any:
        yield value

    def process_element2(self, value: Any, ctx: Any) -> Any:
        yield value


class KeyedTogether(KeyedCoProcessFunction):
    def process_element1(self, value: Any, ctx: Any) -> Any:
        yield value

    def process_element2(self, value: Any, ctx: Any) -> Any:
        yield value


@pytest.mark.parametrize(
    ("use", "kind", "name"),
    [
        (lambda c: c.map(Both(), Types.STRING()), ElementKind.CO_MAP, "Co-Map"),
        (lambda c: c.flat_map(BothFlat(), Types.STRING()), ElementKind.CO_FLAT_MAP, "Co-Flat Map"),
        (lambda c: c.process(Together(), Types.STRING()), ElementKind.CO_PROCESS, "Co-Process"),
    ],
)
def test_connected_streams(
    jobs: Jobs, use: Callable[[Any], DataStream], kind: ElementKind, name: str
) -> None:
    use(words(jobs).connect(jobs.env.from_collection(["x", 1]))).print()
    node = one(jobs.graph(), kind)
    assert (node.name, len(node.inputs), element(node).stateful) == (name, 2, False)
    assert element(node).inputs == (o.ElementInput(), o.ElementInput())
    assert node.output_schema.element_type == Types.STRING()


def test_connected_keyed_streams(jobs: Jobs) -> None:
    connected = words(jobs).connect(jobs.env.from_collection(["x", 1]))
    connected.key_by(lambda word: word[0], str, Types.STRING()).process(KeyedTogether()).print()
    node = one(jobs.graph(), ElementKind.KEYED_CO_PROCESS)
    assert element(node).stateful and node.strategies == (ShipStrategy.HASH, ShipStrategy.HASH)
    assert (selector(node)(("a", 1)), selector(node, 1)(5)) == ("a", "5")
    first, second = words(jobs).key_by(lambda w: w[0]), words(jobs).key_by(lambda w: w[1])
    first.connect(second).map(Both()).print()
    assert element(one(jobs.graph(), ElementKind.CO_MAP)).stateful


RULES = MapStateDescriptor("rules", Types.STRING(), Types.INT())


class Rules(BroadcastProcessFunction[Any, Any, Any]):
    def process_element(self, value: Any, ctx: Any) -> Any:
        yield value

    def process_broadcast_element(self, value: Any, ctx: Any) -> Any:
        ctx.get_broadcast_state(RULES).put(value, 1)


class KeyedRules(KeyedBroadcastProcessFunction[Any, Any, Any, Any]):
    def process_element(self, value: Any, ctx: Any) -> Any:
        yield value

    def process_broadcast_element(self, value: Any, ctx: Any) -> Any:
        ctx.get_broadcast_state(RULES).put(value, 1)


def test_broadcast_streams(jobs: Jobs) -> None:
    rules = jobs.env.from_collection(["x"], Types.STRING()).broadcast(RULES)
    words(jobs).connect(rules).process(Rules()).print()
    words(jobs).key_by(lambda word: word[0]).connect(rules).process(KeyedRules()).print()
    graph = jobs.graph()
    plain, keyed = one(graph, ElementKind.BROADCAST_PROCESS), one(graph, ElementKind.KEYED_BROADCAST_PROCESS)
    assert element(plain).inputs == (o.ElementInput(), o.ElementInput(broadcast=True))
    assert plain.strategies == (ShipStrategy.FORWARD, ShipStrategy.BROADCAST)
    assert keyed.strategies == (ShipStrategy.HASH, ShipStrategy.BROADCAST)
    assert element(plain).stateful and element(keyed).stateful and selector(keyed)(("a", 1)) == "a"
    with pytest.raises(GraphError, match="a KeyedBroadcastProcessFunction is needed, not Rules"):
        words(jobs).key_by(lambda word: word[0]).connect(rules).process(Rules())


def test_unions_of_elements(jobs: Jobs) -> None:
    typed = jobs.env.from_collection(["x"], Types.STRING())
    words(jobs).map(lambda w: w[0]).union(typed.map(lambda w: w)).print()
    typed.union(jobs.env.from_collection(["a"])).print()
    unions = [n for n in jobs.graph().nodes if isinstance(n.operator, o.UnionOperator)]
    assert [n.output_schema.element_type for n in unions] == [PICKLED, Types.STRING()]
    typed.union(words(jobs)).print()
    with pytest.raises(SchemaError, match=r"union\(\): stream 2 has elements of TupleTypeInfo"):
        jobs.env.execute()


# --- ways -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("way", "strategy"),
    [
        ("rebalance", ShipStrategy.REBALANCE),
        ("rescale", ShipStrategy.RESCALE),
        ("shuffle", ShipStrategy.SHUFFLE),
        ("broadcast", ShipStrategy.BROADCAST),
        ("forward", ShipStrategy.FORWARD),
    ],
)
def test_exchanges(jobs: Jobs, way: str, strategy: ShipStrategy) -> None:
    getattr(words(jobs), way)().map(lambda word: word).print()
    assert jobs.graph().nodes[1].strategies == (strategy,)


def test_forward_keeps_the_parallelism(jobs: Jobs) -> None:
    words(jobs).forward().map(lambda word: word).set_parallelism(2).print()
    with pytest.raises(UnsupportedGraph, match=r"map\(\): forward\(\) needs one parallelism"):
        jobs.env.execute()


def test_custom_partitions(jobs: Jobs) -> None:
    words(jobs).partition_custom(lambda key, count: key % count, lambda word: word[1]).map(str).print()
    node = jobs.graph().nodes[1]
    assert isinstance(node.operator, o.PartitionCustom) and node.strategies == (ShipStrategy.CUSTOM,)
    assert pickle.loads(node.operator.partitioner.payload).build()(7, 4) == 3
    assert node.operator.selector is not None
    assert pickle.loads(node.operator.selector.payload).build()([("a", 7)]) == [7]
    assert node.output_schema.element_type == WORDS


def test_streams_can_be_used_again_after_a_job(jobs: Jobs) -> None:
    stream = words(jobs).map(lambda word: word)
    stream.print()
    assert len(jobs.graph().nodes) == 3
    stream.union(stream).print()
    assert [n.name for n in jobs.graph().nodes] == [
        "Source: Collection Source", "Map", "Union", "Sink: Print to Std. Out"
    ]  # fmt: skip


# --- what is known before the job is executed ---------------------------------------------------------------


def test_what_a_stream_is(jobs: Jobs) -> None:
    stream = words(jobs).map(lambda word: word[0], Types.STRING()).name("First")
    assert (stream.get_type(), stream.get_name()) == (Types.STRING(), "First")
    assert stream.get_execution_environment() is jobs.env
    assert stream.get_execution_config().get_parallelism() == 1
    assert jobs.rows("a INT, b STRING").get_type() == Types.ROW([Types.INT(), Types.STRING()])
    assert stream.key_by(lambda word: word).window(MINUTE).get_input_type() == Types.STRING()
    broken = stream.select("nothing")
    with pytest.raises(GraphError, match=r"^test_elements.py:\d+: select\(\): no field 'nothing'"):
        broken.get_type()


def test_settings(jobs: Jobs) -> None:
    stream = words(jobs).map(str).set_uid_hash("ab" * 16).set_description("texts").force_non_parallel()
    stream.set_buffer_timeout(5).cache().print()
    node = jobs.graph().nodes[1]
    assert (node.operator_hash, node.description, node.parallelism) == ("ab" * 16, "texts", 1)


def test_asynchronous_functions(jobs: Jobs) -> None:
    class Ask(AsyncFunction[Any, Any]):
        async def async_invoke(self, value: Any) -> list[Any]:
            return [value]

    class NotAsync(AsyncFunction[Any, Any]):
        def async_invoke(self, value: Any) -> list[Any]:  # type: ignore[override]
            return [value]

    AsyncDataStream.unordered_wait(words(jobs), Ask(), Time.seconds(5), 7, Types.STRING()).print()
    node = one(jobs.graph(), ElementKind.ASYNC)
    found = definition(node)
    assert (found.timeout_ms, found.capacity, found.ordered) == (5_000, 7, False)
    assert (node.name, node.output_schema.element_type) == ("async wait operator", Types.STRING())
    with pytest.raises(GraphError, match="async_invoke of NotAsync must be declared 'async def'"):
        AsyncDataStream.ordered_wait(words(jobs), NotAsync(), Time.seconds(5))
