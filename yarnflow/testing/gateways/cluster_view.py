"""A leading JobManager as REST sees it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from yarnflow.core.checkpoint.messages import (
    CheckpointInfo,
    CheckpointRequest,
    CheckpointStatus,
    CheckpointTrigger,
    JobCheckpoints,
)
from yarnflow.core.ha.ports import Leadership
from yarnflow.core.ids import JobId
from yarnflow.core.job.description import JobDescription
from yarnflow.core.messages import ClusterOverview, Fence, JobDetails, LeaderInfo
from yarnflow.core.metrics import MetricScope, MetricValue
from yarnflow.core.resources.diagnostics import ProcessDiagnostics, ThreadInfo
from yarnflow.core.resources.provider import TaskManagerInfo
from yarnflow.core.states import JobStatus
from yarnflow.errors import CheckpointError, JobNotFound, SavepointNotFound, YarnflowError
from yarnflow.testing.gateways.task_executor import FakeTaskExecutor


@dataclass
class FakeClusterView:
    """:class:`~yarnflow.rest.handlers.context.ClusterView` of values.

    ``error`` makes fail what it is to change.
    """

    details: list[JobDetails] = field(default_factory=list)
    checkpoints: dict[JobId, JobCheckpoints] = field(default_factory=dict)
    descriptions: dict[JobId, JobDescription] = field(default_factory=dict)
    managers: list[TaskManagerInfo] = field(default_factory=list)
    overview: ClusterOverview = ClusterOverview(0, 0, 0, 0, 0, 0, 0, "9.9")
    masters: Leadership = Leadership(LeaderInfo(Fence("", 0), "", "9.9", ""), 0)
    executor: FakeTaskExecutor = field(default_factory=FakeTaskExecutor)
    error: YarnflowError | None = None
    canceled: list[JobId] = field(default_factory=list)
    #: by id; those that were begun are in progress until :meth:`complete`
    requests: dict[str, CheckpointRequest] = field(default_factory=dict)
    outcomes: dict[str, CheckpointInfo] = field(default_factory=dict)
    savepoints: set[str] = field(default_factory=set)
    ended: bool = False

    def cluster_overview(self) -> ClusterOverview:
        """:attr:`overview`."""
        return self.overview

    def leadership(self) -> Leadership:
        """:attr:`masters`."""
        return self.masters

    def jobs(self) -> Sequence[JobDetails]:
        """:attr:`details`."""
        return tuple(self.details)

    def job_details(self, job_id: JobId) -> JobDetails:
        """One of :attr:`details`."""
        for details in self.details:
            if details.overview.job_id == job_id:
                return details
        raise JobNotFound(f"no job {job_id} on this cluster")

    def job_checkpoints(self, job_id: JobId) -> JobCheckpoints:
        """Of :attr:`checkpoints`."""
        self.job_details(job_id)
        return self.checkpoints.get(job_id, JobCheckpoints(job_id))

    def job_description(self, job_id: JobId) -> JobDescription | None:
        """Of :attr:`descriptions`."""
        self.job_details(job_id)
        return self.descriptions.get(job_id)

    def task_managers(self) -> Sequence[TaskManagerInfo]:
        """:attr:`managers`."""
        return tuple(self.managers)

    def task_manager_diagnostics(self, info: TaskManagerInfo) -> ProcessDiagnostics:
        """:attr:`executor`."""
        return self.executor

    def driver_threads(self, job_id: JobId) -> Sequence[ThreadInfo]:
        """One thread."""
        self._fail()
        self.job_details(job_id)
        return (ThreadInfo("MainThread", "at work\n"),)

    def cancel_job(self, job_id: JobId) -> None:
        """Add to :attr:`canceled`."""
        self._fail()
        self.canceled.append(job_id)

    def trigger_checkpoint(self, job_id: JobId, request: CheckpointRequest) -> None:
        """Add to :attr:`requests`."""
        self._fail()
        if self.job_details(job_id).overview.status.globally_terminal:
            raise CheckpointError(f"job {job_id} has ended; only a job that runs can take a checkpoint")
        self.requests[request.request_id] = request
        number = len(self.requests)
        self.outcomes[request.request_id] = CheckpointInfo(
            number, request.kind, CheckpointStatus.IN_PROGRESS, CheckpointTrigger.REQUESTED, 0,
            request_id=request.request_id,
        )  # fmt: skip

    def complete(self, request_id: str, path: str = "", failure: str = "") -> None:
        """What was begun is complete, or has failed."""
        status = CheckpointStatus.FAILED if failure else CheckpointStatus.COMPLETED
        self.outcomes[request_id] = replace(
            self.outcomes[request_id], status=status, external_path=path, failure=failure
        )

    def await_checkpoint(self, job_id: JobId, request_id: str, timeout_ms: int) -> CheckpointInfo:
        """Of :attr:`outcomes`."""
        return self.outcomes[request_id]

    def dispose_savepoint(self, path: str) -> None:
        """Remove from :attr:`savepoints`."""
        self._fail()
        if path not in self.savepoints:
            raise SavepointNotFound(f"{path} does not exist")
        self.savepoints.remove(path)

    def shut_down_cluster(self) -> None:
        """Set :attr:`ended`."""
        self._fail()
        self.ended = True

    def change(self, job_id: JobId, status: JobStatus, entered_ms: int | None = None) -> None:
        """A job has a new status, perhaps since another time."""

        def changed(details: JobDetails) -> JobDetails:
            times = dict(details.timestamps_ms)
            if entered_ms is not None:
                times[status.name] = entered_ms
            return replace(
                details,
                version=details.version + 1,
                timestamps_ms=times,
                overview=replace(details.overview, status=status),
            )

        self.details = [changed(d) if d.overview.job_id == job_id else d for d in self.details]

    def _fail(self) -> None:
        if self.error is not None:
            raise self.error


@dataclass
class FakeMetrics:
    """:class:`~yarnflow.core.metrics.MetricsView` of values."""

    values: dict[MetricScope, dict[str, MetricValue]] = field(default_factory=dict)

    def metrics(self, scope: MetricScope) -> Mapping[str, MetricValue]:
        """Of :attr:`values`."""
        return self.values.get(scope, {})
