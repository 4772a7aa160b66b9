"""What the JobManager answers for each scope."""

from __future__ import annotations

from tests.metrics.cluster import JOB, TM, VERTEX, Cluster, details, filled_store, registry
from yarnflow.core.ids import JobId, TaskManagerId
from yarnflow.core.metrics import MetricScope, MetricsView, ScopeKind
from yarnflow.core.states import JobStatus


def test_each_scope() -> None:
    view: MetricsView = registry(Cluster())
    cluster = view.metrics(MetricScope(ScopeKind.JOB_MANAGER))
    assert (cluster["taskSlotsAvailable"], cluster["numRegisteredTaskManagers"]) == (1, 1)
    assert cluster["Status.Python.Memory.Resident"] == 1_000
    assert cluster["numPendingTaskManagers"] == 3
    assert view.metrics(MetricScope(ScopeKind.TASK_MANAGER, TM)) == {"Status.JVM.Count": 1}
    job = view.metrics(MetricScope(ScopeKind.JOB, job_id=JOB))
    assert (job["numExecutors"], job["uptime"]) == (3, 9_999)
    subtask = MetricScope(ScopeKind.SUBTASK, job_id=JOB, vertex_id=VERTEX, subtask_index=1)
    assert view.metrics(subtask) == {
        "numRecordsIn": 5,
        "busyTimeMsPerSecond": 2.5,
        "my map.mine.seen": 7,
        "my map.mine_seen": 8,
    }


def test_what_nobody_knows_is_empty() -> None:
    view = registry(Cluster())
    assert view.metrics(MetricScope(ScopeKind.JOB, job_id=JobId("f" * 32))) == {}
    assert view.metrics(MetricScope(ScopeKind.TASK_MANAGER, TaskManagerId("x"))) == {}


def test_labels_are_flinks() -> None:
    found = {
        (one.metrics.scope.kind, one.metrics.operator): one.variables
        for one in registry(Cluster()).everything()
    }
    assert found[ScopeKind.JOB_MANAGER, ""] == {"host": "master-1"}
    assert found[ScopeKind.TASK_MANAGER, ""] == {"host": "worker-1", "tm_id": "tm-1"}
    assert found[ScopeKind.JOB, ""] == {"host": "master-1", "job_id": JOB, "job_name": "flights"}
    assert found[ScopeKind.SUBTASK, "my map"] == {
        "host": "worker-1",
        "tm_id": "tm-1",
        "job_id": JOB,
        "job_name": "flights",
        "task_id": VERTEX,
        "task_name": "map -> sink",
        "subtask_index": "1",
        "task_attempt_num": "1",
        "operator_name": "my map",
    }


def test_jobs_that_are_over_are_not_reported() -> None:
    over = registry(Cluster([details(status=JobStatus.FINISHED)]))
    assert {one.metrics.scope.kind for one in over.everything()} == {
        ScopeKind.JOB_MANAGER, ScopeKind.TASK_MANAGER,
    }  # fmt: skip


def test_tidying_forgets_what_is_gone() -> None:
    cluster, store = Cluster(), filled_store()
    view = registry(cluster, store)
    view.tidy()
    assert list(store.job(JOB)) and list(store.task_manager(TM))
    cluster.all_jobs, cluster.hosts = [], {}
    view.tidy()
    assert not list(store.job(JOB)) and not list(store.task_manager(TM))


def test_lag_of_a_job() -> None:
    assert registry(Cluster()).pending_records(JOB) == 4
    assert registry(Cluster()).pending_records(JobId("f" * 32)) is None
