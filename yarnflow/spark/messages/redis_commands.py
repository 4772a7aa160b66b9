"""From elements to Redis' commands, in workers."""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa

from yarnflow.errors import ElementMismatch
from yarnflow.graph.closures import load_closure
from yarnflow.graph.connectors.redis import RedisCommand, RedisSink
from yarnflow.spark.messages.text_values import shown

COMMAND_DDL: Final = "arguments array<binary>"
_SCHEMA: Final = pa.schema([("arguments", pa.list_(pa.binary()))])


class CommandMaker:
    """One column, ``arguments``: a command's name and what follows it."""

    def __init__(self, sink: RedisSink) -> None:
        self._mapper: Any = load_closure(sink.mapper)
        self._command = sink.command
        self._additional_key = sink.additional_key.encode()
        self._ttl = str(sink.ttl_s).encode()

    def batch(self, values: list[Any], times: list[int | None] | None) -> pa.RecordBatch:
        """Commands of elements."""
        commands = [self._arguments(value) for value in values]
        return pa.RecordBatch.from_arrays([pa.array(commands, _SCHEMA.field(0).type)], schema=_SCHEMA)

    def _arguments(self, element: Any) -> list[bytes]:
        name = self._command.value.encode()
        key = _bytes(self._mapper.get_key_from_data(element), "key", element)
        if self._command is RedisCommand.ZREM:
            return [name, self._additional_key, key]
        value = _bytes(self._mapper.get_value_from_data(element), "value", element)
        match self._command:
            case RedisCommand.SETEX:
                return [name, key, self._ttl, value]
            case RedisCommand.HSET | RedisCommand.HINCRBY:
                return [name, self._additional_key, key, value]
            case RedisCommand.ZADD | RedisCommand.ZINCRBY:
                return [name, self._additional_key, value, key]
        return [name, key, value]


def _bytes(found: Any, what: str, element: Any) -> bytes:
    if isinstance(found, str):
        return found.encode()
    if isinstance(found, (bytes, bytearray)):
        return bytes(found)
    if isinstance(found, (int, float)) and not isinstance(found, bool):
        return repr(found).encode()
    raise ElementMismatch(
        f"get_{what}_from_data() gave {shown(found)} for element {shown(element)}; Redis takes text, bytes "
        "and numbers"
    )
