"""Whether what functions store is of the type they registered the state with.

Values are looked at when they are made durable: once per entry and batch, whatever the number of updates,
and many at a time.  What is near its type, as a tuple is to a row, fits and stays as it is; nothing is
converted.  PyFlink counterpart: the coders of the state's descriptor, which fail then, too.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Final

from yarnflow.errors import InvalidStateUse
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
    RowTypeInfo,
    TimestampTypeInfo,
    TimeType,
    TimeTypeInfo,
    TypeInfo,
    TypeInformation,
)
from yarnflow.operators.row import Row
from yarnflow.operators.state.cells import CellChanges, Slot, TableChanges
from yarnflow.operators.state.kinds import StateKind
from yarnflow.operators.types.coerce import Misfit, coercer, shown

#: raises InvalidStateUse
ChangesCheck = Callable[[TableChanges], None]
#: whether all of some values fit as they are; False where some may be near only
_Quick = Callable[[Sequence[Any]], bool]
#: a slot with a value of it
_Found = tuple[Slot, Any]


def changes_check(where: str, kind: StateKind, type_info: object) -> ChangesCheck | None:
    """A check of what changed in a state.

    Parameters
    ----------
    where : str
        Operator and state, for the error.
    type_info : object
        As registered; the pair of the types of key and value for a MAP.

    Returns
    -------
    callable or None
        ``check(changes)``, which raises InvalidStateUse; None: anything fits.
    """
    if kind is StateKind.MAP:
        key_type, value_type = type_info if isinstance(type_info, tuple) else (None, None)
        checks = [
            _check(f"{where}, key of an entry", key_type, _entry_keys, nullable=False),
            _check(f"{where}, value of an entry", value_type, _entry_values, nullable=True),
        ]
    elif kind is StateKind.LIST:
        checks = [_check(f"{where}, element of the list", type_info, _list_elements, nullable=False)]
    else:
        checks = [_check(where, type_info, _whole_values, nullable=True, values_of=_only_values)]
    wanted = [check for check in checks if check is not None]
    if not wanted:
        return None

    def check_all(changes: TableChanges) -> None:
        for cells in (changes.plain, changes.spaced):
            if cells is not None:
                for check in wanted:
                    check(cells, changes.timed)

    return check_all


def _check(
    where: str,
    type_info: object,
    slots_of: Callable[[CellChanges, bool], Iterator[_Found]],
    nullable: bool,
    values_of: Callable[[CellChanges, bool], list[Any]] | None = None,
) -> Callable[[CellChanges, bool], None] | None:
    if not isinstance(type_info, TypeInformation) or isinstance(type_info, PickledBytesTypeInfo):
        return None
    kind: TypeInfo = type_info  # type: ignore[assignment]
    quick, coerce = _quick(kind), coercer(kind)
    if values_of is None:

        def values_of(cells: CellChanges, timed: bool) -> list[Any]:
            return [value for _, value in slots_of(cells, timed)]

    def check(cells: CellChanges, timed: bool) -> None:
        values = values_of(cells, timed)
        if not values or quick(values):
            return
        for slot, value in slots_of(cells, timed):
            if value is None and nullable:
                continue
            try:
                coerce(value)
            except Misfit as misfit:
                raise _error(where, kind, slot, value, misfit) from None

    return check


def _error(where: str, kind: TypeInfo, slot: Slot, value: Any, misfit: Misfit) -> InvalidStateUse:
    path = misfit.path.lstrip(".")
    part = f", field {path}" if path else ""
    return InvalidStateUse(
        f"{where}: the descriptor says {kind!r}, and {shown(value)} was stored under {shown(slot)}{part}: "
        f"{misfit.wanted} is needed and {shown(misfit.value)} ({type(misfit.value).__name__}) came; "
        "correct the descriptor's type or what the function stores"
    )


# --- values of what changed -------------------------------------------------------------


def _whole_values(cells: CellChanges, timed: bool) -> Iterator[_Found]:
    if timed:
        return ((slot, entry[1]) for slot, entry in cells.put.items())
    return iter(cells.put.items())


def _only_values(cells: CellChanges, timed: bool) -> list[Any]:
    """The same without slots, for what is the most frequent."""
    return [entry[1] for entry in cells.put.values()] if timed else list(cells.put.values())


def _list_elements(cells: CellChanges, timed: bool) -> Iterator[_Found]:
    for slot, elements in chain(cells.put.items(), cells.appended.items()):
        for element in elements:
            yield slot, element[1] if timed else element


def _entry_keys(cells: CellChanges, timed: bool) -> Iterator[_Found]:
    for slot, entries in _entries(cells):
        for key in entries:
            yield slot, key


def _entry_values(cells: CellChanges, timed: bool) -> Iterator[_Found]:
    for slot, entries in _entries(cells):
        for value in entries.values():
            yield slot, value[1] if timed else value


def _entries(cells: CellChanges) -> Iterable[tuple[Slot, Mapping[Any, Any]]]:
    return chain(cells.put.items(), cells.map_put.items())


# --- many values at a time ----------------------------------------------------------------


def _quick(kind: TypeInfo) -> _Quick:
    match kind:
        case RowTypeInfo(types):
            names = kind.get_field_names() if kind.field_names else None
            return _rows([_quick(part) for part in types], names)
        case BasicArrayTypeInfo(element) | ObjectArrayTypeInfo(element) | ListTypeInfo(element):
            return _lists(_quick(element))
        case MapTypeInfo(key, value):
            return _dicts(_quick(key), _quick(value))
        case ExternalTypeInfo(inner):
            return _quick(inner)
        case BasicTypeInfo(BasicType.CHAR):
            return _of({str})
        case DateTypeInfo():
            return _of({datetime.date})
        case TimeTypeInfo():
            return _of({datetime.time})
        case TimestampTypeInfo():
            return _of({datetime.datetime})
        case LocalTimeTypeInfo(time_type):
            return _of({_LOCAL[time_type]})
        case PickledBytesTypeInfo():
            return lambda values: True
    # here, in a worker: a program that is being built needs no numpy
    from yarnflow.operators.types.columns import columns_reader

    columns = columns_reader(kind)
    return (lambda values: False) if columns is None else (lambda values: columns(values) is not None)


_LOCAL: Final[dict[TimeType, type]] = {
    TimeType.LOCAL_DATE: datetime.date,
    TimeType.LOCAL_TIME: datetime.time,
    TimeType.LOCAL_DATE_TIME: datetime.datetime,
}


def _of(types: set[type]) -> _Quick:
    return lambda values: set(map(type, values)) == types


def _rows(fields: list[_Quick], names: list[str] | None) -> _Quick:
    only_rows, only_length = {Row}, {len(fields)}

    def fit(values: Sequence[Any]) -> bool:
        if set(map(type, values)) != only_rows:
            return False
        fields_of = [row._values for row in values]
        if set(map(len, fields_of)) != only_length:
            return False
        # where both have names the fields may stand in another order
        if names is not None and any(row._fields is not None and row._fields != names for row in values):
            return False
        return all(_but_none(field, column) for field, column in zip(fields, zip(*fields_of), strict=True))

    return fit


def _lists(element: _Quick) -> _Quick:
    only_lists = {list}

    def fit(values: Sequence[Any]) -> bool:
        return set(map(type, values)) == only_lists and _but_none(element, chain.from_iterable(values))

    return fit


def _dicts(key: _Quick, value: _Quick) -> _Quick:
    only_dicts = {dict}

    def fit(values: Sequence[Any]) -> bool:
        if set(map(type, values)) != only_dicts:
            return False
        keys = list(chain.from_iterable(values))
        return not keys or (
            key(keys) and _but_none(value, chain.from_iterable(entries.values() for entries in values))
        )

    return fit


def _but_none(quick: _Quick, values: Iterable[Any]) -> bool:
    """None is a value of every field and element."""
    kept = [value for value in values if value is not None]
    return not kept or quick(kept)
