"""What a TaskManager measures."""

from __future__ import annotations

import os

from yarnflow.core.metrics import ScopeKind
from yarnflow.core.monitoring.declarations import METRICS_BY_NAME
from yarnflow.entrypoint.taskmanager.metrics import TaskManagerMetrics


def test_without_executors_only_itself() -> None:
    dump = TaskManagerMetrics(tuple, 1_000).measure()
    assert dump.kind is ScopeKind.TASK_MANAGER
    assert dump.counts["Status.Python.Memory.Resident"] > 0
    assert dump.counts["Status.JVM.Count"] == dump.counts["Status.Python.Workers.Count"] == 0


def test_an_executor_is_measured() -> None:
    dump = TaskManagerMetrics(lambda: (os.getppid(),), 1_000).measure()
    assert dump.counts["Status.JVM.Count"] == 1 and dump.counts["Status.JVM.Memory.Resident"] > 0
    assert dump.counts["Status.Python.Workers.Count"] >= 1, "this process is below"


def test_every_value_is_declared() -> None:
    dump = TaskManagerMetrics(tuple, 1_000).measure()
    for name in (*dump.counts, *dump.rates):
        assert ScopeKind.TASK_MANAGER in METRICS_BY_NAME[name].scopes, name


def test_without_an_interval_there_are_none() -> None:
    metrics = TaskManagerMetrics(tuple, 0)
    metrics.start()
    assert metrics.take() == ()
