"""What Spark's process asks the driver for, through a real connection."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from multiprocessing import AuthenticationError

import pytest

from tests.patience import PATIENCE
from yarnflow.errors import LeaseLost
from yarnflow.spark.connectors.feeds import server as feed_server
from yarnflow.spark.connectors.feeds.data_source import FeedReader, Parts, part_of
from yarnflow.spark.connectors.feeds.server import FeedClient, FeedServer
from yarnflow.spark.connectors.rabbitmq.deliveries import Message
from yarnflow.spark.connectors.rabbitmq.parts import pack


class Feed:
    def __init__(self) -> None:
        self.failure: Exception | None = None

    def latest(self, start: int) -> int:
        if self.failure is not None:
            raise self.failure
        return start + 2

    def parts(self, start: int, end: int) -> list[bytes]:
        return [pack([Message(1, str(number).encode())]) for number in range(start + 1, end + 1)]


@pytest.fixture
def feed() -> Feed:
    return Feed()


@pytest.fixture
def server(feed: Feed) -> Iterator[FeedServer]:
    found = FeedServer()
    found.start()
    found.add("orders", feed)
    yield found
    found.close()
    found.close()


def test_a_batch_is_planned_and_read(server: FeedServer) -> None:
    reader = FeedReader("orders", "q", server.port, server.secret)
    start = reader.initialOffset()
    assert start == {"feed": "orders", "part": 0}
    end = reader.latestOffset(start, None)
    assert end == {"feed": "orders", "part": 2}
    (partition,) = reader.partitions(start, end)
    assert isinstance(partition, Parts)
    rows = [row for batch in reader.read(partition) for row in batch.to_pylist()]
    assert [(row["value"], row["part"], row["message"]) for row in rows] == [(b"1", 1, 1), (b"2", 2, 1)]
    assert reader.partitions(end, end) == []
    assert server.secret not in str(reader.__getstate__()), "tasks get all they read with their partition"
    reader.stop()


def test_what_the_driver_raises_is_raised_in_sparks_process(server: FeedServer, feed: Feed) -> None:
    client = FeedClient(server.port, server.secret)
    feed.failure = LeaseLost("replaced")
    with pytest.raises(LeaseLost, match="^replaced$"):
        client.latest("orders", 0)
    feed.failure = ZeroDivisionError("oops")
    with pytest.raises(Exception, match="ZeroDivisionError: oops"):
        client.latest("orders", 0)
    feed.failure = None
    assert client.latest("orders", 3) == 5
    client.close()


def test_whoever_does_not_know_the_secret_is_not_served(server: FeedServer) -> None:
    with pytest.raises(AuthenticationError):
        FeedClient(server.port, "00" * 32)
    assert FeedClient(server.port, server.secret).latest("orders", 0) == 2


def within_limit(call: Callable[[], object]) -> object:
    """What a call gives that may wait for ever."""
    found: list[object] = []
    thread = threading.Thread(target=lambda: found.append(call()), daemon=True)
    thread.start()
    thread.join(PATIENCE.thread_s)
    assert found, "it waits"
    return found[0]


def test_whoever_connects_and_says_nothing_holds_nobody_up(server: FeedServer) -> None:
    """A port scan, a monitor's probe."""
    with socket.create_connection(("127.0.0.1", server.port)) as silent:
        silent.settimeout(PATIENCE.answer_s)
        assert silent.recv(100), "the server wants a proof"
        answer = within_limit(lambda: FeedClient(server.port, server.secret).latest("orders", 0))
        assert answer == 2
        within_limit(server.close)
        while silent.recv(100):
            pass


def test_whoever_says_nothing_is_let_go_of(server: FeedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    client = FeedClient(server.port, server.secret)
    monkeypatch.setattr(feed_server, "_PROOF_S", 0.05)
    with socket.create_connection(("127.0.0.1", server.port)) as silent:
        silent.settimeout(PATIENCE.answer_s)
        while silent.recv(100):
            pass
    assert client.latest("orders", 0) == 2, "who has proved it may take its time"


def test_other_words_than_a_proof(server: FeedServer) -> None:
    with socket.create_connection(("127.0.0.1", server.port)) as stranger:
        stranger.settimeout(PATIENCE.answer_s)
        stranger.sendall(b"GET / HTTP/1.1\r\n\r\n")
        try:
            while stranger.recv(100):
                pass
        except ConnectionResetError:
            pass
    assert within_limit(lambda: FeedClient(server.port, server.secret).latest("orders", 0)) == 2


def test_a_system_that_has_no_connections_left(
    server: FeedServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(feed_server, "_ACCEPT_AGAIN_S", 0.001)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = listener.getsockname()
        failures = [OSError("Too many open files")] * 2

        class Full(socket.socket):
            def accept(self) -> tuple[socket.socket, object]:
                if failures:
                    raise failures.pop()
                return super().accept()

        full = Full(fileno=listener.detach())
        threading.Thread(target=server._accept, args=(full,), daemon=True).start()
        answer = within_limit(lambda: FeedClient(address[1], server.secret).latest("orders", 0))
        assert answer == 2
        said = "Spark cannot connect to the driver: Too many open files"
        told = [record.getMessage() for record in caplog.records if record.name == feed_server.__name__]
        assert told == [said] * 2
        server.close()
        full.shutdown(socket.SHUT_RDWR)
        full.close()


def test_a_server_that_is_closed_lets_go(server: FeedServer) -> None:
    client = FeedClient(server.port, server.secret)
    assert client.latest("orders", 0) == 2
    server.close()
    with pytest.raises((EOFError, OSError)):
        client.latest("orders", 0)
    with pytest.raises(OSError):
        FeedClient(server.port, server.secret)


def test_how_far_a_query_has_read() -> None:
    lines = ['{"logOffset":3}', '{"feed": "a", "part": 7}', "-", "12", '{"feed": "b", "part": 2}']
    assert [part_of(lines, name, min) for name in "abc"] == [7, 2, 0]
    twice = [*lines, '{"part": 5, "feed": "a"}']
    assert part_of(twice, "a", min) == 5, "what is read at both places"
    assert part_of(twice, "a", max) == 7, "what must be there still"
