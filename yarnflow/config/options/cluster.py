"""Options of a cluster's processes: addresses, slots, heartbeats, time-outs."""

from __future__ import annotations

from typing import Final

from yarnflow.config import declare
from yarnflow.config.option import ConfigOption, Scope

_CLUSTER = Scope.CLUSTER
_TASK_MANAGER = Scope.TASK_MANAGER

CLUSTER_ID: Final[ConfigOption[str]] = declare.string(
    "high-availability.cluster-id",
    "default",
    _CLUSTER,
    "Name of the cluster. Clusters with different names on one machine share nothing; the name is part of "
    "the paths of a cluster's directories.",
    deprecated_keys=("high-availability.zookeeper.path.namespace", "recovery.zookeeper.path.namespace"),
)
JOBMANAGER_RPC_ADDRESS: Final[ConfigOption[str]] = declare.string(
    "jobmanager.rpc.address",
    "localhost",
    _CLUSTER,
    "Host name or address under which clients, TaskManagers and drivers reach the JobManager.",
)
JOBMANAGER_RPC_PORT: Final[ConfigOption[str]] = declare.ports(
    "jobmanager.rpc.port",
    "6123",
    _CLUSTER,
    "Port of the JobManager's Thrift server. A range is tried in order; 0 takes any free port.",
)
JOBMANAGER_BIND_HOST: Final[ConfigOption[str]] = declare.string(
    "jobmanager.bind-host",
    "",
    _CLUSTER,
    "Local address the JobManager listens on; empty = the address of jobmanager.rpc.address, 0.0.0.0 = "
    "every interface.",
)
TASKMANAGER_HOST: Final[ConfigOption[str]] = declare.string(
    "taskmanager.host",
    "",
    _TASK_MANAGER,
    "Host name or address under which other processes reach this TaskManager; empty = that of the machine.",
)
TASKMANAGER_RPC_PORT: Final[ConfigOption[str]] = declare.ports(
    "taskmanager.rpc.port",
    "0",
    _TASK_MANAGER,
    "Port of the TaskManager's Thrift server. A range is tried in order; 0 takes any free port.",
)
TASKMANAGER_BIND_HOST: Final[ConfigOption[str]] = declare.string(
    "taskmanager.bind-host",
    "",
    _TASK_MANAGER,
    "Local address the TaskManager listens on; empty = the address of taskmanager.host, 0.0.0.0 = every "
    "interface.",
)
TASKMANAGER_SLOTS: Final[ConfigOption[int]] = declare.integer(
    "taskmanager.numberOfTaskSlots",
    1,
    _TASK_MANAGER,
    "Slots of a TaskManager. One slot runs one subtask of every operator of a slot sharing group, on one "
    "task thread of the job's Spark executor there. The executor gets the TaskManager's memory and "
    "processors by the slots that its job was given.",
    at_least=1,
)
MINICLUSTER_TASKMANAGERS: Final[ConfigOption[int]] = declare.integer(
    "minicluster.number-of-taskmanagers",
    1,
    Scope.CLIENT,
    "Number of TaskManagers of the cluster that a submit with execution.target local starts.",
    at_least=1,
    deprecated_keys=("local.number-taskmanager",),
)
HEARTBEAT_INTERVAL_MS: Final[ConfigOption[int]] = declare.duration(
    "heartbeat.interval",
    "10 s",
    _CLUSTER,
    "Time between two heartbeats of a TaskManager.",
)
HEARTBEAT_TIMEOUT_MS: Final[ConfigOption[int]] = declare.duration(
    "heartbeat.timeout",
    "50 s",
    _CLUSTER,
    "Time without a heartbeat after which a TaskManager counts as lost. Must be longer than "
    "heartbeat.interval.",
)
HEARTBEAT_RPC_FAILURE_THRESHOLD: Final[ConfigOption[int]] = declare.integer(
    "heartbeat.rpc-failure-threshold",
    2,
    _CLUSTER,
    "Failed calls in a row after which a TaskManager counts as lost before its timeout; -1 = always wait "
    "for the timeout.",
    at_least=-1,
)
SLOT_REQUEST_TIMEOUT_MS: Final[ConfigOption[int]] = declare.duration(
    "slot.request.timeout",
    "5 min",
    _CLUSTER,
    "How long a job waits for all its slots before the attempt fails.",
)
DRIVER_IDLE_TIMEOUT_MS: Final[ConfigOption[int]] = declare.duration(
    "driver.idle-timeout",
    "0 s",
    _CLUSTER,
    "How long the driver of a job that has finished waits, with its executors, for another job with the same "
    "options, which then starts much sooner. Its memory is kept for that time; slots are not. 0 = every job "
    "has processes of its own, as always with high availability. Default of a program that no command runs "
    "(python job.py): 5 min.",
)
MAX_CONCURRENT_DRIVER_STARTS: Final[ConfigOption[int]] = declare.integer(
    "driver.max-concurrent-starts",
    16,
    _CLUSTER,
    "Number of drivers of a cluster that may start at the same time, e.g. when a master was lost with its "
    "drivers. Others wait until one of them has registered or ended. 0 = no limit.",
    at_least=0,
)
REGISTRATION_INITIAL_TIMEOUT_MS: Final[ConfigOption[int]] = declare.duration(
    "cluster.registration.initial-timeout",
    "100 ms",
    _CLUSTER,
    "Pause after the first attempt of a process to register; doubled after each further one.",
)
REGISTRATION_MAX_TIMEOUT_MS: Final[ConfigOption[int]] = declare.duration(
    "cluster.registration.max-timeout",
    "30 s",
    _CLUSTER,
    "Longest pause between two attempts to register.",
)
TASKMANAGER_REGISTRATION_TIMEOUT_MS: Final[ConfigOption[int]] = declare.duration(
    "taskmanager.registration.timeout",
    "5 min",
    _TASK_MANAGER,
    "A TaskManager that cannot register for this long ends.",
    deprecated_keys=("taskmanager.maxRegistrationDuration",),
)
RPC_ASK_TIMEOUT_MS: Final[ConfigOption[int]] = declare.duration(
    "rpc.ask.timeout",
    "10 s",
    _CLUSTER,
    "Deadline of a call between processes of the cluster.",
    deprecated_keys=("akka.ask.timeout", "pekko.ask.timeout"),
)
RPC_FRAME_SIZE_BYTES: Final[ConfigOption[int]] = declare.size(
    "rpc.framesize",
    "64 mb",
    _CLUSTER,
    "Size of the largest message between two processes. A job graph with large functions, or a packed "
    "script, must fit into it.",
    deprecated_keys=("akka.framesize", "pekko.framesize"),
)
IO_TMP_DIRS: Final[ConfigOption[str]] = declare.string(
    "io.tmp.dirs",
    "",
    _CLUSTER,
    "Directory for scratch data (shuffle files, local state) and the cluster's runtime directory; empty = "
    "the system's directory for temporary files.",
    deprecated_keys=("taskmanager.tmp.dirs",),
)
LOG_DIR: Final[ConfigOption[str]] = declare.string(
    "yarnflow.log.dir",
    "",
    _CLUSTER,
    "Directory for the log files of all processes; empty = below the cluster's runtime directory.",
)
LOG_CONFIG_FILE: Final[ConfigOption[str]] = declare.string(
    "yarnflow.log.config-file",
    "",
    _CLUSTER,
    "File with the logging configuration of all processes, in the form of log.yaml; empty = log.yaml of the "
    "configuration directory, or, if there is none, yarnflow's default.",
)
LOG_FORMAT: Final[ConfigOption[str]] = declare.choice(
    "yarnflow.log.format",
    "text",
    ("text", "json"),
    _CLUSTER,
    "Form of the log lines of all processes: text = as Flink's; json = a JSON object per line, with the keys "
    "of the Elastic Common Schema, and flink-job-id in lines that concern a job. In a log.yaml it replaces "
    "the formatter yarnflow.process.logs.FlinkFormatter. Spark's own log in drivers and executors follows.",
)
LOG_RETAINED_PROCESSES: Final[ConfigOption[int]] = declare.integer(
    "yarnflow.log.retained-processes",
    100,
    _CLUSTER,
    "Number of ended drivers, and of ended executors, whose log files are kept in a directory of logs. The "
    "files of those that ended first are removed first, never those of a process that lives. 0 = all are "
    "kept.",
    at_least=0,
)
JOBSTORE_MAX_CAPACITY: Final[ConfigOption[int]] = declare.integer(
    "jobstore.max-capacity",
    100,
    _CLUSTER,
    "Number of ended jobs in the JobManager's list; the oldest are removed first.",
    at_least=1,
)
