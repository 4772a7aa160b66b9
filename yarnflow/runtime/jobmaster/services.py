"""What a JobMaster is given: the process's shared parts and its own job's options."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol

from yarnflow.core.checkpoint.coordinator import CheckpointSettings
from yarnflow.core.checkpoint.messages import RestoreSettings
from yarnflow.core.ha.ports import JobStores
from yarnflow.core.ids import DriverId, JobId
from yarnflow.core.job_run.model import RunSettings
from yarnflow.core.messages import JobDetails, LeaderInfo, MetricDump
from yarnflow.core.ports import Clock, DriverLauncher, GatewayFactory
from yarnflow.core.states import JobStatus
from yarnflow.runtime.jobmaster.driver_keeper import DriverKeeper
from yarnflow.runtime.mailbox import Effects


class SlotRequirements(Protocol):
    """The ResourceManager as a JobMaster sees it; every method only posts."""

    def declare_requirements(self, job_id: JobId, slots: int) -> None:
        """From now on the job wants ``slots`` slots in all."""

    def release_slots(self, job_id: JobId) -> None:
        """The job is over; take all its slots back."""


class JobSnapshots(Protocol):
    """The Dispatcher's board as a JobMaster sees it: where its job is shown."""

    def publish(self, details: JobDetails) -> None:
        """Replace the job's snapshot; its version is set there."""

    def last(self, job_id: JobId) -> JobDetails | None:
        """The newest snapshot, also one that nobody may see yet; None when it is forgotten."""


class DriverLaunching(DriverLauncher, Protocol):
    """Starts jobs' own drivers, not too many at a time."""

    def settled(self, driver_id: DriverId) -> None:
        """A driver has registered or ended: another one may start."""


class HotSpareLaunching(DriverLauncher, Protocol):
    """Starts hot spares, elsewhere than the job's own driver if that can be."""

    def awaits_standby(self) -> bool:
        """The place where they are to be is still to come."""

    def misplaced(self, driver_id: DriverId, hot_spare_of: DriverId) -> bool:
        """This hot spare would be lost with that driver's master, and there is another master."""


class JobMetricsSink(Protocol):
    """Where what is measured of a job goes; any thread, and quick."""

    def put_job(self, job_id: JobId, dumps: Sequence[MetricDump]) -> None:
        """All that its driver has measured, in place of what it had before."""


class NoMetrics:
    """Nobody wants to know."""

    def put_job(self, job_id: JobId, dumps: Sequence[MetricDump]) -> None:
        """Nothing."""


@dataclass(frozen=True, slots=True)
class JobMasterServices:
    """What all JobMasters of a process share."""

    clock: Clock
    effects: Effects
    gateways: GatewayFactory
    launcher: DriverLaunching
    slots: SlotRequirements
    board: JobSnapshots
    leader_info: Callable[[], LeaderInfo]
    new_id: Callable[[], str]
    #: uniform in [-1, 1]
    jitter: Callable[[], float]
    #: what is kept beyond the JobMasters' lives
    stores: JobStores
    hot_spare_launcher: HotSpareLaunching
    #: the cluster's
    secret: bytes
    driver_keeper: DriverKeeper
    #: takes what the drivers of jobs measure; any thread
    metrics: JobMetricsSink = field(default_factory=NoMetrics)


class Retention(Enum):
    """What becomes of the state of a job that was canceled or failed."""

    #: it is kept
    RETAIN_ON_CANCELLATION = "RETAIN_ON_CANCELLATION"
    #: only that of a failed one is kept
    DELETE_ON_CANCELLATION = "DELETE_ON_CANCELLATION"
    #: it is deleted
    NO_EXTERNALIZED_CHECKPOINTS = "NO_EXTERNALIZED_CHECKPOINTS"

    def keeps(self, status: JobStatus) -> bool:
        """Whether the state of a job that ended so is kept."""
        if status is JobStatus.FAILED:
            return self is not Retention.NO_EXTERNALIZED_CHECKPOINTS
        return status is JobStatus.CANCELED and self is Retention.RETAIN_ON_CANCELLATION


@dataclass(frozen=True, slots=True, kw_only=True)
class JobMasterSettings(RunSettings):
    """One job's options, read once."""

    driver_memory_mib: int
    #: the job's own (a URI)
    checkpoint_dir: str
    work_dir: str
    call_timeout_ms: int
    checkpointing: CheckpointSettings
    #: ``execution.checkpointing.dir``: what jobs with the same key share (a URI)
    checkpoint_root: str
    #: parent of savepoints whose request names none (a URI); empty = the request has to
    savepoint_dir: str = ""
    retention: Retention = Retention.RETAIN_ON_CANCELLATION
    #: state to start from
    restore: RestoreSettings | None = None
    #: without ``restore``: from the newest state of the job key, if the job that left it was lost
    restore_if_lost: bool = False
    #: ``client.heartbeat.timeout``: of a program that collects the job's elements
    program_timeout_ms: int = 180_000
    #: how long a driver may take to leave in good order
    shut_down_grace_ms: int = 5_000
