"""Options of clusters on YARN, under Flink's keys where the meaning is Flink's."""

from __future__ import annotations

from typing import Final

from yarnflow.config import declare
from yarnflow.config.option import ConfigOption, Scope

_CLIENT = Scope.CLIENT
_DEPLOYMENT = Scope.DEPLOYMENT
_CLUSTER = Scope.CLUSTER

APPLICATION_ID: Final[ConfigOption[str]] = declare.string(
    "yarn.application.id",
    "",
    _CLIENT,
    "The application on YARN that a verb or a submit to a session is about.",
)
APPLICATION_NAME: Final[ConfigOption[str]] = declare.string(
    "yarn.application.name",
    "",
    _DEPLOYMENT,
    "Name of the application in YARN; empty = the job's name, or \"yarnflow session\".",
)
APPLICATION_QUEUE: Final[ConfigOption[str]] = declare.string(
    "yarn.application.queue",
    "default",
    _DEPLOYMENT,
    "Queue the application is submitted to.",
)
APPLICATION_NODE_LABEL: Final[ConfigOption[str]] = declare.string(
    "yarn.application.node-label",
    "",
    _DEPLOYMENT,
    "Node label for the ApplicationMaster, and for the TaskManagers unless they have their own.",
)
TASKMANAGER_NODE_LABEL: Final[ConfigOption[str]] = declare.string(
    "yarn.taskmanager.node-label",
    "",
    _DEPLOYMENT,
    "Node label for the TaskManagers' containers; empty = that of the application.",
)
APPLICATION_PRIORITY: Final[ConfigOption[int]] = declare.integer(
    "yarn.application.priority",
    -1,
    _DEPLOYMENT,
    "Priority among the applications of the queue; -1 = YARN's default.",
    at_least=-1,
)
TAGS: Final[ConfigOption[str]] = declare.string(
    "yarn.tags",
    "",
    _DEPLOYMENT,
    "Further tags of the application in YARN, separated by commas.",
)
APPLICATION_ATTEMPTS: Final[ConfigOption[int]] = declare.integer(
    "yarn.application-attempts",
    1,
    _DEPLOYMENT,
    "How often YARN may start the ApplicationMaster. YARN ends all containers of a failed attempt, and "
    "without high availability the next one starts the job anew.",
    at_least=1,
)
CONTAINER_VCORES: Final[ConfigOption[int]] = declare.integer(
    "yarn.containers.vcores",
    -1,
    _DEPLOYMENT,
    "Virtual cores of a TaskManager's container; -1 = its number of slots.",
    at_least=-1,
)
MASTER_VCORES: Final[ConfigOption[int]] = declare.integer(
    "yarn.appmaster.vcores",
    1,
    _DEPLOYMENT,
    "Virtual cores of the ApplicationMaster's container, in which JobManager and drivers run.",
    at_least=1,
)
SESSION_DRIVERS: Final[ConfigOption[int]] = declare.integer(
    "yarn.appmaster.drivers",
    -1,
    _DEPLOYMENT,
    "Drivers the ApplicationMaster's container has memory for, and so jobs that can run at the same time: "
    "each one needs driver.memory.process.size. -1 = 1, in a session 2.",
    at_least=-1,
)
SHIP_FILES: Final[ConfigOption[str]] = declare.string(
    "yarn.ship-files",
    "",
    _DEPLOYMENT,
    "Files (local, or URIs YARN's nodes can read), separated by ; or , for the working directory of every "
    "container.",
)
SHIP_ARCHIVES: Final[ConfigOption[str]] = declare.string(
    "yarn.ship-archives",
    "",
    _DEPLOYMENT,
    "Archives (.zip, .tar, .tar.gz, .tgz; local, or URIs), separated by ; or , unpacked in the working "
    "directory of every container. path#name unpacks into the directory name.",
)
STAGING_DIRECTORY: Final[ConfigOption[str]] = declare.string(
    "yarn.staging-directory",
    "",
    _CLIENT,
    "Directory on HDFS for what applications need; empty = .yarnflow in the user's home directory.",
)
FILE_REPLICATION: Final[ConfigOption[int]] = declare.integer(
    "yarn.file-replication",
    -1,
    _CLIENT,
    "Replication of files uploaded for containers; -1 = HDFS's default.",
    at_least=-1,
)
MASTER_HEARTBEAT_INTERVAL_MS: Final[ConfigOption[int]] = declare.duration(
    "yarn.heartbeat.interval",
    "1 s",
    _DEPLOYMENT,
    "Time between two calls of the ApplicationMaster to YARN's ResourceManager. Requests for containers "
    "wait for the next one.",
)
VIEW_ACLS: Final[ConfigOption[str]] = declare.string(
    "yarn.view.acls",
    "",
    _DEPLOYMENT,
    "Users and groups that may see the application: user1,user2 group1,group2.",
)
MODIFY_ACLS: Final[ConfigOption[str]] = declare.string(
    "yarn.modify.acls",
    "",
    _DEPLOYMENT,
    "Users and groups that may kill the application: user1,user2 group1,group2.",
)
PYTHON_ENVIRONMENT: Final[ConfigOption[str]] = declare.string(
    "python.environment",
    "",
    _DEPLOYMENT,
    "Python environment of all containers: a directory that exists on every node, or an archive made by "
    "`yarnflow env pack` (local or a URI). Empty = the directory of the environment that submits.",
)
TASKMANAGER_IDLE_TIMEOUT_MS: Final[ConfigOption[int]] = declare.duration(
    "resourcemanager.taskmanager-timeout",
    "30 s",
    _CLUSTER,
    "A TaskManager without any job for this long is given back to YARN.",
)
START_WORKER_MAX_FAILURE_RATE: Final[ConfigOption[float]] = declare.decimal(
    "resourcemanager.start-worker.max-failure-rate",
    10.0,
    _CLUSTER,
    "TaskManagers per minute that may fail before they registered; above it, no new ones are asked for "
    "until resourcemanager.start-worker.retry-interval is over.",
)
START_WORKER_RETRY_INTERVAL_MS: Final[ConfigOption[int]] = declare.duration(
    "resourcemanager.start-worker.retry-interval",
    "3 s",
    _CLUSTER,
    "Pause in asking for TaskManagers once their failure rate is too high.",
)
WORKER_REGISTRATION_TIMEOUT_MS: Final[ConfigOption[int]] = declare.duration(
    "resourcemanager.taskmanager-registration.timeout",
    "5 min",
    _CLUSTER,
    "A container that was granted and whose TaskManager has not registered for this long is given back and "
    "counted as failed.",
)
REDUNDANT_TASKMANAGERS: Final[ConfigOption[int]] = declare.integer(
    "slotmanager.redundant-taskmanager-num",
    0,
    _CLUSTER,
    "TaskManagers kept beyond what the jobs need, so that a lost one is replaced at once.",
    at_least=0,
)
