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
    "The application on YARN to which a command or a submit to a session refers.",
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
    "Node label of the ApplicationMaster, and of the TaskManagers if yarn.taskmanager.node-label is empty.",
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
    "Additional tags of the application in YARN, separated by commas.",
)
APPLICATION_ATTEMPTS: Final[ConfigOption[int]] = declare.integer(
    "yarn.application-attempts",
    1,
    _DEPLOYMENT,
    "How often YARN may start the ApplicationMaster. YARN ends all containers of a failed attempt. Without "
    "high availability, the next attempt starts the job again.",
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
    "Number of drivers for which the ApplicationMaster's container has memory, and so of jobs that can run "
    "at the same time: each one needs driver.memory.process.size. -1 = 1, in a session 2. With "
    "driver.placement: container, the number of jobs that can run at the same time; -1 = no limit.",
    at_least=-1,
)
DRIVER_PLACEMENT: Final[ConfigOption[str]] = declare.choice(
    "driver.placement",
    "master",
    ("master", "container"),
    _DEPLOYMENT,
    "Where drivers run on YARN: master = in the ApplicationMaster's container; container = each in a "
    "container of its own, in the application of a standby if there is one. container needs "
    "high-availability.type zookeeper, and the standby mode cold.",
)
DRIVER_CONTAINER_OVERHEAD_MIB: Final[ConfigOption[int]] = declare.memory(
    "yarn.driver.memory-overhead",
    "128m",
    _DEPLOYMENT,
    "Memory of a driver's container in addition to driver.memory.process.size, for the process that starts "
    "the driver there (driver.placement: container).",
)
DRIVER_CONTAINER_VCORES: Final[ConfigOption[int]] = declare.integer(
    "yarn.driver.vcores",
    1,
    _DEPLOYMENT,
    "Virtual cores of a driver's container (driver.placement: container).",
    at_least=1,
)
SHIP_FILES: Final[ConfigOption[str]] = declare.string(
    "yarn.ship-files",
    "",
    _DEPLOYMENT,
    "Files (local, or URIs that YARN's nodes can read), separated by ; or , which are copied to the working "
    "directory of every container.",
    deprecated_keys=("yarn.ship-directories",),
)
SHIP_ARCHIVES: Final[ConfigOption[str]] = declare.string(
    "yarn.ship-archives",
    "",
    _DEPLOYMENT,
    "Archives (.zip, .tar, .tar.gz, .tgz; local, or URIs), separated by ; or , which are unpacked in the "
    "working directory of every container. path#name unpacks into the directory name.",
)
STAGING_DIRECTORY: Final[ConfigOption[str]] = declare.string(
    "yarn.staging-directory",
    "",
    _CLIENT,
    "Directory on HDFS for the files of applications; empty = .yarnflow in the user's home directory.",
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
    "Time between two heartbeats of the ApplicationMaster to YARN's ResourceManager, 100 ms or more. "
    "Requests for containers are sent with the next heartbeat. In Flink it is a number of seconds.",
    at_least="100 ms",
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
    "`yarnflow env pack` (local or a URI). Empty = the directory of the environment from which the job is "
    "submitted.",
)
TASKMANAGER_IDLE_TIMEOUT_MS: Final[ConfigOption[int]] = declare.duration(
    "resourcemanager.taskmanager-timeout",
    "30 s",
    _CLUSTER,
    "A TaskManager that has had no job for this long is released to YARN.",
    deprecated_keys=("slotmanager.taskmanager-timeout",),
)
START_WORKER_MAX_FAILURE_RATE: Final[ConfigOption[float]] = declare.decimal(
    "resourcemanager.start-worker.max-failure-rate",
    10.0,
    _CLUSTER,
    "Number of TaskManagers per minute that may fail before they have registered. If more fail, no new ones "
    "are requested until resourcemanager.start-worker.retry-interval is over.",
)
START_WORKER_RETRY_INTERVAL_MS: Final[ConfigOption[int]] = declare.duration(
    "resourcemanager.start-worker.retry-interval",
    "3 s",
    _CLUSTER,
    "Pause in the requests for TaskManagers when their failure rate is too high.",
)
WORKER_REGISTRATION_TIMEOUT_MS: Final[ConfigOption[int]] = declare.duration(
    "resourcemanager.taskmanager-registration.timeout",
    "5 min",
    _CLUSTER,
    "A container whose TaskManager has not registered for this long after it was granted is released and "
    "counted as failed.",
)
REDUNDANT_TASKMANAGERS: Final[ConfigOption[int]] = declare.integer(
    "slotmanager.redundant-taskmanager-num",
    0,
    _CLUSTER,
    "Number of TaskManagers in addition to those that the jobs need, so that a lost one is replaced at "
    "once.",
    at_least=0,
)
MAX_SLOTS: Final[ConfigOption[int]] = declare.integer(
    "slotmanager.number-of-slots.max",
    2**31 - 1,
    _CLUSTER,
    "Most slots of a cluster whose TaskManagers are requested: no TaskManager is asked for beyond them, and "
    "a job that needs more fails. 2147483647 = no limit.",
    at_least=1,
)
