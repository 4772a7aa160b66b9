"""Whether a job runs as a stream or as a batch: ``execution.runtime-mode``.

Pure.  Flink counterpart: ``StreamGraphGenerator.shouldExecuteInBatchMode``.
"""

from __future__ import annotations

from yarnflow.errors import UnsupportedGraph
from yarnflow.graph.job_graph import JobGraph, StreamNode
from yarnflow.graph.operators import Source


def endless_sources(graph: JobGraph) -> tuple[StreamNode, ...]:
    """The sources that do not end by themselves."""
    return tuple(
        node for node in graph.nodes if isinstance(node.operator, Source) and not node.operator.bounded
    )


def runs_as_batch(graph: JobGraph, mode: str) -> bool:
    """What ``STREAMING``, ``BATCH`` or ``AUTOMATIC`` means for a job.

    Raises
    ------
    UnsupportedGraph
        BATCH, and a source does not end; the message names it.
    """
    endless = endless_sources(graph)
    if mode == "BATCH" and endless:
        raise UnsupportedGraph(
            f"{endless[0].origin}: '{endless[0].name}' does not end, and execution.runtime-mode is "
            "BATCH; use a bounded source, or STREAMING or AUTOMATIC"
        )
    return mode == "BATCH" or (mode == "AUTOMATIC" and not endless)
