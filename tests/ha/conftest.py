"""Sessions at a ZooKeeper in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch
from weakref import WeakKeyDictionary

import pytest

from tests.ha.fake_kazoo import Ensemble, FakeKazooClient
from yarnflow.ha.client import ZooKeeper, open_zookeeper
from yarnflow.ha.settings import ZooKeeperSettings

OpenSession = Callable[..., ZooKeeper]
#: sessions of tests that run → their clients
_CLIENTS: WeakKeyDictionary[ZooKeeper, FakeKazooClient] = WeakKeyDictionary()


@pytest.fixture
def session() -> Iterator[OpenSession]:
    """Opens sessions at an ensemble; they are closed after the test."""
    opened: list[ZooKeeper] = []

    def open_one(
        ensemble: Ensemble,
        session_timeout_ms: int = 60_000,
        sessions: Path | None = None,
        *,
        secret: bytes = b"secret",
        protected: bool = True,
    ) -> ZooKeeper:
        settings = ZooKeeperSettings(
            "zk:2181", "/yarnflow/cluster", session_timeout_ms=session_timeout_ms, protected=protected
        )
        clients: list[FakeKazooClient] = []

        def connect(**options: Any) -> FakeKazooClient:
            clients.append(FakeKazooClient(ensemble, **options))
            return clients[-1]

        with patch("yarnflow.ha.connection.KazooClient", connect):
            opened.append(open_zookeeper(settings, secret, sessions))
        (_CLIENTS[opened[-1]],) = clients
        return opened[-1]

    yield open_one
    for zookeeper in opened:
        zookeeper.close()


def kazoo_of(zookeeper: ZooKeeper) -> FakeKazooClient:
    """The client behind a session."""
    return _CLIENTS[zookeeper]


def raise_epoch(zookeeper: ZooKeeper) -> int:
    """What a master does that is elected; returns the new epoch."""
    path = zookeeper.ensure("epoch")
    found = zookeeper.get(path)
    assert found is not None
    version = int(found[1].version)
    zookeeper.transact("raise the epoch", lambda t: t.set_data(path, b"", version))
    return version + 1
