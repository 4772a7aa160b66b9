"""From the places of operators to levels: what each holds, and the routes between them.

Pure: looks at the graph alone.  Flink counterpart: ``StreamingJobGraphGenerator``, for one dataflow of
micro-batches.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from yarnflow.graph.closures import Closure, make_closure
from yarnflow.graph.connectors.kafka import KafkaSource
from yarnflow.graph.connectors.sinks import PrintSink
from yarnflow.graph.element_places import ElementPlaces, ElementRegion, Path, Place
from yarnflow.graph.job_graph import ShipStrategy, StreamNode
from yarnflow.graph.operators import AssignTimestamps, ElementKind, ElementOperator, PartitionCustom
from yarnflow.graph.type_info import TypeInfo
from yarnflow.operators.process.snapshots import is_fixed
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


@dataclass(slots=True)
class _Building:
    """A level while it is planned; a place is a level and, in level 0, the source, else -1."""

    operators: dict[int, list[Route]] = field(default_factory=dict)
    head: list[Route] = field(default_factory=list)
    channels: dict[tuple[int, int], list[int]] = field(default_factory=dict)
    #: channel → how long it may be silent
    idle_after_ms: dict[int, int] = field(default_factory=dict)
    #: channel → id of the node that speaks
    senders: dict[int, str] = field(default_factory=dict)
    #: operator → what is known of each stream that feeds it
    silences: dict[int, list[Silence]] = field(default_factory=dict)


def plan_levels(
    region: ElementRegion,
    timed: Mapping[int, StreamNode] | None = None,
    read_at_once: frozenset[int] = frozenset(),
) -> LevelsPlan:
    """Divide the element operators between sources and sinks into levels.

    Parameters
    ----------
    region : ElementRegion
        The job's sinks of elements and what is before them.
    timed : mapping, optional
        Source → the node of columns that gave its elements their times: AssignTimestamps.
    read_at_once : frozenset of int
        The sources that have ended after the first micro-batch.
    """
    return _Planner(region, timed or {}, read_at_once).plan()


class _Planner:
    def __init__(
        self, region: ElementRegion, timed: Mapping[int, StreamNode], read_at_once: frozenset[int]
    ) -> None:
        self._nodes = region.nodes
        self._sinks = region.sinks
        self._timed = timed
        self._read_at_once = read_at_once
        self._places = ElementPlaces(region)
        self._building: dict[Place, _Building] = {}
        self._channels = itertools.count()

    def plan(self) -> LevelsPlan:
        places = self._places
        for node_id in places.operators:
            for place in places.placed[node_id]:
                self._at(place).operators[node_id] = []
        for number, node_id in enumerate(places.sources):
            self._route(node_id, (0, number), self._at((0, number)).head)
        for node_id in places.operators:
            for place in places.placed[node_id]:
                self._route(node_id, place, self._at(place).operators[node_id])
        depth = max((level for level, _ in self._building), default=0)
        levels = tuple(self._level((level, -1)) for level in range(1, depth + 1))
        return LevelsPlan(
            tuple(
                SourcePlan(node_id, self._source_level(number, node_id), places.spreads[node_id])
                for number, node_id in enumerate(places.sources)
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

    # --- routes -------------------------------------------------------------------------

    def _route(self, node_id: int, place: Place, routes: list[Route]) -> None:
        name, origin = self._nodes[node_id].name, self._nodes[node_id].origin
        silence = self._silence(node_id, place)
        for path in self._places.paths(node_id):
            if path.target in self._sinks:
                routes.append(self._sink_route(node_id, path))
                continue
            exchange = self._places.exchange(path, node_id)
            if exchange is None:
                converted = None if path.chained else self._type(node_id, path.side)
                routes.append(ChainedRoute(path.target, path.input_index, path.side, converted, name, origin))
                self._at(place).silences.setdefault(path.target, []).append(silence)
                continue
            target_place = self._places.behind_exchange(path.target)
            channel = next(self._channels)
            built = self._at(target_place)
            built.channels.setdefault((path.target, path.input_index), []).append(channel)
            built.senders[channel] = self._nodes[node_id].operator_hash
            built.silences.setdefault(path.target, []).append(silence)
            if silence.after_ms is not None:
                built.idle_after_ms[channel] = silence.after_ms
            target = self._nodes[path.target]
            operator = target.operator
            assert isinstance(operator, ElementOperator), "checked above"
            selector: Closure | None = operator.inputs[path.input_index].selector
            if selector is None and path.partition is not None and path.exchange is exchange:
                selector = path.partition.selector
            routes.append(
                ExchangeRoute(
                    target_place[0],
                    path.target,
                    path.input_index,
                    Exchange(exchange.value),
                    _groups(target, operator),
                    channel,
                    selector,
                    _partitioner(path),
                    path.side,
                    self._type(node_id, path.side),
                    name,
                    origin,
                )
            )

    def _silence(self, node_id: int, place: Place) -> Silence:
        """What is known of a node's output at a place; all that feeds it there was routed before."""
        operator = self._nodes[node_id].operator
        if not isinstance(operator, ElementOperator):
            timed = self._timed.get(node_id)
            times = timed.operator if timed is not None else None
            return Silence(
                0 if node_id in self._read_at_once else None,
                times.idle_after_ms if isinstance(times, AssignTimestamps) else None,
            )
        feeding = self._at(place).silences.get(node_id, [])
        if operator.kind is ElementKind.TIMESTAMPS:
            return silence_behind_strategy(feeding, operator.idle_after_ms)
        return silence_behind(feeding)

    def _sink_route(self, node_id: int, path: Path) -> SinkRoute:
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
            Exchange((path.exchange or ShipStrategy.FORWARD).value),
            sink.parallelism,
            None if partition is None else partition.selector,
            _partitioner(path),
        )

    def _type(self, node_id: int, side: str | None) -> TypeInfo | None:
        node = self._nodes[node_id]
        if side is None or not isinstance(node.operator, (ElementOperator, KafkaSource)):
            return node.output_schema.element_type
        return dict(node.operator.side_outputs).get(side)

    # --- making -------------------------------------------------------------------------

    def _at(self, place: Place) -> _Building:
        return self._building.setdefault(place, _Building())

    def _level(self, place: Place, fixed_head: bool = False) -> LevelPlan:
        built = self._at(place)
        return LevelPlan(
            place[0],
            self._operators_of(built, place[0]),
            {name: tuple(channels) for name, channels in built.channels.items()},
            tuple(built.head),
            dict(built.idle_after_ms),
            fixed_head,
            dict(built.senders),
        )

    def _source_level(self, number: int, source: int) -> LevelPlan:
        """Level 0 of a source; behind columns with times it begins with what makes watermarks of them."""
        fixed = is_fixed(self._nodes[source].output_schema.element_type)
        level, node = self._level((0, number), fixed), self._timed.get(source)
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
            fixed_results=fixed,
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
            all(map(is_fixed, (node.output_schema.element_type, *dict(operator.side_outputs).values()))),
        )


def _partitioner(path: Path) -> Closure | None:
    return path.partition.partitioner if isinstance(path.partition, PartitionCustom) else None


def _groups(node: StreamNode, operator: ElementOperator) -> int:
    """Key groups where a stream is keyed, else subtasks."""
    keyed = any(wanted.selector is not None for wanted in operator.inputs)
    return node.max_parallelism if keyed else node.parallelism
