"""Which operators a clock has to tick for while no elements come."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.api.conftest import Jobs
from tests.api.elements.programs import words
from yarnflow.api.common import Time, Types
from yarnflow.api.datastream import (
    KeyedBroadcastProcessFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
)
from yarnflow.api.datastream.state import MapStateDescriptor
from yarnflow.api.datastream.window import (
    ContinuousEventTimeTrigger,
    ContinuousProcessingTimeTrigger,
    CountTrigger,
    EventTimeSessionWindows,
    EventTimeTrigger,
    GlobalWindows,
    ProcessingTimeSessionWindows,
    ProcessingTimeTrigger,
    PurgingTrigger,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
)
from yarnflow.graph.operators import ElementOperator

INSTALLED = '''
def after_a_second(timers):
    timers.register_processing_time_timer(timers.current_processing_time() + 1000)

class Reminder:
    def __init__(self, now=0):
        self.now = now

    def remind(self, ctx):
        after_a_second(ctx.timer_service())
'''


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A module of an installed package, which travels by its name."""
    directory = tmp_path / "site-packages"
    directory.mkdir()
    (directory / "reminders_of_a_package.py").write_text(INSTALLED)
    monkeypatch.syspath_prepend(str(directory))
    yield importlib.import_module("reminders_of_a_package")
    sys.modules.pop("reminders_of_a_package", None)


def keyed(jobs: Jobs) -> Any:
    return words(jobs).key_by(lambda word: word[0])


def may_register(jobs: Jobs) -> bool:
    """Of the one operator that has state."""
    (found,) = [
        node.operator.processing_timers
        for node in jobs.graph().nodes
        if isinstance(node.operator, ElementOperator) and node.operator.stateful
    ]
    return found


class Counted(KeyedProcessFunction):
    """Has no ``on_timer``, so its timers do nothing."""

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterable[Any]:
        yield value


class Timed(Counted):
    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterable[Any]:
        yield timestamp


class ByTheClock(Timed):
    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterable[Any]:
        ctx.timer_service().register_processing_time_timer(7)
        return [value]


class ByTheWatermark(Timed):
    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterable[Any]:
        ctx.timer_service().register_event_time_timer(ctx.timestamp())
        return [value]


class Inherited(ByTheClock):
    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterable[Any]:
        ctx.timer_service().register_event_time_timer(timestamp)
        return []


class ByName(ByTheWatermark):
    def open(self, runtime_context: Any) -> None:
        method = "register_processing_time_timer"
        self.register = lambda timers, time: getattr(timers, method)(time)


@pytest.mark.parametrize(
    ("function", "may"),
    [
        (Counted(), False),
        (ByTheClock(), True),
        (ByTheWatermark(), False),
        (Inherited(), True),
        (ByName(), True),
        # whoever registers its timers cannot be seen
        (Timed(), True),
    ],
    ids=lambda value: type(value).__name__,
)
def test_process_functions(jobs: Jobs, function: Any, may: bool) -> None:
    keyed(jobs).process(function).print()
    assert may_register(jobs) is may


def test_installed_helpers_are_looked_at_wherever_they_are(jobs: Jobs, installed: Any) -> None:
    after_a_second, helpers = installed.after_a_second, [installed.Reminder()]

    class ByVariable(ByTheWatermark):
        def process_element(self, value: Any, ctx: Any) -> Iterable[Any]:
            after_a_second(ctx.timer_service())
            return []

    class ByImport(ByTheWatermark):
        def process_element(self, value: Any, ctx: Any) -> Iterable[Any]:
            import reminders_of_a_package  # type: ignore[import-not-found]

            reminders_of_a_package.after_a_second(ctx.timer_service())
            return []

    class ByAttribute(ByTheWatermark):
        def __init__(self) -> None:
            self.helpers = helpers

    for function in (ByVariable(), ByImport(), ByAttribute()):
        keyed(jobs).process(function).print()
        assert may_register(jobs), type(function).__name__


def test_what_is_too_much_to_look_at_counts_as_timers(jobs: Jobs) -> None:
    class Large(ByTheWatermark):
        def __init__(self) -> None:
            self.all = [[type(f"C{row}_{n}", (), {}) for n in range(99)] for row in range(50)]

    keyed(jobs).process(Large()).print()
    assert may_register(jobs)


class Joined(KeyedCoProcessFunction):
    def process_element1(self, value: Any, ctx: KeyedCoProcessFunction.Context) -> Iterable[Any]:
        ctx.timer_service().register_processing_time_timer(7)
        return []

    def process_element2(self, value: Any, ctx: KeyedCoProcessFunction.Context) -> Iterable[Any]:
        return []


class JoinedWithTimers(Joined):
    def on_timer(self, timestamp: int, ctx: KeyedCoProcessFunction.OnTimerContext) -> Iterable[Any]:
        return []


class Ruled(KeyedBroadcastProcessFunction[Any, Any, Any, Any]):
    def process_element(self, value: Any, ctx: Any) -> Iterable[Any]:
        return []

    def process_broadcast_element(self, value: Any, ctx: Any) -> Iterable[Any]:
        return []


class RuledWithTimers(Ruled):
    def on_timer(self, timestamp: int, ctx: Any) -> Iterable[Any]:
        return []


def test_functions_of_two_streams(jobs: Jobs) -> None:
    for joined, may in ((Joined(), False), (JoinedWithTimers(), True)):
        keyed(jobs).connect(keyed(jobs)).process(joined).print()
        assert may_register(jobs) is may
    for ruled, may in ((Ruled(), False), (RuledWithTimers(), True)):
        rules = words(jobs).broadcast(MapStateDescriptor("rules", Types.STRING(), Types.INT()))
        keyed(jobs).connect(rules).process(ruled).print()
        assert may_register(jobs) is may


MINUTE = Time.minutes(1)


class EveryOther(CountTrigger[Any]):
    """A program's own."""


class Impatient(EventTimeTrigger[Any]):
    """Fires by the clock as well."""

    def on_element(self, element: Any, timestamp: int, window: Any, ctx: Any) -> Any:
        ctx.register_processing_time_timer(ctx.get_current_processing_time() + 5)
        return super().on_element(element, timestamp, window, ctx)


@pytest.mark.parametrize(
    ("assigner", "trigger", "may"),
    [
        (TumblingEventTimeWindows.of(MINUTE), None, False),
        (EventTimeSessionWindows.with_gap(MINUTE), None, False),
        (TumblingProcessingTimeWindows.of(MINUTE), None, True),
        (ProcessingTimeSessionWindows.with_gap(MINUTE), None, True),
        # its state is removed when the clock says that it has ended
        (TumblingProcessingTimeWindows.of(MINUTE), CountTrigger.of(5), True),
        (TumblingEventTimeWindows.of(MINUTE), ProcessingTimeTrigger.create(), True),
        (TumblingEventTimeWindows.of(MINUTE), ContinuousEventTimeTrigger.of(MINUTE), False),
        (GlobalWindows.create(), CountTrigger.of(5), False),
        (GlobalWindows.create(), PurgingTrigger.of(CountTrigger.of(5)), False),
        (GlobalWindows.create(), PurgingTrigger.of(ContinuousProcessingTimeTrigger.of(MINUTE)), True),
        (GlobalWindows.create(), EveryOther(2), False),
        (TumblingEventTimeWindows.of(MINUTE), Impatient(), True),
    ],
)
def test_windows(jobs: Jobs, assigner: Any, trigger: Any, may: bool) -> None:
    windows = keyed(jobs).window(assigner)
    if trigger is not None:
        windows = windows.trigger(trigger)
    windows.reduce(lambda left, right: left).print()
    assert may_register(jobs) is may


def test_other_operators_have_no_timers(jobs: Jobs) -> None:
    """Whatever they are called."""
    keyed(jobs).reduce(lambda left, register_processing_time_timer: left).print()
    assert not may_register(jobs)
