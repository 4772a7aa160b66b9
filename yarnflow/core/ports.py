"""What endpoints need from outside, as protocols: a clock, gateways, drivers, TaskManagers.

``runtime`` sees adapters only through these; ``rpc``, ``process``, ``yarn`` and ``testing`` implement
them.  A gateway's methods raise :class:`yarnflow.errors.YarnflowError` and nothing else.  Remote gateways
carry the fence and a deadline with each call (``rpc.client``).

File systems are in :mod:`yarnflow.core.files`, YARN in :mod:`yarnflow.core.yarn`, election, leases and
stores in :mod:`yarnflow.core.ha.ports`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from yarnflow.core.checkpoint.messages import (
    CheckpointInfo,
    CheckpointOrder,
    CheckpointRequest,
    JobCheckpoints,
)
from yarnflow.core.collect.parts import CollectedPage
from yarnflow.core.ids import AllocationId, DriverId, ExecutorId, JobId, TaskManagerId
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
    LogLevel,
    LogLevelResult,
    RestAccess,
    SlotOffer,
    SlotRequest,
    TaskManagerHeartbeat,
    TaskManagerRegistration,
)
from yarnflow.core.resources.diagnostics import LogFile, LogPart, ThreadInfo
from yarnflow.core.resources.provider import ProviderState, WorkerExit


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

    def trigger_checkpoint(self, job_id: JobId, request: CheckpointRequest) -> None:
        """Begin a checkpoint or a savepoint.  Idempotent by request id.

        Raises
        ------
        CheckpointError
            The job cannot take one now.
        """

    def await_checkpoint(self, job_id: JobId, request_id: str, timeout_ms: int) -> CheckpointInfo:
        """What a request led to as soon as it has ended, or so far after the time.  Idempotent."""

    def job_checkpoints(self, job_id: JobId) -> JobCheckpoints:
        """A job's checkpoints, of ended jobs as well.  Idempotent."""

    def await_collected(self, job_id: JobId, position: str, timeout_ms: int) -> CollectedPage:
        """Elements of ``execute_and_collect`` as soon as there are any, or none after the time.  Idempotent.

        Parameters
        ----------
        position : str
            Of the page before, which the program has then; empty = the beginning.
        """

    def rest_access(self) -> RestAccess:
        """Address and tokens of the REST interface.  Idempotent."""

    def inject_fault(self, request: FaultRequest) -> FaultInjected:
        """For drills: break something the job needs, for real.  Not idempotent.

        Raises
        ------
        HaError
            Nobody could take over what would be broken.
        """

    def change_log_level(self, level: LogLevel) -> LogLevelResult:
        """Change what a logger says in all processes of the cluster.  Idempotent.

        Raises
        ------
        InvalidOption
            There is no such level.
        """


class RemoteDispatcher(DispatcherGateway, Protocol):
    """The Dispatcher of whoever leads at an address: one that is started again there is followed."""

    @property
    def known_fence(self) -> Fence | None:
        """Whom calls are meant for; None before the first one."""


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
        """A driver can take executors now.  Idempotent by driver id.

        Raises
        ------
        SubmissionMissing
            The master cannot read what the job is to run: the driver, which can, is to say so.
        """

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

    def log_files(self) -> Sequence[LogFile]:
        """See :class:`~yarnflow.core.resources.diagnostics.ProcessDiagnostics`."""

    def read_log(self, name: str, offset: int, max_bytes: int) -> LogPart:
        """See :class:`~yarnflow.core.resources.diagnostics.ProcessDiagnostics`."""

    def thread_dump(self) -> Sequence[ThreadInfo]:
        """See :class:`~yarnflow.core.resources.diagnostics.ProcessDiagnostics`."""

    def halt(self) -> None:
        """For drills: kill the own process (KILL) as soon as this is answered.  Not idempotent."""

    def set_log_level(self, level: LogLevel) -> None:
        """Change what a logger of this process says.  Idempotent.

        Raises
        ------
        InvalidOption
            There is no such level.
        """


class DriverGateway(Protocol):
    """What a JobMaster may ask a driver."""

    def deploy(self, deployment: DriverDeployment) -> None:
        """Start (or start again) the job in this driver; returns at once.  Idempotent by attempt.

        Raises
        ------
        SubmissionMissing
            The deployment names a submission that this process was not sent; nothing was changed.
        """

    def cancel(self) -> None:
        """Stop the queries; the end is reported as phase CANCELED.  Idempotent."""

    def take_checkpoint(self, order: CheckpointOrder) -> None:
        """Take a checkpoint or savepoint; the outcome comes with the reports.  Idempotent by id."""

    def shut_down(self) -> None:
        """Leave the job in good order: the process ends, or waits for another job.  Idempotent."""

    def ping(self) -> None:
        """Answer at all.  Idempotent."""

    def thread_dump(self) -> Sequence[ThreadInfo]:
        """What its threads do, and those of its JVM.  Idempotent."""

    def halt(self) -> None:
        """For drills: kill the own process (KILL) as soon as this is answered.  Not idempotent."""

    def set_log_level(self, level: LogLevel) -> None:
        """Change what a logger of this process says.  Idempotent.

        Raises
        ------
        InvalidOption
            There is no such level.
        """


class MasterGateway(Protocol):
    """What the leading master may ask a standby."""

    def host_driver(self, assignment: DriverAssignment, memory_mib: int) -> None:
        """Start a driver that outlives the leader; returns at once.  Idempotent by driver id."""

    def set_log_level(self, level: LogLevel) -> None:
        """Change what a logger of this process says.  Idempotent.

        Raises
        ------
        InvalidOption
            There is no such level.
        """


class GatewayFactory(Protocol):
    """Opens gateways to other processes; connections are made lazily and shared."""

    def task_executor(self, address: str) -> TaskExecutorGateway: ...

    def driver(self, address: str) -> DriverGateway: ...

    def resource_manager(self, address: str, fence: Fence) -> ResourceManagerGateway: ...

    def job_master(self, address: str, fence: Fence) -> JobMasterGateway: ...

    def dispatcher(self, address: str, timeout_ms: int | None = None) -> RemoteDispatcher:
        """Whoever leads at an address; calls end after ``timeout_ms``, None = as those to others."""

    def master(self, address: str) -> MasterGateway: ...

    def close(self) -> None: ...


#: (driver id, exit status, last lines of output)
DriverExitListener = Callable[[DriverId, int, str], None]
#: (driver id, whether it waits for its container)
DriverWaitListener = Callable[[DriverId, bool], None]
WorkerExitListener = Callable[[WorkerExit], None]
#: (requests asked to be withdrawn, requests withdrawn)
CancelListener = Callable[[int, int], None]
ProviderStateListener = Callable[[ProviderState], None]


class DriverOwner(Protocol):
    """Who starts and ends driver processes: the supervisor, and the JobManager through it."""

    def launch(self, assignment: DriverAssignment, memory_mib: int) -> None:
        """Ask for a driver; a warm spare is used when its memory fits.  Returns at once.

        If it names a driver that there is, the assignment is that driver's next job.
        """

    def kill(self, driver_id: DriverId, grace_ms: int = 0) -> None:
        """End a driver by force if it is still there after ``grace_ms``.

        Returns at once.  Idempotent; unknown ids are ignored.
        """


class DriverLauncher(DriverOwner, Protocol):
    """Starts driver processes, which belong to the supervisor and outlive the JobManager."""

    def runs(self, driver_id: DriverId) -> bool:
        """Whether the driver belongs to this supervisor and has not ended; quick."""

    def on_exit(self, listener: DriverExitListener) -> None:
        """Call ``listener`` for each driver process that ends, from any thread."""

    def on_wait(self, listener: DriverWaitListener) -> None:
        """Call ``listener`` when a driver's container is asked for, and when it is granted; any thread."""


class WorkerOwner(Protocol):
    """Who starts and ends TaskManagers: the supervisor, and the JobManager through it."""

    def request_workers(self, count: int) -> None:
        """Ask for ``count`` more TaskManagers; each ends in a grant, an exit, or is withdrawn.

        Returns at once.

        Raises
        ------
        YarnflowError
            Not one of them was asked for.
        """

    def cancel_requests(self, count: int) -> int | None:
        """Withdraw up to ``count`` requests that were not granted yet.  Returns at once.

        Those that were granted meanwhile come as TaskManagers and have to be released; those that
        were withdrawn are not reported as exits.

        Returns
        -------
        int or None
            How many were withdrawn; None = not known yet, listeners will be told
            (:meth:`ResourceProvider.on_requests_canceled`).
        """

    def release_worker(self, worker_id: str) -> None:
        """End a TaskManager; its end is reported as released.  Idempotent; unknown ids are ignored."""


class ResourceProvider(WorkerOwner, Protocol):
    """Where TaskManagers come from: yarn, local or nobody (standalone)."""

    @property
    def replaces_workers(self) -> bool:
        """A worker that ends is replaced without being asked for."""

    @property
    def max_workers(self) -> int | None:
        """No more workers than this can ever be had; None = no bound is known."""

    def on_worker_exit(self, listener: WorkerExitListener) -> None:
        """Call ``listener`` for each worker that ends, released or not, from any thread."""

    def on_requests_canceled(self, listener: CancelListener) -> None:
        """Call ``listener(asked, withdrawn)`` for each cancel that had no answer at once; any thread."""

    def on_state(self, listener: ProviderStateListener) -> None:
        """Call ``listener`` whenever the open requests, their outlook or the granted workers change."""
