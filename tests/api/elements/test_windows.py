"""Windows of functions: what is evaluated, named and refused."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest

from tests.api.conftest import Jobs
from tests.api.elements.programs import MINUTE, WORDS, definition, element, one, selector, words
from yarnflow.api.common import Time, Types, WatermarkStrategy
from yarnflow.api.datastream import (
    AggregateFunction,
    DataStream,
    OutputTag,
    ProcessWindowFunction,
    WindowFunction,
)
from yarnflow.api.datastream.functions import ProcessAllWindowFunction
from yarnflow.api.datastream.window import (
    CountTrigger,
    CountTumblingWindowAssigner,
    EventTimeSessionWindows,
    GlobalWindows,
    TumblingProcessingTimeWindows,
)
from yarnflow.errors import GraphError, UnsupportedGraph
from yarnflow.graph import operators as o
from yarnflow.graph.operators import ElementKind


class Largest(AggregateFunction):
    def create_accumulator(self) -> Any:
        return 0

    def add(self, value: Any, accumulator: Any) -> Any:
        return max(value[1], accumulator)

    def get_result(self, accumulator: Any) -> Any:
        return accumulator

    def merge(self, acc_a: Any, acc_b: Any) -> Any:
        return max(acc_a, acc_b)


class Span(ProcessWindowFunction[Any, Any, Any, Any]):
    def process(self, key: Any, context: Any, elements: Iterable[Any]) -> Iterator[tuple[str, int]]:
        yield key, context.window().end


class Ends(WindowFunction[Any, Any, Any, Any]):
    def apply(self, key: Any, window: Any, inputs: Iterable[Any]) -> Iterable[Any]:
        return [window.end]


def timed(jobs: Jobs) -> DataStream:
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda word: word[1])
    return words(jobs).assign_timestamps_and_watermarks(strategy)


def test_windows_of_functions(jobs: Jobs) -> None:
    late = OutputTag("late", WORDS)
    windowed = timed(jobs).key_by(lambda word: word[0]).window(MINUTE)
    results = windowed.allowed_lateness(500).side_output_late_data(late).process(Span(), Types.STRING())
    results.print()
    results.get_side_output(late).print()
    node = one(jobs.graph(), ElementKind.WINDOW)
    found = definition(node)
    assert (found.allowed_lateness_ms, found.late_tag.tag_id, found.side_outputs) == (500, "late", False)
    assert element(node).side_outputs == (("late", WORDS),) and element(node).stateful
    assert node.name == "TumblingEventTimeWindows" and node.output_schema.element_type == Types.STRING()
    assert element(node).closure.name == "Window(TumblingEventTimeWindows(60000, 0), EventTimeTrigger, Span)"


@pytest.mark.parametrize(
    ("use", "name"),
    [
        (lambda w: w.reduce(lambda a, b: a), "function"),
        (lambda w: w.reduce(lambda a, b: a, Span()), "function, Span"),
        (lambda w: w.aggregate(Largest()), "Largest"),
        (lambda w: w.aggregate(Largest(), Ends()), "Largest, Ends"),
        (lambda w: w.aggregate(Largest(), Ends(), Types.INT(), Types.INT()), "Largest, Ends"),
        (lambda w: w.aggregate(Largest(), window_function=Ends(), output_type=Types.INT()), "Largest, Ends"),
        (lambda w: w.apply(Ends()), "Ends"),
    ],
)
def test_what_windows_evaluate_to(jobs: Jobs, use: Callable[[Any], DataStream], name: str) -> None:
    use(timed(jobs).key_by(lambda word: word[0]).window(MINUTE)).print()
    assert element(one(jobs.graph(), ElementKind.WINDOW)).closure.name.endswith(f", {name})")


def test_types_of_windows(jobs: Jobs) -> None:
    windowed = timed(jobs).key_by(lambda word: word[0]).window(MINUTE)
    windowed.reduce(lambda a, b: a).print()
    assert one(jobs.graph(), ElementKind.WINDOW).output_schema.element_type == WORDS


@pytest.mark.parametrize(
    "assigner",
    [
        TumblingProcessingTimeWindows.of(Time.seconds(1)),
        GlobalWindows.create(),
        CountTumblingWindowAssigner.of(3),
        EventTimeSessionWindows.with_gap(Time.seconds(1)),
    ],
)
def test_every_assigner_has_the_window_operator(jobs: Jobs, assigner: Any) -> None:
    timed(jobs).key_by(lambda word: word[0]).window(assigner).apply(Ends()).print()
    assert type(definition(one(jobs.graph(), ElementKind.WINDOW)).assigner) is type(assigner)


def test_triggers_and_count_windows(jobs: Jobs) -> None:
    keyed = words(jobs).key_by(lambda word: word[0])
    keyed.count_window(3).apply(Ends()).print()
    keyed.count_window(3, 2).apply(Ends()).print()
    keyed.window(GlobalWindows.create()).trigger(CountTrigger.of(2)).apply(Ends()).print()
    names = [n.name for n in jobs.graph().nodes if isinstance(n.operator, o.ElementOperator)]
    assert names == ["CountTumblingWindowAssigner", "CountSlidingWindowAssigner", "GlobalWindows"]


def test_windows_of_columns_by_function_classes(jobs: Jobs) -> None:
    stream = jobs.rows("ts TIMESTAMP, user STRING").assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner("ts")
    )
    stream.key_by("user").window(MINUTE).process(Span(), "f0 STRING, f1 BIGINT").print()
    node = one(jobs.graph(), ElementKind.WINDOW)
    assert selector(node)({"user": "a"}) == "a"
    assert node.output_schema.names == ("f0", "f1") and node.output_schema.element_type is not None


def test_expressions_over_windows(jobs: Jobs) -> None:
    windowed = timed(jobs).key_by("f0").window(TumblingProcessingTimeWindows.of(Time.seconds(1)))
    with pytest.raises(UnsupportedGraph, match=r"^test_windows.py:\d+: count\(\): .*a Python function"):
        windowed.count()
    with pytest.raises(UnsupportedGraph, match=r"aggregate\(\): .*without trigger"):
        timed(jobs).key_by("f0").window(MINUTE).allowed_lateness(5).aggregate("count(*) AS n")


@pytest.mark.parametrize(
    ("use", "part"),
    [
        (lambda w: w.process(lambda k, c, e: e), "<lambda> is a plain function.*a ProcessWindowFunction"),
        (lambda w: w.apply(lambda k, w, e: e), "make it a WindowFunction"),
        (lambda w: w.reduce(lambda a, b: a, Largest()), "Largest is no WindowFunction or Proc"),
        (lambda w: w.allowed_lateness(-1).apply(Ends()), "below 0"),
    ],
)
def test_windows_that_are_refused(jobs: Jobs, use: Callable[[Any], Any], part: str) -> None:
    with pytest.raises(GraphError, match=rf"^test_windows.py:\d+: \w+\(\): .*{part}"):
        use(timed(jobs).key_by(lambda word: word[0]).window(MINUTE))


def test_windows_of_all_elements(jobs: Jobs) -> None:
    class All(ProcessAllWindowFunction[Any, Any, Any]):
        def process(self, context: Any, elements: Iterable[Any]) -> Iterable[Any]:
            return elements

    jobs.env.set_parallelism(4)
    timed(jobs).window_all(MINUTE).process(All()).print()
    node = one(jobs.graph(), ElementKind.WINDOW)
    assert node.parallelism == 1 and selector(node)(("a", 1)) == selector(node)(("b", 2))
    assert element(node).closure.name.startswith("AllWindow(")
    with pytest.raises(GraphError, match="Span is no AllWindowFunction or ProcessAllWindowFunction"):
        timed(jobs).window_all(MINUTE).process(Span())  # type: ignore[arg-type]
