"""Until when a holder may write."""

from __future__ import annotations

from yarnflow.core.ha.lease import LeaseClock, LeaseState

HELD = LeaseClock(9_000).acquired(1_000)


def test_two_thirds_of_the_session_from_when_the_call_was_sent() -> None:
    assert HELD.valid_until_ms == 7_000
    assert HELD.may_write(6_999) and not HELD.may_write(7_000)


def test_nothing_is_held_before_it_is_acquired() -> None:
    waiting = LeaseClock(9_000)
    assert not waiting.may_write(0)
    assert waiting.renewed(0).state is LeaseState.WAITING


def test_answers_in_any_order_never_shorten_it() -> None:
    assert HELD.renewed(3_000).renewed(2_000).valid_until_ms == 9_000


def test_once_doubted_it_is_lost_for_good() -> None:
    assert HELD.looked_at(6_999) is HELD
    lost = HELD.looked_at(7_000)
    assert lost.state is LeaseState.LOST and "6000 ms" in lost.reason
    late = lost.renewed(6_900).acquired(6_900).released()
    assert late.state is LeaseState.LOST and not late.may_write(6_950)
    assert lost.lost("another reason").reason == lost.reason


def test_whoever_gives_it_back_writes_no_more() -> None:
    released = HELD.released()
    assert not released.may_write(1_001)
    assert released.renewed(1_002).state is LeaseState.RELEASED
    assert released.lost("its session is over") is released
