"""All metrics of a running job that its driver can know, once every interval.

Puts together what Spark's progress, its status store and the workers tell.  Called by one thread.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Final, Protocol

from yarnflow.core.ids import VertexId
from yarnflow.core.messages import MetricDump, QueryProgress
from yarnflow.core.monitoring import declarations as m
from yarnflow.core.monitoring.rates import RateWindow
from yarnflow.operators.functions.measures import Measures
from yarnflow.spark.metrics.busy import PER_SECOND, TimeShares, back_pressure, stage_shares
from yarnflow.spark.metrics.dumps import DumpBuilder
from yarnflow.spark.metrics.elements import ElementMetrics
from yarnflow.spark.metrics.native import RETAINED_STAGES, NativeRecords
from yarnflow.spark.metrics.status_store import DriverJvm, ExecutorTotals, StageRun
from yarnflow.spark.metrics.vertices import JobPlaces, QueryVertices

logger = logging.getLogger(__name__)

#: Flink's value for: there is none
NO_WATERMARK: Final = -(2**63)


class Progress(Protocol):
    """What queries say of themselves."""

    def snapshot(self) -> tuple[QueryProgress, ...]: ...

    def source_rows(self) -> Mapping[str, tuple[int, ...]]: ...

    def committed_ms(self) -> Mapping[str, int]: ...

    def names(self) -> Mapping[str, str]: ...


class Status(Protocol):
    """What Spark keeps of executors and stages."""

    def executors(self) -> tuple[ExecutorTotals, DriverJvm]: ...

    def stages(self) -> Sequence[StageRun]: ...


class JobSampler:
    """Of one attempt of a job.

    Parameters
    ----------
    places : JobPlaces
        Of the job's graph.
    interval_ms : int
        Between two batches; 0 = none, or not known.
    progress : Progress
    status : Status
    measures : callable
        What workers have counted since the attempt began.
    began_ms : int
        When the attempt began.
    """

    def __init__(
        self,
        places: JobPlaces,
        interval_ms: int,
        progress: Progress,
        status: Status,
        measures: Callable[[], Measures],
        began_ms: int,
    ) -> None:
        self._places = places
        self._interval_ms = interval_ms
        self._progress = progress
        self._status = status
        self._measures = measures
        self._elements = ElementMetrics(places)
        self._native = NativeRecords(places, began_ms)
        self._rates: dict[tuple[object, ...], RateWindow] = {}
        self._sampled_ms = began_ms
        #: (vertex, subtask or -1) → busy nanoseconds at the last sample
        self._busy_ns: dict[tuple[VertexId, int], int] = {}
        #: (vertex, subtask or -1) → milliseconds busy, back-pressured, idle
        self._totals: dict[tuple[VertexId, int], tuple[float, float, float]] = {}
        #: why the status store could not be read the last time; empty = it could
        self._said = ""
        #: query → time of its last progress at the last sample
        self._seen_ms: dict[str, int] = {}

    def sample(self, at_ms: int, last: bool = False) -> tuple[MetricDump, ...]:
        """Measure.

        Parameters
        ----------
        last : bool
            The attempt is over: only counts are of interest, and nobody waits for Spark.
        """
        into = DumpBuilder()
        queries = self._progress.snapshot()
        totals, stages = (None, ()) if last else self._ask_spark(into)
        busy_ns = self._elements.put(self._measures(), at_ms, into)
        self._native.add(stages, self._progress.names(), {query.query: query.batch_id for query in queries})
        busy: dict[VertexId, dict[int, float]] = {}
        waited: dict[VertexId, float] = {}
        for query in queries:
            place = self._places.query(query.query)
            self._put_query(into, query, place, at_ms)
            waits = self._waits(query, totals)
            for vertex_id in place.sources:
                waited[vertex_id] = max(waits, waited.get(vertex_id, 0.0))
        # a batch is no streaming query, and tells no progress
        for name in (
            () if last else dict.fromkeys([*(query.query for query in queries), *self._places.queries])
        ):
            place = self._places.query(name)
            for vertex_id, shares in self._shares(place, busy_ns, stages, at_ms).items():
                for subtask, share in shares.items():
                    of_vertex = busy.setdefault(vertex_id, {})
                    of_vertex[subtask] = of_vertex.get(subtask, 0.0) + share
        for vertex_id, shares in busy.items():
            self._put_shares(into, vertex_id, shares, waited.get(vertex_id, 0.0), at_ms)
        self._put_commit(into, queries)
        self._sampled_ms = at_ms
        return into.dumps()

    # --- Spark's own counts -----------------------------------------------------------

    def _ask_spark(self, into: DumpBuilder) -> tuple[ExecutorTotals | None, Sequence[StageRun]]:
        try:
            totals, jvm = self._status.executors()
            stages = self._status.stages()
        except Exception as error:  # the context may just be ending
            said = f"{type(error).__name__}: {error}".partition("\n")[0]
            if said != self._said:
                logger.info("Spark's status store could not be read: %s", said)
            self._said = said
            return None, ()
        self._said = ""
        for declared, value in (
            (m.EXECUTORS, totals.executors),
            (m.ACTIVE_TASKS, totals.active_tasks),
            (m.COMPLETED_TASKS, totals.completed_tasks),
            (m.FAILED_TASKS, totals.failed_tasks),
            (m.TASK_TIME, totals.task_time_ms),
            (m.SHUFFLE_READ, totals.shuffle_read_bytes),
            (m.SHUFFLE_WRITTEN, totals.shuffle_write_bytes),
            (m.EXECUTOR_HEAP_PEAK, totals.heap_peak_bytes),
            (m.EXECUTOR_GC_TIME, totals.gc_time_ms),
            (m.JVM_HEAP_USED, jvm.heap_used_bytes),
            (m.JVM_HEAP_COMMITTED, jvm.heap_committed_bytes),
            (m.JVM_HEAP_MAX, jvm.heap_max_bytes),
            (m.JVM_GC_COUNT, jvm.gc_count),
            (m.JVM_GC_TIME, jvm.gc_time_ms),
        ):
            into.job(declared.name, value)
        return totals, stages

    # --- progress -----------------------------------------------------------------------

    def _put_query(self, into: DumpBuilder, query: QueryProgress, place: QueryVertices, at_ms: int) -> None:
        for vertex_id in place.vertices:
            into.vertex(vertex_id, m.BATCH_ID.name, query.batch_id, max)
            into.vertex(vertex_id, m.BATCH_DURATION.name, query.batch_duration_ms, max)
            into.vertex(vertex_id, m.STATE_ROWS.name, query.state_rows)
            into.vertex(vertex_id, m.STATE_BYTES.name, query.state_bytes)
            if not place.of_elements:
                watermark_ms = NO_WATERMARK if query.watermark_ms < 0 else query.watermark_ms
                into.vertex(vertex_id, m.INPUT_WATERMARK.name, watermark_ms, min)
        self._put_pending(into, query, place)
        if place.of_elements:
            return
        rows = self._progress.source_rows().get(query.query, ())
        for vertex_id, count in _by_vertex(place.sources, rows, query.total_input_rows).items():
            self._put_records(into, query.query, vertex_id, m.RECORDS_IN, m.RECORDS_IN_RATE, count, at_ms)
        for vertex_id, (read, handed_on) in self._native.counts(place).items():
            if vertex_id not in place.sources:
                self._put_records(into, query.query, vertex_id, m.RECORDS_IN, m.RECORDS_IN_RATE, read, at_ms)
            if vertex_id not in place.sinks:
                self._put_records(
                    into, query.query, vertex_id, m.RECORDS_OUT, m.RECORDS_OUT_RATE, handed_on, at_ms
                )
        if len(set(place.sinks)) == 1 and query.output_rows >= 0:
            written, vertex_id = query.total_output_rows, place.sinks[0]
            self._put_records(into, query.query, vertex_id, m.RECORDS_OUT, m.RECORDS_OUT_RATE, written, at_ms)

    def _put_pending(self, into: DumpBuilder, query: QueryProgress, place: QueryVertices) -> None:
        behind = [source.behind for source in query.sources]
        if not any(behind):
            return
        pending = tuple(sum(partitions.values()) for partitions in behind)
        for vertex_id, count in _by_vertex(place.sources, pending, sum(pending)).items():
            into.vertex(vertex_id, m.PENDING_RECORDS.name, count)

    def _put_records(
        self,
        into: DumpBuilder,
        query: str,
        vertex_id: VertexId,
        total: m.MetricDeclaration,
        rate: m.MetricDeclaration,
        count: int,
        at_ms: int,
    ) -> None:
        window = self._rates.setdefault((query, vertex_id, total.name), RateWindow())
        into.vertex(vertex_id, total.name, count)
        into.vertex(vertex_id, rate.name, window.read(at_ms, count))

    def _put_commit(self, into: DumpBuilder, queries: Sequence[QueryProgress]) -> None:
        committed_ms = self._progress.committed_ms()
        found = [committed_ms[query.query] for query in queries if query.query in committed_ms]
        if found:
            into.job(m.LAST_COMMIT.name, min(found))

    # --- time -----------------------------------------------------------------------------

    def _shares(
        self,
        place: QueryVertices,
        busy_ns: Mapping[VertexId, Mapping[int, int]],
        stages: Sequence[StageRun],
        at_ms: int,
    ) -> dict[VertexId, dict[int, float]]:
        """Vertex → subtask, or -1 for all → share of the time in which it was busy."""
        window_ms = at_ms - self._sampled_ms
        if window_ms <= 0:
            return {}
        if place.of_elements:
            return {
                vertex_id: self._measured_shares(vertex_id, busy_ns.get(vertex_id, {}), window_ms)
                for vertex_id in place.vertices
            }
        ids = [spark_id for spark_id, name in self._progress.names().items() if name == place.query]
        if not ids:
            return {}
        # of a query with many small batches Spark has forgotten the first ones
        from_ms = self._sampled_ms
        if stages and stages[0].completed_ms > from_ms and len(stages) >= RETAINED_STAGES:
            from_ms = stages[0].completed_ms
        parallelism = {key: vertex.parallelism for key, vertex in self._places.vertices.items()}
        found = stage_shares(stages, ids[-1], place.vertices, parallelism, from_ms, at_ms)
        return {
            vertex_id: dict.fromkeys(range(-1, parallelism[vertex_id]), share)
            for vertex_id, share in found.items()
        }

    def _measured_shares(
        self, vertex_id: VertexId, busy_ns: Mapping[int, int], window_ms: int
    ) -> dict[int, float]:
        found = {}
        for subtask, total_ns in busy_ns.items():
            before_ns = self._busy_ns.get((vertex_id, subtask), 0)
            self._busy_ns[vertex_id, subtask] = total_ns
            found[subtask] = (total_ns - before_ns) / (window_ms * 1_000_000)
        if found:
            found[-1] = sum(min(1.0, share) for share in found.values()) / len(found)
        return found

    def _waits(self, query: QueryProgress, totals: ExecutorTotals | None) -> float:
        """Share of the time in which input waited; 0 when the query has rested since the last sample."""
        news = self._seen_ms.get(query.query) != query.at_ms
        self._seen_ms[query.query] = query.at_ms
        if not news and not (totals is not None and totals.active_tasks):
            return 0.0
        return back_pressure(query, self._interval_ms)

    def _put_shares(
        self, into: DumpBuilder, vertex_id: VertexId, busy: Mapping[int, float], waited: float, at_ms: int
    ) -> None:
        window_ms = at_ms - self._sampled_ms
        subtasks = max(1, sum(subtask >= 0 for subtask in busy))
        for subtask, share in busy.items():
            shares = TimeShares.of(share, waited)
            before = self._totals.get((vertex_id, subtask), (0.0, 0.0, 0.0))
            parts = (shares.busy, shares.back_pressured, shares.idle)
            # rates of a vertex are a mean, and its sums are sums over its subtasks, as Flink's
            weight = window_ms / PER_SECOND * (subtasks if subtask < 0 else 1)
            total = tuple(old + part * weight for old, part in zip(before, parts))
            self._totals[vertex_id, subtask] = total[0], total[1], total[2]
            for declared, value in zip((m.BUSY_TIME, m.BACK_PRESSURED_TIME, m.IDLE_TIME), parts):
                self._put(into, vertex_id, subtask, declared.name, value)
            for declared, value in zip((m.BUSY_TOTAL, m.BACK_PRESSURED_TOTAL, m.IDLE_TOTAL), total):
                self._put(into, vertex_id, subtask, declared.name, int(value))

    @staticmethod
    def _put(into: DumpBuilder, vertex_id: VertexId, subtask: int, name: str, value: int | float) -> None:
        if subtask < 0:
            into.vertex(vertex_id, name, value)
        else:
            into.subtask(vertex_id, subtask, name, value)


def _by_vertex(sources: Sequence[VertexId], counts: Sequence[int], total: int) -> dict[VertexId, int]:
    """Counts of a query's sources by vertex; where Spark has more or fewer sources, nobody knows whose."""
    if len(set(sources)) == 1:
        return {sources[0]: total}
    if len(sources) != len(counts):
        return {}
    found: dict[VertexId, int] = {}
    for vertex_id, count in zip(sources, counts):
        found[vertex_id] = found.get(vertex_id, 0) + count
    return found
