"""Keys of Redis, exactly once.  PyFlink has nothing like it; names are those of Flink's connector in Bahir.

The job's environment needs the client: ``pip install 'yarnflow[redis]'``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from yarnflow.api.building.definitions import columns
from yarnflow.api.datastream.connectors.base import Sink
from yarnflow.api.origin import definition_origin
from yarnflow.errors import GraphError
from yarnflow.graph import operators
from yarnflow.graph.closures import make_closure
from yarnflow.graph.connectors.redis import RedisCommand, RedisServer
from yarnflow.graph.connectors.redis import RedisSink as RedisSinkOperator
from yarnflow.graph.schema import Schema


class RedisConfig:
    """Where Redis is: one server, or the master of a group; a cluster of shards has no transactions.

    Parameters
    ----------
    host : str
    port : int
    database : int
        Number of the database.
    user, password : str
        Part of the job that is submitted.
    timeout_ms : int
        How long the server may take to answer.
    tls : bool
        Encrypted, and the server's certificate is checked.
    """

    def __init__(
        self,
        host: str,
        port: int = 6379,
        database: int = 0,
        user: str = "",
        password: str = "",
        timeout_ms: int = 2_000,
        tls: bool = False,
    ) -> None:
        if not host or not 0 < port < 65536 or database < 0 or timeout_ms < 1:
            raise GraphError(
                f"RedisConfig({host!r}, {port}, {database}, …): there is no such server; give a host, a port "
                "from 1 to 65535, a database from 0 on and a time above 0"
            )
        self._server = RedisServer(host, port, database, user, password, timeout_ms, tls)


class RedisCommandDescription:
    """What is done with key and value of each element.

    Parameters
    ----------
    command : RedisCommand
    additional_key : str
        Name of the hash (``HSET``, ``HINCRBY``) or of the sorted set (``ZADD``, ``ZINCRBY``, ``ZREM``).
    additional_ttl : int
        Seconds to live (``SETEX``).

    Raises
    ------
    GraphError
        The command needs what is missing, or has no use for what is there.
    """

    def __init__(self, command: RedisCommand, additional_key: str = "", additional_ttl: int = 0) -> None:
        if command.has_additional_key != bool(additional_key):
            wanted = "needs" if command.has_additional_key else "has no"
            raise GraphError(f"Redis' {command.value} {wanted} additional_key")
        if (command is RedisCommand.SETEX) != (additional_ttl > 0):
            wanted = "needs" if command is RedisCommand.SETEX else "has no"
            raise GraphError(f"Redis' {command.value} {wanted} additional_ttl, whole seconds above 0")
        self._command = command
        self._additional_key = additional_key
        self._additional_ttl = additional_ttl


class RedisMapper(ABC):
    """Says which command each element becomes."""

    @abstractmethod
    def get_command_description(self) -> RedisCommandDescription:
        """The command; asked once, where the program is built."""

    @abstractmethod
    def get_key_from_data(self, data: Any) -> Any:
        """The key: text, bytes or a number."""

    @abstractmethod
    def get_value_from_data(self, data: Any) -> Any:
        """The value: text, bytes or a number; ``ZREM`` has none."""


class RedisSink(Sink):
    """A command for each element; for ``sink_to``.  Exactly-once.

    The commands of a micro-batch are one transaction (``MULTI``), in which Redis notes, under the key
    ``yarnflow:batches:…``, that the batch is there: a batch that is done again is not written again, so
    counters and lists are right as well.  One subtask writes all of a batch.

    Parameters
    ----------
    config : RedisConfig
    mapper : RedisMapper
    max_retries : int
        How often a server that does not answer is asked again, after 1, 2, 3 … seconds.
    """

    name = "Redis Sink"

    def __init__(self, config: RedisConfig, mapper: RedisMapper, max_retries: int = 3) -> None:
        if not isinstance(mapper, RedisMapper):
            raise GraphError(f"RedisSink: {mapper!r} is no RedisMapper")
        if type(max_retries) is not int or max_retries < 0:
            raise GraphError(f"RedisSink: max_retries={max_retries!r} must be a whole number, 0 or more")
        self._server = config._server
        self._mapper = mapper
        self._description = mapper.get_command_description()
        self._max_retries = max_retries

    def operator(self, schema: Schema) -> operators.Operator:
        if schema.element_type is None:
            columns(schema)
        description = self._description
        return RedisSinkOperator(
            self._server,
            description._command,
            make_closure(self._mapper, definition_origin(self._mapper, "RedisSink")),
            description._additional_key,
            description._additional_ttl,
            self._max_retries,
        )


__all__ = ["RedisCommand", "RedisCommandDescription", "RedisConfig", "RedisMapper", "RedisSink"]
