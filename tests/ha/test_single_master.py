"""An election with one candidate: granted at once, and for good."""

from __future__ import annotations

from collections.abc import Sequence

from yarnflow.core.cluster_result import ClusterResult
from yarnflow.core.ha.ports import MasterInfo
from yarnflow.core.messages import Fence, LeaderInfo
from yarnflow.core.states import JobStatus
from yarnflow.ha.single_master import SingleMasterElection, SingleMasterEnd, SingleMasterRetrieval

ME = MasterInfo("m", "a:1", "a", 1)
LEADER = LeaderInfo(Fence("l", 1), "a:1", "0", "c")


class Contender:
    def __init__(self) -> None:
        self.told: list[object] = []

    def standing_by(self) -> None:
        self.told.append("standing by")

    def granted(self, fence: Fence) -> None:
        self.told.append(fence)

    def suspended(self) -> None:
        self.told.append("suspended")

    def resumed(self) -> None:
        self.told.append("resumed")

    def revoked(self) -> None:
        self.told.append("revoked")


def test_the_only_candidate_leads_before_start_returns_and_never_stands_by() -> None:
    contender, seen = Contender(), list[Sequence[MasterInfo]]()
    election = SingleMasterElection("l", SingleMasterRetrieval())
    election.on_masters(seen.append)
    assert election.masters() == ()
    election.start(contender, ME)
    assert contender.told == [Fence("l", 1)]
    assert seen == [(), (ME,)] and election.masters() == (ME,)


def test_nothing_takes_the_lead_away() -> None:
    contender = Contender()
    election = SingleMasterElection("l", SingleMasterRetrieval())
    election.start(contender, ME)
    election.confirm(Fence("l", 1))
    election.close()
    election.close()
    assert contender.told == [Fence("l", 1)] and election.masters() == ()


def test_the_leader_is_known_in_its_process_once_it_is_published() -> None:
    retrieval, told = SingleMasterRetrieval(), list[LeaderInfo | None]()
    election = SingleMasterElection("l", retrieval)
    retrieval.on_leader(told.append)
    election.start(Contender(), ME)
    assert retrieval.leader() is None, "it cannot be called yet"
    election.publish(LEADER)
    assert retrieval.leader() == LEADER and told == [None, LEADER]
    assert not retrieval.may_change
    retrieval.close()


def test_the_end_of_the_cluster_is_its_own_affair() -> None:
    told: list[ClusterResult] = []
    end = SingleMasterEnd()
    end.on_ended(told.append)
    end.declare(ClusterResult(JobStatus.FINISHED))
    end.remove_cluster()
    assert told == []
