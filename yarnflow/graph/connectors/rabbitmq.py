"""Queues of RabbitMQ that are read and written, as plain values.  Flink: ``RMQSource``, ``RMQSink``."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Final
from urllib.parse import unquote, urlsplit

from yarnflow.config.secrets import HIDDEN, masked_urls
from yarnflow.errors import GraphError
from yarnflow.graph.connectors.messages import MessageFormat

#: of the URI's schemes
_PORTS: Final = {"amqp": 5672, "amqps": 5671}
_QUOTED: Final = (
    "in user, password and virtual host / is %2F, ? is %3F, # is %23 and @ is %40, and a port is a number"
)


@dataclass(frozen=True, slots=True)
class RabbitMqServer:
    """Where the broker is.  Flink: ``RMQConnectionConfig``."""

    host: str = ""
    port: int = 5672
    virtual_host: str = "/"
    user: str = ""
    password: str = field(default="", repr=False)
    #: instead of all of these: ``amqps://user:password@host:5671/virtual-host``
    uri: str = field(default="", repr=False)
    #: 0 = none
    heartbeat_s: int = 60
    #: of connections and answers; 0 = none
    connection_timeout_ms: int = 60_000
    #: between two tries to connect
    recovery_interval_ms: int = 5_000
    #: a job that was connected connects again by itself; else its restart strategy decides
    automatic_recovery: bool = True
    #: messages that are delivered and not acknowledged
    prefetch_count: int = 10_000
    #: bytes; 0 = the client's own
    frame_max: int = 0
    #: 0 = the client's own
    channel_max: int = 0

    def check(self) -> None:
        """Raises GraphError if the URI is none."""
        reason = _reason_against(self.uri) if self.uri else ""
        if reason:
            raise GraphError(
                f"{_shown(self.uri)} is no address of RabbitMQ: {reason}; "
                "give amqp://user:password@host:5672/virtual-host, or amqps://… with TLS"
            )

    @property
    def where(self) -> str:
        """Host and port, and what is special of them, for people."""
        if not self.uri:
            return f"{self.host}:{self.port}{'' if self.virtual_host == '/' else f'/{self.virtual_host}'}"
        parts = urlsplit(self.uri)
        port = parts.port or _PORTS[parts.scheme]
        return f"{parts.hostname}:{port}{unquote(parts.path) if parts.path not in ('', '/', '/%2F') else ''}"

    @property
    def login(self) -> str:
        """The user's name."""
        return unquote(urlsplit(self.uri).username or "guest") if self.uri else self.user

    @property
    def secrets(self) -> list[str]:
        """What no error may show: the password as it is, and as the URI writes it."""
        quoted = (urlsplit(self.uri).password or "") if self.uri else ""
        return [found for found in dict.fromkeys((self.password, quoted, unquote(quoted))) if found]


def _reason_against(uri: str) -> str:
    """Why it is no address; empty = it is one."""
    try:
        parts = urlsplit(uri)
        port = parts.port
    except ValueError:
        return _QUOTED
    if parts.scheme not in _PORTS or not parts.hostname or port == 0:
        return "it needs amqp:// or amqps://, a host and, unless it is the usual one, a port"
    if "@" in f"{parts.path}{parts.query}{parts.fragment}" or "/" in parts.path[1:]:
        # what stands before it would be taken for host and port, and shown as such
        return _QUOTED
    if parts.username and parts.password is None:
        return "it has a user and no password"
    return ""


def _shown(uri: str) -> str:
    """An address that may be wrong at any place, without all that may be a password."""
    before, at, behind = uri.rpartition("@")
    if not at:
        return masked_urls(uri)
    scheme, found, _ = before.partition("://")
    return f"{scheme}://{HIDDEN}@{behind}" if found and scheme.isalnum() else f"{HIDDEN}@{behind}"


@dataclass(frozen=True, slots=True)
class RabbitMqSource:
    """Messages of a queue; acknowledged when their micro-batch is committed.  Flink: ``RMQSource``."""

    bounded: ClassVar[bool] = False
    read_at_once: ClassVar[bool] = False

    server: RabbitMqServer
    queue: str
    format: MessageFormat
    #: messages that come twice are known by it
    use_correlation_id: bool = False

    @property
    def where(self) -> str:
        """What is read, for people."""
        return f"queue {self.queue} of RabbitMQ at {self.server.where}"


@dataclass(frozen=True, slots=True)
class RabbitMqSink:
    """Messages to a queue.  At-least-once.  Flink: ``RMQSink``."""

    server: RabbitMqServer
    queue: str
    value: MessageFormat

    @property
    def where(self) -> str:
        """What is written, for people."""
        return f"queue {self.queue} of RabbitMQ at {self.server.where}"
