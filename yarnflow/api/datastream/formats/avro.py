"""Avro.  PyFlink: ``pyflink.datastream.formats.avro``.

Files are Spark's matter.  For messages workers need the library fastavro: ``pip install yarnflow[avro]``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from yarnflow.api.common.io import InputFormat
from yarnflow.api.common.serialization import BulkWriterFactory, DeserializationSchema, SerializationSchema
from yarnflow.api.datastream.connectors.files.source import FileSource
from yarnflow.api.datastream.utils import ResultTypeQueryable
from yarnflow.errors import SchemaError
from yarnflow.graph.compatibility import NO_JVM, differs, refused, unsupported
from yarnflow.graph.connectors.messages import MessageFormat, MessageFormatKind
from yarnflow.graph.element_schema import data_type
from yarnflow.graph.type_info import RowTypeInfo, TypeInfo, Types
from yarnflow.graph.types import DataType

_CLASSES: Final = "record_class names a Java class"
_SIMPLE: Final[Mapping[str, TypeInfo]] = {
    "null": Types.PICKLED_BYTE_ARRAY(),
    "boolean": Types.BOOLEAN(),
    "int": Types.INT(),
    "long": Types.LONG(),
    "float": Types.FLOAT(),
    "double": Types.DOUBLE(),
    "bytes": Types.PRIMITIVE_ARRAY(Types.BYTE()),
    "fixed": Types.PRIMITIVE_ARRAY(Types.BYTE()),
    "string": Types.STRING(),
    "enum": Types.STRING(),
}
_LOGICAL: Final[Mapping[str, TypeInfo]] = {
    "date": Types.SQL_DATE(),
    "time-millis": Types.SQL_TIME(),
    "time-micros": Types.SQL_TIME(),
    "timestamp-millis": Types.SQL_TIMESTAMP(),
    "timestamp-micros": Types.SQL_TIMESTAMP(),
    "decimal": Types.BIG_DEC(),
}


# --- files ----------------------------------------------------------------------------------


class AvroSchema:
    """The schema of the records of files; made by :meth:`parse_string` or :meth:`parse_file`."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._type = avro_type(text)

    def __str__(self) -> str:
        return self._text

    @staticmethod
    def parse_string(json_schema: str) -> AvroSchema:
        """Of its JSON text.

        Raises
        ------
        SchemaError
            It is no schema of a record, or of one that contains itself.
        """
        return AvroSchema(json_schema)

    @staticmethod
    def parse_file(file_path: str) -> AvroSchema:
        """Of a file on this machine."""
        return AvroSchema(Path(file_path).read_text(encoding="utf-8"))

    def row_type(self) -> RowTypeInfo:
        """The type of the rows that the records become."""
        return self._type

    def fields(self) -> DataType:
        """The same as columns of files.

        Raises
        ------
        SchemaError
            A field can be of several types.
        """
        for name, kind in zip(self._type.get_field_names(), self._type.field_types, strict=True):
            if data_type(kind) is None:
                raise SchemaError(
                    f"field '{name}' of the Avro schema is of several types, or of one that a column cannot "
                    "have; change the schema"
                )
        found = data_type(self._type)
        if found is None:
            raise SchemaError("the Avro schema has no fields")
        return found


@differs("gives the type of rows with the fields of the record")
class GenericRecordAvroTypeInfo:
    """The type of the records of a schema."""

    def __new__(cls, schema: AvroSchema) -> RowTypeInfo:  # type: ignore[misc]
        return schema.row_type()

    @refused(NO_JVM)
    def get_java_type_info(self) -> Any:
        """Flink's Java class of this type."""


@differs("records are rows, not dicts; all files of a directory are read")
class AvroInputFormat(InputFormat, ResultTypeQueryable):
    """Records of an Avro file, for ``create_input``.

    Parameters
    ----------
    path : str
        A file, a directory or a glob.
    schema : AvroSchema
        The fields to read; defaults in it stand in for fields that a file does not have.
    """

    def __init__(self, path: str, schema: AvroSchema) -> None:
        self._path = path
        self._schema = schema

    def source(self) -> FileSource:
        """What reads them."""
        return FileSource(self._path, "avro", self._schema.fields(), {"avroSchema": str(self._schema)})

    def get_produced_type(self) -> RowTypeInfo:
        """The type of the rows."""
        return self._schema.row_type()


class AvroBulkWriters:
    """Records as Avro files."""

    @staticmethod
    def for_generic_record(schema: AvroSchema) -> BulkWriterFactory:
        """Files of records of a schema; the stream is of rows with its fields."""
        # as Flink's; Spark would compress by Snappy
        options = {"avroSchema": str(schema), "compression": "uncompressed"}
        return BulkWriterFactory("avro", options, schema.fields())


# --- messages -------------------------------------------------------------------------------


@differs("takes avro_schema_string only; readers need the library fastavro")
class AvroRowDeserializationSchema(DeserializationSchema):
    """Avro's binary form of records as rows: one record for each message, without a header.

    Parameters
    ----------
    avro_schema_string : str
        Schema of the records, as JSON.
    """

    def __init__(self, record_class: str | None = None, avro_schema_string: str | None = None) -> None:
        self._format = _format(type(self).__name__, record_class, avro_schema_string)

    def _read(self) -> MessageFormat:
        return self._format


@differs("takes avro_schema_string only; writers need the library fastavro")
class AvroRowSerializationSchema(SerializationSchema):
    """Rows as Avro's binary form of records: one record for each message, without a header.

    Parameters
    ----------
    avro_schema_string : str
        Schema of the records, as JSON.
    """

    def __init__(self, record_class: str | None = None, avro_schema_string: str | None = None) -> None:
        self._format = _format(type(self).__name__, record_class, avro_schema_string)

    def _written(self) -> MessageFormat:
        return self._format


def _format(name: str, record_class: str | None, avro_schema_string: str | None) -> MessageFormat:
    if avro_schema_string is None and record_class is None:
        raise TypeError("record_class or avro_schema_string should be specified.")
    if avro_schema_string is None:
        raise unsupported(f"{name}()", f"{_CLASSES}; {NO_JVM}", "avro_schema_string")
    return MessageFormat(
        MessageFormatKind.AVRO, avro_type(avro_schema_string), {"schema": avro_schema_string}
    )


def avro_type(schema: str) -> RowTypeInfo:
    """The type of the rows that records of a schema become.

    Raises
    ------
    SchemaError
        It is no schema of a record, or of one that contains itself.
    """
    try:
        found = _type(json.loads(schema), {}, "")
    except ValueError as error:
        raise SchemaError(f"the Avro schema is not JSON: {error}") from None
    if not isinstance(found, RowTypeInfo):
        raise SchemaError("the Avro schema is not one of a record")
    return found


def _type(schema: Any, named: dict[str, TypeInfo | None], space: str) -> TypeInfo:
    if isinstance(schema, list):
        others = [part for part in schema if part != "null"]
        # of several types none is the element's: it is kept as it is
        return _type(others[0], named, space) if len(others) == 1 else Types.PICKLED_BYTE_ARRAY()
    if isinstance(schema, str):
        return _named(schema, named, space)
    if not isinstance(schema, dict) or "type" not in schema:
        raise SchemaError(f"{schema!r} is no part of an Avro schema")
    kind = schema["type"]
    if schema.get("logicalType") in _LOGICAL:
        return _LOGICAL[schema["logicalType"]]
    if kind == "array":
        return Types.LIST(_type(schema["items"], named, space))
    if kind == "map":
        return Types.MAP(Types.STRING(), _type(schema["values"], named, space))
    if kind in ("record", "error"):
        return _record(schema, named, space)
    if not isinstance(kind, str):
        return _type(kind, named, space)
    found = _named(kind, named, space)
    if kind in ("enum", "fixed"):
        named[_full_name(schema, space)] = found
    return found


def _record(schema: Any, named: dict[str, TypeInfo | None], space: str) -> TypeInfo:
    name = _full_name(schema, space)
    inner = name.rpartition(".")[0]
    named[name] = None
    fields = schema["fields"]
    types = [_type(field["type"], named, inner) for field in fields]
    made = Types.ROW_NAMED([field["name"] for field in fields], types)
    named[name] = made
    return made


def _full_name(schema: Any, space: str) -> str:
    name, own = str(schema.get("name", "")), schema.get("namespace", space)
    return name if "." in name or not own else f"{own}.{name}"


def _named(name: str, named: dict[str, TypeInfo | None], space: str) -> TypeInfo:
    if name in _SIMPLE:
        return _SIMPLE[name]
    full = name if "." in name or not space else f"{space}.{name}"
    if full not in named:
        raise SchemaError(f"the Avro schema names a type '{name}' that it does not have")
    found = named[full]
    if found is None:
        raise SchemaError(f"records of the Avro type '{name}' contain themselves, which rows cannot")
    return found
