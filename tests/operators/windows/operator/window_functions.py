"""Functions of windows, and windows that operators know and that they do not."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from yarnflow.operators.functions.elements import AggregateFunction, ReduceFunction
from yarnflow.operators.functions.output_tag import OutputTag
from yarnflow.operators.functions.runtime_context import RuntimeContext
from yarnflow.operators.functions.windows import (
    AllWindowFunction,
    ProcessAllWindowFunction,
    ProcessWindowFunction,
    WindowFunction,
)
from yarnflow.operators.state.descriptors import ValueStateDescriptor
from yarnflow.operators.windows.session_windows import EventTimeSessionWindows
from yarnflow.operators.windows.time_windows import TumblingEventTimeWindows
from yarnflow.operators.windows.trigger import Trigger
from yarnflow.operators.windows.triggers import CountTrigger, EventTimeTrigger, PurgingTrigger
from yarnflow.testing.windows import WindowHarness

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


class Always(EventTimeTrigger[Any]):
    """Fires with each element."""

    def on_element(self, element: Any, timestamp: int, window: Any, ctx: Trigger.TriggerContext) -> Any:
        super().on_element(element, timestamp, window, ctx)
        return PurgingTrigger(CountTrigger(1)).nested_trigger.on_element(element, timestamp, window, ctx)
