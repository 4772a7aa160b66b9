"""Who leads now, for those who do not stand for election.  Flink: ``ZooKeeperLeaderRetrievalDriver``."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from yarnflow.core.json_codec import from_json
from yarnflow.core.messages import LeaderInfo
from yarnflow.errors import HaError, RpcProtocolError
from yarnflow.ha.client import ZooKeeper

logger = logging.getLogger(__name__)

_NODE: Final = "leader/connection_info"


class ZooKeeperRetrieval:
    """Implements :class:`yarnflow.core.ha.ports.LeaderRetrieval`.

    Parameters
    ----------
    zookeeper : ZooKeeper
    """

    def __init__(self, zookeeper: ZooKeeper) -> None:
        self._zookeeper = zookeeper
        #: as listeners know it; read and written in their thread only
        self._leader: LeaderInfo | None = None
        self._listeners: list[Callable[[LeaderInfo | None], None]] = []
        zookeeper.keep_fresh(self._refresh)

    @property
    def may_change(self) -> bool:
        """Whoever is elected next leads."""
        return True

    def leader(self) -> LeaderInfo | None:
        """The leader, None while there is none; asks ZooKeeper."""
        return self._parse(self._zookeeper.get(self._zookeeper.path(_NODE)))

    def on_leader(self, listener: Callable[[LeaderInfo | None], None]) -> None:
        """Call ``listener`` with the present leader and with each change."""

        def begin() -> None:
            self._listeners.append(listener)
            listener(self._leader)

        self._zookeeper.post(begin)

    def close(self) -> None:
        """No more calls."""
        self._zookeeper.forget(self._refresh)

    def _refresh(self) -> None:
        watch = self._zookeeper.refresher(self._refresh)
        leader = self._parse(self._zookeeper.get(self._zookeeper.path(_NODE), watch))
        known, self._leader = self._leader, leader
        if leader != known:
            for listener in list(self._listeners):
                listener(leader)

    def _parse(self, found: tuple[bytes, object] | None) -> LeaderInfo | None:
        if found is None:
            return None
        try:
            return from_json(LeaderInfo, found[0].decode())
        except (RpcProtocolError, UnicodeDecodeError) as error:
            raise HaError(
                f"{self._zookeeper.path(_NODE)} in ZooKeeper cannot be understood: {error}; is the "
                "cluster of the same yarnflow version?"
            ) from error
