"""What stands in the way of real time."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.graph import graphs as g
from yarnflow.core.ids import JobId
from yarnflow.errors import UnsupportedGraph
from yarnflow.graph import operators as o
from yarnflow.graph.connectors.kafka import (
    KafkaDelivery,
    KafkaOffsets,
    KafkaOffsetsKind,
    KafkaSink,
    KafkaSource,
)
from yarnflow.graph.connectors.messages import MessageFormat, MessageFormatKind
from yarnflow.graph.connectors.sinks import FileSink, PrintSink
from yarnflow.graph.connectors.sources import RateSource
from yarnflow.graph.generation.chaining import create_job_graph
from yarnflow.graph.job_graph import JobGraph
from yarnflow.graph.modes.real_time import AUTO, MICRO_BATCH, REAL_TIME, chosen_mode, obstacles, stages
from yarnflow.graph.stream_graph import GraphSettings
from yarnflow.graph.type_info import Types

PLAIN = Types.ROW_NAMED(["n", "who"], [Types.LONG(), Types.LIST(Types.STRING())])
JSON = MessageFormat(MessageFormatKind.JSON, PLAIN)
SERVERS = {"bootstrap.servers": "b:1"}
EARLIEST = KafkaOffsets(KafkaOffsetsKind.EARLIEST)
SOURCE = KafkaSource(SERVERS, EARLIEST, topics=("t",), format=JSON)
SINK = KafkaSink(SERVERS, JSON, topic="out", delivery=KafkaDelivery.AT_LEAST_ONCE)


def job(*operators: o.Operator) -> JobGraph:
    program = g.Program()
    program.chain(*operators)
    return create_job_graph(program.build(GraphSettings(job_name="j", parallelism=2)), JobId("a" * 32))


def reasons(*operators: o.Operator) -> list[str]:
    return [one.reason for one in obstacles(job(*operators))]


def test_columns_from_kafka_to_kafka() -> None:
    assert reasons(SOURCE, g.NATIVE, g.TIMES, g.RUNNING, SINK) == []
    assert reasons(replace(SOURCE, format=None), PrintSink()) == []
    assert stages(job(SOURCE, g.NATIVE, SINK)) == 1
    assert stages(job(SOURCE, g.NATIVE, g.RUNNING, SINK)) == 2


@pytest.mark.parametrize(
    ("operator", "reason"),
    [
        (g.PYTHON, "is no expression of columns"),
        (g.WINDOWED, "gives its results when a window ends"),
        (g.REDUCE, "is no expression of columns"),
    ],
)
def test_operators_in_the_way(operator: o.Operator, reason: str) -> None:
    assert reason in reasons(SOURCE, g.TIMES, operator, SINK)


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        (RateSource(1), "is a source other than Kafka"),
        (replace(SOURCE, stopping=EARLIEST), "ends by itself"),
        (replace(SOURCE, options={"maxOffsetsPerTrigger": "5"}), "has the option maxOffsetsPerTrigger"),
        (replace(SOURCE, format=replace(JSON, kind=MessageFormatKind.AVRO)), "reads AVRO messages"),
        (replace(SOURCE, malformed="bad"), "has a side output for messages that are malformed"),
        (replace(SOURCE, format=replace(JSON, options={"fail_on_missing_field": "true"})), "may be missing"),
        (
            replace(SOURCE, format=replace(JSON, element_type=Types.ROW([Types.SQL_TIMESTAMP()]))),
            "reads JSON messages of",
        ),
    ],
)
def test_sources_in_the_way(source: o.Source, reason: str) -> None:
    (found,) = reasons(source, g.NATIVE, SINK)
    assert reason in found


@pytest.mark.parametrize(
    ("sink", "reason"),
    [
        (FileSink("/out", "parquet"), "is a sink other than Kafka and print"),
        (replace(SINK, delivery=KafkaDelivery.EXACTLY_ONCE), "writes exactly once"),
        (replace(SINK, topic=""), "chooses its topics by a function"),
        (replace(SINK, key=replace(JSON, kind=MessageFormatKind.CSV)), "writes CSV messages"),
    ],
)
def test_sinks_in_the_way(sink: o.Sink, reason: str) -> None:
    assert reasons(SOURCE, g.NATIVE, sink) == [reason]


def test_what_is_in_the_way_is_named_with_its_line() -> None:
    graph = job(SOURCE, g.PYTHON, FileSink("/out", "parquet"))
    assert chosen_mode(graph, MICRO_BATCH) == chosen_mode(graph, AUTO) == MICRO_BATCH
    with pytest.raises(UnsupportedGraph) as raised:
        chosen_mode(graph, REAL_TIME)
    text = str(raised.value)
    assert text.startswith("job.py:2: 'PythonOperator' is no expression") and "(and 1 more)" in text
    assert "\n" not in text
    possible = job(SOURCE, g.NATIVE, SINK)
    assert chosen_mode(possible, AUTO) == chosen_mode(possible, REAL_TIME) == REAL_TIME


def test_a_second_sink_is_one_too_many() -> None:
    program = g.Program()
    source, *_ = program.chain(SOURCE, SINK)
    program.add(SINK, source)
    graph = create_job_graph(program.build(GraphSettings(job_name="j")), JobId("a" * 32))
    assert [one.reason for one in obstacles(graph)] == ["is a second sink"]
