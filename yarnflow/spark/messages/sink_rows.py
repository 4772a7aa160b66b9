"""From elements to the rows that sinks of other systems write, in workers: the only list of it.

A row is what a writer needs of an element and nothing more, so whoever writes knows no formats and calls no
functions of the program.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, Protocol

import pyarrow as pa

from yarnflow.graph.connectors.elasticsearch import ElasticsearchSink
from yarnflow.graph.connectors.kafka import KafkaSink
from yarnflow.graph.connectors.rabbitmq import RabbitMqSink
from yarnflow.graph.connectors.redis import RedisSink
from yarnflow.graph.connectors.sinks import SocketSink
from yarnflow.spark.messages.documents import DOCUMENT_DDL, DocumentMaker
from yarnflow.spark.messages.records import RECORD_DDL, RecordMaker
from yarnflow.spark.messages.redis_commands import COMMAND_DDL, CommandMaker
from yarnflow.spark.messages.writing import message_writer

#: elements of one batch
_BATCH_ROWS: Final = 10_000
_MESSAGE_DDL: Final = "value binary"

#: from a partition of blocks to what these hold
ReadPayloads = Callable[[Iterable[pa.RecordBatch]], Iterator[bytes]]


class RowMaker(Protocol):
    """Makes the rows of one sink."""

    def batch(self, values: list[Any], times: list[int | None] | None) -> pa.RecordBatch:
        """Rows of elements and their times, ms since the epoch."""


class MessageMaker:
    """One column, ``value``: the elements in a format."""

    def __init__(self, sink: RabbitMqSink | SocketSink) -> None:
        self._write = message_writer(sink.value)

    def batch(self, values: list[Any], times: list[int | None] | None) -> pa.RecordBatch:
        return pa.RecordBatch.from_arrays(
            [pa.array(list(map(self._write, values)), pa.binary())], names=["value"]
        )


_MAKERS: Final[dict[type, tuple[Callable[[Any], RowMaker], str]]] = {
    KafkaSink: (RecordMaker, RECORD_DDL),
    RabbitMqSink: (MessageMaker, _MESSAGE_DDL),
    RedisSink: (CommandMaker, COMMAND_DDL),
    ElasticsearchSink: (DocumentMaker, DOCUMENT_DDL),
    SocketSink: (MessageMaker, _MESSAGE_DDL),
}
#: sinks that have a maker
MADE_FROM_ELEMENTS: Final = tuple(_MAKERS)


def row_maker(sink: object) -> RowMaker:
    """The maker of a sink's rows.

    Raises
    ------
    SchemaError
        Its format cannot have elements of its type.
    EnvironmentUnusable
        A library is missing.
    """
    make, _ = _MAKERS[type(sink)]
    return make(sink)


def row_ddl(sink: object) -> str:
    """The columns of a sink's rows."""
    return _MAKERS[type(sink)][1]


class RowsOfElements:
    """From blocks of elements to rows."""

    def __init__(self, sink: object, read: ReadPayloads) -> None:
        self._sink = sink
        self._read = read

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        maker = row_maker(self._sink)
        for payload in self._read(batches):
            # written by the level before in this very micro-batch
            _, values, times, _ = pickle.loads(payload)  # noqa: S301
            for start in range(0, len(values), _BATCH_ROWS):
                end = start + _BATCH_ROWS
                yield maker.batch(values[start:end], None if times is None else times[start:end])
