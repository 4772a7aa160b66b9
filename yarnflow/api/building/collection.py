"""Rows of the program as an Arrow stream.

Decides the types of rows without a schema and refuses values that do not fit their field.
Naive datetimes are UTC, as everywhere.  The only importer of pyarrow in this package, at
execute time only.  Flink counterpart: ``from_collection``.
"""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from yarnflow.errors import SchemaError, UnserializableFunction
from yarnflow.graph.closures import pickling
from yarnflow.graph.rows import Row, record_reader
from yarnflow.graph.schema import VALUE_FIELD, Field, Schema
from yarnflow.graph.type_info import TypeInfo
from yarnflow.graph.types import DataType, checked_schema, parse_type
from yarnflow.operators.row import Row as ElementRow
from yarnflow.operators.types.coerce import Coerce, Misfit, coercer

if TYPE_CHECKING:
    import pyarrow as pa


def encode_rows(rows: Sequence[object], schema: Schema | None) -> tuple[Schema, bytes]:
    """Rows as an Arrow IPC stream, columns in schema order.

    Raises
    ------
    SchemaError
        Naming the row and the field that do not fit.
    """
    import pyarrow as pa

    names = schema if schema is not None else _schema_of_rows(rows)
    read = record_reader(names)
    columns: list[list[object]] = [[] for _ in names.fields]
    for number, row in enumerate(rows):
        if isinstance(row, ElementRow):
            row = tuple(row) if row._fields is None else row.as_dict()
        try:
            values = read(row)
        except TypeError as exc:
            wanted = ", ".join(names.names)
            raise SchemaError(f"row {number} is {_short(row)}, which has not the fields {wanted}") from exc
        for column, value in zip(columns, values, strict=True):
            column.append(value)
    arrays = [_array(field, column) for field, column in zip(names.fields, columns, strict=True)]
    typed = tuple(
        Field(field.name, field.type or _ddl(array.type, field.name))
        for field, array in zip(names.fields, arrays, strict=True)
    )
    table = pa.table(arrays, names=list(names.names))
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return Schema(typed, names.scalar), sink.getvalue().to_pybytes()


def encode_elements(rows: Sequence[object], kind: TypeInfo) -> bytes:
    """Elements as an Arrow IPC stream of one binary column ``value``, each pickled.

    Raises
    ------
    SchemaError
        Naming the row and the field that do not fit the type.
    UnserializableFunction
        An element cannot be pickled.
    """
    import pyarrow as pa

    coerce = coercer(kind)
    coerced = [_coerced(number, row, coerce, kind) for number, row in enumerate(rows)]
    with pickling() as dumps:
        pickled = [_pickled(number, row, dumps) for number, row in enumerate(coerced)]
    column = pa.array(pickled, pa.binary())
    table = pa.table([column], names=[VALUE_FIELD])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    encoded: bytes = sink.getvalue().to_pybytes()
    return encoded


def _pickled(number: int, row: object, dumps: Callable[[Any], bytes]) -> bytes:
    try:
        return dumps(row)
    except Exception as error:  # whatever an object's __reduce__ raises
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise UnserializableFunction(
            f"row {number} cannot be sent to the workers ({reason}); "
            "make such objects in a function, of plain values"
        ) from error


def _coerced(number: int, row: object, coerce: Coerce, kind: TypeInfo) -> object:
    try:
        return coerce(row)
    except Misfit as misfit:
        field = f"field {misfit.path.lstrip('.')} of " if misfit.path else ""
        raise SchemaError(
            f"row {number} is {_short(row)}, and {field}{kind!r} is {misfit.wanted}, "
            f"not {_short(misfit.value)} ({type(misfit.value).__name__}); correct the row or type_info"
        ) from None


def _schema_of_rows(rows: Sequence[object]) -> Schema:
    if not rows:
        raise SchemaError("an empty collection has no fields; add schema='name TYPE, …'")
    first = rows[0]
    if isinstance(first, Mapping):
        names: dict[str, None] = {}
        for row in rows:
            names.update(dict.fromkeys(map(str, row)) if isinstance(row, Mapping) else {})
        return checked_schema(tuple(Field(name) for name in names))
    if dataclasses.is_dataclass(first):
        return checked_schema(tuple(Field(field.name) for field in dataclasses.fields(first)))
    if isinstance(first, tuple):
        own = getattr(first, "_fields", ()) or tuple(f"f{i}" for i in range(len(first)))
        return checked_schema(tuple(Field(name) for name in own))
    return Schema((Field(VALUE_FIELD),), scalar=True)


def _array(field: Field, column: list[object]) -> Any:
    import pyarrow as pa

    kind = parse_type(field.type) if field.type is not None else None
    target = arrow_type(kind) if kind is not None else None
    try:
        if kind is None:
            array = pa.array(column)
            zone = pa.timestamp("us", tz="UTC")
            return array.cast(zone) if pa.types.is_timestamp(array.type) else array
        return pa.array([_plain(value, kind) for value in column], target)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as exc:
        shown = f" {field.type}" if field.type else ""
        for number, value in enumerate(column):
            if kind is not None and not _fits(value, kind, target):
                raise SchemaError(
                    f"row {number}: field '{field.name}'{shown} cannot hold {_short(value)} "
                    f"({type(value).__name__})"
                ) from exc
        raise SchemaError(
            f"field '{field.name}'{shown}: {str(exc).splitlines()[0]}; add schema='name TYPE, …' if values "
            "are mixed"
        ) from exc


def _fits(value: object, kind: DataType, target: Any) -> bool:
    import pyarrow as pa

    try:
        pa.array([_plain(value, kind)], target)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return False
    return True


def _plain(value: Any, kind: DataType) -> Any:
    """A value as Arrow wants it: structs by name, maps as pairs."""
    if value is None:
        return None
    if kind.name == "struct":
        schema = Schema(tuple(Field(name) for name, _ in kind.children))
        values = record_reader(schema)(value)
        return {name: _plain(v, child) for (name, child), v in zip(kind.children, values, strict=True)}
    if kind.name == "array":
        return [_plain(item, kind.children[0][1]) for item in value]
    if kind.name == "map":
        (_, key), (_, item_kind) = kind.children
        return [(_plain(k, key), _plain(item, item_kind)) for k, item in value.items()]
    if kind.name == "timestamp_ntz" and isinstance(value, datetime.datetime):
        return value.replace(tzinfo=None)
    if kind.name in ("float", "double") and type(value) is int:
        return float(value)
    return value


def arrow_type(kind: DataType) -> pa.DataType:
    """The Arrow type of a Spark type.  Raises SchemaError where collections cannot hold it."""
    import pyarrow as pa

    if kind.name == "struct":
        return pa.struct([pa.field(name, arrow_type(child)) for name, child in kind.children])
    if kind.name == "array":
        return pa.list_(arrow_type(kind.children[0][1]))
    if kind.name == "map":
        return pa.map_(arrow_type(kind.children[0][1]), arrow_type(kind.children[1][1]))
    if kind.name == "decimal":
        return pa.decimal128(*kind.numbers)
    simple = {
        "boolean": pa.bool_(), "tinyint": pa.int8(), "smallint": pa.int16(), "int": pa.int32(),
        "bigint": pa.int64(), "float": pa.float32(), "double": pa.float64(), "string": pa.string(),
        "varchar": pa.string(), "char": pa.string(), "binary": pa.binary(), "date": pa.date32(),
        "timestamp": pa.timestamp("us", tz="UTC"), "timestamp_ntz": pa.timestamp("us"),
    }  # fmt: skip
    if kind.name not in simple:
        raise SchemaError(f"a collection cannot hold the type {kind.ddl()}")
    return simple[kind.name]


def _ddl(kind: Any, where: str) -> str:
    import pyarrow as pa

    t = pa.types
    if t.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    if t.is_list(kind) or t.is_large_list(kind):
        return f"array<{_ddl(kind.value_type, where)}>"
    if t.is_struct(kind):
        children = tuple((f.name, parse_type(_ddl(f.type, where))) for f in kind)
        return DataType("struct", children=children).ddl()
    tests = (
        (t.is_boolean, "boolean"), (t.is_int64, "bigint"), (t.is_floating, "double"), (t.is_string, "string"),
        (t.is_binary, "binary"), (t.is_timestamp, "timestamp"), (t.is_date, "date"),
    )  # fmt: skip
    for test, name in tests:
        if test(kind):
            return name
    why = "all values are None" if t.is_null(kind) else f"Arrow calls it {kind}"
    raise SchemaError(f"the type of field '{where}' is not clear ({why}); add schema='name TYPE, …'")


def _short(value: object) -> str:
    if isinstance(value, Row):
        return repr(value)[:80]
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
