"""Names of metrics in the systems that are told of them, as Flink's reporters make them.

The scope of a metric stands in its name without what tells one process or job from another; that is in the
labels.  Flink counterpart: ``AbstractPrometheusReporter``, ``MetricGroup.getLogicalScope``.
"""

from __future__ import annotations

import re
from typing import Final

from yarnflow.core.metrics import OperatorMetrics, ScopeKind

#: begins every name, so that boards and rules made for Flink find the same metrics
PREFIX: Final = "flink"

_SCOPES: Final = {
    ScopeKind.JOB_MANAGER: ("jobmanager",),
    ScopeKind.TASK_MANAGER: ("taskmanager",),
    ScopeKind.JOB: ("jobmanager", "job"),
    # Flink has no metrics of a vertex as a whole; with the name of those of subtasks sums would count twice
    ScopeKind.VERTEX: ("jobmanager", "job", "task"),
    ScopeKind.SUBTASK: ("taskmanager", "job", "task"),
}
_NOT_ALLOWED: Final = re.compile(r"[^a-zA-Z0-9_:]")


def logical_scope(kind: ScopeKind, operator: bool = False) -> tuple[str, ...]:
    """Words before a metric's name."""
    return (*_SCOPES[kind], "operator") if operator else _SCOPES[kind]


def prometheus_name(of: OperatorMetrics, name: str) -> str:
    """Such as ``flink_taskmanager_job_task_numRecordsIn``."""
    words = (PREFIX, *logical_scope(of.scope.kind, bool(of.operator)), name)
    return _NOT_ALLOWED.sub("_", "_".join(words))


def otel_name(of: OperatorMetrics, name: str) -> str:
    """Such as ``flink.taskmanager.job.task.numRecordsIn``."""
    return ".".join((PREFIX, *logical_scope(of.scope.kind, bool(of.operator)), name))
