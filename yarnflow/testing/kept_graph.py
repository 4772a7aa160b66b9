"""An executor that runs nothing."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import cast

from yarnflow.api.executor import SubmittedJob
from yarnflow.graph.job_graph import JobGraph


@dataclass(slots=True)
class KeptGraph:
    """A :class:`~yarnflow.api.executor.PipelineExecutor` that keeps job graphs; programs go on."""

    graphs: list[JobGraph] = field(default_factory=list)

    def submit(self, job_graph: JobGraph) -> SubmittedJob:
        """Keep the graph."""
        self.graphs.append(job_graph)
        return cast(SubmittedJob, None)
