"""What of the client's errors is told, and that no connection is left behind, with a broker of the test's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pika
import pika.exceptions
import pytest

from yarnflow.errors import ServerError, ServerUnavailable
from yarnflow.graph.connectors.rabbitmq import RabbitMqServer
from yarnflow.spark.connectors.rabbitmq.broker import Publisher, Subscription

SERVER = RabbitMqServer("h", password="hunter2")
TIMED_OUT = pika.exceptions.ChannelClosedByBroker(
    406, "PRECONDITION_FAILED - delivery acknowledgement on channel 1 timed out"
)


class Broker:
    """Raises what a test wants by the name of the call; stands in for connection and channel."""

    def __init__(self) -> None:
        self.failures: dict[str, Exception] = {}
        self.opened = self.closed = 0
        self.is_open = True
        self._closing_reason: Exception | None = None

    def connect(self, parameters: Any) -> Broker:
        self.opened += 1
        return self

    def channel(self) -> Broker:
        return self

    def close(self) -> None:
        self.closed += 1

    def end_channel(self, reason: Exception) -> None:
        self.is_open, self._closing_reason = False, reason

    def __getattr__(self, name: str) -> Callable[..., None]:
        def call(*args: Any, **kwargs: Any) -> None:
            if name in self.failures:
                raise self.failures[name]

        return call


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch) -> Broker:
    made = Broker()
    monkeypatch.setattr(pika, "BlockingConnection", made.connect)
    return made


@pytest.mark.parametrize("call", ["queue_declare", "basic_qos", "tx_select", "basic_consume"])
def test_a_subscription_that_is_refused_leaves_no_connection(found: Broker, call: str) -> None:
    found.failures[call] = pika.exceptions.ChannelClosedByBroker(403, "ACCESS_REFUSED - exclusive use")
    with pytest.raises(ServerError, match="^queue q of RabbitMQ at h:5672: ACCESS_REFUSED") as caught:
        Subscription(SERVER, "q", True)
    assert type(caught.value) is ServerError and found.opened == found.closed == 1


def test_a_publisher_that_is_refused_leaves_no_connection(found: Broker) -> None:
    found.failures["tx_select"] = pika.exceptions.ChannelClosedByBroker(403, "ACCESS_REFUSED")
    with pytest.raises(ServerError):
        Publisher(SERVER, "q")
    assert found.opened == found.closed == 1


def test_a_channel_that_the_broker_ends_says_why(found: Broker) -> None:
    """Such as its limit for acknowledgements: who subscribes again gets the messages again."""
    subscription = Subscription(SERVER, "q", True)
    assert subscription.receive(0) == []
    said = "^queue q of RabbitMQ at h:5672: the broker has ended the channel: .* timed out$"
    found.failures["tx_commit"] = TIMED_OUT
    with pytest.raises(ServerUnavailable, match=said):
        subscription.acknowledge(1)
    found.end_channel(TIMED_OUT)
    for call in (lambda: subscription.receive(0), lambda: subscription.acknowledge(1)):
        with pytest.raises(ServerUnavailable, match=said):
            call()


def test_a_channel_that_is_closed_for_no_known_reason(found: Broker) -> None:
    subscription = Subscription(SERVER, "q", True)
    found.is_open = False
    with pytest.raises(ServerUnavailable, match="has ended the channel: the channel is closed$"):
        subscription.receive(0)


def test_what_is_published_and_refused_lasts(found: Broker) -> None:
    publisher = Publisher(SERVER, "q")
    found.failures["tx_commit"] = pika.exceptions.ChannelClosedByBroker(406, "message size too large")
    with pytest.raises(ServerError, match="too large") as caught:
        publisher.publish([b"a"])
    assert type(caught.value) is ServerError


@pytest.mark.parametrize(
    "server, secret",
    [
        (SERVER, "hunter2"),
        (RabbitMqServer(uri="amqp://ann:hunter2@h"), "hunter2"),
        (RabbitMqServer(uri="amqp://ann:hunt%2Fer2@h"), "hunt/er2"),
        (RabbitMqServer(uri="amqp://ann:hunt%2Fer2@h"), "hunt%2Fer2"),
    ],
)
def test_no_password_is_told(found: Broker, server: RabbitMqServer, secret: str) -> None:
    found.failures["tx_select"] = pika.exceptions.ChannelClosedByBroker(403, f"bad {secret}")
    with pytest.raises(ServerError, match=r"bad \*{6}"):
        Publisher(server, "q")


@pytest.mark.parametrize(
    "server",
    [
        RabbitMqServer(uri="amqp://ann:hunter2@h?heartbeat=abc"),
        RabbitMqServer(uri="amqp://ann:hunter2@h?other=1"),
        RabbitMqServer(uri="amqp://ann:hunter2@h?tcp_options=("),
        RabbitMqServer("h", password="hunter2", frame_max=1),
    ],
)
def test_settings_that_the_client_refuses(found: Broker, server: RabbitMqServer) -> None:
    said = "^RabbitMQ at h:5672: .*correct the connection's settings$"
    with pytest.raises(ServerError, match=said) as caught:
        Publisher(server, "q")
    assert type(caught.value) is ServerError and "hunter2" not in str(caught.value) and not found.opened
