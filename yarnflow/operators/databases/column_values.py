"""Values of a database's columns as those of declared types.

Decides what Python's drivers' values become where they are not what a column of the type holds: exact numbers
as floating ones, whole numbers as truth values, times with their zone.
"""

from __future__ import annotations

import datetime as dt
import decimal
import json
from collections.abc import Callable
from typing import Any, Final

from yarnflow.graph.types import DataType

Converter = Callable[[Any], Any]


def _whole(value: Any) -> Any:
    exact = isinstance(value, (decimal.Decimal, float)) and value == int(value)
    return int(value) if exact else value


def _floating(value: Any) -> Any:
    return float(value) if isinstance(value, decimal.Decimal) else value


def _exact(value: Any) -> Any:
    # by its shortest text: 0.1 is meant, not the binary number next to it
    return decimal.Decimal(repr(value)) if isinstance(value, float) else value


def _truth(value: Any) -> Any:
    if isinstance(value, bytes) and len(value) == 1:
        # BIT(1) of MySQL
        return value != b"\x00"
    return bool(value) if isinstance(value, int) and value in (0, 1) else value


def _text(value: Any) -> Any:
    if isinstance(value, (dict, list)):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return value
    return value if isinstance(value, str) else str(value)


def _bytes(value: Any) -> Any:
    return bytes(value) if isinstance(value, (bytearray, memoryview)) else value


def _day(value: Any) -> Any:
    return value.date() if isinstance(value, dt.datetime) else value


def _moment(value: Any) -> Any:
    """In UTC, without a zone; connections are in UTC."""
    if isinstance(value, dt.datetime):
        return value if value.tzinfo is None else value.astimezone(dt.UTC).replace(tzinfo=None)
    return dt.datetime.combine(value, dt.time()) if isinstance(value, dt.date) else value


_CONVERTERS: Final[dict[str, Converter]] = {
    **dict.fromkeys(("tinyint", "smallint", "int", "bigint"), _whole),
    **dict.fromkeys(("float", "double"), _floating),
    **dict.fromkeys(("string", "varchar", "char"), _text),
    **dict.fromkeys(("timestamp", "timestamp_ntz"), _moment),
    "decimal": _exact,
    "boolean": _truth,
    "binary": _bytes,
    "date": _day,
}


def from_database(kind: DataType) -> Converter:
    """From what a driver gives to what a column of a type holds; what does not fit stays as it is."""
    convert = _CONVERTERS.get(kind.name)
    if convert is None:
        return lambda value: value
    return lambda value: None if value is None else convert(value)
