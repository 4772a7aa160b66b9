"""Options of one job: pipeline, execution, state, restart strategy.

``spark.*`` keys are not declared: they are handed to Spark as they are.
"""

from __future__ import annotations

from typing import Final

from yarnflow.config import declare
from yarnflow.config.option import ConfigOption, Scope

_JOB = Scope.JOB
#: Flink writes its "no limit" so
_INFINITE = 2**31 - 1

PARALLELISM_DEFAULT: Final[ConfigOption[int]] = declare.integer(
    "parallelism.default",
    1,
    _JOB,
    "Parallelism of operators that do not set their own.",
    at_least=1,
)
MAX_PARALLELISM: Final[ConfigOption[int]] = declare.integer(
    "pipeline.max-parallelism",
    -1,
    _JOB,
    "Upper bound of the parallelism of a job's operators; a higher parallelism is refused. -1 = 128.",
    at_least=-1,
    at_most=32768,
)
OPERATOR_CHAINING: Final[ConfigOption[bool]] = declare.boolean(
    "pipeline.operator-chaining.enabled",
    True,
    _JOB,
    "Run operators that follow each other without a change of partitioning as one vertex. Switch off only "
    "to see each operator separately.",
    deprecated_keys=("pipeline.operator-chaining",),
)
RUNTIME_MODE: Final[ConfigOption[str]] = declare.choice(
    "execution.runtime-mode",
    "STREAMING",
    ("STREAMING", "BATCH", "AUTOMATIC"),
    _JOB,
    "How a job runs. STREAMING = in micro-batches, each result as soon as it is there, and a restart goes "
    "on from the last commit. BATCH = all of the input at once, as a batch of Spark's: of running results "
    "(reduce, sum, aggregate …) the last one of each key, no record is late, all timers fire at the end, and "
    "a restart begins anew; all sources must be bounded. AUTOMATIC = BATCH if they are. Scripts ignore it.",
)
BATCH_AUTO_PARALLELISM: Final[ConfigOption[bool]] = declare.boolean(
    "execution.batch.adaptive.auto-parallelism.enabled",
    True,
    _JOB,
    "BATCH: whether the number of tasks behind a shuffle of columns follows from the size of the data; else "
    "it is the parallelism. Functions on elements always have as many subtasks as the program says.",
)
BATCH_MAX_PARALLELISM: Final[ConfigOption[int]] = declare.integer(
    "execution.batch.adaptive.auto-parallelism.max-parallelism",
    128,
    _JOB,
    "BATCH: the most tasks behind a shuffle of columns; where parallelism.default is set, that is it.",
    at_least=1,
    deprecated_keys=("jobmanager.adaptive-batch-scheduler.max-parallelism",),
)
BATCH_BYTES_PER_TASK: Final[ConfigOption[int]] = declare.size(
    "execution.batch.adaptive.auto-parallelism.avg-data-volume-per-task",
    "16m",
    _JOB,
    "BATCH: about how much data a task behind a shuffle of columns gets.",
    deprecated_keys=("jobmanager.adaptive-batch-scheduler.avg-data-volume-per-task",),
)
PIPELINE_NAME: Final[ConfigOption[str]] = declare.string(
    "pipeline.name",
    "",
    _JOB,
    "Name of the job; empty = the name given to execute(), else that of the program.",
)
PIPELINE_JARS: Final[ConfigOption[str]] = declare.string(
    "pipeline.jars",
    "",
    _JOB,
    "Jars for the class path of the job's driver and executors, separated by semicolons: paths of this "
    "machine, which are shipped, or URIs such as hdfs://…. Jars of Flink are left out. spark.jars is the "
    "same with commas; packages by their Maven coordinates are in spark.jars.packages.",
)
PIPELINE_CLASSPATHS: Final[ConfigOption[str]] = declare.string(
    "pipeline.classpaths",
    "",
    _JOB,
    "Jars that are on all machines already, as URIs separated by semicolons, for the class path of the "
    "job's driver and executors; nothing is shipped.",
)
JOB_KEY: Final[ConfigOption[str]] = declare.string(
    "pipeline.job-key",
    "",
    _JOB,
    "At most one live job has a given key (in one cluster; on YARN, of one user). client.on-existing "
    "decides what a second submit with the same key does; if it runs another text of the program or has "
    "other arguments, it is refused. Empty = on clusters that continue after the command has ended, made of "
    "the user, the program's path and the job's name (with target yarn-application the program's name); else "
    "no key.",
)
MICRO_BATCH_INTERVAL_MS: Final[ConfigOption[int]] = declare.duration(
    "execution.micro-batch.interval",
    "0 ms",
    _JOB,
    "Shortest time from the start of a micro-batch to the next; 0 = as soon as the last one is done.",
)
EXECUTION_MODE: Final[ConfigOption[str]] = declare.choice(
    "pipeline.execution-mode",
    "micro-batch",
    ("micro-batch", "real-time", "auto"),
    _JOB,
    "How an endless job processes records. micro-batch = some at a time, each micro-batch committed. "
    "real-time = each at once, in milliseconds, committed every execution.checkpointing.interval (5 s or "
    "more): columns from Kafka to Kafka (at least once) or print, running aggregates; what else is in the "
    "job is named in an error. auto = real-time where the whole job and its slots allow it; the driver's "
    "log says which. Scripts ignore it.",
)
TASK_THREADS_PER_SLOT: Final[ConfigOption[int]] = declare.integer(
    "pipeline.real-time.task-threads-per-slot",
    0,
    _JOB,
    "Real-time mode: task threads of each slot; all stages of a job run at the same time there, and a task "
    "for each partition of its topics. 0 = one for each stage.",
    at_least=0,
)
BUFFER_TIMEOUT_MS: Final[ConfigOption[int]] = declare.duration(
    "execution.buffer-timeout.interval",
    "5 ms",
    _JOB,
    "Real-time mode: how long a record may wait for others before it is sent to the next stage. Flink's "
    "default is 100 ms.",
    deprecated_keys=("execution.buffer-timeout",),
)
CHECKPOINT_DIR: Final[ConfigOption[str]] = declare.string(
    "execution.checkpointing.dir",
    "",
    _JOB,
    "Directory (a URI) below which each job has its own directory for offsets, state and commits; empty = "
    "below the cluster's runtime directory, on YARN checkpoints/ in the staging directory.",
    deprecated_keys=("state.checkpoints.dir", "state.backend.fs.checkpointdir"),
)
CHECKPOINT_INTERVAL_MS: Final[ConfigOption[int]] = declare.duration(
    "execution.checkpointing.interval",
    "10 s",
    _JOB,
    "Shortest time between two checkpoints that are recorded. Every micro-batch is committed durably in any "
    "case, and a restart continues from the last one. The record is used by --restore, the number of "
    "retained checkpoints and the statistics. 0 = record every batch.",
)
CHECKPOINT_MIN_PAUSE_MS: Final[ConfigOption[int]] = declare.duration(
    "execution.checkpointing.min-pause",
    "0 ms",
    _JOB,
    "Shortest time from the end of a checkpoint to the start of the next one.",
)
CHECKPOINT_TIMEOUT_MS: Final[ConfigOption[int]] = declare.duration(
    "execution.checkpointing.timeout",
    "10 min",
    _JOB,
    "A checkpoint or savepoint that takes longer than this fails.",
)
CHECKPOINTS_RETAINED: Final[ConfigOption[int]] = declare.integer(
    "execution.checkpointing.num-retained",
    1,
    _JOB,
    "Number of completed checkpoints that are kept; older ones are removed.",
    at_least=1,
    at_most=20,
    deprecated_keys=("state.checkpoints.num-retained",),
)
SAVEPOINT_RECORDS: Final[ConfigOption[int]] = declare.integer(
    "execution.checkpointing.savepoint-records",
    20,
    _JOB,
    "Number of a job's savepoints that are listed with its checkpoints; the newest ones are. Older ones stay "
    "where they are and can be used and disposed of by their directories.",
    at_least=1,
    at_most=1000,
)
CHECKPOINT_RETENTION: Final[ConfigOption[str]] = declare.choice(
    "execution.checkpointing.externalized-checkpoint-retention",
    "RETAIN_ON_CANCELLATION",
    ("RETAIN_ON_CANCELLATION", "DELETE_ON_CANCELLATION", "NO_EXTERNALIZED_CHECKPOINTS"),
    _JOB,
    "When a job's state is kept after its end: RETAIN_ON_CANCELLATION = if the job was canceled or failed; "
    "DELETE_ON_CANCELLATION = only if it failed; NO_EXTERNALIZED_CHECKPOINTS = never (Flink's default). The "
    "state of a job that FINISHED by itself is never kept.",
)
SAVEPOINT_DIR: Final[ConfigOption[str]] = declare.string(
    "execution.checkpointing.savepoint-dir",
    "",
    _JOB,
    "Directory (a URI) for savepoints if the command names no directory.",
    deprecated_keys=("state.savepoints.dir", "savepoints.state.backend.fs.dir"),
)
#: values of the next option that are no paths
LATEST_STATE: Final = "latest"
NO_STATE: Final = "none"
STATE_RECOVERY_PATH: Final[ConfigOption[str]] = declare.string(
    "execution.state-recovery.path",
    "",
    _JOB,
    "State from which the job starts: path of a savepoint or retained checkpoint; latest = the newest "
    "retained checkpoint of the same job key; none = start empty. Empty = latest if the last job with this "
    "key failed or its cluster was lost, else none.",
    deprecated_keys=("execution.savepoint.path",),
)
STATE_RECOVERY_CLAIM_MODE: Final[ConfigOption[str]] = declare.choice(
    "execution.state-recovery.claim-mode",
    "NO_CLAIM",
    ("NO_CLAIM", "CLAIM"),
    _JOB,
    "NO_CLAIM = the files from which the job starts are copied and not changed; CLAIM = they are moved, and "
    "from then on belong to the job.",
    deprecated_keys=("execution.savepoint-restore-mode",),
)
STATE_RECOVERY_TRUSTED: Final[ConfigOption[bool]] = declare.boolean(
    "execution.state-recovery.trusted",
    False,
    _JOB,
    "Whether objects in the state from which the job starts are made although others than this cluster and "
    "its user could have written it. Making an object runs code that the state names: set it only for state "
    "of which you know who wrote it. Plain values need no trust.",
)
STATE_RECOVERY_ALLOW_NON_RESTORED: Final[ConfigOption[bool]] = declare.boolean(
    "execution.state-recovery.ignore-unclaimed-state",
    False,
    _JOB,
    "Whether a job may start from state of operators that its program has no more; their state is left "
    "behind, and is lost for the job.",
    deprecated_keys=("execution.savepoint.ignore-unclaimed-state",),
)
PROGRAM_HEARTBEAT_TIMEOUT_MS: Final[ConfigOption[int]] = declare.duration(
    "client.heartbeat.timeout",
    "3 min",
    _JOB,
    "How long the program of an execute_and_collect() may be silent before its job is canceled, as nobody "
    "reads its elements any more; 30 s or more, as a program that is slow is heard every 10 s.",
    at_least="30 s",
)
TASK_CANCELLATION_TIMEOUT_MS: Final[ConfigOption[int]] = declare.duration(
    "task.cancellation.timeout",
    "3 min",
    _JOB,
    "How long a job that is being canceled may take to stop before its processes are killed.",
)
DRIVER_REPORT_INTERVAL_MS: Final[ConfigOption[int]] = declare.duration(
    "driver.report.interval",
    "1 s",
    _JOB,
    "Longest time between two reports of a driver to its JobMaster; the reports are its heartbeats.",
)
DRIVER_HEARTBEAT_TIMEOUT_MS: Final[ConfigOption[int]] = declare.duration(
    "driver.heartbeat.timeout",
    "50 s",
    _JOB,
    "Time without a report after which a driver counts as lost.",
)
STATE_BACKEND: Final[ConfigOption[str]] = declare.choice(
    "state.backend.type",
    "hashmap",
    ("hashmap", "rocksdb"),
    _JOB,
    "Where the keyed state of functions is between micro-batches: hashmap = in the memory of the Python "
    "workers, with each change in the checkpoints; rocksdb = on local disk, for state larger than memory: "
    "only what is used in a micro-batch is read and written. A job goes on from a checkpoint of either. "
    "Built-in aggregates and scripts have Spark's RocksDB state store with both; "
    "spark.sql.streaming.stateStore.providerClass chooses another.",
    older={"filesystem": "hashmap", "jobmanager": "hashmap"},
    deprecated_keys=("state.backend",),
)
STATE_CHANGELOG: Final[ConfigOption[bool]] = declare.boolean(
    "state.changelog.enabled",
    True,
    _JOB,
    "With each batch, commit only the changes of RocksDB's state, and full snapshots from time to time.",
    deprecated_keys=("state.backend.changelog.enabled",),
)
RESTART_STRATEGY: Final[ConfigOption[str]] = declare.choice(
    "restart-strategy.type",
    "exponential-delay",
    ("none", "off", "disable", "fixed-delay", "failure-rate", "exponential-delay"),
    _JOB,
    "Whether and when a failed job is started again; off and disable mean none.",
    older={
        "fixeddelay": "fixed-delay",
        "failurerate": "failure-rate",
        "exponentialdelay": "exponential-delay",
    },
    deprecated_keys=("restart-strategy",),
)
RESTART_FIXED_DELAY_ATTEMPTS: Final[ConfigOption[int]] = declare.integer(
    "restart-strategy.fixed-delay.attempts",
    1,
    _JOB,
    "fixed-delay: restarts before the job fails.",
    at_least=0,
)
RESTART_FIXED_DELAY_DELAY_MS: Final[ConfigOption[int]] = declare.duration(
    "restart-strategy.fixed-delay.delay", "1 s", _JOB, "fixed-delay: pause before each restart."
)
RESTART_FAILURE_RATE_MAX_FAILURES: Final[ConfigOption[int]] = declare.integer(
    "restart-strategy.failure-rate.max-failures-per-interval",
    1,
    _JOB,
    "failure-rate: restarts within the interval before the job fails.",
    at_least=1,
)
RESTART_FAILURE_RATE_INTERVAL_MS: Final[ConfigOption[int]] = declare.duration(
    "restart-strategy.failure-rate.failure-rate-interval",
    "1 min",
    _JOB,
    "failure-rate: the interval in which failures are counted.",
)
RESTART_FAILURE_RATE_DELAY_MS: Final[ConfigOption[int]] = declare.duration(
    "restart-strategy.failure-rate.delay", "1 s", _JOB, "failure-rate: pause before each restart."
)
RESTART_EXPONENTIAL_INITIAL_BACKOFF_MS: Final[ConfigOption[int]] = declare.duration(
    "restart-strategy.exponential-delay.initial-backoff",
    "1 s",
    _JOB,
    "exponential-delay: the pause before the first restart; also the shortest pause.",
)
RESTART_EXPONENTIAL_MULTIPLIER: Final[ConfigOption[float]] = declare.decimal(
    "restart-strategy.exponential-delay.backoff-multiplier",
    1.5,
    _JOB,
    "exponential-delay: factor by which each pause is longer than the one before.",
    at_least=1.0,
)
RESTART_EXPONENTIAL_MAX_BACKOFF_MS: Final[ConfigOption[int]] = declare.duration(
    "restart-strategy.exponential-delay.max-backoff", "1 min", _JOB, "exponential-delay: the longest pause."
)
RESTART_EXPONENTIAL_RESET_THRESHOLD_MS: Final[ConfigOption[int]] = declare.duration(
    "restart-strategy.exponential-delay.reset-backoff-threshold",
    "1 h",
    _JOB,
    "exponential-delay: after this time without a failure, the next pause is initial-backoff again.",
)
RESTART_EXPONENTIAL_JITTER_FACTOR: Final[ConfigOption[float]] = declare.decimal(
    "restart-strategy.exponential-delay.jitter-factor",
    0.1,
    _JOB,
    "exponential-delay: largest share by which a pause is randomly longer or shorter, so that jobs that "
    "failed at the same time do not restart at the same time.",
    below=1.0,
)
RESTART_EXPONENTIAL_ATTEMPTS: Final[ConfigOption[int]] = declare.integer(
    "restart-strategy.exponential-delay.attempts-before-reset-backoff",
    _INFINITE,
    _JOB,
    "exponential-delay: number of restarts before the job fails; the count starts again after "
    "reset-backoff-threshold without a failure; 2147483647 = no limit.",
    at_least=1,
)
SCHEDULER: Final[ConfigOption[str]] = declare.choice(
    "jobmanager.scheduler",
    "default",
    ("default", "adaptive"),
    _JOB,
    "default = a job starts when it has all its slots, and fails after slot.request.timeout without them; "
    "adaptive = it starts with the slots that are available, uses new ones when they arrive, and continues "
    "with fewer when some are lost.",
)
RESOURCE_WAIT_TIMEOUT_MS: Final[ConfigOption[int]] = declare.duration(
    "jobmanager.adaptive-scheduler.submission.resource-wait-timeout",
    "5 min",
    _JOB,
    "How long the adaptive scheduler waits for all slots; then the job starts with the slots that are "
    "available, or fails if there are none.",
    deprecated_keys=("jobmanager.adaptive-scheduler.resource-wait-timeout",),
)
RESOURCE_STABILIZATION_TIMEOUT_MS: Final[ConfigOption[int]] = declare.duration(
    "jobmanager.adaptive-scheduler.submission.resource-stabilization-timeout",
    "10 s",
    _JOB,
    "The adaptive scheduler starts the job with some of the slots if no further slot has arrived for this "
    "long.",
    deprecated_keys=("jobmanager.adaptive-scheduler.resource-stabilization-timeout",),
)
