"""From elements to messages, one at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from yarnflow.errors import ElementMismatch
from yarnflow.graph.connectors.messages import MessageFormat, MessageFormatKind
from yarnflow.spark.messages.csv_format import csv_writer
from yarnflow.spark.messages.json_format import json_writer
from yarnflow.spark.messages.reading import avro
from yarnflow.spark.messages.text_values import shown

WriteMessage = Callable[[Any], bytes]


def message_writer(form: MessageFormat) -> WriteMessage:
    """The writer of a format; it raises ElementMismatch for an element that the format cannot hold.

    Raises
    ------
    SchemaError
        It cannot have elements of its type.
    EnvironmentUnusable
        A library is missing.
    """
    write = _writer(form)

    def checked(value: Any) -> bytes:
        try:
            return write(value)
        except (TypeError, ValueError, LookupError, AttributeError) as error:
            raise ElementMismatch(
                f"element {shown(value)} is no {form.kind.value} message of {form.element_type!r} "
                f"({type(error).__name__}: {error}); map(…) it to that"
            ) from None

    return checked


def _writer(form: MessageFormat) -> WriteMessage:
    match form.kind:
        case MessageFormatKind.STRING:
            charset = form.options.get("charset", "UTF-8")
            return lambda value: _checked(value, str).encode(charset, "replace")
        case MessageFormatKind.BYTES:
            return lambda value: bytes(_checked(value, (bytes, bytearray)))
        case MessageFormatKind.FIELD:
            field = int(form.options["field"])
            return lambda row: bytes(_checked(row[field], (bytes, bytearray)))
        case MessageFormatKind.JSON:
            return json_writer(form)
        case MessageFormatKind.CSV:
            return csv_writer(form)
        case MessageFormatKind.AVRO:
            found: WriteMessage = avro(lambda module: module.avro_writer(form))
            return found


def _checked(value: Any, kind: Any) -> Any:
    if not isinstance(value, kind):
        raise TypeError(f"{type(value).__name__}")
    return value
