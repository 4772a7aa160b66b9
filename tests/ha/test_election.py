"""Candidates whose connections break, one step at a time."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field
from itertools import count

import pytest

from tests.ha.conftest import OpenSession, kazoo_of
from tests.ha.fake_kazoo import Ensemble
from yarnflow.core.ha.ports import MasterInfo
from yarnflow.core.messages import Fence, LeaderInfo
from yarnflow.errors import LeadershipLost, StorageUnavailable, ZooKeeperUnavailable
from yarnflow.ha.client import ZooKeeper
from yarnflow.ha.election import ZooKeeperElection
from yarnflow.ha.stores.incarnations import GrantedEpochs
from yarnflow.testing.file_system import MemoryFileSystem

LATCH = "/yarnflow/cluster/leader/latch"


@dataclass
class Candidate:
    """A contender that notes what it is told."""

    zookeeper: ZooKeeper
    name: str
    told: list[str] = field(default_factory=list)
    fence: Fence = Fence("", 0)
    fs: MemoryFileSystem | None = None

    def __post_init__(self) -> None:
        fs = self.fs
        granted = None if fs is None else GrantedEpochs(lambda uri: (fs, uri), "/ha/cluster")
        self.election = ZooKeeperElection(self.zookeeper, granted)

    def standing_by(self) -> None:
        """Like all others."""

    def granted(self, fence: Fence) -> None:
        self.fence = fence
        self.told.append(f"granted {fence.epoch}")

    def suspended(self) -> None:
        self.told.append("suspended")

    def resumed(self) -> None:
        self.told.append("resumed")

    def revoked(self) -> None:
        self.told.append("revoked")

    def stand(self) -> Candidate:
        self.election.start(self, MasterInfo(self.name, "", "", 1))
        self.zookeeper.settle()
        return self

    def after(self, event: Callable[[], None]) -> list[str]:
        """What it has been told once an event is through."""
        event()
        # the second time for what the first one has caused
        self.zookeeper.settle()
        self.zookeeper.settle()
        return self.told


def test_broken_connection_freezes_and_a_lost_session_revokes_for_good(session: OpenSession) -> None:
    candidate = Candidate(session(Ensemble()), "one").stand()
    kazoo = kazoo_of(candidate.zookeeper)
    assert candidate.told == ["granted 1"]
    assert candidate.after(kazoo.suspend) == ["granted 1", "suspended"]
    assert candidate.after(kazoo.resume) == ["granted 1", "suspended", "resumed"]
    assert candidate.after(kazoo.expire) == ["granted 1", "suspended", "resumed", "revoked"]
    assert candidate.after(lambda: kazoo.start(0)) == ["granted 1", "suspended", "resumed", "revoked"]
    assert kazoo.ensemble.children(LATCH) == []
    with pytest.raises(LeadershipLost):
        candidate.election.publish(LeaderInfo(candidate.fence, "a:1", "0", "c"))


def test_standby_is_told_nothing_until_it_leads(session: OpenSession) -> None:
    ensemble = Ensemble()
    first = Candidate(session(ensemble), "one").stand()
    second = Candidate(session(ensemble), "two").stand()
    kazoo = kazoo_of(second.zookeeper)
    for event in (kazoo.suspend, kazoo.resume, kazoo.expire, lambda: kazoo.start(0)):
        assert second.after(event) == []
    assert len(ensemble.children(LATCH)) == 2
    assert second.after(first.election.close) == ["granted 2"]
    assert first.told == ["granted 1"]


def stood_though_an_answer_was_lost(candidate: Candidate, number: int, fate: str) -> bool:
    """Stand, with the answer to one of the calls lost; False = there were not so many calls."""
    kazoo, calls = kazoo_of(candidate.zookeeper), 0

    def before() -> str:
        nonlocal calls
        calls += 1
        if calls != number + 1:
            return ""
        kazoo.suspend()
        kazoo.resume()
        return fate

    kazoo.before = before
    candidate.stand()
    candidate.zookeeper.settle()
    return calls > number


@pytest.mark.parametrize("fate", ["done", "undone"])
def test_answers_lost_on_the_way_to_the_lead_change_nothing(fate: str, session: OpenSession) -> None:
    for number in count():
        ensemble = Ensemble()
        candidate = Candidate(session(ensemble), "one")
        if not stood_though_an_answer_was_lost(candidate, number, fate):
            break
        assert [told.split()[0] for told in candidate.told if told.startswith("granted")] == ["granted"]
        assert candidate.told[-1] in (f"granted {candidate.fence.epoch}", "resumed")
        assert len(ensemble.children(LATCH)) == 1, number
        assert candidate.fence.epoch == ensemble.nodes["/yarnflow/cluster/epoch"][1].version
    assert number > 5


def test_address_of_the_last_leader_is_replaced(session: OpenSession) -> None:
    ensemble = Ensemble()
    path = "/yarnflow/cluster/leader/connection_info"
    first = Candidate(session(ensemble), "one").stand()
    first.election.publish(LeaderInfo(first.fence, "a:1", "0", "c"))
    second = Candidate(session(ensemble), "two").stand()
    # its address is still there when the next one leads
    second.after(lambda: ensemble.delete(f"{LATCH}/{min(ensemble.children(LATCH), key=lambda n: n[-10:])}"))
    assert first.after(lambda: None)[-1] == "revoked"
    second.election.publish(LeaderInfo(second.fence, "b:1", "0", "c"))
    second.election.publish(LeaderInfo(second.fence, "b:2", "0", "c"))
    assert b"b:2" in ensemble.nodes[path][0]
    first.election.close()
    assert path in ensemble.nodes
    second.election.close()
    second.election.close()
    assert path not in ensemble.nodes


def test_only_the_leader_has_its_lead_confirmed(session: OpenSession) -> None:
    ensemble = Ensemble()
    # asked for so long before it is unavailable
    first = Candidate(session(ensemble, 2_000), "one").stand()
    second = Candidate(session(ensemble), "two").stand()
    first.election.confirm(first.fence)
    with pytest.raises(LeadershipLost):
        second.election.confirm(Fence("two", 2))
    kazoo_of(first.zookeeper).suspend()
    with pytest.raises(ZooKeeperUnavailable):
        first.election.confirm(first.fence)
    kazoo_of(first.zookeeper).resume()
    first.election.confirm(first.fence)
    # halted for so long that its session went, and it has not heard of that yet
    ensemble.delete(f"{LATCH}/{min(ensemble.children(LATCH), key=lambda n: n[-10:])}")
    with pytest.raises(LeadershipLost):
        first.election.confirm(first.fence)


def test_a_zookeeper_that_was_emptied_is_recognised(session: OpenSession) -> None:
    """TaskManagers and drivers follow the leaders before and after, and never the one that has gone."""
    fs = MemoryFileSystem()
    ensemble = Ensemble()
    first = Candidate(session(ensemble), "one", fs=fs).stand()
    second = Candidate(session(ensemble), "two", fs=fs).stand()
    assert second.after(first.election.close) == ["granted 2"]
    # while the old leader has not heard of it
    empty = Ensemble()
    third = Candidate(session(empty), "three", fs=fs).stand()
    assert third.told == ["granted 1000001"]
    fourth = Candidate(session(empty), "four", fs=fs).stand()
    assert fourth.after(third.election.close) == ["granted 1000002"]
    again = Candidate(session(Ensemble()), "five", fs=fs).stand()
    assert again.told == ["granted 2000001"]
    assert len(fs.paths("/ha/cluster/epochs")) == 1


def test_a_zookeeper_that_was_restored_from_a_backup_is_recognised(session: OpenSession) -> None:
    fs, ensemble = MemoryFileSystem(), Ensemble()
    first = Candidate(session(ensemble), "one", fs=fs).stand()
    backup = deepcopy({path: node for path, node in ensemble.nodes.items() if not node[1].ephemeralOwner})
    for name in ("two", "three"):
        after = Candidate(session(ensemble), name, fs=fs).stand()
        after.after(first.election.close)
        first = after
    assert first.told == ["granted 3"]
    restored = Ensemble()
    restored.nodes = backup
    second = Candidate(session(restored), "four", fs=fs).stand()
    assert second.told == ["granted 1000001"]
    assert [name for name in restored.children("/yarnflow/cluster") if "epoch" in name] == ["epoch-1"]
    # an old leader that comes to see the restored servers must not write there, whatever they count
    zookeeper = session(restored)
    with pytest.raises(LeadershipLost):
        zookeeper.assert_leads(1)
    second.zookeeper.assert_leads(1_000_001)


@pytest.mark.parametrize("fate", ["done", "undone"])
def test_answers_lost_while_an_incarnation_begins_change_nothing(fate: str, session: OpenSession) -> None:
    for number in count():
        fs = MemoryFileSystem()
        # an epoch that is raised twice, as an answer got lost, is below it all the same
        assert GrantedEpochs(lambda uri: (fs, uri), "/ha/cluster").note(7)
        candidate = Candidate(session(Ensemble()), "two", fs=fs)
        if not stood_though_an_answer_was_lost(candidate, number, fate):
            break
        assert [told.split()[0] for told in candidate.told if told.startswith("granted")] == ["granted"]
        assert candidate.fence.epoch > 1_000_000
        candidate.zookeeper.assert_leads(candidate.fence.epoch)
    assert number > 8


def test_nobody_leads_before_it_is_known_who_has_led(session: OpenSession) -> None:
    fs = MemoryFileSystem()

    def fail(operation: str, path: str) -> None:
        raise StorageUnavailable("safe mode")

    fs.before = fail
    candidate = Candidate(session(Ensemble()), "one", fs=fs).stand()
    assert candidate.told == []
    fs.before = lambda operation, path: None
    # no look that was in vain has raised the epoch
    assert candidate.after(candidate.zookeeper.refresher(candidate.election._refresh)) == ["granted 1"]
