"""``pipeline.execution-mode: real-time`` with a real broker and a real Spark; batches of Kafka's messages."""

from __future__ import annotations

import json
import logging
import re
import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from integration.conftest import wait_until
from integration.kafka import KafkaBroker
from integration.spark.shared_jvm import kafka_session
from integration.spark.test_elements import environment, graph_of
from tests.patience import PATIENCE
from yarnflow.api import StreamExecutionEnvironment
from yarnflow.api.common import Types
from yarnflow.api.datastream import RuntimeExecutionMode
from yarnflow.api.datastream.connectors import DeliveryGuarantee
from yarnflow.api.datastream.connectors.kafka import (
    KafkaOffsetsInitializer,
    KafkaRecordSerializationSchema,
    KafkaSink,
    KafkaSource,
)
from yarnflow.api.datastream.formats.json import JsonRowDeserializationSchema, JsonRowSerializationSchema
from yarnflow.config.configuration import Configuration
from yarnflow.errors import MalformedMessage, SlotUnavailable, UnsupportedGraph, YarnflowError
from yarnflow.spark.run.graph_program import GraphProgram

TYPES = [Types.LONG(), Types.STRING(), Types.DOUBLE(), Types.LIST(Types.LONG())]
NUMBERED = Types.ROW_NAMED(["n", "who", "share", "parts"], TYPES)
COUNTED = Types.ROW_NAMED(["who", "total"], [Types.STRING(), Types.LONG()])
MODE, THREADS = "pipeline.execution-mode", "pipeline.real-time.task-threads-per-slot"


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    """A session of four task threads with the jars of Spark's connector on its class path."""
    with kafka_session("local[4]") as session:
        yield session


@pytest.fixture
def topics(kafka: KafkaBroker) -> tuple[str, str]:
    """To read and to write, of two partitions each."""
    name = uuid.uuid4().hex[:8]
    return kafka.create_topic(f"in-{name}"), kafka.create_topic(f"out-{name}")


def source(
    kafka: KafkaBroker, topic: str, bounded: bool = False, ignore_errors: bool = False
) -> KafkaSource:
    form = JsonRowDeserializationSchema.builder().type_info(NUMBERED)
    rows = (form.ignore_parse_errors() if ignore_errors else form).build()
    builder = (
        KafkaSource.builder()
        .set_bootstrap_servers(kafka.servers)
        .set_topics(topic)
        .set_starting_offsets(KafkaOffsetsInitializer.earliest())
        .set_value_only_deserializer(rows)
    )
    return (builder.set_bounded(KafkaOffsetsInitializer.latest()) if bounded else builder).build()


def sink(kafka: KafkaBroker, topic: str, type_info: Any = NUMBERED) -> KafkaSink:
    rows = JsonRowSerializationSchema.builder().with_type_info(type_info).build()
    record = KafkaRecordSerializationSchema.builder().set_topic(topic)
    return (
        KafkaSink.builder()
        .set_bootstrap_servers(kafka.servers)
        .set_record_serializer(record.set_value_serialization_schema(rows).build())
        .set_delivery_guarantee(DeliveryGuarantee.AT_LEAST_ONCE)
        .build()
    )


def stream(env: StreamExecutionEnvironment, read: KafkaSource) -> Any:
    return env.from_source(read)


def real_time(mode: str = "real-time") -> StreamExecutionEnvironment:
    env = environment(2)
    env.set_config(MODE, mode)
    env.set_config("execution.checkpointing.interval", "5 s")
    return env


def program_of(spark: SparkSession, env: StreamExecutionEnvironment, directory: Path) -> GraphProgram:
    graph = graph_of(env)
    configuration = Configuration.from_dict(graph.configuration, "the program")
    return GraphProgram(spark, graph, configuration, str(directory / "checkpoint"))


@contextmanager
def running(spark: SparkSession, env: StreamExecutionEnvironment, directory: Path) -> Iterator[GraphProgram]:
    """The program while it runs; what it fails with is raised at the end."""
    program = program_of(spark, env, directory)
    program.prepare()
    program.start()
    failures: list[YarnflowError] = []

    def wait() -> None:
        try:
            program.await_end()
        except YarnflowError as error:
            failures.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    try:
        yield program
    finally:
        program.stop()
        thread.join(PATIENCE.condition_s)
        assert not thread.is_alive()
    if failures:
        raise failures[0]


def message(n: int, who: str = "a") -> str:
    return json.dumps({"n": n, "who": who, "share": n / 4, "parts": [n, n + 1]})


def written(kafka: KafkaBroker, topic: str) -> list[dict[str, Any]]:
    return [json.loads(found.value or b"") for found in kafka.read(topic)]


def await_written(
    kafka: KafkaBroker, topic: str, enough: Callable[[Sequence[dict[str, Any]]], bool]
) -> list[dict[str, Any]]:
    wait_until(lambda: enough(written(kafka, topic)), f"the messages of {topic}")
    return written(kafka, topic)


@pytest.mark.gate
def test_records_go_on_at_once_and_over_restarts(
    spark: SparkSession, kafka: KafkaBroker, topics: tuple[str, str], tmp_path: Path
) -> None:
    read, write = topics

    def env() -> StreamExecutionEnvironment:
        made = real_time()
        rows = stream(made, source(kafka, read)).filter("n % 2 = 0")
        rows.select("n", "upper(who) AS who", "share", "parts").sink_to(sink(kafka, write))
        return made

    kafka.send_texts(read, [message(n) for n in range(10)])
    with running(spark, env(), tmp_path) as program:
        first = await_written(kafka, write, lambda found: len(found) >= 5)
        assert sorted(first, key=lambda row: row["n"]) == [
            {"n": n, "who": "A", "share": n / 4, "parts": [n, n + 1]} for n in range(0, 10, 2)
        ]
        (run,) = program._runs
        # a batch without all of them may be committed already
        before = run.committed()
        wait_until(lambda: run.committed() > before, "a commit")
    kafka.send_texts(read, [message(n) for n in range(10, 20)])
    with running(spark, env(), tmp_path):
        found = await_written(kafka, write, lambda rows: {row["n"] for row in rows} >= set(range(0, 20, 2)))
    # what was committed does not come again; a task of the query before, which ends a little later than the
    # query, may have written of the others what it had not committed
    numbers = sorted(row["n"] for row in found)
    assert [n for n in numbers if n < 10] == list(range(0, 10, 2))
    assert set(numbers) == set(range(0, 20, 2))


def test_running_results_come_for_each_record(
    spark: SparkSession, kafka: KafkaBroker, topics: tuple[str, str], tmp_path: Path
) -> None:
    read, write = topics

    def env() -> StreamExecutionEnvironment:
        made = real_time()
        keyed = stream(made, source(kafka, read)).select("who", "n").key_by("who")
        keyed.aggregate("sum(n) AS total").sink_to(sink(kafka, write, COUNTED))
        return made

    with running(spark, env(), tmp_path) as program:
        kafka.send_texts(read, [message(1, who) for who in "abab"])
        found = await_written(kafka, write, lambda rows: len(rows) >= 4)
        for who in "ab":
            assert [row["total"] for row in found if row["who"] == who] == [1, 2]
        (run,) = program._runs
        wait_until(lambda: run.committed() >= 0, "a commit")
    with running(spark, env(), tmp_path):
        kafka.send_texts(read, [message(5)])
        found = await_written(kafka, write, lambda rows: {"who": "a", "total": 7} in rows)


def test_messages_are_read_and_written_as_by_micro_batches(
    spark: SparkSession, kafka: KafkaBroker, topics: tuple[str, str], tmp_path: Path
) -> None:
    read, write = topics
    other = kafka.create_topic(f"{write}-batches")
    texts = [
        message(1),
        '{"who": "fehlt \\u00e9 \\"x\\"", "more": {"x": 1}}',
        '{"n": null, "who": null, "share": 1e3, "parts": []}',
        '{"n": 9223372036854775807, "who": "", "share": -0.1, "parts": [1, null]}',
        '{"n": "12", "share": "1.5", "parts": ["3", 4.0]}',
        '{"n": -1.9, "who": 5, "share": 7}',
        '{"who": {"x": [1, "y"]}, "who2": 1}',
        ' {"n": 3}\n',
        " null\n",
    ]
    kafka.send_texts(read, texts)
    for mode, to in (("real-time", write), ("micro-batch", other)):
        env = real_time(mode)
        stream(env, source(kafka, read)).filter("true").sink_to(sink(kafka, to))
        with running(spark, env, tmp_path / mode):
            await_written(kafka, to, lambda rows: len(rows) >= len(texts) - 1)

    def ordered(topic: str) -> list[str]:
        return sorted(map(repr, written(kafka, topic)))

    assert ordered(write) == ordered(other)


@pytest.mark.parametrize("mode", ["real-time", "micro-batch"])
@pytest.mark.parametrize("names", [["total", "who"], ["name", "sum"], ["who"]])
def test_fields_of_the_sink(
    spark: SparkSession,
    kafka: KafkaBroker,
    topics: tuple[str, str],
    tmp_path: Path,
    mode: str,
    names: list[str],
) -> None:
    """By name where the stream has all of them, else in order."""
    read, write = topics
    types = {"total": Types.LONG(), "who": Types.STRING(), "name": Types.STRING(), "sum": Types.LONG()}
    form = Types.ROW_NAMED(names, [types[name] for name in names])
    env = real_time(mode)
    stream(env, source(kafka, read)).select("who", "n AS total").sink_to(sink(kafka, write, form))
    kafka.send_texts(read, [message(7)])
    with running(spark, env, tmp_path):
        found = await_written(kafka, write, lambda rows: len(rows) == 1)
    wanted = {"total": 7, "who": "a", "name": "a", "sum": 7}
    assert found == [{name: wanted[name] for name in names}]


def test_state_of_micro_batches_is_refused(
    spark: SparkSession, kafka: KafkaBroker, topics: tuple[str, str], tmp_path: Path
) -> None:
    read, write = topics

    def env(mode: str) -> StreamExecutionEnvironment:
        made = real_time(mode)
        keyed = stream(made, source(kafka, read)).select("who", "n").key_by("who")
        keyed.aggregate("sum(n) AS total").sink_to(sink(kafka, write, COUNTED))
        return made

    kafka.send_texts(read, [message(1)])
    with running(spark, env("micro-batch"), tmp_path) as program:
        (run,) = program._runs
        wait_until(lambda: run.committed() >= 0, "a commit")
    with pytest.raises(UnsupportedGraph, match="made by micro-batches.*--restore none"):
        program_of(spark, env("real-time"), tmp_path).prepare()


#: each is not a JSON object
NOT_AN_OBJECT = (
    "", "[1]", '{"n": 1', '{"n": 1}{"n": 2}', '{"n": 1}, {"n": 2}', '{"n": 1} x', "{'n': 1}", "[{}]"
)  # fmt: skip
#: a part of each misfits NUMBERED
MISFITS = (
    '{"n": "many", "who": "w"}', '{"n": 9223372036854775808, "share": "x"}',
    '{"parts": [1, "x", {}], "n": 1}', '{"n": 2, "parts": 1}', '{"parts": {"a": 1}, "n": 3}',
    '{"n": [], "share": {}, "who": "{"}',
)  # fmt: skip


@pytest.mark.parametrize("mode", ["real-time", "micro-batch"])
def test_parts_that_misfit_are_null_where_errors_are_ignored(
    spark: SparkSession, kafka: KafkaBroker, topics: tuple[str, str], tmp_path: Path, mode: str
) -> None:
    read, write = topics
    env = real_time(mode)
    stream(env, source(kafka, read, ignore_errors=True)).filter("true").sink_to(sink(kafka, write))
    kafka.send_texts(read, [*NOT_AN_OBJECT, *MISFITS, "null", message(7)])
    with running(spark, env, tmp_path):
        found = await_written(kafka, write, lambda rows: len(rows) >= len(MISFITS) + 1)
    rows = [tuple(row[name] for name in ("n", "who", "share", "parts")) for row in found]
    assert sorted(rows, key=repr) == sorted(
        [
            (None, "w", None, None),
            (None, None, None, None),
            (1, None, None, [1, None, None]),
            (2, None, None, None),
            (3, None, None, None),
            (None, "{", None, None),
            (7, "a", 1.75, [7, 8]),
        ],
        key=repr,
    )


# a few of both kinds; the others are seen where errors are ignored
@pytest.mark.parametrize("bad", ['{"n": "many"}', "", '{"n": 1}{"n": 2}', '{"parts": [1, "x"]}'])
def test_a_message_that_cannot_be_read_ends_the_query(
    spark: SparkSession, kafka: KafkaBroker, topics: tuple[str, str], tmp_path: Path, bad: str
) -> None:
    read, write = topics
    env = real_time()
    stream(env, source(kafka, read)).filter("true").sink_to(sink(kafka, write))
    kafka.send_texts(read, [message(0), "null", bad])
    program = program_of(spark, env, tmp_path)
    program.prepare()
    program.start()
    with pytest.raises(MalformedMessage) as failed:
        program.await_end()
    assert re.match(rf"topic {read}, partition \d, offset \d: no JSON message of .*: ", failed.value.message)
    assert f": {bad}; begin behind it" in failed.value.message


def test_too_few_task_threads(
    spark: SparkSession,
    kafka: KafkaBroker,
    topics: tuple[str, str],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    _, write = topics
    wide = kafka.create_topic(f"{write}-wide", 5)

    def env(mode: str, threads: int = 0) -> StreamExecutionEnvironment:
        made = real_time(mode)
        if threads:
            made.set_config(THREADS, str(threads))
        stream(made, source(kafka, wide)).filter("true").sink_to(sink(kafka, write))
        return made

    with pytest.raises(UnsupportedGraph, match="runs 5 tasks of it at the same time .* have 2 task threads"):
        program_of(spark, env("real-time"), tmp_path / "real").prepare()
    caplog.set_level(logging.INFO)
    kafka.send_texts(wide, [message(1)], 1)
    with running(spark, env("auto"), tmp_path / "auto"):
        assert "The job runs by micro-batches: real-time mode runs 5 tasks" in caplog.text
        await_written(kafka, write, lambda rows: len(rows) == 1)
    # the slots would have enough, the executors have not
    graph = graph_of(env("real-time", 3))
    configuration = {**graph.configuration, "slot.request.timeout": "1 s"}
    waiting = GraphProgram(
        spark, graph, Configuration.from_dict(configuration, "a test"), str(tmp_path / "waiting")
    )
    waiting.prepare()
    with pytest.raises(SlotUnavailable, match="runs 5 tasks at the same time .* have 4 task threads"):
        waiting.start()


def test_a_job_that_waits_for_task_threads_stops(
    spark: SparkSession,
    kafka: KafkaBroker,
    topics: tuple[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read, write = topics
    asked = threading.Event()

    def none(spark: SparkSession) -> int:
        asked.set()
        return 0

    monkeypatch.setattr("yarnflow.spark.run.real_time_run.task_threads", none)
    env = real_time()
    stream(env, source(kafka, read)).filter("true").sink_to(sink(kafka, write))
    program = program_of(spark, env, tmp_path)
    program.prepare()
    starting = threading.Thread(target=program.start)
    starting.start()
    asked.wait()
    program.stop()
    starting.join()
    program.await_end()
    assert not spark.streams.active


@pytest.mark.gate
def test_auto_takes_real_time_where_it_can(
    spark: SparkSession,
    kafka: KafkaBroker,
    topics: tuple[str, str],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    read, write = topics
    caplog.set_level(logging.INFO)
    env = real_time("auto")
    stream(env, source(kafka, read)).filter("n > 0").sink_to(sink(kafka, write))
    kafka.send_texts(read, [message(1)], 1)
    with running(spark, env, tmp_path):
        await_written(kafka, write, lambda rows: len(rows) == 1)
        assert "runs in real time" in caplog.text


def test_a_bounded_topic_as_a_batch(
    spark: SparkSession, kafka: KafkaBroker, topics: tuple[str, str], tmp_path: Path
) -> None:
    read, write = topics
    kafka.send_texts(read, [message(n, "ab"[n % 2]) for n in range(100)])
    env = environment(2).set_runtime_mode(RuntimeExecutionMode.BATCH)
    rows = stream(env, source(kafka, read, bounded=True)).select("who", "n")
    rows.key_by("who").aggregate("sum(n) AS total").sink_to(sink(kafka, write, COUNTED))
    program = program_of(spark, env, tmp_path)
    program.prepare()
    # behind the end of the source
    kafka.send_texts(read, [message(1000)])
    program.start()
    program.await_end()
    assert sorted(map(repr, written(kafka, write))) == [
        repr({"who": "a", "total": sum(range(0, 100, 2))}),
        repr({"who": "b", "total": sum(range(1, 100, 2))}),
    ]
