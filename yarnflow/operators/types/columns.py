"""A chunk's values by the column, where all of them are what their type says already.

To look at columns takes a fraction of looking at each value; and numbers that were looked at as a column
need not be made one again where they are written.
"""

from __future__ import annotations

import decimal
from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any, Final

import numpy as np

from yarnflow.graph.type_info import BasicType, BasicTypeInfo, TupleTypeInfo, TypeInfo

Numbers = np.ndarray[Any, np.dtype[Any]]
#: numbers, or values as they are
Column = Numbers | Sequence[Any]
#: a chunk's values in, their columns out: one for each field of a tuple, else one; None: some value is
#: not what its type says
ReadColumns = Callable[[Sequence[Any]], list[Column] | None]
_Read = Callable[[Sequence[Any]], Column | None]

_BITS: Final = {BasicType.BYTE: 8, BasicType.SHORT: 16, BasicType.INT: 32, BasicType.LONG: 64}
_EXACT: Final = {
    BasicType.STRING: str,
    BasicType.BOOLEAN: bool,
    BasicType.BIG_INT: int,
    BasicType.BIG_DEC: decimal.Decimal,
}


def columns_reader(element_type: TypeInfo) -> ReadColumns | None:
    """Reads columns of elements; None where every value has to be looked at."""
    if isinstance(element_type, TupleTypeInfo):
        return _tuples(element_type)
    read = _reader(element_type)
    if read is None:
        return None

    def columns(values: Sequence[Any]) -> list[Column] | None:
        column = read(values)
        return None if column is None else [column]

    return columns


def numbers_reader(element_type: TypeInfo) -> ReadColumns | None:
    """:func:`columns_reader` where some column is numbers; columns of objects alone save nothing."""
    fields = element_type.field_types if isinstance(element_type, TupleTypeInfo) else (element_type,)
    numbers = any(
        isinstance(kind, BasicTypeInfo) and (kind.basic_type in _BITS or kind.basic_type is BasicType.DOUBLE)
        for kind in fields
    )
    return columns_reader(element_type) if numbers else None


def number_column(values: Sequence[Any]) -> Numbers | None:
    """Values of any types as a column of numbers: 64-bit integers or floats, if all are of one type."""
    # exactly these types: True is a number as well, and would come back as 1
    kinds = set(map(type, values))
    return _integers(values) if kinds == {int} else np.array(values, np.float64) if kinds == {float} else None


def _integers(values: Sequence[Any]) -> Numbers | None:
    try:
        return np.array(values, np.int64)
    except OverflowError:
        return None


def _reader(kind: TypeInfo) -> _Read | None:
    match kind:
        case BasicTypeInfo(basic) if basic in _BITS:
            return _ints(_BITS[basic])
        case BasicTypeInfo(BasicType.DOUBLE):
            return lambda values: np.array(values, np.float64) if set(map(type, values)) == {float} else None
        case BasicTypeInfo(basic) if basic in _EXACT:
            exact = {_EXACT[basic]}
            return lambda values: values if set(map(type, values)) == exact else None
        case TupleTypeInfo():
            columns = _tuples(kind)
            return None if columns is None else lambda values: None if columns(values) is None else values
    return None


def _ints(bits: int) -> _Read:
    limit = 1 << (bits - 1)
    only_ints = {int}

    def read(values: Sequence[Any]) -> Column | None:
        if set(map(type, values)) != only_ints:
            return None
        if bits < 64 and not (-limit <= min(values) and max(values) < limit):
            return None
        return _integers(values)

    return read


def _tuples(kind: TupleTypeInfo) -> ReadColumns | None:
    """A tuple whose fields need nothing done needs no copy."""
    # zip(*values) would make an iterator of each value
    fields = [(itemgetter(position), _reader(field)) for position, field in enumerate(kind.field_types)]
    readers = [(field, _or_none(read)) for field, read in fields if read is not None]
    if len(readers) < len(fields):
        return None
    only_tuples, only_length = {tuple}, {len(fields)}

    def columns(values: Sequence[Any]) -> list[Column] | None:
        if set(map(type, values)) != only_tuples or set(map(len, values)) != only_length:
            return None
        found: list[Column] = []
        for field, read in readers:
            column = read(list(map(field, values)))
            if column is None:
                return None
            found.append(column)
        return found

    return columns


def _or_none(read: _Read) -> _Read:
    """None is a value of every field."""

    def column(values: Sequence[Any]) -> Column | None:
        found = read(values)
        if found is not None:
            return found
        present = [value for value in values if value is not None]
        if len(present) == len(values) or (present and read(present) is None):
            return None
        return values

    return column
