"""A small cluster as the JobManager knows it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from yarnflow.core.checkpoint.messages import JobCheckpoints
from yarnflow.core.ids import JobId, TaskManagerId, VertexId
from yarnflow.core.messages import (
    ClusterOverview,
    ExecutionInfo,
    JobDetails,
    JobOverview,
    MetricDump,
    TaskManagerRegistration,
    VertexInfo,
)
from yarnflow.core.metrics import MetricValue, ScopeKind
from yarnflow.core.resources.provider import TaskManagerInfo
from yarnflow.core.states import ExecutionState, JobStatus
from yarnflow.errors import JobNotFound
from yarnflow.metrics.registry import MetricRegistry
from yarnflow.metrics.store import MetricStore
from yarnflow.testing.runtime import ManualClock

JOB, VERTEX, TM = JobId("a" * 32), VertexId("b" * 32), TaskManagerId("tm-1")


def details(job_id: JobId = JOB, status: JobStatus = JobStatus.RUNNING, restarts: int = 0) -> JobDetails:
    executions = tuple(ExecutionInfo(n, 1, ExecutionState.RUNNING, TM) for n in range(2))
    return JobDetails(
        JobOverview(job_id, "flights", status, 0, -1),
        1,
        {"RUNNING": 1},
        (VertexInfo(VERTEX, "map -> sink", 2, 128, "default", executions),),
        restarts=restarts,
    )


@dataclass
class Cluster:
    """Implements ClusterKnowledge."""

    all_jobs: list[JobDetails] = field(default_factory=lambda: [details()])
    hosts: dict[TaskManagerId, str] = field(default_factory=lambda: {TM: "worker-1"})
    checkpoints: JobCheckpoints = JobCheckpoints(JOB)

    def cluster_overview(self) -> ClusterOverview:
        live = sum(not d.overview.status.globally_terminal for d in self.all_jobs)
        return ClusterOverview(len(self.hosts), 2, 1, live, 0, 0, 0, "1")

    def jobs(self) -> Sequence[JobDetails]:
        return self.all_jobs

    def job_details(self, job_id: JobId) -> JobDetails:
        for one in self.all_jobs:
            if one.overview.job_id == job_id:
                return one
        raise JobNotFound("no such job")

    def job_checkpoints(self, job_id: JobId) -> JobCheckpoints:
        return self.checkpoints

    def pending_task_managers(self) -> int:
        return 3

    def task_managers(self) -> Sequence[TaskManagerInfo]:
        return [
            TaskManagerInfo(TaskManagerRegistration(key, "x:1", host, 1, 2), 2, 1, 0)
            for key, host in self.hosts.items()
        ]


class OwnProcess:
    def metrics(self) -> Mapping[str, MetricValue]:
        return {"Status.Python.Memory.Resident": 1_000}


DUMPS = (
    MetricDump(ScopeKind.JOB, counts={"numExecutors": 3}),
    MetricDump(ScopeKind.VERTEX, VERTEX, counts={"numRecordsIn": 9, "pendingRecords": 4}),
    MetricDump(ScopeKind.SUBTASK, VERTEX, 1, counts={"numRecordsIn": 5}, rates={"busyTimeMsPerSecond": 2.5}),
    MetricDump(ScopeKind.SUBTASK, VERTEX, 1, "my map", counts={"mine.seen": 7, "mine_seen": 8}),
)


def registry(cluster: Cluster, store: MetricStore | None = None) -> MetricRegistry:
    return MetricRegistry(store or filled_store(), cluster, OwnProcess(), ManualClock(10_000), "master-1")


def filled_store() -> MetricStore:
    store = MetricStore()
    store.put_job(JOB, DUMPS)
    store.put_task_manager(TM, [MetricDump(ScopeKind.TASK_MANAGER, counts={"Status.JVM.Count": 1})])
    return store
