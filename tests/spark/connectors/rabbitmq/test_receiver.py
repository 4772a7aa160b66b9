"""A queue's receiver with a broker and files that a test moves by hand."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from tests.patience import PATIENCE
from tests.spark.connectors.rabbitmq.files_in_memory import FilesInMemory
from yarnflow.errors import LeaseLost, ServerError, ServerUnavailable, StorageError
from yarnflow.graph.connectors.messages import MessageFormat, MessageFormatKind
from yarnflow.graph.connectors.rabbitmq import RabbitMqServer, RabbitMqSource
from yarnflow.graph.type_info import Types
from yarnflow.spark.connectors.feeds.data_source import part_batches
from yarnflow.spark.connectors.rabbitmq import receiver
from yarnflow.spark.connectors.rabbitmq.deliveries import Message
from yarnflow.spark.connectors.rabbitmq.parts import PartFiles, ids_of, pack
from yarnflow.spark.connectors.rabbitmq.receiver import Receiver


class Inbox:
    """A subscription."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self._tag = 0

    def receive(self, wait_s: float) -> list[Message]:
        with self._bench.changed:
            if self._bench.breaks:
                raise self._bench.breaks.pop(0)
            if not self._bench.ready:
                self._bench.idle = True
                self._bench.changed.notify_all()
                self._bench.changed.wait(0.01)
                return []
            found = []
            for body in self._bench.ready:
                self._tag += 1
                found.append(Message(self._tag, body, body.decode()))
            self._bench.ready = []
            return found

    def acknowledge(self, tag: int) -> None:
        with self._bench.changed:
            self._bench.acknowledged.append(tag)
            self._bench.changed.notify_all()

    def close(self) -> None:
        self._bench.closed += 1


class Bench:
    def __init__(self, **server: object) -> None:
        self.changed = threading.Condition()
        self.ready: list[bytes] = []
        self.breaks: list[Exception] = []
        self.idle = False
        self.acknowledged: list[int] = []
        self.closed = self.subscribed = 0
        self.refusals: list[ServerError] = []
        self.committed = 0
        self.lost: LeaseLost | None = None
        self.files = FilesInMemory()
        self._server = RabbitMqServer("h", recovery_interval_ms=1, **server)  # type: ignore[arg-type]
        self.receiver = self.new_receiver()

    def new_receiver(self) -> Receiver:
        text = MessageFormat(MessageFormatKind.STRING, Types.STRING())
        source = RabbitMqSource(self._server, "q", text, True)
        parts = PartFiles(self.files, "dir")
        return Receiver(source, parts, self.subscribe, lambda: self.committed, self.fence)

    def subscribe(self) -> Inbox:
        if self.refusals:
            raise self.refusals.pop(0)
        self.subscribed += 1
        return Inbox(self)

    def fence(self) -> None:
        if self.lost is not None:
            raise self.lost

    def deliver(self, *bodies: bytes) -> None:
        """Have the receiver take messages."""
        with self.changed:
            self.ready += bodies
            self.idle = False
            assert self.changed.wait_for(lambda: self.idle, PATIENCE.thread_s), "it takes nothing"

    def await_acknowledged(self, *tags: int) -> None:
        with self.changed:
            assert self.changed.wait_for(
                lambda: self.acknowledged == list(tags), PATIENCE.thread_s
            ), self.acknowledged

    def messages(self, number: int) -> list[bytes]:
        (content,) = self.receiver.parts(number - 1, number)
        return [body for batch in part_batches(content, "q", number) for body in batch.column(0).to_pylist()]


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    monkeypatch.setattr(receiver, "_COMMIT_LOOK_S", 0.0)
    found = Bench()
    yield found
    found.receiver.close()


def test_messages_are_in_a_file_before_spark_hears_of_them(bench: Bench) -> None:
    bench.receiver.open(0)
    assert bench.receiver.latest(0) == 0
    bench.deliver(b"a", b"b")
    assert not bench.files.contents, "there is no batch yet"
    assert bench.receiver.latest(0) == 1
    assert set(bench.files.contents) == {"dir/1.arrow"}
    assert bench.messages(1) == [b"a", b"b"]
    assert bench.receiver.latest(1) == 1, "nothing has come since"
    bench.deliver(b"c")
    assert bench.receiver.latest(1) == 2
    assert bench.acknowledged == []
    bench.committed = 1
    bench.await_acknowledged(2)
    bench.committed = 2
    bench.await_acknowledged(2, 3)
    bench.receiver.close()
    assert bench.closed == 1 and not bench.files.contents


def test_what_is_committed_is_acknowledged_at_the_end(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(receiver, "_COMMIT_LOOK_S", 1e9)
    bench.receiver.open(0)
    bench.deliver(b"a")
    bench.receiver.latest(0)
    bench.deliver(b"b")
    bench.receiver.latest(1)
    bench.committed = 1
    bench.receiver.close()
    assert bench.acknowledged == [1]
    assert set(bench.files.contents) == {"dir/2.arrow"}


def test_files_are_kept_while_they_are_copied(bench: Bench) -> None:
    bench.receiver.open(0)
    bench.deliver(b"a")
    bench.receiver.latest(0)
    bench.receiver.hold()
    bench.receiver.hold()
    bench.committed = 1
    # else the broker would deliver no more than its prefetch count until the copy is done
    bench.await_acknowledged(1)
    bench.receiver.release()
    bench.deliver(b"b")
    bench.receiver.latest(1)
    bench.committed = 2
    bench.await_acknowledged(1, 2)
    bench.deliver(b"c")
    assert set(bench.files.parts()) == {"dir/1.arrow", "dir/2.arrow"}, "another copy is under way"
    bench.receiver.release()
    bench.receiver.close()
    assert not bench.files.parts()


def test_the_next_driver_goes_on_with_the_batch_that_was_planned(bench: Bench) -> None:
    first = bench.receiver
    first.open(0)
    for number, body in enumerate((b"a", b"b", b"c")):
        bench.deliver(body)
        assert first.latest(number) == number + 1
    bench.committed = 1
    bench.await_acknowledged(1)
    # it dies: Spark has planned part 2, and not part 3
    bench.files.contents = dict(bench.files.contents)
    kept = dict(bench.files.contents)
    first.close()
    bench.files.contents = kept
    bench.receiver = bench.new_receiver()
    bench.receiver.open(2)
    assert "dir/3.arrow" not in bench.files.contents, "it comes again"
    assert bench.messages(2) == [b"b"]
    bench.deliver(b"b", b"c")
    assert bench.receiver.latest(2) == 3
    assert bench.messages(3) == [b"c"], "the other one is in part 2"
    bench.acknowledged = []
    bench.committed = 3
    bench.await_acknowledged(2)


def test_a_part_that_cannot_be_written_is_none(bench: Bench) -> None:
    """A batch that is planned has its input, whoever asks next."""
    bench.receiver.open(0)
    bench.deliver(b"a")
    bench.files.failures = [StorageError("no datanode")]
    with pytest.raises(StorageError, match="no datanode"):
        bench.receiver.latest(0)
    with pytest.raises(StorageError, match="no datanode"):
        bench.receiver.latest(0)
    assert not bench.files.parts()
    with pytest.raises(StorageError, match="no datanode"):
        bench.receiver.check()
    bench.receiver.close()
    bench.receiver = bench.new_receiver()
    bench.receiver.open(0)
    bench.deliver(b"a")
    assert bench.receiver.latest(0) == 1 and bench.messages(1) == [b"a"]


class WatchedLock:
    """A lock that tells when somebody else than its owner wants it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.wanted = threading.Event()

    def __enter__(self) -> None:
        if not self._lock.acquire(blocking=False):
            self.wanted.set()
            self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()


def test_who_waits_while_the_thread_fails_hears_of_it(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """The thread writes a part of many bytes, slowly and in vain, when a batch is to be planned."""
    monkeypatch.setattr(receiver, "_PART_BYTES", 1)
    lock, told = WatchedLock(), list[int | str]()
    monkeypatch.setattr(bench.receiver, "_lock", lock)

    def plan() -> None:
        try:
            told.append(bench.receiver.latest(0))
        except StorageError as error:
            told.append(str(error))

    planning = threading.Thread(target=plan)

    def write(path: str, content: bytes) -> None:
        planning.start()
        assert lock.wanted.wait(PATIENCE.thread_s)
        raise StorageError("no datanode")

    monkeypatch.setattr(bench.files, "write", write)
    bench.ready = [b"a"]
    bench.receiver.open(0)
    bench.receiver.close()
    planning.join()
    assert told == ["no datanode"]


def test_what_fails_beside_the_broker_is_not_blamed_on_it(bench: Bench) -> None:
    bench.breaks = [KeyError("a bug")]
    bench.receiver.open(0)
    bench.receiver.close()
    with pytest.raises(KeyError, match="a bug"):
        bench.receiver.check()


def test_a_connection_that_breaks_is_made_again(bench: Bench) -> None:
    bench.receiver.open(0)
    bench.deliver(b"a")
    assert bench.receiver.latest(0) == 1
    with bench.changed:
        bench.refusals = [ServerUnavailable("away"), ServerUnavailable("still away")]
        bench.breaks = [ServerUnavailable("broken")]
    bench.deliver(b"a", b"b")
    assert bench.subscribed == 2
    assert bench.receiver.latest(1) == 2 and bench.messages(2) == [b"b"]
    bench.committed = 2
    bench.await_acknowledged(2)


def test_a_connection_that_is_not_to_be_made_again() -> None:
    bench = Bench(automatic_recovery=False)
    bench.breaks = [ServerUnavailable("broken")]
    bench.receiver.open(0)
    bench.receiver.close()
    with pytest.raises(ServerUnavailable, match="broken"):
        bench.receiver.latest(0)
    assert bench.closed == 1


def test_what_the_broker_refuses_is_told(bench: Bench) -> None:
    bench.refusals = [ServerError("no such user")]
    with pytest.raises(ServerError, match="no such user"):
        bench.receiver.open(0)
    bench.breaks = [ServerError("the queue is gone")]
    bench.receiver.open(0)
    bench.receiver.close()
    with pytest.raises(ServerError, match="the queue is gone"):
        bench.receiver.check()


def test_a_driver_that_was_replaced_writes_and_acknowledges_nothing(bench: Bench) -> None:
    bench.receiver.open(0)
    bench.deliver(b"a")
    bench.receiver.latest(0)
    bench.deliver(b"b")
    bench.lost = LeaseLost("replaced")
    with pytest.raises(LeaseLost):
        bench.receiver.latest(1)
    bench.committed = 1
    bench.receiver.close()
    assert bench.acknowledged == [] and set(bench.files.contents) == {"dir/1.arrow"}


def test_a_batch_has_no_more_bytes_than_travel_with_its_plan(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(receiver, "_PART_BYTES", 2)
    bench.receiver.open(0)
    for body in (b"aa", b"bb", b"cc"):
        bench.deliver(body)
    one = len(bench.files.contents["dir/1.arrow"])
    monkeypatch.setattr(receiver, "MAX_BATCH_BYTES", 2 * one)
    assert bench.receiver.latest(0) == 2
    monkeypatch.setattr(receiver, "MAX_BATCH_BYTES", 1)
    assert bench.receiver.latest(2) == 3, "one part at least"


def test_messages_without_ids_and_with_them_are_packed() -> None:
    content = pack([Message(1, b"a", "x"), Message(2, b""), Message(3, b"\xff", "y")])
    assert ids_of(content) == ["x", "y"]
    (batch,) = part_batches(content, "q", 7)
    assert batch.to_pydict() == {
        "value": [b"a", b"", b"\xff"], "queue": ["q"] * 3, "part": [7] * 3, "message": [1, 2, 3]
    }  # fmt: skip
