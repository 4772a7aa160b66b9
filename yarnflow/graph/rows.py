"""Records as Python functions see them.

Decides how a record of several fields looks to a user function (:class:`Row`) and how what
a function returned becomes the values of the output fields (:func:`record_reader`).  Never
converts types: that is Arrow's work.  Flink counterpart: PyFlink's ``Row``.
"""

from __future__ import annotations

import dataclasses
from collections import namedtuple
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, ClassVar, SupportsIndex, cast, overload

from yarnflow.graph.schema import Schema


class Row(tuple[Any, ...]):
    """A record: a tuple whose items also have names.

    ``Row(word="a", count=1)`` names its fields; ``Row("a", 1)`` is positional and takes the
    names of the stream it is returned to.  Read a field by attribute, index or
    ``row["name"]``, which works for every name; iteration gives the values.
    """

    __slots__ = ()
    _fields: ClassVar[tuple[str, ...]] = ()
    _index: ClassVar[dict[str, int]] = {}

    def __new__(cls, *values: object, **named: object) -> Row:
        if named:
            if values:
                raise TypeError("Row takes either positional or named values, not both")
            return row_class(tuple(named))._make(named.values())
        if cls._fields and len(values) != len(cls._fields):
            raise TypeError(
                f"Row of {', '.join(cls._fields)} takes {len(cls._fields)} values, got {len(values)}"
            )
        return tuple.__new__(cls, values)

    @classmethod
    def _make(cls, values: Iterable[object]) -> Row:
        """A row of this class without any check: the fast way in."""
        return tuple.__new__(cls, values)

    @overload
    def __getitem__(self, key: SupportsIndex | str) -> Any: ...

    @overload
    def __getitem__(self, key: slice) -> tuple[Any, ...]: ...

    def __getitem__(self, key: SupportsIndex | str | slice) -> Any:
        if isinstance(key, str):
            try:
                return tuple.__getitem__(self, self._index[key])
            except KeyError:
                raise KeyError(f"no field {key!r}; fields: {', '.join(self._fields)}") from None
        return tuple.__getitem__(self, key)

    def __getattr__(self, name: str) -> Any:
        # only reached when the name is no field: field names are properties of the class
        raise AttributeError(f"no field {name!r}; fields: {', '.join(self._fields)}")

    def as_dict(self) -> dict[str, Any]:
        """Field name → value, in order."""
        return dict(zip(self._fields, self, strict=True))

    def __repr__(self) -> str:
        if not self._fields:
            return f"Row({', '.join(map(repr, self))})"
        return f"Row({', '.join(f'{n}={v!r}' for n, v in zip(self._fields, self, strict=True))})"

    def __reduce__(self) -> tuple[Any, ...]:
        # classes are made per schema at run time, so a pickle names the schema instead
        return _restore, (self._fields, tuple(self))


@lru_cache(maxsize=1024)
def row_class(names: tuple[str, ...]) -> type[Row]:
    """The row class of a schema; the same class for the same names.

    Parameters
    ----------
    names : tuple of str
        Field names in order.  Names that are no identifiers work by ``row["name"]``.
    """
    # namedtuple's own descriptors read the tuple without a detour over Row.__getitem__
    fields = namedtuple("fields", names, rename=True)  # type: ignore[misc]
    members: dict[str, object] = {
        "__slots__": (),
        "_fields": names,
        "_index": {name: position for position, name in enumerate(names)},
    }
    for position, name in enumerate(names):
        # ``count`` and ``index`` win over tuple's methods; Row's own names do not give way
        if name.isidentifier() and not name.startswith("_") and name != "as_dict":
            members[name] = vars(fields)[fields._fields[position]]
    return cast("type[Row]", type("Row", (Row,), members))


def _restore(names: tuple[str, ...], values: tuple[object, ...]) -> Row:
    return row_class(names)._make(values) if names else Row(*values)


RecordReader = Callable[[object], tuple[object, ...]]


def record_reader(schema: Schema) -> RecordReader:
    """A function from what a user function returned to the output fields' values, in schema order.

    A scalar stream takes the value as it is.  Others take a tuple, Row, list, NamedTuple,
    mapping or dataclass instance.  The function raises TypeError when the record does not have
    the stream's form; the message says which was expected.
    """
    if schema.scalar:
        return lambda record: (record,)
    names = schema.names
    count, own_class = len(names), row_class(names)

    def read(record: object) -> tuple[object, ...]:
        kind = type(record)
        if kind is own_class or (kind is tuple and len(record) == count):  # type: ignore[arg-type]
            return record  # type: ignore[return-value]
        return _other_form(record, names)

    return read


def _other_form(record: object, names: tuple[str, ...]) -> tuple[object, ...]:
    if isinstance(record, Row) and record._fields and record._fields != names:
        if set(record._fields) == set(names):
            return tuple(record[name] for name in names)
        raise TypeError(_mismatch(f"a Row of {', '.join(record._fields)}", names))
    if hasattr(record, "get_row_kind"):
        # a Row of element functions, which is no tuple; iteration gives its values
        record = tuple(cast("Iterable[object]", record))
    if isinstance(record, (tuple, list)):
        if len(record) != len(names):
            raise TypeError(_mismatch(f"{len(record)} values", names))
        return tuple(record)
    if isinstance(record, Mapping):
        unknown = [str(key) for key in record if key not in names]
        if unknown:
            raise TypeError(_mismatch(f"a mapping with the key {unknown[0]!r}", names))
        return tuple(record.get(name) for name in names)
    if dataclasses.is_dataclass(record) and not isinstance(record, type):
        missing = [name for name in names if not hasattr(record, name)]
        if missing:
            raise TypeError(_mismatch(f"a {type(record).__name__} without {missing[0]!r}", names))
        return tuple(getattr(record, name) for name in names)
    raise TypeError(_mismatch(f"a {type(record).__name__}", names))


def _mismatch(got: str, names: tuple[str, ...]) -> str:
    return f"the function returned {got}, the stream's fields are {', '.join(names)}"


def input_records(columns: Iterable[Iterable[object]], schema: Schema) -> Iterator[object]:
    """Records of column values as a user function takes them: bare values or rows."""
    if schema.scalar:
        return iter(next(iter(columns)))
    make = row_class(schema.names)._make
    return map(make, zip(*columns, strict=True))
