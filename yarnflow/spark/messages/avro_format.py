"""Avro's binary form of records as rows and back.  Flink counterpart: ``AvroRowDeserializationSchema``."""

from __future__ import annotations

import datetime as dt
import io
import json
from collections.abc import Callable
from typing import Any

import fastavro
import pyarrow as pa

from yarnflow.errors import SchemaError
from yarnflow.graph.connectors.messages import MessageFormat
from yarnflow.graph.type_info import ListTypeInfo, MapTypeInfo, RowTypeInfo, TypeInfo
from yarnflow.operators.row import Row, make_row
from yarnflow.spark.messages.text_values import Lenient, Unreadable, shown, values_of

_Convert = Callable[[Any], Any]


class AvroReader:
    """Implements :class:`~yarnflow.spark.messages.reading.MessageReader`."""

    lenient: Lenient | None = None

    def __init__(self, form: MessageFormat) -> None:
        self._schema = fastavro.parse_schema(json.loads(form.options["schema"]))
        self._convert = _from_avro(form.element_type) or (lambda value: value)

    def block(self, messages: pa.Array) -> list[Any] | None:
        # records say nothing of their lengths: there is no way to read several at once
        return None

    def one(self, message: bytes) -> Any:
        stream = io.BytesIO(message)
        try:
            found = fastavro.schemaless_reader(stream, self._schema, None)
        except (EOFError, ValueError, LookupError, TypeError, OverflowError) as error:
            reason = f"{type(error).__name__}: {error}" if str(error) else "it ends too early"
            raise Unreadable(f"{reason} in {shown(message)}") from None
        if stream.read(1):
            raise Unreadable(f"bytes are left over behind the record in {shown(message)}")
        return self._convert(found)


def _from_avro(kind: TypeInfo) -> _Convert | None:
    """From what fastavro gives to an element's part; None = the same."""
    if isinstance(kind, RowTypeInfo):
        names = kind.get_field_names()
        inner = [(name, _from_avro(field)) for name, field in zip(names, kind.field_types, strict=True)]

        def row(found: Any) -> Row:
            return make_row(
                names,
                [
                    found[name] if convert is None or found[name] is None else convert(found[name])
                    for name, convert in inner
                ],
            )

        return row
    if isinstance(kind, ListTypeInfo):
        element = _from_avro(kind.elem_type)
        if element is not None:
            one = element
            return lambda values: [None if value is None else one(value) for value in values]
    if isinstance(kind, MapTypeInfo):
        value_of = _from_avro(kind.value_type_info)
        if value_of is not None:
            part = value_of
            return lambda found: {k: None if value is None else part(value) for k, value in found.items()}
    return _without_zone


def _without_zone(value: Any) -> Any:
    return value.replace(tzinfo=None) if isinstance(value, (dt.datetime, dt.time)) else value


def avro_writer(form: MessageFormat) -> Callable[[Any], bytes]:
    """From rows to records."""
    if not isinstance(form.element_type, RowTypeInfo):
        raise SchemaError(f"Avro records are rows, not {form.element_type!r}")
    schema = fastavro.parse_schema(json.loads(form.options["schema"]))
    convert = _to_avro(form.element_type)

    def write(value: Any) -> bytes:
        stream = io.BytesIO()
        fastavro.schemaless_writer(stream, schema, convert(value))
        return stream.getvalue()

    return write


def _to_avro(kind: TypeInfo) -> _Convert:
    if isinstance(kind, RowTypeInfo):
        names = kind.get_field_names()
        inner = [_to_avro(field) for field in kind.field_types]

        def record(row: Any) -> dict[str, Any]:
            values = values_of(row, names)
            return {
                name: None if value is None else convert(value)
                for name, value, convert in zip(names, values, inner, strict=True)
            }

        return record
    if isinstance(kind, ListTypeInfo):
        element = _to_avro(kind.elem_type)
        return lambda values: [None if value is None else element(value) for value in values]
    if isinstance(kind, MapTypeInfo):
        part = _to_avro(kind.value_type_info)
        return lambda found: {key: None if value is None else part(value) for key, value in found.items()}
    return lambda value: value.replace(tzinfo=dt.UTC) if isinstance(value, dt.datetime) else value
