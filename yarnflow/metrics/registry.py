"""All metrics of the cluster: what was reported, and what the JobManager itself knows.

What it knows is worked out when somebody asks, so it is never old.  Flink counterparts:
``MetricRegistryImpl``, ``MetricFetcher``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from yarnflow.core.checkpoint.messages import JobCheckpoints
from yarnflow.core.ids import JobId, TaskManagerId
from yarnflow.core.messages import ClusterOverview, JobDetails
from yarnflow.core.metrics import MetricScope, MetricValue, OperatorMetrics, ScopeKind
from yarnflow.core.monitoring import declarations as m
from yarnflow.core.monitoring.job_metrics import cluster_metrics, job_metrics
from yarnflow.core.ports import Clock
from yarnflow.core.resources.provider import TaskManagerInfo
from yarnflow.errors import JobNotFound
from yarnflow.metrics.store import MetricStore


class OwnProcess(Protocol):
    """The JobManager's process, to be asked by any thread."""

    def metrics(self) -> Mapping[str, MetricValue]: ...


class ClusterKnowledge(Protocol):
    """What the JobManager knows; every method may be called from any thread."""

    def cluster_overview(self) -> ClusterOverview: ...

    def jobs(self) -> Sequence[JobDetails]:
        """Oldest first."""

    def job_details(self, job_id: JobId) -> JobDetails:
        """Raises JobNotFound."""

    def job_checkpoints(self, job_id: JobId) -> JobCheckpoints:
        """Raises JobNotFound."""

    def task_managers(self) -> Sequence[TaskManagerInfo]: ...

    def pending_task_managers(self) -> int:
        """Asked for, and not registered."""


@dataclass(frozen=True, slots=True)
class LabeledMetrics:
    """Values with all that reporters say of where they belong."""

    metrics: OperatorMetrics
    #: Flink's variables: ``host``, ``tm_id``, ``job_id``, ``job_name``, ``task_name``, ``subtask_index`` …
    variables: Mapping[str, str]


class MetricRegistry:
    """Implements :class:`yarnflow.core.metrics.MetricsView`.

    Parameters
    ----------
    store : MetricStore
    cluster : ClusterKnowledge
    own_process : OwnProcess
    clock : Clock
    host : str
        Name under which others reach this JobManager.
    """

    def __init__(
        self, store: MetricStore, cluster: ClusterKnowledge, own_process: OwnProcess, clock: Clock, host: str
    ) -> None:
        self._store = store
        self._cluster = cluster
        self._own_process = own_process
        self._clock = clock
        self._host = host

    def metrics(self, scope: MetricScope) -> Mapping[str, MetricValue]:
        """Name → newest value; empty when nothing is known of the scope."""
        if scope.kind is ScopeKind.JOB_MANAGER:
            return self._job_manager()
        if scope.kind is not ScopeKind.JOB:
            return self._store.values(scope)
        try:
            return self._job(self._cluster.job_details(scope.job_id))
        except JobNotFound:
            return {}

    def job_of(self, details: JobDetails) -> Mapping[str, MetricValue]:
        """Of a job as a whole."""
        return self._job(details)

    def pending_records(self, job_id: JobId) -> int | None:
        """Messages that a job's sources have not read; None = not known."""
        pending = [
            value
            for found in self._store.job(job_id)
            for name, value in found.values.items()
            if name == m.PENDING_RECORDS.name and isinstance(value, int)
        ]
        return sum(pending) if pending else None

    def tidy(self) -> None:
        """Forget what is there no more."""
        jobs = self._cluster.jobs()
        over = {d.overview.job_id for d in jobs if d.overview.status.globally_terminal}
        self._store.retain(
            (details.overview.job_id for details in jobs if details.overview.job_id not in over),
            over,
            (info.registration.task_manager_id for info in self._cluster.task_managers()),
        )

    def everything(self) -> Iterator[LabeledMetrics]:
        """All values of all that is alive, for reporters."""
        host = {"host": self._host}
        scope = MetricScope(ScopeKind.JOB_MANAGER)
        yield LabeledMetrics(OperatorMetrics(scope, "", self._job_manager()), host)
        hosts: dict[TaskManagerId, str] = {}
        for info in self._cluster.task_managers():
            task_manager_id = info.registration.task_manager_id
            hosts[task_manager_id] = info.registration.host
            labels = {"host": info.registration.host, "tm_id": str(task_manager_id)}
            for found in self._store.task_manager(task_manager_id):
                yield LabeledMetrics(found, labels)
        for details in self._cluster.jobs():
            if not details.overview.status.globally_terminal:
                yield from self._labeled_job(details, hosts)

    def _labeled_job(
        self, details: JobDetails, hosts: Mapping[TaskManagerId, str]
    ) -> Iterator[LabeledMetrics]:
        job_id = details.overview.job_id
        of_job = {"host": self._host, "job_id": str(job_id), "job_name": details.overview.name}
        scope = MetricScope(ScopeKind.JOB, job_id=job_id)
        yield LabeledMetrics(OperatorMetrics(scope, "", self._job(details)), of_job)
        vertices = {vertex.vertex_id: vertex for vertex in details.vertices}
        for found in self._store.job(job_id):
            vertex = vertices.get(found.scope.vertex_id)
            if found.scope.kind is ScopeKind.JOB or vertex is None:
                continue
            variables = {**of_job, "task_id": str(vertex.vertex_id), "task_name": vertex.name}
            if found.scope.kind is ScopeKind.SUBTASK:
                subtask = found.scope.subtask_index
                place = next((e for e in vertex.executions if e.subtask_index == subtask), None)
                variables |= {"host": "", "tm_id": "", "subtask_index": str(subtask)}
                if place is not None:
                    variables |= {
                        "host": hosts.get(TaskManagerId(place.task_manager_id), ""),
                        "tm_id": str(place.task_manager_id),
                        "task_attempt_num": str(place.attempt),
                    }
            if found.operator:
                variables["operator_name"] = found.operator
            yield LabeledMetrics(found, variables)

    def _job_manager(self) -> dict[str, MetricValue]:
        known = cluster_metrics(self._cluster.cluster_overview(), self._cluster.pending_task_managers())
        return {**known, **self._own_process.metrics()}

    def _job(self, details: JobDetails) -> dict[str, MetricValue]:
        job_id = details.overview.job_id
        reported = self._store.values(MetricScope(ScopeKind.JOB, job_id=job_id))
        try:
            checkpoints = self._cluster.job_checkpoints(job_id)
        except JobNotFound:
            checkpoints = JobCheckpoints(job_id)
        return job_metrics(details, checkpoints, reported, self._clock.now_ms())
