"""Sessions: windows that merge."""

from __future__ import annotations

from typing import Any

import pytest

from tests.operators.windows.operator.window_functions import (
    LATE,
    Always,
    Listed,
    Mean,
    Sum,
    sessions,
    windows_of,
)
from yarnflow.errors import GraphError
from yarnflow.operators.windows.assigner import SessionWindowTimeGapExtractor, WindowAssigner
from yarnflow.operators.windows.session_windows import (
    DynamicEventTimeSessionWindows,
    DynamicProcessingTimeSessionWindows,
    EventTimeSessionWindows,
    ProcessingTimeSessionWindows,
)
from yarnflow.operators.windows.window import TimeWindow


@sessions
def test_sessions_that_meet_are_one(assigner: Any) -> None:
    windows = windows_of(assigner, Listed())
    windows.process_elements([(2, 0), (4, 25), (1, 3)])
    windows.restart()
    windows.process_watermark(5)
    windows.process_elements([(6, 16), (8, 9)])
    assert windows.event_time_timers() == [12, 34]
    windows.process_watermark(100)
    assert windows.take_values() == [
        (1, TimeWindow(3, 13), [1]),
        (0, TimeWindow(0, 35), [2, 4, 6, 8]),
    ]
    assert windows.state_entries() == 0


@sessions
def test_sessions_that_meet_are_combined(assigner: Any) -> None:
    for combine, result in (Sum(), 20), (Mean(), 5.0):
        windows = windows_of(assigner, combine=combine)
        windows.process_elements([(2, 0), (4, 25)])
        windows.process_elements([(6, 16), (8, 9)])
        windows.process_watermark(100)
        assert windows.take_output() == [(result, 34)]


@sessions
def test_a_session_that_has_fired_fires_again_when_it_grows(assigner: Any) -> None:
    windows = windows_of(assigner, Listed(), allowed_lateness_ms=20, late_tag=LATE)
    windows.process_element(2, 0)
    windows.process_watermark(12)
    windows.process_elements([(4, 1), (6, 8)])
    windows.process_watermark(17)
    windows.process_watermark(36)
    windows.process_element(8, 5)
    windows.process_watermark(37)
    windows.process_element(0, 5)
    assert windows.take_values() == [
        (0, TimeWindow(0, 10), [2]),
        (0, TimeWindow(0, 11), [2, 4]),
        (0, TimeWindow(0, 18), [2, 4, 6]),
        (0, TimeWindow(0, 18), [2, 4, 6, 8]),
    ]
    assert windows.take_side_output(LATE) == [(0, 5)]
    assert windows.state_entries() == 0 and windows.event_time_timers() == []


class GapOfValue(SessionWindowTimeGapExtractor):
    def extract(self, element: Any) -> int:
        return int(element)


def test_sessions_with_a_gap_of_each_element() -> None:
    by_watermark = EventTimeSessionWindows.with_dynamic_gap(GapOfValue())
    assert type(by_watermark) is DynamicEventTimeSessionWindows
    assert repr(by_watermark) == "DynamicEventTimeSessionWindows(GapOfValue)"
    windows = windows_of(by_watermark, Listed())
    windows.process_elements([(20, 0), (2, 5), (2, 21)])
    windows.process_watermark(100)
    assert windows.take_values() == [(0, TimeWindow(0, 20), [20, 2]), (0, TimeWindow(21, 23), [2])]
    with pytest.raises(GraphError, match="GapOfValue.extract returned 0 for 0; the gap"):
        windows.process_element(0, 100)


def test_a_session_again_as_long_as_one_that_grew() -> None:
    assigner = EventTimeSessionWindows.with_dynamic_gap(GapOfValue())
    windows = windows_of(assigner, combine=Sum(), trigger=Always())
    windows.process_elements([(10, 0), (10, 5), (15 + 1, 0), (15 + 1, 0)])
    assert windows.take_values() == [10, 20, 36, 52]


def test_sessions_by_the_clock() -> None:
    assigner: WindowAssigner[Any, Any]
    for assigner in (
        ProcessingTimeSessionWindows(10),
        ProcessingTimeSessionWindows.with_dynamic_gap(GapOfValue()),
    ):
        windows = windows_of(assigner, Listed())
        for now_ms, values in (0, [10, 9]), (6, [10]), (16, [10]):
            windows.set_processing_time(now_ms)
            windows.process_elements([(value, None) for value in values])
        windows.set_processing_time(100)
        fired = sorted(windows.take_values(), key=repr)
        assert [values for _, _, values in fired] == [[10, 10], [10], [9]]
        assert windows.state_entries() == 0 and windows.processing_time_timers() == []
    assert type(assigner) is DynamicProcessingTimeSessionWindows
