"""That a cluster has done its work: told to all its masters, then forgotten."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from kazoo.client import TransactionRequest
from kazoo.exceptions import BadVersionError, NodeExistsError, NoNodeError

from yarnflow.core.cluster_result import ClusterResult
from yarnflow.core.json_codec import from_json, to_json
from yarnflow.errors import LeadershipLost, RpcProtocolError
from yarnflow.ha.client import ZooKeeper

logger = logging.getLogger(__name__)

_NODE: Final = "ended"
_INFO: Final = "leader/connection_info"
#: ZooKeeper takes 1 MiB
_MAX_BYTES: Final = 500_000


class ZooKeeperClusterEnd:
    """Implements :class:`yarnflow.core.ha.ports.ClusterEnd`.

    Parameters
    ----------
    zookeeper : ZooKeeper
    """

    def __init__(self, zookeeper: ZooKeeper) -> None:
        self._zookeeper = zookeeper
        self._listener: Callable[[ClusterResult], None] | None = None

    def declare(self, result: ClusterResult) -> None:
        """The cluster is over.  Idempotent: the first word stands.

        Raises
        ------
        LeadershipLost
            This process has not published itself as the leader, or another one leads by now.
        """
        path, info = self._zookeeper.path(_NODE), self._zookeeper.path(_INFO)
        content = to_json(result).encode()
        if len(content) > _MAX_BYTES:
            content = to_json(replace(result, details=None)).encode()
        leader = self._zookeeper.get(info)
        if leader is None or int(leader[1].ephemeralOwner) != self._zookeeper.session_id:
            raise LeadershipLost("only the leader can declare the cluster's end")

        def fill(transaction: TransactionRequest) -> None:
            transaction.check(info, int(leader[1].version))
            transaction.create(path, content)

        try:
            self._zookeeper.transact("declare the cluster's end", fill)
        except NodeExistsError:
            pass
        except (NoNodeError, BadVersionError):
            raise LeadershipLost("another master leads; the cluster's end was not declared") from None

    def on_ended(self, listener: Callable[[ClusterResult], None]) -> None:
        """Call ``listener`` once when it is; before this returns when it was before."""
        self._listener = listener
        self._zookeeper.keep_fresh(self._refresh)
        self._zookeeper.settle()

    def remove_cluster(self) -> None:
        """Delete everything the cluster has in ZooKeeper."""
        self._zookeeper.delete_cluster()

    def _refresh(self) -> None:
        found = self._zookeeper.get(self._zookeeper.path(_NODE), self._zookeeper.refresher(self._refresh))
        listener = self._listener
        if found is None or listener is None:
            return
        self._listener = None
        try:
            listener(from_json(ClusterResult, found[0].decode()))
        except (RpcProtocolError, UnicodeDecodeError) as error:
            logger.error("How the cluster ended cannot be understood: %s", error)
