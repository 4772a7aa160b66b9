"""Queues of a real RabbitMQ: what is read and written, and that each message is there whatever happens."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any

import pika.exceptions
import pytest
from pyspark.sql import DataFrame, SparkSession

from integration.conftest import wait_until
from integration.living_files import files_below
from integration.rabbitmq import PASSWORD, RabbitMq
from integration.servers import running
from integration.spark.savepoint_support import CONTINUE, STOP, Job, restored
from integration.spark.test_elements import Kept, environment, graph_of
from yarnflow.api import StreamExecutionEnvironment
from yarnflow.api.common import SimpleStringSchema, Types
from yarnflow.api.common.serialization import Encoder
from yarnflow.api.datastream.connectors.file_system import FileSink
from yarnflow.api.datastream.connectors.rabbitmq import RMQSink, RMQSource
from yarnflow.api.datastream.formats.json import JsonRowDeserializationSchema, JsonRowSerializationSchema
from yarnflow.config.configuration import Configuration
from yarnflow.errors import MalformedMessage, ServerError, ServerUnavailable, YarnflowError
from yarnflow.graph.job_graph import JobGraph
from yarnflow.spark.connectors.file_sink import FileWriter
from yarnflow.spark.run.graph_program import GraphProgram


@pytest.fixture(scope="module")
def broker() -> Iterator[RabbitMq]:
    with running(RabbitMq) as found:
        yield found


@pytest.fixture
def queue(broker: RabbitMq) -> str:
    broker.start()
    return broker.new_queue()


def texts(directory: Path) -> list[str]:
    """Lines of a sink's files."""
    found = (file.read_text() for file in files_below(directory, "part-*") if ".yarnflow" not in str(file))
    return [line for text in found for line in text.splitlines()]


def parts_of(directory: Path) -> list[Path]:
    """What was received and is not acknowledged."""
    return list(files_below(directory / "checkpoint" / "sources", "*.arrow"))


def to_files(
    broker: RabbitMq, queue: str, directory: Path, use_ids: bool, **settings: Any
) -> StreamExecutionEnvironment:
    env = environment(2)
    source = RMQSource(broker.config(**settings), queue, use_ids, SimpleStringSchema())
    lines = env.add_source(source).map(lambda text: text, Types.STRING())
    encoder = Encoder.simple_string_encoder()
    lines.sink_to(FileSink.for_row_format(str(directory / "out"), encoder).build())
    return env


class Attempt:
    """A program that runs until the test has seen enough."""

    def __init__(self, program: GraphProgram) -> None:
        self.program = program
        self.failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        try:
            self.program.start()
            self.program.await_end()
        except BaseException as error:
            self.failure = error

    def ended(self) -> bool:
        return not self._thread.is_alive()

    def stop(self) -> None:
        self.program.stop()
        self._thread.join()


@contextmanager
def attempt_of(spark: SparkSession, graph: JobGraph, directory: Path) -> Iterator[Attempt]:
    program = GraphProgram(spark, graph, Configuration.empty(), str(directory / "checkpoint"))
    program.prepare()
    running_attempt = Attempt(program)
    try:
        yield running_attempt
    finally:
        running_attempt.stop()


def attempt(
    spark: SparkSession, env: StreamExecutionEnvironment, directory: Path
) -> AbstractContextManager[Attempt]:
    return attempt_of(spark, graph_of(env), directory)


def run_until(
    spark: SparkSession, env: StreamExecutionEnvironment, directory: Path, count: int
) -> list[str]:
    """Run until files have so many different texts and all are acknowledged; all texts there are."""

    def done() -> bool:
        return len(set(texts(directory / "out"))) >= count and not parts_of(directory)

    with attempt(spark, env, directory) as found:
        wait_until(lambda: found.ended() or done(), f"{count} messages")
    assert found.failure is None, found.failure
    return texts(directory / "out")


@pytest.mark.gate
def test_messages_go_from_queue_to_queue(
    spark: SparkSession, tmp_path: Path, broker: RabbitMq, queue: str
) -> None:
    other = f"{queue}-upper"
    env = environment(2)
    stream = env.add_source(RMQSource(broker.config(prefetch_count=120), queue, False, SimpleStringSchema()))
    upper = stream.map(str.upper, Types.STRING())
    upper.add_sink(RMQSink(broker.config(), other, SimpleStringSchema()))
    sent = [f"m{n}" for n in range(300)]
    broker.send(queue, sent)
    with attempt(spark, env, tmp_path) as found:
        # the queue that is written is made
        wait_until(
            lambda: found.ended() or (broker.messages(other) >= 300 and not parts_of(tmp_path)),
            "300 messages",
        )  # fmt: skip
    assert found.failure is None, found.failure
    assert sorted(broker.take_all(other)) == sorted(text.upper() for text in sent)
    assert broker.take_all(queue) == [], "all are acknowledged"


class Crash(Exception):
    """The driver ends here."""


@pytest.mark.parametrize("use_ids", [True, pytest.param(False, marks=pytest.mark.drill)])
def test_a_crash_in_a_batch(
    spark: SparkSession, tmp_path: Path, broker: RabbitMq, queue: str, monkeypatch: pytest.MonkeyPatch,
    use_ids: bool,
) -> None:  # fmt: skip
    """Between what the files have and what Spark knows; the broker delivers all of it again."""
    write, crashed = FileWriter.write, threading.Event()

    def crashing(self: FileWriter, frame: DataFrame, batch_id: int) -> int:
        rows = write(self, frame, batch_id)
        if batch_id == 2 and not crashed.is_set():
            crashed.set()
            raise Crash
        return rows

    monkeypatch.setattr(FileWriter, "write", crashing)
    sent = [f"m{n}" for n in range(200)]
    broker.send(queue, sent, with_ids=True)
    env = to_files(broker, queue, tmp_path, use_ids, prefetch_count=30)
    with attempt(spark, env, tmp_path) as found:
        wait_until(found.ended, "the crash")
    assert isinstance(found.failure, YarnflowError) and "Crash" in str(found.failure)
    lines = run_until(spark, to_files(broker, queue, tmp_path, use_ids, prefetch_count=30), tmp_path, 200)
    assert set(lines) == set(sent), "none is lost"
    doubled = [line for line, times in Counter(lines).items() if times > 1]
    if use_ids:
        assert not doubled
    else:
        assert 0 < len(doubled) <= 60, "the batch that was done again, and what waited behind it"
    assert broker.take_all(queue) == []


@pytest.mark.parametrize("use_ids", [True, False])
def test_a_job_that_is_stopped_goes_on_from_its_savepoint(
    spark: SparkSession, tmp_path: Path, broker: RabbitMq, queue: str, use_ids: bool
) -> None:
    """What it had not acknowledged is in the queue again; ids tell what of it was read."""
    first, second = ([f"{name}{n}" for n in range(100)] for name in "ab")
    broker.send(queue, first, with_ids=True)
    graph = Kept(to_files(broker, queue, tmp_path, use_ids, prefetch_count=30))
    job = Job(spark, graph, tmp_path / "first")
    job.wait_until(lambda: len(texts(tmp_path / "out")) >= 30, "some messages")
    job.savepoint(tmp_path / "savepoint", STOP)
    job.ended()
    assert _consumers(broker, queue) == 0
    before = texts(tmp_path / "out")
    assert len(set(before)) == len(before)
    broker.send(queue, second, with_ids=True)
    job = restored(spark, graph, tmp_path / "savepoint", tmp_path / "second")
    job.wait_until(lambda: len(set(texts(tmp_path / "out"))) >= 200, "all messages")
    job.wait_until(lambda: not parts_of(tmp_path / "second"), "all to be acknowledged")
    job.cancel()
    lines = texts(tmp_path / "out")
    assert set(lines) == {*first, *second}, "none is lost"
    doubled = {line for line, times in Counter(lines).items() if times > 1}
    assert doubled <= set(before)
    assert len(doubled) <= (0 if use_ids else 60), "those of the last batches alone"
    assert broker.take_all(queue) == []


def test_a_job_from_a_savepoint_of_one_that_went_on_reads_what_is_left(
    spark: SparkSession, tmp_path: Path, broker: RabbitMq, queue: str
) -> None:
    """What the first has acknowledged since then is gone, as in Flink."""
    first, second, third = ([f"{name}{n}" for n in range(60)] for name in "abc")
    graph = Kept(to_files(broker, queue, tmp_path, True, prefetch_count=20))
    job = Job(spark, graph, tmp_path / "first")
    broker.send(queue, first, with_ids=True)
    job.wait_until(lambda: len(texts(tmp_path / "out")) >= 60, "the first messages")
    job.savepoint(tmp_path / "savepoint", CONTINUE)
    broker.send(queue, second, with_ids=True)
    job.wait_until(lambda: len(texts(tmp_path / "out")) >= 120, "those after the savepoint")
    job.wait_until(lambda: not parts_of(tmp_path / "first"), "all to be acknowledged")
    job.cancel()
    broker.send(queue, third, with_ids=True)
    job = restored(spark, graph, tmp_path / "savepoint", tmp_path / "second")
    job.wait_until(lambda: len(texts(tmp_path / "out")) >= 180, "those of the second job")
    job.wait_until(lambda: not parts_of(tmp_path / "second"), "all to be acknowledged")
    job.cancel()
    assert sorted(texts(tmp_path / "out")) == sorted([*first, *second, *third])
    assert broker.take_all(queue) == []


def test_a_broker_that_is_killed_and_comes_back(
    spark: SparkSession, tmp_path: Path, broker: RabbitMq, queue: str
) -> None:
    first, second, third = ([f"{name}{n}" for n in range(100)] for name in "abc")
    broker.send(queue, first, with_ids=True)
    env = to_files(broker, queue, tmp_path, True, prefetch_count=30)
    with attempt(spark, env, tmp_path) as found:
        wait_until(lambda: found.ended() or len(texts(tmp_path / "out")) >= 30, "some messages")
        broker.kill()
        broker.start()
        broker.send(queue, second, with_ids=True)
        wait_until(
            lambda: found.ended() or len(set(texts(tmp_path / "out"))) >= 200, "all messages"
        )
        with broker.channel() as channel:
            channel.queue_delete(queue)
        wait_until(lambda: found.ended() or _consumers(broker, queue), "the queue to be made again")
        broker.send(queue, third, with_ids=True)
        wait_until(
            lambda: found.ended() or len(set(texts(tmp_path / "out"))) >= 300, "all messages"
        )
    assert found.failure is None, found.failure
    assert sorted(texts(tmp_path / "out")) == sorted([*first, *second, *third])


def test_a_broker_that_is_away(spark: SparkSession, tmp_path: Path, broker: RabbitMq, queue: str) -> None:
    env = to_files(broker, queue, tmp_path, True, automatic_recovery=False)
    with attempt(spark, env, tmp_path) as found:
        wait_until(lambda: (tmp_path / "checkpoint").exists(), "the query")
        wait_until(lambda: found.ended() or _consumers(broker, queue), "the subscription")
        broker.kill()
        wait_until(found.ended, "the end")
    assert isinstance(found.failure, ServerUnavailable)
    assert f"queue {queue} of RabbitMQ at 127.0.0.1:{broker.port}" in str(found.failure)
    env = to_files(broker, queue, tmp_path, True, automatic_recovery=False)
    with attempt(spark, env, tmp_path) as found:
        wait_until(found.ended, "the refusal")
    assert isinstance(found.failure, ServerUnavailable)
    said = str(found.failure)
    assert said.startswith(f"RabbitMQ at 127.0.0.1:{broker.port}: ") and "\n" not in said
    sink = environment()
    sink.from_collection(["a"], Types.STRING()).map(lambda text: text, Types.STRING()).add_sink(
        RMQSink(broker.config(network_recovery_interval=10), queue, SimpleStringSchema())
    )
    with attempt(spark, sink, tmp_path / "sink") as found:
        wait_until(found.ended, "the refusal")
    assert isinstance(found.failure, ServerUnavailable) and "\n" not in str(found.failure)


def _consumers(broker: RabbitMq, queue: str) -> int:
    with broker.channel() as channel, suppress(pika.exceptions.ChannelClosedByBroker):
        return int(channel.queue_declare(queue, passive=True).method.consumer_count)
    return 0


def test_who_is_refused(spark: SparkSession, tmp_path: Path, broker: RabbitMq, queue: str) -> None:
    """The user, the virtual host, the queue; the password is in no message."""
    cases = {
        "wrong name or password": broker.config(password="wrong-secret"),
        "refuses the virtual host": broker.config(virtual_host="other"),
    }
    for said, config in cases.items():
        env = environment()
        env.add_source(RMQSource(config, queue, False, SimpleStringSchema())).print()
        with attempt(spark, env, tmp_path / said) as found:
            wait_until(found.ended, "the refusal")
        assert type(found.failure) is ServerError and said in str(found.failure), found.failure
        assert "secret" not in str(found.failure) and PASSWORD not in str(found.failure)
    with broker.channel() as channel:
        channel.queue_declare(f"{queue}-mine", exclusive=True)
        env = environment()
        env.add_source(RMQSource(broker.config(), f"{queue}-mine", False, SimpleStringSchema())).print()
        with attempt(spark, env, tmp_path / "exclusive") as found:
            wait_until(found.ended, "the refusal")
    assert type(found.failure) is ServerError and "RESOURCE_LOCKED" in str(found.failure)


def test_a_message_that_cannot_be_read_is_named(
    spark: SparkSession, tmp_path: Path, broker: RabbitMq, queue: str
) -> None:
    row = Types.ROW_NAMED(["n"], [Types.INT()])
    form = JsonRowDeserializationSchema.builder().type_info(row).build()
    env = environment()
    env.add_source(RMQSource(broker.config(), queue, False, form)).print()
    broker.send(queue, ['{"n": 1}', "none"])
    with attempt(spark, env, tmp_path) as found:
        wait_until(found.ended, "the failure")
    assert isinstance(found.failure, MalformedMessage)
    assert str(found.failure).startswith(f"queue {queue}, part 1, message 2: no JSON message")
    assert broker.messages(queue) == 2, "nothing was acknowledged"


def test_columns_of_messages(
    spark: SparkSession, tmp_path: Path, broker: RabbitMq, queue: str
) -> None:
    """Expressions on them, and a sink of columns."""
    other = f"{queue}-out"
    row = Types.ROW_NAMED(["n", "who"], [Types.INT(), Types.STRING()])
    form = JsonRowDeserializationSchema.builder().type_info(row).build()
    env = environment()
    stream = env.add_source(RMQSource(broker.config(), queue, False, form))
    out = Types.ROW_NAMED(["who"], [Types.STRING()])
    written = JsonRowSerializationSchema.builder().with_type_info(out).build()
    stream.select("concat(who, n) AS who").add_sink(RMQSink(broker.config(), other, written))
    broker.send(queue, ['{"n": 1, "who": "a"}', '{"n": 2, "who": "b"}'])
    with attempt(spark, env, tmp_path) as found:
        wait_until(lambda: found.ended() or broker.messages(other) >= 2, "two messages")
    assert found.failure is None, found.failure
    assert sorted(map(str.split, broker.take_all(other))) == [['{"who":"a1"}'], ['{"who":"b2"}']]
