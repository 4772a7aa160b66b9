"""What handlers may ask: the leading JobManager, as REST sees it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from yarnflow.core.checkpoint.messages import CheckpointInfo, CheckpointRequest, JobCheckpoints
from yarnflow.core.ha.ports import Leadership
from yarnflow.core.ids import JobId
from yarnflow.core.job.description import JobDescription
from yarnflow.core.messages import ClusterOverview, JobDetails
from yarnflow.core.metrics import MetricsView
from yarnflow.core.ports import Clock
from yarnflow.core.resources.diagnostics import ProcessDiagnostics, ThreadInfo
from yarnflow.core.resources.provider import TaskManagerInfo
from yarnflow.rest.answers.cluster import Features
from yarnflow.rest.answers.logs import ProcessPlace
from yarnflow.rest.framework.changes import JobChanges
from yarnflow.rest.framework.operations import Operations
from yarnflow.rest.programs.running import ProgramRunner
from yarnflow.rest.programs.store import ProgramStore


class ClusterView(Protocol):
    """The leading JobManager; every method may be called from any thread, and may block."""

    def cluster_overview(self) -> ClusterOverview: ...

    def leadership(self) -> Leadership:
        """The masters of the cluster."""

    def jobs(self) -> Sequence[JobDetails]:
        """Oldest first."""

    def job_details(self, job_id: JobId) -> JobDetails:
        """Raises JobNotFound."""

    def job_checkpoints(self, job_id: JobId) -> JobCheckpoints:
        """Raises JobNotFound."""

    def job_description(self, job_id: JobId) -> JobDescription | None:
        """None = it ended under an earlier leader, who has not left it.  Raises JobNotFound."""

    def task_managers(self) -> Sequence[TaskManagerInfo]: ...

    def task_manager_diagnostics(self, info: TaskManagerInfo) -> ProcessDiagnostics:
        """Of a registered TaskManager; its calls raise RpcError."""

    def driver_threads(self, job_id: JobId) -> Sequence[ThreadInfo]:
        """What the threads of a job's driver and of its JVM do.  Raises JobNotFound, DriverLost, RpcError."""

    def cancel_job(self, job_id: JobId) -> None:
        """Raises JobNotFound, JobError, LeadershipLost, HaError."""

    def trigger_checkpoint(self, job_id: JobId, request: CheckpointRequest) -> None:
        """Raises JobNotFound, CheckpointError."""

    def await_checkpoint(self, job_id: JobId, request_id: str, timeout_ms: int) -> CheckpointInfo:
        """Raises JobNotFound, CheckpointError."""

    def dispose_savepoint(self, path: str) -> None:
        """Delete a savepoint; blocks.  Raises SavepointNotFound, SavepointInvalid, StorageError."""

    def shut_down_cluster(self) -> None:
        """Cancel every job, then end the cluster."""


@dataclass(frozen=True, slots=True)
class ClusterInfo:
    """What stays the same while the JobManager runs."""

    configuration: Mapping[str, str]
    #: ``web.refresh-interval``
    refresh_interval_ms: int
    version: str
    features: Features
    revision: str = ""
    #: of the JobManager
    place: ProcessPlace = ProcessPlace()


@dataclass(frozen=True, slots=True)
class Programs:
    """Uploaded programs, and who runs them."""

    store: ProgramStore
    runner: ProgramRunner
    #: of the largest one
    max_bytes: int


@dataclass(frozen=True, slots=True)
class Cluster:
    """Passed to every handler."""

    view: ClusterView
    metrics: MetricsView
    #: of the JobManager itself
    diagnostics: ProcessDiagnostics
    operations: Operations
    clock: Clock
    info: ClusterInfo
    changes: JobChanges
    #: None = programs are not taken here
    programs: Programs | None = None

    def job(self, job_id: str) -> JobDetails:
        """Raises JobNotFound."""
        return self.view.job_details(JobId(job_id))

    def now_ms(self) -> int:
        """Milliseconds since the epoch."""
        return self.clock.now_ms()
