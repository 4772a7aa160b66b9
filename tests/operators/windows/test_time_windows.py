"""Which windows a moment is in."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from yarnflow.errors import GraphError
from yarnflow.operators.windows.assigner import WindowAssigner
from yarnflow.operators.windows.time_windows import (
    SlidingEventTimeWindows,
    SlidingProcessingTimeWindows,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
)
from yarnflow.operators.windows.triggers import EventTimeTrigger, ProcessingTimeTrigger
from yarnflow.operators.windows.window import TimeWindow


class At(WindowAssigner.WindowAssignerContext):
    """A context that shows a time."""

    def __init__(self, now_ms: int) -> None:
        self.now_ms = now_ms

    def get_current_processing_time(self) -> int:
        return self.now_ms

    def get_runtime_context(self) -> Any:
        raise AssertionError("time windows need no state")


def ms(number: int) -> timedelta:
    return timedelta(milliseconds=number)


@given(
    st.integers(1, 50), st.integers(1, 50), st.integers(-49, 49), st.integers(-1_000, 1_000), st.booleans()
)
def test_sliding_windows_are_those_around_a_moment(
    size: int, slide: int, offset: int, moment: int, event_time: bool
) -> None:
    offset %= slide
    kind = SlidingEventTimeWindows if event_time else SlidingProcessingTimeWindows
    assigner: WindowAssigner[Any, TimeWindow] = kind.of(ms(size), ms(slide), ms(offset))
    assigned = assigner.assign_windows(None, moment if event_time else 99, At(99 if event_time else moment))
    expected = [
        TimeWindow(start, start + size)
        for start in range(moment, moment - size, -1)
        if (start - offset) % slide == 0
    ]
    assert list(assigned) == expected


@given(st.integers(1, 50), st.integers(-49, 49), st.integers(-1_000, 1_000), st.booleans())
def test_a_tumbling_window_is_the_one_around_a_moment(
    size: int, offset: int, moment: int, event_time: bool
) -> None:
    offset %= size
    kind = TumblingEventTimeWindows if event_time else TumblingProcessingTimeWindows
    assigner: WindowAssigner[Any, TimeWindow] = kind.of(ms(size), ms(offset))
    (window,) = assigner.assign_windows(None, moment if event_time else 99, At(99 if event_time else moment))
    assert window.start <= moment < window.end == window.start + size
    assert (window.start - offset) % size == 0


def test_windows_of_event_time_go_by_the_watermark() -> None:
    assigner: WindowAssigner[Any, TimeWindow]
    for assigner in TumblingEventTimeWindows.of(ms(5)), SlidingEventTimeWindows.of(ms(5), ms(2)):
        assert assigner.is_event_time()
        assert type(assigner.get_default_trigger(None)) is EventTimeTrigger


def test_windows_of_processing_time_go_by_the_clock() -> None:
    assigner: WindowAssigner[Any, TimeWindow]
    for assigner in TumblingProcessingTimeWindows.of(ms(5)), SlidingProcessingTimeWindows.of(ms(5), ms(2)):
        assert not assigner.is_event_time()
        assert type(assigner.get_default_trigger(None)) is ProcessingTimeTrigger


def test_assigners_print_as_pyflinks() -> None:
    assert repr(TumblingEventTimeWindows.of(ms(5), ms(1))) == "TumblingEventTimeWindows(5, 1)"
    assert repr(SlidingProcessingTimeWindows.of(ms(5), ms(2))) == "SlidingProcessingTimeWindows(5, 2, 0)"


def test_windows_that_cannot_be_are_refused() -> None:
    with pytest.raises(GraphError, match="TumblingEventTimeWindows: the offset of 5 ms.*size of 5 ms"):
        TumblingEventTimeWindows.of(ms(5), ms(5))
    with pytest.raises(GraphError, match="SlidingEventTimeWindows: needs a size above 0"):
        SlidingEventTimeWindows.of(ms(0), ms(5))
    with pytest.raises(GraphError, match="size 5 ms, slide 2 ms, offset -2 ms"):
        SlidingProcessingTimeWindows.of(ms(5), ms(2), ms(-2))
    with pytest.raises(GraphError, match=r"size 'five' is no length of time; write Time.seconds\(5\)"):
        TumblingEventTimeWindows.of("five")
