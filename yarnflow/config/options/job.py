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
    "Upper bound of the parallelism of a job's operators; a higher one is refused. -1 = 128.",
    at_least=-1,
    at_most=32768,
)
OPERATOR_CHAINING: Final[ConfigOption[bool]] = declare.boolean(
    "pipeline.operator-chaining.enabled",
    True,
    _JOB,
    "Run operators that follow each other without a change of partitioning as one vertex. Switch off only "
    "to see each operator for itself.",
)
PIPELINE_NAME: Final[ConfigOption[str]] = declare.string(
    "pipeline.name",
    "",
    _JOB,
    "Name of the job; empty = the name given to execute(), else that of the program.",
)
JOB_KEY: Final[ConfigOption[str]] = declare.string(
    "pipeline.job-key",
    "",
    _JOB,
    "At most one live job of a cluster has a given key: submitting again attaches to it. Empty = no key.",
)
MICRO_BATCH_INTERVAL_MS: Final[ConfigOption[int]] = declare.duration(
    "execution.micro-batch.interval",
    "0 ms",
    _JOB,
    "Shortest time from the start of a micro-batch to the next; 0 = as soon as the last one is done.",
)
CHECKPOINT_DIR: Final[ConfigOption[str]] = declare.string(
    "execution.checkpointing.dir",
    "",
    _JOB,
    "Directory (a URI) below which each job gets its own for offsets, state and commits; empty = below the "
    "cluster's runtime directory.",
)
TASK_CANCELLATION_TIMEOUT_MS: Final[ConfigOption[int]] = declare.duration(
    "task.cancellation.timeout",
    "3 min",
    _JOB,
    "How long a job that is being cancelled may take to stop before its processes are killed.",
)
DRIVER_REPORT_INTERVAL_MS: Final[ConfigOption[int]] = declare.duration(
    "driver.report.interval",
    "1 s",
    _JOB,
    "Time between two reports of a driver to its JobMaster when nothing happens; they are its heartbeats.",
)
DRIVER_HEARTBEAT_TIMEOUT_MS: Final[ConfigOption[int]] = declare.duration(
    "driver.heartbeat.timeout",
    "50 s",
    _JOB,
    "Silence after which a driver counts as lost.",
)
STATE_BACKEND: Final[ConfigOption[str]] = declare.choice(
    "state.backend.type",
    "rocksdb",
    ("rocksdb", "hashmap"),
    _JOB,
    "Where keyed state lives: rocksdb = on local disk, for state larger than memory; hashmap = on the "
    "heap of the executors.",
)
STATE_CHANGELOG: Final[ConfigOption[bool]] = declare.boolean(
    "state.changelog.enabled",
    True,
    _JOB,
    "Commit only the changes of RocksDB's state with each batch, and whole snapshots from time to time.",
)
RESTART_STRATEGY: Final[ConfigOption[str]] = declare.choice(
    "restart-strategy.type",
    "exponential-delay",
    ("none", "off", "disable", "fixed-delay", "failure-rate", "exponential-delay"),
    _JOB,
    "Whether and when a failed job is started again; off and disable mean none.",
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
    "failure-rate: the interval failures are counted in.",
)
RESTART_FAILURE_RATE_DELAY_MS: Final[ConfigOption[int]] = declare.duration(
    "restart-strategy.failure-rate.delay", "1 s", _JOB, "failure-rate: pause before each restart."
)
RESTART_EXPONENTIAL_INITIAL_BACKOFF_MS: Final[ConfigOption[int]] = declare.duration(
    "restart-strategy.exponential-delay.initial-backoff",
    "1 s",
    _JOB,
    "exponential-delay: pause before the first restart, and the shortest one.",
)
RESTART_EXPONENTIAL_MULTIPLIER: Final[ConfigOption[float]] = declare.decimal(
    "restart-strategy.exponential-delay.backoff-multiplier",
    1.5,
    _JOB,
    "exponential-delay: each pause is so many times the one before.",
    at_least=1.0,
)
RESTART_EXPONENTIAL_MAX_BACKOFF_MS: Final[ConfigOption[int]] = declare.duration(
    "restart-strategy.exponential-delay.max-backoff", "1 min", _JOB, "exponential-delay: the longest pause."
)
RESTART_EXPONENTIAL_RESET_THRESHOLD_MS: Final[ConfigOption[int]] = declare.duration(
    "restart-strategy.exponential-delay.reset-backoff-threshold",
    "1 h",
    _JOB,
    "exponential-delay: after so long without a failure the pauses start from the first again.",
)
RESTART_EXPONENTIAL_JITTER_FACTOR: Final[ConfigOption[float]] = declare.decimal(
    "restart-strategy.exponential-delay.jitter-factor",
    0.1,
    _JOB,
    "exponential-delay: a pause is longer or shorter by a random share of up to this, so that jobs that "
    "failed together do not return together.",
    below=1.0,
)
RESTART_EXPONENTIAL_ATTEMPTS: Final[ConfigOption[int]] = declare.integer(
    "restart-strategy.exponential-delay.attempts-before-reset-backoff",
    _INFINITE,
    _JOB,
    "exponential-delay: restarts without a quiet time of reset-backoff-threshold before the job fails; "
    "2147483647 = no limit.",
    at_least=1,
)
