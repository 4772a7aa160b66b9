"""Messages of Kafka's that cannot be read, or not all of them: a real broker, a real Spark."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from integration.kafka import FIRST_MS, KafkaBroker, Message
from integration.spark.kafka_programs import Program, json_source, source
from integration.spark.shared_jvm import kafka_session
from integration.spark.test_elements import environment, graph_of
from yarnflow.api import FileSink, StreamExecutionEnvironment
from yarnflow.api.common import DeserializationSchema, Types, WatermarkStrategy
from yarnflow.api.datastream import OutputTag, RuntimeExecutionMode
from yarnflow.api.datastream.formats.csv import CsvRowDeserializationSchema
from yarnflow.api.datastream.formats.json import JsonRowDeserializationSchema
from yarnflow.api.datastream.functions import ProcessFunction
from yarnflow.config.configuration import Configuration
from yarnflow.errors import MalformedMessage
from yarnflow.spark.metrics.dumps import DumpBuilder
from yarnflow.spark.metrics.elements import ElementMetrics
from yarnflow.spark.metrics.measures import MeasureSums
from yarnflow.spark.metrics.vertices import JobPlaces
from yarnflow.spark.run.graph_program import GraphProgram

ORDER = Types.ROW_NAMED(["id", "user"], [Types.LONG(), Types.STRING()])


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    """A session with the jars of Spark's connector on its class path."""
    with kafka_session() as session:
        yield session


def order_format(kind: str, ignore: bool) -> DeserializationSchema:
    """Return the format of an order in JSON or CSV."""
    if kind == "CSV":
        return CsvRowDeserializationSchema.Builder(ORDER).set_ignore_parse_errors(ignore).build()
    builder = JsonRowDeserializationSchema.builder().type_info(ORDER)
    return (builder.ignore_parse_errors() if ignore else builder).build()


def run_and_count_errors(spark: SparkSession, env: StreamExecutionEnvironment, directory: Path) -> int:
    """Return what ``numRecordsInErrors`` of all sources says at the end."""
    graph, sums = graph_of(env), MeasureSums(spark.sparkContext)
    program = GraphProgram(spark, graph, Configuration.empty(), str(directory), measures=sums.sink)
    program.prepare()
    program.start()
    program.await_end()
    metrics = DumpBuilder()
    ElementMetrics(JobPlaces(graph)).put(sums.read(), 1, metrics)
    return sum(dump.counts.get("numRecordsInErrors", 0) for dump in metrics.dumps())


@pytest.mark.parametrize(
    ("kind", "messages"),
    [
        pytest.param(
            "JSON",
            [
                '{"id": 8, "user": "u2", "at": 1}',
                '{"id": "nine", "user": "u0", "at": 2}',
                '{"id": 10, "user": "u1", "at": "not a time"}',
                "no message",
            ],
            marks=pytest.mark.gate,
        ),
        ("CSV", ["8,u2", "nine,u0", "10,u1", "11,u3,more"]),
    ],
)
def test_a_row_of_which_a_field_cannot_be_read_is_kept_where_errors_are_ignored(
    spark: SparkSession, kafka: KafkaBroker, topic: str, program: Program, capfd: pytest.CaptureFixture[str],
    tmp_path: Path, kind: str, messages: list[str],
) -> None:  # fmt: skip
    """As Apache PyFlink 2.3 does with these messages.  Of the gate: nothing else tells that rows are lost."""
    kafka.send_texts(topic, messages)

    def printing(ignore: bool) -> StreamExecutionEnvironment:
        env = environment(2)
        builder = source(kafka, topic).set_value_only_deserializer(order_format(kind, ignore))
        stream = env.from_source(builder.build(), WatermarkStrategy.no_watermarks(), "orders")
        stream.filter(lambda row: row.id is None or row.id in (8, 10)).print("functions")
        stream.select("user", "id").print("columns")
        return env

    capfd.readouterr()
    errors = run_and_count_errors(spark, printing(ignore=True), tmp_path / "lenient")
    lines = capfd.readouterr().out.splitlines()
    assert sorted(line.partition("> ")[2] for line in lines if line.startswith("functions:")) == [
        "+I[10,u1]",
        "+I[8,u2]",
        "+I[None,u0]",
    ]
    assert {line.partition("> ")[2] for line in lines if line.startswith("columns")} == {
        "+I[u1, 10]",
        "+I[u2, 8]",
        "+I[u0, null]",
    }
    assert errors == 2
    place = f"topic {topic}, partition 1, offset 0"
    with pytest.raises(MalformedMessage, match=f"{place}: no {kind} message of .*nine"):
        program.run(printing(ignore=False))


class Times(ProcessFunction):
    def process_element(self, value: Any, ctx: ProcessFunction.Context) -> Iterator[str]:
        yield f">>{value['n']} {value['who']} {ctx.timestamp()}"


def rows(kafka: KafkaBroker, topic: str, ignore: bool) -> StreamExecutionEnvironment:
    """Return a program that prints rows of JSON with their times."""
    env = environment(2)
    strategy = WatermarkStrategy.for_monotonous_timestamps()
    stream = env.from_source(json_source(kafka, topic, ignore).build(), strategy, "kafka")
    stream.process(Times(), Types.STRING()).print()
    return env


def test_messages_whose_fields_have_changed(
    kafka: KafkaBroker, topic: str, program: Program, capfd: pytest.CaptureFixture[str]
) -> None:
    """A new field is passed over, a missing one is null, one of another type is told with its place."""
    kafka.send_texts(topic, ['{"n": 1, "who": "a", "since": {"y": 1}}', '{"n": 2}', '{"who": "c", "n": 3}'])
    program.run(rows(kafka, topic, False), "first")
    lines = capfd.readouterr().out.splitlines()
    found = sorted(line.partition(">>")[2].rpartition(" ")[0] for line in lines if ">>" in line)
    assert found == ["1 a", "2 None", "3 c"]
    kafka.send(topic, [Message(b'{"n": "four", "who": "d"}', partition=1)])
    with pytest.raises(MalformedMessage, match=f"topic {topic}, partition 1, offset 1: .*n.*four"):
        program.run(rows(kafka, topic, False), "second")


def test_rows_of_json_have_the_messages_times_and_malformed_ones_are_named(
    kafka: KafkaBroker, topic: str, program: Program, capfd: pytest.CaptureFixture[str]
) -> None:
    good = [json.dumps({"n": n, "who": f"w{n}"}) for n in range(6)]
    kafka.send_texts(topic, good)
    kafka.send(topic, [Message(b"no json", partition=1, timestamp_ms=FIRST_MS + 50), Message(None)])
    with pytest.raises(MalformedMessage, match=f"topic {topic}, partition 1, offset 3: no JSON message"):
        program.run(rows(kafka, topic, False), "strict")
    capfd.readouterr()
    program.run(rows(kafka, topic, True), "ignoring")
    lines = capfd.readouterr().out.splitlines()
    found = sorted(line.partition(">>")[2] for line in lines if ">>" in line)
    assert found == [f"{n} w{n} {FIRST_MS + n}" for n in range(6)]


BAD = OutputTag("bad")


def send_two_malformed(kafka: KafkaBroker, topic: str) -> None:
    """Behind six that are not, with keys and in both partitions."""
    kafka.send_texts(topic, [json.dumps({"n": n, "who": f"w{n}"}) for n in range(6)])
    bad = Message(b"no json", b"k", 1, timestamp_ms=FIRST_MS + 50), Message(b'{"n": "x"}', None, 0)
    kafka.send(topic, [*bad, Message(b'{"n": 6}', partition=1, timestamp_ms=FIRST_MS + 60)])


class Place(ProcessFunction):
    def process_element(self, value: Any, ctx: ProcessFunction.Context) -> Iterator[str]:
        same_time = ctx.timestamp() == value["timestamp_ms"]
        key, message, reason = value["key"], value["value"], value["reason"]
        yield f">>{value['partition']} {value['offset']} {same_time} {key} {message} {reason}"


@pytest.mark.parametrize("batch", [False, True])
def test_malformed_messages_go_to_a_side_output(
    kafka: KafkaBroker, topic: str, program: Program, capfd: pytest.CaptureFixture[str], batch: bool
) -> None:
    send_two_malformed(kafka, topic)
    env = environment(2)
    if batch:
        env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    strategy = WatermarkStrategy.for_monotonous_timestamps()
    stream = env.from_source(json_source(kafka, topic).set_malformed_output(BAD).build(), strategy, "kafka")
    stream.process(Times(), Types.STRING()).print()
    stream.get_side_output(BAD).process(Place(), Types.STRING()).print()
    capfd.readouterr()
    program.run(env)
    lines = capfd.readouterr().out.splitlines()
    found = sorted(line.partition(">>")[2] for line in lines if ">>" in line)
    assert found == sorted([
        *(f"{n} w{n} {FIRST_MS + n}" for n in range(6)),
        f"6 None {FIRST_MS + 60}",
        "1 3 True b'k' b'no json' Expecting value: line 1 column 1 (char 0) in b'no json'",
        """0 3 True None b'{"n": "x"}' field 'n' is 'x', which is no Integer""",
    ])  # fmt: skip


def test_a_side_output_beside_columns_and_without_readers_of_its_own(
    kafka: KafkaBroker, topic: str, program: Program, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    send_two_malformed(kafka, topic)
    env = environment(1)
    untimed = WatermarkStrategy.no_watermarks()
    stream = env.from_source(json_source(kafka, topic).set_malformed_output(BAD).build(), untimed, "kafka")
    stream.select("n + 1 AS next").print("columns")
    stream.get_side_output(BAD).sink_to(FileSink(str(tmp_path / "bad"), "json"))
    unread = env.from_source(json_source(kafka, topic).set_malformed_output(BAD).build(), untimed, "unread")
    unread.map(lambda row: f"n={row['n']}", Types.STRING()).print("functions")
    capfd.readouterr()
    program.run(env)
    lines = capfd.readouterr().out.splitlines()
    assert sorted(line for line in lines if line.startswith(("columns>", "functions>"))) == [
        *(f"columns> +I[{n}]" for n in range(1, 8)),
        *(f"functions> n={n}" for n in range(7)),
    ]
    texts = [file.read_text() for file in (tmp_path / "bad").glob("part-*")]
    written = [json.loads(line) for text in texts for line in text.splitlines()]
    found = {(row["topic"], row["partition"], row["offset"]): row for row in written}
    assert found.keys() == {(topic, 1, 3), (topic, 0, 3)}
    row = found[topic, 1, 3]
    assert (row["timestamp_ms"], row["reason"][:15]) == (FIRST_MS + 50, "Expecting value")
    assert [base64.b64decode(row[name]) for name in ("key", "value")] == [b"k", b"no json"]
