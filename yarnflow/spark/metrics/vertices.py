"""Where in a job's graph something that was measured belongs.

Pure: over the graph alone.  Spark knows of queries, sources and stages, workers of operators; people ask for
vertices and subtasks.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from yarnflow.core.ids import VertexId
from yarnflow.core.messages import ProgramKind
from yarnflow.graph.job_graph import JobGraph, JobVertex, StreamNode
from yarnflow.graph.operators import Sink, Source
from yarnflow.operators.functions.measures import source_node
from yarnflow.spark.translate.query_groups import GraphIndex, query_groups

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class QueryVertices:
    """The vertices of one streaming query."""

    query: str
    #: upstream first
    vertices: tuple[VertexId, ...]
    #: those with a source, in the order in which the query reads them
    sources: tuple[VertexId, ...]
    sinks: tuple[VertexId, ...]
    #: number of a source of elements → its node
    source_nodes: tuple[int, ...] = ()
    #: workers count what its operators do
    of_elements: bool = False
    #: each vertex but the last feeds the next one, and no other
    in_a_row: bool = False


class JobPlaces:
    """The vertices of a job.

    Parameters
    ----------
    graph : JobGraph
    """

    def __init__(self, graph: JobGraph) -> None:
        self.vertices: dict[VertexId, JobVertex] = {vertex.vertex_id: vertex for vertex in graph.vertices}
        self.nodes: dict[int, StreamNode] = {node.node_id: node for node in graph.nodes}
        self._of_node = {node: vertex.vertex_id for vertex in graph.vertices for node in vertex.chain}
        #: its queries may have any name
        self.is_script = graph.kind is ProgramKind.SCRIPT
        self.queries = {} if self.is_script else {q.query: q for q in self._queries(graph)}
        #: what stands for a source of elements → its node
        self.source_nodes = {
            source_node(number): node_id
            for query in self.queries.values()
            for number, node_id in enumerate(query.source_nodes)
        }

    def query(self, name: str) -> QueryVertices:
        """The vertices of a query; a script has one vertex, which all of its queries belong to."""
        found = self.queries.get(name)
        if found is not None:
            return found
        all_of_them = tuple(self.vertices)
        return QueryVertices(name, all_of_them, all_of_them, all_of_them)

    def parallelism(self, node_id: int) -> int:
        """Subtasks of the vertex that an operator is part of."""
        return self.vertices[self._of_node[node_id]].parallelism

    def measured_in(self, vertex: JobVertex, of_node: Callable[[int], T | None]) -> T | None:
        """What is known of the first operator of a chain, of those of which something is known."""
        found = (of_node(node) for node in vertex.chain)
        return next((value for value in found if value is not None), None)

    def _queries(self, graph: JobGraph) -> list[QueryVertices]:
        index = GraphIndex(graph)
        found = []
        for group in query_groups(graph):
            levels = group.levels
            ends = group.sinks or (group.base,)
            nodes = {node.node_id: node for end in ends for node in index.upstream(end)}
            # node ids rise downstream
            ids = [self._of_node[node] for node in sorted(nodes) if node in self._of_node]
            sources = [node for node in sorted(nodes) if isinstance(nodes[node].operator, Source)]
            sinks = [node for node in sorted(nodes) if isinstance(nodes[node].operator, Sink)]
            found.append(
                QueryVertices(
                    group.name,
                    tuple(dict.fromkeys(ids)),
                    tuple(self._of_node[node] for node in sources if node in self._of_node),
                    tuple(self._of_node[node] for node in sinks if node in self._of_node),
                    () if levels is None else tuple(source.node_id for source in levels.sources),
                    levels is not None,
                    _in_a_row(tuple(dict.fromkeys(ids)), graph),
                )
            )
        return found


def _in_a_row(vertices: tuple[VertexId, ...], graph: JobGraph) -> bool:
    own = set(vertices)
    edges = sorted((edge.source, edge.target) for edge in graph.edges if {edge.source, edge.target} <= own)
    return edges == sorted(itertools.pairwise(vertices))
