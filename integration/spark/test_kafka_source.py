"""Kafka's messages as elements and as columns: a real broker, a real Spark."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from integration.conftest import wait_until
from integration.kafka import FIRST_MS, KafkaBroker, Message
from integration.spark.kafka_programs import LATEST, Program, json_source, source
from integration.spark.shared_jvm import kafka_session
from integration.spark.test_elements import environment, program_of
from yarnflow.api.common import SimpleStringSchema, Types, WatermarkStrategy
from yarnflow.api.datastream.connectors.kafka import (
    KafkaOffsetResetStrategy,
    KafkaOffsetsInitializer,
    KafkaSource,
    KafkaSourceBuilder,
    KafkaTopicPartition,
)
from yarnflow.api.datastream.functions import ProcessFunction
from yarnflow.errors import BrokerUnavailable, SourceNotFound, YarnflowError
from yarnflow.spark.run.graph_program import GraphProgram


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    """A session with the jars of Spark's connector on its class path."""
    with kafka_session() as session:
        yield session


def texts(
    program: Program, builder: KafkaSourceBuilder, capfd: pytest.CaptureFixture[str], checkpoint: str = "c"
) -> list[str]:
    """What a bounded source gives, in order."""
    env = environment(2)
    stream = env.from_source(builder.build(), WatermarkStrategy.no_watermarks(), "kafka")
    stream.map(lambda value: f">>{value}", Types.STRING()).print()
    capfd.readouterr()
    program.run(env, checkpoint)
    lines = capfd.readouterr().out.splitlines()
    return sorted(line.partition(">>")[2] for line in lines if ">>" in line)


def test_where_a_bounded_source_begins_and_ends(
    kafka: KafkaBroker, topic: str, program: Program, capfd: pytest.CaptureFixture[str]
) -> None:
    kafka.send_texts(topic, [str(n) for n in range(10)])
    group = f"g-{topic}"
    kafka.commit(group, topic, {0: 3})
    first, second = KafkaTopicPartition(topic, 0), KafkaTopicPartition(topic, 1)
    offsets, at_time = KafkaOffsetsInitializer.offsets, KafkaOffsetsInitializer.timestamp
    committed = KafkaOffsetsInitializer.committed_offsets
    cases: dict[str, tuple[KafkaSourceBuilder, list[int]]] = {
        "all": (source(kafka, topic), list(range(10))),
        "latest": (source(kafka, topic).set_starting_offsets(LATEST), []),
        "time": (
            source(kafka, topic).set_starting_offsets(at_time(FIRST_MS + 7)), [7, 8, 9]
        ),
        "late": (
            source(kafka, topic).set_starting_offsets(at_time(FIRST_MS + 99)), []
        ),
        "offsets": (
            source(kafka, topic).set_starting_offsets(offsets({first: 4, second: 3})), [7, 8, 9]
        ),
        "group": (
            source(kafka, topic)
            .set_group_id(group)
            .set_starting_offsets(committed(KafkaOffsetResetStrategy.LATEST)),
            [6, 8],
        ),
        "until": (
            source(kafka, topic).set_bounded(at_time(FIRST_MS + 4)), [0, 1, 2, 3]
        ),
        "until offsets": (source(kafka, topic).set_bounded(offsets({first: 1, second: 2})), [0, 1, 3]),
        "partition": (source(kafka).set_partitions({second}), [1, 3, 5, 7, 9]),
        "pattern": (source(kafka).set_topic_pattern(f"{topic[:6]}.*{topic[6:]}"), list(range(10))),
        "few": (source(kafka, topic).set_option("maxOffsetsPerTrigger", 3), list(range(10))),
    }  # fmt: skip
    found = {name: texts(program, builder, capfd, name) for name, (builder, _) in cases.items()}
    assert found == {name: [str(n) for n in expected] for name, (_, expected) in cases.items()}


@pytest.mark.gate
def test_a_job_that_is_started_again_ends_where_it_would_have(
    kafka: KafkaBroker, topic: str, program: Program, capfd: pytest.CaptureFixture[str]
) -> None:
    kafka.send_texts(topic, ["a", "b"])
    assert texts(program, source(kafka, topic), capfd) == ["a", "b"]
    kafka.send_texts(topic, ["c"])
    assert texts(program, source(kafka, topic), capfd) == []


def test_what_is_not_there_is_named(
    kafka: KafkaBroker, topic: str, program: Program, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SourceNotFound, match="no topic nothing"):
        texts(program, source(kafka, "nothing"), capfd, "no topic")
    with pytest.raises(SourceNotFound, match="the group 'new' has committed none"):
        committed = KafkaOffsetsInitializer.committed_offsets()
        builder = source(kafka, topic).set_group_id("new").set_starting_offsets(committed)
        texts(program, builder, capfd, "no offset")


def test_a_broker_that_is_away_is_named(program: Program, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(BrokerUnavailable, match=r"Kafka at 127.0.0.1:1 does not say what it has: .*; check"):
        builder = source(KafkaBroker(Path("none"), "127.0.0.1:1"), "numbers")
        texts(program, builder.set_property("default.api.timeout.ms", "2000"), capfd)


class Until(ProcessFunction):
    """Fails at one text."""

    def __init__(self, last: str) -> None:
        self._last = last

    def process_element(self, value: str, ctx: ProcessFunction.Context) -> Iterator[str]:
        if value == self._last:
            raise RuntimeError("the power is gone")
        yield value


@pytest.mark.gate
def test_messages_that_were_deleted_before_they_were_read_fail_the_job(
    kafka: KafkaBroker, topic: str, program: Program
) -> None:
    """Retention was shorter than the job's rest."""
    kafka.send_texts(topic, [str(n) for n in range(6)], 1)

    def run(last: str) -> None:
        env = environment(2)
        few = source(kafka, topic).set_option("maxOffsetsPerTrigger", 2).build()
        env.from_source(few, WatermarkStrategy.no_watermarks(), "kafka").process(Until(last)).print()
        program.run(env)

    with pytest.raises(YarnflowError, match="the power is gone"):
        run("2")
    kafka.delete_before(topic, {0: 4})
    with pytest.raises(SourceNotFound, match=f"has not all messages any more .*{topic}-0.*failOnDataLoss"):
        run("")


class InBackground:
    """A program that ends when its source fails, or when it is told to."""

    def __init__(self, program: GraphProgram) -> None:
        self.failure: BaseException | None = None
        self._program = program
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._program.start()
            self._program.await_end()
        except BaseException as error:
            self.failure = error

    def ended(self) -> bool:
        return not self._thread.is_alive()

    def stop(self) -> None:
        self._program.stop()
        self._thread.join()


@pytest.mark.parametrize("as_columns", [False, True])
def test_a_topic_that_is_deleted_in_the_middle_of_a_job(
    spark: SparkSession, kafka: KafkaBroker, topic: str, tmp_path: Path, capfd: pytest.CaptureFixture[str],
    as_columns: bool,
) -> None:  # fmt: skip
    kafka.send_texts(topic, ["a", "b", "c"])
    builder = KafkaSource.builder().set_bootstrap_servers(kafka.servers).set_topics(topic)
    if as_columns:
        builder.set_columns()
    else:
        builder.set_value_only_deserializer(SimpleStringSchema())
    env = environment(2)
    stream = env.from_source(builder.build(), WatermarkStrategy.no_watermarks(), "kafka")
    read = stream.select("offset") if as_columns else stream.map(lambda text: text, Types.STRING())
    read.print("read")
    job = InBackground(program_of(spark, env, tmp_path / "checkpoint"))
    lines: list[str] = []

    def some() -> bool:
        lines.extend(line for line in capfd.readouterr().out.splitlines() if "read" in line)
        return job.ended() or len(lines) >= 3

    try:
        wait_until(some, "three messages")
        assert not job.ended(), job.failure
        kafka.delete_topic(topic)
        wait_until(job.ended, "the failure")
    finally:
        job.stop()
    assert isinstance(job.failure, SourceNotFound), job.failure
    assert topic in job.failure.message and "\n" not in job.failure.message


def test_columns_for_expressions(
    kafka: KafkaBroker, topic: str, program: Program, capfd: pytest.CaptureFixture[str]
) -> None:
    headers = (("h", b"x"),)
    kafka.send(topic, [Message(b'{"n": 5}', b"k", 1, timestamp_ms=1000, headers=headers)])
    env = environment(1)
    columns = (
        KafkaSource.builder().set_bootstrap_servers(kafka.servers).set_topics(topic).set_bounded(LATEST)
    )
    messages = env.from_source(columns.set_columns().build())
    messages.map(
        lambda row: f"{row['key']} {row['headers'][0]['value']} {row['offset']}", Types.STRING()
    ).print("functions")
    messages.select(
        "CAST(key AS STRING) AS k",
        "partition",
        "offset",
        "unix_millis(timestamp) AS ms",
        "headers[0].key AS header",
    ).print("columns")
    untimed = WatermarkStrategy.no_watermarks()
    rows = env.from_source(json_source(kafka, topic).build(), untimed, "rows")
    rows.select("n + 1 AS next", "who").print("rows")
    capfd.readouterr()
    program.run(env)
    lines = capfd.readouterr().out.splitlines()
    assert "functions> b'k' b'x' 0" in lines
    assert {line for line in lines if "> +I[" in line} == {
        "columns> +I[k, 1, 0, 1000, h]",
        "rows> +I[6, null]",
    }
