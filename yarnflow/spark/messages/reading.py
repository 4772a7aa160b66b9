"""From messages to elements, a block at a time.

Decides what becomes of messages that cannot be read: they go to a side output, are left out where the
format ignores errors, or fail the job by name.  A part of a message that cannot be read is None where the
format ignores errors.  Messages without a value, or with JSON's ``null``, are left out, as
Flink does.
"""

from __future__ import annotations

import codecs
from collections.abc import Callable
from typing import Any, Final, Protocol

import pyarrow as pa

from yarnflow.errors import EnvironmentUnusable, MalformedMessage, SchemaError
from yarnflow.graph.connectors.kafka import KafkaSource
from yarnflow.graph.connectors.messages import MALFORMED_MESSAGE, MessageFormat, MessageFormatKind
from yarnflow.graph.connectors.rabbitmq import RabbitMqSource
from yarnflow.operators.elements import Chunk, SourceChunk
from yarnflow.operators.row import make_row
from yarnflow.spark.messages.csv_format import CsvReader
from yarnflow.spark.messages.json_format import JsonReader
from yarnflow.spark.messages.text_values import Lenient, Unreadable

#: what is read of a message of Kafka's beside its value: where it is, and its time
PLACE_COLUMNS: Final = ("topic", "partition", "offset", "timestamp")
#: read as well where messages that cannot be read go to a side output
KEY_COLUMN: Final = "key"
_NO_PLACE: Final = ("value", "timestamp")
_WRITTEN_ALONE: Final = "is for writing alone"


class MessageReader(Protocol):
    """Reads messages of one format.

    Attributes
    ----------
    lenient : Lenient or None
        Counts parts that are None because they could not be read, where the format ignores errors.
    """

    lenient: Lenient | None

    def block(self, messages: pa.Array) -> list[Any] | None:
        """An element for each message; None if they have to be read one by one."""

    def one(self, message: bytes) -> Any:
        """The element of one message; None = it has none.  Raises Unreadable."""


class _BytesReader:
    lenient: Lenient | None = None

    def block(self, messages: pa.Array) -> list[Any] | None:
        found: list[Any] = messages.to_pylist()
        return found

    def one(self, message: bytes) -> Any:
        return message


class _TextReader:
    """Text; what is not in the charset is replaced, as Java does."""

    lenient: Lenient | None = None

    def __init__(self, charset: str) -> None:
        self._decode = codecs.getdecoder(charset)

    def block(self, messages: pa.Array) -> list[Any] | None:
        return [self.one(message) for message in messages.to_pylist()]

    def one(self, message: bytes) -> Any:
        return self._decode(message, "replace")[0]


def message_reader(form: MessageFormat) -> MessageReader:
    """The reader of a format.

    Raises
    ------
    SchemaError
        It cannot have elements of its type.
    EnvironmentUnusable
        A library is missing.
    """
    match form.kind:
        case MessageFormatKind.STRING:
            return _TextReader(form.options.get("charset", "UTF-8"))
        case MessageFormatKind.BYTES:
            return _BytesReader()
        case MessageFormatKind.JSON:
            return JsonReader(form)
        case MessageFormatKind.CSV:
            return CsvReader(form)
        case MessageFormatKind.AVRO:
            reader: MessageReader = avro(lambda module: module.AvroReader(form))
            return reader
    raise SchemaError(f"the format {form.kind.value} {_WRITTEN_ALONE}")


def avro(make: Callable[[Any], Any]) -> Any:
    """Something of the Avro format, whose library only those need who use it."""
    try:
        from yarnflow.spark.messages import avro_format
    except ImportError:
        raise EnvironmentUnusable(
            "Avro messages need the library fastavro, which is not here; add it to the job's environment: "
            "pip install 'yarnflow[avro]'"
        ) from None
    return make(avro_format)


def malformed_output(source: KafkaSource | RabbitMqSource) -> str:
    """Id of the side output for messages that cannot be read; empty = there is none."""
    return source.malformed if isinstance(source, KafkaSource) else ""


class MessageChunks:
    """From Arrow batches of messages to chunks of elements with the messages' times.

    Batches have the column ``value``, ``timestamp`` if messages have times, and others that say where a
    message is: an error names them.

    Parameters
    ----------
    form : MessageFormat
        How they are written.
    malformed : str
        Id of the side output for those that cannot be read; batches have the column ``key`` then.  Empty =
        there is none.
    """

    def __init__(self, form: MessageFormat, malformed: str = "") -> None:
        self._form = form
        self._malformed_tag = malformed
        self._reader: MessageReader | None = None

    def __getstate__(self) -> tuple[MessageFormat, str]:
        return self._form, self._malformed_tag

    def __setstate__(self, state: tuple[MessageFormat, str]) -> None:
        (self._form, self._malformed_tag), self._reader = state, None

    def __call__(self, batch: pa.RecordBatch) -> Chunk:
        reader, batch = self._opened(batch)
        messages = batch.column("value")
        times = milliseconds(batch.column("timestamp")) if "timestamp" in batch.schema.names else None
        values = reader.block(messages)
        if values is not None:
            return Chunk(values, times)
        return self._one_by_one(reader, messages.to_pylist(), times, batch)

    def columns(self, batch: pa.RecordBatch) -> pa.Table | None:
        """A row for each message of a batch, without Python objects; None where the format needs those."""
        reader, batch = self._opened(batch)
        return reader.columns(batch.column("value")) if isinstance(reader, JsonReader) else None

    def _opened(self, batch: pa.RecordBatch) -> tuple[MessageReader, pa.RecordBatch]:
        if self._reader is None:
            self._reader = message_reader(self._form)
        if batch.column("value").null_count:
            batch = batch.filter(batch.column("value").is_valid())
        return self._reader, batch

    def _one_by_one(
        self,
        reader: MessageReader,
        messages: list[bytes],
        times: list[int | None] | None,
        batch: pa.RecordBatch,
    ) -> Chunk:
        values: list[Any] = []
        kept: list[int | None] = []
        malformed: list[tuple[int, Unreadable]] = []
        errors = 0
        for number, message in enumerate(messages):
            try:
                value = reader.one(message)
            except Unreadable as error:
                errors += 1
                if self._malformed_tag:
                    malformed.append((number, error))
                elif not self._form.ignore_errors:
                    raise self._malformed(batch, number, error) from None
                continue
            if reader.lenient is not None and reader.lenient.take():
                errors += 1
            if value is not None:
                values.append(value)
                if times is not None:
                    kept.append(times[number])
        elements_times = None if times is None else kept
        if not errors:
            return Chunk(values, elements_times)
        sides = {self._malformed_tag: self._aside(batch, times, malformed)} if malformed else {}
        return SourceChunk(values, elements_times, sides=sides, errors=errors)

    @staticmethod
    def _aside(
        batch: pa.RecordBatch, times: list[int | None] | None, malformed: list[tuple[int, Unreadable]]
    ) -> Chunk:
        """Rows of MALFORMED_MESSAGE, with the messages' times."""
        assert times is not None, "messages of Kafka have times"
        read = batch.select(["topic", "partition", "offset", KEY_COLUMN, "value"])
        rows = []
        for number, error in malformed:
            topic, partition, offset, key, value = (column[number].as_py() for column in read.columns)
            found = [topic, partition, offset, times[number], key, value, str(error)]
            rows.append(make_row(MALFORMED_MESSAGE.get_field_names(), found))
        return Chunk(rows, [times[number] for number, _ in malformed])

    def _malformed(self, batch: pa.RecordBatch, number: int, error: Unreadable) -> MalformedMessage:
        place = ", ".join(
            f"{name} {batch.column(name)[number].as_py()}"
            for name in batch.schema.names
            if name not in _NO_PLACE
        )
        # of Kafka's source alone
        aside = "set_malformed_output(tag) of the source, " if "offset" in batch.schema.names else ""
        return MalformedMessage(
            f"{place}: no {self._form.kind.value} message of {self._form.element_type!r}: {error}; "
            f"{aside}let the format ignore parse errors, or begin behind it"
        )


def milliseconds(column: pa.Array) -> list[int | None]:
    """A timestamp column as milliseconds since the epoch; None where a message has no time."""
    micros: list[int | None] = column.cast(pa.timestamp("us", tz="UTC")).cast(pa.int64()).to_pylist()
    return [None if time_us is None or time_us < 0 else time_us // 1000 for time_us in micros]
