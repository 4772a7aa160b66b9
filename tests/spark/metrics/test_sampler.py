"""From what Spark and workers tell to metrics of vertices and subtasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.spark.run.programs_in_memory import graph_of, run_graph
from yarnflow.core.checkpoint.messages import SourceProgress
from yarnflow.core.ids import JobId, VertexId
from yarnflow.core.messages import MetricDump, ProgramKind, QueryProgress
from yarnflow.core.metrics import ScopeKind
from yarnflow.graph.connectors.sinks import PrintSink
from yarnflow.graph.connectors.sources import RateSource
from yarnflow.graph.job_graph import JobEdge, JobGraph, JobVertex, ShipStrategy, StreamNode
from yarnflow.graph.operators import Key, RunningAggregate, Source
from yarnflow.graph.schema import Field, Schema
from yarnflow.operators.functions.measures import Measures, OperatorMeasures, source_node
from yarnflow.spark.metrics.busy import TimeShares, back_pressure, stage_shares
from yarnflow.spark.metrics.native import RETAINED_STAGES
from yarnflow.spark.metrics.sampler import JobSampler
from yarnflow.spark.metrics.status_store import (
    DriverJvm,
    ExecutorTotals,
    StageRun,
    executor_totals,
    stage_runs,
)
from yarnflow.spark.metrics.vertices import JobPlaces

QUERY_ID = "7915e087-1f7f-4a50-859b-f0fa7e4e8eed"
SOURCE, COUNT = VertexId("a" * 32), VertexId("b" * 32)
SCHEMA = Schema((Field("n", "bigint"),))


def native_graph(kind: ProgramKind = ProgramKind.GRAPH) -> JobGraph:
    """A rate, counted by key and printed."""
    operators: list[Any] = [
        RateSource(20), RunningAggregate(Key(("n",), ("n",)), ("count(*) AS c",)), PrintSink(),
    ]  # fmt: skip
    nodes = tuple(
        StreamNode(
            n, f"node {n}", f"{n:032x}", operator, (n - 1,) if n > 1 else (), SCHEMA, 2, 128, "default"
        )
        for n, operator in enumerate(operators, 1)
    )
    vertices = (
        JobVertex(SOURCE, "rate", (1,), 2, 128, "default"),
        JobVertex(COUNT, "count, print", (2, 3), 2, 128, "default"),
    )
    edges = (JobEdge(SOURCE, COUNT, ShipStrategy.HASH),)
    return JobGraph(JobId("0" * 32), "job", kind, nodes, vertices, edges)


@dataclass
class Told:
    """What Spark says; implements Progress and Status."""

    queries: tuple[QueryProgress, ...] = ()
    rows: dict[str, tuple[int, ...]] = field(default_factory=dict)
    committed: dict[str, int] = field(default_factory=dict)
    ended_stages: list[StageRun] = field(default_factory=list)
    totals: ExecutorTotals = field(default_factory=ExecutorTotals)
    broken: bool = False

    def snapshot(self) -> tuple[QueryProgress, ...]:
        return self.queries

    def source_rows(self) -> Mapping[str, tuple[int, ...]]:
        return self.rows

    def committed_ms(self) -> Mapping[str, int]:
        return self.committed

    def names(self) -> Mapping[str, str]:
        return {QUERY_ID: query.query for query in self.queries}  # noqa: B035

    def executors(self) -> tuple[ExecutorTotals, DriverJvm]:
        if self.broken:
            raise RuntimeError("the context is gone")
        return self.totals, DriverJvm(1, 2, 3, 4, 5)

    def stages(self) -> Sequence[StageRun]:
        return self.ended_stages


def sampler(
    graph: JobGraph, told: Told, measures: Measures | None = None, interval_ms: int = 0
) -> JobSampler:
    found = {} if measures is None else measures
    return JobSampler(JobPlaces(graph), interval_ms, told, told, lambda: found, began_ms=0)


def values(
    dumps: Sequence[MetricDump], vertex: str = "", subtask: int = -1, operator: str = ""
) -> dict[str, Any]:
    return {
        name: value
        for dump in dumps
        if (dump.vertex_id, dump.subtask_index, dump.operator) == (vertex, subtask, operator)
        for name, value in {**dump.counts, **dump.rates}.items()
    }


def the_query(graph: JobGraph) -> str:
    (name,) = JobPlaces(graph).queries
    return name


def test_a_native_query_is_known_by_its_progress() -> None:
    graph = native_graph()
    query = the_query(graph)
    progress = QueryProgress(
        query, 7, 9_000, 500, 40, 3, watermark_ms=-1, total_input_rows=400, total_output_rows=30, state_rows=5
    )
    told = Told((progress,), {query: (400,)}, {query: 9_500})
    found = sampler(graph, told).sample(10_000)
    assert values(found, SOURCE)["numRecordsIn"] == 400
    assert values(found, COUNT)["numRecordsOut"] == 30
    assert "numRecordsIn" not in values(found, COUNT), "nobody has counted it"
    assert values(found, COUNT)["lastBatchDuration"] == 500
    assert values(found, COUNT)["stateRows"] == 5
    assert values(found, SOURCE)["currentInputWatermark"] == -(2**63)
    assert values(found)["lastCommitTimestamp"] == 9_500


def test_lag_belongs_to_the_source() -> None:
    graph = native_graph()
    source = SourceProgress("KafkaV2", end_offset='{"t":{"0":5,"1":7}}', latest_offset='{"t":{"0":9,"1":7}}')
    told = Told((QueryProgress(the_query(graph), 1, sources=(source,)),))
    found = sampler(graph, told).sample(1_000)
    assert values(found, SOURCE)["pendingRecords"] == 4
    assert "pendingRecords" not in values(found, COUNT)


def test_all_queries_of_a_script_belong_to_its_vertex() -> None:
    graph = native_graph(ProgramKind.SCRIPT)
    one = JobGraph(
        graph.job_id, "s", ProgramKind.SCRIPT, (), (JobVertex(SOURCE, "s", (), 1, 128, "default"),)
    )
    told = Told(
        (
            QueryProgress("x", 1, batch_duration_ms=5, total_input_rows=10, watermark_ms=50),
            QueryProgress("y", 2, batch_duration_ms=3, total_input_rows=20, watermark_ms=40),
        ),
        committed={"x": 900, "y": 800},
    )
    found = sampler(one, told).sample(1_000)
    vertex = values(found, SOURCE)
    assert (vertex["numRecordsIn"], vertex["lastBatchDuration"], vertex["currentInputWatermark"]) == (
        30,
        5,
        40,
    )
    assert values(found)["lastCommitTimestamp"] == 800, "of the one that has been silent for longest"


def test_a_spark_that_does_not_answer_leaves_the_rest() -> None:
    graph = native_graph()
    told = Told((QueryProgress(the_query(graph), 1, total_input_rows=1),), broken=True)
    found = sampler(graph, told).sample(1_000)
    assert values(found, SOURCE)["numRecordsIn"] == 1
    assert "numExecutors" not in values(found)


def stage(number: int, batch: int, run_time_ms: int, ended_ms: int = 5_000) -> StageRun:
    return StageRun(number, QUERY_ID, batch, ended_ms, run_time_ms)


def test_each_vertex_has_its_own_stage() -> None:
    stages = [stage(1, 1, 2_000), stage(2, 1, 8_000), stage(3, 2, 2_000), stage(4, 2, 4_000)]
    shares = stage_shares(stages, QUERY_ID, (SOURCE, COUNT), {SOURCE: 2, COUNT: 2}, 0, 10_000)
    assert shares == {SOURCE: 0.2, COUNT: 0.6}


def test_where_stages_and_vertices_differ_all_have_the_querys() -> None:
    stages = [stage(1, 1, 2_000), stage(2, 1, 2_000), stage(3, 1, 2_000)]
    shares = stage_shares(stages, QUERY_ID, (SOURCE, COUNT), {SOURCE: 2, COUNT: 2}, 0, 10_000)
    assert shares == {SOURCE: 0.3, COUNT: 0.3}


def test_stages_of_before_and_of_others_do_not_count() -> None:
    stages = [stage(1, 1, 9_000, ended_ms=50), StageRun(2, "other", 1, 5_000, 9_000)]
    assert stage_shares(stages, QUERY_ID, (SOURCE,), {SOURCE: 1}, 100, 10_100) == {SOURCE: 0.0}


@pytest.mark.parametrize(
    "duration_ms, interval_ms, input_rows, behind, waits",
    [
        (400, 1_000, 10, 0, 0.0),
        (2_000, 1_000, 10, 0, 0.5),
        (1_000, 1_000, 10, 99, 0.0),
        (2_000, 0, 10, 5, 0.5),
        (2_000, 0, 10, 99, 1.0),
        (2_000, 0, 10, 0, 0.0),
    ],
)
def test_back_pressure(
    duration_ms: int, interval_ms: int, input_rows: int, behind: int, waits: float
) -> None:
    source = SourceProgress("k", end_offset='{"t":{"0":0}}', latest_offset=f'{{"t":{{"0":{behind}}}}}')
    progress = QueryProgress("q", batch_duration_ms=duration_ms, input_rows=input_rows, sources=(source,))
    assert back_pressure(progress, interval_ms) == waits


@pytest.mark.parametrize("busy, waited", [(0.0, 0.0), (0.3, 0.9), (1.7, 1.0), (0.5, 0.2)])
def test_shares_add_up_to_a_second(busy: float, waited: float) -> None:
    shares = TimeShares.of(busy, waited)
    assert shares.busy + shares.back_pressured + shares.idle == pytest.approx(1_000)
    assert min(shares.busy, shares.back_pressured, shares.idle) >= 0


def test_a_query_that_rests_does_not_wait() -> None:
    graph = native_graph()
    slow = QueryProgress(the_query(graph), 1, 5_000, 4_000, 10)
    told = Told((slow,))
    measured = sampler(graph, told, interval_ms=1_000)
    first = measured.sample(10_000)
    assert values(first, SOURCE)["backPressuredTimeMsPerSecond"] == 750.0
    assert values(measured.sample(20_000), SOURCE)["backPressuredTimeMsPerSecond"] == 0.0


ELEMENTS = """
    class Count(MapFunction):
        def open(self, context):
            self.seen = context.get_metrics_group().counter('seen')
            self.rate = context.get_metrics_group().meter('rate')
            self.size = context.get_metrics_group().distribution('size')
        def map(self, value):
            self.seen.inc(); self.rate.mark_event(); self.size.update(value[0])
            return value
    numbers.map(Count()).name('count me').filter(lambda v: v[0] > 1).key_by(lambda v: v[0]) \\
        .reduce(lambda a, b: a).name('sum').print()
"""


def test_elements_are_counted_from_source_to_sink() -> None:
    graph = graph_of(ELEMENTS)
    measured = sampler(graph, Told(), run_graph(graph).measures)
    found = measured.sample(10_000)
    names = {vertex.vertex_id: vertex.name for vertex in graph.vertices}
    records = {
        names[vertex_id]: (of["numRecordsIn"], of["numRecordsOut"])
        for vertex_id in names
        if "numRecordsIn" in (of := values(found, vertex_id))
    }
    # two elements are read, one passes the filter, and one is printed
    assert sorted(records.values()) == [(1, 1), (2, 1)], records
    (operator,) = [dump for dump in found if dump.operator == "count me"]
    assert operator.kind is ScopeKind.SUBTASK
    assert operator.counts["seen"] == 2 and operator.counts["rate_count"] == 2
    assert operator.counts["numRecordsIn"] == 2
    assert (operator.counts["size_min"], operator.counts["size_max"]) == (1, 2)
    assert operator.rates["size_mean"] == 1.5
    assert "rate" not in operator.rates, "it takes two looks"


def test_partitions_of_a_source_behind_those_of_another_are_its_subtasks() -> None:
    graph = graph_of(ELEMENTS)
    (source,) = [node.node_id for node in graph.nodes if isinstance(node.operator, Source)]
    (vertex,) = [each for each in graph.vertices if source in each.chain]
    read = {(source_node(0), 6 + partition): OperatorMeasures(5, 5) for partition in range(3)}
    found = sampler(graph, Told(), read).sample(10_000)
    by_subtask = [
        values(found, vertex.vertex_id, subtask)["numRecordsIn"] for subtask in range(vertex.parallelism)
    ]
    assert sum(by_subtask) == values(found, vertex.vertex_id)["numRecordsIn"] == 15


def test_busy_time_is_that_since_the_last_sample() -> None:
    graph = graph_of(ELEMENTS)
    node = next(node for node in graph.nodes if node.name == "count me")
    (vertex,) = [vertex for vertex in graph.vertices if node.node_id in vertex.chain]
    counted = {(node.node_id, 0): OperatorMeasures(busy_ns=3_000_000_000)}
    measured = sampler(graph, Told(), counted)
    assert values(measured.sample(10_000), vertex.vertex_id, 0)["busyTimeMsPerSecond"] == 300.0
    counted[node.node_id, 0].add(OperatorMeasures(busy_ns=1_000_000_000))
    second = measured.sample(20_000)
    assert values(second, vertex.vertex_id, 0)["busyTimeMsPerSecond"] == 100.0
    assert values(second, vertex.vertex_id, 0)["idleTimeMsPerSecond"] == 900.0
    assert values(second, vertex.vertex_id, 0)["accumulateBusyTimeMs"] == 4_000
    assert values(second, vertex.vertex_id)["busyTimeMsPerSecond"] == 100.0
    counted[node.node_id, 1] = OperatorMeasures(busy_ns=3_000_000_000)
    third = values(measured.sample(30_000), vertex.vertex_id)
    assert third["busyTimeMsPerSecond"] == 150.0, "the mean of two subtasks"
    assert third["accumulateBusyTimeMs"] == 7_000, "of both"


def test_sparks_answers_are_read() -> None:
    stages = stage_runs(
        [
            {"stageId": 2, "status": "COMPLETE", "completionTime": 9, "executorRunTime": 5,
             "description": f"\nid = {QUERY_ID}\nrunId = {'f' * 36}\nbatch = 4"},
            {"stageId": 1, "status": "COMPLETE", "completionTime": 8, "executorRunTime": 6},
            {"stageId": 3, "status": "ACTIVE", "executorRunTime": 6},
        ]
    )  # fmt: skip
    assert stages == [StageRun(1, "", -1, 8, 6), StageRun(2, QUERY_ID, 4, 9, 5)]
    totals = executor_totals(
        [
            {"id": "driver", "totalDuration": 99},
            {"id": "1", "totalDuration": 5, "activeTasks": 1, "peakMemoryMetrics": {"JVMHeapMemory": 7}},
            {"id": "2", "totalDuration": 6, "peakMemoryMetrics": {"JVMHeapMemory": 3}},
        ]
    )
    assert (totals.executors, totals.task_time_ms, totals.active_tasks, totals.heap_peak_bytes) == (
        2,
        11,
        1,
        7,
    )


def counted(number: int, batch: int, records_in: int, records_out: int) -> StageRun:
    return StageRun(number, QUERY_ID, batch, 5_000, 1, records_in, records_out)


def exchanged(told: Told) -> dict[str, tuple[Any, Any]]:
    """What the source handed on and what the next vertex got, in two samples."""
    graph = native_graph()
    query = the_query(graph)
    told.queries = (QueryProgress(query, 1, total_input_rows=1),)
    measured = sampler(graph, told)
    samples = {}
    for name, batch in (("first", 1), ("second", 2)):
        told.queries = (QueryProgress(query, batch, total_input_rows=1),)
        found = measured.sample(batch * 10_000)
        got = values(found, SOURCE).get("numRecordsOut"), values(found, COUNT).get("numRecordsIn")
        samples[name] = got
    return samples


def test_records_between_native_vertices_are_counted_once_their_batch_has_ended() -> None:
    stages = [counted(1, 1, 100, 10), counted(2, 1, 10, 0), counted(3, 2, 100, 20), counted(4, 2, 20, 0)]
    assert exchanged(Told(ended_stages=stages)) == {"first": (10, 10), "second": (30, 30)}


def test_a_batch_with_other_stages_ends_the_count() -> None:
    stages = [counted(1, 1, 100, 10), counted(2, 1, 10, 0), counted(3, 2, 100, 20)]
    assert exchanged(Told(ended_stages=stages)) == {"first": (10, 10), "second": (None, None)}


def test_stages_that_spark_has_forgotten_end_the_count() -> None:
    stages = [counted(number, 1 + number // 2, 1, 1) for number in range(RETAINED_STAGES)]
    assert exchanged(Told(ended_stages=stages)) == {"first": (None, None), "second": (None, None)}
