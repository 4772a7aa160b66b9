"""Timers: order, double registration, deletion while others fire."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from yarnflow.operators.state.timers import TimerData, TimerQueue, Timers

TIMERS = st.tuples(st.integers(0, 9), st.sampled_from(["a", "b", None]), st.sampled_from([None, "w"]))


@given(st.lists(st.tuples(st.booleans(), TIMERS)), st.lists(st.integers(0, 10)))
def test_what_is_due_comes_once_and_in_order(
    calls: list[tuple[bool, tuple[int, str | None, str | None]]], watermarks: list[int]
) -> None:
    queue, expected = TimerQueue(), dict[tuple[int, str | None, str | None], None]()
    for added, timer in calls:
        if added:
            queue.add(*timer)
            expected[timer] = None
        else:
            queue.remove(*timer)
            expected.pop(timer, None)
    assert len(queue) == len(expected)
    for watermark in watermarks:
        due = sorted((timer for timer in expected if timer[0] <= watermark), key=lambda timer: timer[0])
        assert list(queue.due(watermark)) == due
        for timer in due:
            del expected[timer]
        assert queue.next_ms() == min((timer[0] for timer in expected), default=None)


def test_a_timer_that_is_due_is_not_deleted_by_one_that_fires() -> None:
    timers = Timers()
    for time in (1, 2, 3):
        timers.register_event_time(time, "k")
    timers.register_event_time(1, "other")
    fired = []
    for time, key, _ in timers.due_event_time(10):
        fired.append((time, key))
        timers.delete_event_time(1, "other")
        timers.delete_event_time(2, "k")
    assert fired == [(1, "k"), (1, "other"), (2, "k"), (3, "k")]


def test_a_timer_registered_by_one_that_fires_comes_after_all_that_were_due() -> None:
    timers = Timers()
    for time in (1, 5, 5):
        timers.register_event_time(time, "k")
    timers.register_event_time(5, "other")
    fired = []
    for time, key, _ in timers.due_event_time(5):
        fired.append((time, key))
        if time == 1:
            timers.register_event_time(3, "k")
            timers.register_event_time(6, "late")
        if (time, key) == (5, "k"):
            timers.register_event_time(4, "k")
    assert fired == [(1, "k"), (5, "k"), (5, "other"), (3, "k"), (4, "k")]
    assert timers.next_event_time_ms() == 6


def test_the_two_time_domains_do_not_mix() -> None:
    timers = Timers()
    timers.register_event_time(1, "event")
    timers.register_processing_time(2, "processing")
    assert timers.next_processing_time_ms() == 2
    assert list(timers.due_processing_time(9)) == [(2, "processing", None)]
    assert list(timers.due_event_time(9)) == [(1, "event", None)]


def test_a_timer_that_came_and_went_within_a_batch_is_no_change() -> None:
    data = TimerData.in_memory()
    data.event.add(1, "k", None)
    data.event.remove(1, "k", None)
    assert data.changes() is None
    data.event.add(1, "k", None)
    assert data.changes() is not None
    data.event.remove(1, "k", None)
    data.event.add(1, "k", None)
    assert data.changes() is None
