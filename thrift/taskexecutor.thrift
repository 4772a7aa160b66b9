// What a JobManager may ask a TaskManager.  Flink: `TaskExecutorGateway`.

namespace py taskexecutor

include "types.thrift"
include "errors.thrift"

service TaskExecutor {
  /** Allocate a slot to a job; the TaskManager then offers it.  Idempotent. */
  void requestSlot(1: types.TCallContext context, 2: types.TSlotRequest request)
    throws (1: errors.TError error)

  /** Take a slot back.  Idempotent. */
  void freeSlot(1: types.TCallContext context, 2: string allocationId)
    throws (1: errors.TError error)

  /** Start one Spark executor for slots already allocated.  Idempotent by executor id. */
  void startExecutor(1: types.TCallContext context, 2: types.TExecutorDescriptor descriptor)
    throws (1: errors.TError error)

  /** End an executor (TERM, then KILL).  Idempotent. */
  void stopExecutor(1: types.TCallContext context, 2: string jobId, 3: string executorId)
    throws (1: errors.TError error)

  /** Answer at all.  Idempotent. */
  void ping(1: types.TCallContext context)
    throws (1: errors.TError error)

  /** Files of the TaskManager's directory of logs.  Idempotent. */
  list<types.TLogFile> logFiles(1: types.TCallContext context)
    throws (1: errors.TError error)

  /** A part of one of them; a negative offset counts from its end.  Idempotent. */
  types.TLogPart readLog(1: types.TCallContext context, 2: string name, 3: i64 offset, 4: i64 maxBytes)
    throws (1: errors.TError error)

  /** What the threads of the TaskManager and of its executors do.  Idempotent. */
  list<types.TThreadInfo> threadDump(1: types.TCallContext context)
    throws (1: errors.TError error)

  /** For drills: the TaskManager kills its own process (KILL) as soon as it has answered.  Not idempotent. */
  void halt(1: types.TCallContext context)
    throws (1: errors.TError error)

  /** Change what a logger of this process says.  Idempotent. */
  void setLogLevel(1: types.TCallContext context, 2: types.TLogLevel level)
    throws (1: errors.TError error)
}
