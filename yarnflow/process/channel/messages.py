"""All that a supervisor and its JobManager say to each other.

Both are always of the same version, so these types may change at will.  :class:`WorkerExit`,
:class:`ProviderState` and :class:`ProgramEnd` are said as ``core`` has them.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from yarnflow.core.cluster_result import ProgramEnd
from yarnflow.core.ids import DriverId, JobId
from yarnflow.core.messages import DriverAssignment
from yarnflow.core.resources.provider import ProviderState, WorkerExit
from yarnflow.core.states import JobStatus

# --- JobManager → supervisor ---


@dataclass(frozen=True, slots=True)
class LaunchDriver:
    assignment: DriverAssignment
    memory_mib: int


@dataclass(frozen=True, slots=True)
class KillDriver:
    driver_id: DriverId
    #: so long it may still end by itself
    grace_ms: int = 0


@dataclass(frozen=True, slots=True)
class RequestWorkers:
    count: int


@dataclass(frozen=True, slots=True)
class CancelRequests:
    """Withdraw requests for workers; answered with :class:`RequestsCanceled`, sooner or later."""

    count: int


@dataclass(frozen=True, slots=True)
class ReleaseWorker:
    worker_id: str


@dataclass(frozen=True, slots=True)
class JobStatusReport:
    """What the JobManager tells its supervisor at each change of a job's status."""

    job_id: JobId
    status: JobStatus
    #: why it failed, one line; empty otherwise
    diagnostics: str = ""
    job_name: str = ""


@dataclass(frozen=True, slots=True)
class MasterRole:
    """What the JobManager tells its supervisor when it begins to lead, or to stand by."""

    leads: bool
    #: Thrift, of this master
    address: str
    web_address: str = ""
    #: empty and 0 for a standby
    leader_id: str = ""
    epoch: int = 0
    #: first word of the paths that YARN's web proxy asks for; empty = none does
    proxy_path: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class StartMaster:
    """The cluster lacks a master: start one more beside this one."""


# --- supervisor → JobManager ---


@dataclass(frozen=True, slots=True)
class DriverExited:
    driver_id: DriverId
    exit_status: int
    #: last lines of its output
    output_tail: str = ""


@dataclass(frozen=True, slots=True)
class DriverWaits:
    """A driver's container was asked for, or (False) granted."""

    driver_id: DriverId
    waits: bool


@dataclass(frozen=True, slots=True)
class RequestsCanceled:
    """Answer to one :class:`CancelRequests`."""

    asked: int
    withdrawn: int


@dataclass(frozen=True, slots=True)
class RunningDrivers:
    """The drivers an earlier JobManager process of this supervisor has left."""

    driver_ids: tuple[DriverId, ...]


Request = (
    LaunchDriver
    | KillDriver
    | RequestWorkers
    | CancelRequests
    | ReleaseWorker
    | JobStatusReport
    | MasterRole
    | StartMaster
)
Event = (
    DriverExited
    | DriverWaits
    | WorkerExit
    | RequestsCanceled
    | ProviderState
    | ProgramEnd
    | RunningDrivers
)
