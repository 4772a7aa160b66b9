"""Whom drivers, TaskManagers and clients take for leader."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from yarnflow.core.messages import Fence, LeaderInfo
from yarnflow.errors import LeadershipLost, ResourceError, YarnflowError, ZooKeeperUnavailable
from yarnflow.ha.single_master import SingleMasterRetrieval
from yarnflow.runtime.leader_follower import LeaderFollower
from yarnflow.testing.ha.leader_retrieval import FakeLeaderRetrieval, leader_info


class World:
    """A follower, what it connected to, and how often it was told of a new leader."""

    def __init__(self, known: LeaderInfo | None = None, newest_only: bool = True) -> None:
        self.retrieval = FakeLeaderRetrieval()
        self.connected: list[str] = []
        self.told = 0
        self.follower = LeaderFollower(self.retrieval, self._connect, known, newest_only=newest_only)

    def _connect(self, leader: LeaderInfo) -> str:
        self.connected.append(leader.address)
        return leader.address

    def follow(self) -> None:
        self.follower.follow(self._listen)

    def _listen(self) -> None:
        self.told += 1

    @property
    def epoch(self) -> int:
        return self.follower.leader().fence.epoch


def test_the_leader_is_looked_for_once_and_connected_to_once() -> None:
    world = World()
    world.retrieval.set_leader(leader_info(4))
    known = world.follower.present
    assert known is None and world.follower.fence == Fence("", 0)
    first = world.follower.leader()
    assert world.follower.leader() is first is world.follower.present
    assert (first.info, first.gateway, first.fence) == (leader_info(4), "host-4:1", leader_info(4).fence)
    assert world.connected == ["host-4:1"] and world.retrieval.looks == 1
    assert world.follower.fence == first.fence


def test_that_there_is_none_and_that_nobody_knows_are_errors() -> None:
    world = World()
    with pytest.raises(LeadershipLost, match="no master leads"):
        world.follower.leader()
    world.retrieval.error = ZooKeeperUnavailable("no quorum")
    with pytest.raises(ZooKeeperUnavailable):
        world.follower.leader()


def test_a_leader_that_is_known_from_the_beginning_is_not_looked_for() -> None:
    world = World(leader_info(2))
    assert world.epoch == 2 and world.retrieval.looks == 0


def test_a_newer_leader_that_is_heard_of_takes_the_place_of_the_one_before() -> None:
    world = World(leader_info(2))
    world.follow()
    before = world.follower.leader()
    world.retrieval.set_leader(None)
    assert world.follower.leader() is before and world.told == 0
    world.retrieval.set_leader(leader_info(3))
    assert world.epoch == 3 and world.told == 1
    assert world.retrieval.looks == 0


@pytest.mark.parametrize("other", [leader_info(3), leader_info(2), LeaderInfo(Fence("x", 3), "x:1", "", "")])
def test_the_same_epoch_or_an_older_one_changes_nothing(other: LeaderInfo) -> None:
    world = World(leader_info(3))
    world.follow()
    before = world.follower.leader()
    world.retrieval.set_leader(other)
    world.follower.look_again()
    assert world.follower.leader() is before and world.told == 0 and world.connected == ["host-3:1"]


def test_whoever_is_forgotten_is_looked_for_again_and_its_calls_are_accepted_meanwhile() -> None:
    world = World(leader_info(2))
    before = world.follower.leader()
    assert world.follower.forget()
    assert world.follower.present is None and world.follower.fence == leader_info(2).fence
    # a single master that was started again has a new id and the same epoch
    world.retrieval.set_leader(LeaderInfo(Fence("again", 2), "host-2:1", "", ""))
    assert world.follower.leader() is not before
    assert world.follower.fence == Fence("again", 2)


def test_only_the_leader_that_was_called_is_forgotten() -> None:
    world = World(leader_info(2))
    world.follow()
    called = world.follower.leader()
    world.retrieval.set_leader(leader_info(3))
    assert not world.follower.forget(called)
    assert world.epoch == 3 and world.retrieval.looks == 0
    assert world.follower.forget(world.follower.leader())
    assert not world.follower.forget()


def test_an_older_leader_than_the_last_one_is_refused_until_the_new_one_is_known() -> None:
    world = World(leader_info(3))
    world.follower.forget()
    world.retrieval.set_leader(leader_info(2))
    with pytest.raises(ResourceError, match="host-2:1 is older than the last one"):
        world.follower.leader()
    assert world.follower.present is None and world.follower.fence.epoch == 3
    world.retrieval.set_leader(leader_info(4))
    assert world.epoch == 4


def test_a_client_asks_whoever_is_named() -> None:
    world = World(leader_info(3), newest_only=False)
    world.follower.forget()
    world.retrieval.set_leader(leader_info(2))
    assert world.epoch == 2


class Meanwhile(FakeLeaderRetrieval):
    """While it is asked, something else happens."""

    def __init__(self, answer: LeaderInfo) -> None:
        super().__init__(answer)
        self.follower: LeaderFollower[str] | None = None
        self.next: LeaderInfo | None = None
        self.forgets = False
        self.at_look: Callable[[], object] = lambda: None

    def leader(self) -> LeaderInfo | None:
        answer = super().leader()
        self.at_look()
        if self.next is not None:
            self.set_leader(self.next)
            self.next = None
        if self.forgets:
            self.forgets = False
            assert self.follower is not None
            # another thread has found it, called it, and got no answer
            self.follower.leader()
            self.follower.forget()
        return answer


def test_an_answer_that_is_late_does_not_hide_the_leader_that_was_heard_of_meanwhile() -> None:
    retrieval = Meanwhile(leader_info(2))
    follower = LeaderFollower(retrieval, lambda leader: leader.address)
    follower.follow(lambda: None)
    follower.forget()
    retrieval.next = leader_info(3)
    assert follower.leader().gateway == "host-3:1"
    assert follower.fence == leader_info(3).fence and retrieval.looks == 1


def test_an_answer_of_before_the_leader_was_forgotten_is_not_kept() -> None:
    retrieval = Meanwhile(leader_info(2))
    follower = retrieval.follower = LeaderFollower(retrieval, lambda leader: leader.address)
    retrieval.forgets = True
    assert follower.leader().gateway == "host-2:1"
    assert follower.present is None
    assert follower.leader() is follower.present


def test_an_answer_is_not_kept_either_when_nobody_had_it_yet() -> None:
    retrieval = Meanwhile(leader_info(2))
    follower = LeaderFollower(retrieval, lambda leader: leader.address)
    retrieval.at_look = lambda: follower.forget()
    assert follower.leader().gateway == "host-2:1"
    assert follower.present is None


@pytest.mark.parametrize("error", [None, ZooKeeperUnavailable("no quorum")])
def test_looking_again_keeps_the_leader_while_nobody_names_another_one(error: YarnflowError | None) -> None:
    world = World(leader_info(2))
    world.retrieval.error = error  # type: ignore[assignment]
    world.follower.look_again()
    assert world.epoch == 2
    world.retrieval.error = None
    world.retrieval.set_leader(leader_info(3), tell=False)
    world.follower.look_again()
    assert world.epoch == 3


def test_a_single_master_is_followed_for_good() -> None:
    follower = LeaderFollower(
        SingleMasterRetrieval(leader_info(1)), lambda leader: leader.address, leader_info(1)
    )
    told: list[int] = []
    follower.follow(lambda: told.append(1))
    before = follower.leader()
    follower.look_again()
    assert follower.leader() is before and told == [] and not follower.may_change
