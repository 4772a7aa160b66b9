"""Which key group a key belongs to: the same in every process, for keys that are equal the same.

Python's own ``hash`` of text differs from process to process, so it is used for numbers alone, where it
is defined by the language.  Flink counterpart: ``KeyGroupRangeAssignment``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from datetime import UTC, date, datetime, time, timedelta
from enum import Enum
from numbers import Number
from typing import Any, Final
from zlib import crc32

import numpy as np

from yarnflow.errors import InvalidKey

_MASK: Final = 2**64 - 1
#: spreads neighbouring numbers over all groups (2**64 divided by the golden ratio)
_SPREAD: Final = 0x9E3779B97F4A7C15
#: multiplier for the parts of compound keys; odd, so that no part is lost
_STEP: Final = 0x100000001B3
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
#: keys whose group is remembered; beyond it all are forgotten at once
_REMEMBERED: Final = 200_000


def key_group(key: Any, groups: int) -> int:
    """The group of a key, from 0 to ``groups`` - 1.

    Keys that are equal have one group, so 1, 1.0, True and Decimal(1) have; a Row and a tuple of the same
    values have as well.

    Parameters
    ----------
    key : object
        None, a number, str, bytes, date, time, datetime, timedelta, Enum, UUID, or a tuple, Row,
        frozenset or frozen dataclass of these.
    groups : int
        Number of key groups, Flink's maximum parallelism.

    Raises
    ------
    InvalidKey
        The key cannot be a key.
    """
    return ((stable_hash(key) * _SPREAD & _MASK) >> 32) % groups


def number_key_groups(keys: np.ndarray[Any, Any], groups: int) -> np.ndarray[Any, Any] | None:
    """:func:`key_group` of many whole numbers at once; None for others, negative or very large ones."""
    if keys.dtype != np.int64 or keys.min() < 0 or keys.max() >= sys.hash_info.modulus:
        return None
    # Python's hash of these is the number itself
    spread = keys.astype(np.uint64) * np.uint64(_SPREAD)
    return ((spread >> np.uint64(32)) % np.uint64(groups)).astype(np.int32)


def subtask_of_group(group: int, parallelism: int, groups: int) -> int:
    """The subtask a key group belongs to: each has a range of groups."""
    return group * parallelism // groups


def is_first_of_subtask(group: int, parallelism: int, groups: int) -> bool:
    """Whether no smaller group belongs to the same subtask."""
    subtask = subtask_of_group(group, parallelism, groups)
    return group == 0 or subtask_of_group(group - 1, parallelism, groups) < subtask


class KeyGroups(dict[Any, int]):
    """Key → group, computed at first use: ``groups[key]`` per element.

    Raises
    ------
    TypeError
        By ``groups[key]``: Python cannot hash the key.
    InvalidKey
        By ``groups[key]``: the key cannot be a key for another reason.
    """

    def __init__(self, groups: int) -> None:
        super().__init__()
        self._groups = groups

    def __missing__(self, key: Any) -> int:
        group = key_group(key, self._groups)
        if len(self) >= _REMEMBERED:
            self.clear()
        self[key] = group
        return group


def stable_hash(key: Any) -> int:
    """A hash of a key that is the same in every process; errors as :func:`key_group`."""
    simple = _SIMPLE.get(type(key))
    if simple is not None:
        return simple(key)
    return _other_hash(key)


def _text(key: str) -> int:
    return crc32(key.encode("utf-8", "surrogatepass"))


def _number(key: Any) -> int:
    if key != key:
        raise InvalidKey("NaN cannot be a key, since it does not equal itself; use None instead")
    # the same for equal numbers of all types, and the same in every process
    return hash(key) & _MASK


def _parts(parts: Any, start: int) -> int:
    found = start
    for part in parts:
        found = (found ^ stable_hash(part)) * _STEP & _MASK
    return found


def _datetime(key: datetime) -> int:
    offset = key.utcoffset()
    instant = key.replace(tzinfo=UTC, fold=0)
    return (instant - _EPOCH - (offset or timedelta())) // timedelta(microseconds=1) & _MASK


def _time(key: time) -> int:
    offset = key.utcoffset() or timedelta()
    since = timedelta(hours=key.hour, minutes=key.minute, seconds=key.second, microseconds=key.microsecond)
    return (since - offset) // timedelta(microseconds=1) & _MASK


_SIMPLE: Final[dict[type, Callable[[Any], int]]] = {
    type(None): lambda key: 0,
    str: _text,
    bytes: crc32,
    int: _number,
    float: _number,
    bool: _number,
    tuple: lambda key: _parts(key, 1),
    datetime: _datetime,
    date: lambda key: key.toordinal(),
    time: _time,
    timedelta: lambda key: key // timedelta(microseconds=1) & _MASK,
    # equal sets have one order-free hash
    frozenset: lambda key: sum(map(stable_hash, key)) & _MASK,
}


def _other_hash(key: Any) -> int:
    """Of subclasses and rarer types."""
    if isinstance(key, (str, bytes, tuple, frozenset, datetime, date, time, timedelta)):
        for kind in type(key).__mro__:
            if kind in _SIMPLE:
                return _SIMPLE[kind](key)
    if isinstance(key, Number):
        return _number(key)
    if isinstance(key, Enum):
        return _text(f"{type(key).__qualname__}.{key.name}")
    kind = type(key)
    parameters: Any = getattr(kind, "__dataclass_params__", None)
    if is_dataclass(kind) and parameters.frozen and parameters.eq:
        return _parts(
            (getattr(key, field.name) for field in fields(kind) if field.compare), _text(kind.__qualname__)
        )
    if hasattr(kind, "get_row_kind"):  # a Row that is no tuple: equal in any order of its fields
        names = key._fields
        return _parts(key._values if names is None else [key[name] for name in sorted(names)], 2)
    if kind.__module__ == "uuid":
        return crc32(key.bytes)
    raise InvalidKey(
        f"an object of type {kind.__qualname__} cannot be a key: its hash is not the same in every process; "
        "return a str, a number, or a tuple or frozen dataclass of these from the key selector"
    )
