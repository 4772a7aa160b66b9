"""Programs on elements, and what their graphs hold."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

from tests.api.conftest import Jobs
from yarnflow.api.common import Time, Types
from yarnflow.api.datastream import DataStream
from yarnflow.api.datastream.window import TumblingEventTimeWindows
from yarnflow.graph import operators as o
from yarnflow.graph.job_graph import JobGraph, StreamNode
from yarnflow.graph.operators import ElementKind
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
