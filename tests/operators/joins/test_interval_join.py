"""Pairs of two streams that are near in time, compared with all pairs there are."""

from __future__ import annotations

import random
from typing import Any

import pytest

from yarnflow.errors import TimestampsMissing
from yarnflow.operators.elements import MAX_WATERMARK_MS
from yarnflow.operators.functions.joins import JoinContext, ProcessJoinFunction
from yarnflow.operators.functions.output_tag import OutputTag
from yarnflow.operators.joins.interval_join import LATE_DROPPED, IntervalJoinDefinition
from yarnflow.testing.functions import TwoInputHarness

TAG = OutputTag("odd")
LATE = OutputTag("late")


class Pairs(ProcessJoinFunction):
    def process_element(self, left: Any, right: Any, ctx: JoinContext) -> Any:
        assert ctx.get_timestamp() == max(ctx.get_left_timestamp(), ctx.get_right_timestamp())
        yield left, right


class Sorted(ProcessJoinFunction):
    """Odd sums to a side output, everything twice."""

    def process_element(self, left: Any, right: Any, ctx: JoinContext) -> Any:
        total = left[1] + right[1]
        return [(TAG, total), (TAG, total)] if total % 2 else [total, total]


def key(value: Any) -> Any:
    return value[0]


def harness(lower_ms: int, upper_ms: int, **options: Any) -> TwoInputHarness:
    function = options.pop("function", Pairs())
    return TwoInputHarness(IntervalJoinDefinition(function, lower_ms, upper_ms, **options), (key, key))


@pytest.mark.parametrize(
    ("lower_ms", "upper_ms"), [(-3, 5), (0, 4), (-4, 0), (2, 6), (-6, -2), (0, 0), (-1000, 1000)]
)
@pytest.mark.parametrize("seed", range(4))
def test_all_pairs_once_whatever_comes_first_and_nothing_is_kept(
    lower_ms: int, upper_ms: int, seed: int
) -> None:
    chance = random.Random(seed)
    elements = [
        (side, (chance.choice("ab"), number), number // 2 + chance.randint(-5, 5))
        for number in range(200)
        for side in (chance.randint(0, 1),)
    ]
    join = harness(lower_ms, upper_ms)
    found = []
    for position, (side, value, time_ms) in enumerate(elements):
        join.process_element(value, time_ms, side)
        if position % 10 == 9:
            # all that follow are later than this
            watermark_ms = min((time_ms for _, _, time_ms in elements[position + 1 :]), default=10**6) - 1
            join.process_watermark(watermark_ms)
            join.restart()
        found += join.take_output()
    expected = [
        ((left, right), max(left_ms, right_ms))
        for left_side, left, left_ms in elements
        for right_side, right, right_ms in elements
        if (left_side, right_side) == (0, 1)
        and left[0] == right[0]
        and left_ms + lower_ms <= right_ms <= left_ms + upper_ms
    ]
    assert sorted(found) == sorted(expected)
    join.process_watermark(MAX_WATERMARK_MS)
    assert join.state_entries() == 0 and not join.event_time_timers()


def test_state_is_dropped_as_soon_as_nothing_can_reach_it() -> None:
    join = harness(-2, 5)
    join.process_element(("a", "left"), 10, 0)
    join.process_element(("a", "right"), 11, 1)
    # what is right of 10 comes until 15, what is left of 11 until 13
    join.process_watermark(12)
    assert join.state_entries() == 2
    join.process_watermark(13)
    assert join.state_entries() == 1
    join.process_watermark(14)
    assert join.state_entries() == 1
    join.process_watermark(15)
    assert join.state_entries() == 0


def test_late_elements_are_dropped_and_counted_or_handed_on() -> None:
    join = harness(-5, 5, late_tags=(None, "late"))
    join.process_watermark(100)
    join.process_element(("a", 1), 100, 0)
    join.process_element(("a", 2), 99, 0)
    join.process_element(("a", 3), 98, 1)
    join.process_element(("a", 4), 101, 1)
    assert join.take_output() == [((("a", 1), ("a", 4)), 101)]
    assert join.take_side_output(LATE) == [(("a", 3), 98)]
    assert join.metrics()[LATE_DROPPED] == 1


def test_results_of_a_function_may_go_to_side_outputs() -> None:
    join = harness(0, 0, function=Sorted(), side_outputs=True)
    join.process_element(("a", 1), 7, 0)
    join.process_elements([(("a", 1), 7), (("a", 2), 7)], 1)
    assert join.take_output() == [(2, 7), (2, 7)]
    assert join.take_side_output(TAG) == [(3, 7), (3, 7)]


def test_elements_without_a_time_are_an_error() -> None:
    with pytest.raises(TimestampsMissing, match=r"\('a', 1\) has none; call assign_timestamps"):
        harness(0, 0).process_element(("a", 1), None, 0)
