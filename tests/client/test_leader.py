"""Following the leader: nothing that may be repeated is lost, nothing else is done twice."""

from __future__ import annotations

import pickle
from collections.abc import Callable

import pytest

from tests.client.fakes import Listener
from tests.patience import PATIENCE
from yarnflow.client.job_client import ClusterJobClient
from yarnflow.client.job_watch import LEADER_CHANGED
from yarnflow.client.leader import LeaderFollowingDispatcher
from yarnflow.core.collect.parts import CollectedPage
from yarnflow.core.ids import JobId
from yarnflow.core.messages import ClusterOverview, Fence, JobDetails, LeaderInfo
from yarnflow.core.ports import DispatcherGateway
from yarnflow.core.states import JobStatus
from yarnflow.errors import (
    AuthenticationFailed,
    JobNotFound,
    LeadershipLost,
    RpcTimeout,
    RpcUnavailable,
    StaleEpoch,
    YarnflowError,
    ZooKeeperUnavailable,
)
from yarnflow.testing.gateways.dispatcher import FakeDispatcher
from yarnflow.testing.ha.leader_retrieval import FakeLeaderRetrieval

JOB = JobId("ab" * 16)


class Master(FakeDispatcher):
    """One master: what it says of the leader, and what it answers to anything else."""

    def __init__(self, cluster: Cluster, address: str) -> None:
        super().__init__([JobStatus.RUNNING, JobStatus.RUNNING, JobStatus.FINISHED])
        self.cluster = cluster
        self.address = address
        self.down: YarnflowError | None = None
        #: whom it takes for leader; None = whom the cluster does
        self.believes: tuple[str, int] | None = None
        self.calls: list[str] = []
        self.shut_down = 0

    def leader(self) -> LeaderInfo:
        self.calls.append("leader")
        if self.down is not None:
            raise self.down
        address, epoch = self.believes or self.cluster.leads
        if not address:
            raise LeadershipLost("no master leads at the moment")
        return LeaderInfo(Fence(f"leader-{epoch}", epoch), address, "0", "c")

    def cluster_overview(self) -> ClusterOverview:
        self._answer("cluster_overview")
        return super().cluster_overview()

    def shut_down_cluster(self) -> None:
        self.shut_down += 1
        self._answer("shut_down_cluster")

    def await_job_change(self, job_id: JobId, seen_version: int, timeout_ms: int) -> JobDetails:
        self._answer("await_job_change")
        return super().await_job_change(job_id, seen_version, timeout_ms)

    def _answer(self, call: str) -> None:
        self.calls.append(call)
        if self.down is not None:
            raise self.down
        if self.cluster.leads[0] != self.address:
            raise LeadershipLost(f"this master is a standby; the leader is at {self.cluster.leads[0]}")


class Cluster:
    """Masters a:1, b:1 and c:1 and the time."""

    def __init__(self) -> None:
        #: address and epoch; an empty address = none
        self.leads: tuple[str, int] = ("a:1", 1)
        self.masters = {address: Master(self, address) for address in ("a:1", "b:1", "c:1")}
        self.now_s = 0.0
        self.steps: list[Callable[[], None]] = []
        self.slept = 0

    def sleep(self, seconds: float) -> None:
        self.slept += 1
        self.now_s += seconds
        if self.steps:
            self.steps.pop(0)()

    def follower(
        self, *addresses: str, known: Callable[[], tuple[str, ...]] | None = None, **options: object
    ) -> LeaderFollowingDispatcher:
        return LeaderFollowingDispatcher(
            self.masters.__getitem__,
            known or (lambda: addresses or tuple(self.masters)),
            sleep=self.sleep,
            now=lambda: self.now_s,
            timeout_ms=10_000,
            **options,  # type: ignore[arg-type]
        )

    def fail_over(self, to: str, epoch: int, old: YarnflowError | None = None) -> None:
        self.masters[self.leads[0]].down = old or RpcUnavailable("nobody listens")
        self.leads = (to, epoch)


def test_a_standby_that_is_asked_leads_to_the_leader() -> None:
    cluster = Cluster()
    cluster.leads = ("c:1", 4)
    follower = cluster.follower("b:1")
    followed_at_first = follower.followed
    assert followed_at_first is None
    follower.cluster_overview()
    assert cluster.masters["b:1"].calls == ["leader"]
    assert cluster.masters["c:1"].calls == ["cluster_overview"]
    assert follower.followed == Fence("leader-4", 4)
    assert cluster.slept == 0


def test_a_leader_that_is_started_again_at_its_address_is_followed_by_its_gateway() -> None:
    cluster = Cluster()
    follower = cluster.follower()
    follower.cluster_overview()
    cluster.masters["a:1"].known_fence = Fence("leader-2", 2)
    assert follower.followed == Fence("leader-2", 2)


@pytest.mark.parametrize(
    "error", [RpcUnavailable("x"), RpcTimeout("x"), LeadershipLost("x"), StaleEpoch("x")]
)
def test_the_call_goes_on_at_the_next_leader(error: YarnflowError) -> None:
    cluster = Cluster()
    follower = cluster.follower()
    follower.cluster_overview()
    cluster.fail_over("b:1", 2, error)
    follower.cluster_overview()
    assert follower.followed == Fence("leader-2", 2)
    # the one that failed is asked last: it may be frozen
    assert cluster.masters["a:1"].calls.count("leader") == 1


def test_an_election_is_waited_for() -> None:
    cluster = Cluster()
    follower = cluster.follower()
    follower.cluster_overview()
    cluster.fail_over("", 1)
    for master in ("b:1", "c:1"):
        cluster.masters[master].believes = ("a:1", 1)

    def elect() -> None:
        cluster.leads = ("c:1", 2)
        for master in cluster.masters.values():
            master.believes = None

    cluster.steps = [lambda: None, lambda: None, elect]
    follower.cluster_overview()
    assert follower.followed == Fence("leader-2", 2)
    assert cluster.slept == 3


def test_patience_has_an_end() -> None:
    cluster = Cluster()
    follower = cluster.follower()
    for master in cluster.masters.values():
        master.down = RpcUnavailable("nobody listens")
    with pytest.raises(RpcUnavailable, match="no master answers at a:1, b:1, c:1: nobody listens"):
        follower.cluster_overview()
    assert 10.0 <= cluster.now_s < 11.0


def test_that_there_is_no_leader_is_said_rather_than_that_one_master_is_gone() -> None:
    cluster = Cluster()
    cluster.leads = ("", 0)
    cluster.masters["a:1"].down = RpcUnavailable("nobody listens")
    with pytest.raises(LeadershipLost):
        cluster.follower().cluster_overview()


def test_a_cluster_that_is_over_is_not_waited_for() -> None:
    cluster = Cluster()
    over: list[bool] = []
    follower = cluster.follower(is_over=lambda: bool(over))
    follower.cluster_overview()
    over.append(True)
    cluster.fail_over("", 1)
    with pytest.raises(RpcUnavailable):
        follower.cluster_overview()
    assert cluster.slept == 0


@pytest.mark.parametrize("error", [JobNotFound("no job"), AuthenticationFailed("wrong secret")])
def test_real_answers_are_no_failover(error: YarnflowError) -> None:
    cluster = Cluster()
    cluster.masters["a:1"].down = error
    follower = cluster.follower("a:1")
    with pytest.raises(type(error)):
        follower.cluster_overview()
    assert cluster.slept == 0


def test_the_end_of_the_cluster_is_not_asked_for_twice() -> None:
    cluster = Cluster()
    follower = cluster.follower()
    follower.cluster_overview()
    cluster.fail_over("b:1", 2, RpcTimeout("no answer"))
    with pytest.raises(RpcTimeout):
        follower.shut_down_cluster()
    assert cluster.masters["b:1"].shut_down == 0
    # but a refusal is no doubt
    cluster.masters["a:1"].down = None
    cluster.leads = ("b:1", 3)
    follower.cluster_overview()
    cluster.leads = ("c:1", 4)
    follower.shut_down_cluster()
    assert cluster.masters["c:1"].shut_down == 1


def _info(address: str, epoch: int) -> LeaderInfo:
    return LeaderInfo(Fence(f"leader-{epoch}", epoch), address, "0", "c")


def test_zookeeper_is_asked_before_any_master() -> None:
    cluster = Cluster()
    retrieval = FakeLeaderRetrieval(_info("a:1", 1))
    follower = cluster.follower(known=lambda: (), retrieval=retrieval)
    follower.cluster_overview()
    cluster.fail_over("b:1", 2)
    retrieval.set_leader(None)
    cluster.steps = [lambda: retrieval.set_leader(_info("b:1", 2))]
    follower.cluster_overview()
    assert follower.followed == Fence("leader-2", 2)
    assert not any("leader" in master.calls for master in cluster.masters.values())


def test_masters_are_asked_when_zookeeper_is_not_there() -> None:
    cluster = Cluster()
    retrieval = FakeLeaderRetrieval(_info("a:1", 1))
    follower = cluster.follower("b:1", retrieval=retrieval)
    follower.cluster_overview()
    retrieval.error = ZooKeeperUnavailable("no quorum")
    cluster.fail_over("c:1", 2)
    follower.cluster_overview()
    assert follower.followed == Fence("leader-2", 2)


def test_connecting_does_not_wait_for_masters_that_are_not_there() -> None:
    cluster = Cluster()
    for master in cluster.masters.values():
        master.down = RpcUnavailable("nobody listens")
    with pytest.raises(RpcUnavailable):
        cluster.follower().connect()
    assert cluster.slept == 0


def test_connecting_waits_for_an_election() -> None:
    cluster = Cluster()
    cluster.leads = ("", 0)
    cluster.steps = [lambda: None, lambda: setattr(cluster, "leads", ("b:1", 1))]
    cluster.follower().connect()
    assert cluster.slept == 2


class Connection:
    owned = False
    named_by = ""

    def __init__(self, gateway: LeaderFollowingDispatcher) -> None:
        self._gateway = gateway

    def gateway(self) -> LeaderFollowingDispatcher:
        return self._gateway

    def present_gateway(self) -> DispatcherGateway | None:
        return self._gateway.present

    def followed(self) -> Fence | None:
        return self._gateway.followed

    def failure(self) -> YarnflowError | None:
        return None

    def final_details(self, job_id: JobId) -> JobDetails | None:
        return None


def test_an_attached_submit_shows_a_failover_as_one_line() -> None:
    cluster = Cluster()
    follower = cluster.follower()
    cluster.masters["a:1"].on_poll = lambda version: cluster.fail_over("b:1", 2) if version == 1 else None
    # the poll of the dying master is still answered; the next one goes elsewhere
    listener = Listener()
    client = ClusterJobClient(Connection(follower), JOB, "flights", listener)
    details = client.await_result(timeout_s=PATIENCE.thread_s)
    assert details.overview.status is JobStatus.FINISHED
    assert listener.notes == [LEADER_CHANGED]


def test_elements_go_on_at_the_next_leader_after_what_the_program_has() -> None:
    cluster = Cluster()
    follower = cluster.follower()
    first, second = cluster.masters["a:1"], cluster.masters["b:1"]
    first.pages = [CollectedPage((pickle.dumps([1, 2]),), "1")]
    second.pages = [CollectedPage((pickle.dumps([3]),), "2"), CollectedPage((), "2", ended=True)]

    def before(method: str) -> None:
        if method == "await_collected" and not first.pages:
            cluster.fail_over("b:1", 2)

    first.before = before
    elements = ClusterJobClient(Connection(follower), JOB, "flights").collected()
    assert list(elements) == [1, 2, 3]
    assert (first.positions, second.positions) == ([""], ["1", "2"])
