// What processes say to each other: one struct per dataclass of `yarnflow/core/messages.py`,
// same fields in the same order, camelCase names; `yarnflow/rpc/codec.py` converts by name.
// Rules: field ids are never used again; a new field is `optional` and has a default in the
// dataclass, so that processes of neighbouring versions understand each other.
// Times are milliseconds since the epoch unless the name says otherwise; -1 = not yet.

namespace py types

// --- states -----------------------------------------------------------------

/** State of a job. */
enum TJobStatus {
  INITIALIZING = 1,
  CREATED = 2,
  RUNNING = 3,
  FAILING = 4,
  FAILED = 5,
  CANCELLING = 6,
  CANCELED = 7,
  FINISHED = 8,
  RESTARTING = 9,
  SUSPENDED = 10,
  RECONCILING = 11,
  RECOVERY_FAILED = 12,
}

/** State of one attempt of one subtask. */
enum TExecutionState {
  CREATED = 1,
  SCHEDULED = 2,
  DEPLOYING = 3,
  INITIALIZING = 4,
  RUNNING = 5,
  FINISHED = 6,
  CANCELING = 7,
  CANCELED = 8,
  FAILED = 9,
  RECONCILING = 10,
}

/** How far up a failure had to go before the job went on. */
enum TRestartLevel {
  /** Spark reran tasks; the query never stopped */
  TASKS = 1,
  /** the query was started again in the same driver */
  QUERY = 2,
  /** a new driver process on the same TaskManagers */
  DRIVER = 3,
  /** another master adopted the job */
  MASTER = 4,
}

/** The two kinds of program one runtime serves. */
enum TProgramKind {
  /** a JobGraph made by the DataStream API on the client */
  GRAPH = 1,
  /** an unmodified PySpark script whose main runs in the driver */
  SCRIPT = 2,
}

/** How far a driver is with its job. */
enum TDriverPhase {
  /** session up, nothing deployed */
  IDLE = 1,
  /** compiling the graph, waiting for executors, starting queries */
  DEPLOYING = 2,
  /** every query of the job is active (or the script's main runs) */
  RUNNING = 3,
  FINISHED = 4,
  FAILED = 5,
  CANCELED = 6,
}

/** States no event leads out of, on any master. */
const set<TJobStatus> GLOBALLY_TERMINAL_JOB_STATES = [TJobStatus.FINISHED, TJobStatus.CANCELED, TJobStatus.FAILED]

/** States of an execution that no event leads out of. */
const set<TExecutionState> TERMINAL_EXECUTION_STATES = [TExecutionState.FINISHED, TExecutionState.CANCELED, TExecutionState.FAILED]

// --- every call ---------------------------------------------------------------

/** Who the caller takes for leader.  Flink: `FencedRpcEndpoint`'s token. */
struct TFence {
  1: string leaderId,
  /** rises with every leader; 0 = "whoever leads", allowed only for clients' calls */
  2: i64 epoch,
}

/** First argument of every method. */
struct TCallContext {
  /** whom the caller takes for leader; checked before the handler sees the call */
  1: TFence fence,
  /** milliseconds the caller still waits, counted from the arrival of the frame; 0 = no limit */
  2: i64 timeoutMs,
  /** names the call in both logs */
  3: string requestId,
}

// --- values -------------------------------------------------------------------

/** What a metric belongs to. */
enum TScopeKind {
  JOB_MANAGER = 1,
  TASK_MANAGER = 2,
  JOB = 3,
  VERTEX = 4,
  SUBTASK = 5,
}

/** Newest values of a scope, or of one operator in it.  Flink: `MetricDump`. */
struct TMetricDump {
  /** job or TaskManager are those of the message that carries it */
  1: TScopeKind kind,
  2: optional string vertexId,
  3: optional i64 subtaskIndex,
  /** name of an operator in a subtask; empty = the values are the subtask's own */
  4: optional string operator,
  /** name -> whole number */
  5: optional map<string, i64> counts,
  /** name -> other number */
  6: optional map<string, double> rates,
}

/** An error that crosses a process boundary. */
struct TErrorInfo {
  /** a `YarnflowError.code` */
  1: string code,
  /** one line */
  2: string message,
  /** user traceback (never Java frames) or empty */
  3: optional string details,
}

// --- checkpoints -----------------------------------------------------------

enum TCheckpointKind {
  CHECKPOINT = 0,
  SAVEPOINT = 1,
}

enum TCheckpointStatus {
  IN_PROGRESS = 0,
  COMPLETED = 1,
  FAILED = 2,
}

enum TCheckpointTrigger {
  INTERVAL = 0,
  RETENTION = 1,
  REQUESTED = 2,
  SAVEPOINT = 3,
  STOP = 4,
}

enum TAfterSavepoint {
  CONTINUE = 0,
  STOP = 1,
  DRAIN = 2,
}

enum TClaimMode {
  NO_CLAIM = 0,
  CLAIM = 1,
}

/** What a drill breaks. */
enum TFaultKind {
  /** the leader's JobManager process is killed */
  LEADER = 0,
  /** the job's driver is killed */
  DRIVER = 1,
  /** a TaskManager the job uses is killed */
  TASK_MANAGER = 2,
  /** the leader's whole master is killed, with its supervisor and its drivers */
  APPLICATION = 3,
  /** the leader's ZooKeeper session is ended */
  ZOOKEEPER = 4,
}

/** Where one source of a query stands.  Spark: `SourceProgress`. */
struct TSourceProgress {
  1: string description,
  /** JSON as Spark writes it */
  2: optional string startOffset,
  3: optional string endOffset,
  4: optional string latestOffset,
  5: optional i64 inputRows,
}

/** State of one stateful operator of a query.  Spark: `StateOperatorProgress`. */
struct TStateOperatorProgress {
  1: string name,
  2: optional i64 rows,
  /** bytes of memory in use */
  3: optional i64 bytes,
  4: optional i64 rowsUpdated,
  5: optional i64 rowsRemoved,
  6: optional i64 partitions,
}

/** One query as of one committed batch. */
struct TQueryPosition {
  1: string query,
  /** committed; -1 = nothing was committed yet */
  2: i64 batchId,
  /** Spark's checkpoint directory of the query (a URI) */
  3: optional string directory,
  /** milliseconds since the epoch */
  4: optional i64 committedMs,
  /** event time; -1 = no watermark */
  5: optional i64 watermarkMs,
  6: optional list<TSourceProgress> sources,
  7: optional list<TStateOperatorProgress> operators,
}

/** One checkpoint or savepoint.  Flink: an entry of `GET /jobs/:id/checkpoints`. */
struct TCheckpointInfo {
  1: i64 checkpointId,
  2: TCheckpointKind kind,
  3: TCheckpointStatus status,
  4: TCheckpointTrigger trigger,
  /** milliseconds since the epoch */
  5: i64 triggerMs,
  /** milliseconds since the epoch; -1 = in progress */
  6: optional i64 endMs,
  /** milliseconds until the batches it consists of were committed */
  7: optional i64 commitWaitMs,
  /** milliseconds for which no batch could begin */
  8: optional i64 pauseMs,
  /** milliseconds */
  9: optional i64 copyMs,
  /** milliseconds */
  10: optional i64 persistMs,
  11: optional list<TQueryPosition> positions,
  /** directory with `_metadata` (a URI) */
  12: optional string externalPath,
  /** bytes */
  13: optional i64 copiedBytes,
  14: optional bool discarded,
  15: optional string failure,
  16: optional string requestId,
  /** checkpoints and savepoints of the job completed with this one */
  17: optional i64 completed,
}

/** What a job started from. */
struct TRestoredState {
  1: string path,
  2: TCheckpointKind kind,
  3: i64 checkpointId,
  /** milliseconds since the epoch */
  4: i64 restoredMs,
  5: optional string claimMode,
}

/** All that is known of a job's checkpoints.  Flink: `GET /jobs/:id/checkpoints`. */
struct TJobCheckpoints {
  1: string jobId,
  2: optional i64 completed,
  3: optional i64 failed,
  /** newest first */
  4: optional list<TCheckpointInfo> history,
  5: optional TRestoredState restored,
  /** milliseconds */
  6: optional i64 intervalMs,
  /** milliseconds */
  7: optional i64 minPauseMs,
  /** milliseconds */
  8: optional i64 timeoutMs,
  // 9 was tolerableFailures
  10: optional i64 retained,
  11: optional string retention,
  12: optional string directory,
  /** ms since the epoch: when last no query had anything to do, and no checkpoint lacked a batch; -1 = not seen */
  13: optional i64 upToDateMs,
}

/** Elements for the program that collects them. */
struct TCollectedPage {
  /** pickled lists of elements, in order */
  1: list<binary> payloads,
  /** to be said when asking for the next page */
  2: string position,
  /** the job is over, so there is no next page */
  3: optional bool ended,
}

/** A user wants a checkpoint or a savepoint now. */
struct TCheckpointRequest {
  /** chosen by the client, so that asking again is no second checkpoint */
  1: string requestId,
  2: TCheckpointKind kind,
  /** parent directory of a savepoint (a URI) */
  3: optional string targetDir,
  4: optional TAfterSavepoint after,
}

/** JobMaster → driver: say at which committed batches the queries stand, and copy them. */
struct TCheckpointOrder {
  1: i64 checkpointId,
  2: TCheckpointKind kind,
  3: optional TAfterSavepoint after,
  /** the savepoint's own directory (a URI) */
  4: optional string target,
  /** of the request it is for */
  5: optional string requestId,
}

/** Driver → JobMaster: what became of an order; repeated in every report. */
struct TCheckpointOutcome {
  1: i64 checkpointId,
  /** why it failed; empty = done */
  2: optional string failure,
  3: optional list<TQueryPosition> positions,
  /** milliseconds */
  4: optional i64 commitWaitMs,
  /** milliseconds */
  5: optional i64 pauseMs,
  /** milliseconds */
  6: optional i64 copyMs,
  /** bytes */
  7: optional i64 copiedBytes,
  /** this and what follows: of the order, for a master that did not give it */
  8: optional string requestId,
  9: optional TCheckpointKind kind,
  10: optional string target,
  11: optional TAfterSavepoint after,
}

/** From which state a submission starts.  Flink: `SavepointRestoreSettings`. */
struct TRestoreSettings {
  /** a savepoint's or checkpoint's directory (a URI) */
  1: optional string path,
  2: optional TClaimMode claimMode,
  /** the newest retained checkpoint of the job key */
  3: optional bool latest,
}

/** All a cluster needs to run a job. */
struct TJobSubmission {
  1: string jobId,
  2: string name,
  3: TProgramKind kind,
  /** JobGraph JSON (`graph.codec`); a script has a graph of one vertex */
  4: string jobGraphJson,
  /** the job's own options, key → text, already validated by the client */
  5: map<string, string> configuration,
  /** empty: no key; else at most one live job has it */
  6: optional string jobKey,
  /** SCRIPT only: file name → content; the program is named first in `script_argv` */
  7: optional map<string, binary> files,
  /** SCRIPT only: program file name, then its arguments */
  8: optional list<string> scriptArgv,
  /** state to start from */
  9: optional TRestoreSettings restore,
  /** of the program and its arguments; empty: an earlier version submitted the job */
  10: optional string programDigest,
  /** what an earlier version would have made the job's key; empty: the user chose `jobKey` */
  11: optional string earlierJobKey,
}

/** Answer to a submission. */
struct TJobSubmitted {
  1: string jobId,
  /** the key belonged to a live job already, whose id this is */
  2: optional bool attachedToExisting,
  /** that job runs another program, or has other arguments */
  3: optional bool otherProgram,
}

/** One line of `yarnflow list`.  Flink: `GET /jobs/overview`. */
struct TJobOverview {
  1: string jobId,
  2: string name,
  3: TJobStatus status,
  /** milliseconds since the epoch; -1 = not yet */
  4: i64 startTimeMs,
  /** milliseconds since the epoch; -1 = not yet */
  5: i64 endTimeMs,
  6: optional string jobKey,
  /** slots the job has / wants */
  7: optional i64 slotsAllocated,
  8: optional i64 slotsRequired,
}

/** One attempt of one subtask. */
struct TExecutionInfo {
  1: i64 subtaskIndex,
  2: i64 attempt,
  3: TExecutionState state,
  4: optional string taskManagerId,
  /** state name → time of entry */
  5: optional map<string, i64> timestampsMs,
}

/** One vertex of the ExecutionGraph with its current executions. */
struct TVertexInfo {
  1: string vertexId,
  2: string name,
  3: i64 parallelism,
  4: i64 maxParallelism,
  5: string slotSharingGroup,
  6: optional list<TExecutionInfo> executions,
}

/** What a streaming query last said of itself.  Spark: `StreamingQueryProgress`. */
struct TQueryProgress {
  1: string query,
  /** last completed batch; -1 before the first */
  2: optional i64 batchId,
  /** milliseconds since the epoch */
  3: optional i64 atMs,
  /** milliseconds */
  4: optional i64 batchDurationMs,
  5: optional i64 inputRows,
  /** rows of the last batch that left through the sink; -1 = Spark does not say */
  6: optional i64 outputRows,
  /** rows per second */
  7: optional double inputRowsPerSecond,
  /** rows per second */
  8: optional double processedRowsPerSecond,
  /** event time; -1 = no watermark */
  9: optional i64 watermarkMs,
  /** totals since the query first started in this driver */
  10: optional i64 totalInputRows,
  11: optional i64 totalOutputRows,
  12: optional i64 stateRows,
  /** bytes */
  13: optional i64 stateBytes,
  /** milliseconds, by Spark's names of the parts of a batch */
  14: optional map<string, i64> durationsMs,
  15: optional list<TSourceProgress> sources,
  16: optional list<TStateOperatorProgress> operators,
  /** Spark's checkpoint directory of the query (a URI) */
  17: optional string directory,
}

/** One entry of a job's exception history. */
struct TFailureInfo {
  /** milliseconds since the epoch */
  1: i64 atMs,
  2: TErrorInfo error,
  /** where it happened: TaskManager, executor or driver id; empty if unknown */
  3: optional string location,
  4: optional TRestartLevel level,
  /** the job went on after it */
  5: optional bool recovered,
}

/** How a FINISHED job was stopped. */
struct TJobStop {
  /** the savepoint (a URI); empty = it could not be recorded */
  1: string savepoint,
  /** of who asked for it */
  2: string requestId,
  /** all windows have fired: nothing goes on from there */
  3: bool drained,
}

/** Everything about one job.  Flink: `GET /jobs/:id`. */
struct TJobDetails {
  1: TJobOverview overview,
  /** rises with every change; for long polls */
  2: i64 version,
  /** status name → first time of entry */
  3: optional map<string, i64> timestampsMs,
  4: optional list<TVertexInfo> vertices,
  5: optional list<TQueryProgress> queries,
  6: optional list<TFailureInfo> failures,
  /** restarts counted by the restart strategy */
  7: optional i64 restarts,
  /** why the job waits, empty when it does not */
  8: optional string waitingFor,
  /**
   * milestones of the start, name → time (SUBMITTED, SLOTS, DRIVER_STARTED, JVM_UP, CONTEXT_UP,
   * SESSION_UP, EXECUTORS_UP, QUERY_STARTED, FIRST_BATCH)
   */
  9: optional map<string, i64> milestonesMs,
  /** root cause when FAILED */
  10: optional TErrorInfo error,
  /** how a FINISHED job was stopped; absent = it has ended by itself */
  11: optional TJobStop stop,
}

/** Flink: `GET /overview`. */
struct TClusterOverview {
  1: i64 taskManagers,
  2: i64 slotsTotal,
  3: i64 slotsAvailable,
  4: i64 jobsRunning,
  5: i64 jobsFinished,
  6: i64 jobsCanceled,
  7: i64 jobsFailed,
  8: string version,
}

/** Whom to talk to, and with which fence.  Flink: `LeaderInformation`. */
struct TLeaderInfo {
  1: TFence fence,
  /** `host:port` of the leader's Thrift server */
  2: string address,
  3: string version,
  4: string clusterId,
  /** `http://host:port` of the leader's web page */
  5: optional string webAddress,
}

/** A drill: break something a job needs. */
struct TFaultRequest {
  1: TFaultKind kind,
  2: string jobId,
  /** only say what would be done; refuse what cannot be */
  3: optional bool checkOnly,
}

/** What a drill broke, or would break. */
struct TFaultInjected {
  /** one line: process, id and host */
  1: string victim,
  /** when it happens, by the leader's clock */
  2: i64 atMs,
}

/** What a logger says from now on, until its process starts again. */
struct TLogLevel {
  /** as in log lines; empty = all that have no level of their own */
  1: string logger,
  /** TRACE, DEBUG, INFO, WARN, ERROR, OFF; empty = that of the logger above it */
  2: string level,
}

/** Whether one process has taken it. */
struct TLogLevelAnswer {
  /** which one */
  1: string process,
  /** why not; empty = it has */
  2: optional string error,
}

/** Whether all have. */
struct TLogLevelResult {
  1: list<TLogLevelAnswer> processes,
}

/** One slot as its TaskManager sees it. */
struct TSlotStatus {
  1: i64 index,
  /** empty when free */
  2: optional string allocationId,
  3: optional string jobId,
}

/** One executor process as its TaskManager sees it. */
struct TExecutorStatus {
  1: string executorId,
  2: string jobId,
  3: string driverId,
  /** process id on its host */
  4: i64 pid,
  5: i64 cores,
}

/** What a TaskManager brings.  Flink: `TaskExecutorRegistration`. */
struct TTaskManagerRegistration {
  1: string taskManagerId,
  /** `host:port` of its Thrift server */
  2: string address,
  3: string host,
  /** process id on its host */
  4: i64 pid,
  5: i64 slots,
  /** the ResourceProvider's name for the worker (container id; empty for standalone) */
  6: optional string workerId,
  /** mebibytes */
  7: optional i64 processMemoryMib,
  /** mebibytes */
  8: optional i64 executorHeapMib,
  9: optional i64 cores,
  /** what it holds already, given by an earlier leader */
  10: optional list<TSlotStatus> allocations,
  11: optional list<TExecutorStatus> executors,
  /** of the machine; 0 = unknown */
  12: optional i64 physicalMemoryBytes,
  /** part of the process's memory -> mebibytes */
  13: optional map<string, i64> memoryMib,
}

/** How a client that has the cluster's secret uses the REST interface. */
struct TRestAccess {
  /** `http://host:port`; empty = there is none */
  1: optional string address,
  /** may read; empty = none is needed */
  2: optional string readToken,
  /** may change something as well; empty = none is needed */
  3: optional string writeToken,
}

/** One file of a process's directory of logs.  Flink: `LogInfo`. */
struct TLogFile {
  1: string name,
  2: i64 sizeBytes,
  3: i64 modifiedMs,
  /** the standard output of the process itself goes there */
  4: optional bool ownOutput,
}

/** A part of a file. */
struct TLogPart {
  1: binary content,
  /** where it begins */
  2: i64 offset,
  /** of the whole file when it was read */
  3: i64 sizeBytes,
}

/** What one thread does.  Flink: `ThreadDumpInfo.ThreadInfo`. */
struct TThreadInfo {
  1: string name,
  2: string stack,
}

/** Slot and executor report.  Flink: `TaskExecutorHeartbeatPayload`. */
struct TTaskManagerHeartbeat {
  1: string taskManagerId,
  2: optional list<TSlotStatus> slots,
  3: optional list<TExecutorStatus> executors,
  /** all of the TaskManager's at once; missing = nothing was measured since the last heartbeat */
  4: optional list<TMetricDump> metrics,
}

/** The ResourceManager tells a TaskManager to give a slot to a job. */
struct TSlotRequest {
  1: string jobId,
  2: string allocationId,
  3: i64 slotIndex,
}

/** A TaskManager offers an allocated slot to the JobMaster. */
struct TSlotOffer {
  1: string allocationId,
  2: i64 slotIndex,
  3: string taskManagerId,
  /** the TaskManager's Thrift address */
  4: string address,
  /** the executor that serves the slot already */
  5: optional TExecutorStatus executor,
}

/** What a TaskManager starts for the slots a job was given: one Spark executor. */
struct TExecutorDescriptor {
  1: string jobId,
  2: string driverId,
  3: string executorId,
  /** `spark://CoarseGrainedScheduler@host:port` */
  4: string driverUrl,
  /** Spark's application id */
  5: string appId,
  /** task threads = slots of this executor */
  6: i64 cores,
  7: optional list<string> allocationIds,
  /** JVM options and environment the driver asks for (never secrets) */
  8: optional list<string> javaOptions,
  9: optional map<string, string> environment,
  /** all slots that the job wants at once, with those of a hot spare; 0 = the executor may outlive the job */
  10: optional i64 jobSlots,
}

/** A TaskManager reports the end of an executor it started. */
struct TExecutorExited {
  1: string jobId,
  2: string driverId,
  3: string executorId,
  4: string taskManagerId,
  /** negative = killed by that signal */
  5: i64 exitStatus,
  /** last lines of its output */
  6: optional string outputTail,
}

/** What a driver process is told on its standard input before it does anything for a job. */
struct TDriverAssignment {
  1: string jobId,
  2: string driverId,
  /** Thrift address and fence of the JobMaster */
  3: string jobMasterAddress,
  4: TFence fence,
  /** checkpoint directory of the job (a URI) */
  5: string checkpointDir,
  /** scratch directory of this job's attempts on this machine */
  6: string workDir,
  7: optional string jobName,
  /** the job's own options over the cluster's, key → text */
  8: optional map<string, string> configuration,
  /** the job's driver, which this one is to be lost apart from; empty = it is the job's driver itself */
  9: optional string hotSpareOf,
}

/** A driver's SparkContext is up and executors may dial in. */
struct TDriverRegistration {
  1: string jobId,
  2: string driverId,
  /** Thrift address of the driver */
  3: string address,
  /** process id on its host */
  4: i64 pid,
  5: string driverUrl,
  6: string appId,
  7: optional list<string> javaOptions,
  8: optional map<string, string> environment,
  /** milestone name → milliseconds since the epoch */
  9: optional map<string, i64> milestonesMs,
  /** deployment it runs already, under an earlier leader */
  10: optional i64 attempt,
  /** the job, for a leader that says that it cannot read it */
  11: optional TJobSubmission submission,
}

/** When the queries of an attempt had nothing to do. */
struct TIdleQueries {
  /** how long ago none of them had anything to do, milliseconds; -1 = this was not seen */
  1: i64 agoMs,
  /** where those are that have committed nothing since they were started */
  2: optional list<TQueryPosition> positions,
}

/** Heartbeat, progress and terminal report of a driver in one. */
struct TDriverReport {
  1: string jobId,
  2: string driverId,
  /** the deployment this report is about; rises with each `deploy` call */
  3: i64 attempt,
  4: TDriverPhase phase,
  /** executors registered with the SparkContext now */
  5: optional list<string> executorIds,
  6: optional list<TQueryProgress> queries,
  /** milestone name → milliseconds since the epoch */
  7: optional map<string, i64> milestonesMs,
  /** FAILED only */
  8: optional TErrorInfo error,
  /** FAILED only: the SparkContext is gone as well; only a new driver helps */
  9: optional bool driverUnusable,
  10: optional list<TCheckpointOutcome> checkpoints,
  /** all of the job's at once; missing = nothing was measured since the last report */
  11: optional list<TMetricDump> metrics,
  /** RUNNING only */
  12: optional TIdleQueries idle,
}

/** JobMaster → driver: run the job now. */
struct TDriverDeployment {
  1: i64 attempt,
  /** missing: the driver was sent it before, by an earlier deployment */
  2: optional TJobSubmission submission,
  /** executors that must have registered before queries start */
  3: optional list<string> executorIds,
  // 4 is not free: an earlier version has it
  /** state to begin with where the job has none */
  5: optional TRestoreSettings restore,
  /** names the submission: SHA-256 of its content */
  6: optional string submissionDigest,
}
