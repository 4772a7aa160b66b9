"""What workers send, and what they try again: RabbitMQ, Redis, sockets."""

from __future__ import annotations

import builtins
import itertools
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pyarrow as pa
import pytest

from tests.patience import PATIENCE
from tests.spark.connectors.rabbitmq.files_in_memory import FilesInMemory
from yarnflow.errors import EnvironmentUnusable, JobCanceled, ServerError, ServerUnavailable, StorageError
from yarnflow.graph.closures import Closure
from yarnflow.graph.connectors.elasticsearch import ElasticsearchServer, ElasticsearchSink
from yarnflow.graph.connectors.messages import MessageFormat, MessageFormatKind
from yarnflow.graph.connectors.rabbitmq import RabbitMqServer, RabbitMqSink
from yarnflow.graph.connectors.redis import RedisCommand, RedisServer, RedisSink
from yarnflow.graph.connectors.sinks import SocketSink
from yarnflow.graph.type_info import Types
from yarnflow.operators.databases.tokens import BatchToken, RunToken, StoredBatch
from yarnflow.spark.checkpoints.job import no_fence
from yarnflow.spark.connectors import socket_sink
from yarnflow.spark.connectors.elasticsearch.sink import ElasticsearchWriter
from yarnflow.spark.connectors.rabbitmq import sink as rabbitmq_sink
from yarnflow.spark.connectors.rabbitmq.sink import Publish, RabbitMqWriter, chunks
from yarnflow.spark.connectors.redis.sink import ClaimMark, RedisWriter, RunCommands
from yarnflow.spark.connectors.socket_sink import SocketWriter

TEXT = MessageFormat(MessageFormatKind.STRING, Types.STRING())
SERVER = RabbitMqServer("h", recovery_interval_ms=2_000)


# --- RabbitMQ -----------------------------------------------------------------------------


class Outbox:
    def __init__(self, bench: Bench) -> None:
        self._bench = bench

    def publish(self, bodies: list[bytes]) -> None:
        if self._bench.failures:
            raise self._bench.failures.pop(0)
        self._bench.published.append(list(bodies))

    def close(self) -> None:
        self._bench.closed += 1


class Bench:
    def __init__(self) -> None:
        self.failures: list[Exception] = []
        self.published: list[list[bytes]] = []
        self.closed = self.opened = 0
        self.waited: list[float] = []

    def task(self, monkeypatch: pytest.MonkeyPatch, server: RabbitMqServer = SERVER) -> Publish:
        def opened(_: Publish) -> Outbox:
            self.opened += 1
            return Outbox(self)

        monkeypatch.setattr(Publish, "_open", opened)
        return Publish(server, "q", self.waited.append)


def bodies(*texts: bytes) -> Iterator[pa.RecordBatch]:
    for text in texts:
        yield pa.RecordBatch.from_pydict({"value": pa.array([text], pa.binary())})


def test_messages_go_in_pieces_by_one_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rabbitmq_sink, "_CHUNK_MESSAGES", 2)
    bench = Bench()
    (count,) = bench.task(monkeypatch)(bodies(b"a", b"b", b"c"))
    assert count.to_pydict() == {"count": [3]}
    assert bench.published == [[b"a", b"b"], [b"c"]] and (bench.opened, bench.closed) == (1, 1)


def test_an_empty_partition_connects_to_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench()
    (count,) = bench.task(monkeypatch)(bodies())
    assert count.to_pydict() == {"count": [0]} and bench.opened == 0


def test_a_piece_that_was_broken_off_is_sent_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rabbitmq_sink, "_CHUNK_MESSAGES", 1)
    bench = Bench()
    bench.failures = [ServerUnavailable("away"), ServerUnavailable("still away")]
    list(bench.task(monkeypatch)(bodies(b"a", b"b")))
    assert bench.published == [[b"a"], [b"b"]] and bench.waited == [2.0, 2.0]
    assert bench.opened == bench.closed == 3


@pytest.mark.parametrize(
    "server, failure, tries",
    [
        (SERVER, ServerUnavailable("away"), 4),
        (RabbitMqServer("h", automatic_recovery=False), ServerUnavailable("away"), 1),
        (SERVER, ServerError("refused"), 1),
    ],
)
def test_when_a_task_gives_up(
    monkeypatch: pytest.MonkeyPatch, server: RabbitMqServer, failure: ServerError, tries: int
) -> None:
    bench = Bench()
    bench.failures = [failure] * 9
    with pytest.raises(type(failure)):
        list(bench.task(monkeypatch, server)(bodies(b"a")))
    assert bench.opened == bench.closed == tries


def test_large_messages_are_pieces_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rabbitmq_sink, "_CHUNK_BYTES", 4)
    found = list(chunks(bodies(b"aa", b"bb", b"cccccc", b"d")))
    assert found == [[b"aa", b"bb"], [b"cccccc"], [b"d"]]


# --- Redis --------------------------------------------------------------------------------


class Store:
    """Loses its first answers."""

    def __init__(self, lost: int = 0) -> None:
        self.written: dict[int, list[list[bytes]]] = {}
        self._lost = lost

    def claim(self, token: BatchToken, noted: bool) -> StoredBatch:
        return StoredBatch(token.run)

    def write(self, token: BatchToken, commands: list[list[bytes]]) -> int:
        before = self.written.get(token.batch_id)
        if before is None:
            self.written[token.batch_id] = commands
        if self._lost:
            self._lost -= 1
            raise ServerUnavailable("no answer")
        return -1 if before is None else len(before)


def commands(*keys: bytes) -> Iterator[pa.RecordBatch]:
    for key in keys:
        kind = pa.list_(pa.binary())
        yield pa.RecordBatch.from_pydict({"arguments": pa.array([[b"SADD", key, b"1"]], kind)})


def test_a_batch_is_one_call() -> None:
    token, store, waited = RunToken("a" * 32, 1, 1).batch("sink", 7), Store(lost=2), list[float]()
    (found,) = RunCommands(store, token, 3, waited.append)(commands(b"a", b"b"))
    assert found.to_pydict() == {"rows": [2], "written": [2]}, "it was there, and nobody knew"
    assert store.written == {7: [[b"SADD", b"a", b"1"], [b"SADD", b"b", b"1"]]} and waited == [1.0, 2.0]
    with pytest.raises(ServerUnavailable):
        list(RunCommands(Store(lost=9), token, 0, waited.append)(commands(b"a")))


def test_an_empty_batch_asks_nobody() -> None:
    token, store = RunToken("a" * 32, 1, 1).batch("sink", 7), Store()
    (found,) = RunCommands(store, token, 0)(commands())
    assert found.to_pydict() == {"rows": [0], "written": [-1]} and not store.written


# --- sockets ------------------------------------------------------------------------------


def test_each_message_is_a_line() -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        writer = SocketWriter(SocketSink("127.0.0.1", server.getsockname()[1], TEXT), None, no_fence)
        assert writer.send([b"a", b"b\n"]) == 2
        connection, _ = server.accept()
        with connection:
            assert connection.recv(100) == b"a\nb\n"
            assert writer.send([b"c"]) == 1
            assert connection.recv(100) == b"c\n"
        with pytest.raises(ServerUnavailable, match="has closed the connection; see whether it runs"):
            writer.send([b"d"])
        assert writer.send([b"e"]) == 1, "by a new connection"
        writer.finish()
        connection, _ = server.accept()
        with connection:
            assert connection.recv(100) == b"e\n" and connection.recv(100) == b""


def test_a_server_that_does_not_read_is_waited_for_until_the_job_is_stopped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(socket_sink, "_LOOK_S", 0.01)
    asked = 0

    def stopped() -> None:
        nonlocal asked
        asked += 1
        if asked == 3:
            raise JobCanceled("stopped")

    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        writer = SocketWriter(SocketSink("127.0.0.1", server.getsockname()[1], TEXT), None, stopped)
        ended: list[BaseException] = []

        def send() -> None:
            try:
                writer.send(itertools.repeat(b"x" * 65_536))
            except JobCanceled as error:
                ended.append(error)

        sending = threading.Thread(target=send, daemon=True)
        sending.start()
        sending.join(PATIENCE.thread_s)
        assert ended and asked == 3
        connection, _ = server.accept()
        with connection:
            connection.settimeout(PATIENCE.answer_s)
            while connection.recv(1_000_000):
                pass


def test_slow_servers_get_all_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket_sink, "_LOOK_S", 0.01)
    sent = [f"{n}-{'x' * 50_000}".encode() for n in range(400)]
    received = bytearray()
    waited = threading.Event()

    def receive(server: socket.socket) -> None:
        connection, _ = server.accept()
        with connection:
            waited.wait(PATIENCE.thread_s)
            while data := connection.recv(1_000_000):
                received.extend(data)

    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        reading = threading.Thread(target=receive, args=(server,), daemon=True)
        reading.start()
        writer = SocketWriter(SocketSink("127.0.0.1", server.getsockname()[1], TEXT), None, waited.set)
        assert writer.send(sent) == 400 and waited.is_set()
        writer.close()
        reading.join(PATIENCE.thread_s)
    assert bytes(received) == b"".join(line + b"\n" for line in sent)


def test_what_fails_beside_the_socket_is_not_blamed_on_it() -> None:
    def messages() -> Iterator[bytes]:
        yield b"a"
        raise StorageError("no datanode")

    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        writer = SocketWriter(SocketSink("127.0.0.1", server.getsockname()[1], TEXT), None, no_fence)
        with pytest.raises(StorageError, match="^no datanode$"):
            writer.send(messages())


# --- environments -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "package, module, make",
    [
        ("pika", "rabbitmq.broker", lambda: RabbitMqWriter(RabbitMqSink(SERVER, "q", TEXT), None, no_fence)),
        (
            "redis",
            "redis.store",
            lambda: RedisWriter(
                RedisSink(RedisServer("h"), RedisCommand.SET, Closure(b"", "f", "")),
                None, "sink", RunToken("a" * 32), ClaimMark(FilesInMemory(), "mark", no_fence),
            ),
        ),
        (
            "opensearchpy",
            "elasticsearch.client",
            lambda: ElasticsearchWriter(
                ElasticsearchSink(ElasticsearchServer(("http://h:9200",)), "i"), None, "sink", no_fence
            ),
        ),
    ],
)  # fmt: skip
def test_an_environment_without_the_client(
    monkeypatch: pytest.MonkeyPatch, package: str, module: str, make: Callable[[], Any]
) -> None:
    load = builtins.__import__

    def without(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.partition(".")[0] == package:
            raise ImportError(f"No module named '{package}'")
        return load(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    monkeypatch.delitem(sys.modules, f"yarnflow.spark.connectors.{module}", raising=False)
    parent = sys.modules.get(f"yarnflow.spark.connectors.{module.partition('.')[0]}")
    monkeypatch.delattr(parent, module.partition(".")[2], raising=False)
    with pytest.raises(EnvironmentUnusable, match=f"No module named '{package}'.*pip install 'yarnflow\\["):
        make()
