// What the leading master may ask a standby.

namespace py master

include "types.thrift"
include "errors.thrift"

service Master {
  /** Start a driver that outlives the leader.  Idempotent by driver id. */
  void hostDriver(1: types.TCallContext context, 2: types.TDriverAssignment assignment, 3: i32 memoryMib)
    throws (1: errors.TError error)

  /** Change what a logger of this process says.  Idempotent. */
  void setLogLevel(1: types.TCallContext context, 2: types.TLogLevel level)
    throws (1: errors.TError error)
}
