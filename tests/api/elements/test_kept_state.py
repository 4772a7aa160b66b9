"""Which functions keep state for ever, told by their code."""

from __future__ import annotations

from typing import Any

import pytest

from yarnflow.api.building.kept_state import kept_by_function, kept_by_windows
from yarnflow.api.common import Time, Types
from yarnflow.api.datastream.functions import KeyedProcessFunction, RuntimeContext
from yarnflow.api.datastream.state import StateTtlConfig, ValueStateDescriptor
from yarnflow.api.datastream.window import (
    CountTrigger,
    GlobalWindows,
    PurgingTrigger,
    TumblingEventTimeWindows,
)
from yarnflow.operators.windows.operator.definition import WindowDefinition

EXPIRING = ValueStateDescriptor("total", Types.LONG())
EXPIRING.enable_time_to_live(StateTtlConfig.new_builder(Time.hours(1)).build())


class Total(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.total = runtime_context.get_state(ValueStateDescriptor("total", Types.LONG()))

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Any:
        self.total.update((self.total.value() or 0) + value)
        yield self.total.value()


class Cleared(Total):
    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Any:
        self.total.clear()


class Expiring(Total):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.total = runtime_context.get_state(EXPIRING)


class Told(Total):
    def open(self, runtime_context: RuntimeContext) -> None:
        descriptor = ValueStateDescriptor("total", Types.LONG())
        descriptor.enable_time_to_live(StateTtlConfig.new_builder(Time.hours(1)).build())
        self.total = runtime_context.get_state(descriptor)


class Stateless(KeyedProcessFunction):
    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Any:
        yield value


@pytest.mark.parametrize(
    ("function", "kept"),
    [(Total(), True), (Cleared(), False), (Expiring(), False), (Told(), False), (Stateless(), False)],
)
def test_functions(function: KeyedProcessFunction, kept: bool) -> None:
    assert ("enable_time_to_live" in kept_by_function(function)) == kept


@pytest.mark.parametrize(
    ("windows", "kept"),
    [
        (WindowDefinition(GlobalWindows.create(), None, min, CountTrigger(3)), True),
        (WindowDefinition(GlobalWindows.create(), None, min, PurgingTrigger.of(CountTrigger(3))), False),
        (WindowDefinition(TumblingEventTimeWindows.of(Time.hours(1)), None, min), False),
    ],
)
def test_windows(windows: WindowDefinition, kept: bool) -> None:
    assert bool(kept_by_windows(windows)) == kept
