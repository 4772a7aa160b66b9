"""Who leads now, for those who do not stand for election.

Only a leader that has signed its address with the cluster's secret is told of: whoever may write into
ZooKeeper in spite of the nodes' rights, its administrator for one, cannot have processes call another.
Flink counterpart: ``ZooKeeperLeaderRetrievalDriver``.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from yarnflow.core.checkpoint.signature import is_signed
from yarnflow.core.json_codec import from_json
from yarnflow.core.messages import LeaderInfo
from yarnflow.errors import ForeignNode, HaError, RpcProtocolError
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
        #: why nobody is taken for the leader
        self._refused = ""
        zookeeper.keep_fresh(self._refresh)

    @property
    def may_change(self) -> bool:
        """Whoever is elected next leads."""
        return True

    def leader(self) -> LeaderInfo | None:
        """Return the leader, None while there is none; asks ZooKeeper.

        Raises
        ------
        ForeignNode
            Somebody is named as the leader by others than the cluster.
        """
        return self._parse(self._zookeeper.get(self._zookeeper.path(_NODE)))

    def on_leader(self, listener: Callable[[LeaderInfo | None], None]) -> None:
        """Call ``listener`` with the present leader and with each change."""

        def begin() -> None:
            self._listeners.append(listener)
            if self._refused:
                _warn(self._refused)
            listener(self._leader)

        self._zookeeper.post(begin)

    def close(self) -> None:
        """No more calls."""
        self._zookeeper.forget(self._refresh)

    def _refresh(self) -> None:
        watch = self._zookeeper.refresher(self._refresh)
        try:
            found = self._zookeeper.get(self._zookeeper.path(_NODE), watch)
        except ForeignNode as error:
            self._refuse(error)
            raise  # it may have no watch, so it is looked at again
        try:
            leader = self._parse(found)
        except ForeignNode as error:
            self._refuse(error)
            return
        self._refused = ""
        self._tell(leader)

    def _refuse(self, error: ForeignNode) -> None:
        # whoever does not listen asks, and is told then
        if self._listeners and self._refused != str(error):
            _warn(str(error))
        self._refused = str(error)
        self._tell(None)

    def _tell(self, leader: LeaderInfo | None) -> None:
        known, self._leader = self._leader, leader
        if leader != known:
            for listener in list(self._listeners):
                listener(leader)

    def _parse(self, found: tuple[bytes, object] | None) -> LeaderInfo | None:
        if found is None:
            return None
        path = self._zookeeper.path(_NODE)
        try:
            leader = from_json(LeaderInfo, found[0].decode())
        except (RpcProtocolError, UnicodeDecodeError) as error:
            raise HaError(
                f"{path} in ZooKeeper cannot be understood: {error}; is the cluster of the same yarnflow "
                "version?"
            ) from error
        # whoever is called learns that this process is there, and may pass on what it says
        if not is_signed(found[0], self._zookeeper.key_of(path)):
            raise ForeignNode(
                f"{path} in ZooKeeper names {leader.address} as the leader, but is not signed with this "
                "cluster's secret, so it is not called: restart a master that is of an earlier version; if "
                "there is none, see who may change the node"
            )
        return leader


def _warn(reason: str) -> None:
    logger.warning("No leader is known: %s", reason)
