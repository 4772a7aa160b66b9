"""What the decider of one job wants done, as plain values.

Performed by the JobMaster, in order, which answers as each says; :mod:`yarnflow.core.job_run.decider`
decides.  "Until it worked" means that whoever performs it tries again by itself, for ever.
"""

from __future__ import annotations

from dataclasses import dataclass

from yarnflow.core.checkpoint.messages import JobStop, RestoreSettings
from yarnflow.core.ids import DriverId, ExecutorId, TaskManagerId
from yarnflow.core.job.job import StatusChanged
from yarnflow.core.messages import DriverReport, ExecutorDescriptor, JobDetails

# --- stored things ------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FindDriver:
    """Watch the job's lease from now on, see who has it, until it worked; answer with ``HolderFound``."""


@dataclass(frozen=True, slots=True)
class WatchLease:
    """Watch the job's lease from now on; answer with each ``HolderChanged``."""


@dataclass(frozen=True, slots=True)
class FindState:
    """Look up which state to start from; answer with ``StateFound`` or ``StateUnreadable``."""


@dataclass(frozen=True, slots=True)
class AwaitRecords:
    """Answer with ``AllRecorded`` as soon as nothing a user asked for is being written."""

    #: by which the driver has ended, whose savepoint is recorded by then, or will not be
    stop: JobStop | None


@dataclass(frozen=True, slots=True)
class TakeReport:
    """What the job's driver says of its queries and orders is for the checkpoints; no answer."""

    report: DriverReport


@dataclass(frozen=True, slots=True)
class InterruptCheckpoints:
    """The queries do not run any more; no answer."""

    reason: str


# --- drivers ----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LaunchDriver:
    """Start a driver process, or give one that was kept its next job.

    It registers, exits, or is given up after its time.

    Answer with ``DriverExited`` if it cannot even be asked for.
    """

    driver_id: DriverId
    #: the driver that it is to get ready for; None = it is the job's own
    hot_spare_of: DriverId | None = None


@dataclass(frozen=True, slots=True)
class KillDriver:
    """End a driver at once, and take its lease from it until that worked; no answer."""

    driver_id: DriverId


@dataclass(frozen=True, slots=True)
class DismissDriver:
    """Let a driver leave in good order, and kill it when it does not; no answer."""

    driver_id: DriverId
    address: str


@dataclass(frozen=True, slots=True)
class KeepDriver:
    """Let a driver leave its job in good order, for another job; kill it when it does not; no answer.

    Its executors are not told to end: they wait with it.
    """

    driver_id: DriverId
    address: str
    #: how many it has run
    jobs: int
    #: new executors of it have at least this number
    next_number: int


@dataclass(frozen=True, slots=True)
class Deploy:
    """Tell a driver to run an attempt of the job; answer with ``DeployFailed`` if it does not."""

    driver_id: DriverId
    address: str
    attempt: int
    executor_ids: tuple[ExecutorId, ...]
    restore: RestoreSettings | None
    #: it was deployed before, and so has the job
    again: bool


@dataclass(frozen=True, slots=True)
class CancelDriver:
    """Tell a driver to stop its queries; answer with ``CancelFailed`` if it does not hear it."""

    driver_id: DriverId
    address: str


# --- slots and executors --------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DeclareSlots:
    """From now on the job wants so many slots in all; they come with ``SlotsOffered``."""

    slots: int


@dataclass(frozen=True, slots=True)
class ReleaseSlots:
    """The job is over, take all its slots back; no answer."""


@dataclass(frozen=True, slots=True)
class StartExecutor:
    """Have a TaskManager start an executor; answer with ``ExecutorStartFailed`` if it does not."""

    #: the TaskManager's
    address: str
    task_manager_id: TaskManagerId
    descriptor: ExecutorDescriptor


@dataclass(frozen=True, slots=True)
class StopExecutor:
    """Have a TaskManager end an executor; no answer.

    It is told for a while until it has heard it: the executor ends with its driver, and its slots are of no
    use before.
    """

    #: the TaskManager's
    address: str
    executor_id: ExecutorId


# --- telling ----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Say:
    """A line for the log; no answer."""

    text: str
    is_warning: bool = False


@dataclass(frozen=True, slots=True)
class Show:
    """The job entered a status: everybody may see it, as soon as that is persisted; no answer."""

    details: JobDetails


@dataclass(frozen=True, slots=True)
class EndJob:
    """The job is globally terminal: see to what is kept of it, then tell the Dispatcher; no answer."""


Effect = (
    FindDriver
    | WatchLease
    | FindState
    | AwaitRecords
    | TakeReport
    | InterruptCheckpoints
    | LaunchDriver
    | KillDriver
    | DismissDriver
    | KeepDriver
    | Deploy
    | CancelDriver
    | DeclareSlots
    | ReleaseSlots
    | StartExecutor
    | StopExecutor
    | Say
    | Show
    | EndJob
    | StatusChanged
)
