"""Messages to Kafka: a real broker, a real Spark, batches that are done again."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, cast

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from integration.kafka import KafkaBroker
from integration.spark.shared_jvm import kafka_session
from integration.spark.test_elements import environment, program_of
from yarnflow.api import FileSource, RateSource, StreamExecutionEnvironment
from yarnflow.api.common import SimpleStringSchema, Types, WatermarkStrategy
from yarnflow.api.common.watermark_strategy import TimestampAssigner
from yarnflow.api.datastream.connectors import DeliveryGuarantee
from yarnflow.api.datastream.connectors.kafka import (
    KafkaOffsetsInitializer,
    KafkaRecordSerializationSchema,
    KafkaSink,
    KafkaSinkBuilder,
    KafkaSource,
)
from yarnflow.api.datastream.formats.json import JsonRowSerializationSchema
from yarnflow.core.checkpoint.manifest import METADATA_FILE, SavepointMetadata, to_bytes
from yarnflow.core.checkpoint.messages import CheckpointKind, QueryPosition, RestoreSettings
from yarnflow.core.checkpoint.program_shape import ProgramShape
from yarnflow.core.ids import JobId
from yarnflow.errors import ServerError, UnsupportedGraph, YarnflowError
from yarnflow.graph.connectors.kafka import KafkaDelivery
from yarnflow.graph.connectors.kafka import KafkaSink as GraphSink
from yarnflow.graph.connectors.messages import MessageFormat, MessageFormatKind
from yarnflow.spark.checkpoints.restoring.restore import restore
from yarnflow.spark.connectors.kafka import sink as kafka_sink
from yarnflow.spark.hadoop_files import HadoopFiles

NUMBERS = range(2000)
GUARANTEES = list(DeliveryGuarantee)


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    """A session with the jars of Spark's connector on its class path."""
    with kafka_session() as session:
        yield session


def sink(kafka: KafkaBroker, topic: str, guarantee: DeliveryGuarantee) -> KafkaSinkBuilder:
    """Texts to a topic."""
    text = KafkaRecordSerializationSchema.builder().set_topic(topic)
    text.set_value_serialization_schema(SimpleStringSchema())
    return (
        KafkaSink.builder()
        .set_bootstrap_servers(kafka.servers)
        .set_record_serializer(text.build())
        .set_delivery_guarantee(guarantee)
        .set_transactional_id_prefix(f"tests-{topic}")
    )


def numbers(made: KafkaSink, parallelism: int, prefix: bool = False) -> StreamExecutionEnvironment:
    """A program that writes all numbers, with a prefix that differs each time it is computed."""
    env = environment(parallelism)

    def text(number: int) -> str:
        return f"{random.random()} {number}" if prefix else str(number)

    stream = env.from_collection(list(NUMBERS), Types.LONG()).rebalance()
    stream.map(text, Types.STRING()).sink_to(made)
    return env


def run(spark: SparkSession, env: StreamExecutionEnvironment, directory: Path) -> None:
    program = program_of(spark, env, directory)
    program.start()
    program.await_end()


def counts(kafka: KafkaBroker, topic: str) -> Counter[int]:
    """How often each number can be read."""
    return Counter(int((message.value or b"").split()[-1]) for message in kafka.read(topic))


@pytest.mark.parametrize("guarantee", GUARANTEES, ids=lambda guarantee: guarantee.name)
@pytest.mark.parametrize("parallelism", [pytest.param(1, marks=pytest.mark.drill), 2])
def test_every_number_is_written(
    spark: SparkSession,
    kafka: KafkaBroker,
    topic: str,
    tmp_path: Path,
    guarantee: DeliveryGuarantee,
    parallelism: int,
) -> None:
    run(spark, numbers(sink(kafka, topic, guarantee).build(), parallelism), tmp_path)
    assert counts(kafka, topic) == Counter(NUMBERS)


@pytest.mark.parametrize(
    ("parallelism", "then"), [(1, 2), (2, 1), pytest.param(2, 2, marks=pytest.mark.gate), (2, 3)]
)
def test_a_batch_that_is_done_again_is_readable_once(
    spark: SparkSession,
    kafka: KafkaBroker,
    topic: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    parallelism: int,
    then: int,
) -> None:
    """Spark lost the commit; the functions give other texts, and the parallelism may be another."""
    exactly_once = sink(kafka, topic, DeliveryGuarantee.EXACTLY_ONCE).build()
    with monkeypatch.context() as patched:
        # the end of a job, when nothing is done again
        patched.setattr(kafka_sink.KafkaWriter, "finish", lambda self: None)
        run(spark, numbers(exactly_once, parallelism, prefix=True), tmp_path)
    first = {message.value for message in kafka.read(topic)}
    for commit in tmp_path.rglob("commits/*0*"):
        commit.unlink()
    run(spark, numbers(exactly_once, then, prefix=True), tmp_path)
    assert {message.value for message in kafka.read(topic)} == first
    assert counts(kafka, topic) == Counter(NUMBERS)
    assert not list(tmp_path.glob("sinks/**/*.json")), "something is left of the batches"


def test_at_least_once_writes_such_a_batch_twice(
    spark: SparkSession, kafka: KafkaBroker, topic: str, tmp_path: Path
) -> None:
    """What the test before would see of a sink without transactions."""
    at_least_once = sink(kafka, topic, DeliveryGuarantee.AT_LEAST_ONCE).build()
    run(spark, numbers(at_least_once, 1), tmp_path)
    for commit in tmp_path.rglob("commits/*0*"):
        commit.unlink()
    run(spark, numbers(at_least_once, 1), tmp_path)
    assert set(counts(kafka, topic).values()) == {2}


@pytest.mark.gate
def test_a_driver_that_dies_between_the_transactions_of_a_batch(
    spark: SparkSession, kafka: KafkaBroker, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One part is committed, the other has failed for good; all is computed anew, and differs."""
    exactly_once = sink(kafka, topic, DeliveryGuarantee.EXACTLY_ONCE).build()
    monkeypatch.setattr(kafka_sink.KafkaWriter, "_counted", only_the_first_part)
    with pytest.raises(YarnflowError):
        run(spark, numbers(exactly_once, 2, prefix=True), tmp_path)
    monkeypatch.undo()
    first = counts(kafka, topic)
    assert 0 < len(first) < len(NUMBERS), "exactly one part was to be readable"
    run(spark, numbers(exactly_once, 3, prefix=True), tmp_path)
    assert counts(kafka, topic) == Counter(NUMBERS)


@pytest.mark.parametrize("then", [*(pytest.param(n, marks=pytest.mark.drill) for n in (1, 2)), 3])
def test_a_batch_that_was_begun_goes_on_from_a_retained_checkpoint(
    spark: SparkSession,
    kafka: KafkaBroker,
    topic: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    then: int,
) -> None:
    """One part of it is committed when the job is canceled; another job does the rest, and no more."""
    earlier = tmp_path / "earlier"
    exactly_once = sink(kafka, topic, DeliveryGuarantee.EXACTLY_ONCE).build()
    monkeypatch.setattr(kafka_sink.KafkaWriter, "_counted", only_the_first_part)
    with pytest.raises(YarnflowError):
        run(spark, numbers(exactly_once, 2, prefix=True), earlier)
    monkeypatch.undo()
    first = counts(kafka, topic)
    assert 0 < len(first) < len(NUMBERS), "exactly one part was to be readable"
    (query,) = earlier.glob("query-*")
    name = query.name.removeprefix("query-")
    manifest = SavepointMetadata(
        1, CheckpointKind.CHECKPOINT, JobId("0" * 32), "", "", 0, "", ProgramShape("GRAPH", ""),
        (QueryPosition(name, -1, str(query)),), (),
    )  # fmt: skip
    (earlier / "chk-1").mkdir()
    (earlier / "chk-1" / METADATA_FILE).write_bytes(to_bytes(manifest))
    later = tmp_path / "later"
    assert restore(spark, RestoreSettings(str(earlier / "chk-1")), str(later), None, trusted=True)
    run(spark, numbers(exactly_once, then, prefix=True), later)
    assert counts(kafka, topic) == Counter(NUMBERS)


def only_the_first_part(self: kafka_sink.KafkaWriter, frame: DataFrame, produce: object) -> int:
    """In place of ``_counted``: the driver dies when part 0 alone is committed."""
    written(self, frame, _FirstPart(produce))
    raise RuntimeError("the power is gone")


written = kafka_sink.KafkaWriter._counted


class _FirstPart:
    """Writes part 0 and none of the others."""

    def __init__(self, produce: object) -> None:
        self._produce = produce

    def __call__(self, batches: Iterator[object]) -> Iterator[object]:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        first = context.partitionId() == 0
        return self._produce(batches if first else iter(()))  # type: ignore[operator, no-any-return]


def test_a_driver_that_dies_before_the_manifest(
    spark: SparkSession, kafka: KafkaBroker, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def crashing(self: HadoopFiles, source: str, target: str) -> None:
        assert target.endswith("/0.json")
        raise RuntimeError("the power is gone")

    exactly_once = sink(kafka, topic, DeliveryGuarantee.EXACTLY_ONCE).build()
    monkeypatch.setattr(HadoopFiles, "rename", crashing)
    with pytest.raises(YarnflowError):
        run(spark, numbers(exactly_once, 2, prefix=True), tmp_path)
    monkeypatch.undo()
    assert kafka.read(topic) == []
    run(spark, numbers(exactly_once, 2, prefix=True), tmp_path)
    assert counts(kafka, topic) == Counter(NUMBERS)


class SecondIsTime(TimestampAssigner):
    def extract_timestamp(self, value: tuple[str, int], record_timestamp: int) -> int:
        return value[1]


PAIR = Types.ROW_NAMED(["who", "at"], [Types.STRING(), Types.LONG()])


@pytest.mark.gate
def test_topics_keys_and_times_of_elements(
    spark: SparkSession, kafka: KafkaBroker, topic: str, tmp_path: Path
) -> None:
    other = kafka.create_topic(f"{topic}-b", 1)
    record = (
        KafkaRecordSerializationSchema.builder()
        .set_topic_selector(lambda row: other if row["who"] == "b" else topic)
        .set_key_serialization_schema(JsonRowSerializationSchema.builder().with_type_info(PAIR).build())
        .set_value_serialization_schema(JsonRowSerializationSchema.builder().with_type_info(PAIR).build())
        .build()
    )
    made = sink(kafka, topic, DeliveryGuarantee.EXACTLY_ONCE).set_record_serializer(record).build()
    env = environment(1)
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(SecondIsTime())
    rows = env.from_collection([("a", 1000), ("b", 2000)], PAIR)
    rows.assign_timestamps_and_watermarks(strategy).sink_to(made)
    run(spark, env, tmp_path)
    (first,), (second,) = kafka.read(topic), kafka.read(other)
    assert (first.key, first.value, first.timestamp_ms) == (
        b'{"who":"a","at":1000}', b'{"who":"a","at":1000}', 1000
    )  # fmt: skip
    assert (second.value, second.timestamp_ms) == (b'{"who":"b","at":2000}', 2000)


def test_columns_are_written_as_well(
    spark: SparkSession, kafka: KafkaBroker, topic: str, tmp_path: Path
) -> None:
    kind = Types.ROW_NAMED(["value"], [Types.LONG()])
    record = KafkaRecordSerializationSchema.builder().set_topic(topic)
    record.set_value_serialization_schema(JsonRowSerializationSchema.builder().with_type_info(kind).build())
    made = sink(kafka, topic, DeliveryGuarantee.EXACTLY_ONCE).set_record_serializer(record.build())
    env = environment(2)
    env.from_source(RateSource(100, count=100)).select("value").sink_to(made.build())
    run(spark, env, tmp_path)
    found = sorted(message.value or b"" for message in kafka.read(topic))
    assert found == sorted(b'{"value":%d}' % n for n in range(100))


def in_task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Texts ``<partition> <number>``, made by the task that computes them."""
    from pyspark import TaskContext

    context = TaskContext.get()
    assert context is not None
    for batch in batches:
        texts = [f"{context.partitionId()} {number}" for number in batch.column("id").to_pylist()]
        yield pa.RecordBatch.from_pydict({"value": texts})


@pytest.mark.parametrize("parallelism", [1, 2])
def test_columns_are_computed_by_all_tasks_and_keep_their_order(
    spark: SparkSession, kafka: KafkaBroker, topic: str, tmp_path: Path, parallelism: int
) -> None:
    one_partition = kafka.create_topic(f"{topic}-one", 1)
    message = MessageFormat(MessageFormatKind.STRING, Types.STRING())
    made = GraphSink(
        {"bootstrap.servers": kafka.servers}, message, topic=one_partition,
        delivery=KafkaDelivery.EXACTLY_ONCE, transactional_id_prefix=topic,
    )  # fmt: skip
    writer = kafka_sink.KafkaWriter(spark, made, parallelism, "w", "o" * 32, str(tmp_path / "sink"), True)
    frame = spark.range(0, 4000, 1, 4).mapInArrow(cast(Any, in_task), "value string")
    assert writer.write(frame, 0) == 4000
    found = [(message.value or b"").decode().split() for message in kafka.read(one_partition)]
    assert {partition for partition, _ in found} == {"0", "1", "2", "3"}
    for wanted in range(4):
        numbers = [int(number) for partition, number in found if partition == str(wanted)]
        assert numbers == list(range(1000 * wanted, 1000 * wanted + 1000))


def test_a_batch_of_columns_with_state_that_is_there_is_computed_again(
    spark: SparkSession, kafka: KafkaBroker, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark lost the commit: the messages are there, and the state must be written all the same."""
    kind = Types.ROW_NAMED(["value"], [Types.LONG()])
    record = KafkaRecordSerializationSchema.builder().set_topic(topic)
    record.set_value_serialization_schema(JsonRowSerializationSchema.builder().with_type_info(kind).build())
    made = sink(kafka, topic, DeliveryGuarantee.EXACTLY_ONCE).set_record_serializer(record.build()).build()

    (tmp_path / "in").mkdir()
    for file in range(2):
        (tmp_path / "in" / f"{file}.csv").write_text("".join(f"{file}{n}\n" * 2 for n in range(10)))

    def program() -> StreamExecutionEnvironment:
        env = environment(2)
        source = FileSource(str(tmp_path / "in"), "csv", "value BIGINT", max_files_per_trigger=1)
        env.from_source(source, None, "in").drop_duplicates().sink_to(made).set_parallelism(1)
        return env

    with monkeypatch.context() as patched:
        patched.setattr(kafka_sink.KafkaWriter, "finish", lambda self: None)
        run(spark, program(), tmp_path / "checkpoint")
    (commit,) = tmp_path.rglob("commits/1")
    commit.unlink()
    commit.with_name(".1.crc").unlink(missing_ok=True)
    run(spark, program(), tmp_path / "checkpoint")
    found = sorted(int(json.loads(message.value or b"")["value"]) for message in kafka.read(topic))
    assert found == list(range(20))


def test_what_kafka_does_not_take_is_told(spark: SparkSession, kafka: KafkaBroker, tmp_path: Path) -> None:
    with pytest.raises(ServerError, match="Kafka has no topic nothing of the Kafka sink.*; create it, or"):
        made = sink(kafka, "nothing", DeliveryGuarantee.AT_LEAST_ONCE)
        run(spark, numbers(made.build(), 1), tmp_path / "a")
    with pytest.raises(UnsupportedGraph, match='No such configuration property: "nonsense"'):
        made = sink(kafka, "nothing", DeliveryGuarantee.NONE).set_property("nonsense", "1")
        run(spark, numbers(made.build(), 1), tmp_path / "b")


_MODULE: Final = "org.apache.kafka.common.security.plain.PlainLoginModule"
_USER: Final = f'{_MODULE} required username="u" password="{{}}"{{}};'


@pytest.fixture
def locked_kafka(tmp_path: Path) -> Iterator[KafkaBroker]:
    """One that lets in who has a password."""
    settings = {
        "listener.security.protocol.map": "PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
        "inter.broker.listener.name": "PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "listener.name.plaintext.plain.sasl.jaas.config": _USER.format("hunter2", ' user_u="hunter2"'),
    }
    broker = KafkaBroker.start(tmp_path / "broker", settings=settings)
    secured = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"}
    broker.client = {**secured, "sasl.username": "u", "sasl.password": "hunter2"}
    yield broker
    broker.stop()


@pytest.mark.parametrize(
    "guarantee",
    [DeliveryGuarantee.EXACTLY_ONCE, pytest.param(DeliveryGuarantee.AT_LEAST_ONCE, marks=pytest.mark.drill)],
)
def test_passwords_are_for_the_broker_alone(
    spark: SparkSession, locked_kafka: KafkaBroker, tmp_path: Path, caplog: pytest.LogCaptureFixture,
    guarantee: DeliveryGuarantee,
) -> None:  # fmt: skip
    """Java's properties let both the sink and the source in; a wrong password is told, and not shown."""
    topic = locked_kafka.create_topic("locked")

    def properties(password: str) -> dict[str, str]:
        return {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.jaas.config": _USER.format(password, ""),
        }

    def copy(password: str, password_of_sink: str = "hunter2") -> StreamExecutionEnvironment:
        builder = KafkaSource.builder().set_bootstrap_servers(locked_kafka.servers).set_topics(topic)
        builder.set_properties(properties(password)).set_value_only_deserializer(SimpleStringSchema())
        made = sink(locked_kafka, copied, guarantee)
        for key, value in properties(password_of_sink).items():
            made.set_property(key, value)
        env = environment(1)
        source = builder.set_bounded(KafkaOffsetsInitializer.latest()).build()
        env.from_source(source, WatermarkStrategy.no_watermarks(), "locked").sink_to(made.build())
        return env

    copied = locked_kafka.create_topic("copied")
    locked_kafka.send_texts(topic, [str(number) for number in NUMBERS])
    run(spark, copy("hunter2"), tmp_path / "right")
    assert counts(locked_kafka, copied) == Counter(NUMBERS)
    with pytest.raises(ServerError, match="does not let in the source: .*Authentication failed") as failed:
        run(spark, copy("swordfish"), tmp_path / "wrong")
    assert "swordfish" not in failed.value.message + caplog.text
    said = "Kafka does not let in the client of the Kafka sink: .*uthenticat"
    with pytest.raises(ServerError, match=said) as of_sink:
        run(spark, copy("hunter2", "swordfish"), tmp_path / "wrong sink")
    assert "swordfish" not in of_sink.value.message + caplog.text
