"""What windows keep, what they evaluate to, and what functions raise."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from tests.operators.windows.operator.window_functions import (
    LARGE,
    TEN_MS,
    AllListed,
    AllProcessed,
    GeneralTumbling,
    Listed,
    Mean,
    Processed,
    Sum,
    both_ways,
    sessions,
    windows_of,
)
from yarnflow.errors import InvalidStateUse, UserCodeError
from yarnflow.operators.elements import Chunk
from yarnflow.operators.functions.windows import WindowFunction
from yarnflow.operators.windows.assigner import SessionWindowTimeGapExtractor
from yarnflow.operators.windows.operator.definition import WindowDefinition
from yarnflow.operators.windows.session_windows import DynamicEventTimeSessionWindows
from yarnflow.operators.windows.time_windows import SlidingEventTimeWindows
from yarnflow.operators.windows.triggers import EventTimeTrigger
from yarnflow.operators.windows.window import TimeWindow
from yarnflow.testing.windows import CollectedOutput, WindowHarness


@both_ways
def test_elements_are_combined_by_a_function(assigner: Any) -> None:
    for combine in Sum(), (lambda left, right: left + right):
        windows = windows_of(assigner, combine=combine)
        windows.process_elements([(1, 0), (3, 5), (2, 9), (5, 12)])
        windows.process_watermark(20)
        assert windows.take_output() == [(4, 9), (2, 9), (5, 19)]
        assert windows.state_entries() == 0


@both_ways
def test_elements_are_aggregated(assigner: Any) -> None:
    windows = windows_of(assigner, combine=Mean())
    windows.process_elements([(1, 0), (4, 5), (8, 9)])
    windows.process_element(3, 6)
    windows.process_watermark(9)
    assert windows.take_output() == [(2.0, 9), (6.0, 9)]


@both_ways
def test_a_result_of_none_is_no_result(assigner: Any) -> None:
    windows = windows_of(assigner, combine=Mean())
    windows.process_elements([(0, 5), (1, 5)])
    windows.process_watermark(9)
    assert windows.take_values() == [1.0]


@both_ways
def test_a_function_sees_what_was_combined(assigner: Any) -> None:
    windows = windows_of(assigner, Listed(), Mean())
    windows.process_elements([(2, 0), (4, 5)])
    windows.process_watermark(9)
    assert windows.take_output() == [((0, TimeWindow(0, 10), [3.0]), 9)]


@both_ways
def test_a_function_sees_all_elements_in_their_order(assigner: Any) -> None:
    windows = windows_of(assigner, Listed())
    windows.process_elements([(4, 9), (2, 0), (7, 1), (8, 5)])
    windows.process_watermark(9)
    window = TimeWindow(0, 10)
    assert windows.take_values() == [(0, window, [4, 2, 8]), (1, window, [7])]


def test_elements_of_overlapping_windows_keep_their_order() -> None:
    windows = windows_of(SlidingEventTimeWindows(10, 5, 0), Listed())
    windows.process_elements([(4, 9), (2, 0), (8, 5), (6, 4)])
    windows.process_watermark(9)
    assert windows.take_values() == [(0, TimeWindow(-5, 5), [2, 6]), (0, TimeWindow(0, 10), [4, 2, 8, 6])]


def test_windows_of_the_whole_stream() -> None:
    for function, results in (
        (AllListed(), [(TimeWindow(0, 10), [3, 2])]),
        (AllProcessed(), [(TimeWindow(0, 10), [2, 3])]),
    ):
        windows = WindowHarness(TEN_MS, function)
        windows.process_elements([(3, 0), (2, 5)])
        windows.process_watermark(9)
        assert windows.take_values() == results
    assert windows.take_side_output(LARGE) == [(3, 9)]


@both_ways
def test_a_function_has_state_per_window_and_per_key(assigner: Any) -> None:
    function = Processed()
    windows = windows_of(assigner, function, allowed_lateness_ms=10)
    assert function.opened == type(assigner).__name__
    windows.set_processing_time(77)
    windows.process_elements([(1, 0), (1, 12)])
    windows.process_watermark(12)
    windows.restart()
    windows.process_element(3, 4)
    windows.process_watermark(29)
    assert windows.take_values() == [
        (1, 0, 1, 1, 12), 77,
        (1, 0, 2, 1, 12), 77,
        (1, 10, 1, 2, 29), 77,
    ]  # fmt: skip
    assert function.cleared == [TimeWindow(0, 10), TimeWindow(10, 20)]
    assert windows.state_entries() == 1  # of the key
    windows.close()
    assert function.opened == ""


@sessions
def test_there_is_no_state_of_windows_that_merge(assigner: Any) -> None:
    windows = windows_of(assigner, Processed())
    windows.process_element(1, 0)
    with pytest.raises(InvalidStateUse, match="state 'firings': windows that merge have no state per window"):
        windows.process_watermark(9)


def test_what_a_function_returns() -> None:
    class Returns(WindowFunction[Any, Any, Any, Any]):
        def __init__(self, results: Any) -> None:
            self.results = results

        def apply(self, key: Any, window: Any, inputs: Iterable[Any]) -> Any:
            return self.results

    for results, values in (None, []), ((1, 2), [1, 2]), ([(LARGE, 7), (), (1,)], [(), (1,)]):
        windows = WindowHarness(TEN_MS, Returns(results))
        windows.process_element(1, 1)
        windows.process_watermark(9)
        assert windows.take_values() == values
    assert windows.take_side_output(LARGE) == [(7, 9)]
    windows = WindowHarness(TEN_MS, Returns(5))
    windows.process_element(1, 1)
    with pytest.raises(UserCodeError, match="Returns returned int for window .*return a list of them"):
        windows.process_watermark(9)


def _fails(*arguments: Any) -> Any:
    raise ZeroDivisionError("of the user's")


#: stands for any method
fails: Any = _fails


class FailingAggregate(Mean):
    add = fails


class FailingResult(Mean):
    get_result = fails


class FailingFunction(Listed):
    def apply(self, key: Any, window: Any, inputs: Iterable[Any]) -> Any:
        yield 1
        fails()


class FailingGap(SessionWindowTimeGapExtractor):
    extract = fails


class FailingTrigger(EventTimeTrigger[Any]):
    on_event_time = fails


@pytest.mark.parametrize(
    "assigner, given, note",
    [
        (TEN_MS, {"combine": fails}, "combining elements [3, 5]"),
        (GeneralTumbling(10, 0), {"combine": fails}, "element 5"),
        (TEN_MS, {"combine": FailingAggregate()}, "element 3"),
        (TEN_MS, {"combine": FailingResult()}, "TimeWindow(start=0, end=10) of key 1"),
        (TEN_MS, {"function": FailingFunction()}, "TimeWindow(start=0, end=10) of key 1"),
        (GeneralTumbling(10, 0), {"function": FailingFunction()}, "TimeWindow(start=0, end=10) of key 1"),
        (DynamicEventTimeSessionWindows(FailingGap()), {"combine": Sum()}, "element 3"),
        (
            TEN_MS,
            {"combine": Sum(), "trigger": FailingTrigger()},
            "timer 9 of TimeWindow(start=0, end=10) of key 1",
        ),
    ],
)
def test_what_a_function_raises_says_for_what(assigner: Any, given: Any, note: str) -> None:
    windows = windows_of(assigner, **given)
    with pytest.raises(ZeroDivisionError) as raised:
        windows.process_elements([(3, 1), (5, 2)])
        windows.process_watermark(9)
    assert raised.value.__notes__ == [f"operator '{type(assigner).__name__}': {note}"]


def test_a_tag_is_an_element_where_nobody_reads_side_outputs() -> None:
    class Tags(AllListed):
        def apply(self, window: Any, inputs: Iterable[Any]) -> Any:
            return [(LARGE, 7)]

    for side_outputs, main in (False, [((LARGE, 7), 9)]), (True, []):
        windows = WindowHarness(TEN_MS, Tags())
        operator = WindowDefinition(TEN_MS, Tags(), side_outputs=side_outputs).build()
        operator.open(windows._context)
        output = CollectedOutput()
        operator.process(0, Chunk([1], [1], [0]), output)
        operator.on_event_timer(9, 0, (0, 10), output)
        operator.on_watermark(9, output)
        assert output.main == main and output.sides == ({"large": [(7, 9)]} if side_outputs else {})


def test_results_of_one_watermark_are_one_chunk() -> None:
    windows = windows_of(TEN_MS, combine=Sum())
    windows.process_elements([(value, 3 * value) for value in range(20)])
    windows.process_watermark(100)
    assert len(windows.take_output()) == 12 and windows._output.chunks == 1
