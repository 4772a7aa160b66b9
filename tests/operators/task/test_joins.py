"""Joins as levels of a job, with state between micro-batches and restarts, compared with all pairs."""

from __future__ import annotations

import ast
import random
from collections.abc import Callable
from typing import Any

import pytest

from yarnflow.api import RateSource, StreamExecutionEnvironment
from yarnflow.api.common import Time, Types, WatermarkStrategy
from yarnflow.api.common.watermark_strategy import TimestampAssigner
from yarnflow.api.datastream.functions import ProcessJoinFunction
from yarnflow.api.datastream.window import TumblingEventTimeWindows, WindowAssigner
from yarnflow.api.executor import use_executor
from yarnflow.operators.elements import Chunk
from yarnflow.spark.translate.query_groups import query_groups
from yarnflow.testing.in_memory_levels import InMemoryLevels
from yarnflow.testing.kept_graph import KeptGraph

#: key, time in ms, number
Element = tuple[str, int, int]
ELEMENT = Types.TUPLE([Types.STRING(), Types.LONG(), Types.LONG()])


class SecondField(TimestampAssigner):
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return int(value[1])


TIMED = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(SecondField())


def itself(value: Any) -> Any:
    return value


def first(value: Any) -> Any:
    return value[0]


def numbers(left: Any, right: Any) -> Any:
    return left[2], right[2]


class Pairs(ProcessJoinFunction):
    def process_element(self, left: Any, right: Any, ctx: ProcessJoinFunction.Context) -> Any:
        yield numbers(left, right)


def interval(left: Any, right: Any) -> Any:
    return left.key_by(first).interval_join(right.key_by(first)).between(-30, 20).process(Pairs())


def window(left: Any, right: Any) -> Any:
    windows: WindowAssigner[Any, Any] = TumblingEventTimeWindows.of(Time.milliseconds(50))
    return left.join(right).where(first).equal_to(first).window(windows).apply(numbers)


def groups(left: Any, right: Any) -> Any:
    windows: WindowAssigner[Any, Any] = TumblingEventTimeWindows.of(Time.milliseconds(50))
    grouped = left.co_group(right).where(first).equal_to(first).window(windows)
    return grouped.apply(lambda a, b: [numbers(x, y) for x in a for y in b])


def near(left: Element, right: Element) -> bool:
    return -30 <= right[1] - left[1] <= 20


def in_one_window(left: Element, right: Element) -> bool:
    return left[1] // 50 == right[1] // 50


@pytest.mark.parametrize(
    ("join", "meet"), [(interval, near), (window, in_one_window), (groups, in_one_window)]
)
def test_pairs_of_two_streams(
    join: Callable[[Any, Any], Any], meet: Callable[[Element, Element], bool]
) -> None:
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)
    streams = [
        env.from_source(RateSource(1)).map(itself, ELEMENT).assign_timestamps_and_watermarks(TIMED)
        for _ in range(2)
    ]
    join(*streams).print()
    kept = KeptGraph()
    with use_executor(kept):
        env.execute_async("joins")
    (group,) = query_groups(kept.graphs[0])
    assert group.levels is not None
    job = InMemoryLevels([source.level for source in group.levels.sources], group.levels.levels, 128)
    chance = random.Random(1)
    sides: list[list[Element]] = [
        sorted(((chance.choice("abc"), chance.randrange(1000), n) for n in range(150)), key=lambda e: e[1])
        for _ in range(2)
    ]
    for batch in range(10):
        chunks: dict[int, Any] = {}
        for side, elements in enumerate(sides):
            part = [e for e in elements if e[1] // 100 == batch]
            chunks[side] = [[Chunk(part[0::2])], [Chunk(part[1::2])]]
        job.run_batch(chunks, now_ms=batch)
        job.restart()
    job.run_batch(end=True)
    (printed,) = job.sinks.values()
    found = [ast.literal_eval(line.partition("> ")[2]) for line in printed]
    expected = [(l[2], r[2]) for l in sides[0] for r in sides[1] if l[0] == r[0] and meet(l, r)]  # noqa: E741
    assert len(expected) > 100
    assert sorted(found) == sorted(expected)
