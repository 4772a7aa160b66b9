// What TaskManagers may ask.  Flink: `ResourceManagerGateway`.

namespace py resourcemanager

include "types.thrift"
include "errors.thrift"

service ResourceManager {
  /** Join the cluster.  Idempotent by id. */
  types.TLeaderInfo registerTaskManager(1: types.TCallContext context, 2: types.TTaskManagerRegistration registration)
    throws (1: errors.TError error)

  /**
   * Liveness both ways: the call shows the TaskManager's, the answer the master's.  Idempotent.
   * TASK_MANAGER_NOT_FOUND: the ResourceManager has dropped this TaskManager; it must register again.
   */
  void heartbeat(1: types.TCallContext context, 2: types.TTaskManagerHeartbeat report)
    throws (1: errors.TError error)

  /** A TaskManager leaves in good order.  Idempotent. */
  void disconnectTaskManager(1: types.TCallContext context, 2: string taskManagerId, 3: string reason)
    throws (1: errors.TError error)
}
