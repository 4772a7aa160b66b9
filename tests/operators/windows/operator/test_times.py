"""Windows by the clock, elements that come late, and such without a time."""

from __future__ import annotations

from typing import Any

import pytest

from tests.operators.windows.operator.window_functions import (
    LATE,
    TEN_MS,
    GeneralTumbling,
    Listed,
    Sum,
    both_ways,
    windows_of,
)
from yarnflow.errors import InvariantViolated, TimestampsMissing
from yarnflow.operators.elements import MAX_WATERMARK_MS, Chunk
from yarnflow.operators.functions.runtime_context import TaskInfo, TaskRuntimeContext
from yarnflow.operators.process.operator import OperatorContext
from yarnflow.operators.windows.operator.definition import WindowDefinition
from yarnflow.operators.windows.session_windows import EventTimeSessionWindows
from yarnflow.operators.windows.time_windows import SlidingEventTimeWindows, SlidingProcessingTimeWindows
from yarnflow.operators.windows.window import TimeWindow
from yarnflow.testing.windows import CollectedOutput, WindowHarness


def test_overlapping_windows_by_the_clock() -> None:
    windows = windows_of(SlidingProcessingTimeWindows(10, 5, 0), Listed())
    windows.set_processing_time(7)
    windows.process_elements([(2, None), (1, 1_000), (4, None)])
    windows.set_processing_time(9)
    assert windows.take_output() == [((0, TimeWindow(0, 10), [2, 4]), 9), ((1, TimeWindow(0, 10), [1]), 9)]
    windows.set_processing_time(14)
    assert [timestamp for _, timestamp in windows.take_output()] == [14, 14]
    assert windows.state_entries() == 0


@both_ways
def test_late_elements_are_dropped_and_counted(assigner: Any) -> None:
    windows = windows_of(assigner, combine=Sum())
    windows.process_watermark(9)
    windows.process_elements([(1, 9), (3, 10), (5, 2)])
    windows.process_watermark(30)
    assert windows.take_values() == [3]
    assert windows.late_dropped == 2


@both_ways
def test_late_elements_go_to_their_side_output(assigner: Any) -> None:
    windows = windows_of(assigner, combine=Sum(), allowed_lateness_ms=3, late_tag=LATE)
    windows.process_watermark(12)
    windows.process_elements([(1, 9), (3, 10)])
    assert windows.take_side_output(LATE) == [(1, 9)] and windows.late_dropped == 0


@both_ways
def test_windows_past_their_end_fire_with_each_element(assigner: Any) -> None:
    windows = windows_of(assigner, combine=Sum(), allowed_lateness_ms=5)
    windows.process_element(1, 4)
    windows.process_watermark(10)
    windows.process_elements([(3, 5), (2, 6), (5, 7)])
    assert windows.take_output() == [(1, 9), (4, 9), (2, 9), (9, 9)]
    assert windows.event_time_timers() == [14, 14]
    windows.process_watermark(14)
    assert windows.take_output() == [] and windows.state_entries() == 0


@both_ways
def test_lateness_without_end(assigner: Any) -> None:
    windows = windows_of(assigner, combine=Sum(), allowed_lateness_ms=MAX_WATERMARK_MS)
    windows.process_element(1, 4)
    windows.process_watermark(10**12)
    windows.process_element(3, 5)
    assert windows.take_values() == [1, 4] and windows.event_time_timers() == []


@pytest.mark.parametrize(
    "assigner",
    [TEN_MS, GeneralTumbling(10, 0), EventTimeSessionWindows(10), SlidingEventTimeWindows(4, 2, 0)],
)
def test_windows_of_event_time_need_timestamps(assigner: Any) -> None:
    windows = windows_of(assigner, combine=Sum())
    said = (
        f"operator '{type(assigner).__name__}': {type(assigner).__name__} needs elements with a timestamp, "
        r"and 7 has none; call assign_timestamps_and_watermarks\(\)"
    )
    with pytest.raises(TimestampsMissing, match=said):
        windows.process_elements([(6, 1), (7, None)])


def test_no_element_has_a_timestamp() -> None:
    definition = WindowDefinition(TEN_MS, combine=Sum())
    harness = WindowHarness(TEN_MS, combine=Sum())
    operator = definition.build()
    operator.open(harness._context)
    with pytest.raises(TimestampsMissing, match="7 has none"):
        operator.process(0, Chunk([7], None, [0]), CollectedOutput())
    operator.process(0, Chunk([], None, []), CollectedOutput())
    with pytest.raises(InvariantViolated, match="no keys"):
        operator.process(0, Chunk([7], [1]), CollectedOutput())
    with pytest.raises(InvariantViolated, match="need keyed state"):
        operator.open(OperatorContext(TaskRuntimeContext(TaskInfo("windows")), None))
