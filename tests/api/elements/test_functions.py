"""Functions of one element: what every call becomes, whether types are given or not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, cast

import pytest

from tests.api.conftest import Jobs
from tests.api.elements.programs import MINUTE, WORDS, definition, element, one, words
from yarnflow.api import RateSource
from yarnflow.api.common import Row, Time, Types
from yarnflow.api.datastream import (
    AsyncDataStream,
    AsyncFunction,
    MapFunction,
    OutputTag,
    ProcessFunction,
    RuntimeContext,
)
from yarnflow.errors import GraphError, SchemaError, UnserializableFunction, UnsupportedGraph
from yarnflow.graph import operators as o
from yarnflow.graph.operators import ElementKind
from yarnflow.graph.type_info import PICKLED


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
    assert [node.name for node in nodes[1:4]] == ["Map", "FlatMap", "Filter"]
    assert not any(element(node).stateful for node in nodes[1:4])


def test_a_stream_inside_a_function_is_refused_where_the_function_is_given(jobs: Jobs) -> None:
    other, env = words(jobs), jobs.env

    class Joins(MapFunction):
        def __init__(self) -> None:
            self.other = other.map(len)

        def map(self, value: Any) -> Any:
            return value, self.other

    def reads(value: Any) -> Any:
        return env.from_collection([value])

    for function, found in (
        (lambda word: (word, other), "variable 'other' of type DataStream; a DataStream"),
        (Joins(), "attribute 'other' of type DataStream; a DataStream"),
        (reads, "variable 'env' of type StreamExecutionEnvironment; a StreamExecutionEnvironment"),
    ):
        message = rf"test_functions\.py:\d+: function .* it uses the {found} cannot be used inside a function"
        with pytest.raises(UnserializableFunction, match=message):
            words(jobs).map(function)


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
    with pytest.raises(SchemaError, match=rf"^test_functions.py:\d+: {call}\(\): .*have no columns"):
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
    with pytest.raises(SchemaError, match=r"^test_functions.py:\d+: get_side_output\(\): .*has the types"):
        stream.get_side_output(OutputTag("late", Types.INT()))


def test_side_outputs_of_what_has_none(jobs: Jobs) -> None:
    jobs.rows("a INT").get_side_output(OutputTag("late")).print()
    with pytest.raises(UnsupportedGraph, match=r"get_side_output\(\): .*has no side output 'late'"):
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
    with pytest.raises(GraphError, match=rf"^test_functions.py:\d+: .*{part}"):
        use(words(jobs))


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
