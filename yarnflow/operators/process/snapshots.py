"""Elements as they were when they were emitted, whatever functions do with the objects later.

A function may emit an object that it keeps, such as a value of its state, and change it for its next element.
Results wait until a chunk of them is done, so what can change is copied when it is emitted.  PyFlink encodes
elements at that moment; a copy costs less, and nothing where nothing can change.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable
from copy import deepcopy
from decimal import Decimal
from enum import Enum
from functools import lru_cache
from typing import Any, Final

from yarnflow.graph.type_info import (
    BasicTypeInfo,
    DateTypeInfo,
    ExternalTypeInfo,
    LocalTimeTypeInfo,
    TimestampTypeInfo,
    TimeTypeInfo,
    TupleTypeInfo,
    TypeInfo,
)
from yarnflow.operators.functions.output_tag import OutputTag
from yarnflow.operators.instant import Instant
from yarnflow.operators.row import Row, make_row

Extend = Callable[[Iterable[Any]], None]
Append = Callable[[Any], None]

#: their values never change
_FIXED: Final[frozenset[type]] = frozenset(
    {
        *(type(None), bool, int, float, complex, str, bytes, Decimal, Instant, OutputTag),
        *(datetime.date, datetime.time, datetime.datetime, datetime.timedelta, datetime.timezone),
    }
)
#: of a class that says nothing of its own about copies they are those of ``object``
_WAYS_TO_BE_COPIED: Final = ("__new__", "__reduce__", "__reduce_ex__", "__getstate__")
_FIXED_TYPES: Final = (BasicTypeInfo, DateTypeInfo, TimeTypeInfo, TimestampTypeInfo, LocalTimeTypeInfo)


def is_fixed(kind: TypeInfo | None) -> bool:
    """Whether elements of a type can never change; None = anything."""
    if isinstance(kind, TupleTypeInfo):
        return all(map(is_fixed, kind.field_types))
    if isinstance(kind, ExternalTypeInfo):
        return is_fixed(kind.type_info)
    return isinstance(kind, _FIXED_TYPES)


def extender(results: list[Any], fixed: bool) -> Extend:
    """``results.extend``, which takes each result as it is when it comes; ``fixed``: none can change."""
    if fixed:
        return results.extend

    def extend(found: Iterable[Any]) -> None:
        results.extend(map(snapshot, found))

    return extend


def appender(results: list[Any], fixed: bool) -> Append:
    """``results.append``, which takes the result as it is now; see :func:`extender`."""
    if fixed:
        return results.append
    append = results.append

    def append_snapshot(result: Any) -> None:
        append(snapshot(result))

    return append_snapshot


def snapshot(value: Any) -> Any:
    """A value that nobody else can change: itself where it cannot change, else a copy.

    What cannot be copied, such as an open file, stays the same object: it can only go to a function
    of the same process, as in a chain of PyFlink's.
    """
    kind = type(value)
    if kind in _FIXED or (kind is tuple and _all_fixed(value)):
        return value
    try:
        return _copy(value)
    except RecursionError:  # a list or dict that holds itself
        return value


def _copy(value: Any) -> Any:
    kind = type(value)
    if kind in _FIXED:
        return value
    if kind is tuple:
        return value if _all_fixed(value) else tuple(map(_copy, value))
    if kind is Row:
        return make_row(value._fields, _list(value._values), value._row_kind)
    if kind is dict:
        values = value.values()
        return value.copy() if _all_fixed(values) else dict(zip(value, map(_copy, values), strict=True))
    if kind is list:
        return _list(value)
    if isinstance(value, (Enum, type)):
        return value
    if isinstance(value, (tuple, frozenset)) and _all_fixed(value) and not hasattr(value, "__dict__"):
        return value
    # mypy takes a class for something that cannot be hashed
    if _is_plain_class(kind) and _all_fixed(value.__dict__.values()):  # type: ignore[arg-type]
        made = object.__new__(kind)
        made.__dict__.update(value.__dict__)
        return made
    try:
        return deepcopy(value)
    except Exception:
        return value


def _all_fixed(values: Iterable[Any]) -> bool:
    return _FIXED.issuperset(map(type, values))


def _list(values: list[Any]) -> list[Any]:
    return values[:] if _all_fixed(values) else list(map(_copy, values))


@lru_cache(maxsize=1_000)
def _is_plain_class(kind: type) -> bool:
    """Whether all there is of an object is its ``__dict__``, as with most dataclasses."""
    return (
        all(getattr(kind, name) is getattr(object, name) for name in _WAYS_TO_BE_COPIED)
        and not any(hasattr(kind, name) for name in ("__deepcopy__", "__setstate__"))
        and not any("__slots__" in vars(base) for base in kind.__mro__)
        and kind.__dictoffset__ != 0
    )
