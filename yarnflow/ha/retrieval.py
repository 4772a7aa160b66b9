"""Who leads now, for those who do not stand for election.  Flink: ``ZooKeeperLeaderRetrievalDriver``."""

from __future__ import annotations

import logging
import threading
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
        self._changed = threading.Condition()
        self._leader: LeaderInfo | None = None
        self._listeners: list[Callable[[LeaderInfo | None], None]] = []
        self._closed = False
        zookeeper.keep_fresh(self._refresh)

    @property
    def may_change(self) -> bool:
        """Whoever is elected next leads."""
        return True

    def leader(self) -> LeaderInfo | None:
        """The leader, None while there is none; asks ZooKeeper."""
        return self._parse(self._zookeeper.get(self._zookeeper.path(_NODE)))

    def await_leader(self, timeout_ms: int, above_epoch: int = 0) -> LeaderInfo | None:
        """The leader as soon as there is one with an epoch above; None after the time."""

        def newer() -> bool:
            return self._closed or (self._leader is not None and self._leader.fence.epoch > above_epoch)

        with self._changed:
            self._changed.wait_for(newer, timeout_ms / 1000)
            leader = self._leader
        return leader if leader is not None and leader.fence.epoch > above_epoch else None

    def on_leader(self, listener: Callable[[LeaderInfo | None], None]) -> None:
        """Call ``listener`` with the present leader and with each change."""

        def begin() -> None:
            self._listeners.append(listener)
            listener(self._leader)

        self._zookeeper.post(begin)

    def close(self) -> None:
        """No more calls; who waits is let go."""
        self._zookeeper.forget(self._refresh)
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _refresh(self) -> None:
        watch = self._zookeeper.refresher(self._refresh)
        leader = self._parse(self._zookeeper.get(self._zookeeper.path(_NODE), watch))
        with self._changed:
            known, self._leader = self._leader, leader
            self._changed.notify_all()
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
