"""Every metric, declared once: ``docs/metrics.md`` is made from this, and nothing else names one as text.

A metric whose meaning is Flink's has Flink's name.  Flink counterparts: ``MetricNames`` and the tables of
its page "Metrics".
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

from yarnflow.core.metrics import ScopeKind
from yarnflow.core.states import JobStatus


class MetricKind(Enum):
    """How values of one metric follow each other.  Flink: the subclasses of ``Metric``."""

    #: up and down
    GAUGE = "Gauge"
    #: only up, from 0 with each attempt of the job
    COUNTER = "Counter"
    #: events per second, over the last minute
    METER = "Meter"


class Unit(Enum):
    """Of a metric's values."""

    NONE = ""
    MILLISECONDS = "ms"
    NANOSECONDS = "ns"
    SECONDS = "s"
    EPOCH_MILLISECONDS = "ms since the epoch"
    MILLISECONDS_PER_SECOND = "ms per second"
    BYTES = "bytes"
    RECORDS = "records"
    RECORDS_PER_SECOND = "records per second"
    BYTES_PER_SECOND = "bytes per second"
    #: share of all processors of the machine
    SHARE = "0 to 1"


@dataclass(frozen=True, slots=True)
class MetricDeclaration:
    """One metric.

    Attributes
    ----------
    name : str
        As in Flink's REST interface, without its scope.
    scopes : tuple of ScopeKind
        Where it is measured.
    is_text : bool
        Its value is a label, such as a path; reporters of numbers leave it out.
    """

    name: str
    scopes: tuple[ScopeKind, ...]
    kind: MetricKind
    unit: Unit
    description: str
    #: Flink has it, under this name
    of_flink: bool = True
    is_text: bool = False


_JM: Final = (ScopeKind.JOB_MANAGER,)
_TM: Final = (ScopeKind.TASK_MANAGER,)
_JOB: Final = (ScopeKind.JOB,)
_TASK: Final = (ScopeKind.VERTEX, ScopeKind.SUBTASK)
_VERTEX: Final = (ScopeKind.VERTEX,)
_PROCESS: Final = (ScopeKind.JOB_MANAGER, ScopeKind.TASK_MANAGER, ScopeKind.JOB)


def _gauge(
    name: str, scopes: tuple[ScopeKind, ...], unit: Unit, description: str, of_flink: bool = True
) -> MetricDeclaration:
    return MetricDeclaration(name, scopes, MetricKind.GAUGE, unit, description, of_flink)


def _counter(
    name: str, scopes: tuple[ScopeKind, ...], unit: Unit, description: str, of_flink: bool = True
) -> MetricDeclaration:
    return MetricDeclaration(name, scopes, MetricKind.COUNTER, unit, description, of_flink)


def _meter(
    name: str, scopes: tuple[ScopeKind, ...], unit: Unit, description: str, of_flink: bool = True
) -> MetricDeclaration:
    return MetricDeclaration(name, scopes, MetricKind.METER, unit, description, of_flink)


# --- cluster ------------------------------------------------------------------

REGISTERED_TASK_MANAGERS: Final = _gauge(
    "numRegisteredTaskManagers", _JM, Unit.NONE, "TaskManagers that are registered."
)
PENDING_TASK_MANAGERS: Final = _gauge(
    "numPendingTaskManagers", _JM, Unit.NONE, "TaskManagers that were asked for and have not registered."
)
RUNNING_JOBS: Final = _gauge("numRunningJobs", _JM, Unit.NONE, "Jobs that are not over.")
SLOTS_AVAILABLE: Final = _gauge("taskSlotsAvailable", _JM, Unit.NONE, "Slots that no job has.")
SLOTS_TOTAL: Final = _gauge("taskSlotsTotal", _JM, Unit.NONE, "Slots of all registered TaskManagers.")

# --- job ----------------------------------------------------------------------


def _status_time(status: JobStatus) -> MetricDeclaration:
    return _gauge(
        f"{status.name.lower()}Time",
        _JOB,
        Unit.MILLISECONDS,
        f"Since the job is {status.name}; 0 = it is not.",
    )


INITIALIZING_TIME: Final = _status_time(JobStatus.INITIALIZING)
CREATED_TIME: Final = _status_time(JobStatus.CREATED)
RUNNING_TIME: Final = _status_time(JobStatus.RUNNING)
RESTARTING_TIME: Final = _status_time(JobStatus.RESTARTING)
FAILING_TIME: Final = _status_time(JobStatus.FAILING)
CANCELLING_TIME: Final = _status_time(JobStatus.CANCELLING)
#: status → how long a job is in it
STATUS_TIMES: Final = {
    JobStatus.INITIALIZING: INITIALIZING_TIME,
    JobStatus.CREATED: CREATED_TIME,
    JobStatus.RUNNING: RUNNING_TIME,
    JobStatus.RESTARTING: RESTARTING_TIME,
    JobStatus.FAILING: FAILING_TIME,
    JobStatus.CANCELLING: CANCELLING_TIME,
}
DEPLOYING_TIME: Final = _gauge(
    "deployingTime", _JOB, Unit.MILLISECONDS, "Since the oldest subtask that is DEPLOYING is so; 0 = none is."
)
ALL_RUNNING_TIME: Final = _gauge(
    "allSubTasksRunningOrFinishedTime",
    _JOB,
    Unit.MILLISECONDS,
    "Since all subtasks are RUNNING or FINISHED; 0 = they are not.",
)
UPTIME: Final = _gauge(
    "uptime",
    _JOB,
    Unit.MILLISECONDS,
    "How long the job has been RUNNING without interruption; 0 = it does not run, -1 = it is over.",
)
DOWNTIME: Final = _gauge(
    "downtime",
    _JOB,
    Unit.MILLISECONDS,
    "How long a job that has run has been interrupted; 0 = it runs, -1 = it is over.",
)
NUM_RESTARTS: Final = _gauge(
    "numRestarts", _JOB, Unit.NONE, "Restarts that the restart strategy counted since the job was submitted."
)
SLOTS_ALLOCATED: Final = _gauge("slotsAllocated", _JOB, Unit.NONE, "Slots that the job has.", of_flink=False)
SLOTS_REQUIRED: Final = _gauge("slotsRequired", _JOB, Unit.NONE, "Slots that the job wants.", of_flink=False)

CHECKPOINTS_COMPLETED: Final = _gauge(
    "numberOfCompletedCheckpoints", _JOB, Unit.NONE, "Checkpoints and savepoints that were completed."
)
CHECKPOINTS_FAILED: Final = _gauge(
    "numberOfFailedCheckpoints", _JOB, Unit.NONE, "Checkpoints and savepoints that failed."
)
CHECKPOINTS_IN_PROGRESS: Final = _gauge(
    "numberOfInProgressCheckpoints", _JOB, Unit.NONE, "Checkpoints and savepoints that are being taken."
)
CHECKPOINTS_TOTAL: Final = _gauge("totalNumberOfCheckpoints", _JOB, Unit.NONE, "The sum of the three.")
LAST_CHECKPOINT_ID: Final = _gauge(
    "lastCompletedCheckpointId", _JOB, Unit.NONE, "Number of the newest completed one; -1 = there is none."
)
LAST_CHECKPOINT_DURATION: Final = _gauge(
    "lastCheckpointDuration",
    _JOB,
    Unit.MILLISECONDS,
    "From the trigger of the newest completed one to its end; -1 = there is none.",
)
LAST_CHECKPOINT_SIZE: Final = _gauge(
    "lastCheckpointSize",
    _JOB,
    Unit.BYTES,
    "What the newest completed one has copied. A checkpoint names batches that are durable already, so it "
    "copies nothing; a savepoint copies all state. -1 = there is none.",
)
LAST_CHECKPOINT_FULL_SIZE: Final = _gauge(
    "lastCheckpointFullSize",
    _JOB,
    Unit.BYTES,
    "State, as Spark's state stores tell, of the newest completed one; -1 = there is none.",
)
LAST_CHECKPOINT_COMPLETED: Final = _gauge(
    "lastCheckpointCompletedTimestamp",
    _JOB,
    Unit.EPOCH_MILLISECONDS,
    "When the newest one was completed; -1 = there is none.",
)
LAST_CHECKPOINT_RESTORED: Final = _gauge(
    "lastCheckpointRestoreTimestamp",
    _JOB,
    Unit.EPOCH_MILLISECONDS,
    "When the state that the job started from was brought to its place; -1 = it started without.",
)
LAST_CHECKPOINT_PATH: Final = MetricDeclaration(
    "lastCheckpointExternalPath",
    _JOB,
    MetricKind.GAUGE,
    Unit.NONE,
    "Directory of the newest completed one; `n/a` = there is none.",
    is_text=True,
)
CHECKPOINT_AGE: Final = _gauge(
    "checkpointAge",
    _JOB,
    Unit.MILLISECONDS,
    "Since the newest checkpoint was completed, or the job last had nothing to do and all was in it; while "
    "there is none, since the job was submitted.",
    of_flink=False,
)
LAST_COMMIT: Final = _gauge(
    "lastCommitTimestamp",
    _JOB,
    Unit.EPOCH_MILLISECONDS,
    "When the query that has been silent for longest committed a batch last, by the driver's clock.",
    of_flink=False,
)
SECONDS_SINCE_COMMIT: Final = _gauge(
    "secondsSinceLastCommit",
    _JOB,
    Unit.SECONDS,
    "Since lastCommitTimestamp. It grows, too, while there is no input: compare it with pendingRecords.",
    of_flink=False,
)
EXECUTORS: Final = _gauge(
    "numExecutors", _JOB, Unit.NONE, "Spark executors that are registered at the driver.", of_flink=False
)
ACTIVE_TASKS: Final = _gauge("numActiveTasks", _JOB, Unit.NONE, "Spark tasks that run now.", of_flink=False)
COMPLETED_TASKS: Final = _counter(
    "numCompletedTasks",
    _JOB,
    Unit.NONE,
    "Spark tasks that ended well, on the executors there are.",
    of_flink=False,
)
FAILED_TASKS: Final = _counter(
    "numFailedTasks", _JOB, Unit.NONE, "Spark tasks that failed, on the executors there are.", of_flink=False
)
TASK_TIME: Final = _counter(
    "taskTime",
    _JOB,
    Unit.MILLISECONDS,
    "How long Spark tasks ran, on the executors there are.",
    of_flink=False,
)
SHUFFLE_READ: Final = _counter(
    "shuffleReadBytes", _JOB, Unit.BYTES, "What Spark tasks read of exchanges.", of_flink=False
)
SHUFFLE_WRITTEN: Final = _counter(
    "shuffleWriteBytes", _JOB, Unit.BYTES, "What Spark tasks wrote for exchanges.", of_flink=False
)

# --- vertices and their subtasks -------------------------------------------------

RECORDS_IN: Final = _counter(
    "numRecordsIn", _TASK, Unit.RECORDS, "Records that went in; of a source those that it read."
)
RECORDS_OUT: Final = _counter(
    "numRecordsOut", _TASK, Unit.RECORDS, "Records that came out; of a sink those that were written."
)
RECORDS_IN_ERRORS: Final = _counter(
    "numRecordsInErrors",
    _TASK,
    Unit.RECORDS,
    "Of a source of messages: those that could not be read, or not all of them, where the format ignores "
    "errors or they go to a side output. Not counted in real-time mode.",
)
RECORDS_IN_RATE: Final = _meter(
    "numRecordsInPerSecond", _TASK, Unit.RECORDS_PER_SECOND, "Rate of numRecordsIn."
)
RECORDS_OUT_RATE: Final = _meter(
    "numRecordsOutPerSecond", _TASK, Unit.RECORDS_PER_SECOND, "Rate of numRecordsOut."
)
INPUT_WATERMARK: Final = _gauge(
    "currentInputWatermark",
    _TASK,
    Unit.EPOCH_MILLISECONDS,
    "The watermark; -9223372036854775808 = there is none yet.",
)
BUSY_TIME: Final = _gauge(
    "busyTimeMsPerSecond",
    _TASK,
    Unit.MILLISECONDS_PER_SECOND,
    "Share of the time in which tasks of the vertex ran: see above.",
)
BACK_PRESSURED_TIME: Final = _gauge(
    "backPressuredTimeMsPerSecond",
    _TASK,
    Unit.MILLISECONDS_PER_SECOND,
    "Share of the time in which input had to wait for the batch before it: see above. 0 behind sources.",
)
IDLE_TIME: Final = _gauge(
    "idleTimeMsPerSecond", _TASK, Unit.MILLISECONDS_PER_SECOND, "The rest of each second."
)
BUSY_TOTAL: Final = _counter("accumulateBusyTimeMs", _TASK, Unit.MILLISECONDS, "Sum of the busy time.")
BACK_PRESSURED_TOTAL: Final = _counter(
    "accumulateBackPressuredTimeMs", _TASK, Unit.MILLISECONDS, "Sum of the back-pressured time."
)
IDLE_TOTAL: Final = _counter("accumulateIdleTimeMs", _TASK, Unit.MILLISECONDS, "Sum of the idle time.")
PENDING_RECORDS: Final = _gauge(
    "pendingRecords", _VERTEX, Unit.RECORDS, "Of a Kafka source: messages that were not read yet."
)
BATCH_DURATION: Final = _gauge(
    "lastBatchDuration",
    _VERTEX,
    Unit.MILLISECONDS,
    "Of the query that the vertex is part of.",
    of_flink=False,
)
BATCH_ID: Final = _gauge(
    "lastBatchId", _VERTEX, Unit.NONE, "Number of that query's last batch; -1 = none yet.", of_flink=False
)
STATE_ROWS: Final = _gauge(
    "stateRows", _VERTEX, Unit.NONE, "Rows in that query's state, as Spark tells.", of_flink=False
)
STATE_BYTES: Final = _gauge(
    "stateBytes", _VERTEX, Unit.BYTES, "Memory of that query's state, as Spark tells.", of_flink=False
)

# --- processes ------------------------------------------------------------------

PYTHON_MEMORY: Final = _gauge(
    "Status.Python.Memory.Resident", _PROCESS, Unit.BYTES, "Memory that Python has got.", of_flink=False
)
PYTHON_CPU_LOAD: Final = _gauge(
    "Status.Python.CPU.Load",
    _PROCESS,
    Unit.SHARE,
    "Processor time of the Python process since the last look.",
    of_flink=False,
)
PYTHON_CPU_TIME: Final = _counter(
    "Status.Python.CPU.Time",
    _PROCESS,
    Unit.NANOSECONDS,
    "Processor time of the Python process.",
    of_flink=False,
)
PYTHON_THREADS: Final = _gauge(
    "Status.Python.Threads.Count", _PROCESS, Unit.NONE, "Threads of the Python process.", of_flink=False
)
PYTHON_DESCRIPTORS: Final = _gauge(
    "Status.Python.FileDescriptor.Open",
    _PROCESS,
    Unit.NONE,
    "Open file descriptors of the Python process.",
    of_flink=False,
)
PYTHON_MAX_DESCRIPTORS: Final = _gauge(
    "Status.Python.FileDescriptor.Max",
    _JM + _TM,
    Unit.NONE,
    "Open file descriptors it may have.",
    of_flink=False,
)
WORKERS: Final = _gauge(
    "Status.Python.Workers.Count", _TM, Unit.NONE, "Spark's Python workers and their daemons.", of_flink=False
)
WORKERS_MEMORY: Final = _gauge(
    "Status.Python.Workers.Memory.Resident",
    _TM,
    Unit.BYTES,
    "Memory of all Python workers; what they share counts for each.",
    of_flink=False,
)
WORKERS_CPU_LOAD: Final = _gauge(
    "Status.Python.Workers.CPU.Load", _TM, Unit.SHARE, "Processor time of all Python workers.", of_flink=False
)
_JVM: Final = (ScopeKind.TASK_MANAGER, ScopeKind.JOB)
JVM_COUNT: Final = _gauge(
    "Status.JVM.Count", _TM, Unit.NONE, "Spark executors of the TaskManager.", of_flink=False
)
JVM_MEMORY: Final = _gauge(
    "Status.JVM.Memory.Resident",
    _JVM,
    Unit.BYTES,
    "Memory that the executors' JVMs, or the driver's, have got from the system.",
    of_flink=False,
)
JVM_CPU_LOAD: Final = _gauge(
    "Status.JVM.CPU.Load", _JVM, Unit.SHARE, "Processor time of the executors' JVMs, or the driver's."
)
JVM_CPU_TIME: Final = _counter(
    "Status.JVM.CPU.Time", _JVM, Unit.NANOSECONDS, "Processor time of the executors' JVMs, or the driver's."
)
JVM_THREADS: Final = _gauge(
    "Status.JVM.Threads.Count",
    _JVM,
    Unit.NONE,
    "Threads of the executors' JVMs, or the driver's, with those of the JVM itself.",
)
JVM_DESCRIPTORS: Final = _gauge(
    "Status.JVM.FileDescriptor.Open",
    _JVM,
    Unit.NONE,
    "Open file descriptors of the executors' JVMs, or the driver's.",
)
JVM_HEAP_USED: Final = _gauge(
    "Status.JVM.Memory.Heap.Used", _JOB, Unit.BYTES, "Heap of the driver's JVM in use."
)
JVM_HEAP_COMMITTED: Final = _gauge(
    "Status.JVM.Memory.Heap.Committed", _JOB, Unit.BYTES, "Heap of the driver's JVM that there is."
)
JVM_HEAP_MAX: Final = _gauge("Status.JVM.Memory.Heap.Max", _JOB, Unit.BYTES, "Limit of the driver's heap.")
JVM_GC_COUNT: Final = _counter(
    "Status.JVM.GarbageCollector.All.Count", _JOB, Unit.NONE, "Garbage collections in the driver's JVM."
)
JVM_GC_TIME: Final = _counter(
    "Status.JVM.GarbageCollector.All.Time",
    _JOB,
    Unit.MILLISECONDS,
    "Time of the garbage collections in the driver's JVM.",
)
EXECUTOR_HEAP_PEAK: Final = _gauge(
    "executors.Heap.Peak",
    _JOB,
    Unit.BYTES,
    "The largest heap that one of the job's executors has had in use since its start, as Spark tells.",
    of_flink=False,
)
EXECUTOR_GC_TIME: Final = _counter(
    "executors.GarbageCollector.Time",
    _JOB,
    Unit.MILLISECONDS,
    "Time of garbage collections in the executors there are.",
    of_flink=False,
)

ALL_METRICS: Final[tuple[MetricDeclaration, ...]] = tuple(
    value for value in list(vars().values()) if isinstance(value, MetricDeclaration)
)
METRICS_BY_NAME: Final[dict[str, MetricDeclaration]] = {metric.name: metric for metric in ALL_METRICS}
