"""The text that Flink's ``print()`` writes for a value.

Decides it per type: what has a Java class is written as Java writes it, rows and objects without a
type as Python does, since PyFlink makes text of those before they reach Java.  Differs on purpose in
two places where Java's text says nothing: an array is written as its elements, and a map in the order
of its entries.
"""

from __future__ import annotations

import datetime
import struct
from collections.abc import Callable
from typing import Any, Final

from yarnflow.graph.type_info import (
    BasicArrayTypeInfo,
    BasicType,
    BasicTypeInfo,
    DateTypeInfo,
    ExternalTypeInfo,
    ListTypeInfo,
    LocalTimeTypeInfo,
    MapTypeInfo,
    ObjectArrayTypeInfo,
    PickledBytesTypeInfo,
    PrimitiveArrayTypeInfo,
    RowTypeInfo,
    TimestampTypeInfo,
    TimeType,
    TimeTypeInfo,
    TupleTypeInfo,
    TypeInfo,
)
from yarnflow.operators.instant import Instant
from yarnflow.operators.row import Row

Text = Callable[[Any], str]

_EPOCH: Final = datetime.datetime(1970, 1, 1)


def printer(element_type: TypeInfo) -> Text:
    """A function from an element to the line that ``print()`` writes for it, without its prefix."""
    if isinstance(element_type, ExternalTypeInfo):
        return printer(element_type.type_info)
    if isinstance(element_type, PickledBytesTypeInfo):
        return str
    if isinstance(element_type, RowTypeInfo):
        return _python_row
    return java_text(element_type)


def _python_row(value: Row) -> str:
    return f"{value.get_row_kind()}[{','.join(map(str, value))}]"


def java_text(element_type: TypeInfo) -> Text:
    """A function from a value to what ``toString()`` of its Java class gives; None is ``null``."""
    text = _text(element_type)
    return lambda value: "null" if value is None else text(value)


def _text(element_type: TypeInfo) -> Text:
    match element_type:
        case BasicTypeInfo(basic):
            return _BASIC.get(basic, str)
        case PickledBytesTypeInfo() | DateTypeInfo():
            return str
        case TimeTypeInfo():
            return lambda value: value.strftime("%H:%M:%S")
        case TimestampTypeInfo():
            return _sql_timestamp
        case LocalTimeTypeInfo(time_type):
            return _LOCAL[time_type]
        case PrimitiveArrayTypeInfo(BasicTypeInfo(BasicType.BYTE)):
            return lambda value: _listed(str, (byte - 256 if byte > 127 else byte for byte in value))
        case (
            PrimitiveArrayTypeInfo(element)
            | BasicArrayTypeInfo(element)
            | ObjectArrayTypeInfo(element)
            | ListTypeInfo(element)
        ):
            element_text = java_text(element)
            return lambda value: _listed(element_text, value)
        case MapTypeInfo(key, value):
            return _map(java_text(key), java_text(value))
        case TupleTypeInfo(types):
            return _joined("(", ",", ")", [java_text(kind) for kind in types])
        case RowTypeInfo(types):
            fields = _joined("[", ", ", "]", [java_text(kind) for kind in types])
            return lambda value: f"{value.get_row_kind()}{fields(value)}"
        case ExternalTypeInfo(inner):
            return _text(inner)


def _listed(text: Text, values: Any) -> str:
    return f"[{', '.join(map(text, values))}]"


def _map(key_text: Text, value_text: Text) -> Text:
    def text(value: dict[Any, Any]) -> str:
        return f"{{{', '.join(f'{key_text(k)}={value_text(v)}' for k, v in value.items())}}}"

    return text


def _joined(begin: str, between: str, end: str, texts: list[Text]) -> Text:
    def text(values: Any) -> str:
        parts = (field(value) for field, value in zip(texts, values, strict=False))
        return f"{begin}{between.join(parts)}{end}"

    return text


# --- single values ------------------------------------------------------------------------


def _boolean(value: Any) -> str:
    return "true" if value else "false"


def java_double(value: float) -> str:
    """Java's ``Double.toString``: ``1.0``, ``1.0E10``, ``NaN``."""
    number = float(value)
    # of one digit Java writes the nearest number of two
    digits = f"{number:.1e}"
    return _java_number(number, digits if float(digits) == number else repr(number))


def java_float(value: float) -> str:
    """Java's ``Float.toString``: the shortest digits that are this float of 32 bits."""
    number = float(value)
    return _java_number(number, _float_digits(number))


def shortest_float(value: float) -> float:
    """The number with the fewest digits that is this float of 32 bits: 0.1 for 0.10000000149011612."""
    return float(_float_digits(float(value)))


def _float_digits(number: float) -> str:
    digits = repr(number)
    if number == number and abs(number) != float("inf"):
        wanted = struct.pack("<f", number)
        for precision in range(2, 10):
            digits = f"{number:.{precision}g}"
            if _float32(float(digits)) == wanted:
                break
    return digits


def _float32(number: float) -> bytes:
    try:
        return struct.pack("<f", number)
    except OverflowError:
        return b""


def _java_number(number: float, digits: str) -> str:
    """The decimal digits of a number as Java lays them out."""
    if number != number:
        return "NaN"
    sign = "-" if digits.startswith("-") else ""
    if abs(number) == float("inf"):
        return f"{sign}Infinity"
    mantissa, _, exponent_text = digits.removeprefix("-").partition("e")
    whole, _, fraction = mantissa.partition(".")
    figures = (whole + fraction).lstrip("0")
    if not figures:
        return f"{sign}0.0"
    # the number is 0.<figures> times ten to the power of point
    leading_zeros = len(whole + fraction) - len(figures)
    point = len(whole) + int(exponent_text or 0) - leading_zeros
    figures = figures.rstrip("0") or "0"
    if 1e-3 <= abs(number) < 1e7:
        if point <= 0:
            return f"{sign}0.{'0' * -point}{figures}"
        padded = figures.ljust(point, "0")
        return f"{sign}{padded[:point]}.{padded[point:] or '0'}"
    return f"{sign}{figures[0]}.{figures[1:] or '0'}E{point - 1}"


def _sql_timestamp(value: datetime.datetime) -> str:
    fraction = f"{value.microsecond:06d}".rstrip("0") or "0"
    return f"{value.replace(microsecond=0, tzinfo=None).isoformat(sep=' ')}.{fraction}"


def _instant(value: Instant) -> str:
    moment = _EPOCH + datetime.timedelta(seconds=value.seconds)
    return f"{moment.isoformat()}{_fraction(value.nanos)}Z"


def _fraction(nanos: int) -> str:
    """Java's fraction of a second: none, or three, six or nine digits."""
    if not nanos:
        return ""
    digits = f"{nanos:09d}"
    for length in (3, 6):
        if not digits[length:].strip("0"):
            return f".{digits[:length]}"
    return f".{digits}"


def _local_time(value: datetime.time | datetime.datetime) -> str:
    nanos = value.microsecond * 1_000
    seconds = f":{value.second:02d}" if value.second or nanos else ""
    return f"{value.hour:02d}:{value.minute:02d}{seconds}{_fraction(nanos)}"


def _local_date_time(value: datetime.datetime) -> str:
    return f"{value.date().isoformat()}T{_local_time(value)}"


_BASIC: Final[dict[BasicType, Text]] = {
    BasicType.BOOLEAN: _boolean,
    BasicType.FLOAT: java_float,
    BasicType.DOUBLE: java_double,
    BasicType.INSTANT: _instant,
}
_LOCAL: Final[dict[TimeType, Text]] = {
    TimeType.LOCAL_DATE: str,
    TimeType.LOCAL_TIME: _local_time,
    TimeType.LOCAL_DATE_TIME: _local_date_time,
}


def print_prefix(identifier: str, subtask: int, subtasks: int) -> str:
    """What a printed line begins with: ``label> ``, ``2> ``, ``label:2> `` or nothing.

    Parameters
    ----------
    subtask : int
        The sink's subtask that prints the line, from 0; lines show it from 1.
    subtasks : int
        How many there are; of a single one the number is not shown.
    """
    parts = [identifier] if identifier else []
    if subtasks > 1:
        parts.append(str(subtask + 1))
    return f"{':'.join(parts)}> " if parts else ""
