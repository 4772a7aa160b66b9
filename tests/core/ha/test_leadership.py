"""Leadership as the connection tells it."""

from __future__ import annotations

import pytest

from yarnflow.core.ha.leadership import (
    MACHINE,
    ConnectionRestored,
    ConnectionSuspended,
    Elected,
    Freeze,
    Grant,
    Leadership,
    LeadershipEffect,
    LeadershipEvent,
    LeadershipModel,
    Revoke,
    SessionLost,
    StandAgain,
    Thaw,
)
from yarnflow.core.messages import Fence


def after(*events: LeadershipEvent) -> tuple[LeadershipModel, list[LeadershipEffect]]:
    model = LeadershipModel.create("m1", 0)
    told: list[LeadershipEffect] = []
    for event in events:
        model, effects = MACHINE.step(model, event)
        MACHINE.check(model)
        told += effects
    return model, told


def test_every_state_takes_every_event_and_says_why() -> None:
    for state in set(Leadership) - {Leadership.REVOKED}:
        # nobody is elected twice
        refused = [event for event in MACHINE.events if not MACHINE.accepts(state, event)]
        assert refused == ([] if state is Leadership.FOLLOWER else [Elected])
    assert all(edge.note for edge in MACHINE.table.values())


def test_a_leader_has_a_fence_and_a_follower_none() -> None:
    assert after()[0].fence is None
    model, told = after(Elected(1, 7))
    assert told == [Grant(Fence("m1", 7))] and model.fence == Fence("m1", 7)


def test_a_broken_connection_freezes_and_the_same_session_resumes() -> None:
    frozen, told = after(Elected(1, 7), ConnectionSuspended(2))
    assert told[1:] == [Freeze()] and frozen.fence is None
    model, told = after(Elected(1, 7), ConnectionSuspended(2), ConnectionRestored(3))
    assert told[1:] == [Freeze(), Thaw()] and model.fence == Fence("m1", 7)


@pytest.mark.parametrize(
    "events",
    [(SessionLost(2),), (ConnectionSuspended(2), SessionLost(3))],
)
def test_revoked_is_told_once_and_for_good(events: tuple[LeadershipEvent, ...]) -> None:
    model, told = after(Elected(1, 7), *events)
    assert model.state is Leadership.REVOKED and model.fence is None
    assert [effect for effect in told if isinstance(effect, Revoke)] == [Revoke(model.reason)]
    assert not MACHINE.accepts(Leadership.REVOKED, Elected)


def test_a_follower_that_lost_its_session_stands_again_and_may_win() -> None:
    model, told = after(SessionLost(1), ConnectionRestored(2), Elected(3, 2))
    assert told == [StandAgain(), Grant(Fence("m1", 2))] and model.state is Leadership.GRANTED


def test_elected_by_the_last_answer_before_the_connection_broke() -> None:
    model, told = after(ConnectionSuspended(1), Elected(2, 3))
    assert told == [Grant(Fence("m1", 3)), Freeze()] and model.fence is None
