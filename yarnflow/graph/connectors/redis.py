"""Keys of Redis that are written, as plain values.  Flink (Bahir): ``RedisSink``."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from yarnflow.graph.closures import Closure


@dataclass(frozen=True, slots=True)
class RedisServer:
    """Where Redis is.  Bahir: ``FlinkJedisPoolConfig``."""

    host: str
    port: int = 6379
    database: int = 0
    #: empty = the one there always is
    user: str = ""
    password: str = field(default="", repr=False)
    #: of connections and answers
    timeout_ms: int = 2_000
    tls: bool = False

    @property
    def where(self) -> str:
        """For people."""
        return f"Redis at {self.host}:{self.port}{f'/{self.database}' if self.database else ''}"


class RedisCommand(Enum):
    """What is done with key and value of an element, as Redis calls it."""

    SET = "SET"
    #: with a time to live
    SETEX = "SETEX"
    INCRBY = "INCRBY"
    DECRBY = "DECRBY"
    LPUSH = "LPUSH"
    RPUSH = "RPUSH"
    SADD = "SADD"
    PFADD = "PFADD"
    #: to the channel that the key names
    PUBLISH = "PUBLISH"
    #: the key is a field of the additional key's hash
    HSET = "HSET"
    HINCRBY = "HINCRBY"
    #: the key is a member of the additional key's sorted set, the value its score
    ZADD = "ZADD"
    ZINCRBY = "ZINCRBY"
    ZREM = "ZREM"

    @property
    def has_additional_key(self) -> bool:
        """Whether it is about a part of another key."""
        return self.value.startswith(("H", "Z"))


@dataclass(frozen=True, slots=True)
class RedisSink:
    """A command for each element, those of a batch in one transaction.  Exactly-once."""

    server: RedisServer
    command: RedisCommand
    #: an object with ``get_key_from_data`` and ``get_value_from_data``
    mapper: Closure
    additional_key: str = ""
    #: SETEX
    ttl_s: int = 0
    #: how often a server that does not answer is asked again, before the job restarts
    max_retries: int = 3

    @property
    def where(self) -> str:
        """What is written, for people."""
        return self.server.where
