"""Watermarks of several senders and inputs."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from yarnflow.operators.elements import MIN_WATERMARK_MS
from yarnflow.operators.process.operator import WatermarkStatus
from yarnflow.operators.task.watermarks import merge_inputs, merge_senders, with_sender

STATUS = st.builds(WatermarkStatus, st.integers(-5, 5), st.booleans())


def test_the_earliest_sender_that_is_not_idle_counts() -> None:
    known = {0: (5, False), 1: (3, False), 2: (1, True)}
    assert merge_senders(known, 3) == (3, False)


def test_a_sender_that_has_told_nothing_holds_back() -> None:
    assert merge_senders({0: (5, False)}, 2) == (MIN_WATERMARK_MS, False)


def test_when_all_are_idle_the_latest_counts() -> None:
    assert merge_senders({0: (5, True), 1: (3, True)}, 2) == (5, True)


def test_senders_that_are_no_more_do_not_count() -> None:
    assert merge_senders({0: (5, False), 1: (6, False), 2: (1, False)}, 2) == (5, False)


def test_no_input_that_is_not_idle_leaves_the_watermark() -> None:
    assert merge_inputs(WatermarkStatus(4), [WatermarkStatus(9, True)]) == (4, True)
    assert merge_inputs(WatermarkStatus(4, True), []) == (4, True)
    inputs = [WatermarkStatus(9, True), WatermarkStatus(6)]
    assert merge_inputs(WatermarkStatus(4, True), inputs) == (6, False)


@given(st.lists(st.tuples(st.integers(0, 2), STATUS)))
def test_a_watermark_never_goes_back(told: list[tuple[int, WatermarkStatus]]) -> None:
    known: dict[int, tuple[int, bool]] = {}
    before = WatermarkStatus()
    for sender, status in told:
        known = with_sender(known, sender, status)
        after = merge_inputs(before, [merge_senders(known, 3)])
        assert after.watermark_ms >= before.watermark_ms
        active = [time for time, idle in known.values() if not idle]
        if len(known) == 3 and active:
            assert after.watermark_ms == max(before.watermark_ms, min(active))
        before = after
