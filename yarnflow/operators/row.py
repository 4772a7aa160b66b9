"""PyFlink's ``Row``: named or positional values with a kind of change, which can be changed.

Rows of one stream share one tuple or list of names, so a block of rows is pickled with the names
written once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Enum
from typing import Any, SupportsIndex

from yarnflow.graph.compatibility import NO_JVM, refused


class RowKind(Enum):
    """What a row says about the one before it."""

    INSERT = 0
    UPDATE_BEFORE = 1
    UPDATE_AFTER = 2
    DELETE = 3

    def __str__(self) -> str:
        return _SHORT[self.value]

    @refused(NO_JVM)
    def to_j_row_kind(self) -> Any:
        """Flink's Java value."""


_SHORT = ("+I", "-U", "+U", "-D")
_KINDS = tuple(RowKind)
_INSERT = RowKind.INSERT


class Row:
    """Values by position, and by name where they have names.

    ``Row(name="Alice", age=11)`` names its values, ``Row("Alice", 11)`` does not, and a row of
    texts makes rows of these names: ``Row("name", "age")("Alice", 11)``.  Read and write by
    ``row[0]`` and ``row["name"]``; read by ``row.name``.  Rows of the same names are equal in
    whatever order their fields come.
    """

    __slots__ = ("_fields", "_row_kind", "_values")
    _fields: Sequence[str] | None
    _values: list[Any]
    _row_kind: RowKind

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if kwargs:
            if args:
                raise ValueError("Row takes either positional or named values, not both")
            self._fields = list(kwargs)
            self._values = list(kwargs.values())
        else:
            self._fields = None
            self._values = list(args)
        self._row_kind = _INSERT

    @staticmethod
    def of_kind(row_kind: RowKind, *args: Any, **kwargs: Any) -> Row:
        """A row of another kind than INSERT."""
        row = Row(*args, **kwargs)
        row._row_kind = row_kind
        return row

    def __call__(self, *args: Any) -> Row:
        """A row of values whose names are this row's values."""
        if len(args) > len(self._values):
            raise ValueError(f"a row of {self!r} has {len(self._values)} fields, got {len(args)} values")
        return make_row(self._values, list(args), self._row_kind)

    # --- kind and names ---------------------------------------------------------------

    def get_row_kind(self) -> RowKind:
        """What the row says about the one before it."""
        return self._row_kind

    def set_row_kind(self, row_kind: RowKind) -> None:
        """Change the kind."""
        self._row_kind = row_kind

    def set_field_names(self, field_names: Sequence[str]) -> None:
        """Name the fields; the names are kept as they are given, so rows can share them."""
        self._fields = field_names

    def get_fields_by_names(self, names: list[str]) -> list[Any]:
        """The values in the order of these names; a row without names gives all as they are.

        Raises
        ------
        KeyError
            Naming the fields the row does not have.
        """
        fields = self._fields
        if fields is None or fields is names or list(fields) == names:
            return self._values
        missing = [name for name in names if name not in fields]
        if missing:
            raise KeyError(f"no field {', '.join(missing)} in a row of {', '.join(map(str, fields))}")
        return [self._values[fields.index(name)] for name in names]

    def as_dict(self, recursive: bool = False) -> dict[str, Any]:
        """Name → value; with ``recursive`` the rows within, too.  Raises TypeError without names."""
        if self._fields is None:
            raise TypeError("a row without field names is no dict; call set_field_names(…) first")
        values = map(_as_plain, self._values) if recursive else self._values
        return dict(zip(self._fields, values, strict=False))

    # --- values -----------------------------------------------------------------------------

    def _position(self, name: str) -> int:
        if self._fields is None:
            raise KeyError(name)
        return self._fields.index(name)

    def __getitem__(self, item: SupportsIndex | slice | str) -> Any:
        if isinstance(item, str):
            return self._values[self._position(item)]
        return self._values[item]

    def __setitem__(self, key: SupportsIndex | slice | str, value: Any) -> None:
        if isinstance(key, str):
            self._values[self._position(key)] = value
        else:
            self._values[key] = value

    def __getattr__(self, item: str) -> Any:
        # reached only for what is no attribute of the class
        if item[:1] != "_" and self._fields is not None and item in self._fields:
            return self._values[self._fields.index(item)]
        raise AttributeError(item)

    def __contains__(self, item: object) -> bool:
        return item in (self._values if self._fields is None else self._fields)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Row) or self._row_kind is not other._row_kind:
            return False
        mine, theirs = self._fields, other._fields
        if mine is None or theirs is None:
            return mine is theirs and self._values == other._values
        if mine is theirs or list(mine) == list(theirs):
            return self._values == other._values
        if sorted(mine) != sorted(theirs):
            return False
        return all(self[name] == other[name] for name in mine)

    def __hash__(self) -> int:
        return hash(tuple(self._values))

    def __repr__(self) -> str:
        if self._fields is None:
            return f"<Row({', '.join(map(repr, self._values))})>"
        named = zip(self._fields, self._values, strict=False)
        return f"Row({', '.join(f'{name}={value!r}' for name, value in named)})"

    def __reduce__(self) -> tuple[Any, ...]:
        if self._row_kind is _INSERT:
            return _restore, (self._fields, *self._values)
        return _restore_kind, (self._row_kind.value, self._fields, *self._values)


def make_row(fields: Sequence[str] | None, values: list[Any], row_kind: RowKind = _INSERT) -> Row:
    """A row that takes the list of values and the names over as they are: the fast way in."""
    row = Row.__new__(Row)
    row._fields = fields
    row._values = values
    row._row_kind = row_kind
    return row


def _restore(fields: Sequence[str] | None, *values: Any) -> Row:
    return make_row(fields, list(values))


def _restore_kind(kind: int, fields: Sequence[str] | None, *values: Any) -> Row:
    return make_row(fields, list(values), _KINDS[kind])


def _as_plain(value: Any) -> Any:
    if isinstance(value, Row):
        return value.as_dict(True)
    if isinstance(value, list):
        return [_as_plain(item) for item in value]
    if isinstance(value, dict):
        return {key: _as_plain(item) for key, item in value.items()}
    return value
