"""map, flat_map, filter: what comes out, with which times, and what is said when a function fails."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from yarnflow.operators.functions.elements import FilterFunction, FlatMapFunction, MapFunction
from yarnflow.operators.functions.runtime_context import RuntimeContext
from yarnflow.operators.process.elementwise import (
    FilterDefinition,
    FlatMapDefinition,
    MapDefinition,
)
from yarnflow.operators.process.operator import OperatorDefinition
from yarnflow.operators.state.descriptors import ValueStateDescriptor
from yarnflow.testing.functions import OperatorHarness


class Double(MapFunction):
    def map(self, value: Any) -> Any:
        return 2 * value


class Repeat(FlatMapFunction):
    def flat_map(self, value: Any) -> Iterator[Any]:
        yield from [value] * value


class Odd(FilterFunction):
    def filter(self, value: Any) -> bool:
        return bool(value % 2)


def generated(value: int) -> Iterator[int]:
    yield from [value] * value


CASES: list[tuple[OperatorDefinition, list[tuple[int, int]]]] = [
    (MapDefinition(lambda x: 2 * x), [(2, 10), (4, 20), (6, 30)]),
    (MapDefinition(Double()), [(2, 10), (4, 20), (6, 30)]),
    (FlatMapDefinition(generated), [(1, 10), (2, 20), (2, 20), (3, 30), (3, 30), (3, 30)]),
    (FlatMapDefinition(Repeat()), [(1, 10), (2, 20), (2, 20), (3, 30), (3, 30), (3, 30)]),
    (FlatMapDefinition(lambda x: None if x == 2 else (x,)), [(1, 10), (3, 30)]),
    (FilterDefinition(lambda x: x % 2), [(1, 10), (3, 30)]),
    (FilterDefinition(Odd()), [(1, 10), (3, 30)]),
]


@pytest.mark.parametrize("definition, expected", CASES)
@pytest.mark.parametrize("selectors", [(), (lambda x: x,)])
def test_results_have_the_times_of_their_elements(
    definition: OperatorDefinition, expected: list[tuple[int, int]], selectors: tuple[Any, ...]
) -> None:
    harness = OperatorHarness(definition, selectors)
    harness.process_elements([(1, 10), (2, 20), (3, 30)])
    assert harness.take_output() == expected
    harness.process_elements([(1, None), (2, None), (3, None)])
    assert harness.take_output() == [(value, None) for value, _ in expected]


class Distinct(FilterFunction):
    """Uses state of the key."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.seen = runtime_context.get_state(ValueStateDescriptor("seen"))

    def filter(self, value: Any) -> bool:
        if self.seen.value():
            return False
        self.seen.update(True)
        return True


def test_a_function_of_a_keyed_stream_has_state() -> None:
    harness = OperatorHarness(FilterDefinition(Distinct()), (lambda value: value,))
    harness.process_elements([("a", None), ("b", None), ("a", None)])
    harness.restart()
    harness.process_elements([("b", None), ("c", None)])
    assert harness.take_values() == ["a", "b", "c"]


@pytest.mark.parametrize("make", [MapDefinition, FlatMapDefinition, FilterDefinition])
@pytest.mark.parametrize("selectors", [(), (str,)])
def test_what_a_function_raises_names_operator_and_element(
    make: Callable[[Any], OperatorDefinition], selectors: tuple[Any, ...]
) -> None:
    harness = OperatorHarness(make(lambda x: [1 / x]), selectors, name="Divide")
    with pytest.raises(ZeroDivisionError) as caught:
        harness.process_elements([(1, None), (0, None), (2, None)])
    assert caught.value.__notes__ == ["operator 'Divide': element 0"]


def test_the_cause_of_a_failure_stays() -> None:
    def fail(value: Any) -> Any:
        raise ValueError("outer") from KeyError("inner")

    with pytest.raises(ValueError, match="outer") as caught:
        OperatorHarness(MapDefinition(fail)).process_element(1)
    assert isinstance(caught.value.__cause__, KeyError)


def test_stop_iteration_does_not_swallow_elements() -> None:
    def stop(value: int) -> int:
        raise StopIteration

    with pytest.raises(RuntimeError, match="raised StopIteration") as caught:
        OperatorHarness(MapDefinition(stop)).process_element(7)
    assert caught.value.__notes__ == ["operator 'harness': element 7"]


def test_a_long_or_broken_element_is_shown_as_far_as_it_can_be() -> None:
    class Broken:
        def __repr__(self) -> str:
            raise ValueError("no")

    harness = OperatorHarness(MapDefinition(lambda x: x + 1))
    with pytest.raises(TypeError) as caught:
        harness.process_element("x" * 1000)
    assert len(caught.value.__notes__[0]) < 260 and caught.value.__notes__[0].endswith(" …")
    with pytest.raises(TypeError) as caught:
        harness.process_element(Broken())
    assert caught.value.__notes__ == ["operator 'harness': element <Broken without repr>"]


def test_functions_that_open_without_a_context_are_opened() -> None:
    opened = []

    class Old(MapFunction):
        def open(self) -> None:  # type: ignore[override]
            opened.append("old")

        def map(self, value: Any) -> Any:
            return value

        def close(self) -> None:
            opened.append("closed")

    harness = OperatorHarness(MapDefinition(Old()))
    harness.close()
    assert opened == ["old", "closed"]


def test_a_class_without_the_method_is_refused() -> None:
    with pytest.raises(TypeError, match="Odd cannot be used here: it needs a method map"):
        OperatorHarness(MapDefinition(Odd()))
