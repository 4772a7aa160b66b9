"""What a process needs to know to speak with ZooKeeper; read from the options once."""

from __future__ import annotations

from dataclasses import dataclass

from yarnflow.config.configuration import Configuration
from yarnflow.config.options import cluster, ha
from yarnflow.errors import ConfigError


def is_highly_available(configuration: Configuration) -> bool:
    """There are several masters, one of which leads; another may take over."""
    return configuration.get(ha.HA_TYPE) == "zookeeper"


@dataclass(frozen=True, slots=True)
class ZooKeeperSettings:
    """Where ZooKeeper is and how to behave towards it."""

    #: ``host:port``, separated by commas
    quorum: str
    #: node of the cluster, absolute
    root: str
    session_timeout_ms: int = 10_000
    connection_timeout_ms: int = 15_000
    retry_wait_ms: int = 500
    max_retry_wait_ms: int = 5_000
    #: nodes can be read and changed by holders of the cluster's secret only
    protected: bool = True
    #: results of ended jobs that are kept
    max_results: int = 100

    @classmethod
    def of(cls, configuration: Configuration) -> ZooKeeperSettings:
        """From ``high-availability.*``.

        Raises
        ------
        ConfigError
            No quorum is set, or a name cannot be one of a node.
        """
        get = configuration.get
        quorum = "".join(get(ha.ZOOKEEPER_QUORUM).split())
        if not quorum:
            raise ConfigError(
                "high-availability.zookeeper.quorum is not set; with high-availability.type zookeeper it "
                "names the servers (host:port,host:port,…)"
            )
        cluster_id = get(cluster.CLUSTER_ID)
        if not cluster_id or "/" in cluster_id:
            raise ConfigError(
                f"high-availability.cluster-id {cluster_id!r} cannot be the name of a node in ZooKeeper; "
                "use letters, digits and dashes"
            )
        parent = "/" + get(ha.ZOOKEEPER_ROOT).strip("/")
        return cls(
            quorum=quorum,
            root=f"{parent.rstrip('/')}/{cluster_id}",
            session_timeout_ms=get(ha.ZOOKEEPER_SESSION_TIMEOUT_MS),
            connection_timeout_ms=get(ha.ZOOKEEPER_CONNECTION_TIMEOUT_MS),
            retry_wait_ms=get(ha.ZOOKEEPER_RETRY_WAIT_MS),
            max_retry_wait_ms=get(ha.ZOOKEEPER_MAX_RETRY_WAIT_MS),
            protected=get(ha.ZOOKEEPER_ACL) == "creator",
            max_results=get(cluster.JOBSTORE_MAX_CAPACITY),
        )
