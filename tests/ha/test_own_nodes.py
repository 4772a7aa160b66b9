"""Whose nodes a cluster takes for its own, and whose word for the leader's."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import count
from typing import Any

import pytest
from kazoo.security import ACL, OPEN_ACL_UNSAFE, READ_ACL_UNSAFE, make_digest_acl

from tests.ha.conftest import OpenSession, kazoo_of
from tests.ha.fake_kazoo import Ensemble
from yarnflow.core.checkpoint.signature import signed
from yarnflow.core.ha.ports import MasterInfo
from yarnflow.core.json_codec import to_json
from yarnflow.core.messages import Fence, LeaderInfo
from yarnflow.errors import ForeignNode
from yarnflow.ha.client import ZooKeeper
from yarnflow.ha.cluster_end import ZooKeeperClusterEnd
from yarnflow.ha.election import ZooKeeperElection
from yarnflow.ha.own_nodes import NodeRights, described
from yarnflow.ha.retrieval import ZooKeeperRetrieval

ROOT = "/yarnflow/cluster"
LEVELS = (ROOT, f"{ROOT}/leader", f"{ROOT}/leader/latch")
LEADER = f"{ROOT}/leader/connection_info"
INFO = LeaderInfo(Fence("leader", 7), "host:1", "0", "cluster")
OTHERS = [make_digest_acl("yarnflow", "another", all=True)]


def make(ensemble: Ensemble, *paths: str, acl: Sequence[ACL] = OPEN_ACL_UNSAFE) -> None:
    """As a client that is not one of the cluster."""
    for path in paths:
        ensemble.create(path, b"", acl=acl)


def publish(ensemble: Ensemble, zookeeper: ZooKeeper, content: bytes) -> None:
    """Put in the leader's node, with the rights of the cluster's."""
    zookeeper.ensure("leader")
    ensemble.create(LEADER, content, acl=kazoo_of(zookeeper).default_acl)


def test_nodes_are_made_with_the_clusters_rights_below_a_parent_that_others_share(
    session: OpenSession,
) -> None:
    ensemble = Ensemble()
    zookeeper = session(ensemble)
    assert zookeeper.ensure("leader/latch") == zookeeper.ensure("leader", "latch") == f"{ROOT}/leader/latch"
    own = kazoo_of(zookeeper).default_acl
    made = {path: node[1].acl for path, node in ensemble.nodes.items() if path}
    assert [path for path, acl in made.items() if acl == own] == [*LEVELS]
    shared = made["/yarnflow"]
    assert described(shared) == "world:anyone:cdr"


@pytest.mark.parametrize("acl", [OPEN_ACL_UNSAFE, READ_ACL_UNSAFE, OTHERS], ids=described)
def test_foreign_node_of_any_level_is_refused_by_name(session: OpenSession, acl: Sequence[ACL]) -> None:
    for foreign in LEVELS:
        ensemble = Ensemble()
        make(ensemble, "/yarnflow")
        zookeeper = session(ensemble)
        for level in LEVELS:
            make(ensemble, level, acl=acl if level == foreign else kazoo_of(zookeeper).default_acl)
        with pytest.raises(
            ForeignNode, match=f"^{foreign} in ZooKeeper is not .*deleteall {foreign}"
        ) as error:
            zookeeper.ensure("leader", "latch")
        assert f"its ACL is {described(acl)} instead of digest:yarnflow:" in str(error.value)
        with pytest.raises(ForeignNode, match=f"^{foreign} in"):
            zookeeper.get(foreign)
        with pytest.raises(ForeignNode, match=f"^{foreign} in"):
            zookeeper.get_all([foreign])
        with pytest.raises(ForeignNode, match=f"^{foreign} in"):
            zookeeper.children(foreign)


def test_cluster_node_that_was_replaced_while_it_was_empty_is_refused(session: OpenSession) -> None:
    ensemble = Ensemble()
    make(ensemble, "/yarnflow")
    zookeeper = session(ensemble)

    def replaced_before_the_first_child() -> str:
        if ensemble.nodes.get(ROOT) and f"{ROOT}/leader" not in ensemble.nodes:
            ensemble.delete(ROOT)
            make(ensemble, ROOT)
        return ""

    kazoo_of(zookeeper).before = replaced_before_the_first_child
    with pytest.raises(ForeignNode, match=f"^{ROOT} in"):
        zookeeper.ensure("leader")


def test_node_that_is_another_one_by_the_time_its_rights_are_read_is_read_again(session: OpenSession) -> None:
    ensemble = Ensemble()
    zookeeper = session(ensemble)
    own = kazoo_of(zookeeper).default_acl
    path = zookeeper.ensure("job-keys")
    reads: list[Callable[[], tuple[bytes, Any] | None]] = [
        lambda: zookeeper.get(path),
        lambda: zookeeper.get_all([path])[0],
    ]
    for read in reads:
        ensemble.delete(path)
        ensemble.create(path, b"of somebody else")
        requests = count()

        def ours_after_the_content(requests: count[int] = requests) -> str:
            if next(requests) == 1:
                ensemble.delete(path)
                ensemble.create(path, b"ours", acl=own)
            return ""

        kazoo_of(zookeeper).before = ours_after_the_content
        found = read()
        assert found is not None
        assert found[0] == b"ours"


def test_open_cluster_takes_every_node(session: OpenSession) -> None:
    ensemble = Ensemble()
    make(ensemble, "/yarnflow", ROOT, acl=OTHERS)
    zookeeper = session(ensemble, protected=False)
    path = zookeeper.ensure("leader")
    assert zookeeper.children(ROOT) == ["leader"]
    assert zookeeper.get(path) is not None
    assert zookeeper.get_all([ROOT])[0] is not None
    assert ensemble.nodes[path][1].acl == OPEN_ACL_UNSAFE


def test_what_everybody_may_do_at_the_shared_parent() -> None:
    rights = NodeRights("password")
    assert rights.excess(rights.shared) == ""
    assert rights.excess(OPEN_ACL_UNSAFE) == "wa"
    assert NodeRights(None).excess(OPEN_ACL_UNSAFE) == ""


@pytest.mark.parametrize("acl", [OPEN_ACL_UNSAFE, OTHERS], ids=described)
def test_last_node_of_a_cluster_goes_unless_only_others_may_delete_it(
    session: OpenSession, acl: Sequence[ACL]
) -> None:
    ensemble = Ensemble()
    make(ensemble, "/yarnflow", acl=acl)
    zookeeper = session(ensemble)
    zookeeper.ensure("leader", "latch")
    ZooKeeperClusterEnd(zookeeper).remove_cluster()
    assert sorted(ensemble.nodes) == ["", "/yarnflow", *([ROOT] if acl == OTHERS else [])]
    ZooKeeperClusterEnd(zookeeper).remove_cluster()
    zookeeper.ensure("leader")


def test_cluster_of_somebody_else_is_not_deleted(session: OpenSession) -> None:
    ensemble = Ensemble()
    make(ensemble, "/yarnflow", ROOT, f"{ROOT}/leader")
    with pytest.raises(ForeignNode, match=f"^{ROOT} in"):
        ZooKeeperClusterEnd(session(ensemble)).remove_cluster()
    assert f"{ROOT}/leader" in ensemble.nodes


def test_candidate_that_is_not_signed_has_no_address(
    session: OpenSession, caplog: pytest.LogCaptureFixture
) -> None:
    ensemble = Ensemble()
    zookeeper = session(ensemble)
    latch = zookeeper.ensure("leader", "latch")
    content = to_json(MasterInfo("id", "attacker:1", "host", 1)).encode()
    election = ZooKeeperElection(zookeeper)
    own = kazoo_of(zookeeper).default_acl
    ensemble.create(f"{latch}/_c_x-latch-", content, 7, sequence=True, acl=own)
    ensemble.create(
        f"{latch}/_c_y-latch-", signed(content, zookeeper.key_of(latch)), 8, sequence=True, acl=own
    )
    assert [master.address for master in election.masters()] == ["", "attacker:1"]
    assert "not signed with this cluster's secret, so attacker:1 is not called" in caplog.text


def test_leader_is_known_by_its_signature(session: OpenSession) -> None:
    ensemble = Ensemble()
    zookeeper = session(ensemble)
    publish(ensemble, zookeeper, signed(to_json(INFO).encode(), zookeeper.key_of(LEADER)))
    assert ZooKeeperRetrieval(zookeeper).leader() == INFO


def test_leader_that_is_not_signed_or_not_so_is_refused(
    session: OpenSession, caplog: pytest.LogCaptureFixture
) -> None:
    ensemble = Ensemble()
    zookeeper = session(ensemble)
    content, key = to_json(INFO).encode(), zookeeper.key_of(LEADER)
    changed = {**json.loads(signed(content, key)), "address": "attacker:1"}
    refused = [
        content,
        signed(content, b""),
        signed(content, zookeeper.key_of("/yarnflow/other/leader/connection_info")),
        signed(content, session(ensemble, secret=b"another").key_of(LEADER)),
        json.dumps(changed).encode(),
        json.dumps({**changed, "signature": 1}).encode(),
    ]
    told: list[LeaderInfo | None] = []
    publish(ensemble, zookeeper, signed(content, key))
    retrieval = ZooKeeperRetrieval(zookeeper)
    retrieval.on_leader(told.append)
    zookeeper.settle()
    assert told == [INFO]
    for forged in refused:
        ensemble.set(LEADER, forged)
        with pytest.raises(ForeignNode, match=f"^{LEADER} in ZooKeeper names .* not signed"):
            retrieval.leader()
    with caplog.at_level(logging.WARNING):
        zookeeper.settle()
    assert told == [INFO, None]
    assert "No leader is known" in caplog.text
    newer = replace(INFO, fence=Fence("next", 8))
    ensemble.set(LEADER, signed(to_json(newer).encode(), key))
    zookeeper.settle()
    assert told == [INFO, None, newer]
