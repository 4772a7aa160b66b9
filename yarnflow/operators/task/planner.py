"""From a job graph to levels.

An operator whose input is keyed, broadcast or spread anew stands one level behind those that feed it;
one without state that is fed forward runs where its input is, in a copy for each level it is fed from.
Pure: looks at the graph alone.  Flink counterpart: ``StreamingJobGraphGenerator``, for one dataflow of
micro-batches.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from yarnflow.graph.closures import make_closure
from yarnflow.graph.job_graph import ShipStrategy, StreamNode
from yarnflow.graph.operators import (
    AssignTimestamps,
    Closure,
    ElementKind,
    ElementOperator,
    PartitionCustom,
    PrintSink,
    SideOutput,
    UnionOperator,
)
from yarnflow.graph.type_info import TypeInfo
from yarnflow.operators.process.watermarks import TimestampsAndWatermarksDefinition
from yarnflow.operators.task.plan import (
    ChainedRoute,
    Exchange,
    ExchangeRoute,
    LevelPlan,
    OperatorPlan,
    Route,
    SinkRoute,
)
from yarnflow.operators.task.silence import Silence, silence_behind, silence_behind_strategy

_EXCHANGES: Final[Mapping[ShipStrategy, Exchange | None]] = {
    ShipStrategy.FORWARD: None,
    ShipStrategy.HASH: None,
    ShipStrategy.REBALANCE: Exchange.REBALANCE,
    ShipStrategy.RESCALE: Exchange.REBALANCE,
    ShipStrategy.SHUFFLE: Exchange.REBALANCE,
    ShipStrategy.GLOBAL: Exchange.GLOBAL,
    ShipStrategy.BROADCAST: Exchange.BROADCAST,
    ShipStrategy.CUSTOM: Exchange.CUSTOM,
}
#: exchanges that Spark does itself when a source is read, where all that read it want the same
_BY_SOURCE: Final = {Exchange.REBALANCE, Exchange.GLOBAL}


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
class SourcePlan:
    """Level 0 behind one source."""

    #: whose output is the source: a node of columns, or of elements that were read
    node_id: int
    level: LevelPlan
    #: subtasks its elements are spread over before; 0 = left as they are
    spread: int


@dataclass(frozen=True, slots=True)
class LevelsPlan:
    """All levels of one query."""

    sources: tuple[SourcePlan, ...]
    #: levels 1, 2, …
    levels: tuple[LevelPlan, ...]
    #: groups of each of these
    groups: tuple[int, ...]
    #: some watermark waits for several streams of which one may become idle
    waits_for_idle: bool = False

    @property
    def needs_ticks(self) -> bool:
        """Whether something may become due by the clock alone, while no elements come."""
        operators = (operator for level in self.levels for operator in level.operators)
        return self.waits_for_idle or any(operator.processing_timers for operator in operators)


@dataclass(frozen=True, slots=True)
class _Path:
    """From an operator's output, through nodes that only pass on, to an operator or a sink."""

    target: int
    input_index: int
    exchange: Exchange | None
    side: str | None
    partition: PartitionCustom | None
    #: from function to function of one chain, where PyFlink hands on the very objects
    chained: bool


@dataclass(slots=True)
class _Building:
    """A level while it is planned; a place is a level and, in level 0, the source, else -1."""

    operators: dict[int, list[Route]] = field(default_factory=dict)
    head: list[Route] = field(default_factory=list)
    channels: dict[tuple[int, int], list[int]] = field(default_factory=dict)
    #: channel → how long it may be silent
    idle_after_ms: dict[int, int] = field(default_factory=dict)
    #: operator → what is known of each stream that feeds it
    silences: dict[int, list[Silence]] = field(default_factory=dict)


def plan_levels(
    nodes: Mapping[int, StreamNode],
    edges: list[Edge],
    sinks: frozenset[int],
    timed: Mapping[int, StreamNode] | None = None,
    read_at_once: frozenset[int] = frozenset(),
) -> LevelsPlan:
    """Divide the element operators between sources and sinks into levels.

    Parameters
    ----------
    nodes : mapping
        Node id → node; in topological order of their ids.  Those that are neither element operators, nor
        pass elements on, nor sinks, are the sources.
    edges : list of Edge
        Edges between them.
    sinks : frozenset of int
        The sinks among the nodes.
    timed : mapping, optional
        Source → the node of columns that gave its elements their times: AssignTimestamps.
    read_at_once : frozenset of int
        The sources that have ended after the first micro-batch.
    """
    return _Planner(nodes, edges, sinks, timed or {}, read_at_once).plan()


class _Planner:
    def __init__(
        self,
        nodes: Mapping[int, StreamNode],
        edges: list[Edge],
        sinks: frozenset[int],
        timed: Mapping[int, StreamNode],
        read_at_once: frozenset[int],
    ) -> None:
        self._nodes = nodes
        self._sinks = sinks
        self._timed = timed
        self._read_at_once = read_at_once
        self._outgoing: dict[int, list[Edge]] = {}
        for edge in edges:
            self._outgoing.setdefault(edge.source, []).append(edge)
        self._operators = [n for n in sorted(nodes) if isinstance(nodes[n].operator, ElementOperator)]
        self._sources = [n for n in sorted(nodes) if n not in sinks and not _passes_elements(nodes[n])]
        #: source → subtasks over which it is spread for all that read it; 0 = left as it is
        self._spreads = {source: self._spread(source) for source in self._sources}
        self._placed: dict[int, list[tuple[int, int]]] = {}
        self._building: dict[tuple[int, int], _Building] = {}
        self._channels = itertools.count()

    def plan(self) -> LevelsPlan:
        fed = self._fed()
        for node_id in self._operators:
            self._placed[node_id] = self._places(node_id, fed[node_id])
            for place in self._placed[node_id]:
                self._at(place).operators[node_id] = []
        for number, node_id in enumerate(self._sources):
            self._route(node_id, (0, number), self._at((0, number)).head)
        for node_id in self._operators:
            for place in self._placed[node_id]:
                self._route(node_id, place, self._at(place).operators[node_id])
        depth = max((level for level, _ in self._building), default=0)
        levels = tuple(self._level((level, -1)) for level in range(1, depth + 1))
        return LevelsPlan(
            tuple(
                SourcePlan(node_id, self._source_level(number, node_id), self._spreads[node_id])
                for number, node_id in enumerate(self._sources)
            ),
            levels,
            tuple(max((o.groups for o in level.operators), default=1) for level in levels),
            any(
                len(silences) > 1 and any(silence.idle_ms is not None for silence in silences)
                for (level, _), built in self._building.items()
                for silences in built.silences.values()
                if level
            ),
        )

    # --- where ------------------------------------------------------------------------

    def _fed(self) -> dict[int, list[tuple[int, _Path]]]:
        """Operator → what feeds it: node and path."""
        fed: dict[int, list[tuple[int, _Path]]] = {node_id: [] for node_id in self._operators}
        for node_id in [*self._sources, *self._operators]:
            for path in self._paths(node_id):
                if path.target in fed:
                    fed[path.target].append((node_id, path))
        return fed

    def _places(self, node_id: int, fed: list[tuple[int, _Path]]) -> list[tuple[int, int]]:
        chained: list[tuple[int, int]] = []
        behind = 0
        for feeder, path in fed:
            places = self._places_of(feeder)
            if self._exchange(path, feeder) is None:
                chained += [place for place in places if place not in chained]
            else:
                behind = max(behind, 1 + max(level for level, _ in places))
        if not behind:
            return chained
        # one place takes what comes from other levels: the last
        behind = max(behind, *(level for level, _ in chained), 0)
        return [*chained, (behind, -1)] if (behind, -1) not in chained else chained

    def _places_of(self, node_id: int) -> list[tuple[int, int]]:
        if node_id in self._placed:
            return self._placed[node_id]
        return [(0, self._sources.index(node_id))]

    def _exchange(self, path: _Path, feeder: int) -> Exchange | None:
        """How elements get to an operator; None = they are there."""
        operator = self._nodes[path.target].operator
        assert isinstance(operator, ElementOperator), "sinks have no exchange"
        wanted = operator.inputs[path.input_index]
        if wanted.selector is not None:
            return Exchange.HASH
        if wanted.broadcast:
            return Exchange.BROADCAST
        if _apart(operator):
            return path.exchange or Exchange.FORWARD
        if operator.kind is ElementKind.TIMESTAMPS and any(level for level, _ in self._places_of(feeder)):
            # one watermark for each subtask, not for each key group: a group may get no element any more
            return path.exchange or Exchange.FORWARD
        if path.exchange in _BY_SOURCE and self._spreads.get(feeder):
            return None
        return path.exchange

    def _spread(self, source: int) -> int:
        """Subtasks over which a source's elements are spread; 0 if not all that read it want the same.

        One that gets them forward or by key would not see them in their order any more.
        """
        paths = list(self._paths(source))
        wanted = {self._wanted_spread(path) for path in paths}
        # a sink only numbers what it gets
        chained = any(path.target not in self._sinks for path in paths)
        return wanted.pop() if chained and len(wanted) == 1 else 0

    def _wanted_spread(self, path: _Path) -> int:
        target = self._nodes[path.target]
        if isinstance(target.operator, ElementOperator) and _apart(target.operator):
            return 0
        if path.exchange is Exchange.GLOBAL:
            return 1
        return target.parallelism if path.exchange is Exchange.REBALANCE else 0

    # --- routes -------------------------------------------------------------------------

    def _paths(self, node_id: int) -> Iterator[_Path]:
        outgoing = self._outgoing.get(node_id, [])
        # what has several readers is the end of a chain
        alone = len(outgoing) == 1
        waiting: list[tuple[Edge, Exchange | None, str | None, PartitionCustom | None, bool]] = [
            (edge, None, None, None, alone) for edge in outgoing
        ]
        while waiting:
            edge, exchange, side, partition, chained = waiting.pop(0)
            exchange = _EXCHANGES[edge.strategy] or exchange
            chained = chained and edge.chained and edge.strategy is ShipStrategy.FORWARD
            operator = self._nodes[edge.target].operator
            if isinstance(operator, SideOutput):
                side = operator.tag_id
            elif isinstance(operator, PartitionCustom):
                exchange, partition = Exchange.CUSTOM, operator
            elif not isinstance(operator, UnionOperator):
                yield _Path(edge.target, edge.input_index, exchange, side, partition, chained)
                continue
            waiting += [(e, exchange, side, partition, False) for e in self._outgoing.get(edge.target, ())]

    def _route(self, node_id: int, place: tuple[int, int], routes: list[Route]) -> None:
        name, origin = self._nodes[node_id].name, self._nodes[node_id].origin
        silence = self._silence(node_id, place)
        for path in self._paths(node_id):
            if path.target in self._sinks:
                routes.append(self._sink_route(node_id, path))
                continue
            exchange = self._exchange(path, node_id)
            if exchange is None:
                converted = None if path.chained else self._type(node_id, path.side)
                routes.append(ChainedRoute(path.target, path.input_index, path.side, converted, name, origin))
                self._at(place).silences.setdefault(path.target, []).append(silence)
                continue
            (target_place,) = [p for p in self._placed[path.target] if p not in self._chained_places(path)]
            channel = next(self._channels)
            built = self._at(target_place)
            built.channels.setdefault((path.target, path.input_index), []).append(channel)
            built.silences.setdefault(path.target, []).append(silence)
            if silence.after_ms is not None:
                built.idle_after_ms[channel] = silence.after_ms
            target = self._nodes[path.target]
            operator = target.operator
            assert isinstance(operator, ElementOperator), "checked above"
            selector: Closure | None = operator.inputs[path.input_index].selector
            if exchange is Exchange.CUSTOM and path.partition is not None:
                selector = path.partition.selector
            routes.append(
                ExchangeRoute(
                    target_place[0],
                    path.target,
                    path.input_index,
                    exchange,
                    _groups(target, operator),
                    channel,
                    selector,
                    path.partition.partitioner if path.partition is not None else None,
                    path.side,
                    self._type(node_id, path.side),
                    name,
                    origin,
                )
            )

    def _silence(self, node_id: int, place: tuple[int, int]) -> Silence:
        """What is known of a node's output at a place; all that feeds it there was routed before."""
        operator = self._nodes[node_id].operator
        if not isinstance(operator, ElementOperator):
            return Silence(0 if node_id in self._read_at_once else None)
        feeding = self._at(place).silences.get(node_id, [])
        if operator.kind is ElementKind.TIMESTAMPS:
            return silence_behind_strategy(feeding, operator.idle_after_ms)
        return silence_behind(feeding)

    def _sink_route(self, node_id: int, path: _Path) -> SinkRoute:
        node, sink = self._nodes[node_id], self._nodes[path.target]
        partition = path.partition
        return SinkRoute(
            path.target,
            path.side,
            self._type(node_id, path.side),
            node.name,
            node.origin,
            isinstance(sink.operator, PrintSink),
            path.chained,
            sink.operator.identifier if isinstance(sink.operator, PrintSink) else "",
            path.exchange or Exchange.FORWARD,
            sink.parallelism,
            None if partition is None else partition.selector,
            None if partition is None else partition.partitioner,
        )

    def _type(self, node_id: int, side: str | None) -> TypeInfo | None:
        node = self._nodes[node_id]
        if side is None or not isinstance(node.operator, ElementOperator):
            return node.output_schema.element_type
        return dict(node.operator.side_outputs).get(side)

    def _chained_places(self, path: _Path) -> list[tuple[int, int]]:
        """Places of an operator that are fed by chains only."""
        placed = self._placed[path.target]
        behind = max(level for level, _ in placed)
        return [place for place in placed if place != (behind, -1)]

    # --- making -------------------------------------------------------------------------

    def _at(self, place: tuple[int, int]) -> _Building:
        return self._building.setdefault(place, _Building())

    def _level(self, place: tuple[int, int]) -> LevelPlan:
        built = self._at(place)
        return LevelPlan(
            place[0],
            self._operators_of(built, place[0]),
            {name: tuple(channels) for name, channels in built.channels.items()},
            tuple(built.head),
            dict(built.idle_after_ms),
        )

    def _source_level(self, number: int, source: int) -> LevelPlan:
        """Level 0 of a source; behind columns with times it begins with what makes watermarks of them."""
        level, node = self._level((0, number)), self._timed.get(source)
        # sinks have no use for watermarks
        if node is None or all(isinstance(route, SinkRoute) for route in level.head):
            return level
        times = node.operator
        assert isinstance(times, AssignTimestamps), "only these give columns their times"
        definition = TimestampsAndWatermarksDefinition(None, times.out_of_orderness_ms)
        first = OperatorPlan(
            node.node_id,
            node.operator_hash,
            node.name,
            node.origin,
            make_closure(definition, node.origin, node.name),
            level.head,
            parallelism=node.parallelism,
            max_parallelism=node.max_parallelism,
            groups=node.parallelism,
        )
        return replace(level, operators=(first, *level.operators), head=(ChainedRoute(node.node_id, 0),))

    def _operators_of(self, built: _Building, level: int) -> tuple[OperatorPlan, ...]:
        made: dict[int, OperatorPlan] = {}
        groups: dict[int, int] = {}
        for node_id, routes in built.operators.items():
            plan = self._operator(node_id, routes, level, groups.get(node_id, 0))
            for route in routes:
                if isinstance(route, ChainedRoute):
                    # it runs wherever what feeds it does
                    groups[route.node_id] = max(groups.get(route.node_id, 0), plan.groups)
            made[node_id] = plan
        return tuple(made.values())

    def _operator(self, node_id: int, routes: list[Route], level: int, fed_groups: int) -> OperatorPlan:
        node = self._nodes[node_id]
        operator = node.operator
        assert isinstance(operator, ElementOperator), "only these are placed"
        times = operator.kind is ElementKind.TIMESTAMPS
        return OperatorPlan(
            node_id,
            node.operator_hash,
            node.name,
            node.origin,
            operator.closure,
            tuple(routes),
            operator.stateful or (times and level > 0),
            any(wanted.selector is not None for wanted in operator.inputs),
            node.parallelism,
            node.max_parallelism,
            max(_groups(node, operator), fed_groups),
            frozenset(i for i, wanted in enumerate(operator.inputs) if wanted.broadcast),
            operator.processing_timers,
        )


def _passes_elements(node: StreamNode) -> bool:
    """Whether elements go through it; a union of columns is where they begin."""
    if isinstance(node.operator, UnionOperator):
        return node.output_schema.element_type is not None
    return isinstance(node.operator, (ElementOperator, SideOutput, PartitionCustom))


def _apart(operator: ElementOperator) -> bool:
    """Whether it stands behind an exchange whatever feeds it."""
    return operator.stateful or any(i.selector is not None or i.broadcast for i in operator.inputs)


def _groups(node: StreamNode, operator: ElementOperator) -> int:
    """Key groups where a stream is keyed, else subtasks."""
    keyed = any(wanted.selector is not None for wanted in operator.inputs)
    return node.max_parallelism if keyed else node.parallelism
