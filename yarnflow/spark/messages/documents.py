"""From elements to documents of Elasticsearch, in workers."""

from __future__ import annotations

import base64
import datetime as dt
import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa

from yarnflow.errors import ElementMismatch
from yarnflow.graph.connectors.elasticsearch import ElasticsearchSink
from yarnflow.graph.rows import Row as ColumnRow
from yarnflow.operators.row import Row as ElementRow
from yarnflow.spark.messages.text_values import shown

#: an id that is NULL is made where documents are written
DOCUMENT_DDL: Final = "index string, id string, source binary"
_SCHEMA: Final = pa.schema([("index", pa.string()), ("id", pa.string()), ("source", pa.binary())])


class DocumentMaker:
    """Index, id and the document as JSON."""

    def __init__(self, sink: ElasticsearchSink) -> None:
        self._sink = sink

    def batch(self, values: list[Any], times: list[int | None] | None) -> pa.RecordBatch:
        """Documents of elements."""
        rows = [self._row(value) for value in values]
        columns = zip(*rows, strict=True) if rows else ((), (), ())
        arrays = [pa.array(list(found), kind.type) for found, kind in zip(columns, _SCHEMA, strict=True)]
        return pa.RecordBatch.from_arrays(arrays, schema=_SCHEMA)

    def _row(self, element: Any) -> tuple[str, str | None, bytes]:
        sink = self._sink
        try:
            fields = _fields(element)
            text = json.dumps(_plain(fields), ensure_ascii=False, allow_nan=False)
        except (TypeError, ValueError, RecursionError) as error:
            raise ElementMismatch(f"element {shown(element)} is no JSON document: {error}") from None
        index = self._named(fields, sink.index, element) if sink.dynamic_index else sink.index
        key = self._named(fields, sink.key_field, element) if sink.key_field else None
        return index, key, text.encode()

    @staticmethod
    def _named(document: Mapping[str, Any], field: str, element: Any) -> str:
        found = document.get(field)
        if found is None:
            raise ElementMismatch(
                f"element {shown(element)} has no field '{field}', which the emitter of the Elasticsearch "
                "sink asks for"
            )
        return str(found)


def _fields(element: Any) -> Mapping[Any, Any]:
    if isinstance(element, Mapping):
        return element
    if _is_row(element):
        return _named_values(element)
    raise ElementMismatch(
        f"element {shown(element)} is no document: an Elasticsearch sink takes maps and rows with names"
    )


def _plain(value: Any) -> Any:
    """Decided before a value goes to ``json``, which takes a row of columns for a list: it is a tuple."""
    if value is None or isinstance(value, (str, int, float)):
        return value
    if isinstance(value, Mapping):
        return {name: _plain(item) for name, item in value.items()}
    if _is_row(value):
        return _plain(_named_values(value))
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, (dt.datetime, dt.date, dt.time)):
        return value.isoformat()
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, (bytes, bytearray)):
        return base64.b64encode(value).decode()
    if isinstance(value, (set, frozenset)):
        return [_plain(item) for item in sorted(value)]
    raise TypeError(f"{type(value).__name__} has no form in JSON")


def _is_row(value: Any) -> bool:
    """Whether it is a row, of elements or of columns; one of columns without names is a tuple."""
    return isinstance(value, ElementRow) or (isinstance(value, ColumnRow) and bool(value._fields))


def _named_values(row: Any) -> dict[str, Any]:
    found: dict[str, Any] = row.as_dict()
    return found
