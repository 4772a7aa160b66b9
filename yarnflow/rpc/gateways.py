"""The gateways of ``core.ports`` over Thrift: clients here, services there.

Decides which fence a call carries: a Dispatcher client asks who leads and looks again, once,
when it is told that it is out of date; the others carry what their maker knows.  Never decides
how bytes travel (:mod:`~yarnflow.rpc.client`).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, Protocol, cast

from yarnflow.core.checkpoint.messages import (
    CheckpointInfo,
    CheckpointOrder,
    CheckpointRequest,
    JobCheckpoints,
)
from yarnflow.core.ids import AllocationId, ExecutorId, JobId, TaskManagerId
from yarnflow.core.messages import (
    ClusterOverview,
    DriverAssignment,
    DriverDeployment,
    DriverRegistration,
    DriverReport,
    ExecutorDescriptor,
    ExecutorExited,
    FaultInjected,
    FaultRequest,
    Fence,
    JobDetails,
    JobOverview,
    JobSubmission,
    JobSubmitted,
    LeaderInfo,
    SlotOffer,
    SlotRequest,
    TaskManagerHeartbeat,
    TaskManagerRegistration,
)
from yarnflow.core.ports import (
    DispatcherGateway,
    DriverGateway,
    JobMasterGateway,
    MasterGateway,
    ResourceManagerGateway,
    TaskExecutorGateway,
)
from yarnflow.errors import RpcUnavailable, StaleEpoch
from yarnflow.rpc import framing
from yarnflow.rpc.client import DEFAULT_TIMEOUT_MS, NO_FENCE, RpcClient, split_address
from yarnflow.rpc.methods import (
    DISPATCHER,
    DRIVER,
    JOB_MASTER,
    MASTER,
    QUICK,
    RESOURCE_MANAGER,
    TASK_EXECUTOR,
    MethodSpec,
    Service,
    methods_of,
)

FenceSupplier = Callable[[], Fence]

#: clients a factory has before it first looks which of them nobody needs any more
_FIRST_SWEEP: Final = 16


def dispatcher_service(gateway: DispatcherGateway, quick: frozenset[str] = QUICK) -> Service:
    """Serve a Dispatcher.  ``quick``: methods that run on the I/O thread and only post."""
    return Service(DISPATCHER, gateway, quick)


def resource_manager_service(gateway: ResourceManagerGateway, quick: frozenset[str] = QUICK) -> Service:
    """Serve a ResourceManager; ``heartbeat`` is quick."""
    return Service(RESOURCE_MANAGER, gateway, quick)


def job_master_service(gateway: JobMasterGateway, quick: frozenset[str] = QUICK) -> Service:
    """Serve a JobMaster; ``report`` is quick."""
    return Service(JOB_MASTER, gateway, quick)


def task_executor_service(gateway: TaskExecutorGateway, quick: frozenset[str] = QUICK) -> Service:
    """Serve a TaskExecutor; ``ping`` is quick."""
    return Service(TASK_EXECUTOR, gateway, quick)


def driver_service(gateway: DriverGateway, quick: frozenset[str] = QUICK) -> Service:
    """Serve a driver; ``ping`` is quick."""
    return Service(DRIVER, gateway, quick)


class Caller(Protocol):
    """Calls one address; see :class:`~yarnflow.rpc.client.RpcClient`."""

    def call(self, spec: MethodSpec, arguments: Sequence[object], fence: Fence | None = None) -> Any: ...


class _Gateway:
    """A service at an address, called with a fence."""

    def __init__(self, service: str, client: Caller, fence: FenceSupplier) -> None:
        self._methods = methods_of(service)
        self._client = client
        self._fence = fence

    def _call(self, method: str, *arguments: object) -> Any:
        return self._client.call(self._methods[method], arguments, fence=self._fence())


class ThriftResourceManagerGateway(_Gateway):
    """:class:`yarnflow.core.ports.ResourceManagerGateway` of another process."""

    def __init__(self, client: Caller, fence: FenceSupplier) -> None:
        super().__init__(RESOURCE_MANAGER, client, fence)

    def register_task_manager(self, registration: TaskManagerRegistration) -> LeaderInfo:
        return cast(LeaderInfo, self._call("register_task_manager", registration))

    def heartbeat(self, report: TaskManagerHeartbeat) -> None:
        self._call("heartbeat", report)

    def disconnect_task_manager(self, task_manager_id: TaskManagerId, reason: str) -> None:
        self._call("disconnect_task_manager", task_manager_id, reason)


class ThriftJobMasterGateway(_Gateway):
    """:class:`yarnflow.core.ports.JobMasterGateway` of another process."""

    def __init__(self, client: Caller, fence: FenceSupplier) -> None:
        super().__init__(JOB_MASTER, client, fence)

    def offer_slots(self, job_id: JobId, offers: Sequence[SlotOffer]) -> Sequence[AllocationId]:
        return cast(Sequence[AllocationId], self._call("offer_slots", job_id, offers))

    def executor_exited(self, report: ExecutorExited) -> None:
        self._call("executor_exited", report)

    def register_driver(self, registration: DriverRegistration) -> None:
        self._call("register_driver", registration)

    def report(self, report: DriverReport) -> None:
        self._call("report", report)


class ThriftTaskExecutorGateway(_Gateway):
    """:class:`yarnflow.core.ports.TaskExecutorGateway` of another process."""

    def __init__(self, client: Caller, fence: FenceSupplier) -> None:
        super().__init__(TASK_EXECUTOR, client, fence)

    def request_slot(self, request: SlotRequest) -> None:
        self._call("request_slot", request)

    def free_slot(self, allocation_id: AllocationId) -> None:
        self._call("free_slot", allocation_id)

    def start_executor(self, descriptor: ExecutorDescriptor) -> None:
        self._call("start_executor", descriptor)

    def stop_executor(self, job_id: JobId, executor_id: ExecutorId) -> None:
        self._call("stop_executor", job_id, executor_id)

    def ping(self) -> None:
        self._call("ping")

    def halt(self) -> None:
        self._call("halt")


class ThriftDriverGateway(_Gateway):
    """:class:`yarnflow.core.ports.DriverGateway` of another process."""

    def __init__(self, client: Caller, fence: FenceSupplier) -> None:
        super().__init__(DRIVER, client, fence)

    def deploy(self, deployment: DriverDeployment) -> None:
        self._call("deploy", deployment)

    def cancel(self) -> None:
        self._call("cancel")

    def take_checkpoint(self, order: CheckpointOrder) -> None:
        self._call("take_checkpoint", order)

    def shut_down(self) -> None:
        self._call("shut_down")

    def ping(self) -> None:
        self._call("ping")

    def halt(self) -> None:
        self._call("halt")


class ThriftMasterGateway(_Gateway):
    """:class:`yarnflow.core.ports.MasterGateway` of another process."""

    def __init__(self, client: Caller, fence: FenceSupplier) -> None:
        super().__init__(MASTER, client, fence)

    def host_driver(self, assignment: DriverAssignment, memory_mib: int) -> None:
        self._call("host_driver", assignment, memory_mib)


class ThriftDispatcherGateway:
    """:class:`yarnflow.core.ports.DispatcherGateway` of another process."""

    def __init__(self, client: Caller) -> None:
        self._methods = methods_of(DISPATCHER)
        self._client = client
        self._known: Fence | None = None

    @property
    def known_fence(self) -> Fence | None:
        """Whom it takes for leader; None before the first call."""
        return self._known

    def leader(self) -> LeaderInfo:
        info = cast(LeaderInfo, self._client.call(self._methods["leader"], (), fence=NO_FENCE))
        self._known = info.fence
        return info

    def submit_job(self, submission: JobSubmission) -> JobSubmitted:
        return cast(JobSubmitted, self._call("submit_job", submission))

    def list_jobs(self) -> Sequence[JobOverview]:
        return cast(Sequence[JobOverview], self._call("list_jobs"))

    def job_details(self, job_id: JobId) -> JobDetails:
        return cast(JobDetails, self._call("job_details", job_id))

    def await_job_change(self, job_id: JobId, seen_version: int, timeout_ms: int) -> JobDetails:
        return cast(JobDetails, self._call("await_job_change", job_id, seen_version, timeout_ms))

    def cancel_job(self, job_id: JobId) -> None:
        self._call("cancel_job", job_id)

    def cluster_overview(self) -> ClusterOverview:
        return cast(ClusterOverview, self._call("cluster_overview"))

    def shut_down_cluster(self) -> None:
        self._call("shut_down_cluster")

    def trigger_checkpoint(self, job_id: JobId, request: CheckpointRequest) -> None:
        self._call("trigger_checkpoint", job_id, request)

    def await_checkpoint(self, job_id: JobId, request_id: str, timeout_ms: int) -> CheckpointInfo:
        return cast(CheckpointInfo, self._call("await_checkpoint", job_id, request_id, timeout_ms))

    def job_checkpoints(self, job_id: JobId) -> JobCheckpoints:
        return cast(JobCheckpoints, self._call("job_checkpoints", job_id))

    def inject_fault(self, request: FaultRequest) -> FaultInjected:
        return cast(FaultInjected, self._call("inject_fault", request))

    def _call(self, method: str, *arguments: object) -> Any:
        spec = self._methods[method]
        try:
            return self._client.call(spec, arguments, fence=self._known or self.leader().fence)
        except StaleEpoch:
            # refused before the handler saw it, so that even a call that may not be repeated can be
            return self._client.call(spec, arguments, fence=self.leader().fence)


@dataclass(slots=True)
class _Entry:
    """The client of one address."""

    client: RpcClient
    #: calls under way
    users: int = 0


class _Shared:
    """Calls an address with the client the factory has for it at that time."""

    def __init__(self, factory: ThriftGatewayFactory, address: str) -> None:
        split_address(address)  # a bad one is the maker's mistake, not that of a call
        self._factory = factory
        self._address = address

    def call(self, spec: MethodSpec, arguments: Sequence[object], fence: Fence | None = None) -> Any:
        with self._factory.borrow(self._address) as client:
            return client.call(spec, arguments, fence=fence)


class ThriftGatewayFactory:
    """:class:`yarnflow.core.ports.GatewayFactory` over Thrift; one client per address.

    Drivers and TaskManagers come and go, so a client is kept only as long as it has a connection:
    it goes with the call that found nobody there, and one whose process has closed its end goes
    when the number of clients has grown.  A gateway stays usable; it gets a new client.

    Parameters
    ----------
    secret : bytes
        The cluster secret.
    identity : str
        Who this process is; servers report its end by it.
    timeout_ms : int
        Limit of each call (``rpc.ask.timeout``).
    max_frame_bytes : int
        ``rpc.framesize``.

    Attributes
    ----------
    fence : callable
        Fence of calls to TaskExecutors and drivers; a JobManager sets it to its own leadership.
    """

    def __init__(
        self,
        secret: bytes,
        identity: str = "",
        timeout_ms: int = DEFAULT_TIMEOUT_MS,
        max_frame_bytes: int = framing.DEFAULT_MAX_FRAME_BYTES,
        fence: FenceSupplier | None = None,
    ) -> None:
        self._secret = secret
        self._identity = identity
        self._timeout_ms = timeout_ms
        self._max_frame_bytes = max_frame_bytes
        self.fence: FenceSupplier = fence or (lambda: NO_FENCE)
        self._lock = threading.Lock()
        self._clients: dict[str, _Entry] = {}
        self._sweep_at = _FIRST_SWEEP
        self._closed = False

    def task_executor(self, address: str) -> TaskExecutorGateway:
        """Gateway to a TaskManager, with this factory's fence at the time of each call."""
        return ThriftTaskExecutorGateway(_Shared(self, address), lambda: self.fence())

    def driver(self, address: str) -> DriverGateway:
        """Gateway to a driver, with this factory's fence at the time of each call."""
        return ThriftDriverGateway(_Shared(self, address), lambda: self.fence())

    def resource_manager(self, address: str, fence: Fence) -> ResourceManagerGateway:
        """Gateway to the ResourceManager of one leader."""
        return ThriftResourceManagerGateway(_Shared(self, address), lambda: fence)

    def job_master(self, address: str, fence: Fence) -> JobMasterGateway:
        """Gateway to the JobMasters of one leader."""
        return ThriftJobMasterGateway(_Shared(self, address), lambda: fence)

    def dispatcher(self, address: str) -> DispatcherGateway:
        """Gateway to whoever leads at an address."""
        return ThriftDispatcherGateway(_Shared(self, address))

    def master(self, address: str) -> MasterGateway:
        """Gateway to a standby, with this factory's fence at the time of each call."""
        return ThriftMasterGateway(_Shared(self, address), lambda: self.fence())

    @property
    def addresses(self) -> list[str]:
        """Where there are connections to."""
        with self._lock:
            return list(self._clients)

    @contextmanager
    def borrow(self, address: str) -> Iterator[RpcClient]:
        """The client of an address, which stays open at least for the time of the block.

        Raises
        ------
        RpcUnavailable
            The factory is closed.
        """
        with self._lock:
            if self._closed:
                raise RpcUnavailable(f"cannot call {address}: this process is shutting down")
            entry = self._clients.get(address)
            if entry is None:
                self._sweep()
                entry = self._clients[address] = _Entry(self._make(address))
            entry.users += 1
        try:
            yield entry.client
        finally:
            with self._lock:
                entry.users -= 1
                if not self._closed and not entry.users and not entry.client.has_connections:
                    del self._clients[address]

    def close(self) -> None:
        """Close every connection.  Idempotent; no gateway can be opened afterwards."""
        with self._lock:
            self._closed = True
            entries, self._clients = list(self._clients.values()), {}
        for entry in entries:
            entry.client.close()

    def _make(self, address: str) -> RpcClient:
        return RpcClient(
            address,
            self._secret,
            self._identity,
            timeout_ms=self._timeout_ms,
            max_frame_bytes=self._max_frame_bytes,
        )

    def _sweep(self) -> None:
        """Let go of clients whose connections were closed from the other end."""
        if len(self._clients) < self._sweep_at:
            return
        self._clients = {
            address: entry
            for address, entry in self._clients.items()
            if entry.users or entry.client.drop_ended()
        }
        # so that the cost of all sweeps stays a small multiple of that of all connections
        self._sweep_at = max(_FIRST_SWEEP, 2 * len(self._clients))
