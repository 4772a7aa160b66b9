"""Single values written as text, in JSON and CSV: as Flink's formats read and write them."""

from __future__ import annotations

import base64
import datetime as dt
import decimal
import struct
from collections.abc import Callable
from typing import Any, Final

from yarnflow.errors import SchemaError
from yarnflow.graph.rows import Row as RowOfColumns
from yarnflow.graph.type_info import (
    BasicType,
    BasicTypeInfo,
    DateTypeInfo,
    LocalTimeTypeInfo,
    PrimitiveArrayTypeInfo,
    TimestampTypeInfo,
    TimeType,
    TimeTypeInfo,
    TypeInfo,
)
from yarnflow.operators.row import Row

Read = Callable[[str], Any]
Write = Callable[[Any], Any]

_BITS: Final = {BasicType.BYTE: 8, BasicType.SHORT: 16, BasicType.INT: 32, BasicType.LONG: 64}
_FLOAT32: Final = struct.Struct("<f")


class Unreadable(Exception):
    """A message, or a value in it, that is not as its format and type want it."""


class Lenient:
    """The parts of messages that could not be read, and are None because the format ignores errors."""

    def __init__(self) -> None:
        self.parts = 0

    def take(self) -> int:
        """Return how many there were since the last call."""
        parts, self.parts = self.parts, 0
        return parts

    def reading(self, convert: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """Return the same conversion, with None for what it cannot read."""

        def part(found: Any) -> Any:
            try:
                return convert(found)
            except Unreadable:
                self.parts += 1
                return None

        return part


def reader(kind: TypeInfo, what: str) -> Read:
    """From text to a value; it raises :class:`Unreadable`.

    Raises
    ------
    SchemaError
        Text does not stand for values of this type.
    """
    read = _reader(kind)
    if read is None:
        raise SchemaError(f"{what} cannot be of the type {kind!r}")
    checked = read

    def value(text: str) -> Any:
        try:
            return checked(text)
        except (ValueError, ArithmeticError):
            raise Unreadable(f"{shown(text)} is no {kind!r}") from None

    return value


def _reader(kind: TypeInfo) -> Read | None:
    match kind:
        case BasicTypeInfo(BasicType.STRING | BasicType.CHAR):
            return str
        case BasicTypeInfo(basic) if basic in _BITS:
            return lambda text: whole(int(text), _BITS[basic])
        case BasicTypeInfo(BasicType.BIG_INT):
            return int
        case BasicTypeInfo(BasicType.BOOLEAN):
            return lambda text: text.strip().lower() == "true"
        case BasicTypeInfo(BasicType.DOUBLE):
            return float
        case BasicTypeInfo(BasicType.FLOAT):
            return lambda text: float32(float(text))
        case BasicTypeInfo(BasicType.BIG_DEC):
            return lambda text: decimal.Decimal(text.strip())
        case PrimitiveArrayTypeInfo(BasicTypeInfo(BasicType.BYTE)):
            return lambda text: base64.b64decode(text, validate=True)
        case DateTypeInfo() | LocalTimeTypeInfo(TimeType.LOCAL_DATE):
            return dt.date.fromisoformat
        case TimeTypeInfo() | LocalTimeTypeInfo(TimeType.LOCAL_TIME):
            return lambda text: dt.time.fromisoformat(text).replace(tzinfo=None)
        case TimestampTypeInfo() | LocalTimeTypeInfo(TimeType.LOCAL_DATE_TIME):
            return _naive
    return None


def _naive(text: str) -> dt.datetime:
    found = dt.datetime.fromisoformat(text)
    return found if found.tzinfo is None else found.astimezone(dt.UTC).replace(tzinfo=None)


def whole(value: int, bits: int) -> int:
    """The number, if it has no more bits.  Raises OverflowError."""
    if not -(1 << (bits - 1)) <= value < 1 << (bits - 1):
        raise OverflowError(f"{value} has more than {bits} bits")
    return value


def float32(value: float) -> float:
    """The nearest number of 32 bits.  Raises OverflowError."""
    return float(_FLOAT32.unpack(_FLOAT32.pack(value))[0])


def bits_of(kind: TypeInfo) -> int:
    """Of a type of whole numbers; 0 for others."""
    return _BITS.get(kind.basic_type, 0) if isinstance(kind, BasicTypeInfo) else 0


def writer(kind: TypeInfo) -> Write | None:
    """From a value to what JSON and CSV hold of it: text, where it is no number; None = the same."""
    match kind:
        case PrimitiveArrayTypeInfo(BasicTypeInfo(BasicType.BYTE)):
            return lambda value: base64.b64encode(bytes(value)).decode("ascii")
        case DateTypeInfo() | LocalTimeTypeInfo(TimeType.LOCAL_DATE | TimeType.LOCAL_TIME):
            return lambda value: value.isoformat()
        case TimeTypeInfo():
            return lambda value: value.isoformat("milliseconds") + "Z"
        case TimestampTypeInfo():
            return lambda value: value.isoformat(timespec="milliseconds") + "Z"
        case LocalTimeTypeInfo(TimeType.LOCAL_DATE_TIME):
            return lambda value: value.isoformat()
    return None


def shown(value: object, characters: int = 80) -> str:
    """A value for a message, cut where it is long."""
    text = repr(value)
    return text if len(text) <= characters else text[: characters - 3] + "..."


def values_of(row: Any, names: list[str]) -> list[Any]:
    """What a message has of a row: by name where the row has all names, else in order, as in Flink."""
    try:
        if isinstance(row, Row):
            return row.get_fields_by_names(names)
        if isinstance(row, RowOfColumns):
            return [row[name] for name in names]
    except KeyError:
        pass
    return list(row)
