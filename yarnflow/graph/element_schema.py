"""Element types as columns, and columns as element types.

Decides which DDL a :class:`~yarnflow.graph.type_info.TypeInformation` stands for, if any, and the
schema of a stream of such elements.  Naive datetimes are UTC, as everywhere.
"""

from __future__ import annotations

from typing import Final

from yarnflow.errors import SchemaError
from yarnflow.graph.schema import Schema
from yarnflow.graph.type_info import (
    PICKLED,
    BasicArrayTypeInfo,
    BasicType,
    BasicTypeInfo,
    DateTypeInfo,
    ExternalTypeInfo,
    ListTypeInfo,
    LocalTimeTypeInfo,
    MapTypeInfo,
    ObjectArrayTypeInfo,
    PrimitiveArrayTypeInfo,
    RowTypeInfo,
    TimestampTypeInfo,
    TimeType,
    TupleTypeInfo,
    TypeInfo,
    Types,
)
from yarnflow.graph.types import DataType, parse_type, schema_of_type

_BASIC: Final = {
    BasicType.STRING: "string",
    BasicType.BYTE: "tinyint",
    BasicType.BOOLEAN: "boolean",
    BasicType.SHORT: "smallint",
    BasicType.INT: "int",
    BasicType.LONG: "bigint",
    BasicType.FLOAT: "float",
    BasicType.DOUBLE: "double",
    BasicType.CHAR: "string",
    BasicType.INSTANT: "timestamp",
}
_LOCAL_TIME: Final = {TimeType.LOCAL_DATE: "date", TimeType.LOCAL_DATE_TIME: "timestamp"}
#: DDL → type; the types of several parts are taken apart
_FROM_DDL: Final[dict[str, TypeInfo]] = {
    "string": Types.STRING(),
    "varchar": Types.STRING(),
    "char": Types.STRING(),
    "tinyint": Types.BYTE(),
    "boolean": Types.BOOLEAN(),
    "smallint": Types.SHORT(),
    "int": Types.INT(),
    "bigint": Types.LONG(),
    "float": Types.FLOAT(),
    "double": Types.DOUBLE(),
    "decimal": Types.BIG_DEC(),
    "binary": PrimitiveArrayTypeInfo(Types.BYTE()),
    "date": DateTypeInfo(),
    "timestamp": LocalTimeTypeInfo(TimeType.LOCAL_DATE_TIME),
    "timestamp_ntz": LocalTimeTypeInfo(TimeType.LOCAL_DATE_TIME),
}


def element_schema(element_type: TypeInfo, columns: Schema | None = None) -> Schema:
    """The schema of a stream of elements.

    Parameters
    ----------
    columns : Schema, optional
        What the elements are as columns, where the type does not tell: an annotation of the function.
    """
    if columns is None:
        kind = data_type(element_type)
        columns = Schema(()) if kind is None else schema_of_type(kind)
    return Schema(columns.fields, columns.scalar, element_type)


def to_ddl(element_type: TypeInfo) -> str | None:
    """Spark DDL of a type; None where no column can hold it (pickled objects, large numbers, times)."""
    kind = data_type(element_type)
    return None if kind is None else kind.ddl()


def data_type(element_type: TypeInfo) -> DataType | None:
    """:func:`to_ddl`, taken apart."""
    match element_type:
        case BasicTypeInfo(BasicType.BIG_DEC):
            return DataType("decimal", (38, 18))
        case BasicTypeInfo(basic) if basic in _BASIC:
            return DataType(_BASIC[basic])
        case DateTypeInfo():
            return DataType("date")
        case TimestampTypeInfo():
            return DataType("timestamp")
        case LocalTimeTypeInfo(time_type) if time_type in _LOCAL_TIME:
            return DataType(_LOCAL_TIME[time_type])
        case PrimitiveArrayTypeInfo(BasicTypeInfo(BasicType.BYTE)):
            return DataType("binary")
        case (
            PrimitiveArrayTypeInfo(element)
            | BasicArrayTypeInfo(element)
            | ObjectArrayTypeInfo(element)
            | ListTypeInfo(element)
        ):
            return _nested("array", ("element",), (element,))
        case MapTypeInfo(key, value):
            return _nested("map", ("key", "value"), (key, value))
        case TupleTypeInfo(types):
            return _nested("struct", tuple(f"f{number}" for number in range(len(types))), types)
        case RowTypeInfo(types):
            return _nested("struct", tuple(element_type.get_field_names()), types)
        case ExternalTypeInfo(inner):
            return data_type(inner)
    return None


def _nested(name: str, names: tuple[str, ...], types: tuple[TypeInfo, ...]) -> DataType | None:
    children = [data_type(kind) for kind in types]
    found = tuple((child_name, child) for child_name, child in zip(names, children, strict=True) if child)
    return DataType(name, children=found) if found and len(found) == len(children) else None


def from_ddl(text: str) -> TypeInfo:
    """The type of elements that a DDL type such as ``STRUCT<a: INT>`` stands for.  Raises SchemaError."""
    return type_of_data(parse_type(text))


def type_of_data(kind: DataType) -> TypeInfo:
    """:func:`from_ddl` of a type taken apart."""
    if kind.name == "struct":
        return RowTypeInfo(
            tuple(type_of_data(child) for _, child in kind.children), tuple(name for name, _ in kind.children)
        )
    if kind.name == "array":
        return ListTypeInfo(type_of_data(kind.children[0][1]))
    if kind.name == "map":
        (_, key), (_, value) = kind.children
        return MapTypeInfo(type_of_data(key), type_of_data(value))
    if kind.name not in _FROM_DDL:
        raise SchemaError(f"elements of the type {kind.ddl()} are not possible; use another type")
    return _FROM_DDL[kind.name]


def type_of_schema(schema: Schema) -> TypeInfo:
    """What Python functions get from a stream: its element type, else that of its columns."""
    if schema.element_type is not None:
        return schema.element_type
    if not schema.fields or any(field.type is None for field in schema.fields):
        return PICKLED
    types = tuple(from_ddl(field.type) for field in schema.fields if field.type is not None)
    return types[0] if schema.scalar else RowTypeInfo(types, schema.names)
