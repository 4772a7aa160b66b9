"""What a job is, as it was submitted: its plan and its options, for people and tools.

Flink counterparts: ``JobPlanInfo``, ``ArchivedExecutionConfig``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from yarnflow.core.ids import JobId, VertexId


@dataclass(frozen=True, slots=True)
class PlanInput:
    """Where records of a vertex come from."""

    vertex_id: VertexId
    #: Flink's name, e.g. HASH
    ship_strategy: str
    #: Flink's name of how records wait between the two: ``blocking`` or ``pipelined``
    exchange: str = "blocking"


@dataclass(frozen=True, slots=True)
class PlanNode:
    """One vertex of a plan."""

    vertex_id: VertexId
    parallelism: int
    #: what each of its operators does, upstream first
    operators: tuple[str, ...] = ()
    inputs: tuple[PlanInput, ...] = ()


@dataclass(frozen=True, slots=True)
class JobDescription:
    """One job; nothing of it changes while it runs."""

    job_id: JobId
    name: str
    #: all of its input at once
    batch: bool = False
    #: sources last, as Flink has it
    nodes: tuple[PlanNode, ...] = ()
    parallelism: int = 1
    #: ``restart-strategy.type``
    restart_strategy: str = ""
    #: ``jobmanager.scheduler``
    scheduler: str = ""
    #: ``state.backend.type``
    state_backend: str = ""
    #: the job may run with fewer slots than it wants
    adaptive: bool = False
    #: what the program gives its functions, secrets hidden
    job_parameters: Mapping[str, str] = field(default_factory=dict)
