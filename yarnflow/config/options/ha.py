"""Options of high availability, under Flink's keys where the meaning is Flink's."""

from __future__ import annotations

from typing import Final

from yarnflow.config import declare
from yarnflow.config.option import ConfigOption, Scope

_CLUSTER = Scope.CLUSTER

HA_TYPE: Final[ConfigOption[str]] = declare.choice(
    "high-availability.type",
    "none",
    ("none", "zookeeper"),
    _CLUSTER,
    "zookeeper = masters elect a leader in ZooKeeper, jobs and checkpoints are stored there and in "
    "high-availability.storageDir, and a new leader takes over running jobs; none = there is one master, "
    "and its jobs end when it ends.",
    older={"standalone": "none"},
    deprecated_keys=("high-availability", "recovery.mode"),
)
STORAGE_DIR: Final[ConfigOption[str]] = declare.string(
    "high-availability.storageDir",
    "",
    _CLUSTER,
    "Directory (a URI that all machines can access) for the data to which ZooKeeper has pointers: job "
    "graphs, results. Needed with high-availability.type zookeeper, except on YARN, where empty = below the "
    "staging directory.",
    deprecated_keys=("high-availability.zookeeper.storageDir", "recovery.zookeeper.storageDir"),
)
JOBMANAGERS: Final[ConfigOption[int]] = declare.integer(
    "high-availability.jobmanagers",
    2,
    _CLUSTER,
    "Number of masters of a cluster on YARN with high availability, including the leader. The leader starts "
    "standbys, each in its own application, until there are so many masters.",
    at_least=1,
)
STANDBY_MODE: Final[ConfigOption[str]] = declare.choice(
    "high-availability.standby-mode",
    "cold",
    ("cold", "warm", "hot"),
    _CLUSTER,
    "What masters keep ready for the loss of a driver: cold = nothing; warm = a warm spare, a driver whose "
    "JVM is up and has loaded its classes; hot = a hot spare, a driver with the job's session, and "
    "executors on their own slots.",
)
ADOPTION_TIMEOUT_MS: Final[ConfigOption[int]] = declare.duration(
    "high-availability.adoption-timeout",
    "20 s",
    _CLUSTER,
    "How long a new leader waits for a report of a running job's driver before it starts a new driver. It "
    "does not wait for a driver that has lost its lease.",
)
ZOOKEEPER_QUORUM: Final[ConfigOption[str]] = declare.string(
    "high-availability.zookeeper.quorum",
    "",
    _CLUSTER,
    "ZooKeeper servers, host:port separated by commas.",
    deprecated_keys=("recovery.zookeeper.quorum",),
)
ZOOKEEPER_ROOT: Final[ConfigOption[str]] = declare.string(
    "high-availability.zookeeper.path.root",
    "/yarnflow",
    _CLUSTER,
    "Node below which every cluster has its own node, named by high-availability.cluster-id.",
    deprecated_keys=("recovery.zookeeper.path.root",),
)
ZOOKEEPER_SESSION_TIMEOUT_MS: Final[ConfigOption[int]] = declare.duration(
    "high-availability.zookeeper.client.session-timeout",
    "10 s",
    _CLUSTER,
    "Time without a heartbeat after which ZooKeeper ends a session: a frozen or disconnected master loses "
    "the leadership, a driver its lease. A killed process is detected at once, independent of this timeout, "
    "if its supervisor runs. Flink's default is 60 s.",
    deprecated_keys=("recovery.zookeeper.client.session-timeout",),
)
ZOOKEEPER_CONNECTION_TIMEOUT_MS: Final[ConfigOption[int]] = declare.duration(
    "high-availability.zookeeper.client.connection-timeout",
    "15 s",
    _CLUSTER,
    "How long a process waits for its first connection to ZooKeeper.",
    deprecated_keys=("recovery.zookeeper.client.connection-timeout",),
)
ZOOKEEPER_RETRY_WAIT_MS: Final[ConfigOption[int]] = declare.duration(
    "high-availability.zookeeper.client.retry-wait",
    "500 ms",
    _CLUSTER,
    "Pause before a lost connection is tried again; doubled up to max-retry-wait.",
    deprecated_keys=("recovery.zookeeper.client.retry-wait",),
)
ZOOKEEPER_MAX_RETRY_WAIT_MS: Final[ConfigOption[int]] = declare.duration(
    "high-availability.zookeeper.client.max-retry-wait",
    "5 s",
    _CLUSTER,
    "Longest pause between two attempts to connect.",
)
ZOOKEEPER_ACL: Final[ConfigOption[str]] = declare.choice(
    "high-availability.zookeeper.client.acl",
    "creator",
    ("open", "creator"),
    _CLUSTER,
    "Who may read and change the cluster's data in ZooKeeper: creator = holders of the cluster's secret; "
    "open = everybody (Flink's default).",
)
