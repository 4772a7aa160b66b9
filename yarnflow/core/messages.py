"""What processes say to each other, as plain values.

Every structure here has a Thrift struct of the same name with a ``T`` before it; only
:mod:`yarnflow.rpc.codec` knows both.  Times are milliseconds since the epoch unless the
name says otherwise; ``-1`` stands for "not yet" as in Flink's REST answers.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from yarnflow.core.checkpoint.messages import (
    CheckpointOutcome,
    JobStop,
    QueryPosition,
    RestoreSettings,
    SourceProgress,
    StateOperatorProgress,
)
from yarnflow.core.ids import AllocationId, DriverId, ExecutorId, JobId, TaskManagerId, VertexId
from yarnflow.core.metrics import ScopeKind
from yarnflow.core.states import ExecutionState, JobStatus, RestartLevel


@dataclass(frozen=True, slots=True)
class Fence:
    """Who the caller takes for leader.  Flink: ``FencedRpcEndpoint``'s token."""

    leader_id: str
    #: rises with every leader; 0 = "whoever leads", allowed only for clients' calls
    epoch: int


@dataclass(frozen=True, slots=True)
class ErrorInfo:
    """An error that crosses a process boundary."""

    #: a ``YarnflowError.code``
    code: str
    #: one line
    message: str
    #: user traceback (never Java frames) or empty
    details: str = ""


@dataclass(frozen=True, slots=True)
class MetricDump:
    """Newest values of a scope, or of one operator in it, on their way to the JobManager.

    Flink: ``MetricDump``.
    """

    #: job or TaskManager are those of the message that carries it
    kind: ScopeKind
    vertex_id: VertexId = VertexId("")
    subtask_index: int = -1
    #: name of an operator in a subtask; empty = the values are the subtask's own
    operator: str = ""
    #: name → whole number
    counts: dict[str, int] = field(default_factory=dict)
    #: name → other number
    rates: dict[str, float] = field(default_factory=dict)


# --- Dispatcher -------------------------------------------------------------


class ProgramKind(Enum):
    """The two kinds of program one runtime serves."""

    #: a JobGraph made by the DataStream API on the client
    GRAPH = "GRAPH"
    #: an unmodified PySpark script whose main runs in the driver
    SCRIPT = "SCRIPT"


@dataclass(frozen=True, slots=True)
class JobSubmission:
    """All a cluster needs to run a job."""

    job_id: JobId
    name: str
    kind: ProgramKind
    #: JobGraph JSON (``graph.codec``); a script has a graph of one vertex
    job_graph_json: str
    #: the job's own options, key → text, already validated by the client
    configuration: dict[str, str]
    #: empty: no key; else at most one live job has it
    job_key: str = ""
    #: file name → content; a script is named first in ``script_argv``, a graph has what its functions need
    files: dict[str, bytes] = field(default_factory=dict)
    #: SCRIPT only: program file name, then its arguments
    script_argv: tuple[str, ...] = ()
    #: state to start from; None = none
    restore: RestoreSettings | None = None
    #: of the program and its arguments; empty = not known
    program_digest: str = ""
    #: what an earlier version would have made the job's key; empty: the user chose ``job_key``
    earlier_job_key: str = ""


@dataclass(frozen=True, slots=True)
class JobSubmitted:
    """Answer to a submission."""

    job_id: JobId
    #: the key belonged to a live job already, whose id this is
    attached_to_existing: bool = False
    #: that job runs another program, or has other arguments
    other_program: bool = False


@dataclass(frozen=True, slots=True)
class JobOverview:
    """One line of ``yarnflow list``.  Flink: ``GET /jobs/overview``."""

    job_id: JobId
    name: str
    status: JobStatus
    start_time_ms: int
    end_time_ms: int
    job_key: str = ""
    #: slots the job has / wants
    slots_allocated: int = 0
    slots_required: int = 0


@dataclass(frozen=True, slots=True)
class ExecutionInfo:
    """One attempt of one subtask."""

    subtask_index: int
    attempt: int
    state: ExecutionState
    task_manager_id: str = ""
    #: state name → time of entry
    timestamps_ms: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class VertexInfo:
    """One vertex of the ExecutionGraph with its current executions."""

    vertex_id: VertexId
    name: str
    parallelism: int
    max_parallelism: int
    slot_sharing_group: str
    executions: tuple[ExecutionInfo, ...] = ()


@dataclass(frozen=True, slots=True)
class QueryProgress:
    """What a streaming query last said of itself.  Spark: ``StreamingQueryProgress``."""

    query: str
    #: last completed batch; -1 before the first
    batch_id: int = -1
    #: when that batch began
    at_ms: int = -1
    batch_duration_ms: int = 0
    input_rows: int = 0
    #: rows of the last batch that left through the sink; -1 = Spark does not say
    output_rows: int = -1
    input_rows_per_second: float = 0.0
    processed_rows_per_second: float = 0.0
    #: event time; -1 = no watermark
    watermark_ms: int = -1
    #: totals since the query first started in this driver
    total_input_rows: int = 0
    total_output_rows: int = 0
    state_rows: int = 0
    state_bytes: int = 0
    #: parts of the last batch's time, in Spark's words (``addBatch``, ``commitOffsets``, ``walCommit`` …)
    durations_ms: dict[str, int] = field(default_factory=dict)
    sources: tuple[SourceProgress, ...] = ()
    operators: tuple[StateOperatorProgress, ...] = ()
    #: Spark's checkpoint directory of the query (a URI); empty = not known
    directory: str = ""


@dataclass(frozen=True, slots=True)
class FailureInfo:
    """One entry of a job's exception history."""

    at_ms: int
    error: ErrorInfo
    #: where it happened: TaskManager, executor or driver id; empty if unknown
    location: str = ""
    level: RestartLevel = RestartLevel.QUERY
    #: the job went on after it
    recovered: bool = False


@dataclass(frozen=True, slots=True)
class JobDetails:
    """Everything about one job.  Flink: ``GET /jobs/:id``."""

    overview: JobOverview
    #: rises with every change; for long polls
    version: int
    #: status name → first time of entry
    timestamps_ms: dict[str, int] = field(default_factory=dict)
    vertices: tuple[VertexInfo, ...] = ()
    queries: tuple[QueryProgress, ...] = ()
    failures: tuple[FailureInfo, ...] = ()
    #: restarts counted by the restart strategy
    restarts: int = 0
    #: why the job waits, empty when it does not
    waiting_for: str = ""
    #: milestones of the start, name → time (SUBMITTED, SLOTS, DRIVER_STARTED and JVM_UP or DRIVER_REUSED,
    #: CONTEXT_UP, SESSION_UP, EXECUTORS_UP, QUERY_STARTED, FIRST_BATCH)
    milestones_ms: dict[str, int] = field(default_factory=dict)
    #: root cause when FAILED
    error: ErrorInfo | None = None
    #: how a FINISHED job was stopped; None = it has ended by itself
    stop: JobStop | None = None


@dataclass(frozen=True, slots=True)
class ClusterOverview:
    """Flink: ``GET /overview``."""

    task_managers: int
    slots_total: int
    slots_available: int
    jobs_running: int
    jobs_finished: int
    jobs_canceled: int
    jobs_failed: int
    version: str


@dataclass(frozen=True, slots=True)
class LeaderInfo:
    """Whom to talk to, and with which fence.  Flink: ``LeaderInformation``."""

    fence: Fence
    #: ``host:port`` of the leader's Thrift server
    address: str
    version: str
    cluster_id: str
    #: ``http://host:port`` of the leader's web page; empty = it has none
    web_address: str = ""


@dataclass(frozen=True, slots=True)
class RestAccess:
    """How a client that has the cluster's secret uses the REST interface."""

    #: ``http://host:port``; empty = there is none
    address: str = ""
    #: token with which a client may read; empty = none is needed
    read_token: str = field(default="", repr=False)
    #: token with which it may change something as well; empty = none is needed
    write_token: str = field(default="", repr=False)


class FaultKind(Enum):
    """What a drill breaks."""

    #: the leader's JobManager process is killed
    LEADER = "LEADER"
    #: the job's driver is killed
    DRIVER = "DRIVER"
    #: a TaskManager the job uses is killed
    TASK_MANAGER = "TASK_MANAGER"
    #: the leader's whole master is killed, with its supervisor and its drivers
    APPLICATION = "APPLICATION"
    #: the leader's ZooKeeper session is ended
    ZOOKEEPER = "ZOOKEEPER"


@dataclass(frozen=True, slots=True)
class FaultRequest:
    """A drill: break something a job needs."""

    kind: FaultKind
    job_id: JobId
    #: only say what would be done; refuse what cannot be
    check_only: bool = False


@dataclass(frozen=True, slots=True)
class FaultInjected:
    """What a drill broke, or would break."""

    #: one line: process, id and host
    victim: str
    #: when it happens, by the leader's clock
    at_ms: int


@dataclass(frozen=True, slots=True)
class LogLevel:
    """What a logger says from now on, until its process starts again."""

    #: as in log lines; empty = all that have no level of their own
    logger: str
    #: TRACE, DEBUG, INFO, WARN, ERROR, OFF; empty = that of the logger above it
    level: str


@dataclass(frozen=True, slots=True)
class LogLevelAnswer:
    """Whether one process has taken it."""

    process: str
    #: why not; empty = it has
    error: str = ""


@dataclass(frozen=True, slots=True)
class LogLevelResult:
    """Whether all have."""

    processes: tuple[LogLevelAnswer, ...]


# --- ResourceManager and TaskExecutor ---------------------------------------


@dataclass(frozen=True, slots=True)
class SlotStatus:
    """One slot as its TaskManager sees it."""

    index: int
    #: empty when free
    allocation_id: str = ""
    job_id: str = ""


@dataclass(frozen=True, slots=True)
class ExecutorStatus:
    """One executor process as its TaskManager sees it."""

    executor_id: ExecutorId
    job_id: JobId
    driver_id: DriverId
    pid: int
    cores: int


@dataclass(frozen=True, slots=True)
class TaskManagerRegistration:
    """What a TaskManager brings.  Flink: ``TaskExecutorRegistration``."""

    task_manager_id: TaskManagerId
    #: ``host:port`` of its Thrift server
    address: str
    host: str
    pid: int
    slots: int
    #: the ResourceProvider's name for the worker (container id; empty for standalone)
    worker_id: str = ""
    process_memory_mib: int = 0
    executor_heap_mib: int = 0
    cores: int = 0
    #: what it holds already, given by an earlier leader
    allocations: tuple[SlotStatus, ...] = ()
    executors: tuple[ExecutorStatus, ...] = ()
    #: of the machine; 0 = unknown
    physical_memory_bytes: int = 0
    #: parts of the process's memory beside the heap (framework, overhead, metaspace, python, offheap), MiB
    memory_mib: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TaskManagerHeartbeat:
    """Slot and executor report.  Flink: ``TaskExecutorHeartbeatPayload``."""

    task_manager_id: TaskManagerId
    slots: tuple[SlotStatus, ...] = ()
    executors: tuple[ExecutorStatus, ...] = ()
    #: all of the TaskManager's at once; empty = nothing was measured since the last heartbeat
    metrics: tuple[MetricDump, ...] = ()


@dataclass(frozen=True, slots=True)
class SlotRequest:
    """The ResourceManager tells a TaskManager to give a slot to a job."""

    job_id: JobId
    allocation_id: AllocationId
    slot_index: int


@dataclass(frozen=True, slots=True)
class SlotOffer:
    """A TaskManager offers an allocated slot to the JobMaster."""

    allocation_id: AllocationId
    slot_index: int
    task_manager_id: TaskManagerId
    #: the TaskManager's Thrift address
    address: str
    #: the executor that serves the slot already, started for an earlier leader, or that waits there for
    #: another job of its driver
    executor: ExecutorStatus | None = None

    def runs_for(self, driver_id: DriverId) -> bool:
        """Whether an executor of this driver ran on the slot when it was offered."""
        return self.executor is not None and self.executor.driver_id == driver_id


@dataclass(frozen=True, slots=True)
class ExecutorDescriptor:
    """What a TaskManager starts for the slots a job was given: one Spark executor."""

    job_id: JobId
    driver_id: DriverId
    executor_id: ExecutorId
    #: ``spark://CoarseGrainedScheduler@host:port``
    driver_url: str
    #: Spark's application id
    app_id: str
    #: task threads = slots of this executor
    cores: int
    allocation_ids: tuple[AllocationId, ...] = ()
    #: JVM options and environment the driver asks for (never secrets)
    java_options: tuple[str, ...] = ()
    environment: dict[str, str] = field(default_factory=dict)
    #: all slots that the job wants at once, with those of a hot spare; 0 = the executor may outlive the job
    job_slots: int = 0

    @property
    def has_whole_job(self) -> bool:
        """As long as it lives, the job has no other one."""
        return self.cores == self.job_slots


@dataclass(frozen=True, slots=True)
class ExecutorExited:
    """A TaskManager reports the end of an executor it started."""

    job_id: JobId
    driver_id: DriverId
    executor_id: ExecutorId
    task_manager_id: TaskManagerId
    #: negative = killed by that signal
    exit_status: int
    #: last lines of its output
    output_tail: str = ""


# --- Driver -----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DriverAssignment:
    """What a driver process is told on its standard input before it does anything for a job."""

    job_id: JobId
    driver_id: DriverId
    #: Thrift address and fence of the JobMaster
    job_master_address: str
    fence: Fence
    #: checkpoint directory of the job (a URI)
    checkpoint_dir: str
    #: scratch directory of this job's attempts on this machine
    work_dir: str
    job_name: str = ""
    #: the job's own options over the cluster's, key → text
    configuration: dict[str, str] = field(default_factory=dict)
    #: the job's driver, which this one is to be lost apart from: it has time before it is deployed, if
    #: it ever is, and may use it to get warm.  Empty = it is the job's driver itself
    hot_spare_of: DriverId = DriverId("")


@dataclass(frozen=True, slots=True)
class DriverRegistration:
    """A driver's SparkContext is up and executors may dial in."""

    job_id: JobId
    driver_id: DriverId
    #: Thrift address of the driver
    address: str
    pid: int
    driver_url: str
    app_id: str
    java_options: tuple[str, ...] = ()
    environment: dict[str, str] = field(default_factory=dict)
    milestones_ms: dict[str, int] = field(default_factory=dict)
    #: deployment it runs already, under an earlier leader; 0 = none
    attempt: int = 0
    #: the job it runs, for a leader that has said that it cannot read it
    submission: JobSubmission | None = None


class DriverPhase(Enum):
    """How far a driver is with its job."""

    #: session up, nothing deployed
    IDLE = "IDLE"
    #: compiling the graph, waiting for executors, starting queries
    DEPLOYING = "DEPLOYING"
    #: every query of the job is active (or the script's main runs)
    RUNNING = "RUNNING"
    FINISHED = "FINISHED"
    FAILED = "FAILED"
    CANCELED = "CANCELED"


@dataclass(frozen=True, slots=True)
class IdleQueries:
    """When the queries of an attempt had nothing to do; those that have ended well have nothing any more."""

    #: how long ago none of them had anything to do; -1 = this was not seen
    ago_ms: int = -1
    #: where those are that have committed nothing since they were started
    positions: tuple[QueryPosition, ...] = ()


@dataclass(frozen=True, slots=True)
class DriverReport:
    """Heartbeat, progress and terminal report of a driver in one."""

    job_id: JobId
    driver_id: DriverId
    #: the deployment this report is about; rises with each ``deploy`` call
    attempt: int
    phase: DriverPhase
    #: executors registered with the SparkContext now
    executor_ids: tuple[ExecutorId, ...] = ()
    queries: tuple[QueryProgress, ...] = ()
    milestones_ms: dict[str, int] = field(default_factory=dict)
    #: FAILED only
    error: ErrorInfo | None = None
    #: FAILED only: the SparkContext is gone as well; only a new driver helps
    driver_unusable: bool = False
    #: orders of the last minutes that have an outcome
    checkpoints: tuple[CheckpointOutcome, ...] = ()
    #: all of the job's at once; empty = nothing was measured since the last report
    metrics: tuple[MetricDump, ...] = ()
    #: RUNNING only; else nothing is known
    idle: IdleQueries = IdleQueries()


@dataclass(frozen=True, slots=True)
class DriverDeployment:
    """JobMaster → driver: run the job now."""

    attempt: int
    #: None = the driver was sent it before, by an earlier deployment
    submission: JobSubmission | None = None
    #: executors that must have registered before queries start
    executor_ids: tuple[ExecutorId, ...] = ()
    #: state to begin with where the job's own directory has none; ``latest`` is resolved already
    restore: RestoreSettings | None = None
    #: names the submission; :func:`yarnflow.core.submissions.submission_digest`
    submission_digest: str = ""
