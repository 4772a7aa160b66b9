"""Arrow columns ↔ Python values, in workers.

Decides how values look to user functions: timestamps are naive UTC ``datetime``s, structs are
:class:`~yarnflow.graph.rows.Row`, maps are ``dict``, the rest is what Arrow gives.  On the way
back every value must fit its declared type; one that does not is a ``TypeError`` naming
function, field and value.  Flink counterpart: PyFlink's coders.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa

from yarnflow.graph.rows import input_records, record_reader, row_class
from yarnflow.graph.schema import Field, Schema

Converter = Callable[[Any], Any]

_UTC_MICROSECONDS: Final = pa.timestamp("us", tz="UTC")


def naive_type(kind: pa.DataType) -> pa.DataType:
    """The type with every zoned timestamp in it as a naive UTC one."""
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        return pa.timestamp(kind.unit)
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(naive_type(kind.value_type)))
    if pa.types.is_struct(kind):
        return pa.struct([f.with_type(naive_type(f.type)) for f in _struct_fields(kind)])
    if pa.types.is_map(kind):
        return pa.map_(naive_type(kind.key_type), kind.item_field.with_type(naive_type(kind.item_type)))
    return kind


def _struct_fields(kind: pa.DataType) -> list[pa.Field]:
    return [kind.field(i) for i in range(kind.num_fields)]


def to_python(kind: pa.DataType) -> Converter | None:
    """From what ``to_pylist`` gives to what functions see; None = the same."""
    if pa.types.is_struct(kind):
        fields = _struct_fields(kind)
        make = row_class(tuple(f.name for f in fields))._make
        inner = [(f.name, to_python(f.type)) for f in fields]

        def struct(value: Any) -> Any:
            if value is None:
                return None
            return make(value[n] if c is None else c(value[n]) for n, c in inner)

        return struct
    if pa.types.is_map(kind):
        key, item = to_python(kind.key_type), to_python(kind.item_type)

        def mapping(value: Any) -> Any:
            if value is None:
                return None
            return {(k if key is None else key(k)): (v if item is None else item(v)) for k, v in value}

        return mapping
    if pa.types.is_list(kind):
        element = to_python(kind.value_type)
        if element is None:
            return None
        convert = element
        return lambda value: None if value is None else [convert(v) for v in value]
    return None


def to_arrow_value(kind: pa.DataType) -> Converter | None:
    """From what functions return to what ``pa.array`` takes; None = the same."""
    if pa.types.is_struct(kind):
        fields = _struct_fields(kind)
        names = tuple(f.name for f in fields)
        read = record_reader(_schema_of(names))
        inner = [_nested(f.type) for f in fields]

        def struct(value: Any) -> Any:
            if value is None:
                return None
            values = read(value)
            return {n: v if c is None else c(v) for n, v, c in zip(names, values, inner, strict=True)}

        return struct
    if pa.types.is_map(kind):
        key, item = _nested(kind.key_type), _nested(kind.item_type)

        def mapping(value: Any) -> Any:
            if value is None:
                return None
            pairs = value.items() if isinstance(value, Mapping) else value
            return [(k if key is None else key(k), v if item is None else item(v)) for k, v in pairs]

        return mapping
    if pa.types.is_list(kind):
        element = _nested(kind.value_type)

        def array(value: Any) -> Any:
            if value is None:
                return None
            if isinstance(value, (str, bytes, Mapping)):
                raise TypeError(f"expected a list, got {value!r}")
            return list(value) if element is None else [element(v) for v in value]

        return array
    return None


def _nested(kind: pa.DataType) -> Converter | None:
    return _whole if pa.types.is_integer(kind) else to_arrow_value(kind)


def _schema_of(names: tuple[str, ...]) -> Schema:
    return Schema(tuple(Field(name) for name in names))


def column_values(column: pa.Array) -> Iterable[Any]:
    """A column's values as functions see them."""
    kind = naive_type(column.type)
    values: list[Any] = (column if kind == column.type else column.cast(kind)).to_pylist()
    convert = to_python(kind)
    return values if convert is None else map(convert, values)


def records(batch: pa.RecordBatch, schema: Schema) -> Iterator[Any]:
    """The batch's records: bare values of a scalar stream, else rows."""
    return input_records([column_values(batch.column(name)) for name in schema.names], schema)


def microseconds(column: pa.Array) -> list[int | None]:
    """A timestamp column as microseconds since the epoch."""
    found: list[int | None] = column.cast(_UTC_MICROSECONDS).cast(pa.int64()).to_pylist()
    return found


def timestamps(values_us: Iterable[int | None]) -> pa.Array:
    """Microseconds since the epoch as a timestamp column."""
    return pa.array(values_us, pa.int64()).cast(_UTC_MICROSECONDS)


class ColumnBuilder:
    """Builds output batches of the declared types.

    Parameters
    ----------
    output : pyarrow.Schema
        All columns, hidden ones too.
    schema : Schema
        The record fields among them.
    function : str
        The function that made the records, for messages.
    type_names : mapping
        Column → Spark type text, for messages.
    """

    def __init__(
        self, output: pa.Schema, schema: Schema, function: str, type_names: Mapping[str, str]
    ) -> None:
        self._output = output
        self._schema = schema
        self._function = function
        self._type_names = type_names
        self._width = len(schema.fields)
        self._read = record_reader(schema)

    def values(self, record: Any) -> tuple[Any, ...]:
        """One record's values in field order."""
        try:
            return self._read(record)
        except TypeError as error:
            raise TypeError(f"{self._function}: {error}, got {_short(record)}") from None

    def batch(self, made: Sequence[Any], hidden: Mapping[str, pa.Array]) -> pa.RecordBatch:
        """A batch of what the function returned, with the hidden columns beside it."""
        if self._schema.scalar:
            columns: list[Sequence[Any]] = [made]
        else:
            width = self._width
            rows = [r if type(r) is tuple and len(r) == width else self.values(r) for r in made]
            columns = list(zip(*rows, strict=True))
        arrays = {
            name: self.array(name, column) for name, column in zip(self._schema.names, columns, strict=True)
        }
        arrays.update(hidden)
        return pa.RecordBatch.from_arrays([arrays[n] for n in self._output.names], schema=self._output)

    def array(self, name: str, values: Sequence[Any]) -> pa.Array:
        """One column; raises TypeError naming the value that does not fit."""
        kind = self._output.field(name).type
        naive = naive_type(kind)
        convert = to_arrow_value(naive)
        try:
            array = _array(values if convert is None else [convert(v) for v in values], naive)
        except (pa.ArrowException, TypeError, ValueError, OverflowError, AttributeError) as error:
            raise self._misfit(name, naive, convert, values, error) from None
        return array if naive == kind else array.cast(kind)

    def _misfit(
        self, name: str, kind: pa.DataType, convert: Converter | None, values: Sequence[Any], error: Exception
    ) -> TypeError:
        declared = self._type_names.get(name, str(kind))
        for value in values:
            try:
                _array([value if convert is None else convert(value)], kind)
            except (pa.ArrowException, TypeError, ValueError, OverflowError, AttributeError) as why:
                return TypeError(
                    f"{self._function}: field '{name}' is declared {declared}, got {_short(value)} "
                    f"({type(value).__name__}): {why}"
                )
        return TypeError(f"{self._function}: field '{name}' is declared {declared}: {error}")


def _array(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    if not pa.types.is_integer(kind):
        return pa.array(values, kind)
    # pa.array would cut 1.5 to 1 without a word; a checked cast does not
    found = pa.array(values)
    if not (
        pa.types.is_integer(found.type) or pa.types.is_floating(found.type) or pa.types.is_null(found.type)
    ):
        raise TypeError(f"expected an int, got {found.type}")
    return found if found.type == kind else found.cast(kind)


def _whole(value: Any) -> Any:
    if isinstance(value, float) and not value.is_integer():
        raise TypeError(f"expected an int, got {value!r}")
    return value


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 120 else text[:117] + "..."


def row_maker(schema: Schema, function: str) -> Callable[[Any], Any]:
    """A function from what one function returned to a row with names, for the next function.

    ``function`` is the one that returned it, for messages.
    """
    read, own_class, new = record_reader(schema), row_class(schema.names), tuple.__new__

    def row(record: Any) -> Any:
        if type(record) is own_class:
            return record
        try:
            return new(own_class, read(record))
        except TypeError as error:
            raise TypeError(f"{function}: {error}, got {_short(record)}") from None

    return row
