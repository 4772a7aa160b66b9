"""Names of what is measured, and how it is read.

Flink counterpart: ``QueryScopeInfo`` and ``MetricStore``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from yarnflow.core.ids import JobId, TaskManagerId, VertexId

#: a text is a label, such as the path of the newest checkpoint
MetricValue = int | float | str


class ScopeKind(Enum):
    """What a metric belongs to."""

    JOB_MANAGER = "JOB_MANAGER"
    TASK_MANAGER = "TASK_MANAGER"
    JOB = "JOB"
    #: a vertex as a whole; Flink: metrics of an operator's coordinator
    VERTEX = "VERTEX"
    SUBTASK = "SUBTASK"


@dataclass(frozen=True, slots=True)
class MetricScope:
    """Where a metric belongs; fields that its kind does not need stay empty."""

    kind: ScopeKind
    task_manager_id: TaskManagerId = TaskManagerId("")
    job_id: JobId = JobId("")
    vertex_id: VertexId = VertexId("")
    subtask_index: int = -1


class MetricsView(Protocol):
    """The newest values; may be called from any thread."""

    def metrics(self, scope: MetricScope) -> Mapping[str, MetricValue]:
        """Name → newest value; empty when nothing is known of the scope.

        Names are those of Flink's REST interface: without the scope; of an operator in a subtask
        ``<operator name>.<metric>``.
        """


@dataclass(frozen=True, slots=True)
class OperatorMetrics:
    """Newest values of what belongs to one scope, or to one operator in it."""

    scope: MetricScope
    #: name of the operator; empty = the values are the task's own
    operator: str
    #: name without scope and operator → value
    values: Mapping[str, MetricValue]


def with_operator(operator: str, name: str) -> str:
    """Name of an operator's metric in a subtask, as Flink's REST interface has it."""
    return f"{operator}.{name}" if operator else name
