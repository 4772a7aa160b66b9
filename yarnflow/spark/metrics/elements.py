"""What workers counted, as metrics of vertices, subtasks and operators.

Pure but for what it remembers of earlier readings, of which rates are made.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from yarnflow.core.ids import VertexId
from yarnflow.core.monitoring import declarations as m
from yarnflow.core.monitoring.rates import RateWindow
from yarnflow.graph.connectors.kafka import KafkaSource
from yarnflow.graph.connectors.rabbitmq import RabbitMqSource
from yarnflow.graph.job_graph import JobVertex, StreamNode
from yarnflow.operators.functions.measures import Measures, OperatorMeasures, add_measures
from yarnflow.spark.metrics.dumps import DumpBuilder
from yarnflow.spark.metrics.vertices import JobPlaces

#: subtask → what was counted there
_BySubtask = Mapping[int, OperatorMeasures]


@dataclass(frozen=True, slots=True)
class _Counted:
    """Of one subtask, or of a vertex: records since the attempt began, by Flink's rules for chains."""

    records_in: int = 0
    records_out: int = 0


@dataclass(slots=True)
class ElementMetrics:
    """Of one attempt.

    Parameters
    ----------
    places : JobPlaces
    """

    places: JobPlaces
    _rates: dict[tuple[object, ...], RateWindow] = field(default_factory=dict)

    def put(self, measures: Measures, at_ms: int, into: DumpBuilder) -> dict[VertexId, dict[int, int]]:
        """Make metrics of them.

        Returns
        -------
        dict
            Vertex → subtask → nanoseconds that it has worked since the attempt began.
        """
        nodes = self._by_node(measures)
        busy_ns: dict[VertexId, dict[int, int]] = {}
        for vertex in self._of_elements():
            counted = self._counted(vertex, nodes)
            for subtask, records in counted.items():
                self._put_records(into, vertex.vertex_id, subtask, records, at_ms)
            total = _Counted(
                sum(one.records_in for one in counted.values()),
                sum(one.records_out for one in counted.values()),
            )
            self._put_records(into, vertex.vertex_id, -1, total, at_ms)
            self._put_watermarks(into, vertex, nodes)
            busy_ns[vertex.vertex_id] = _busy(vertex, nodes)
            for node_id in vertex.chain:
                for subtask, measured in nodes.get(node_id, {}).items():
                    self._put_operator(
                        into, vertex.vertex_id, self.places.nodes[node_id], subtask, measured, at_ms
                    )
        return busy_ns

    def _of_elements(self) -> Iterator[JobVertex]:
        for query in self.places.queries.values():
            if query.of_elements:
                yield from (self.places.vertices[vertex_id] for vertex_id in query.vertices)

    def _by_node(self, measures: Measures) -> dict[int, dict[int, OperatorMeasures]]:
        nodes: dict[int, dict[int, OperatorMeasures]] = {}
        found: Measures = {}
        for (number, subtask), measured in measures.items():
            node_id = self.places.source_nodes.get(number, number)
            if node_id not in self.places.nodes:
                continue
            if node_id != number:
                # a partition of Spark's stage, which may have several sources: as operators are numbered
                subtask %= self.places.parallelism(node_id)
            add_measures(found, {(node_id, subtask): measured})
        for (node_id, subtask), measured in found.items():
            nodes.setdefault(node_id, {})[subtask] = measured
        return nodes

    def _counted(self, vertex: JobVertex, nodes: Mapping[int, _BySubtask]) -> dict[int, _Counted]:
        known = [node_id for node_id in vertex.chain if node_id in nodes]
        if not known:
            # a sink, or something that only passes on
            passed = self._out_of(self.places.nodes[vertex.chain[0]].inputs, nodes)
            return {subtask: _Counted(count, count) for subtask, count in passed.items()}
        first, last = nodes[known[0]], nodes[known[-1]]
        return {
            subtask: _Counted(
                first[subtask].elements_in if subtask in first else 0,
                last[subtask].elements_out if subtask in last else 0,
            )
            for subtask in sorted({*first, *last})
        }

    def _out_of(self, node_ids: tuple[int, ...], nodes: Mapping[int, _BySubtask]) -> dict[int, int]:
        """Elements that leave some operators, by subtask."""
        found: dict[int, int] = {}
        for node_id in node_ids:
            if node_id in nodes:
                counts = {subtask: measured.elements_out for subtask, measured in nodes[node_id].items()}
            else:
                counts = self._out_of(self.places.nodes[node_id].inputs, nodes)
            for subtask, count in counts.items():
                found[subtask] = found.get(subtask, 0) + count
        return found

    def _put_records(
        self, into: DumpBuilder, vertex_id: VertexId, subtask: int, counted: _Counted, at_ms: int
    ) -> None:
        for count, name, rate in (
            (counted.records_in, m.RECORDS_IN, m.RECORDS_IN_RATE),
            (counted.records_out, m.RECORDS_OUT, m.RECORDS_OUT_RATE),
        ):
            per_second = self._rate((vertex_id, subtask, name.name), count, at_ms)
            if subtask < 0:
                into.vertex(vertex_id, name.name, count)
                into.vertex(vertex_id, rate.name, per_second)
            else:
                into.subtask(vertex_id, subtask, name.name, count)
                into.subtask(vertex_id, subtask, rate.name, per_second)

    def _put_watermarks(self, into: DumpBuilder, vertex: JobVertex, nodes: Mapping[int, _BySubtask]) -> None:
        first = self.places.measured_in(vertex, nodes.get)
        if not first:
            return
        for subtask, measured in first.items():
            into.subtask(vertex.vertex_id, subtask, m.INPUT_WATERMARK.name, measured.watermark_ms)
        earliest_ms = min(measured.watermark_ms for measured in first.values())
        into.vertex(vertex.vertex_id, m.INPUT_WATERMARK.name, earliest_ms)

    def _put_operator(
        self,
        into: DumpBuilder,
        vertex_id: VertexId,
        node: StreamNode,
        subtask: int,
        measured: OperatorMeasures,
        at_ms: int,
    ) -> None:
        def put(name: str, value: int | float | None) -> None:
            into.subtask(vertex_id, subtask, name, value, node.name)

        put(m.RECORDS_IN.name, measured.elements_in)
        put(m.RECORDS_OUT.name, measured.elements_out)
        if isinstance(node.operator, (KafkaSource, RabbitMqSource)):
            put(m.RECORDS_IN_ERRORS.name, measured.errors)
        for name, count in measured.counters.items():
            put(name, count)
        for name, value in measured.gauges.items():
            put(name, value)
        for name, count in measured.meters.items():
            span_ms = 1000 * max(1, measured.spans_s.get(name, 60))
            # as Flink's reporters and REST interface have it: the value of a meter is its rate
            put(name, self._rate((vertex_id, subtask, node.node_id, name), count, at_ms, span_ms))
            put(f"{name}_count", count)
        for name, spread in measured.distributions.items():
            put(f"{name}_count", spread.count)
            put(f"{name}_min", spread.min)
            put(f"{name}_max", spread.max)
            put(f"{name}_mean", spread.sum / spread.count)

    def _rate(
        self, key: tuple[object, ...], count: int | float, at_ms: int, span_ms: int = 60_000
    ) -> float | None:
        window = self._rates.get(key)
        if window is None:
            window = self._rates[key] = RateWindow(span_ms)
        return window.read(at_ms, count)


def _busy(vertex: JobVertex, nodes: Mapping[int, _BySubtask]) -> dict[int, int]:
    """Operators of one chain work in one turn, so that of the busiest is the chain's."""
    found: dict[int, int] = {}
    for node_id in vertex.chain:
        for subtask, measured in nodes.get(node_id, {}).items():
            found[subtask] = max(found.get(subtask, 0), measured.busy_ns)
    return found
