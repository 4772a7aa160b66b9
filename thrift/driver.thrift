// What a JobMaster may ask a driver.

namespace py driver

include "types.thrift"
include "errors.thrift"

service Driver {
  /**
   * Start (or start again) the job in this driver; returns at once.  Idempotent by attempt.
   * SUBMISSION_MISSING: only the digest was sent, and this process does not have the job.
   */
  void deploy(1: types.TCallContext context, 2: types.TDriverDeployment deployment)
    throws (1: errors.TError error)

  /** Stop the queries; the end is reported as phase CANCELED.  Idempotent. */
  void cancel(1: types.TCallContext context)
    throws (1: errors.TError error)

  /** Take a checkpoint or savepoint; the outcome comes with the reports.  Idempotent by id. */
  void takeCheckpoint(1: types.TCallContext context, 2: types.TCheckpointOrder order)
    throws (1: errors.TError error)

  /** End the driver process in good order.  Idempotent. */
  void shutDown(1: types.TCallContext context)
    throws (1: errors.TError error)

  /** Answer at all.  Idempotent. */
  void ping(1: types.TCallContext context)
    throws (1: errors.TError error)

  /** What the threads of the driver and of its JVM do.  Idempotent. */
  list<types.TThreadInfo> threadDump(1: types.TCallContext context)
    throws (1: errors.TError error)

  /** For drills: the driver kills its own process (KILL) as soon as it has answered.  Not idempotent. */
  void halt(1: types.TCallContext context)
    throws (1: errors.TError error)

  /** Change what a logger of this process says.  Idempotent. */
  void setLogLevel(1: types.TCallContext context, 2: types.TLogLevel level)
    throws (1: errors.TError error)
}
