"""From elements to Kafka's messages, in workers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pyarrow as pa

from yarnflow.errors import ElementMismatch
from yarnflow.graph.closures import load_closure
from yarnflow.graph.connectors.kafka import KafkaSink
from yarnflow.spark.messages.writing import message_writer

#: times are ms since the epoch; None: the producer's
RECORD_DDL: Final = "topic string, key binary, value binary, timestamp bigint"
RECORD_ARROW: Final = pa.schema(
    [("topic", pa.string()), ("key", pa.binary()), ("value", pa.binary()), ("timestamp", pa.int64())]
)


class RecordMaker:
    """Makes batches of messages."""

    def __init__(self, sink: KafkaSink) -> None:
        self._value = message_writer(sink.value)
        self._key = None if sink.key is None else message_writer(sink.key)
        self._topic = sink.topic
        self._select: Callable[[Any], Any] | None = None
        if sink.topic_selector is not None:
            found = load_closure(sink.topic_selector)
            self._select = getattr(found, "apply", found)

    def batch(self, values: list[Any], times: list[int | None] | None) -> pa.RecordBatch:
        """Messages of elements and their times, ms since the epoch."""
        count, write_key = len(values), self._key
        topics = [self._topic] * count if self._select is None else self._selected(self._select, values)
        keys = [None] * count if write_key is None else [write_key(value) for value in values]
        # Kafka takes no time before 1970
        stamps = [None] * count if times is None else [t if t is None or t >= 0 else None for t in times]
        columns = [topics, keys, list(map(self._value, values)), stamps]
        arrays = [pa.array(column, field.type) for column, field in zip(columns, RECORD_ARROW, strict=True)]
        return pa.RecordBatch.from_arrays(arrays, schema=RECORD_ARROW)

    @staticmethod
    def _selected(select: Callable[[Any], Any], values: list[Any]) -> list[str]:
        topics = [select(value) for value in values]
        for topic in topics:
            if not isinstance(topic, str) or not topic:
                raise ElementMismatch(
                    f"the topic selector returned {topic!r}; it must return the name of a topic"
                )
        return topics
