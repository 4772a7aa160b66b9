// What TaskManagers and drivers may ask about one job.  Flink: `JobMasterGateway`.

namespace py jobmaster

include "types.thrift"
include "errors.thrift"

service JobMaster {
  /** Offer allocated slots; the answer lists the accepted ones.  Idempotent. */
  list<string> offerSlots(1: types.TCallContext context, 2: string jobId, 3: list<types.TSlotOffer> offers)
    throws (1: errors.TError error)

  /** An executor process ended.  Idempotent. */
  void executorExited(1: types.TCallContext context, 2: types.TExecutorExited report)
    throws (1: errors.TError error)

  /** A driver can take executors now.  Idempotent by driver id. */
  void registerDriver(1: types.TCallContext context, 2: types.TDriverRegistration registration)
    throws (1: errors.TError error)

  /** Heartbeat, progress and terminal report.  Idempotent. */
  void report(1: types.TCallContext context, 2: types.TDriverReport report)
    throws (1: errors.TError error)
}
