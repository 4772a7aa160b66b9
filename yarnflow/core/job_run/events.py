"""What can happen to one job, as plain values; :mod:`yarnflow.core.job_run.decider` decides what follows.

Each carries when it happened.  Answers to effects (:mod:`yarnflow.core.job_run.effects`) are among
them.  An answer about a driver or an executor that is not the job's any more changes nothing, so
answers may come late, twice or never.
"""

from __future__ import annotations

from dataclasses import dataclass

from yarnflow.core.checkpoint.messages import JobStop, RestoreSettings
from yarnflow.core.ids import AllocationId, DriverId, ExecutorId, TaskManagerId
from yarnflow.core.job_run.kept_drivers import KeptDriver
from yarnflow.core.messages import DriverRegistration, DriverReport, ExecutorExited, SlotOffer
from yarnflow.errors import YarnflowError


@dataclass(frozen=True, slots=True)
class Stamp:
    """When something happened, and what chance adds."""

    #: of a clock that does not jump, and stands still while it is in doubt whether this master leads
    ms: int
    #: milliseconds since the epoch, for people and for the restart strategy
    wall_ms: int
    #: for a driver that is launched because of this event
    new_driver_id: DriverId
    #: uniform in [-1, 1], for the restart strategy
    jitter: float = 0.0


@dataclass(frozen=True, slots=True)
class Fresh:
    """How a job comes to a master: it was submitted here, nothing of it exists."""


@dataclass(frozen=True, slots=True)
class Adopted:
    """How a job comes to a master: an earlier one accepted it, and its drivers may run."""

    #: of this master's leadership
    epoch: int


StartKind = Fresh | Adopted


@dataclass(frozen=True, slots=True)
class Event:
    """Something happened."""

    at: Stamp


# --- the job ----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Started(Event):
    """The JobMaster may work on the job."""

    #: of another job that has finished, for this one; None = a driver is to be started
    kept: KeptDriver | None = None


class CancelRequested(Event):
    """A user wants the end."""


class TimePassed(Event):
    """:meth:`~yarnflow.core.job_run.model.JobRun.deadline_ms` has come, or some other time."""


class LeadInDoubt(Event):
    """What comes from now on came while it was in doubt whether this master leads."""


class LeadConfirmed(Event):
    """This master led all the time, but could not hear anybody."""


# --- answers about stored things -----------------------------------------------


@dataclass(frozen=True, slots=True)
class HolderFound(Event):
    """Answer to ``FindDriver``: whose the job's lease is; None = nobody's."""

    driver_id: DriverId | None
    #: deployment that driver runs
    attempt: int = 0


@dataclass(frozen=True, slots=True)
class HolderChanged(Event):
    """Another driver has the job's lease, or none has."""

    driver_id: DriverId | None


@dataclass(frozen=True, slots=True)
class StateFound(Event):
    """Answer to ``FindState``: the state the job starts from; None = it starts empty."""

    state: RestoreSettings | None
    #: what a user who asked for a state should know; empty = nothing
    note: str = ""
    #: why the job cannot start if the driver finds nothing there; empty = as the driver says
    note_if_gone: str = ""


@dataclass(frozen=True, slots=True)
class StateUnreadable(Event):
    """Answer to ``FindState``: the state cannot be looked up, and that will not change."""

    error: YarnflowError


@dataclass(frozen=True, slots=True)
class CheckpointsUnusable(Event):
    """There is no place for checkpoints, and there never will be."""

    error: YarnflowError


class CommitsFound(Event):
    """The job has committed something under an earlier master."""


@dataclass(frozen=True, slots=True)
class AllRecorded(Event):
    """Answer to ``AwaitRecords``: what the driver that has finished was asked for is written."""

    #: None = it has ended by itself
    stop: JobStop | None = None


# --- drivers ----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DriverRegistered(Event):
    """A driver can take executors."""

    registration: DriverRegistration


@dataclass(frozen=True, slots=True)
class DriverReported(Event):
    """Heartbeat of a driver."""

    report: DriverReport


@dataclass(frozen=True, slots=True)
class DriverExited(Event):
    """A driver process has ended."""

    driver_id: DriverId
    exit_status: int
    output_tail: str


@dataclass(frozen=True, slots=True)
class DriverWaits(Event):
    """A driver that was asked for is started later, as others are or YARN is busy, or (False) now."""

    driver_id: DriverId
    waits: bool


@dataclass(frozen=True, slots=True)
class DeployFailed(Event):
    """Answer to ``Deploy``: the driver did not take the job.  That it did take it, its reports show."""

    driver_id: DriverId
    attempt: int
    error: YarnflowError


@dataclass(frozen=True, slots=True)
class CancelFailed(Event):
    """Answer to ``CancelDriver``: the driver did not hear of it.  That it did, its reports show."""

    driver_id: DriverId
    error: YarnflowError


@dataclass(frozen=True, slots=True)
class SparePlaceKnown(Event):
    """Where a hot spare can be has changed."""

    #: its place is still to come
    awaited: bool
    #: this one would be lost with the job's driver, and there is another place; None = neither
    misplaced: DriverId | None = None


# --- slots and executors --------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SlotsOffered(Event):
    """A TaskManager offers slots that the ResourceManager gave to the job."""

    offers: tuple[SlotOffer, ...]


@dataclass(frozen=True, slots=True)
class SlotLost(Event):
    """One slot is not the job's any more; its TaskManager lives."""

    allocation_id: AllocationId
    reason: str


@dataclass(frozen=True, slots=True)
class TaskManagerGone(Event):
    """A TaskManager is gone with everything on it."""

    task_manager_id: TaskManagerId
    reason: str


@dataclass(frozen=True, slots=True)
class TaskManagerDiagnosed(Event):
    """Why a TaskManager was lost became known."""

    task_manager_id: TaskManagerId
    text: str


@dataclass(frozen=True, slots=True)
class SlotsRefused(Event):
    """The cluster can never give all the slots; ``message`` is a sentence whose subject is the job."""

    message: str


@dataclass(frozen=True, slots=True)
class OutlookChanged(Event):
    """What all missing slots wait for; empty = nothing is known."""

    text: str


@dataclass(frozen=True, slots=True)
class ExecutorEnded(Event):
    """A TaskManager reports the end of an executor."""

    report: ExecutorExited


@dataclass(frozen=True, slots=True)
class ExecutorStartFailed(Event):
    """Answer to ``StartExecutor``.  That it was started, its driver's reports show."""

    driver_id: DriverId
    executor_id: ExecutorId
    error: YarnflowError
