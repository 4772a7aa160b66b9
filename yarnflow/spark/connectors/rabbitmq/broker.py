"""Connections to RabbitMQ.  The only importer of pika.

Decides which of its errors may pass, and that what is sent is confirmed: acknowledgements and messages go in
transactions, of which the broker says when they are done.  They are no more than that: of one that was broken
off a part may have been done.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final, NoReturn

import pika
import pika.exceptions

from yarnflow.config.secrets import masked_text
from yarnflow.errors import ServerError, ServerUnavailable
from yarnflow.graph.connectors.rabbitmq import RabbitMqServer
from yarnflow.spark.connectors.rabbitmq.deliveries import Message

# it tells everything twice, and we raise it
logging.getLogger("pika").setLevel(logging.CRITICAL)

#: of messages: they survive the broker's restart if their queue does
_PERSISTENT: Final = 2
#: AMQP's codes: what the broker itself has ended, or cannot do at the moment
_PASSING: Final = frozenset({311, 312, 313, 320, 501, 504, 506, 541})
_NOT_FOUND: Final = 404


class Subscription:
    """Messages of a queue, each to be acknowledged.

    Parameters
    ----------
    server : RabbitMqServer
    queue : str
        Made, durable, if it is not there.
    in_transactions : bool
        An acknowledgement is sure once :meth:`acknowledge` returns.

    Raises
    ------
    ServerUnavailable
        The broker does not answer.
    ServerError
        It refuses the user, the virtual host or the queue.
    """

    def __init__(self, server: RabbitMqServer, queue: str, in_transactions: bool) -> None:
        self._server = server
        self._where = f"queue {queue} of RabbitMQ at {server.where}"
        self._in_transactions = in_transactions
        self._messages: list[Message] = []
        self._canceled = False
        self._connection, self._channel = open_channel(server, queue)
        with _closed_if_it_fails(self._connection), told(server, self._where):
            self._channel.basic_qos(prefetch_count=server.prefetch_count)
            if in_transactions:
                self._channel.tx_select()
            self._channel.add_on_cancel_callback(self._cancel)
            self._channel.basic_consume(queue, self._take)

    def receive(self, wait_s: float) -> list[Message]:
        """What has come; waits so long for the first."""
        with self._told():
            self._connection.process_data_events(wait_s)
            self._check_open()
        if self._canceled:
            raise ServerUnavailable(f"{self._where}: the broker delivers no more of it; is it still there?")
        found, self._messages = self._messages, []
        return found

    def acknowledge(self, tag: int) -> None:
        """All messages up to this one are done."""
        with self._told():
            self._check_open()
            self._channel.basic_ack(tag, multiple=True)
            if self._in_transactions:
                self._channel.tx_commit()

    def close(self) -> None:
        """What is not acknowledged is delivered again, to whoever reads the queue."""
        with suppress(Exception):
            self._connection.close()

    def _take(self, channel: Any, method: Any, properties: Any, body: bytes) -> None:
        self._messages.append(Message(method.delivery_tag, body, properties.correlation_id or ""))

    def _cancel(self, method: Any) -> None:
        self._canceled = True

    def _check_open(self) -> None:
        """Of a channel that the broker has ended pika tells neither that nor why."""
        if not self._channel.is_open:
            reason: Exception | None = getattr(self._channel, "_closing_reason", None)
            raise reason or pika.exceptions.ChannelWrongStateError("the channel is closed")

    @contextmanager
    def _told(self) -> Iterator[None]:
        with told(self._server, self._where, subscribed=True):
            yield


class Publisher:
    """Sends messages to a queue.

    Parameters
    ----------
    server : RabbitMqServer
    queue : str
        Made, durable, if it is not there.
    """

    def __init__(self, server: RabbitMqServer, queue: str) -> None:
        self._server = server
        self._queue = queue
        self._where = f"queue {queue} of RabbitMQ at {server.where}"
        self._connection, self._channel = open_channel(server, queue)
        with _closed_if_it_fails(self._connection), told(server, self._where):
            self._channel.tx_select()

    def publish(self, bodies: Sequence[bytes]) -> None:
        """Send messages; all are in the queue once this returns.  If it raises, some of them may be."""
        properties = pika.BasicProperties(delivery_mode=_PERSISTENT)
        with told(self._server, self._where):
            for body in bodies:
                self._channel.basic_publish("", self._queue, body, properties)
            self._channel.tx_commit()

    def close(self) -> None:
        """What was not committed is in no queue."""
        with suppress(Exception):
            self._connection.close()


def open_channel(server: RabbitMqServer, queue: str) -> tuple[Any, Any]:
    """A connection and a channel; the queue is there.

    Raises
    ------
    ServerUnavailable, ServerError
    """
    where = f"RabbitMQ at {server.where}"
    try:
        parameters = _parameters(server)
    except Exception as error:
        # what a URI says behind its question mark; pika's texts have it in them
        said = masked_text(_words(error), server.secrets)
        raise ServerError(f"{where}: {said}; correct the connection's settings") from None
    with told(server, where):
        connection = pika.BlockingConnection(parameters)
    with _closed_if_it_fails(connection), told(server, f"queue {queue} of {where}"):
        channel = connection.channel()
        try:
            channel.queue_declare(queue, passive=True)
        except pika.exceptions.ChannelClosedByBroker as error:
            if error.reply_code != _NOT_FOUND:
                raise
            channel = connection.channel()
            channel.queue_declare(queue, durable=True)
    return connection, channel


@contextmanager
def _closed_if_it_fails(connection: Any) -> Iterator[None]:
    """For what follows a connection that nobody has yet."""
    try:
        yield
    except BaseException:
        with suppress(Exception):
            connection.close()
        raise


def _parameters(server: RabbitMqServer) -> Any:
    if server.uri:
        parameters = pika.URLParameters(server.uri)
    else:
        parameters = pika.ConnectionParameters(
            host=server.host,
            port=server.port,
            virtual_host=server.virtual_host,
            credentials=pika.PlainCredentials(server.user, server.password),
        )
    timeout_s = server.connection_timeout_ms / 1000 or None
    parameters.socket_timeout = timeout_s
    parameters.stack_timeout = timeout_s
    parameters.blocked_connection_timeout = timeout_s
    parameters.heartbeat = server.heartbeat_s
    # whoever calls tries again
    parameters.connection_attempts = 1
    if server.frame_max:
        parameters.frame_max = server.frame_max
    if server.channel_max:
        parameters.channel_max = server.channel_max
    parameters.client_properties = {"connection_name": "yarnflow"}
    return parameters


@contextmanager
def told(server: RabbitMqServer, where: str, subscribed: bool = False) -> Iterator[None]:
    """What pika raises, by our errors.

    Parameters
    ----------
    where : str
        What it is about, for people.
    subscribed : bool
        Messages were delivered: whatever has ended the channel may pass, such as the broker's limit for
        acknowledgements, and who subscribes again hears of what lasts.
    """
    try:
        yield
    except (pika.exceptions.AMQPError, OSError) as error:
        _raise(error, server, where, subscribed)


def _raise(error: Exception, server: RabbitMqServer, where: str, subscribed: bool) -> NoReturn:
    error = _cause(error)
    said = masked_text(_words(error), server.secrets)
    if subscribed and isinstance(error, pika.exceptions.AMQPChannelError):
        raise ServerUnavailable(f"{where}: the broker has ended the channel: {said}") from None
    if isinstance(
        error, (pika.exceptions.ProbableAuthenticationError, pika.exceptions.AuthenticationError)
    ):
        raise ServerError(f"{where} refuses user {server.login}: wrong name or password ({said})") from None
    if isinstance(error, pika.exceptions.ProbableAccessDeniedError):
        raise ServerError(
            f"{where} refuses the virtual host: it is not there, or user {server.login} may not use it "
            f"({said})"
        ) from None
    code = getattr(error, "reply_code", 0)
    if isinstance(error, pika.exceptions.ChannelClosedByBroker) and code not in _PASSING:
        raise ServerError(f"{where}: {said}") from None
    if isinstance(error, pika.exceptions.ConnectionClosedByBroker) and code not in _PASSING:
        raise ServerError(f"{where}: {said}") from None
    raise ServerUnavailable(f"{where}: {said}; see whether it runs") from None


def _cause(error: Exception) -> Exception:
    """What a connection that was not made has failed with."""
    inner = error.args[0] if error.args else None
    nested = getattr(inner, "exceptions", None)
    if nested:
        return _cause(nested[-1])
    found = getattr(inner, "exception", inner)
    return _cause(found) if isinstance(found, Exception) else error


def _words(error: Exception) -> str:
    text = getattr(error, "reply_text", "") or getattr(error, "strerror", "") or str(error)
    return " ".join(str(text).split()) or type(error).__name__
