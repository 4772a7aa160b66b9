"""Lines of CSV as rows and back.  Flink counterpart: ``CsvRowDeserializationSchema``."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa

from yarnflow.errors import SchemaError
from yarnflow.graph.connectors.messages import MessageFormat
from yarnflow.graph.type_info import (
    BasicArrayTypeInfo,
    ListTypeInfo,
    ObjectArrayTypeInfo,
    PrimitiveArrayTypeInfo,
    RowTypeInfo,
    TypeInfo,
    Types,
)
from yarnflow.operators.row import Row, make_row
from yarnflow.spark.messages.text_values import Lenient, Unreadable, reader, shown, values_of, writer

_ARRAYS = (BasicArrayTypeInfo, ObjectArrayTypeInfo, ListTypeInfo, PrimitiveArrayTypeInfo)
_BYTE = Types.BYTE()


class CsvReader:
    """Implements :class:`~yarnflow.spark.messages.reading.MessageReader`."""

    def __init__(self, form: MessageFormat) -> None:
        kind = _row_type(form)
        self._names = kind.get_field_names()
        self._dialect = _dialect(form.options)
        self._comments = bool(form.options.get("allow_comments"))
        self._null = form.options["null_literal"] if form.options.get("has_null_literal") else None
        self.lenient = Lenient() if form.ignore_errors else None
        fields = zip(self._names, kind.field_types, strict=True)
        between = form.options.get("array_element_delimiter", ";")
        self._reads = [self._field_reader(field, between, name) for name, field in fields]

    def block(self, messages: pa.Array) -> list[Any] | None:
        if self._comments:
            return None
        try:
            texts = [message.decode() for message in messages.to_pylist()]
            lines = list(csv.reader(texts, strict=True, **self._dialect))
            if len(lines) != len(messages):
                # an empty message, or a quote that goes on in the next one
                return None
            rows = [self._row(line) for line in lines]
        except (ValueError, csv.Error, Unreadable):
            return None
        # which messages they were is found one by one
        return None if self.lenient is not None and self.lenient.take() else rows

    def one(self, message: bytes) -> Any:
        try:
            lines = list(csv.reader([message.decode()], strict=True, **self._dialect))
        except (ValueError, csv.Error) as error:
            raise Unreadable(f"{error} in {shown(message)}") from None
        if len(lines) != 1 or (self._comments and message.startswith(b"#")):
            raise Unreadable(f"{shown(message)} is no line of fields")
        return self._row(lines[0])

    def _row(self, line: list[str]) -> Row:
        missing = len(self._names) - len(line)
        if missing < 0 or not line or (missing and self.lenient is None):
            raise Unreadable(f"{len(line)} fields where {len(self._names)} are needed")
        null = self._null
        # where errors are ignored, fields that are missing at the end are None, as in Flink
        values = [None if text == null else read(text) for text, read in zip(line, self._reads, strict=False)]
        if missing and self.lenient is not None:
            self.lenient.parts += missing
            values += [None] * missing
        return make_row(self._names, values)

    def _field_reader(self, kind: TypeInfo, between: str, name: str) -> Callable[[str], Any]:
        what = f"field '{name}' of CSV"
        if not _is_array(kind):
            return self._part(reader(kind, what))
        read = self._part(reader(_element(kind), what))
        return lambda text: [read(part) for part in text.split(between)] if text else []

    def _part(self, read: Callable[[str], Any]) -> Callable[[str], Any]:
        return read if self.lenient is None else self.lenient.reading(read)


def _row_type(form: MessageFormat) -> RowTypeInfo:
    if not isinstance(form.element_type, RowTypeInfo):
        raise SchemaError(f"lines of CSV are rows, not {form.element_type!r}")
    return form.element_type


def _dialect(options: Mapping[str, str]) -> dict[str, Any]:
    quote = options.get("quote_character", '"')
    return {
        "delimiter": options.get("field_delimiter", ","),
        "quotechar": quote or None,
        "quoting": csv.QUOTE_MINIMAL if quote else csv.QUOTE_NONE,
        "escapechar": options.get("escape_character") or None,
    }


def _is_array(kind: TypeInfo) -> bool:
    # of bytes, it is text
    return isinstance(kind, _ARRAYS) and kind != PrimitiveArrayTypeInfo(_BYTE)


def _element(kind: Any) -> TypeInfo:
    found: TypeInfo = kind.elem_type if isinstance(kind, ListTypeInfo) else kind.element_type
    return found


def csv_writer(form: MessageFormat) -> Callable[[Any], bytes]:
    """From rows to lines."""
    kind = _row_type(form)
    names, null = kind.get_field_names(), form.options.get("null_literal", "")
    between = form.options.get("array_element_delimiter", ";")
    writes = [_field_writer(field, between) for field in kind.field_types]
    buffer = io.StringIO()
    write_line = csv.writer(
        buffer, lineterminator=form.options.get("line_delimiter", "\n"), **_dialect(form.options)
    ).writerow

    def write(row: Any) -> bytes:
        values = values_of(row, names) if kind.field_names else list(row)
        buffer.seek(0)
        buffer.truncate()
        write_line(
            [null if value is None else to_text(value) for value, to_text in zip(values, writes, strict=True)]
        )
        return buffer.getvalue().encode()

    return write


def _field_writer(kind: TypeInfo, between: str) -> Callable[[Any], str]:
    if _is_array(kind):
        element = _field_writer(_element(kind), between)
        return lambda values: between.join("" if value is None else element(value) for value in values)
    write = writer(kind) or str

    def text(value: Any) -> str:
        return str(value).lower() if isinstance(value, bool) else str(write(value))

    return text
