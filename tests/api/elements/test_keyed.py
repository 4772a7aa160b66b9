"""Keyed streams: process functions, selectors, reductions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.api.conftest import Jobs
from tests.api.elements.programs import WORDS, definition, element, one, selector, words
from yarnflow.api import KeyedStream
from yarnflow.api.common import Types
from yarnflow.api.datastream import KeyedProcessFunction, KeySelector, MapFunction, RuntimeContext
from yarnflow.errors import SchemaError, UnsupportedGraph
from yarnflow.graph import operators as o
from yarnflow.graph.job_graph import ShipStrategy
from yarnflow.graph.operators import ElementKind


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
    with pytest.raises(SchemaError, match=r"^test_keyed.py:\d+: key_by\(\)"):
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
