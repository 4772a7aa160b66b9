"""Servers that stop, and run again at the end of each test."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from integration.conftest import wait_until
from integration.ha.conftest import Cluster
from integration.ha.masters import Master
from integration.ha.test_leases import JOB, info, stores_of
from integration.ha.test_stores import submission
from integration.hadoop import HadoopCluster
from yarnflow.errors import LeaseLost, ZooKeeperUnavailable
from yarnflow.ha.services import ZooKeeperLease, ZooKeeperRetrieval

SERVERS = ("zookeeper-1", "zookeeper-2", "zookeeper-3")


@contextmanager
def halted(quorum: HadoopCluster) -> Iterator[None]:
    """All servers keep their connections and answer nothing."""
    for server in SERVERS:
        quorum.pause(server)
    try:
        yield
    finally:
        for server in SERVERS:
            quorum.resume(server)


def test_each_server_can_restart_within_the_session(
    hadoop: HadoopCluster, fragile: Cluster, tmp_path: Path
) -> None:
    leader = Master(fragile.session(timeout_ms=40_000), "leader").lead()
    standby = Master(fragile.session(timeout_ms=40_000), "standby").stand()
    for number, server in enumerate(SERVERS):
        hadoop.kill(server)
        # whoever was connected to it goes on at another one
        stores_of(leader, tmp_path).checkpoints(JOB, str(tmp_path / "job")).next_id()
        hadoop.restart(server)
        assert len(wait_until(standby.election.masters, "the masters")) == 2, number
    wait_until(lambda: leader.told[-1] in ("granted", "resumed"), "the leader to be connected")
    assert "revoked" not in leader.told and standby.told == []
    assert stores_of(leader, tmp_path).checkpoints(JOB, str(tmp_path / "job")).next_id() >= 4


@pytest.mark.gate
def test_restart_of_the_whole_quorum_freezes_the_leader_and_no_more(
    hadoop: HadoopCluster, fragile: Cluster, tmp_path: Path
) -> None:
    leader = Master(fragile.session(timeout_ms=40_000), "leader").lead()
    standby = Master(fragile.session(timeout_ms=40_000), "standby").stand()
    wait_until(lambda: len(standby.election.masters()) == 2, "both candidates")
    for server in SERVERS:
        hadoop.kill(server)
    wait_until(lambda: leader.told[-1] == "suspended", "the leader to be frozen")
    hadoop.restart_quorum(SERVERS)
    wait_until(lambda: leader.told[-1] == "resumed", "the leader to go on")
    stores_of(leader, tmp_path).job_graphs.put(submission(JOB))
    # the connection may break again while the servers find each other
    assert set(leader.told[1:]) == {"suspended", "resumed"} and standby.told == []


def test_nobody_waits_for_ever_while_no_server_answers(
    hadoop: HadoopCluster, fragile: Cluster, tmp_path: Path
) -> None:
    leader = Master(fragile.session(), "leader").lead()
    retrieval = ZooKeeperRetrieval(fragile.session())
    lease = ZooKeeperLease(fragile.session(), JOB)
    lost: list[str] = []
    lease.on_lost(lost.append)
    lease.acquire(info("driver"), 60_000)
    with halted(hadoop):
        wait_until(lambda: lost, "the driver to stop")
        with pytest.raises(LeaseLost):
            lease.check()
        wait_until(lambda: leader.told[-1] == "suspended", "the leader to be frozen")
        with pytest.raises(ZooKeeperUnavailable, match="did not answer"):
            retrieval.leader()
        with pytest.raises(ZooKeeperUnavailable):
            stores_of(leader, tmp_path).job_graphs.put(submission(JOB))
    # ZooKeeper decides which: it may have counted the time it was halted for
    wait_until(lambda: leader.told[-1] in ("resumed", "revoked"), "the leader to know")
    # what was lost once is never had again
    with pytest.raises(LeaseLost):
        lease.check()


def test_servers_that_have_lost_their_data_are_connected_to_again(
    hadoop: HadoopCluster, fragile: Cluster
) -> None:
    """They refuse who has seen more changes than they know: for the time of a session, and no longer."""
    leader = Master(fragile.session(), "leader").lead()
    watcher = ZooKeeperRetrieval(fragile.session())
    assert watcher.leader() is not None
    before = leader.zookeeper.session_id
    for server in SERVERS:
        hadoop.kill(server)
    for server in SERVERS:
        shutil.rmtree(hadoop.folder / "data" / server / "version-2")
    hadoop.restart_quorum(SERVERS)
    wait_until(lambda: leader.told[-1] == "revoked", "the leader to know")
    wait_until(lambda: leader.zookeeper.session_id != before, "the leader to be connected again")
    # a master that led begins anew as another candidate
    following = Master(leader.zookeeper, "following").lead()
    wait_until(lambda: watcher.leader() == following.leader_info, "others to see it")
