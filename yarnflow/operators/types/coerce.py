"""Values as PyFlink's coders deliver them after an exchange.

Decides per type which values fit and what becomes of those that are near: a tuple becomes a Row,
an integer a float, a date and time lose what is finer than milliseconds.  Everything else is an
error that names operator, element and field.  Values that are right already are handed on as they are.
"""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import struct
from collections.abc import Callable, Sequence
from typing import Any, Final

from yarnflow.errors import ElementMismatch
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
from yarnflow.operators.row import Row, make_row

#: one value in, the value that arrives out
Coerce = Callable[[Any], Any]
#: a chunk's values in, those that arrive out
CoerceChunk = Callable[[list[Any]], list[Any]]

_BITS: Final = {BasicType.BYTE: 8, BasicType.SHORT: 16, BasicType.INT: 32, BasicType.LONG: 64}
_SHOWN: Final = 60


class Misfit(Exception):
    """A value that does not fit its type; ``path`` leads to it from the element."""

    def __init__(self, value: Any, wanted: str) -> None:
        super().__init__(wanted)
        self.value = value
        self.wanted = wanted
        self.path = ""

    def below(self, part: str) -> Misfit:
        """This misfit, seen from one level further out."""
        self.path = part + self.path
        return self


def chunk_coercer(element_type: TypeInfo, operator: str, origin: str = "") -> CoerceChunk:
    """A function over the values of a chunk.

    Parameters
    ----------
    operator, origin : str
        Name of the operator that emits the values, and ``file:line`` of its call, for messages.

    Returns
    -------
    callable
        ``coerce(values) -> values``; the same list where nothing changes.  Raises ElementMismatch.
    """
    if isinstance(element_type, PickledBytesTypeInfo):
        return _unchanged
    coerce = coercer(element_type)
    if element_type == BasicTypeInfo(BasicType.STRING):
        # the only type of whole elements that may be None
        coerce = _or_none(coerce)
    # here, in a worker: a program that is being built needs no numpy
    from yarnflow.operators.types.columns import columns_reader

    columns = columns_reader(element_type)

    def coerce_chunk(values: list[Any]) -> list[Any]:
        if columns is not None and columns(values) is not None:
            return values
        try:
            return [coerce(value) for value in values]
        except Misfit:
            raise _mismatch(values, coerce, element_type, operator, origin) from None

    return coerce_chunk


def _or_none(coerce: Coerce) -> Coerce:
    return lambda value: None if value is None else coerce(value)


def _unchanged(values: list[Any]) -> list[Any]:
    return values


def _mismatch(
    values: list[Any], coerce: Coerce, element_type: TypeInfo, operator: str, origin: str
) -> ElementMismatch:
    """The first element that does not fit, found again: chunks that fit pay nothing for it."""
    for value in values:
        try:
            coerce(value)
        except Misfit as misfit:
            where = f", field {misfit.path.lstrip('.')}," if misfit.path else ""
            line = f"{origin}: " if origin else ""
            return ElementMismatch(
                f"{line}operator '{operator}' declares {element_type!r} and emitted {shown(value)}{where} "
                f"{'where' if where else 'but'} {misfit.wanted} is needed and "
                f"{shown(misfit.value)} ({type(misfit.value).__name__}) came; "
                "correct the function or its output_type"
            )
    raise AssertionError("a value that did not fit fits now")


def coercer(element_type: TypeInfo) -> Coerce:
    """A function over one value; raises :class:`Misfit`."""
    match element_type:
        case BasicTypeInfo(basic):
            return _basic(basic)
        case PickledBytesTypeInfo():
            return _same
        case DateTypeInfo():
            return _date
        case TimeTypeInfo():
            return _time_in_millis
        case TimestampTypeInfo():
            return _timestamp_in_millis
        case LocalTimeTypeInfo(time_type):
            return _LOCAL[time_type]
        case PrimitiveArrayTypeInfo(BasicTypeInfo(BasicType.BYTE)):
            return _bytes
        case PrimitiveArrayTypeInfo(element):
            return _list(coercer(element), nullable=False)
        case BasicArrayTypeInfo(element) | ObjectArrayTypeInfo(element) | ListTypeInfo(element):
            return _list(coercer(element), nullable=True)
        case MapTypeInfo(key, value):
            return _map(coercer(key), coercer(value))
        case TupleTypeInfo(types):
            return _tuple([coercer(kind) for kind in types])
        case RowTypeInfo(types):
            names = element_type.get_field_names()
            return _row(names, [coercer(kind) for kind in types], bool(element_type.field_names))
        case ExternalTypeInfo(inner):
            return coercer(inner)


# --- single values ------------------------------------------------------------------------


def _same(value: Any) -> Any:
    return value


def _basic(basic: BasicType) -> Coerce:
    if basic in _BITS:
        return _integer(_BITS[basic])
    return {
        BasicType.STRING: _exact(str, "text"),
        BasicType.CHAR: _exact(str, "text"),
        BasicType.BOOLEAN: _boolean,
        BasicType.FLOAT: _float,
        BasicType.DOUBLE: _double,
        BasicType.BIG_INT: _integer(0),
        BasicType.BIG_DEC: _decimal,
        BasicType.INSTANT: _instant,
    }[basic]


def _exact(kind: type, wanted: str) -> Coerce:
    def coerce(value: Any) -> Any:
        if type(value) is kind:
            return value
        if isinstance(value, kind):
            return kind(value)
        raise Misfit(value, wanted)

    return coerce


def _integer(bits: int) -> Coerce:
    limit = 1 << (bits - 1) if bits else 0
    wanted = f"a whole number of {bits} bits" if bits else "a whole number"

    def coerce(value: Any) -> Any:
        if type(value) is not int:
            # numpy's integers and True have an index, floats and text have none
            try:
                value = value.__index__()
            except AttributeError:
                raise Misfit(value, wanted) from None
        if bits and not -limit <= value < limit:
            raise Misfit(value, wanted)
        return value

    return coerce


def _boolean(value: Any) -> bool:
    if value is True or value is False:
        return value
    if isinstance(value, int) or type(value).__name__ in ("bool_", "bool"):
        return bool(value)
    raise Misfit(value, "True or False")


def _double(value: Any) -> float:
    if type(value) is float:
        return value
    if isinstance(value, (str, bytes)) or not hasattr(value, "__float__"):
        raise Misfit(value, "a number")
    try:
        return float(value)
    except (OverflowError, ValueError, TypeError):
        raise Misfit(value, "a number") from None


_FLOAT32: Final = struct.Struct("<f")


def _float(value: Any) -> float:
    number = _double(value)
    try:
        (rounded,) = _FLOAT32.unpack(_FLOAT32.pack(number))
    except OverflowError:
        raise Misfit(value, "a number of 32 bits") from None
    return float(rounded)


def _decimal(value: Any) -> decimal.Decimal:
    if type(value) is decimal.Decimal:
        return value
    if isinstance(value, (int, float, decimal.Decimal)) and not isinstance(value, bool):
        return decimal.Decimal(str(value))
    raise Misfit(value, "a Decimal")


def _instant(value: Any) -> Any:
    if type(value) is Instant:
        return value
    raise Misfit(value, "an Instant")


def _date(value: Any) -> datetime.date:
    if type(value) is datetime.date:
        return value
    if isinstance(value, datetime.date):
        return datetime.date(value.year, value.month, value.day)
    raise Misfit(value, "a date")


def _time_in_millis(value: Any) -> datetime.time:
    if not isinstance(value, datetime.time):
        raise Misfit(value, "a time")
    return datetime.time(value.hour, value.minute, value.second, value.microsecond // 1_000 * 1_000)


def _timestamp_in_millis(value: Any) -> datetime.datetime:
    if not isinstance(value, datetime.datetime):
        raise Misfit(value, "a datetime")
    if value.tzinfo is None and value.microsecond % 1_000 == 0:
        return value
    return value.replace(microsecond=value.microsecond // 1_000 * 1_000, tzinfo=None)


def _time(value: Any) -> datetime.time:
    if not isinstance(value, datetime.time):
        raise Misfit(value, "a time")
    return value if value.tzinfo is None else value.replace(tzinfo=None)


def _timestamp(value: Any) -> datetime.datetime:
    if not isinstance(value, datetime.datetime):
        raise Misfit(value, "a datetime")
    return value if value.tzinfo is None else value.replace(tzinfo=None)


_LOCAL: Final[dict[TimeType, Coerce]] = {
    TimeType.LOCAL_DATE: _date,
    TimeType.LOCAL_TIME: _time,
    TimeType.LOCAL_DATE_TIME: _timestamp,
}


# --- values of several parts --------------------------------------------------------------------


def _bytes(value: Any) -> bytes:
    if type(value) is bytes:
        return value
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    if isinstance(value, (list, tuple)):
        try:
            return bytes(item & 0xFF for item in value)
        except TypeError:
            pass
    raise Misfit(value, "bytes")


def _list(coerce: Coerce, nullable: bool) -> Coerce:
    def coerce_list(value: Any) -> list[Any]:
        if isinstance(value, (str, bytes, dict)) or not hasattr(value, "__iter__"):
            raise Misfit(value, "a list")
        made: list[Any] = []
        for number, item in enumerate(value):
            if item is None and nullable:
                made.append(None)
                continue
            try:
                made.append(coerce(item))
            except Misfit as misfit:
                raise misfit.below(f"[{number}]") from None
        return made

    return coerce_list


def _map(coerce_key: Coerce, coerce_value: Coerce) -> Coerce:
    def coerce(value: Any) -> dict[Any, Any]:
        if not isinstance(value, dict):
            raise Misfit(value, "a dict")
        made = {}
        for key, item in value.items():
            try:
                made[coerce_key(key)] = None if item is None else coerce_value(item)
            except Misfit as misfit:
                raise misfit.below(f"[{key!r}]") from None
        return made

    return coerce


def _tuple(coercers: Sequence[Coerce]) -> Coerce:
    count = len(coercers)

    def coerce(value: Any) -> tuple[Any, ...]:
        if not isinstance(value, (tuple, list, Row)) or len(value) != count:
            raise Misfit(value, f"a tuple of {count} values")
        return tuple(_fields(value, coercers, None))

    return coerce


def _row(names: list[str], coercers: Sequence[Coerce], named: bool) -> Coerce:
    count = len(coercers)

    def coerce(value: Any) -> Row:
        if type(value) is Row:
            try:
                values = value.get_fields_by_names(names) if named else list(value)
            except KeyError:
                raise Misfit(value, f"a Row of {', '.join(names)}") from None
            kind = value.get_row_kind()
            if len(values) != count:
                raise Misfit(value, f"a Row of {count} values")
            return make_row(names, _fields(values, coercers, names), kind)
        if isinstance(value, (tuple, list)):
            values = list(value)
        elif isinstance(value, dict):
            values = [value.get(name) for name in names]
        elif dataclasses.is_dataclass(value) or hasattr(value, "__dict__"):
            values = [getattr(value, name, None) for name in names]
        else:
            raise Misfit(value, f"a Row of {', '.join(names)}")
        if len(values) != count:
            raise Misfit(value, f"a Row of {count} values")
        return make_row(names, _fields(values, coercers, names))

    return coerce


def _fields(values: Any, coercers: Sequence[Coerce], names: list[str] | None) -> list[Any]:
    """Coerced fields; None stays None in every field."""
    try:
        return [
            None if value is None else coerce(value)
            for coerce, value in zip(coercers, values, strict=True)
        ]
    except Misfit:
        for number, (coerce, value) in enumerate(zip(coercers, values, strict=True)):
            try:
                if value is not None:
                    coerce(value)
            except Misfit as misfit:
                part = f".{names[number]}" if names is not None else f"[{number}]"
                raise misfit.below(part) from None
        raise


def shown(value: Any) -> str:
    """A value's repr, cut where it is long; its own repr may fail as well."""
    try:
        text = repr(value)
    except Exception:
        text = f"<{type(value).__name__} without repr>"
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."
