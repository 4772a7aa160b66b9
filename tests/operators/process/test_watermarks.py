"""Timestamps and the watermark that follows them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from yarnflow.graph.closures import Closure
from yarnflow.operators.elements import MAX_WATERMARK_MS, MIN_WATERMARK_MS, Chunk
from yarnflow.operators.functions.elements import TimestampAssigner
from yarnflow.operators.process.operator import WatermarkStatus
from yarnflow.operators.process.watermarks import TimestampsAndWatermarksDefinition
from yarnflow.operators.state.store import GroupStore
from yarnflow.operators.task.micro_batch import MicroBatch
from yarnflow.operators.task.node import Node
from yarnflow.operators.task.plan import JobInfo, OperatorPlan
from yarnflow.testing.functions import OperatorHarness


def level(definition: TimestampsAndWatermarksDefinition) -> Node:
    closure = Closure(b"", "it", "job.py:1")
    plan = OperatorPlan(1, "times", "Times", "job.py:1", closure, (), groups=2)
    node = Node(plan, definition, JobInfo(), 0, None)
    node.open()
    return node


def status(
    node: Node, store: GroupStore, values: list[Any], now_ms: int = 0, source_ms: int = MIN_WATERMARK_MS,
    group: int = 0, run_ms: int = 0,
) -> WatermarkStatus:  # fmt: skip
    node.bind(group, store, MicroBatch(0, now_ms, run_ms))
    if values:
        node.receive(0, Chunk(values))
    node.advance(WatermarkStatus(source_ms))
    return node.output_status


def assign(value: int, record_timestamp: int) -> int:
    assert record_timestamp == MIN_WATERMARK_MS
    return value


@given(st.lists(st.lists(st.integers(0, 1000))), st.integers(0, 100))
def test_the_watermark_follows_the_latest_time_and_never_goes_back(
    batches: list[list[int]], out_of_orderness_ms: int
) -> None:
    run = level(TimestampsAndWatermarksDefinition(assign, out_of_orderness_ms))
    store, seen = GroupStore(), list[int]()
    for batch in batches:
        seen += batch
        expected = max(seen) - out_of_orderness_ms - 1 if seen else MIN_WATERMARK_MS
        assert status(run, store, batch) == (expected, False)


def test_elements_get_their_times() -> None:
    class Assigner(TimestampAssigner):
        def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
            return int(value) + max(0, record_timestamp)

    harness = OperatorHarness(TimestampsAndWatermarksDefinition(Assigner()))
    harness.process_elements([(5, None), (6, 100)])
    assert harness.take_output() == [(5, 5), (6, 106)]


def test_groups_have_watermarks_of_their_own() -> None:
    run, stores = level(TimestampsAndWatermarksDefinition(assign)), [GroupStore(), GroupStore()]
    assert status(run, stores[0], [1000]) == (999, False)
    assert status(run, stores[1], [10], group=1) == (9, False)
    assert status(run, stores[0], [1]) == (999, False)


def test_only_the_end_of_the_input_comes_from_before() -> None:
    run, store = level(TimestampsAndWatermarksDefinition(assign)), GroupStore()
    assert status(run, store, [10], source_ms=500) == (9, False)
    assert status(run, store, [], source_ms=MAX_WATERMARK_MS) == (MAX_WATERMARK_MS, False)


def test_without_watermarks_there_is_only_the_end() -> None:
    run, store = level(TimestampsAndWatermarksDefinition(assign, None)), GroupStore()
    assert status(run, store, [10]) == (MIN_WATERMARK_MS, False)
    assert status(run, store, [], source_ms=MAX_WATERMARK_MS) == (MAX_WATERMARK_MS, False)


def test_a_group_without_elements_is_idle_after_a_time() -> None:
    run, store = level(TimestampsAndWatermarksDefinition(assign, idle_after_ms=100)), GroupStore()
    assert status(run, store, [], 1000) == (MIN_WATERMARK_MS, False)
    assert status(run, store, [], 1100) == (MIN_WATERMARK_MS, True)
    assert status(run, store, [10], 1150) == (9, False)
    assert status(run, store, [], 1249) == (9, False)
    assert status(run, store, [], 1250) == (9, True)


def test_idleness_counts_from_the_first_batch_of_a_run_of_the_job() -> None:
    definition, store = TimestampsAndWatermarksDefinition(assign, idle_after_ms=100), GroupStore()
    run = level(definition)
    assert status(run, store, [10], 1000, run_ms=900) == (9, False)
    assert status(run, store, [], 5000, run_ms=4900) == (9, False)
    assert status(run, store, [], 5099, run_ms=4900) == (9, False)
    assert status(run, store, [], 5100, run_ms=4900) == (9, True)


def test_a_timestamp_that_is_none_is_named() -> None:
    harness = OperatorHarness(TimestampsAndWatermarksDefinition(lambda value, before: value))
    with pytest.raises(TypeError, match="timestamp of element None is None; a timestamp is a whole number"):
        harness.process_elements([(1, None), (None, None)])


def test_elements_without_time_need_an_assigner() -> None:
    harness = OperatorHarness(TimestampsAndWatermarksDefinition())
    harness.process_element("a", 5)
    assert harness.take_output() == [("a", 5)]
    with pytest.raises(TypeError, match="element 'c' has no timestamp; give the watermark strategy"):
        harness.process_elements([("b", 1), ("c", None)])
