"""In which levels of a job's query its operators on elements stand.

A level is one exchange behind the one before it; level 0 stands behind the sources.  An operator whose
input is keyed, broadcast or spread anew stands one level behind those that feed it; one without state that
is fed forward stands where its input is, in a copy for each level it is fed from.  State on disk is
divided by levels.  Flink has one task for each chain instead, and any dataflow between them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from yarnflow.graph.job_graph import ShipStrategy, StreamNode
from yarnflow.graph.operators import (
    ElementKind,
    ElementOperator,
    PartitionByKey,
    PartitionCustom,
    SideOutput,
    Sink,
    UnionOperator,
)

#: a level and, in level 0, the number of the source, else -1
Place = tuple[int, int]

#: strategy of an edge → how elements move along it; None = not at all
_MOVES: Final[Mapping[ShipStrategy, ShipStrategy | None]] = {
    ShipStrategy.FORWARD: None,
    ShipStrategy.HASH: None,
    ShipStrategy.REBALANCE: ShipStrategy.REBALANCE,
    ShipStrategy.RESCALE: ShipStrategy.REBALANCE,
    ShipStrategy.SHUFFLE: ShipStrategy.REBALANCE,
    ShipStrategy.GLOBAL: ShipStrategy.GLOBAL,
    ShipStrategy.BROADCAST: ShipStrategy.BROADCAST,
    ShipStrategy.CUSTOM: ShipStrategy.CUSTOM,
}
#: moves that Spark makes itself when a source is read, where all that read it want the same
_BY_SOURCE: Final = {ShipStrategy.REBALANCE, ShipStrategy.GLOBAL}


@dataclass(frozen=True, slots=True)
class Edge:
    """From one node to another."""

    source: int
    target: int
    input_index: int
    strategy: ShipStrategy
    #: both run in one task
    chained: bool = True


@dataclass(frozen=True, slots=True)
class Path:
    """From an operator's output, through nodes that only pass on, to an operator or a sink."""

    target: int
    input_index: int
    #: HASH (by ``partition``), REBALANCE, GLOBAL, BROADCAST or CUSTOM; None = elements stay where they are
    exchange: ShipStrategy | None
    side: str | None
    partition: PartitionCustom | PartitionByKey | None
    #: from function to function of one chain, where PyFlink hands on the very objects
    chained: bool


@dataclass(frozen=True, slots=True)
class ElementRegion:
    """Sinks of elements and all before them, back to where the elements come from."""

    #: node id → node
    nodes: Mapping[int, StreamNode]
    edges: tuple[Edge, ...]
    sinks: frozenset[int]


def element_region(
    nodes: Mapping[int, StreamNode], chained: Callable[[int, int], bool] = lambda upstream, downstream: True
) -> ElementRegion:
    """The part of a job that is one query of elements; empty if there is none.

    Parameters
    ----------
    nodes : mapping
        Node id → node, of the whole job.
    chained : callable
        Whether two nodes run in one task.
    """
    sinks = frozenset(
        node_id
        for node_id, node in nodes.items()
        if isinstance(node.operator, Sink) and nodes[node.inputs[0]].output_schema.element_type is not None
    )
    region = {sink: nodes[sink] for sink in sinks}
    edges: list[Edge] = []
    waiting = list(sinks)
    while waiting:
        node = nodes[waiting.pop()]
        for position, feeder in enumerate(node.inputs):
            # graphs made by hand say nothing of it
            strategy = node.strategies[position] if node.strategies else ShipStrategy.FORWARD
            edges.append(Edge(feeder, node.node_id, position, strategy, chained(feeder, node.node_id)))
            if feeder not in region:
                region[feeder] = nodes[feeder]
                if _passes_elements(nodes[feeder]):
                    waiting.append(feeder)
    edges.sort(key=lambda edge: (edge.source, edge.target, edge.input_index))
    return ElementRegion(region, tuple(edges), sinks)


def _passes_elements(node: StreamNode) -> bool:
    """Whether elements go through it; a union of columns is where they begin."""
    if isinstance(node.operator, UnionOperator):
        return node.output_schema.element_type is not None
    return isinstance(node.operator, (ElementOperator, SideOutput, PartitionCustom, PartitionByKey))


class ElementPlaces:
    """Where each operator of a region stands.

    Attributes
    ----------
    operators : list of int
        Those on elements, each after those that feed it.
    sources : list of int
        What feeds the first of them.
    spreads : dict
        Source → subtasks over which it is spread for all that read it; 0 = left as it is.
    placed : dict
        Operator → its places; the last one alone may be behind an exchange.
    """

    def __init__(self, region: ElementRegion) -> None:
        self._nodes = region.nodes
        self._sinks = region.sinks
        self._outgoing: dict[int, list[Edge]] = {}
        for edge in region.edges:
            self._outgoing.setdefault(edge.source, []).append(edge)
        ids = sorted(region.nodes)
        self.operators = [n for n in ids if isinstance(region.nodes[n].operator, ElementOperator)]
        self.sources = [n for n in ids if n not in region.sinks and not _passes_elements(region.nodes[n])]
        self.spreads = {source: self._spread(source) for source in self.sources}
        self.placed: dict[int, list[Place]] = {}
        fed = self._fed()
        for node_id in self.operators:
            self.placed[node_id] = self._places(node_id, fed[node_id])

    def last_level(self, node_id: int) -> int:
        """The last level an operator stands in: the one of its state."""
        return max(level for level, _ in self.placed[node_id])

    def behind_exchange(self, node_id: int) -> Place:
        """The place of an operator that exchanges lead to."""
        return self.last_level(node_id), -1

    def paths(self, node_id: int) -> Iterator[Path]:
        """From an operator or source to whatever gets its elements."""
        outgoing = self._outgoing.get(node_id, [])
        readers = [self._nodes[edge.target].operator for edge in outgoing]
        if node_id in self.sources:
            # what went to its side output never was among its elements
            readers = [reader for reader in readers if not isinstance(reader, SideOutput)]
        # what has several readers is the end of a chain
        alone = len(readers) == 1
        waiting: list[
            tuple[Edge, ShipStrategy | None, str | None, PartitionCustom | PartitionByKey | None, bool]
        ] = [(edge, None, None, None, alone) for edge in outgoing]
        while waiting:
            edge, exchange, side, partition, chained = waiting.pop(0)
            exchange = _MOVES[edge.strategy] or exchange
            chained = chained and edge.chained and edge.strategy is ShipStrategy.FORWARD
            operator = self._nodes[edge.target].operator
            if isinstance(operator, SideOutput):
                side = operator.tag_id
            elif isinstance(operator, PartitionCustom):
                exchange, partition = ShipStrategy.CUSTOM, operator
            elif isinstance(operator, PartitionByKey):
                exchange, partition = ShipStrategy.HASH, operator
            elif not isinstance(operator, UnionOperator):
                yield Path(edge.target, edge.input_index, exchange, side, partition, chained)
                continue
            waiting += [(e, exchange, side, partition, False) for e in self._outgoing.get(edge.target, ())]

    def exchange(self, path: Path, feeder: int) -> ShipStrategy | None:
        """How elements get from a node to an operator; None = they are there."""
        operator = self._nodes[path.target].operator
        assert isinstance(operator, ElementOperator), "sinks have no exchange"
        wanted = operator.inputs[path.input_index]
        if wanted.selector is not None:
            return ShipStrategy.HASH
        if wanted.broadcast:
            return ShipStrategy.BROADCAST
        if _apart(operator):
            return path.exchange or ShipStrategy.FORWARD
        if operator.kind is ElementKind.TIMESTAMPS and any(level for level, _ in self._places_of(feeder)):
            # one watermark for each subtask, not for each key group: a group may get no element any more
            return path.exchange or ShipStrategy.FORWARD
        if path.exchange in _BY_SOURCE and self.spreads.get(feeder):
            return None
        return path.exchange

    def _fed(self) -> dict[int, list[tuple[int, Path]]]:
        """Operator → what feeds it: node and path."""
        fed: dict[int, list[tuple[int, Path]]] = {node_id: [] for node_id in self.operators}
        for node_id in [*self.sources, *self.operators]:
            for path in self.paths(node_id):
                if path.target in fed:
                    fed[path.target].append((node_id, path))
        return fed

    def _places(self, node_id: int, fed: list[tuple[int, Path]]) -> list[Place]:
        chained: list[Place] = []
        behind = 0
        for feeder, path in fed:
            places = self._places_of(feeder)
            if self.exchange(path, feeder) is None:
                chained += [place for place in places if place not in chained]
            else:
                behind = max(behind, 1 + max(level for level, _ in places))
        if not behind:
            return chained
        # one place takes what comes from other levels: the last
        behind = max(behind, *(level for level, _ in chained), 0)
        return [*chained, (behind, -1)] if (behind, -1) not in chained else chained

    def _places_of(self, node_id: int) -> list[Place]:
        return self.placed[node_id] if node_id in self.placed else [(0, self.sources.index(node_id))]

    def _spread(self, source: int) -> int:
        """Subtasks over which a source's elements are spread; 0 if not all that read it want the same.

        One that gets them forward or by key would not see them in their order any more.
        """
        # a side output has its few elements wherever they are
        paths = [path for path in self.paths(source) if path.side is None]
        wanted = {self._wanted_spread(path) for path in paths}
        # a sink only numbers what it gets
        chained = any(path.target not in self._sinks for path in paths)
        return wanted.pop() if chained and len(wanted) == 1 else 0

    def _wanted_spread(self, path: Path) -> int:
        target = self._nodes[path.target]
        if isinstance(target.operator, ElementOperator) and _apart(target.operator):
            return 0
        if path.exchange is ShipStrategy.GLOBAL:
            return 1
        return target.parallelism if path.exchange is ShipStrategy.REBALANCE else 0


def _apart(operator: ElementOperator) -> bool:
    """Whether it stands behind an exchange whatever feeds it."""
    return operator.stateful or any(i.selector is not None or i.broadcast for i in operator.inputs)
