"""Elements on their way to key groups as columns: sorted by group at once, numbers written as bytes.

To deal elements to groups one by one, and to pickle each tuple and number by itself, takes most of what an
exchange takes.  As columns they are taken up while they are in the processor's cache, and what follows is
done by the column.  Decides nothing but how they are written: values, times and keys come back as they were.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import itemgetter
from typing import Any, Final

import numpy as np

from yarnflow.graph.type_info import TupleTypeInfo, TypeInfo
from yarnflow.operators.types.columns import Column, number_column

#: numbers, or objects
_Array = np.ndarray[Any, np.dtype[Any]]
#: a list as it is; (type, bytes) of numbers; (TUPLES, column, column, …) of tuples
Packed = Any

_TUPLES: Final = "tuples"


def unpacked(found: Packed) -> list[Any]:
    """The values again."""
    if type(found) is list:
        return found
    kind, *parts = found
    if kind == _TUPLES:
        return list(zip(*map(unpacked, parts), strict=True))
    values: list[Any] = np.frombuffer(parts[0], kind).tolist()
    return values


class GroupColumns:
    """Elements with their groups, keys and times, as columns.

    Parameters
    ----------
    element_type : TypeInfo or None
        What all elements were converted to; None: they may be anything.
    """

    def __init__(self, element_type: TypeInfo | None) -> None:
        self._tuples = isinstance(element_type, TupleTypeInfo) and bool(element_type.field_types)
        fields = element_type.field_types if isinstance(element_type, TupleTypeInfo) else ()
        self._fields = [itemgetter(position) for position in range(len(fields))]
        #: of each call of :meth:`add`: groups, times, and keys before the columns of the values
        self._added: list[tuple[_Array, _Array | None, list[_Array]]] = []

    @property
    def empty(self) -> bool:
        """There are no elements."""
        return not self._added

    def add(
        self,
        groups: Sequence[int] | _Array,
        values: list[Any],
        timestamps: list[int | None] | None,
        keys: Column,
        columns: list[Column] | None = None,
    ) -> None:
        """Take elements, at least one; the lists are not kept.

        Parameters
        ----------
        keys : Column
            An array of numbers, or any keys.
        columns : list of Column, optional
            Those of the values, if they are known.
        """
        if columns is None:
            lists = [list(map(field, values)) for field in self._fields] if self._tuples else [values]
            columns = [*map(_numbers_or_values, lists)]
        times = None if timestamps is None else _array(_numbers_or_values(timestamps))
        self._added.append((np.asarray(groups, np.int32), times, [_array(keys), *map(_array, columns)]))

    def take(self) -> Iterator[tuple[int, Packed, Packed | None, Packed]]:
        """Group, values, times and keys of each group that elements were added for, in their order.

        Nothing is left.
        """
        added, self._added = self._added, []
        groups = _joined([groups for groups, _, _ in added])
        order = np.argsort(groups, kind="stable")
        in_order = groups[order]
        starts = np.flatnonzero(np.diff(in_order, prepend=-1)).tolist()
        times = _joined_times([(times, len(groups)) for groups, times, _ in added])
        times = None if times is None else times[order]
        rest = zip(*(columns for _, _, columns in added), strict=True)
        keys, *columns = [_joined(list(found))[order] for found in rest]
        for start, end in zip(starts, [*starts[1:], len(order)], strict=True):
            packed = [_packed(column[start:end]) for column in columns]
            yield (
                int(in_order[start]),
                (_TUPLES, *packed) if self._tuples else packed[0],
                None if times is None else _packed(times[start:end]),
                _packed(keys[start:end]),
            )


def _numbers_or_values(values: list[Any]) -> Column:
    numbers = number_column(values)
    return values if numbers is None else numbers


def _array(column: Column) -> _Array:
    return column if isinstance(column, np.ndarray) else np.fromiter(column, object, len(column))


def _joined(columns: list[_Array]) -> _Array:
    if len({column.dtype for column in columns}) > 1:
        columns = [column.astype(object) for column in columns]
    return np.concatenate(columns)


def _joined_times(columns: list[tuple[_Array | None, int]]) -> _Array | None:
    """Elements added without times have None where others have some."""
    if all(times is None for times, _ in columns):
        return None
    return _joined(
        [np.full(count, None, object) if times is None else times for times, count in columns]
    )


def _packed(column: _Array) -> Packed:
    return column.tolist() if column.dtype == object else (column.dtype.str, column.tobytes())
