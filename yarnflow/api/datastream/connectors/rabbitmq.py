"""Queues of RabbitMQ.  PyFlink: ``pyflink.datastream.connectors.rabbitmq``.

The job's environment needs the client: ``pip install 'yarnflow[rabbitmq]'``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from yarnflow.api.building.definitions import columns
from yarnflow.api.common.serialization import DeserializationSchema, SerializationSchema
from yarnflow.api.datastream.connectors.base import Sink, Source
from yarnflow.errors import GraphError
from yarnflow.graph import operators
from yarnflow.graph.compatibility import differs, same_and
from yarnflow.graph.connectors.rabbitmq import RabbitMqServer, RabbitMqSink, RabbitMqSource
from yarnflow.graph.element_schema import element_schema
from yarnflow.graph.schema import Schema

#: AMQP has two bytes for these numbers
_LARGEST: Final = 65_535
#: bytes of AMQP's smallest frame, and of the client's largest
_FRAMES: Final = range(4_096, 131_072 + 1)
#: without a URI
_NEEDED: Final = ("set_host", "set_port", "set_virtual_host", "set_user_name", "set_password")


class RMQConnectionConfig:
    """Where the broker is; made by its :class:`Builder`."""

    def __init__(self, server: RabbitMqServer) -> None:
        self._server = server

    def get_host(self) -> str | None:
        """As it was set."""
        return self._server.host or None

    def get_port(self) -> int | None:
        """As it was set."""
        return None if self._server.uri else self._server.port

    def get_virtual_host(self) -> str | None:
        """As it was set."""
        return None if self._server.uri else self._server.virtual_host

    def get_user_name(self) -> str | None:
        """As it was set."""
        return self._server.user or None

    def get_password(self) -> str | None:
        """As it was set."""
        return self._server.password or None

    def get_uri(self) -> str | None:
        """As it was set."""
        return self._server.uri or None

    def get_network_recovery_interval(self) -> int:
        """Time between two tries to connect, ms."""
        return self._server.recovery_interval_ms

    def is_automatic_recovery(self) -> bool:
        """Whether the job connects again by itself."""
        return self._server.automatic_recovery

    @same_and("always: the queue is made again if it is gone")
    def is_topology_recovery(self) -> bool:
        """Whether the queue is made again if it is gone."""
        return True

    def get_connection_timeout(self) -> int:
        """How long the broker may take to answer, ms."""
        return self._server.connection_timeout_ms

    def get_requested_channel_max(self) -> int:
        """As it was set; 0 = the client's own."""
        return self._server.channel_max

    def get_requested_frame_max(self) -> int:
        """Bytes, as it was set; 0 = the client's own."""
        return self._server.frame_max

    def get_requested_heartbeat(self) -> int:
        """Seconds; 0 = none."""
        return self._server.heartbeat_s

    class Builder:
        """Says where the broker is."""

        def __init__(self) -> None:
            self._server = RabbitMqServer()
            self._set: set[str] = set()

        def set_port(self, port: int) -> RMQConnectionConfig.Builder:
            """The port: 5672, or 5671 with TLS."""
            if not 0 < port < 65536:
                raise GraphError(f"{port} is no port")
            return self._with("set_port", port=port)

        def set_host(self, host: str) -> RMQConnectionConfig.Builder:
            """The host."""
            return self._with("set_host", host=host)

        def set_virtual_host(self, vhost: str) -> RMQConnectionConfig.Builder:
            """The virtual host; the broker's first one is ``/``."""
            return self._with("set_virtual_host", virtual_host=vhost)

        def set_user_name(self, user_name: str) -> RMQConnectionConfig.Builder:
            """The user."""
            return self._with("set_user_name", user=user_name)

        def set_password(self, password: str) -> RMQConnectionConfig.Builder:
            """The password; it is part of the job that is submitted."""
            return self._with("set_password", password=password)

        def set_uri(self, uri: str) -> RMQConnectionConfig.Builder:
            """All in one: ``amqp://user:password@host:5672/virtual-host``, or ``amqps://…`` with TLS."""
            return self._with("set_uri", uri=uri)

        @differs("without effect: the queue is always made again if it is gone")
        def set_topology_recovery_enabled(
            self, topology_recovery_enabled: bool
        ) -> RMQConnectionConfig.Builder:
            """Whether the queue is made again if it is gone."""
            return self

        def set_requested_heartbeat(self, requested_heartbeat: int) -> RMQConnectionConfig.Builder:
            """Seconds, at most 65535; unless set, 60; 0 = none."""
            return self._number("set_requested_heartbeat", _LARGEST, heartbeat_s=requested_heartbeat)

        @same_and("from 4096 to 131072")
        def set_requested_frame_max(self, requested_frame_max: int) -> RMQConnectionConfig.Builder:
            """Bytes, from 4096 to 131072; 0 = the client's own."""
            if requested_frame_max and requested_frame_max not in _FRAMES:
                raise GraphError(
                    f"set_requested_frame_max({requested_frame_max!r}) must be 0, or from {_FRAMES[0]} to "
                    f"{_FRAMES[-1]}"
                )
            return self._number("set_requested_frame_max", frame_max=requested_frame_max)

        def set_requested_channel_max(self, requested_channel_max: int) -> RMQConnectionConfig.Builder:
            """Channels, at most 65535; 0 = the client's own."""
            return self._number("set_requested_channel_max", _LARGEST, channel_max=requested_channel_max)

        def set_network_recovery_interval(
            self, network_recovery_interval: int
        ) -> RMQConnectionConfig.Builder:
            """Time between two tries to connect, ms; unless set, 5000."""
            return self._number(
                "set_network_recovery_interval", recovery_interval_ms=network_recovery_interval
            )

        def set_connection_timeout(self, connection_timeout: int) -> RMQConnectionConfig.Builder:
            """How long the broker may take to answer, ms; unless set, 60000; 0 = for ever."""
            return self._number("set_connection_timeout", connection_timeout_ms=connection_timeout)

        def set_automatic_recovery(self, automatic_recovery: bool) -> RMQConnectionConfig.Builder:
            """Whether a job that was connected connects again by itself; unless set, it does.

            Otherwise, and where the broker is away when the job begins, the restart strategy decides.
            """
            return self._with("set_automatic_recovery", automatic_recovery=bool(automatic_recovery))

        @same_and("10000 unless set, and never without a limit: it bounds a micro-batch")
        def set_prefetch_count(self, prefetch_count: int) -> RMQConnectionConfig.Builder:
            """Messages that may be delivered and not acknowledged: at most 65535."""
            if not 0 < prefetch_count <= _LARGEST:
                raise GraphError(f"set_prefetch_count({prefetch_count}) must be from 1 to {_LARGEST}")
            return self._with("set_prefetch_count", prefetch_count=prefetch_count)

        def build(self) -> RMQConnectionConfig:
            """The configuration.

            Raises
            ------
            GraphError
                Neither the URI is set nor all that it stands for, or the URI is no address.
            """
            if "set_uri" not in self._set:
                missing = [name for name in _NEEDED if name not in self._set]
                if missing:
                    raise GraphError(f"a connection to RabbitMQ needs {', '.join(missing)}, or set_uri")
            self._server.check()
            return RMQConnectionConfig(self._server)

        def _number(
            self, call: str, largest: int | None = None, **setting: int
        ) -> RMQConnectionConfig.Builder:
            (value,) = setting.values()
            if type(value) is not int or value < 0 or (largest is not None and value > largest):
                limits = "0 or more" if largest is None else f"from 0 to {largest}"
                raise GraphError(f"{call}({value!r}) must be a whole number, {limits}")
            return self._with(call, **setting)

        def _with(self, call: str, **settings: Any) -> RMQConnectionConfig.Builder:
            self._server = replace(self._server, **settings)
            self._set.add(call)
            return self


@same_and(
    "one consumer, in the driver, whatever the parallelism; with correlation ids also what comes back long "
    "after a failure is left out"
)
class RMQSource(Source):
    """Messages of a queue; for ``add_source``.

    A message is acknowledged when the micro-batch that has it is committed.  What was delivered and not
    acknowledged when a driver or a connection ends comes again: at-least-once.  With correlation ids each is
    read once: exactly-once, if publishers give each message an id of its own.

    Parameters
    ----------
    connection_config : RMQConnectionConfig
    queue_name : str
        Made, durable, if it is not there.
    use_correlation_id : bool
        Messages have correlation ids by which those that come again are left out.
    deserialization_schema : DeserializationSchema
        What messages become.
    """

    name = "RabbitMQ Source"
    parallel = False

    def __init__(
        self,
        connection_config: RMQConnectionConfig,
        queue_name: str,
        use_correlation_id: bool,
        deserialization_schema: DeserializationSchema,
    ) -> None:
        _check_queue("RMQSource", queue_name)
        self._source = RabbitMqSource(
            connection_config._server, queue_name, deserialization_schema._read(), bool(use_correlation_id)
        )

    def operator(self) -> tuple[operators.Operator, Schema]:
        return self._source, element_schema(self._source.format.element_type)


@same_and("at-least-once: messages are persistent, and sent in transactions; Flink's are neither")
class RMQSink(Sink):
    """Messages to a queue; for ``add_sink``.  At-least-once.

    The messages of a subtask are in the queue before their micro-batch is committed; those of a batch that is
    done again are there again.

    Parameters
    ----------
    connection_config : RMQConnectionConfig
    queue_name : str
        Made, durable, if it is not there.
    serialization_schema : SerializationSchema
        How elements become messages.
    """

    name = "RabbitMQ Sink"

    def __init__(
        self,
        connection_config: RMQConnectionConfig,
        queue_name: str,
        serialization_schema: SerializationSchema,
    ) -> None:
        _check_queue("RMQSink", queue_name)
        self._sink = RabbitMqSink(connection_config._server, queue_name, serialization_schema._written())

    def operator(self, schema: Schema) -> operators.Operator:
        if schema.element_type is None:
            columns(schema)
        return self._sink


def _check_queue(call: str, queue_name: str) -> None:
    if not isinstance(queue_name, str) or not 0 < len(queue_name.encode()) < 256:
        raise GraphError(f"{call}: {queue_name!r} is no name of a queue, which has 1 to 255 bytes")


__all__ = ["RMQConnectionConfig", "RMQSink", "RMQSource"]
