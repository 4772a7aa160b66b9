"""Elements of two streams that meet in windows."""

from __future__ import annotations

from typing import Any

from yarnflow.operators.functions.joins import CoGroupFunction, FlatJoinFunction, JoinFunction
from yarnflow.operators.functions.runtime_context import RuntimeContext
from yarnflow.operators.joins.windows import CoGroupDefinition, CoGroupWindow, JoinWindow
from yarnflow.operators.windows.assigner import WindowAssigner
from yarnflow.operators.windows.operator.definition import WindowDefinition
from yarnflow.operators.windows.session_windows import EventTimeSessionWindows
from yarnflow.operators.windows.time_windows import TumblingEventTimeWindows
from yarnflow.testing.functions import TwoInputHarness

TEN: WindowAssigner[Any, Any] = TumblingEventTimeWindows(10, 0)


def key(value: Any) -> Any:
    return value[0]


def harness(window_function: Any, assigner: Any = TEN) -> TwoInputHarness:
    windows = WindowDefinition(assigner, window_function)
    made = TwoInputHarness(CoGroupDefinition(windows), (key, key))
    for number in (1, 5, 12):
        made.process_element1(("a", number), number)
    for number in (3, 14, 25):
        made.process_element2(("a", number), number)
    made.process_element2(("b", 4), 4)
    made.restart()
    made.process_watermark(1000)
    return made


class Sum(JoinFunction):
    def join(self, first: Any, second: Any) -> Any:
        return first[1] + second[1]


class Both(FlatJoinFunction):
    def join(self, first: Any, second: Any) -> Any:
        if first[1] != 5:
            yield first[1]
            yield second[1]


class Counted(CoGroupFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.opened = True

    def co_group(self, first: Any, second: Any) -> Any:
        assert self.opened
        yield [value[1] for value in first], [value[1] for value in second]


def test_pairs_of_a_key_and_window() -> None:
    assert sorted(harness(JoinWindow(Sum())).take_output()) == [(4, 9), (8, 9), (26, 19)]
    assert harness(JoinWindow(lambda a, b: (a[1], b[1]))).take_values() == [(1, 3), (5, 3), (12, 14)]
    assert harness(JoinWindow(Both())).take_values() == [1, 3, 12, 14]


def test_groups_of_a_key_and_window_even_where_one_is_empty() -> None:
    found = harness(CoGroupWindow(Counted()))
    assert sorted(found.take_values()) == [([], [4]), ([], [25]), ([1, 5], [3]), ([12], [14])]
    assert found.state_entries() == 0


def test_sessions_are_of_both_streams() -> None:
    assert sorted(harness(CoGroupWindow(Counted()), EventTimeSessionWindows(4)).take_values()) == [
        ([], [4]), ([], [25]), ([1, 5], [3]), ([12], [14])
    ]  # fmt: skip
