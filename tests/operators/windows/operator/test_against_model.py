"""What windows yield, compared with windows written down naively; and that a restart changes nothing."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from itertools import groupby
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.operators.windows.operator.model import Element, SessionModel, SlidingModel
from yarnflow.operators.functions.elements import AggregateFunction
from yarnflow.operators.functions.output_tag import OutputTag
from yarnflow.operators.functions.windows import ProcessWindowFunction, WindowContext
from yarnflow.operators.windows.assigner import SessionWindowTimeGapExtractor, WindowAssigner
from yarnflow.operators.windows.session_windows import EventTimeSessionWindows
from yarnflow.operators.windows.time_windows import SlidingEventTimeWindows, TumblingEventTimeWindows
from yarnflow.testing.windows import WindowHarness

LATE = OutputTag("late")
END = 10_000

#: elements that arrive together, or a watermark
Step = list[Element] | int

elements = st.tuples(st.sampled_from("abc"), st.integers(0, 9), st.integers(-20, 120))
steps = st.lists(st.one_of(st.lists(elements, min_size=1, max_size=12), st.integers(-30, 150)), max_size=14)
latenesses = st.sampled_from([0, 0, 7, 40])


class Collect(ProcessWindowFunction[Any, Any, Any, Any]):
    """Key, start, end and sorted values."""

    def process(self, key: Any, context: WindowContext[Any], elements: Iterable[Any]) -> Any:
        yield (key, context.window().start, context.window().end, sorted(value for _, value in elements))


class InOrder(ProcessWindowFunction[Any, Any, Any, Any]):
    """Key, end and values as they are."""

    def process(self, key: Any, context: WindowContext[Any], elements: Iterable[Any]) -> Any:
        yield (key, context.window().end, list(elements))


class CollectList(Collect):
    """The same of elements combined into one list."""

    def process(self, key: Any, context: WindowContext[Any], elements: Iterable[Any]) -> Any:
        (values,) = elements
        yield from super().process(key, context, values)


class ToList(AggregateFunction):
    def create_accumulator(self) -> Any:
        return []

    def add(self, value: Any, accumulator: Any) -> Any:
        return [*accumulator, value]

    def get_result(self, accumulator: Any) -> Any:
        return accumulator

    def merge(self, acc_a: Any, acc_b: Any) -> Any:
        return acc_a + acc_b


class AskedPerElement(SlidingEventTimeWindows[Any]):
    """Not known to the operator as what it is, so that nothing is done per chunk."""


class SessionsAskedPerElement(EventTimeSessionWindows[Any]):
    """The same of sessions."""


class GapOfValue(SessionWindowTimeGapExtractor):
    """Elements of large values keep a session open longer."""

    def extract(self, element: Any) -> int:
        return int(element[1]) + 1


def ms(number: int) -> timedelta:
    return timedelta(milliseconds=number)


def harness(assigner: WindowAssigner[Any, Any], lateness: int, combined: bool = False) -> WindowHarness:
    return WindowHarness(
        assigner,
        CollectList() if combined else Collect(),
        ToList() if combined else None,
        allowed_lateness_ms=lateness,
        late_tag=LATE,
        key_selector=lambda value: value[0],
    )


def run(windows: WindowHarness, program: list[Step], restart_each: int = 0) -> tuple[list[Any], list[Any]]:
    """Results and late elements; results of one watermark with one end are sorted, as in the model."""
    fired: list[Any] = []
    late: list[Any] = []
    for number, step in enumerate([*program, END]):
        if isinstance(step, int):
            windows.process_watermark(step)
        else:
            windows.process_elements([((key, value), timestamp) for key, value, timestamp in step])
        results = windows.take_output()
        assert all(timestamp == result[2] - 1 for result, timestamp in results)
        values = [result for result, _ in results]
        fired.extend(by_end(values) if isinstance(step, int) else values)
        late.extend(value[1] for value, _ in windows.take_side_output(LATE))
        if restart_each and number % restart_each == 0:
            windows.restart(from_snapshot=number % 2 == 0)
    return fired, late


def by_end(results: list[Any]) -> list[Any]:
    assert [result[2] for result in results] == sorted(result[2] for result in results)
    return [result for _, same in groupby(results, lambda r: r[2]) for result in sorted(same, key=repr)]


def sliding_model(program: list[Step], model: SlidingModel) -> tuple[list[Any], list[Any]]:
    for step in [*program, END]:
        if isinstance(step, int):
            model.advance(step)
        else:
            for element in step:
                model.add(*element)
    return model.fired, model.late


def session_model(program: list[Step], model: SessionModel, gap: int) -> tuple[list[Any], list[Any]]:
    for step in [*program, END]:
        if isinstance(step, int):
            model.advance(step)
        else:
            for key, value, timestamp in step:
                model.add(key, value, timestamp, gap or value + 1)
    return model.fired, model.late


@settings(deadline=None)
@given(steps, st.integers(1, 30), st.integers(1, 30), st.integers(0, 30), latenesses, st.booleans())
def test_sliding_windows(
    program: list[Step], size: int, slide: int, offset: int, lateness: int, combined: bool
) -> None:
    offset %= slide
    windows = harness(SlidingEventTimeWindows(size, slide, offset), lateness, combined)
    model = SlidingModel(size, slide, offset, lateness)
    assert run(windows, program) == sliding_model(program, model)
    assert windows.state_entries() == 0 and windows.event_time_timers() == []


@settings(deadline=None)
@given(steps, st.integers(1, 30), st.integers(0, 30), latenesses, st.booleans())
def test_tumbling_windows(
    program: list[Step], size: int, offset: int, lateness: int, combined: bool
) -> None:
    offset %= size
    windows = harness(TumblingEventTimeWindows(size, offset), lateness, combined)
    model = SlidingModel(size, size, offset, lateness)
    assert run(windows, program) == sliding_model(program, model)
    assert windows.state_entries() == 0 and windows.event_time_timers() == []


@settings(deadline=None)
@given(steps, st.integers(0, 20), latenesses, st.booleans(), st.booleans())
def test_sessions(program: list[Step], gap: int, lateness: int, combined: bool, per_chunk: bool) -> None:
    kind = EventTimeSessionWindows if per_chunk else SessionsAskedPerElement
    dynamic = EventTimeSessionWindows.with_dynamic_gap(GapOfValue())
    assigner: WindowAssigner[Any, Any] = kind(gap) if gap else dynamic
    windows = harness(assigner, lateness, combined)
    assert run(windows, program) == session_model(program, SessionModel(lateness), gap)
    assert windows.state_entries() == 0 and windows.event_time_timers() == []


@settings(deadline=None)
@given(steps, st.integers(1, 30), st.integers(1, 30), st.sampled_from([0, 7]), st.booleans())
def test_elements_taken_per_chunk_are_as_those_taken_one_by_one(
    program: list[Step], size: int, slide: int, lateness: int, combined: bool
) -> None:
    per_chunk = harness(SlidingEventTimeWindows(size, slide, 0), lateness, combined)
    one_by_one = harness(AskedPerElement(size, slide, 0), lateness, combined)
    for step in program:
        for windows in (per_chunk, one_by_one):
            if isinstance(step, int):
                windows.process_watermark(step)
            else:
                windows.process_elements([((key, value), time) for key, value, time in step])
        assert sorted(per_chunk.take_output(), key=repr) == sorted(one_by_one.take_output(), key=repr)
        assert per_chunk.take_side_output(LATE) == one_by_one.take_side_output(LATE)
        assert per_chunk.event_time_timers() == one_by_one.event_time_timers()
        assert per_chunk.state_entries() == one_by_one.state_entries()


@settings(deadline=None)
@given(steps, st.integers(1, 20), latenesses)
# a session that grew is still older than one that was opened in between
@example([[("a", 0, -19), ("a", 0, -17), ("a", 0, -20), ("a", 0, -18)]], 1, 0)
def test_sessions_that_merge_keep_the_order_of_their_elements(
    program: list[Step], gap: int, lateness: int
) -> None:
    found = []
    assigners: list[WindowAssigner[Any, Any]] = [EventTimeSessionWindows(gap), SessionsAskedPerElement(gap)]
    for assigner in assigners:
        windows = WindowHarness(
            assigner, InOrder(), allowed_lateness_ms=lateness, key_selector=lambda value: value[0]
        )
        for step in [*program, END]:
            if isinstance(step, int):
                windows.process_watermark(step)
            else:
                windows.process_elements([((key, (value, time)), time) for key, value, time in step])
        found.append(sorted(windows.take_output(), key=repr))
    assert found[0] == found[1]


@settings(deadline=None)
@given(
    steps,
    st.sampled_from([
        TumblingEventTimeWindows(20, 0),
        SlidingEventTimeWindows(20, 7, 0),
        EventTimeSessionWindows(6),
        SessionsAskedPerElement(6),
        EventTimeSessionWindows.with_dynamic_gap(GapOfValue()),
    ]),
    st.sampled_from([0, 7]),
    st.booleans(),
    st.integers(1, 3),
)  # fmt: skip
def test_a_restart_changes_nothing(
    program: list[Step], assigner: WindowAssigner[Any, Any], lateness: int, combined: bool, each: int
) -> None:
    uninterrupted = run(harness(assigner, lateness, combined), program)
    assert run(harness(assigner, lateness, combined), program, restart_each=each) == uninterrupted
