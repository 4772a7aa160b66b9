"""What YARN and yarnflow say to each other, as plain values, and who says it, as protocols.

Only :mod:`yarnflow.yarn` knows how these become skein specifications and REST answers.  Memory is
in MiB as YARN counts it.  Flink counterparts: ``ClusterSpecification``,
``YarnClusterDescriptor``'s view of an application report.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, Protocol


class ApplicationState(Enum):
    """YARN's ``YarnApplicationState``."""

    NEW = "NEW"
    NEW_SAVING = "NEW_SAVING"
    SUBMITTED = "SUBMITTED"
    ACCEPTED = "ACCEPTED"
    RUNNING = "RUNNING"
    FINISHED = "FINISHED"
    FAILED = "FAILED"
    KILLED = "KILLED"

    @property
    def ended(self) -> bool:
        """Nothing of it runs any more."""
        return self in (ApplicationState.FINISHED, ApplicationState.FAILED, ApplicationState.KILLED)


class FinalStatus(Enum):
    """YARN's ``FinalApplicationStatus``: what the application said of itself."""

    UNDEFINED = "UNDEFINED"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    KILLED = "KILLED"


class DeploymentMode(Enum):
    """How long a cluster on YARN lives, and where main() runs."""

    PER_JOB = "PER_JOB"
    APPLICATION = "APPLICATION"
    SESSION = "SESSION"

    @property
    def target(self) -> str:
        """As ``execution.target`` names it."""
        return f"yarn-{self.value.lower().replace('_', '-')}"

    @classmethod
    def of_target(cls, target: str) -> DeploymentMode:
        """The mode of a target; raises ``ValueError`` if it is none on YARN."""
        for mode in cls:
            if mode.target == target:
                return mode
        raise ValueError(f"{target} is no target on YARN")


#: in the environment of a driver's container: where in skein's key-value store its assignment is
DRIVER_KEY_ENVIRONMENT: Final = "YARNFLOW_DRIVER_KEY"
#: and what memory the driver gets, in MiB
DRIVER_MEMORY_ENVIRONMENT: Final = "YARNFLOW_DRIVER_MEMORY_MIB"


class Visibility(Enum):
    """Who shares a localised file on a node.  YARN: ``LocalResourceVisibility``."""

    PUBLIC = "PUBLIC"
    PRIVATE = "PRIVATE"
    APPLICATION = "APPLICATION"


@dataclass(frozen=True, slots=True)
class LocalResource:
    """A file or archive that YARN puts into a container's working directory."""

    #: URI; ``hdfs://…`` or another file system YARN's nodes can read
    source: str
    #: unpacked into a directory of the resource's name
    archive: bool = False
    visibility: Visibility = Visibility.APPLICATION
    #: as the file system says; -1 = to be looked up by the submitter
    size_bytes: int = -1
    modified_ms: int = -1


@dataclass(frozen=True, slots=True)
class ContainerSpec:
    """What one kind of container is given."""

    memory_mib: int
    vcores: int
    #: shell text
    script: str
    #: name in the working directory → resource
    resources: dict[str, LocalResource] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)
    node_label: str = ""


@dataclass(frozen=True, slots=True)
class ApplicationSpec:
    """One application of yarnflow as it is submitted."""

    name: str
    queue: str
    tags: tuple[str, ...]
    master: ContainerSpec
    task_manager: ContainerSpec
    #: of each driver; None = drivers run in the master's container
    driver: ContainerSpec | None = None
    #: TaskManagers YARN is asked for as soon as the master is there, before Python runs in it
    initial_task_managers: int = 0
    #: masters of the whole group there will be at the same time, each an application as this one
    masters: int = 1
    max_attempts: int = 1
    node_label: str = ""
    view_acls: str = ""
    modify_acls: str = ""
    #: further file systems whose delegation tokens the containers get
    file_systems: tuple[str, ...] = ()
    #: time between the ApplicationMaster's calls to the ResourceManager
    heartbeat_interval_ms: int = 1_000


@dataclass(frozen=True, slots=True)
class Application:
    """YARN's report of one application."""

    application_id: str
    name: str
    user: str
    queue: str
    state: ApplicationState
    final_status: FinalStatus
    tags: tuple[str, ...] = ()
    diagnostics: str = ""
    tracking_url: str = ""
    #: 0 … 1
    progress: float = 0.0
    started_ms: int = -1
    finished_ms: int = -1
    #: containers it has now
    running_containers: int = 0
    #: address of the node the master runs on, ``host:port`` of its NodeManager's web server
    master_node: str = ""
    attempt_id: str = ""
    #: its nodes have not all written their containers' logs to HDFS; None = YARN does not say
    collecting_logs: bool | None = None


@dataclass(frozen=True, slots=True)
class Queue:
    """A queue of YARN's scheduler and how full it is."""

    #: last part of the path
    name: str
    #: ``root.default``
    path: str
    #: ``RUNNING`` or ``STOPPED``
    state: str = "RUNNING"
    #: share of the cluster in percent, guaranteed and at most; -1 = the scheduler does not say
    capacity_percent: float = -1.0
    max_capacity_percent: float = -1.0
    used_percent: float = -1.0
    pending_containers: int = 0
    #: jobs are submitted to leaves only
    leaf: bool = True
    #: the largest single container in this queue; -1 = no bound of its own
    max_memory_mib: int = -1
    max_vcores: int = -1
    #: the scheduler makes queues below this one when somebody submits to them
    creates_children: bool = False


@dataclass(frozen=True, slots=True)
class ClusterLimits:
    """The largest single container, and what there is in all."""

    max_memory_mib: int
    max_vcores: int
    total_memory_mib: int
    available_memory_mib: int
    total_vcores: int
    available_vcores: int
    active_nodes: int


@dataclass(frozen=True, slots=True)
class YarnContainer:
    """One container of an application, as the ResourceManager lists it."""

    container_id: str
    #: ``host:port`` of its NodeManager's web server
    node: str
    state: str
    started_ms: int = -1
    memory_mib: int = 0
    diagnostics: str = ""
    exit_status: int | None = None


class YarnCluster(Protocol):
    """What YARN's ResourceManager tells, without a JVM.

    Every method raises :class:`yarnflow.errors.YarnError` (or a subclass).
    """

    def application(self, application_id: str) -> Application:
        """Report of one application.  Raises ApplicationNotFound."""

    def applications(
        self, *, tag: str = "", user: str = "", states: Sequence[ApplicationState] = ()
    ) -> Sequence[Application]:
        """Reports of the applications that have all that is asked for."""

    def queues(self) -> Sequence[Queue]:
        """All queues, parents before children."""

    def limits(self) -> ClusterLimits:
        """The largest container that can ever be had, and the state of the cluster."""

    def containers(self, application_id: str) -> Sequence[YarnContainer]:
        """Containers of the application's present attempt."""

    def set_priority(self, application_id: str, priority: int) -> None: ...

    def kill(self, application_id: str) -> None:
        """End an application by force.  Idempotent; raises ApplicationNotFound."""


class YarnSubmitter(Protocol):
    """Submits and kills applications."""

    def start(self) -> None:
        """Begin to do what a submit would wait for; returns at once.  Idempotent."""

    def submit(self, spec: ApplicationSpec, undone: Callable[[str], object] = lambda _: None) -> str:
        """Submit; returns the application id as soon as YARN has it.

        ``undone`` is told the id of an application that a failed submit had left, once that is killed: what
        lies of it on the file system is to be deleted.
        """

    def abort(self) -> None:
        """Have the submit under way fail, and undo it; from another thread.  Final, idempotent."""

    def kill(self, application_id: str) -> None:
        """End an application by force.  Idempotent."""

    def close(self) -> None: ...
