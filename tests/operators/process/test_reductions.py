"""reduce, sum, min, max, min_by, max_by: a result per element, and what is done with fields."""

from __future__ import annotations

from functools import reduce
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from yarnflow.graph.rows import Row
from yarnflow.operators.elements import MAX_WATERMARK_MS
from yarnflow.operators.functions.elements import ReduceFunction
from yarnflow.operators.process.reductions import (
    AggregateDefinition,
    Aggregation,
    FieldReduce,
    ReduceDefinition,
)
from yarnflow.testing.functions import OperatorHarness


class Add(ReduceFunction):
    def reduce(self, value1: Any, value2: Any) -> Any:
        return value1[0], value1[1] + value2[1]


def first(value: Any) -> Any:
    return value[0]


@given(st.lists(st.lists(st.tuples(st.sampled_from("abc"), st.integers()))))
def test_each_element_gives_the_result_so_far_of_its_key(batches: list[list[tuple[str, int]]]) -> None:
    harness = OperatorHarness(ReduceDefinition(Add()), (first,))
    seen: list[tuple[str, int]] = []
    for batch in batches:
        harness.process_elements([(element, 7) for element in batch])
        expected = []
        for element in batch:
            seen.append(element)
            expected.append((reduce(Add(), [other for other in seen if other[0] == element[0]]), 7))
        assert harness.take_output() == expected
        harness.restart()


class Pair(NamedTuple):
    key: str
    number: int


ELEMENTS = [("x", 3, "p"), ("y", 1, "q"), ("z", 5, "r"), ("w", 1, "s")]
EXPECTED = {
    Aggregation.SUM: ("x", 10, "p"),
    Aggregation.MIN: ("x", 1, "p"),
    Aggregation.MAX: ("x", 5, "p"),
    Aggregation.MIN_BY: ("y", 1, "q"),
    Aggregation.MAX_BY: ("z", 5, "r"),
}


@pytest.mark.parametrize("aggregation", Aggregation)
def test_fields_of_tuples_lists_and_rows(aggregation: Aggregation) -> None:
    expected = EXPECTED[aggregation]
    assert reduce(FieldReduce(aggregation, 1), ELEMENTS) == expected
    lists = [list(element) for element in ELEMENTS]
    assert reduce(FieldReduce(aggregation, 1), lists) == list(expected)
    assert lists == [list(element) for element in ELEMENTS]
    rows = [Row(name=name, number=count, rest=rest) for name, count, rest in ELEMENTS]
    found: Any = reduce(FieldReduce(aggregation, "number"), rows)
    assert found == expected and found.number == expected[1]
    pairs = [Pair(name, count) for name, count, _ in ELEMENTS]
    assert reduce(FieldReduce(aggregation, "number"), pairs) == Pair(*expected[:2])


@pytest.mark.parametrize("aggregation, expected", list(zip(Aggregation, [10, 1, 5, 1, 5], strict=True)))
def test_plain_values_are_field_0(aggregation: Aggregation, expected: int) -> None:
    assert reduce(FieldReduce(aggregation, 0), [3, 1, 5, 1]) == expected
    with pytest.raises(TypeError, match=r"\(1\) on a int, which has no fields: only field 0"):
        FieldReduce(aggregation, 1)(3, 1)


def test_a_field_that_is_not_there_is_named() -> None:
    with pytest.raises(TypeError, match="no field 'nothing' in a Pair of key, number"):
        FieldReduce(Aggregation.SUM, "nothing")(Pair("a", 1), Pair("a", 2))
    with pytest.raises(TypeError, match="sum needs the position or the name of a field, not a float"):
        FieldReduce(Aggregation.SUM, 1.5)  # type: ignore[arg-type]


def test_in_batch_mode_a_key_has_one_result_at_the_end() -> None:
    harness = OperatorHarness(AggregateDefinition(Aggregation.SUM, 1, at_end=True), (first,))
    harness.process_elements([(("a", 1), 1), (("b", 5), 2), (("a", 2), 3)])
    harness.process_watermark(1000)
    assert harness.take_output() == []
    harness.process_watermark(MAX_WATERMARK_MS)
    assert harness.take_output() == [(("a", 3), MAX_WATERMARK_MS), (("b", 5), MAX_WATERMARK_MS)]
    assert harness.state_entries() == 0


def test_a_failing_function_names_its_element() -> None:
    harness = OperatorHarness(AggregateDefinition(Aggregation.SUM, 1), (first,))
    with pytest.raises(TypeError) as caught:
        harness.process_elements([(("a", 1), None), (("a", "x"), None)])
    assert caught.value.__notes__ == ["operator 'harness': element ('a', 'x')"]
