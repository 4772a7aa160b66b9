"""Elements as ``execute_and_collect()`` gives them to the program.

Decides per type what differs from what functions get: PyFlink reads elements by another way than its
operators do, over Java's pickler.  A FLOAT comes as the shortest decimal that is this number of 32 bits
(0.1), and BYTE arrays come as lists of numbers from -128 to 127.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from yarnflow.graph.type_info import (
    BasicArrayTypeInfo,
    BasicType,
    BasicTypeInfo,
    ExternalTypeInfo,
    ListTypeInfo,
    MapTypeInfo,
    ObjectArrayTypeInfo,
    PrimitiveArrayTypeInfo,
    RowTypeInfo,
    TupleTypeInfo,
    TypeInfo,
)
from yarnflow.operators.row import Row, make_row
from yarnflow.operators.types.text import shortest_float

Convert = Callable[[Any], Any]

#: elements of one payload
PAYLOAD_ELEMENTS: Final = 4096
#: a payload with more bytes is divided, unless it is a single element
PAYLOAD_BYTES: Final = 1024 * 1024


def collector(element_type: TypeInfo) -> Convert | None:
    """A function from an element to what the program gets; None = the same."""
    convert = _converter(element_type)
    if convert is None:
        return None
    return lambda value: None if value is None else convert(value)


def payloads(values: list[Any], dumps: Callable[[list[Any]], bytes]) -> Iterator[tuple[bytes, int]]:
    """Pickled lists of limited size, in order, each with the number of its elements."""
    for begin in range(0, len(values), PAYLOAD_ELEMENTS):
        yield from _divided(values[begin : begin + PAYLOAD_ELEMENTS], dumps)


def _divided(values: list[Any], dumps: Callable[[list[Any]], bytes]) -> Iterator[tuple[bytes, int]]:
    payload = dumps(values)
    if len(payload) <= PAYLOAD_BYTES or len(values) == 1:
        yield payload, len(values)
        return
    middle = len(values) // 2
    yield from _divided(values[:middle], dumps)
    yield from _divided(values[middle:], dumps)


def _converter(element_type: TypeInfo) -> Convert | None:
    match element_type:
        case BasicTypeInfo(BasicType.FLOAT):
            return shortest_float
        case PrimitiveArrayTypeInfo(BasicTypeInfo(BasicType.BYTE)):
            return lambda value: [byte - 256 if byte > 127 else byte for byte in value]
        case (
            PrimitiveArrayTypeInfo(element)
            | BasicArrayTypeInfo(element)
            | ObjectArrayTypeInfo(element)
            | ListTypeInfo(element)
        ):
            return _list(collector(element))
        case MapTypeInfo(key, value):
            return _map(collector(key), collector(value))
        case TupleTypeInfo(types):
            return _tuple([collector(kind) for kind in types])
        case RowTypeInfo(types):
            return _row(tuple(element_type.get_field_names()), [collector(kind) for kind in types])
        case ExternalTypeInfo(inner):
            return _converter(inner)
    return None


def _list(convert: Convert | None) -> Convert | None:
    if convert is None:
        return None
    return lambda value: [convert(item) for item in value]


def _map(key: Convert | None, value: Convert | None) -> Convert | None:
    if key is None and value is None:
        return None
    of_key, of_value = key or _same, value or _same
    return lambda items: {of_key(k): of_value(v) for k, v in items.items()}


def _tuple(converts: list[Convert | None]) -> Convert | None:
    if not any(converts):
        return None
    each = [convert or _same for convert in converts]
    return lambda value: tuple(convert(item) for convert, item in zip(each, value, strict=True))


def _row(names: tuple[str, ...], converts: list[Convert | None]) -> Convert | None:
    if not any(converts):
        return None
    each = [convert or _same for convert in converts]

    def row(value: Row) -> Row:
        values = [convert(item) for convert, item in zip(each, value, strict=True)]
        return make_row(names, values, value.get_row_kind())

    return row


def _same(value: Any) -> Any:
    return value
