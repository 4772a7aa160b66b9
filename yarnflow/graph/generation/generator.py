"""From the calls of a program to its job graph, in three steps: resolve, validate, chain.

Flink counterparts: ``StreamGraphGenerator`` and ``StreamingJobGraphGenerator`` together.
"""

from __future__ import annotations

from collections.abc import Iterable

from yarnflow.core.ids import JobId
from yarnflow.graph.generation.chaining import create_job_graph
from yarnflow.graph.generation.validation import validate
from yarnflow.graph.job_graph import JobGraph
from yarnflow.graph.stream_graph import GraphSettings, StreamGraph, Transformation


def generate_stream_graph(transformations: Iterable[Transformation], settings: GraphSettings) -> StreamGraph:
    """Resolve and validate a whole program, transformations in order of their calls.

    Raises
    ------
    GraphError
        The first thing wrong, with the line of its call.
    """
    graph = StreamGraph(settings)
    for transformation in transformations:
        graph.add(transformation)
    graph.discard_results()
    validate(graph)
    return graph


def generate_job_graph(
    transformations: Iterable[Transformation], settings: GraphSettings, job_id: JobId
) -> JobGraph:
    """The job a program's calls make.  Raises as :func:`generate_stream_graph`."""
    return create_job_graph(generate_stream_graph(transformations, settings), job_id)
