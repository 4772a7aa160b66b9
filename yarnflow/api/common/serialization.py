"""How bytes become elements and elements bytes.  PyFlink: ``pyflink.common.serialization``.

Descriptions only: reading and writing is Spark's.
"""

from __future__ import annotations

from typing import Any

from yarnflow.graph.compatibility import NO_JVM, differs, refused_class
from yarnflow.graph.type_info import TypeInfo, Types


@differs("nothing writes messages yet")
class SerializationSchema:
    """How elements become bytes; made by its subclasses."""


@differs("nothing reads messages yet")
class DeserializationSchema:
    """How bytes become elements; made by its subclasses."""

    @differs("has no counterpart there")
    def produced_type(self) -> TypeInfo:
        """Type of the elements."""
        return Types.PICKLED_BYTE_ARRAY()


@differs("nothing reads or writes messages yet")
class SimpleStringSchema(SerializationSchema, DeserializationSchema):
    """Text, in UTF-8 or another charset."""

    def __init__(self, charset: str = "UTF-8") -> None:
        self.charset = charset

    def produced_type(self) -> TypeInfo:
        return Types.STRING()


@differs("nothing reads or writes messages yet")
class ByteArraySchema(SerializationSchema, DeserializationSchema):
    """Bytes as they are."""

    def produced_type(self) -> TypeInfo:
        return Types.PRIMITIVE_ARRAY(Types.BYTE())


@differs("nothing reads or writes messages yet")
class RowFieldExtractorSchema(SerializationSchema):
    """The bytes of one field of a row."""

    def __init__(self, field_index: int) -> None:
        if field_index < 0:
            raise ValueError(f"field index {field_index} is below 0")
        self.field_index = field_index


class Encoder:
    """How elements become the lines of a file."""

    def __init__(self, charset_name: str = "UTF-8") -> None:
        self.charset_name = charset_name

    @staticmethod
    def simple_string_encoder(charset_name: str = "UTF-8") -> Encoder:
        """Each element's text on a line of its own."""
        return Encoder(charset_name)


class BulkWriterFactory:
    """How elements become files of a format; made by the formats."""

    def __init__(self, format: str, options: dict[str, Any] | None = None) -> None:
        self.format = format
        self.options = dict(options or {})


RowDataBulkWriterFactory = refused_class("RowDataBulkWriterFactory", NO_JVM, "FileSink(path, format)")
