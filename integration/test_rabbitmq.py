"""The client of RabbitMQ and the receiver of a queue with a real broker, without Spark."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from integration.conftest import wait_until
from integration.rabbitmq import PASSWORD, RabbitMq
from integration.servers import running
from tests.spark.connectors.rabbitmq.files_in_memory import FilesInMemory
from yarnflow.errors import ServerError, ServerUnavailable
from yarnflow.graph.connectors.messages import MessageFormat, MessageFormatKind
from yarnflow.graph.connectors.rabbitmq import RabbitMqServer, RabbitMqSource
from yarnflow.graph.type_info import Types
from yarnflow.spark.checkpoints.job import no_fence
from yarnflow.spark.connectors.feeds.data_source import part_batches
from yarnflow.spark.connectors.rabbitmq.broker import Publisher, Subscription
from yarnflow.spark.connectors.rabbitmq.deliveries import Message
from yarnflow.spark.connectors.rabbitmq.receiver import Receiver
from yarnflow.spark.connectors.rabbitmq.source import queue_receiver


@pytest.fixture(scope="module")
def broker() -> Iterator[RabbitMq]:
    with running(RabbitMq) as found:
        yield found


@pytest.fixture
def queue(broker: RabbitMq) -> str:
    broker.start()
    return broker.new_queue()


def server_of(broker: RabbitMq, **settings: Any) -> RabbitMqServer:
    return broker.config(**settings)._server


def received(subscription: Subscription, count: int) -> list[Message]:
    found: list[Message] = []

    def enough() -> bool:
        found.extend(subscription.receive(0.1))
        return len(found) >= count

    wait_until(enough, f"{count} messages")
    return found


@pytest.mark.gate
@pytest.mark.parametrize("in_transactions", [True, False])
def test_what_is_not_acknowledged_comes_again(broker: RabbitMq, queue: str, in_transactions: bool) -> None:
    broker.send(queue, ["a", "b", "c"], with_ids=True)
    first = Subscription(server_of(broker), queue, in_transactions)
    found = received(first, 3)
    assert [(m.body, m.correlation_id) for m in found] == [(b"a", "id-a"), (b"b", "id-b"), (b"c", "id-c")]
    first.acknowledge(found[1].tag)
    first.close()
    wait_until(lambda: broker.messages(queue) == 1, "the message to go back")
    assert broker.take_all(queue) == ["c"]


def test_no_more_is_delivered_than_may_be_unacknowledged(broker: RabbitMq, queue: str) -> None:
    broker.send(queue, map(str, range(50)))
    subscription = Subscription(server_of(broker, prefetch_count=7), queue, True)
    found = received(subscription, 7)
    assert subscription.receive(0.5) == [] and broker.messages(queue) == 43
    subscription.acknowledge(found[-1].tag)
    assert len(received(subscription, 7)) == 7
    subscription.close()


def test_messages_are_in_the_queue_when_they_are_sent(broker: RabbitMq, queue: str) -> None:
    """And stay there over the broker's death."""
    publisher = Publisher(server_of(broker), queue)
    publisher.publish([b"a", b"\xff"])
    assert broker.messages(queue) == 2
    broker.kill()
    with pytest.raises(ServerUnavailable, match=f"^queue {queue} of RabbitMQ at 127.0.0.1:{broker.port}: "):
        publisher.publish([b"c"])
    publisher.close()
    with pytest.raises(ServerUnavailable, match="^RabbitMQ at .*see whether it runs$"):
        Publisher(server_of(broker), queue)
    broker.start()
    assert broker.messages(queue) == 2


def test_a_queue_that_is_not_there_is_made(broker: RabbitMq) -> None:
    publisher = Publisher(server_of(broker), "new")
    publisher.publish([b"a"])
    publisher.close()
    broker.write_down()
    broker.kill()
    broker.start()
    assert broker.take_all("new") == ["a"], "queue and message are durable"


def test_a_broker_that_dies_is_told(broker: RabbitMq, queue: str) -> None:
    subscription = Subscription(server_of(broker), queue, True)
    broker.kill()
    with pytest.raises(ServerUnavailable):
        subscription.receive(1.0)
    subscription.close()


def test_a_channel_that_the_broker_ends_is_told(broker: RabbitMq, queue: str) -> None:
    broker.send(queue, ["a"])
    subscription = Subscription(server_of(broker), queue, False)
    (found,) = received(subscription, 1)
    subscription.acknowledge(found.tag)
    subscription.acknowledge(found.tag)
    with pytest.raises(ServerUnavailable, match="has ended the channel: PRECONDITION_FAILED - unknown"):
        # the connection is there still
        for _ in range(2_400):
            subscription.receive(0.1)
    subscription.close()
    subscription = Subscription(server_of(broker), queue, False)
    with broker.channel() as channel:
        channel.queue_delete(queue)
    with pytest.raises(ServerUnavailable, match="delivers no more of it"):
        for _ in range(2_400):
            subscription.receive(0.1)
    subscription.close()


def test_who_is_refused(broker: RabbitMq, queue: str) -> None:
    cases = {
        "refuses user ann: wrong name or password": {"password": "wrong-secret"},
        "refuses the virtual host": {"virtual_host": "other"},
    }
    for said, settings in cases.items():
        with pytest.raises(ServerError, match=said) as caught:
            Subscription(server_of(broker, **settings), queue, False)
        assert type(caught.value) is ServerError and "\n" not in str(caught.value)
        assert "secret" not in str(caught.value) and PASSWORD not in str(caught.value)
    uri = f"amqp://ann:wrong-secret@127.0.0.1:{broker.port}/%2F"
    with pytest.raises(ServerError, match="wrong name or password") as caught:
        Publisher(RabbitMqServer(uri=uri), queue)
    assert "secret" not in str(caught.value)
    with broker.channel() as channel:
        channel.queue_declare("mine", exclusive=True)
        with pytest.raises(ServerError, match="^queue mine of RabbitMQ at .*RESOURCE_LOCKED"):
            Subscription(server_of(broker), "mine", False)


class Job:
    """Plans, reads and commits as Spark does, and dies."""

    def __init__(self, broker: RabbitMq, queue: str) -> None:
        text = MessageFormat(MessageFormatKind.STRING, Types.STRING())
        self._source = RabbitMqSource(server_of(broker, prefetch_count=20), queue, text, True)
        self._files = FilesInMemory()
        self.planned = self.committed = 0
        self.read: Counter[str] = Counter()
        self.receiver = self.start()

    def start(self) -> Receiver:
        """A new driver."""
        files = self._files
        self.receiver = queue_receiver(self._source, files, "dir", lambda: self.committed, no_fence)
        self.receiver.open(self.planned)
        self.commit()
        return self.receiver

    def plan(self) -> bool:
        """Whether there is something to read."""
        self.planned = self.receiver.latest(self.committed)
        return self.planned > self.committed

    def commit(self) -> None:
        for number in range(self.committed + 1, self.planned + 1):
            (content,) = self.receiver.parts(number - 1, number)
            for batch in part_batches(content, "q", number):
                self.read.update(body.decode() for body in batch.column("value").to_pylist())
        self.committed = self.planned

    def die(self) -> None:
        """Nothing that it does afterwards is seen."""
        self._files = self._files.copy()
        committed = self.committed
        self.committed = 0
        self.receiver.close()
        self.committed = committed


def test_each_message_is_read_once_whoever_dies(broker: RabbitMq, queue: str) -> None:
    """Drivers before and after they have planned and committed, and the broker."""
    job = Job(broker, queue)
    for number in range(6):
        broker.send(queue, (f"{number}-{n}" for n in range(30)), with_ids=True)
        wait_until(job.plan, "something to read")
        if number == 1:
            job.die()
            job.start()
        if number == 2:
            broker.kill()
            broker.start()
        job.commit()
        if number == 3:
            job.die()
            job.start()
        if number == 4:
            job.plan()
            broker.kill()
            broker.start()
            job.die()
            job.start()

    def done() -> bool:
        job.plan()
        job.commit()
        return len(job.read) == 180

    wait_until(done, "all messages")
    assert set(job.read.values()) == {1}
    wait_until(lambda: not job._files.parts(), "all to be acknowledged")
    job.receiver.close()
    assert broker.take_all(queue) == []
