"""Who leads, on a real quorum."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import closing
from dataclasses import asdict
from pathlib import Path

import pytest

from integration.conftest import wait_until
from integration.ha.conftest import LONG_MS, Cluster, end_session_of
from integration.ha.masters import Master
from yarnflow.core.cluster_result import ClusterResult
from yarnflow.core.messages import LeaderInfo
from yarnflow.core.states import JobStatus
from yarnflow.errors import HaError, LeadershipLost, ZooKeeperUnavailable
from yarnflow.ha.services import (
    ZooKeeperClusterEnd,
    ZooKeeperRetrieval,
    ZooKeeperSettings,
    open_zookeeper,
)
from yarnflow.ha.sessions import close_session_of

pytestmark = pytest.mark.may_rerun("ZooKeeper decides when a session is over")

_CANDIDATE = """
import json, sys
from pathlib import Path
from integration.ha.conftest import SECRET
from integration.ha.masters import Master
from yarnflow.ha.services import ZooKeeperSettings, open_zookeeper
zookeeper = open_zookeeper(ZooKeeperSettings(**json.loads(sys.argv[1])), SECRET, Path(sys.argv[2]))
print(Master(zookeeper, "killed").lead().fence.epoch, flush=True)
sys.stdin.read()
"""


@pytest.mark.gate
def test_one_leads_and_the_next_follows_it(cluster: Cluster) -> None:
    counter = cluster.session()
    uninvolved = Master(counter, "uninvolved")
    assert uninvolved.election.masters() == ()
    first = Master(cluster.session(), "first").lead()
    second = Master(cluster.session(), "second").stand()
    wait_until(lambda: len(uninvolved.election.masters()) == 2, "both candidates")
    masters = uninvolved.election.masters()
    assert [master.master_id for master in masters] == ["first", "second"]
    assert masters[0].sequence < masters[1].sequence
    assert second.told == []

    retrieval = ZooKeeperRetrieval(counter)
    known: list[LeaderInfo | None] = []
    retrieval.on_leader(known.append)
    assert retrieval.leader() == first.leader_info
    wait_until(lambda: known[-1:] == [first.leader_info], "the leader to be known")

    first.election.close()
    second.await_lead()
    assert second.fence.epoch == first.fence.epoch + 1 and second.fence.leader_id != first.fence.leader_id
    wait_until(lambda: known[-1] is None, "that nobody can be reached")
    with pytest.raises(LeadershipLost):
        first.election.publish(first.leader_info)
    second.election.publish(second.leader_info)
    wait_until(lambda: known[-1] == second.leader_info, "the second to be known")
    retrieval.close()
    second.election.close()
    assert retrieval.leader() is None
    counter.settle()
    assert known[-1] == second.leader_info
    assert first.told == second.told == ["granted"]


@pytest.mark.gate
def test_killed_leader_is_followed_as_soon_as_its_session_is_closed(cluster: Cluster, tmp_path: Path) -> None:
    settings = cluster.settings
    leader = subprocess.Popen(
        [sys.executable, "-c", _CANDIDATE, json.dumps(asdict(settings)), str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with leader:
        assert leader.stdout is not None
        epoch = int(leader.stdout.readline())
        file = tmp_path / f"{leader.pid}.json"
        assert file.stat().st_mode & 0o777 == 0o600
        standby = Master(cluster.session(), "standby").stand()
        leader.kill()
    assert standby.told == []
    assert close_session_of(tmp_path, leader.pid, settings)
    # in less than half the time after which it would lead anyway
    wait_until(lambda: standby.fence.epoch, "the standby to lead", LONG_MS / 2000)
    assert standby.fence.epoch == epoch + 1
    assert not file.exists()
    assert not close_session_of(tmp_path, leader.pid, settings)


@pytest.mark.gate
def test_over_session_revokes_for_good(cluster: Cluster) -> None:
    first = Master(cluster.session(), "first").lead()
    second = Master(cluster.session(), "second").stand()
    end_session_of(first.zookeeper)
    second.await_lead()
    wait_until(lambda: first.told[-1] == "revoked", "the first to know")
    assert second.fence.epoch > first.fence.epoch
    second.election.close()
    # its process ends; it must not lead again before
    wait_until(lambda: first.election.masters() == (), "no candidate to be left")
    assert first.told.count("granted") == 1


def test_standby_whose_session_is_over_stands_again(cluster: Cluster) -> None:
    first = Master(cluster.session(), "first").lead()
    second = Master(cluster.session(), "second").stand()
    wait_until(lambda: len(first.election.masters()) == 2, "both candidates")
    sequence = first.election.masters()[1].sequence
    end_session_of(second.zookeeper)
    wait_until(
        lambda: any(master.sequence > sequence for master in first.election.masters()), "its second candidacy"
    )
    assert second.told == []
    first.election.close()
    second.await_lead()


def test_leader_whose_latch_is_deleted_is_revoked(cluster: Cluster) -> None:
    leader = Master(cluster.session(), "leader").lead()
    other = cluster.session()
    other.delete_tree(other.path("leader/latch"))
    wait_until(lambda: leader.told[-1] == "revoked", "the leader to know")


# kazoo's thread says goodbye
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_connection_that_ends_by_an_error_of_the_client_comes_back(cluster: Cluster) -> None:
    master = Master(cluster.session(), "master").stand()
    master.await_lead()
    handler = master.zookeeper._connection.client._connection
    read = handler._read_socket

    def broken(timeout: float) -> object:
        handler._read_socket = read
        raise IndexError("pop from an empty deque")

    handler._read_socket = broken
    # kazoo forgets the session it had
    wait_until(lambda: master.told[-1] == "revoked", "the leader to know")
    wait_until(lambda: master.zookeeper.children(master.zookeeper.path()), "an answer")


def test_end_of_the_cluster_reaches_all_masters(cluster: Cluster) -> None:
    result = ClusterResult(JobStatus.FINISHED, "all is well")
    leader = Master(cluster.session(), "leader").lead()
    standby = cluster.session()
    told: list[ClusterResult] = []
    ZooKeeperClusterEnd(standby).on_ended(told.append)
    with pytest.raises(LeadershipLost, match="only the leader"):
        ZooKeeperClusterEnd(standby).declare(result)
    assert told == []
    end = ZooKeeperClusterEnd(leader.zookeeper)
    end.declare(result)
    end.declare(ClusterResult(JobStatus.FAILED))
    wait_until(lambda: told, "the standby to know")
    late: list[ClusterResult] = []
    ZooKeeperClusterEnd(cluster.session()).on_ended(late.append)
    assert told == late == [result]
    end.remove_cluster()
    # the standby asks another server, which may still have it
    wait_until(lambda: standby.get(standby.path()) is None, "the standby to see it removed")
    end.remove_cluster()


@pytest.mark.gate
def test_others_cannot_touch_what_a_cluster_keeps(cluster: Cluster) -> None:
    own = cluster.session()
    own.ensure("jobs")
    stranger = open_zookeeper(cluster.settings, b"another", None)
    try:
        with pytest.raises(HaError, match="another secret"):
            stranger.children(stranger.path("jobs"))
        with pytest.raises(HaError, match="another secret"):
            stranger.ensure("jobs/x")
        neighbour = ZooKeeperSettings(cluster.settings.quorum, f"{cluster.settings.root}-neighbour", 6_000)
        with closing(open_zookeeper(neighbour, b"another", None)) as friend:
            friend.ensure("jobs")
            friend.delete_cluster()
            # below a parent that another cluster has made
            assert friend.get(friend.path()) is None
    finally:
        stranger.close()


@pytest.mark.gate
def test_no_server_is_one_clear_error() -> None:
    with pytest.raises(ZooKeeperUnavailable, match="no ZooKeeper server of localhost:1 answered"):
        open_zookeeper(ZooKeeperSettings("localhost:1", "/x", connection_timeout_ms=500), b"", None)


def test_session_file_is_gone_after_an_orderly_end(cluster: Cluster, tmp_path: Path) -> None:
    zookeeper = cluster.session(tmp_path / "sessions")
    assert (tmp_path / "sessions" / f"{os.getpid()}.json").exists()
    assert (tmp_path / "sessions").stat().st_mode & 0o777 == 0o700
    zookeeper.close()
    assert list((tmp_path / "sessions").iterdir()) == []
