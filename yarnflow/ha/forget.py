"""What whoever is not a part of a cluster does with its ZooKeeper: see that it is there, and clear up.

Clients look for the quorum before they submit; whoever finds that all masters of a cluster are
gone deletes what it had.  Each call has a session of its own and ends it.
"""

from __future__ import annotations

import secrets

from yarnflow.config.configuration import Configuration
from yarnflow.ha.services import ZooKeeperClusterEnd, ZooKeeperSettings, open_zookeeper


def check_quorum(options: Configuration) -> None:
    """Connect once.

    Raises
    ------
    ConfigError
        No quorum is configured.
    ZooKeeperUnavailable
        No server of it answers; the message names them.
    """
    open_zookeeper(ZooKeeperSettings.of(options), secrets.token_hex(16).encode("ascii"), None).close()


def forget_cluster(options: Configuration, secret: str) -> None:
    """Delete everything a cluster has in ZooKeeper.  Idempotent.

    Parameters
    ----------
    options : Configuration
        The cluster's.
    secret : str
        The cluster's, which what it has is protected by.

    Raises
    ------
    HaError
        ZooKeeper does not answer, or refuses.
    """
    zookeeper = open_zookeeper(ZooKeeperSettings.of(options), secret.encode("ascii"), None)
    try:
        ZooKeeperClusterEnd(zookeeper).remove_cluster()
    finally:
        zookeeper.close()
