"""Connected streams and broadcast ones, and unions."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest

from tests.api.conftest import Jobs
from tests.api.elements.programs import element, one, selector, words
from yarnflow.api.common import Types
from yarnflow.api.datastream import (
    BroadcastProcessFunction,
    CoFlatMapFunction,
    CoMapFunction,
    CoProcessFunction,
    DataStream,
    KeyedBroadcastProcessFunction,
    KeyedCoProcessFunction,
)
from yarnflow.api.datastream.state import MapStateDescriptor
from yarnflow.errors import GraphError, SchemaError
from yarnflow.graph import operators as o
from yarnflow.graph.job_graph import ShipStrategy
from yarnflow.graph.operators import ElementKind
from yarnflow.graph.type_info import PICKLED


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
