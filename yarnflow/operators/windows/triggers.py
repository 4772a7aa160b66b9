"""The triggers there are: by watermark, by clock, by count, again and again, never."""

from __future__ import annotations

import datetime
from abc import abstractmethod
from typing import Any, TypeVar

from yarnflow.operators.state.descriptors import ReducingStateDescriptor
from yarnflow.operators.state.interfaces import ReducingState
from yarnflow.operators.windows.lengths import Time, length_ms
from yarnflow.operators.windows.trigger import Trigger, TriggerResult
from yarnflow.operators.windows.window import CountWindow, GlobalWindow, TimeWindow, Window

T = TypeVar("T")

_CONTINUE, _FIRE = TriggerResult.CONTINUE, TriggerResult.FIRE


class EventTimeTrigger(Trigger[T, TimeWindow]):
    """Fires when the watermark reaches the window's end, then at every late element.

    Flink: of the same name.
    """

    @staticmethod
    def create() -> EventTimeTrigger[Any]:
        """The trigger."""
        return EventTimeTrigger()

    def on_element(
        self, element: T, timestamp: int, window: TimeWindow, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        if window.max_timestamp() <= ctx.get_current_watermark():
            return _FIRE
        ctx.register_event_time_timer(window.max_timestamp())
        return _CONTINUE

    def on_processing_time(self, time: int, window: TimeWindow, ctx: Trigger.TriggerContext) -> TriggerResult:
        return _CONTINUE

    def on_event_time(self, time: int, window: TimeWindow, ctx: Trigger.TriggerContext) -> TriggerResult:
        return _FIRE if time == window.max_timestamp() else _CONTINUE

    def can_merge(self) -> bool:
        return True

    def on_merge(self, window: TimeWindow, ctx: Trigger.OnMergeContext) -> None:
        if window.max_timestamp() > ctx.get_current_watermark():
            ctx.register_event_time_timer(window.max_timestamp())

    def clear(self, window: TimeWindow, ctx: Trigger.TriggerContext) -> None:
        ctx.delete_event_time_timer(window.max_timestamp())


class ProcessingTimeTrigger(Trigger[T, TimeWindow]):
    """Fires when the clock reaches the window's end.  Flink: of the same name."""

    @staticmethod
    def create() -> ProcessingTimeTrigger[Any]:
        """The trigger."""
        return ProcessingTimeTrigger()

    def on_element(
        self, element: T, timestamp: int, window: TimeWindow, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        ctx.register_processing_time_timer(window.max_timestamp())
        return _CONTINUE

    def on_processing_time(self, time: int, window: TimeWindow, ctx: Trigger.TriggerContext) -> TriggerResult:
        return _FIRE

    def on_event_time(self, time: int, window: TimeWindow, ctx: Trigger.TriggerContext) -> TriggerResult:
        return _CONTINUE

    def can_merge(self) -> bool:
        return True

    def on_merge(self, window: TimeWindow, ctx: Trigger.OnMergeContext) -> None:
        if window.max_timestamp() > ctx.get_current_processing_time():
            ctx.register_processing_time_timer(window.max_timestamp())

    def clear(self, window: TimeWindow, ctx: Trigger.TriggerContext) -> None:
        ctx.delete_processing_time_timer(window.max_timestamp())


class _Continuous(Trigger[T, TimeWindow]):
    """What both continuous triggers do: keep when they fire next, and a timer for it.

    Parameters
    ----------
    interval : int
        Milliseconds.
    """

    def __init__(self, interval: int) -> None:
        self.interval = interval
        self.state_desc = _next_fire_time()

    @abstractmethod
    def _register(self, ctx: Trigger.TriggerContext, time_ms: int) -> None:
        """Register a timer of this trigger's kind of time."""

    @abstractmethod
    def _delete(self, ctx: Trigger.TriggerContext, time_ms: int) -> None:
        """Delete one."""

    def _fires(self, time: int, window: TimeWindow, ctx: Trigger.TriggerContext) -> TriggerResult:
        """A timer's time has come; it may be one of another trigger or of the operator."""
        next_fire_time = ctx.get_partitioned_state(self.state_desc)
        if next_fire_time.get() != time:
            return _CONTINUE
        next_fire_time.clear()
        self.register_next_fire_timestamp(time, window, ctx, next_fire_time)
        return _FIRE

    def register_next_fire_timestamp(
        self,
        time: int,
        window: TimeWindow,
        ctx: Trigger.TriggerContext,
        fire_timestamp_state: ReducingState[int],
    ) -> None:
        """Fire an interval after ``time`` (ms), or at the end of the window."""
        next_fire_ms = min(time + self.interval, window.max_timestamp())
        fire_timestamp_state.add(next_fire_ms)
        self._register(ctx, next_fire_ms)

    def can_merge(self) -> bool:
        return True

    def on_merge(self, window: TimeWindow, ctx: Trigger.OnMergeContext) -> None:
        ctx.merge_partitioned_state(self.state_desc)
        next_fire_ms = ctx.get_partitioned_state(self.state_desc).get()
        if next_fire_ms is not None:
            self._register(ctx, next_fire_ms)

    def clear(self, window: TimeWindow, ctx: Trigger.TriggerContext) -> None:
        next_fire_time = ctx.get_partitioned_state(self.state_desc)
        next_fire_ms = next_fire_time.get()
        if next_fire_ms is not None:
            self._delete(ctx, next_fire_ms)
            next_fire_time.clear()


class ContinuousEventTimeTrigger(_Continuous[T]):
    """Fires whenever the watermark passes a multiple of an interval, and at the window's end.

    Flink: of the same name.

    Parameters
    ----------
    interval : int
        Milliseconds.
    """

    @staticmethod
    def of(interval: Time | datetime.timedelta) -> ContinuousEventTimeTrigger[Any]:
        """Fires once every ``interval`` of event time in which elements came."""
        return ContinuousEventTimeTrigger(length_ms(interval, "interval"))

    def on_element(
        self, element: T, timestamp: int, window: TimeWindow, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        if window.max_timestamp() <= ctx.get_current_watermark():
            return _FIRE
        ctx.register_event_time_timer(window.max_timestamp())
        next_fire_time = ctx.get_partitioned_state(self.state_desc)
        if next_fire_time.get() is None:
            start_ms = timestamp - timestamp % self.interval
            self.register_next_fire_timestamp(start_ms, window, ctx, next_fire_time)
        return _CONTINUE

    def on_processing_time(self, time: int, window: TimeWindow, ctx: Trigger.TriggerContext) -> TriggerResult:
        return _CONTINUE

    def on_event_time(self, time: int, window: TimeWindow, ctx: Trigger.TriggerContext) -> TriggerResult:
        if time == window.max_timestamp():
            return _FIRE
        return self._fires(time, window, ctx)

    def _register(self, ctx: Trigger.TriggerContext, time_ms: int) -> None:
        ctx.register_event_time_timer(time_ms)

    def _delete(self, ctx: Trigger.TriggerContext, time_ms: int) -> None:
        ctx.delete_event_time_timer(time_ms)


class ContinuousProcessingTimeTrigger(_Continuous[T]):
    """Fires whenever the clock passes a multiple of an interval.  Flink: of the same name.

    Parameters
    ----------
    interval : int
        Milliseconds.
    """

    @staticmethod
    def of(interval: Time | datetime.timedelta) -> ContinuousProcessingTimeTrigger[Any]:
        """Fires once every ``interval``, from the first element on."""
        return ContinuousProcessingTimeTrigger(length_ms(interval, "interval"))

    def on_element(
        self, element: T, timestamp: int, window: TimeWindow, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        next_fire_time = ctx.get_partitioned_state(self.state_desc)
        if next_fire_time.get() is None:
            now_ms = ctx.get_current_processing_time()
            self.register_next_fire_timestamp(now_ms - now_ms % self.interval, window, ctx, next_fire_time)
        return _CONTINUE

    def on_processing_time(self, time: int, window: TimeWindow, ctx: Trigger.TriggerContext) -> TriggerResult:
        return self._fires(time, window, ctx)

    def on_event_time(self, time: int, window: TimeWindow, ctx: Trigger.TriggerContext) -> TriggerResult:
        return _CONTINUE

    def _register(self, ctx: Trigger.TriggerContext, time_ms: int) -> None:
        ctx.register_processing_time_timer(time_ms)

    def _delete(self, ctx: Trigger.TriggerContext, time_ms: int) -> None:
        ctx.delete_processing_time_timer(time_ms)


class CountTrigger(Trigger[T, CountWindow]):
    """Fires whenever so many elements have come into the window.  Flink: of the same name.

    Parameters
    ----------
    window_size : int
        Number of elements.
    """

    def __init__(self, window_size: int) -> None:
        self.window_size = window_size
        self._count = ReducingStateDescriptor("count", _sum, None)

    @staticmethod
    def of(window_size: int) -> CountTrigger[Any]:
        """Fires at every ``window_size``-th element."""
        return CountTrigger(window_size)

    def on_element(
        self, element: T, timestamp: int, window: CountWindow, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        count = ctx.get_partitioned_state(self._count)
        count.add(1)
        if count.get() < self.window_size:
            return _CONTINUE
        count.clear()
        return _FIRE

    def on_processing_time(
        self, time: int, window: CountWindow, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        return _CONTINUE

    def on_event_time(self, time: int, window: CountWindow, ctx: Trigger.TriggerContext) -> TriggerResult:
        return _CONTINUE

    def can_merge(self) -> bool:
        return True

    def on_merge(self, window: CountWindow, ctx: Trigger.OnMergeContext) -> None:
        ctx.merge_partitioned_state(self._count)

    def clear(self, window: CountWindow, ctx: Trigger.TriggerContext) -> None:
        ctx.get_partitioned_state(self._count).clear()


class PurgingTrigger(Trigger[T, Window]):
    """Forgets a window's elements whenever another trigger fires.  Flink: of the same name.

    Parameters
    ----------
    nested_trigger : Trigger
        The one that says when to fire.
    """

    def __init__(self, nested_trigger: Trigger[T, Any]) -> None:
        self.nested_trigger = nested_trigger

    @staticmethod
    def of(nested_trigger: Trigger[T, Any]) -> PurgingTrigger[T]:
        """Fires and purges where ``nested_trigger`` fires."""
        return PurgingTrigger(nested_trigger)

    def on_element(
        self, element: T, timestamp: int, window: Window, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        return _purging(self.nested_trigger.on_element(element, timestamp, window, ctx))

    def on_processing_time(self, time: int, window: Window, ctx: Trigger.TriggerContext) -> TriggerResult:
        return _purging(self.nested_trigger.on_processing_time(time, window, ctx))

    def on_event_time(self, time: int, window: Window, ctx: Trigger.TriggerContext) -> TriggerResult:
        return _purging(self.nested_trigger.on_event_time(time, window, ctx))

    def can_merge(self) -> bool:
        return self.nested_trigger.can_merge()

    def on_merge(self, window: Window, ctx: Trigger.OnMergeContext) -> None:
        self.nested_trigger.on_merge(window, ctx)

    def clear(self, window: Window, ctx: Trigger.TriggerContext) -> None:
        self.nested_trigger.clear(window, ctx)


class NeverTrigger(Trigger[T, GlobalWindow]):
    """Never fires: the default of ``GlobalWindows``.  Flink: of the same name."""

    def on_element(
        self, element: T, timestamp: int, window: GlobalWindow, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        return _CONTINUE

    def on_processing_time(
        self, time: int, window: GlobalWindow, ctx: Trigger.TriggerContext
    ) -> TriggerResult:
        return _CONTINUE

    def on_event_time(self, time: int, window: GlobalWindow, ctx: Trigger.TriggerContext) -> TriggerResult:
        return _CONTINUE

    def on_merge(self, window: GlobalWindow, ctx: Trigger.OnMergeContext) -> None:
        return None

    def clear(self, window: GlobalWindow, ctx: Trigger.TriggerContext) -> None:
        return None


def _purging(result: TriggerResult) -> TriggerResult:
    return TriggerResult.FIRE_AND_PURGE if result.is_fire() else result


def _sum(left: int, right: int) -> int:
    return left + right


def _next_fire_time() -> ReducingStateDescriptor:
    """When a continuous trigger fires next: the earliest of merged windows."""
    return ReducingStateDescriptor("fire-time", min, None)
