"""How bytes become elements and elements bytes.  PyFlink: ``pyflink.common.serialization``.

Descriptions only: messages are read and written where the job runs.
"""

from __future__ import annotations

import codecs
from typing import Any

from yarnflow.graph.compatibility import NO_JVM, refused_class, unsupported
from yarnflow.graph.connectors.messages import MessageFormat, MessageFormatKind
from yarnflow.graph.type_info import Types
from yarnflow.graph.types import DataType


class SerializationSchema:
    """How elements become bytes; made by its subclasses."""

    def _written(self) -> MessageFormat:
        raise unsupported(
            f"{type(self).__name__}()",
            "messages are written by the schemas of PyFlink alone",
            "map(…) to bytes and ByteArraySchema()",
        )


class DeserializationSchema:
    """How bytes become elements; made by its subclasses."""

    def _read(self) -> MessageFormat:
        raise unsupported(
            f"{type(self).__name__}()",
            "messages are read by the schemas of PyFlink alone",
            "ByteArraySchema() and map(…)",
        )


class SimpleStringSchema(SerializationSchema, DeserializationSchema):
    """Text, in UTF-8 or another charset."""

    def __init__(self, charset: str = "UTF-8") -> None:
        try:
            codecs.lookup(charset)
        except LookupError:
            raise ValueError(f"there is no charset {charset!r}") from None
        self._charset = charset

    def _read(self) -> MessageFormat:
        return MessageFormat(MessageFormatKind.STRING, Types.STRING(), {"charset": self._charset})

    _written = _read


class ByteArraySchema(SerializationSchema, DeserializationSchema):
    """Bytes as they are."""

    def _read(self) -> MessageFormat:
        return MessageFormat(MessageFormatKind.BYTES, Types.PRIMITIVE_ARRAY(Types.BYTE()))

    _written = _read


class RowFieldExtractorSchema(SerializationSchema):
    """The bytes of one field of a row."""

    def __init__(self, field_index: int) -> None:
        if field_index < 0:
            raise ValueError(f"field index {field_index} is below 0")
        self.field_index = field_index

    def _written(self) -> MessageFormat:
        kind = Types.PRIMITIVE_ARRAY(Types.BYTE())
        return MessageFormat(MessageFormatKind.FIELD, kind, {"field": str(self.field_index)})


class Encoder:
    """How elements become the lines of a file."""

    def __init__(self, charset_name: str = "UTF-8") -> None:
        self.charset_name = charset_name

    @staticmethod
    def simple_string_encoder(charset_name: str = "UTF-8") -> Encoder:
        """Each element's text on a line of its own."""
        return Encoder(charset_name)


class BulkWriterFactory:
    """How elements become files of a format; made by the formats.

    Parameters
    ----------
    format : str
        As ``FileSink`` names it.
    options : dict, optional
        Writer options as Spark names them.
    row_type : DataType, optional
        What the fields are written as; None: as they are.
    separators : dict, optional
        CSV: field that holds an array to what stands between its elements.
    """

    def __init__(
        self,
        format: str,
        options: dict[str, Any] | None = None,
        row_type: DataType | None = None,
        separators: dict[str, str] | None = None,
    ) -> None:
        self.format = format
        self.options = dict(options or {})
        self.row_type = row_type
        self.separators = dict(separators or {})


RowDataBulkWriterFactory = refused_class("RowDataBulkWriterFactory", NO_JVM, "FileSink(path, format)")
