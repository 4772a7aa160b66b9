"""The newest values, no more of them than there is room for, and nothing of what is gone."""

from __future__ import annotations

import pytest

from yarnflow.core.ids import JobId, TaskManagerId, VertexId
from yarnflow.core.messages import MetricDump
from yarnflow.core.metrics import MetricScope, ScopeKind
from yarnflow.metrics import store as store_module
from yarnflow.metrics.store import MetricStore

JOB, TM, VERTEX = JobId("a" * 32), TaskManagerId("tm-1"), VertexId("b" * 32)
SUBTASK = MetricScope(ScopeKind.SUBTASK, job_id=JOB, vertex_id=VERTEX, subtask_index=1)
OF_JOB = MetricScope(ScopeKind.JOB, job_id=JOB)


def dump(operator: str = "", subtask: int = 1, **counts: int) -> MetricDump:
    return MetricDump(ScopeKind.SUBTASK, VERTEX, subtask, operator, counts)


def of_job(**counts: int) -> MetricDump:
    return MetricDump(ScopeKind.JOB, counts=counts)


def test_names_of_operators_stand_before_their_metrics() -> None:
    store = MetricStore()
    store.put_job(JOB, [dump(numRecordsIn=1), dump("my map", numRecordsIn=2)])
    assert store.values(SUBTASK) == {"numRecordsIn": 1, "my map.numRecordsIn": 2}


def test_a_report_takes_the_place_of_all_before_it() -> None:
    store = MetricStore()
    store.put_job(JOB, [dump(numRecordsIn=1), dump(subtask=7, numRecordsIn=1)])
    store.put_job(JOB, [dump(numRecordsIn=5)])
    assert store.values(SUBTASK) == {"numRecordsIn": 5}
    gone = MetricScope(ScopeKind.SUBTASK, job_id=JOB, vertex_id=VERTEX, subtask_index=7)
    assert store.values(gone) == {}, "a subtask of before the job was rescaled"


def test_nobody_writes_into_what_is_not_theirs() -> None:
    store = MetricStore()
    store.put_job(JOB, [MetricDump(ScopeKind.TASK_MANAGER, counts={"x": 1})])
    store.put_task_manager(TM, [of_job(x=1)])
    assert store.values(MetricScope(ScopeKind.TASK_MANAGER, TM)) == {} == store.values(OF_JOB)


def test_a_job_cannot_take_all_the_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module, "MAX_VALUES", 10)
    store = MetricStore()
    store.put_job(JOB, [dump(subtask=n, a=1, b=2, c=3) for n in range(100)])
    assert sum(len(found.values) for found in store.job(JOB)) == 9


def test_all_jobs_together_have_a_limit_and_the_oldest_gives_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module, "MAX_ALL_VALUES", 6)
    store = MetricStore()
    ids = [JobId(f"{n:032x}") for n in range(4)]
    for job_id in ids:
        store.put_job(job_id, [of_job(a=1, b=2)])
    assert [bool(list(store.job(job_id))) for job_id in ids] == [False, True, True, True]


def test_what_is_gone_is_forgotten() -> None:
    store = MetricStore()
    store.put_job(JOB, [of_job(a=1)])
    store.put_task_manager(TM, [MetricDump(ScopeKind.TASK_MANAGER, counts={"a": 1})])
    store.retain([JOB], [], [TM])
    assert store.values(OF_JOB) and list(store.task_manager(TM))
    store.retain([], [], [])
    assert store.values(OF_JOB) == {} and list(store.task_manager(TM)) == []


def test_of_ended_jobs_the_newest_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module, "ENDED_JOBS", 2)
    store = MetricStore()
    ids = [JobId(f"{n:032x}") for n in range(4)]
    for job_id in ids:
        store.put_job(job_id, [of_job(a=1)])
    for count in range(1, 5):
        store.retain(ids[count:], ids[:count], [])
    assert [bool(list(store.job(job_id))) for job_id in ids] == [False, False, True, True]
