"""When windows fire."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from yarnflow.errors import InvalidStateUse, UserCodeError
from yarnflow.operators.functions.windows import WindowFunction
from yarnflow.operators.state.descriptors import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    ValueStateDescriptor,
)
from yarnflow.operators.windows.count_windows import GlobalWindows
from yarnflow.operators.windows.session_windows import EventTimeSessionWindows, ProcessingTimeSessionWindows
from yarnflow.operators.windows.time_windows import TumblingEventTimeWindows, TumblingProcessingTimeWindows
from yarnflow.operators.windows.trigger import Trigger, TriggerResult
from yarnflow.operators.windows.triggers import (
    ContinuousEventTimeTrigger,
    ContinuousProcessingTimeTrigger,
    CountTrigger,
    EventTimeTrigger,
    NeverTrigger,
    ProcessingTimeTrigger,
    PurgingTrigger,
)
from yarnflow.operators.windows.window import TimeWindow
from yarnflow.testing.windows import WindowHarness

TEN_MS = TumblingEventTimeWindows[Any](10, 0)


class Values(WindowFunction[Any, Any, Any, Any]):
    def apply(self, key: Any, window: Any, inputs: Any) -> Any:
        return [list(inputs)]


def harness(assigner: Any, trigger: Any = None, lateness: int = 0) -> WindowHarness:
    return WindowHarness(assigner, Values(), trigger=trigger, allowed_lateness_ms=lateness)


def ms(number: int) -> timedelta:
    return timedelta(milliseconds=number)


@pytest.mark.parametrize("trigger", [None, EventTimeTrigger.create()])
def test_by_the_watermark(trigger: Any) -> None:
    windows = harness(TEN_MS, trigger)
    windows.process_elements([("a", 1), ("b", 9), ("c", 10)])
    windows.process_watermark(8)
    assert windows.take_output() == []
    windows.process_watermark(9)
    assert windows.take_output() == [(["a", "b"], 9)]
    windows.process_watermark(30)
    assert windows.take_output() == [(["c"], 19)]


@pytest.mark.parametrize("trigger", [None, ProcessingTimeTrigger.create()])
def test_by_the_clock(trigger: Any) -> None:
    windows = harness(TumblingProcessingTimeWindows(10, 0), trigger)
    windows.set_processing_time(3)
    windows.process_element("a")
    windows.set_processing_time(8)
    windows.process_element("b", timestamp=1_000)
    assert windows.processing_time_timers() == [9]
    windows.set_processing_time(9)
    assert windows.take_output() == [(["a", "b"], 9)]
    assert windows.state_entries() == 0


def test_the_clock_on_windows_of_event_time() -> None:
    windows = harness(TEN_MS, ProcessingTimeTrigger.create())
    windows.process_element("a", 5)
    windows.set_processing_time(9)
    assert windows.take_output() == [(["a"], 9)]
    windows.process_watermark(9)
    assert windows.take_output() == [] and windows.state_entries() == 0


def test_again_and_again_by_the_watermark() -> None:
    windows = harness(TumblingEventTimeWindows(100, 0), ContinuousEventTimeTrigger.of(ms(20)))
    windows.process_elements([("a", 5), ("b", 33)])
    windows.process_watermark(20)
    assert windows.take_output() == [(["a", "b"], 99)]
    windows.process_watermark(59)
    assert windows.take_values() == [["a", "b"]]  # at 40
    windows.process_element("c", 70)
    windows.process_watermark(60)
    assert windows.take_values() == [["a", "b", "c"]]
    windows.process_watermark(99)
    assert windows.take_values() == [["a", "b", "c"]] * 2  # at 80 and at the end
    assert windows.state_entries() == 0 and windows.event_time_timers() == []


def test_again_and_again_after_the_end_with_each_late_element() -> None:
    windows = harness(TEN_MS, ContinuousEventTimeTrigger.of(ms(3)), lateness=20)
    windows.process_watermark(15)
    windows.process_elements([("a", 5), ("b", 6)])
    assert windows.take_values() == [["a"], ["a", "b"]]


def test_again_and_again_by_the_clock() -> None:
    windows = harness(GlobalWindows.create(), ContinuousProcessingTimeTrigger.of(ms(10)))
    windows.set_processing_time(14)
    windows.process_element("a", 1_000)
    assert windows.processing_time_timers() == [20]
    windows.set_processing_time(20)
    assert windows.take_output() == [(["a"], 20)]  # no time ends the window, so the timer's is taken
    windows.set_processing_time(30)
    assert windows.take_values() == [["a"]]


def test_by_count() -> None:
    windows = harness(GlobalWindows.create(), CountTrigger.of(2))
    windows.process_elements([("a", 5), ("b", 6), ("c", 7)])
    assert windows.take_output() == [(["a", "b"], 6)]
    windows.restart()
    windows.process_element("d", 8)
    assert windows.take_values() == [["a", "b", "c", "d"]]


def test_by_count_forgetting_what_was_seen() -> None:
    windows = harness(GlobalWindows.create(), PurgingTrigger.of(CountTrigger.of(2)))
    windows.process_elements([(value, None) for value in "abcde"])
    assert windows.take_output() == [(["a", "b"], None), (["c", "d"], None)]
    assert windows.state_entries() == 2  # "e" and its number


def test_purging_whatever_fires() -> None:
    windows = harness(TEN_MS, PurgingTrigger.of(ContinuousEventTimeTrigger.of(ms(5))))
    windows.process_element("a", 1)
    windows.process_watermark(5)
    windows.process_element("b", 6)
    windows.process_watermark(9)
    assert windows.take_values() == [["a"], ["b"]]
    assert windows.state_entries() == 0

    ten_ms_by_clock = TumblingProcessingTimeWindows[Any](10, 0)
    by_clock = harness(ten_ms_by_clock, PurgingTrigger.of(ProcessingTimeTrigger.create()))
    by_clock.process_element("a")
    by_clock.set_processing_time(9)
    assert by_clock.take_values() == [["a"]] and by_clock.state_entries() == 0


def test_never() -> None:
    windows = harness(GlobalWindows.create())
    windows.process_element("a", 5)
    windows.process_watermark(2**63 - 1)
    windows.set_processing_time(10**15)
    assert windows.take_output() == []
    assert type(GlobalWindows.create().get_default_trigger(None)) is NeverTrigger


@pytest.mark.parametrize(
    "trigger", [EventTimeTrigger(), ContinuousEventTimeTrigger(5), PurgingTrigger(CountTrigger(9))]
)
def test_merged_sessions_fire_once_at_their_common_end(trigger: Any) -> None:
    windows = harness(EventTimeSessionWindows(10), trigger)
    windows.process_elements([("a", 0), ("c", 18), ("b", 9)])
    windows.process_watermark(100)
    fired = windows.take_values()
    if isinstance(trigger, PurgingTrigger):
        assert fired == []
    else:
        assert fired[-1] == ["a", "c", "b"]
    assert windows.event_time_timers() == [] and windows.state_entries() == 0


def test_counts_of_merged_sessions_are_added() -> None:
    windows = harness(EventTimeSessionWindows(10), CountTrigger(3))
    windows.process_elements([("a", 0), ("c", 18)])
    assert windows.take_values() == []
    windows.process_element("b", 9)
    assert windows.take_values() == [["a", "c", "b"]]


@pytest.mark.parametrize("trigger", [None, ProcessingTimeTrigger(), ContinuousProcessingTimeTrigger(6)])
def test_merged_sessions_of_the_clock(trigger: Any) -> None:
    windows = harness(ProcessingTimeSessionWindows(10), trigger)
    for now_ms, value in (0, "a"), (5, "b"):
        windows.set_processing_time(now_ms)
        windows.process_element(value)
    assert windows.take_values() == []
    windows.set_processing_time(14)
    assert windows.take_values()[-1] == ["a", "b"]
    assert windows.processing_time_timers() == [] and windows.state_entries() == 0


class Own(Trigger[Any, TimeWindow]):
    """Base of the triggers below: does nothing."""

    def on_element(self, element: Any, timestamp: int, window: TimeWindow, ctx: Any) -> Any:
        return TriggerResult.CONTINUE

    def on_processing_time(self, time: int, window: TimeWindow, ctx: Any) -> Any:
        return TriggerResult.CONTINUE

    def on_event_time(self, time: int, window: TimeWindow, ctx: Any) -> Any:
        return TriggerResult.CONTINUE

    def on_merge(self, window: TimeWindow, ctx: Any) -> None:
        return None

    def clear(self, window: TimeWindow, ctx: Any) -> None:
        return None


class Remembers(Own):
    """Fires at the third element of a window, with state of every kind and timers of both times."""

    value = ValueStateDescriptor("value")
    elements = ListStateDescriptor("elements")
    by_name = MapStateDescriptor("by-name")
    largest = ReducingStateDescriptor("largest", max)

    def on_element(self, element: Any, timestamp: int, window: TimeWindow, ctx: Any) -> Any:
        ctx.get_metric_group().counter("elements").inc()
        count = ctx.get_partitioned_state(self.value)
        count.update((count.value() or 0) + 1)
        ctx.get_partitioned_state(self.elements).add(element)
        ctx.get_partitioned_state(self.by_name).put(element, timestamp)
        ctx.get_partitioned_state(self.largest).add(timestamp)
        ctx.register_event_time_timer(window.start + 2)
        ctx.register_processing_time_timer(ctx.get_current_processing_time() + 5)
        if count.value() < 3:
            return TriggerResult.CONTINUE
        assert ctx.get_partitioned_state(self.elements).get() == ["a", "b", "c"]
        assert dict(ctx.get_partitioned_state(self.by_name).items()) == {"a": 4, "b": 8, "c": 6}
        assert ctx.get_partitioned_state(self.largest).get() == 8
        ctx.delete_event_time_timer(window.start + 2)
        ctx.delete_processing_time_timer(ctx.get_current_processing_time() + 5)
        return TriggerResult.FIRE

    def on_event_time(self, time: int, window: TimeWindow, ctx: Trigger.TriggerContext) -> Any:
        assert ctx.get_current_watermark() >= time
        return TriggerResult.CONTINUE if time == window.max_timestamp() else TriggerResult.FIRE

    def on_processing_time(self, time: int, window: TimeWindow, ctx: Trigger.TriggerContext) -> Any:
        return TriggerResult.PURGE

    def clear(self, window: TimeWindow, ctx: Trigger.TriggerContext) -> None:
        for descriptor in self.value, self.elements, self.by_name, self.largest:
            ctx.get_partitioned_state(descriptor).clear()


def test_a_trigger_of_a_users_has_state_and_timers_per_window() -> None:
    windows = harness(TEN_MS, Remembers())
    windows.process_elements([("a", 4), ("x", 14), ("b", 8)])
    windows.restart()
    windows.process_watermark(2)
    assert windows.take_values() == [["a", "b"]]
    windows.process_element("c", 6)
    assert windows.take_values() == [["a", "b", "c"]]
    assert windows.event_time_timers() == [9, 12, 19]
    windows.set_processing_time(5)  # the timer of the other window was the same trigger's, but not deleted
    windows.process_watermark(30)
    assert windows.take_values() == []
    assert windows.state_entries() == 0


class Merges(Own):
    """Merges the state it is given on each merge, and fires with the watermark."""

    def __init__(self, descriptor: Any) -> None:
        self.descriptor = descriptor

    def can_merge(self) -> bool:
        return True

    def on_element(self, element: Any, timestamp: int, window: TimeWindow, ctx: Any) -> Any:
        state = ctx.get_partitioned_state(self.descriptor)
        if not isinstance(self.descriptor, ValueStateDescriptor):
            state.add(timestamp)
            if state.get() == self.expected():
                return TriggerResult.FIRE
        return TriggerResult.CONTINUE

    def expected(self) -> Any:
        return 29 if isinstance(self.descriptor, AggregatingStateDescriptor) else [0, 20, 9]

    def on_merge(self, window: TimeWindow, ctx: Trigger.OnMergeContext) -> None:
        ctx.merge_partitioned_state(self.descriptor)


class Sum:
    def create_accumulator(self) -> int:
        return 0

    def add(self, value: int, accumulator: int) -> int:
        return accumulator + value

    def get_result(self, accumulator: int) -> int:
        return accumulator

    def merge(self, acc_a: int, acc_b: int) -> int:
        return acc_a + acc_b


@pytest.mark.parametrize(
    "descriptor", [ListStateDescriptor("elements"), AggregatingStateDescriptor("sum", Sum())]
)
def test_state_of_triggers_is_merged(descriptor: Any) -> None:
    windows = harness(EventTimeSessionWindows(11), Merges(descriptor))
    windows.process_elements([("a", 0), ("b", 20), ("c", 9)])
    assert windows.take_values() == [["a", "b", "c"]]


def test_state_of_one_value_cannot_be_merged() -> None:
    windows = harness(EventTimeSessionWindows(11), Merges(ValueStateDescriptor("last")))
    windows.process_element("a", 0)
    with pytest.raises(InvalidStateUse, match="Windows': state 'last' of a trigger cannot be merged; use"):
        windows.process_element("b", 5)


def test_a_trigger_has_to_say_what_to_do() -> None:
    class Silent(Own):
        def on_element(self, element: Any, timestamp: int, window: TimeWindow, ctx: Any) -> Any:
            return None

    with pytest.raises(UserCodeError, match="Silent returned None for window .*return a TriggerResult"):
        harness(TEN_MS, Silent()).process_element("a", 1)


def test_state_of_triggers_needs_a_descriptor() -> None:
    class Asks(Own):
        def on_element(self, element: Any, timestamp: int, window: TimeWindow, ctx: Any) -> Any:
            return ctx.get_partitioned_state("count")

    with pytest.raises(InvalidStateUse, match="a trigger asked for state with str; use a state descriptor"):
        harness(TEN_MS, Asks()).process_element("a", 1)


def test_results_of_triggers() -> None:
    assert [result for result in TriggerResult if result.is_fire()] == [
        TriggerResult.FIRE_AND_PURGE,
        TriggerResult.FIRE,
    ]
    assert [result for result in TriggerResult if result.is_purge()] == [
        TriggerResult.FIRE_AND_PURGE,
        TriggerResult.PURGE,
    ]
