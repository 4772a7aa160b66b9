"""Fakes of the ports in :mod:`yarnflow.core.ports`, which remember what they were asked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from yarnflow.core.checkpoint.messages import CheckpointOrder
from yarnflow.core.ids import AllocationId, DriverId, ExecutorId, JobId, TaskManagerId
from yarnflow.core.messages import (
    DriverAssignment,
    DriverDeployment,
    ExecutorDescriptor,
    Fence,
    JobSubmission,
    LeaderInfo,
    SlotRequest,
    TaskManagerHeartbeat,
    TaskManagerRegistration,
)
from yarnflow.core.ports import (
    DispatcherGateway,
    DriverExitListener,
    DriverGateway,
    JobMasterGateway,
    MasterGateway,
    ResourceManagerGateway,
    TaskExecutorGateway,
)
from yarnflow.core.resources.provider import ProviderState, WorkerExit
from yarnflow.errors import SubmissionMissing, YarnflowError


@dataclass
class FakeTaskExecutor:
    """A TaskManager that does what it is told, or fails with ``error``."""

    requests: list[SlotRequest] = field(default_factory=list)
    freed: list[AllocationId] = field(default_factory=list)
    started: list[ExecutorDescriptor] = field(default_factory=list)
    stopped: list[ExecutorId] = field(default_factory=list)
    pings: int = 0
    halts: int = 0
    error: YarnflowError | None = None

    def request_slot(self, request: SlotRequest) -> None:
        """Remember."""
        self._fail()
        self.requests.append(request)

    def free_slot(self, allocation_id: AllocationId) -> None:
        """Remember."""
        self._fail()
        self.freed.append(allocation_id)

    def start_executor(self, descriptor: ExecutorDescriptor) -> None:
        """Remember."""
        self._fail()
        self.started.append(descriptor)

    def stop_executor(self, job_id: JobId, executor_id: ExecutorId) -> None:
        """Remember."""
        self._fail()
        self.stopped.append(executor_id)

    def ping(self) -> None:
        """Remember."""
        self.pings += 1
        self._fail()

    def halt(self) -> None:
        """Remember."""
        self._fail()
        self.halts += 1

    def _fail(self) -> None:
        if self.error is not None:
            raise self.error


@dataclass
class FakeDriver:
    """A driver that accepts every call, or fails with ``error``."""

    #: with their submissions, sent with them or held from an earlier one
    deployments: list[DriverDeployment] = field(default_factory=list)
    #: digest → submission, as a driver process keeps it
    held: dict[str, JobSubmission] = field(default_factory=dict)
    #: submissions that travelled
    received: int = 0
    orders: list[CheckpointOrder] = field(default_factory=list)
    cancels: int = 0
    shut_downs: int = 0
    halts: int = 0
    error: YarnflowError | None = None

    def deploy(self, deployment: DriverDeployment) -> None:
        """Remember; what is only named must have been sent before."""
        self._fail()
        digest = deployment.submission_digest
        if deployment.submission is not None:
            self.held[digest] = deployment.submission
            self.received += 1
        elif digest not in self.held:
            raise SubmissionMissing(f"no submission {digest}")
        self.deployments.append(replace(deployment, submission=self.held[digest]))

    def cancel(self) -> None:
        """Remember."""
        self._fail()
        self.cancels += 1

    def take_checkpoint(self, order: CheckpointOrder) -> None:
        """Remember."""
        self._fail()
        self.orders.append(order)

    def shut_down(self) -> None:
        """Remember."""
        self._fail()
        self.shut_downs += 1

    def ping(self) -> None:
        """Answer."""
        self._fail()

    def halt(self) -> None:
        """Remember."""
        self._fail()
        self.halts += 1

    def _fail(self) -> None:
        if self.error is not None:
            raise self.error


@dataclass
class FakeResourceManager:
    """Accepts registrations and heartbeats."""

    leader: LeaderInfo
    registrations: list[TaskManagerRegistration] = field(default_factory=list)
    heartbeats: list[TaskManagerHeartbeat] = field(default_factory=list)
    disconnected: list[TaskManagerId] = field(default_factory=list)
    error: YarnflowError | None = None

    def register_task_manager(self, registration: TaskManagerRegistration) -> LeaderInfo:
        """Remember."""
        self._fail()
        self.registrations.append(registration)
        return self.leader

    def heartbeat(self, report: TaskManagerHeartbeat) -> None:
        """Remember."""
        self._fail()
        self.heartbeats.append(report)

    def disconnect_task_manager(self, task_manager_id: TaskManagerId, reason: str) -> None:
        """Remember."""
        self.disconnected.append(task_manager_id)

    def _fail(self) -> None:
        if self.error is not None:
            raise self.error


@dataclass
class FakeMaster:
    """A standby that does what it is told, or fails with ``error``."""

    hosted: list[DriverAssignment] = field(default_factory=list)
    error: YarnflowError | None = None

    def host_driver(self, assignment: DriverAssignment, memory_mib: int) -> None:
        """Remember."""
        if self.error is not None:
            raise self.error
        self.hosted.append(assignment)


@dataclass
class FakeGateways:
    """A :class:`~yarnflow.core.ports.GatewayFactory` of fakes by address."""

    task_executors: dict[str, FakeTaskExecutor] = field(default_factory=dict)
    drivers: dict[str, FakeDriver] = field(default_factory=dict)
    masters: dict[str, FakeMaster] = field(default_factory=dict)

    def task_executor(self, address: str) -> TaskExecutorGateway:
        """The fake at ``address``, made when missing."""
        return self.task_executors.setdefault(address, FakeTaskExecutor())

    def driver(self, address: str) -> DriverGateway:
        """The fake at ``address``, made when missing."""
        return self.drivers.setdefault(address, FakeDriver())

    def resource_manager(self, address: str, fence: Fence) -> ResourceManagerGateway:
        """Not faked."""
        raise NotImplementedError

    def job_master(self, address: str, fence: Fence) -> JobMasterGateway:
        """Not faked."""
        raise NotImplementedError

    def dispatcher(self, address: str) -> DispatcherGateway:
        """Not faked."""
        raise NotImplementedError

    def master(self, address: str) -> MasterGateway:
        """The fake at ``address``, made when missing."""
        return self.masters.setdefault(address, FakeMaster())

    def close(self) -> None:
        """Nothing to close."""


@dataclass
class FakeDriverLauncher:
    """Remembers assignments; :meth:`end` plays the end of a process."""

    assignments: list[DriverAssignment] = field(default_factory=list)
    killed: list[DriverId] = field(default_factory=list)
    awaiting: bool = False
    #: hot spares that are to be elsewhere
    misplaced_ids: set[DriverId] = field(default_factory=set)
    _listeners: list[DriverExitListener] = field(default_factory=list)

    def launch(self, assignment: DriverAssignment, memory_mib: int) -> None:
        """Remember."""
        self.assignments.append(assignment)

    def awaits_standby(self) -> bool:
        """As told."""
        return self.awaiting

    def misplaced(self, driver_id: DriverId, hot_spare_of: DriverId) -> bool:
        """As told."""
        return driver_id in self.misplaced_ids

    def kill(self, driver_id: DriverId, grace_ms: int = 0) -> None:
        """Remember."""
        self.killed.append(driver_id)

    def runs(self, driver_id: DriverId) -> bool:
        """Whether it was assigned and not killed."""
        return driver_id in {each.driver_id for each in self.assignments} - set(self.killed)

    def on_exit(self, listener: DriverExitListener) -> None:
        """Remember the listener."""
        self._listeners.append(listener)

    def end(self, driver_id: DriverId, exit_status: int, output_tail: str = "") -> None:
        """The process of ``driver_id`` ends."""
        for listener in self._listeners:
            listener(driver_id, exit_status, output_tail)


@dataclass
class FakeResourceProvider:
    """Counts requested workers; :meth:`end`, :meth:`grant` and :meth:`answer` play the provider."""

    replaces_workers: bool = False
    max_workers: int | None = None
    #: workers of each request
    requests: list[int] = field(default_factory=list)
    cancels: list[int] = field(default_factory=list)
    released: list[str] = field(default_factory=list)
    _exit_listeners: list[Callable[[WorkerExit], None]] = field(default_factory=list)
    _cancel_listeners: list[Callable[[int, int], None]] = field(default_factory=list)
    _state_listeners: list[Callable[[ProviderState], None]] = field(default_factory=list)

    @property
    def requested(self) -> int:
        """Workers asked for so far."""
        return sum(self.requests)

    def request_workers(self, count: int) -> None:
        """Remember."""
        self.requests.append(count)

    def cancel_requests(self, count: int) -> None:
        """Remember; :meth:`answer` answers."""
        self.cancels.append(count)

    def release_worker(self, worker_id: str) -> None:
        """Remember."""
        self.released.append(worker_id)

    def on_worker_exit(self, listener: Callable[[WorkerExit], None]) -> None:
        """Remember the listener."""
        self._exit_listeners.append(listener)

    def on_requests_canceled(self, listener: Callable[[int, int], None]) -> None:
        """Remember the listener."""
        self._cancel_listeners.append(listener)

    def on_state(self, listener: Callable[[ProviderState], None]) -> None:
        """Remember the listener."""
        self._state_listeners.append(listener)

    def end(
        self, worker_id: str, exit_status: int | None, diagnostics: str = "", released: bool = False
    ) -> None:
        """The process of ``worker_id`` ends."""
        for listener in self._exit_listeners:
            listener(WorkerExit(worker_id, exit_status, diagnostics, released))

    def grant(self, *worker_ids: str, ungranted: int = 0, message: str = "") -> None:
        """These workers exist now, and so many requests are open."""
        for listener in self._state_listeners:
            listener(ProviderState(ungranted, message, worker_ids))

    def answer(self, withdrawn: int) -> None:
        """Answer the last cancel."""
        for listener in self._cancel_listeners:
            listener(self.cancels[-1], withdrawn)


@dataclass
class FakeSlotRequirements:
    """The ResourceManager as a JobMaster sees it."""

    declared: dict[JobId, int] = field(default_factory=dict)
    released: list[JobId] = field(default_factory=list)

    def declare_requirements(self, job_id: JobId, slots: int) -> None:
        """Remember."""
        self.declared[job_id] = slots

    def release_slots(self, job_id: JobId) -> None:
        """Remember."""
        self.released.append(job_id)


__all__: Sequence[str] = (
    "FakeDriver",
    "FakeDriverLauncher",
    "FakeGateways",
    "FakeResourceManager",
    "FakeResourceProvider",
    "FakeSlotRequirements",
    "FakeTaskExecutor",
)
