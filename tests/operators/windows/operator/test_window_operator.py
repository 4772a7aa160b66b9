"""What windows keep, what they evaluate to, and what happens to elements that come late."""

from __future__ import annotations

import pickle
from collections.abc import Collection, Iterable
from io import BytesIO
from typing import Any

import pytest

from yarnflow.errors import GraphError, InvalidStateUse, InvariantViolated, TimestampsMissing, UserCodeError
from yarnflow.operators.elements import MAX_WATERMARK_MS, Chunk
from yarnflow.operators.functions.elements import AggregateFunction, ReduceFunction
from yarnflow.operators.functions.output_tag import OutputTag
from yarnflow.operators.functions.runtime_context import RuntimeContext, TaskInfo, TaskRuntimeContext
from yarnflow.operators.functions.windows import (
    AllWindowFunction,
    ProcessAllWindowFunction,
    ProcessWindowFunction,
    WindowFunction,
)
from yarnflow.operators.process.operator import OperatorContext
from yarnflow.operators.state.descriptors import ValueStateDescriptor
from yarnflow.operators.windows.assigner import (
    MergingWindowAssigner,
    SessionWindowTimeGapExtractor,
    WindowAssigner,
)
from yarnflow.operators.windows.count_windows import (
    CountSlidingWindowAssigner,
    CountTumblingWindowAssigner,
    GlobalWindows,
)
from yarnflow.operators.windows.operator.aligned import AlignedWindowOperator
from yarnflow.operators.windows.operator.definition import WindowDefinition
from yarnflow.operators.windows.operator.general import WindowOperator
from yarnflow.operators.windows.operator.sessions import SessionOperator
from yarnflow.operators.windows.serializers import TimeWindowSerializer, TypeSerializer
from yarnflow.operators.windows.session_windows import (
    DynamicEventTimeSessionWindows,
    DynamicProcessingTimeSessionWindows,
    EventTimeSessionWindows,
    ProcessingTimeSessionWindows,
)
from yarnflow.operators.windows.time_windows import (
    SlidingEventTimeWindows,
    SlidingProcessingTimeWindows,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
)
from yarnflow.operators.windows.trigger import Trigger
from yarnflow.operators.windows.triggers import (
    ContinuousEventTimeTrigger,
    CountTrigger,
    EventTimeTrigger,
    NeverTrigger,
    PurgingTrigger,
)
from yarnflow.operators.windows.window import MergeCallback, TimeWindow, Window
from yarnflow.testing.windows import CollectedOutput, WindowHarness

LATE, LARGE = OutputTag("late"), OutputTag("large")
TEN_MS = TumblingEventTimeWindows[Any](10, 0)


class GeneralTumbling(TumblingEventTimeWindows[Any]):
    """Windows the operator does not know to be what they are."""


class GeneralSessions(EventTimeSessionWindows[Any]):
    """The same of sessions."""


both_ways = pytest.mark.parametrize("assigner", [TEN_MS, GeneralTumbling(10, 0)])
sessions = pytest.mark.parametrize("assigner", [EventTimeSessionWindows(10), GeneralSessions(10)])


class Mean(AggregateFunction):
    """None of a window whose sum is 0."""

    def create_accumulator(self) -> Any:
        return 0, 0

    def add(self, value: Any, accumulator: Any) -> Any:
        return accumulator[0] + value, accumulator[1] + 1

    def get_result(self, accumulator: Any) -> Any:
        return accumulator[0] / accumulator[1] if accumulator[0] else None

    def merge(self, acc_a: Any, acc_b: Any) -> Any:
        return acc_a[0] + acc_b[0], acc_a[1] + acc_b[1]


class Sum(ReduceFunction):
    def reduce(self, value1: Any, value2: Any) -> Any:
        return value1 + value2


class Listed(WindowFunction[Any, Any, Any, Any]):
    def apply(self, key: Any, window: Any, inputs: Iterable[Any]) -> Any:
        return [(key, window, list(inputs))]


class AllListed(AllWindowFunction[Any, Any, Any]):
    def apply(self, window: Any, inputs: Iterable[Any]) -> Any:
        yield (window, list(inputs))


class Processed(ProcessWindowFunction[Any, Any, Any, Any]):
    """Uses all its context has; cleans up after itself."""

    firings = ValueStateDescriptor("firings")
    windows = ValueStateDescriptor("windows")

    def open(self, runtime_context: RuntimeContext) -> None:
        self.opened = runtime_context.get_task_name()
        self.cleared: list[Any] = []

    def close(self) -> None:
        self.opened = ""

    def process(self, key: Any, context: Any, elements: Iterable[Any]) -> Any:
        firings = context.window_state().get_state(self.firings)
        firings.update((firings.value() or 0) + 1)
        windows = context.global_state().get_state(self.windows)
        windows.update((windows.value() or 0) + (firings.value() == 1))
        yield (key, context.window().start, firings.value(), windows.value(), context.current_watermark())
        yield context.current_processing_time()

    def clear(self, context: Any) -> None:
        self.cleared.append(context.window())
        context.window_state().get_state(self.firings).clear()


class AllProcessed(ProcessAllWindowFunction[Any, Any, Any]):
    def process(self, context: Any, elements: Iterable[Any]) -> Any:
        return [(context.window(), sorted(elements)), (LARGE, max(elements))]


def windows_of(assigner: Any, *args: Any, **kwargs: Any) -> WindowHarness:
    """Windows whose keys are whether a value is odd."""
    kwargs["key_selector"] = lambda value: value % 2
    return WindowHarness(assigner, *args, **kwargs)


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


class Always(EventTimeTrigger[Any]):
    """Fires with each element."""

    def on_element(self, element: Any, timestamp: int, window: Any, ctx: Trigger.TriggerContext) -> Any:
        super().on_element(element, timestamp, window, ctx)
        return PurgingTrigger(CountTrigger(1)).nested_trigger.on_element(element, timestamp, window, ctx)


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


@pytest.mark.parametrize(
    "assigner, trigger, operator",
    [
        (TEN_MS, None, AlignedWindowOperator),
        (TEN_MS, EventTimeTrigger(), AlignedWindowOperator),
        (TEN_MS, PurgingTrigger(EventTimeTrigger()), WindowOperator),
        (GeneralTumbling(10, 0), None, WindowOperator),
        (SlidingProcessingTimeWindows(10, 5, 0), None, AlignedWindowOperator),
        (TumblingProcessingTimeWindows(10, 0), EventTimeTrigger(), WindowOperator),
        (EventTimeSessionWindows(10), None, SessionOperator),
        (EventTimeSessionWindows(10), ContinuousEventTimeTrigger(5), WindowOperator),
        (CountTumblingWindowAssigner(10), None, WindowOperator),
    ],
)
def test_usual_windows_are_handled_per_chunk(assigner: Any, trigger: Any, operator: Any) -> None:
    definition = WindowDefinition(assigner, combine=Sum(), trigger=trigger)
    assert type(definition.build()) is operator
    assert type(pickle.loads(pickle.dumps(definition)).build()) is operator


def test_definitions_describe_themselves_as_pyflinks() -> None:
    definition = WindowDefinition(TEN_MS, Listed(), Sum())
    assert definition.name == "TumblingEventTimeWindows"
    assert definition.description() == (
        "Window(TumblingEventTimeWindows(10, 0), EventTimeTrigger, Sum, Listed)"
    )
    assert WindowDefinition(TEN_MS, Listed(), trigger=CountTrigger(2)).description("AllWindow") == (
        "AllWindow(TumblingEventTimeWindows(10, 0), CountTrigger, Listed)"
    )


def test_windows_that_cannot_be_are_refused() -> None:
    with pytest.raises(GraphError, match="EventTimeSessionWindows merges windows, and NeverTrigger does not"):
        WindowDefinition(EventTimeSessionWindows(10), Listed(), trigger=NeverTrigger())
    with pytest.raises(GraphError, match="no function for its windows; call reduce"):
        WindowDefinition(TEN_MS)
    with pytest.raises(GraphError, match="TumblingEventTimeWindows: int combines no elements; give a Reduce"):
        WindowDefinition(TEN_MS, combine=5)  # type: ignore[arg-type]
    with pytest.raises(GraphError, match="allowed lateness of -1 ms is below 0"):
        WindowDefinition(TEN_MS, Listed(), allowed_lateness_ms=-1)
    with pytest.raises(GraphError, match="function is no window function; subclass WindowFunction"):
        WindowDefinition(TEN_MS, lambda key, window, inputs: [])  # type: ignore[arg-type]
    with pytest.raises(GraphError, match="EventTimeSessionWindows: the gap of 0 ms is not above 0"):
        EventTimeSessionWindows(0)
