"""What the runtime needs from the outside, as protocols.

``runtime`` sees adapters only through these; ``rpc``, ``process`` and ``testing`` implement
them.  A gateway's methods raise :class:`yarnflow.errors.YarnflowError` and nothing else.
Remote gateways carry the fence and a deadline with each call (``rpc.client``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from yarnflow.core.ids import AllocationId, DriverId, ExecutorId, JobId, TaskManagerId
from yarnflow.core.messages import (
    ClusterOverview,
    DriverAssignment,
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


class Clock(Protocol):
    """Time, injected so that tests own it."""

    def now_ms(self) -> int:
        """Milliseconds since the epoch."""

    def monotonic_ms(self) -> int:
        """Milliseconds of a clock that never goes back."""


class DispatcherGateway(Protocol):
    """What clients may ask a JobManager.  Flink: ``DispatcherGateway``."""

    def leader(self) -> LeaderInfo:
        """The leader's fence and address; the one call that needs no fence.  Idempotent."""

    def submit_job(self, submission: JobSubmission) -> JobSubmitted:
        """Accept a job.  Idempotent by ``job_id``."""

    def list_jobs(self) -> Sequence[JobOverview]:
        """All jobs this cluster knows, running and ended.  Idempotent."""

    def job_details(self, job_id: JobId) -> JobDetails:
        """Everything about one job.  Idempotent."""

    def await_job_change(self, job_id: JobId, seen_version: int, timeout_ms: int) -> JobDetails:
        """Details as soon as their version is above ``seen_version``, or after the time.  Idempotent."""

    def cancel_job(self, job_id: JobId) -> None:
        """Begin to cancel; the end is seen in the details.  Idempotent."""

    def cluster_overview(self) -> ClusterOverview:
        """Counts of TaskManagers, slots and jobs.  Idempotent."""

    def shut_down_cluster(self) -> None:
        """Cancel everything and end the JobManager process."""


class ResourceManagerGateway(Protocol):
    """What TaskManagers may ask.  Flink: ``ResourceManagerGateway``."""

    def register_task_manager(self, registration: TaskManagerRegistration) -> LeaderInfo:
        """Join the cluster.  Idempotent by id."""

    def heartbeat(self, report: TaskManagerHeartbeat) -> None:
        """Liveness both ways: the call shows the TaskManager's, the answer the master's.

        Raises
        ------
        TaskManagerNotFound
            The ResourceManager has dropped this TaskManager; it must register again.
        """

    def disconnect_task_manager(self, task_manager_id: TaskManagerId, reason: str) -> None:
        """A TaskManager leaves in good order.  Idempotent."""


class JobMasterGateway(Protocol):
    """What TaskManagers and drivers may ask about one job.  Flink: ``JobMasterGateway``."""

    def offer_slots(self, job_id: JobId, offers: Sequence[SlotOffer]) -> Sequence[AllocationId]:
        """Offer allocated slots; the answer lists the accepted ones.  Idempotent."""

    def executor_exited(self, report: ExecutorExited) -> None:
        """An executor process ended.  Idempotent."""

    def register_driver(self, registration: DriverRegistration) -> None:
        """A driver can take executors now.  Idempotent by driver id."""

    def report(self, report: DriverReport) -> None:
        """Heartbeat, progress and terminal report.  Idempotent."""


class TaskExecutorGateway(Protocol):
    """What a JobManager may ask a TaskManager.  Flink: ``TaskExecutorGateway``."""

    def request_slot(self, request: SlotRequest) -> None:
        """Allocate a slot to a job; the TaskManager then offers it.  Idempotent."""

    def free_slot(self, allocation_id: AllocationId) -> None:
        """Take a slot back.  Idempotent."""

    def start_executor(self, descriptor: ExecutorDescriptor) -> None:
        """Start one Spark executor for slots already allocated.  Idempotent by executor id."""

    def stop_executor(self, job_id: JobId, executor_id: ExecutorId) -> None:
        """End an executor (TERM, then KILL).  Idempotent."""

    def ping(self) -> None:
        """Answer at all.  Idempotent."""


class DriverGateway(Protocol):
    """What a JobMaster may ask a driver."""

    def deploy(self, deployment: DriverDeployment) -> None:
        """Start (or start again) the job in this driver; returns at once.  Idempotent by attempt."""

    def cancel(self) -> None:
        """Stop the queries; the end is reported as phase CANCELED.  Idempotent."""

    def shut_down(self) -> None:
        """End the driver process in good order.  Idempotent."""

    def ping(self) -> None:
        """Answer at all.  Idempotent."""


class GatewayFactory(Protocol):
    """Opens gateways to other processes; connections are made lazily and shared."""

    def task_executor(self, address: str) -> TaskExecutorGateway: ...

    def driver(self, address: str) -> DriverGateway: ...

    def resource_manager(self, address: str, fence: Fence) -> ResourceManagerGateway: ...

    def job_master(self, address: str, fence: Fence) -> JobMasterGateway: ...

    def dispatcher(self, address: str) -> DispatcherGateway: ...

    def close(self) -> None: ...


#: (driver id, exit status, last lines of output)
DriverExitListener = Callable[[DriverId, int, str], None]


class DriverLauncher(Protocol):
    """Starts driver processes, which belong to the supervisor and outlive the JobManager."""

    def launch(self, assignment: DriverAssignment, memory_mib: int) -> None:
        """Ask for a driver; a warm spare is used when its memory fits.  Returns at once."""

    def kill(self, driver_id: DriverId, grace_ms: int = 0) -> None:
        """End a driver by force if it is still there after ``grace_ms``.

        Returns at once.  Idempotent; unknown ids are ignored.
        """

    def on_exit(self, listener: DriverExitListener) -> None:
        """Call ``listener`` for each driver process that ends, from any thread."""


class ResourceProvider(Protocol):
    """Where TaskManagers come from: yarn, local or nobody (standalone)."""

    @property
    def replaces_workers(self) -> bool:
        """A worker that ends is replaced without being asked for."""

    @property
    def max_workers(self) -> int | None:
        """No more workers than this can ever be had; None = no bound is known."""

    def request_workers(self, count: int) -> None:
        """Ask for ``count`` more TaskManagers.  Returns at once."""

    def release_worker(self, worker_id: str) -> None:
        """Give a TaskManager back.  Idempotent."""

    def on_worker_exit(self, listener: Callable[[str, int], None]) -> None:
        """Call ``listener(worker_id, exit_status)`` for each worker that ends."""
