"""Sessions at a ZooKeeper in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from unittest.mock import patch

import pytest

from tests.ha.fake_kazoo import Ensemble, FakeKazooClient
from yarnflow.ha.client import ZooKeeper, open_zookeeper
from yarnflow.ha.settings import ZooKeeperSettings

OpenSession = Callable[..., ZooKeeper]


@pytest.fixture
def session() -> Iterator[OpenSession]:
    """Opens sessions at an ensemble; they are closed after the test."""
    opened: list[ZooKeeper] = []

    def open_one(
        ensemble: Ensemble, session_timeout_ms: int = 60_000, sessions: Path | None = None
    ) -> ZooKeeper:
        settings = ZooKeeperSettings("zk:2181", "/yarnflow/cluster", session_timeout_ms=session_timeout_ms)
        with patch("yarnflow.ha.connection.KazooClient", partial(FakeKazooClient, ensemble)):
            opened.append(open_zookeeper(settings, b"secret", sessions))
        return opened[-1]

    yield open_one
    for zookeeper in opened:
        zookeeper.close()


def kazoo_of(zookeeper: ZooKeeper) -> FakeKazooClient:
    """The client behind a session."""
    client = zookeeper._connection.client
    assert isinstance(client, FakeKazooClient)
    return client


def raise_epoch(zookeeper: ZooKeeper) -> int:
    """What a master does that is elected; returns the new epoch."""
    path = zookeeper.ensure("epoch")
    found = zookeeper.get(path)
    assert found is not None
    version = int(found[1].version)
    zookeeper.transact("raise the epoch", lambda t: t.set_data(path, b"", version))
    return version + 1
