"""What high availability asks of clients on YARN; what that imports is imported only where it is used."""

from __future__ import annotations

from yarnflow.config.configuration import Configuration
from yarnflow.ha.settings import is_highly_available


def check_quorum(configuration: Configuration) -> None:
    """With high availability, see that ZooKeeper answers before anything is submitted.

    Raises
    ------
    ConfigError
        No quorum is configured.
    ZooKeeperUnavailable
        No server answers; the message names them.
    """
    if is_highly_available(configuration):
        from yarnflow.ha import forget

        forget.check_quorum(configuration)


def forget_cluster(options: Configuration, secret: str) -> None:
    """Delete what a cluster whose masters are gone has in ZooKeeper.  Raises HaError."""
    from yarnflow.ha import forget

    forget.forget_cluster(options, secret)
