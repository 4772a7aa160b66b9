"""Sessions at ZooKeeper of a cluster of the test's own."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from kazoo.client import KazooClient

from integration.hadoop import HadoopCluster
from tests.patience import PATIENCE
from yarnflow.ha.services import ZooKeeper, ZooKeeperSettings, open_zookeeper

SECRET = b"of the tests"
#: the longest a server grants by default; nobody in a test waits for it
LONG_MS = 40_000


@dataclass
class Cluster:
    """One cluster's place in ZooKeeper; every session of it is closed after the test."""

    settings: ZooKeeperSettings
    opened: list[ZooKeeper] = field(default_factory=list)

    def session(self, sessions: Path | None = None, timeout_ms: int = 0) -> ZooKeeper:
        """Another process's session, so to speak."""
        settings = replace(self.settings, session_timeout_ms=timeout_ms or self.settings.session_timeout_ms)
        self.opened.append(open_zookeeper(settings, SECRET, sessions))
        return self.opened[-1]

    def end(self) -> None:
        """Close the sessions and delete the cluster."""
        for zookeeper in self.opened:
            zookeeper.close()
        last = open_zookeeper(self.settings, SECRET, None)
        last.delete_cluster()
        last.close()


def end_session_of(zookeeper: ZooKeeper) -> None:
    """End a session behind its owner's back, as ZooKeeper does after its time-out."""
    thief = KazooClient(
        hosts=zookeeper.settings.quorum, client_id=zookeeper._connection.client.client_id  # noqa: SLF001
    )
    thief.start(timeout=PATIENCE.answer_s)
    thief.stop()
    thief.close()


@pytest.fixture
def cluster(hadoop: HadoopCluster) -> Iterator[Cluster]:
    """A cluster with nothing in it; its sessions last as long as servers allow."""
    found = Cluster(ZooKeeperSettings(hadoop.zookeeper, f"/yarnflow-tests/{secrets.token_hex(6)}", LONG_MS))
    yield found
    found.end()


@pytest.fixture
def fragile(hadoop: HadoopCluster) -> Iterator[Cluster]:
    """A cluster on servers that the test stops; they run again at its end."""
    found = Cluster(
        ZooKeeperSettings(
            hadoop.zookeeper, f"/yarnflow-tests/{secrets.token_hex(6)}", 6_000, max_retry_wait_ms=1_000
        )
    )
    yield found
    found.end()
