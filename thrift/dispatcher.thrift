// What clients may ask a JobManager.  Flink: `DispatcherGateway`.
// The one service whose calls may carry epoch 0 ("whoever leads").

namespace py dispatcher

include "types.thrift"
include "errors.thrift"

service Dispatcher {
  /** The leader's fence and address; the one call that needs no fence.  Idempotent. */
  types.TLeaderInfo leader(1: types.TCallContext context)
    throws (1: errors.TError error)

  /** Accept a job.  Idempotent by `job_id`. */
  types.TJobSubmitted submitJob(1: types.TCallContext context, 2: types.TJobSubmission submission)
    throws (1: errors.TError error)

  /** All jobs this cluster knows, running and ended.  Idempotent. */
  list<types.TJobOverview> listJobs(1: types.TCallContext context)
    throws (1: errors.TError error)

  /** Everything about one job.  Idempotent. */
  types.TJobDetails jobDetails(1: types.TCallContext context, 2: string jobId)
    throws (1: errors.TError error)

  /** Details as soon as their version is above `seen_version`, or after the time.  Idempotent. */
  types.TJobDetails awaitJobChange(1: types.TCallContext context, 2: string jobId, 3: i64 seenVersion, 4: i64 timeoutMs)
    throws (1: errors.TError error)

  /** Begin to cancel; the end is seen in the details.  Idempotent. */
  void cancelJob(1: types.TCallContext context, 2: string jobId)
    throws (1: errors.TError error)

  /** Counts of TaskManagers, slots and jobs.  Idempotent. */
  types.TClusterOverview clusterOverview(1: types.TCallContext context)
    throws (1: errors.TError error)

  /** Cancel everything and end the JobManager process.  Not idempotent. */
  void shutDownCluster(1: types.TCallContext context)
    throws (1: errors.TError error)

  /** Begin a checkpoint or a savepoint; its end is seen by `awaitCheckpoint`.  Idempotent by request id. */
  void triggerCheckpoint(1: types.TCallContext context, 2: string jobId, 3: types.TCheckpointRequest request)
    throws (1: errors.TError error)

  /** What a request led to as soon as it has ended, or so far after the time.  Idempotent. */
  types.TCheckpointInfo awaitCheckpoint(1: types.TCallContext context, 2: string jobId, 3: string requestId, 4: i64 timeoutMs)
    throws (1: errors.TError error)

  /** A job's checkpoints, of ended jobs as well.  Idempotent. */
  types.TJobCheckpoints jobCheckpoints(1: types.TCallContext context, 2: string jobId)
    throws (1: errors.TError error)

  /** Elements after a position, which acknowledges those up to it; none after the time.  Idempotent. */
  types.TCollectedPage awaitCollected(1: types.TCallContext context, 2: string jobId, 3: string position, 4: i64 timeoutMs)
    throws (1: errors.TError error)

  /** Address and tokens of the REST interface.  Idempotent. */
  types.TRestAccess restAccess(1: types.TCallContext context)
    throws (1: errors.TError error)

  /** For drills: break something the job needs, for real.  Not idempotent. */
  types.TFaultInjected injectFault(1: types.TCallContext context, 2: types.TFaultRequest request)
    throws (1: errors.TError error)

  /** Change what a logger says in all processes of the cluster.  Idempotent. */
  types.TLogLevelResult changeLogLevel(1: types.TCallContext context, 2: types.TLogLevel level)
    throws (1: errors.TError error)
}
