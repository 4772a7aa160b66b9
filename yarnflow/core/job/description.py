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
class EventLog:
    """Where a job's drivers write Spark's event log."""

    #: ``spark.eventLog.dir``
    directory: str
    #: each driver's is a folder of files
    rolling: bool = True
    #: of Spark's history server; empty = not known
    server_url: str = ""
    #: ids by which Spark names the drivers that have run the job, oldest first, as far as this leader knows
    application_ids: tuple[str, ...] = ()

    def path(self, application_id: str) -> str:
        """Of one driver; of a single file Spark may add the name of a compression."""
        name = f"eventlog_v2_{application_id}" if self.rolling else application_id
        return f"{self.directory.rstrip('/')}/{name}"

    def url(self, application_id: str) -> str:
        """Page of Spark's history server; empty = not known."""
        return f"{self.server_url.rstrip('/')}/history/{application_id}/" if self.server_url else ""


@dataclass(frozen=True, slots=True)
class JobDescription:
    """One job; nothing of it changes while it runs but the drivers of its event log."""

    job_id: JobId
    name: str
    #: all of its input at once
    batch: bool = False
    #: sources last, as Flink has it
    nodes: tuple[PlanNode, ...] = ()
    parallelism: int = 1
    #: ``pipeline.max-parallelism``; -1 = not set
    max_parallelism: int = -1
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
    #: None = none is written
    event_log: EventLog | None = None
    #: ``execution.checkpointing.savepoint-dir``; empty = not set
    savepoint_dir: str = ""
