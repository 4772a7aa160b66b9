"""The gateways of ``core.ports`` over Thrift: clients here, services there.

Decides which fence a call carries: a Dispatcher client asks who leads and looks again, once,
when it is told that it is out of date; the others carry what their maker knows.  Never decides
how bytes travel (:mod:`~yarnflow.rpc.client`).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, cast

from yarnflow.core.ids import AllocationId, ExecutorId, JobId, TaskManagerId
from yarnflow.core.messages import (
    ClusterOverview,
    DriverDeployment,
    DriverRegistration,
    DriverReport,
    ExecutorDescriptor,
    ExecutorExited,
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
    ResourceManagerGateway,
    TaskExecutorGateway,
)
from yarnflow.errors import RpcUnavailable, StaleEpoch
from yarnflow.rpc import framing
from yarnflow.rpc.client import DEFAULT_TIMEOUT_MS, NO_FENCE, RpcClient
from yarnflow.rpc.methods import (
    DISPATCHER,
    DRIVER,
    JOB_MASTER,
    QUICK,
    RESOURCE_MANAGER,
    TASK_EXECUTOR,
    Service,
    methods_of,
)

FenceSupplier = Callable[[], Fence]


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


class _Gateway:
    """A service at an address, called with a fence."""

    def __init__(self, service: str, client: RpcClient, fence: FenceSupplier) -> None:
        self._methods = methods_of(service)
        self._client = client
        self._fence = fence

    def _call(self, method: str, *arguments: object) -> Any:
        return self._client.call(self._methods[method], arguments, fence=self._fence())


class ThriftResourceManagerGateway(_Gateway):
    """:class:`yarnflow.core.ports.ResourceManagerGateway` of another process."""

    def __init__(self, client: RpcClient, fence: FenceSupplier) -> None:
        super().__init__(RESOURCE_MANAGER, client, fence)

    def register_task_manager(self, registration: TaskManagerRegistration) -> LeaderInfo:
        return cast(LeaderInfo, self._call("register_task_manager", registration))

    def heartbeat(self, report: TaskManagerHeartbeat) -> None:
        self._call("heartbeat", report)

    def disconnect_task_manager(self, task_manager_id: TaskManagerId, reason: str) -> None:
        self._call("disconnect_task_manager", task_manager_id, reason)


class ThriftJobMasterGateway(_Gateway):
    """:class:`yarnflow.core.ports.JobMasterGateway` of another process."""

    def __init__(self, client: RpcClient, fence: FenceSupplier) -> None:
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

    def __init__(self, client: RpcClient, fence: FenceSupplier) -> None:
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


class ThriftDriverGateway(_Gateway):
    """:class:`yarnflow.core.ports.DriverGateway` of another process."""

    def __init__(self, client: RpcClient, fence: FenceSupplier) -> None:
        super().__init__(DRIVER, client, fence)

    def deploy(self, deployment: DriverDeployment) -> None:
        self._call("deploy", deployment)

    def cancel(self) -> None:
        self._call("cancel")

    def shut_down(self) -> None:
        self._call("shut_down")

    def ping(self) -> None:
        self._call("ping")


class ThriftDispatcherGateway:
    """:class:`yarnflow.core.ports.DispatcherGateway` of another process."""

    def __init__(self, client: RpcClient) -> None:
        self._methods = methods_of(DISPATCHER)
        self._client = client
        self._known: Fence | None = None

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

    def _call(self, method: str, *arguments: object) -> Any:
        spec = self._methods[method]
        try:
            return self._client.call(spec, arguments, fence=self._known or self.leader().fence)
        except StaleEpoch:
            # refused before the handler saw it, so that even a call that may not be repeated can be
            return self._client.call(spec, arguments, fence=self.leader().fence)


class ThriftGatewayFactory:
    """:class:`yarnflow.core.ports.GatewayFactory` over Thrift; one client per address.

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
        self._clients: dict[str, RpcClient] = {}
        self._closed = False

    def task_executor(self, address: str) -> TaskExecutorGateway:
        """Gateway to a TaskManager, with this factory's fence at the time of each call."""
        return ThriftTaskExecutorGateway(self._client(address), lambda: self.fence())

    def driver(self, address: str) -> DriverGateway:
        """Gateway to a driver, with this factory's fence at the time of each call."""
        return ThriftDriverGateway(self._client(address), lambda: self.fence())

    def resource_manager(self, address: str, fence: Fence) -> ResourceManagerGateway:
        """Gateway to the ResourceManager of one leader."""
        return ThriftResourceManagerGateway(self._client(address), lambda: fence)

    def job_master(self, address: str, fence: Fence) -> JobMasterGateway:
        """Gateway to the JobMasters of one leader."""
        return ThriftJobMasterGateway(self._client(address), lambda: fence)

    def dispatcher(self, address: str) -> DispatcherGateway:
        """Gateway to whoever leads at an address."""
        return ThriftDispatcherGateway(self._client(address))

    def forget(self, address: str) -> None:
        """Close the connections to a process that is gone.  Idempotent."""
        with self._lock:
            client = self._clients.pop(address, None)
        if client is not None:
            client.close()

    def close(self) -> None:
        """Close every connection.  Idempotent; no gateway can be opened afterwards."""
        with self._lock:
            self._closed = True
            clients, self._clients = list(self._clients.values()), {}
        for client in clients:
            client.close()

    def _client(self, address: str) -> RpcClient:
        with self._lock:
            if self._closed:
                raise RpcUnavailable(f"cannot call {address}: this process is shutting down")
            client = self._clients.get(address)
            if client is None:
                client = RpcClient(
                    address,
                    self._secret,
                    self._identity,
                    timeout_ms=self._timeout_ms,
                    max_frame_bytes=self._max_frame_bytes,
                )
                self._clients[address] = client
            return client
