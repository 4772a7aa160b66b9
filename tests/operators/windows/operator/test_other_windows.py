"""Windows of so many elements, and windows that a program defines."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from io import BytesIO
from typing import Any

import pytest

from tests.operators.windows.operator.window_functions import LATE, Listed, Sum, windows_of
from yarnflow.errors import GraphError, UserCodeError
from yarnflow.operators.functions.windows import WindowFunction
from yarnflow.operators.state.descriptors import ValueStateDescriptor
from yarnflow.operators.windows.assigner import MergingWindowAssigner, WindowAssigner
from yarnflow.operators.windows.count_windows import (
    CountSlidingWindowAssigner,
    CountTumblingWindowAssigner,
    GlobalWindows,
)
from yarnflow.operators.windows.serializers import TimeWindowSerializer, TypeSerializer
from yarnflow.operators.windows.trigger import Trigger
from yarnflow.operators.windows.triggers import CountTrigger, EventTimeTrigger
from yarnflow.operators.windows.window import MergeCallback, TimeWindow, Window
from yarnflow.testing.windows import WindowHarness


def test_tumbling_windows_of_a_number_of_elements() -> None:
    windows = windows_of(CountTumblingWindowAssigner.of(3), combine=Sum())
    windows.process_elements([(value, value) for value in (2, 4, 1, 6, 8, 10)])
    windows.restart()
    assert windows.take_output() == [(12, 6)]  # no time ends the window, so the last element's is taken
    windows.process_element(12)
    assert windows.take_values() == [30]
    # two keys' numbers, and one element with its trigger's count
    assert windows.state_entries() == 4


def test_overlapping_windows_of_a_number_of_elements() -> None:
    windows = WindowHarness(CountSlidingWindowAssigner.of(3, 2), Listed())
    windows.process_elements([(value, None) for value in range(8)])
    assert [values for _, _, values in windows.take_values()] == [[0, 1, 2], [2, 3, 4], [4, 5, 6]]
    windows = WindowHarness(CountSlidingWindowAssigner.of(2, 3), Listed())
    windows.process_elements([(value, None) for value in range(8)])
    assert [values for _, _, values in windows.take_values()] == [[0, 1], [3, 4], [6, 7]]
    assert windows.state_entries() == 1


def test_windows_of_a_number_of_elements_with_another_trigger_keep_their_elements() -> None:
    windows = WindowHarness(CountTumblingWindowAssigner.of(4), Listed(), trigger=CountTrigger.of(2))
    windows.process_elements([(value, None) for value in range(4)])
    assert [values for _, _, values in windows.take_values()] == [[0, 1], [0, 1, 2, 3]]


def test_counts_print_as_pyflinks() -> None:
    assert repr(CountTumblingWindowAssigner.of(3)) == "CountTumblingWindowAssigner(3)"
    assert repr(CountSlidingWindowAssigner.of(3, 2)) == "CountSlidingWindowAssigner(3, 2)"
    assert repr(GlobalWindows.create()) == "GlobalWindows()"
    with pytest.raises(GraphError, match="CountTumblingWindowAssigner: needs a size and a slide of at"):
        CountTumblingWindowAssigner.of(0)


class Named(Window):
    """A window of a user's: elements of one name."""

    def __init__(self, name: str) -> None:
        self.name = name

    def max_timestamp(self) -> int:
        return 100

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Named) and other.name == self.name

    def __hash__(self) -> int:
        return hash(self.name)


class NamedSerializer(TypeSerializer[Named]):
    def serialize(self, element: Named, stream: BytesIO) -> None:
        stream.write(element.name.encode())

    def deserialize(self, stream: BytesIO) -> Named:
        return Named(stream.read().decode())


class ByName(WindowAssigner[Any, Named]):
    """Numbers below 10 to ``small``, even ones to ``even``, some to none."""

    seen = ValueStateDescriptor("seen")

    def assign_windows(
        self, element: Any, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> Collection[Named]:
        assert context.get_current_processing_time() == 55
        seen = context.get_runtime_context().get_state(self.seen)
        seen.update((seen.value() or 0) + 1)
        names = {"small": element < 10, "even": element % 2 == 0, "third": seen.value() == 3}
        return [Named(name) for name, holds in names.items() if holds]

    def get_default_trigger(self, env: Any) -> Trigger[Any, Named]:
        return EventTimeTrigger()  # type: ignore[return-value]

    def get_window_serializer(self) -> TypeSerializer[Named]:
        return NamedSerializer()

    def is_event_time(self) -> bool:
        return True


class NameAndSum(WindowFunction[Any, Any, Any, Named]):
    def apply(self, key: Any, window: Named, inputs: Iterable[Any]) -> Any:
        yield f"{window.name}: {sum(inputs)}"


def test_windows_of_a_users() -> None:
    windows = WindowHarness(ByName(), NameAndSum(), late_tag=LATE)
    windows.set_processing_time(55)
    windows.process_elements([(4, 1), (11, 2), (12, 3), (5, 200)])
    windows.restart()
    windows.process_watermark(99)
    windows.process_element(13, 3)  # in no window, but late
    windows.process_watermark(100)
    assert windows.take_output() == [("small: 9", 100), ("even: 16", 100), ("third: 12", 100)]
    assert windows.take_side_output(LATE) == [(13, 3)]
    windows.process_elements([(4, 1), (15, 101)])  # the second one is in no window and not late
    assert windows.take_side_output(LATE) == [(4, 1)] and windows.late_dropped == 0


class Shrinking(MergingWindowAssigner[Any, TimeWindow]):
    """Merges all windows into one that ends earlier; wrongly."""

    def __init__(self, event_time: bool) -> None:
        self.event_time = event_time

    def assign_windows(
        self, element: Any, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> list[TimeWindow]:
        return [TimeWindow(element, 100)]

    def merge_windows(self, windows: Iterable[TimeWindow], callback: MergeCallback[TimeWindow]) -> None:
        known = list(windows)
        if len(known) > 1:
            callback.merge(known, TimeWindow(0, 10))

    def get_default_trigger(self, env: Any) -> Trigger[Any, TimeWindow]:
        return EventTimeTrigger()

    def get_window_serializer(self) -> TypeSerializer[TimeWindow]:
        return TimeWindowSerializer()

    def is_event_time(self) -> bool:
        return self.event_time


@pytest.mark.parametrize("event_time", [True, False])
def test_windows_do_not_end_in_the_past_by_merging(event_time: bool) -> None:
    windows = WindowHarness(Shrinking(event_time), combine=Sum())
    windows.process_watermark(50)
    windows.set_processing_time(50)
    windows.process_element(1, 60)
    said = r"Shrinking merged windows into TimeWindow\(start=0, end=10\), which is over"
    with pytest.raises(UserCodeError, match=said):
        windows.process_element(2, 60)
