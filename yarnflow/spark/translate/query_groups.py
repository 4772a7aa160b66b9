"""Which sinks share one streaming query.

Pure: decides over the graph alone, without Spark.  Walking up from a sink over operators
that have one input and no state ends at a *cut*: a stateful operator, a union, a SQL query
or a source.  Sinks with the same cut are fed by one query, so the source is read once.
Never decides what runs inside.  Flink has one dataflow per job and needs no such thing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from yarnflow.errors import UnsupportedGraph
from yarnflow.graph.element_places import ElementRegion, element_region
from yarnflow.graph.job_graph import JobGraph, ShipStrategy, StreamNode
from yarnflow.graph.operators import (
    AssignTimestamps,
    DropDuplicates,
    FilterExpression,
    KeyedReduce,
    LookupJoin,
    PythonOperator,
    RunningAggregate,
    SelectOperator,
    Sink,
    Source,
    SqlOperator,
    UnionOperator,
    WindowAggregate,
    WindowProcess,
)
from yarnflow.graph.state.shape import ELEMENT_QUERY, query_name
from yarnflow.operators.task.planner import LevelsPlan, plan_levels

STATELESS = (SelectOperator, FilterExpression, PythonOperator, LookupJoin, AssignTimestamps)
WINDOWED = (WindowAggregate, WindowProcess)
UPDATING = (RunningAggregate, KeyedReduce)


def is_windowed(operator: object) -> bool:
    """Whether it has state that event time closes, and so may have results of it left."""
    if isinstance(operator, SqlOperator):
        return operator.stateful and not operator.changes
    return isinstance(operator, (*WINDOWED, DropDuplicates))


def is_updating(operator: object) -> bool:
    """Whether its results replace earlier ones."""
    return operator.changes if isinstance(operator, SqlOperator) else isinstance(operator, UPDATING)


def _together(nodes: Sequence[StreamNode]) -> StreamNode:
    """That which lets elements be late for longest; silent as long as that which may be so for longest."""
    found = [node.operator for node in nodes]
    times = [operator for operator in found if isinstance(operator, AssignTimestamps)]
    silences_ms = [one.idle_after_ms for one in times if one.idle_after_ms is not None]
    latest = max(times, key=lambda one: one.out_of_orderness_ms)
    idle_after_ms = max(silences_ms) if len(silences_ms) == len(times) else None
    return replace(nodes[found.index(latest)], operator=replace(latest, idle_after_ms=idle_after_ms))


class GraphIndex:
    """A graph with its nodes, vertices and edges looked up by id.

    Parameters
    ----------
    graph : JobGraph
        The job.
    """

    def __init__(self, graph: JobGraph) -> None:
        self.graph = graph
        self.nodes: Mapping[int, StreamNode] = {node.node_id: node for node in graph.nodes}
        self._vertex_of = {node_id: v.vertex_id for v in graph.vertices for node_id in v.chain}
        self._ships = {(edge.source, edge.target): edge.ship_strategy for edge in graph.edges}

    def chained(self, upstream: int, downstream: int) -> bool:
        """Whether both run in one task."""
        if upstream not in self._vertex_of or downstream not in self._vertex_of:
            return True
        return self._vertex_of[upstream] == self._vertex_of[downstream]

    def rebalanced(self, upstream: int, downstream: int) -> bool:
        """Whether records are spread evenly between the two."""
        pair = (self._vertex_of.get(upstream), self._vertex_of.get(downstream))
        return self._ships.get(pair) is ShipStrategy.REBALANCE  # type: ignore[arg-type]

    def upstream(self, node_id: int) -> Iterator[StreamNode]:
        """The node and everything before it, each once, the node first."""
        seen: set[int] = set()
        waiting = [node_id]
        while waiting:
            current = waiting.pop()
            if current not in seen:
                seen.add(current)
                yield self.nodes[current]
                waiting.extend(self.nodes[current].inputs)

    def event_time(self, node_id: int) -> StreamNode | None:
        """What gave the records of a stream of columns their event time; None = they have none.

        Of a union whose inputs all have one, that which lets elements be late for longest; it is waited
        for as long as that input which is waited for longest.
        """
        node = self.nodes[node_id]
        if isinstance(node.operator, AssignTimestamps):
            return node
        if isinstance(node.operator, UnionOperator):
            found = [self.event_time(feeder) for feeder in node.inputs]
            assigned = [one for one in found if one is not None]
            return _together(assigned) if len(assigned) == len(found) else None
        if isinstance(node.operator, SqlOperator) and node.output_schema.event_time is not None:
            found = [self.event_time(feeder) for feeder in node.inputs]
            assigned = [one for one in found if one is not None]
            return _together(assigned) if assigned else None
        if isinstance(node.operator, STATELESS):
            return self.event_time(node.inputs[0])
        return None

    def path(self, sink_id: int) -> tuple[int, ...]:
        """From the sink's cut down to the sink, both included."""
        path = [sink_id]
        while True:
            node = self.nodes[path[-1]]
            if len(path) > 1 and (not isinstance(node.operator, STATELESS) or len(node.inputs) != 1):
                return tuple(reversed(path))
            path.append(node.inputs[0])


@dataclass(frozen=True, slots=True)
class QueryGroup:
    """One streaming query."""

    #: stable across submits of the same program: from the cut's uid or position
    name: str
    cut: int
    #: the last node all sinks have in common: compiled into the query's plan
    base: int
    #: sinks, in order of their ids
    sinks: tuple[int, ...]
    #: every source is bounded
    bounded: bool
    #: Spark's output mode, as far as the graph tells: ``append`` or ``update``
    output_mode: str
    #: event-time windows before the base
    windowed: bool
    #: what stands between sources and sinks is operators on elements
    levels: LevelsPlan | None = None


def query_groups(graph: JobGraph) -> tuple[QueryGroup, ...]:
    """Divide a graph into queries.

    Raises
    ------
    UnsupportedGraph
        A combination of stateful operators Spark cannot run, or a graph without a sink.
    """
    index = GraphIndex(graph)
    by_cut: dict[int, list[tuple[int, ...]]] = {}
    elements = element_region(index.nodes, index.chained)
    for node in graph.nodes:
        if isinstance(node.operator, Sink) and node.node_id not in elements.sinks:
            path = index.path(node.node_id)
            by_cut.setdefault(path[0], []).append(path)
    if not by_cut and not elements.sinks:
        raise UnsupportedGraph(f"job '{graph.name}' has no sink; add print(), sink_to() or foreach_batch()")
    groups = tuple(_group(index, cut, paths) for cut, paths in by_cut.items())
    return (_element_group(index, elements), *groups) if elements.sinks else groups


def _element_group(index: GraphIndex, region: ElementRegion) -> QueryGroup:
    """All sinks of elements are one query, which reads each source once."""
    timed = {
        node_id: assigned for node_id in region.nodes if (assigned := index.event_time(node_id)) is not None
    }
    at_once = frozenset(node_id for node_id in region.nodes if _is_read_at_once(index, node_id))
    levels = plan_levels(region, timed, at_once)
    bases = [source.node_id for source in levels.sources]
    before = [node for base in bases for node in index.upstream(base)]
    for node in before:
        # in one batch Spark has no state, and all results are there before the first element
        if not index.graph.batch and (is_windowed(node.operator) or is_updating(node.operator)):
            raise UnsupportedGraph(
                f"'{node.name}' ({node.origin}) stands before functions on elements; write its results to "
                "files and read those in another job, or window with a Python function"
            )
    return QueryGroup(
        name=ELEMENT_QUERY,
        cut=bases[0],
        base=bases[0],
        sinks=tuple(sorted(region.sinks)),
        bounded=all(source.bounded for source in sources_of(before)),
        output_mode="append",
        windowed=any(level.stateful for level in levels.levels),
        levels=levels,
    )


def _is_read_at_once(index: GraphIndex, node_id: int) -> bool:
    sources = sources_of(index.upstream(node_id))
    return bool(sources) and all(source.read_at_once for source in sources)


def sources_of(nodes: Iterable[StreamNode]) -> list[Source]:
    """What they read."""
    return [node.operator for node in nodes if isinstance(node.operator, Source)]


def _group(index: GraphIndex, cut: int, paths: list[tuple[int, ...]]) -> QueryGroup:
    base = cut
    for level in zip(*(path[:-1] for path in paths), strict=False):
        if len(set(level)) > 1:
            break
        base = level[0]
    before = list(index.upstream(base))
    stateful = [n for n in before if is_windowed(n.operator) or is_updating(n.operator)]
    updating = [n for n in stateful if is_updating(n.operator)]
    if updating and len(stateful) > 1:
        others = ", ".join(f"'{n.name}' ({n.origin})" for n in stateful if n is not updating[0])
        raise UnsupportedGraph(
            f"'{updating[0].name}' ({updating[0].origin}) updates its results "
            "and cannot stand in one query with "
            f"{others}; write one of them to files and read those in another job"
        )
    node = index.nodes[cut]
    return QueryGroup(
        name=query_name(node),
        cut=cut,
        base=base,
        sinks=tuple(sorted(path[-1] for path in paths)),
        bounded=all(source.bounded for source in sources_of(before)),
        output_mode="update" if updating else "append",
        windowed=any(is_windowed(n.operator) for n in before),
    )
