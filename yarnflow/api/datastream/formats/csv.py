"""CSV.  PyFlink: ``pyflink.datastream.formats.csv``."""

from __future__ import annotations

from yarnflow.api.common.serialization import DeserializationSchema, SerializationSchema
from yarnflow.api.datastream.formats.csv_files import (
    CsvBulkWriters,
    CsvReaderFormat,
    CsvSchema,
    CsvSchemaBuilder,
)
from yarnflow.errors import SchemaError
from yarnflow.graph.connectors.messages import MessageFormat, MessageFormatKind
from yarnflow.graph.type_info import RowTypeInfo, TypeInformation, checked_type

__all__ = [
    "CsvBulkWriters",
    "CsvReaderFormat",
    "CsvRowDeserializationSchema",
    "CsvRowSerializationSchema",
    "CsvSchema",
    "CsvSchemaBuilder",
]


def _row_type(type_info: TypeInformation | None) -> RowTypeInfo:
    if type_info is None:
        raise TypeError("Type information must not be None")
    found = checked_type(type_info, "type_info")
    if not isinstance(found, RowTypeInfo):
        raise SchemaError(f"a line of CSV is a row; write Types.ROW_NAMED(…), not {found!r}")
    return found


def _character(value: str, what: str) -> str:
    if len(value) != 1:
        raise ValueError(f"the {what} must be one character, not {value!r}")
    return value


class CsvRowDeserializationSchema(DeserializationSchema):
    """Lines of CSV as rows; made by its builder."""

    def __init__(self, type_info: RowTypeInfo, options: dict[str, str], ignore_parse_errors: bool) -> None:
        self._format = MessageFormat(MessageFormatKind.CSV, type_info, dict(options), ignore_parse_errors)

    def _read(self) -> MessageFormat:
        return self._format

    class Builder:
        """Says the fields, how lines are written and what becomes of bad ones."""

        def __init__(self, type_info: TypeInformation) -> None:
            self._type_info = _row_type(type_info)
            self._options: dict[str, str] = {}
            self._ignore = False

        def set_field_delimiter(self, delimiter: str) -> CsvRowDeserializationSchema.Builder:
            """What stands between fields; a comma unless set."""
            self._options["field_delimiter"] = _character(delimiter, "field delimiter")
            return self

        def set_allow_comments(self, allow_comments: bool) -> CsvRowDeserializationSchema.Builder:
            """Leave out lines that begin with #."""
            self._options["allow_comments"] = "true" if allow_comments else ""
            return self

        def set_array_element_delimiter(self, delimiter: str) -> CsvRowDeserializationSchema.Builder:
            """What stands between the elements of a field of several; a semicolon unless set."""
            self._options["array_element_delimiter"] = delimiter
            return self

        def set_quote_character(self, c: str) -> CsvRowDeserializationSchema.Builder:
            """What stands around a field that holds a delimiter; a double quote unless set."""
            self._options["quote_character"] = _character(c, "quote character")
            return self

        def set_escape_character(self, c: str) -> CsvRowDeserializationSchema.Builder:
            """What takes the meaning of the character behind it; none unless set."""
            self._options["escape_character"] = _character(c, "escape character")
            return self

        def set_null_literal(self, null_literal: str) -> CsvRowDeserializationSchema.Builder:
            """The text of a field that is None; no text is unless set."""
            self._options["null_literal"] = null_literal
            self._options["has_null_literal"] = "true"
            return self

        def set_ignore_parse_errors(self, ignore_parse_errors: bool) -> CsvRowDeserializationSchema.Builder:
            """A field that cannot be read, or is missing at the end, is None; what is not a line is left out.

            Otherwise either fails the job.  The metric ``numRecordsInErrors`` counts such messages.
            """
            self._ignore = ignore_parse_errors
            return self

        def build(self) -> CsvRowDeserializationSchema:
            """The schema."""
            return CsvRowDeserializationSchema(self._type_info, self._options, self._ignore)


class CsvRowSerializationSchema(SerializationSchema):
    """Rows as lines of CSV; made by its builder."""

    def __init__(self, type_info: RowTypeInfo, options: dict[str, str]) -> None:
        self._format = MessageFormat(MessageFormatKind.CSV, type_info, dict(options))

    def _written(self) -> MessageFormat:
        return self._format

    class Builder:
        """Says the fields and how lines are written."""

        def __init__(self, type_info: TypeInformation) -> None:
            self._type_info = _row_type(type_info)
            self._options: dict[str, str] = {}

        def set_field_delimiter(self, c: str) -> CsvRowSerializationSchema.Builder:
            """What stands between fields; a comma unless set."""
            self._options["field_delimiter"] = _character(c, "field delimiter")
            return self

        def set_line_delimiter(self, delimiter: str) -> CsvRowSerializationSchema.Builder:
            """What ends a line; a line feed unless set."""
            if delimiter not in ("\n", "\r", "\r\n", ""):
                raise ValueError(f"a line ends with line feed, return, both or nothing, not {delimiter!r}")
            self._options["line_delimiter"] = delimiter
            return self

        def set_array_element_delimiter(self, delimiter: str) -> CsvRowSerializationSchema.Builder:
            """What stands between the elements of a field of several; a semicolon unless set."""
            self._options["array_element_delimiter"] = delimiter
            return self

        def disable_quote_character(self) -> CsvRowSerializationSchema.Builder:
            """Write fields without quotes, whatever they hold."""
            self._options["quote_character"] = ""
            return self

        def set_quote_character(self, c: str) -> CsvRowSerializationSchema.Builder:
            """What stands around a field that holds a delimiter; a double quote unless set."""
            self._options["quote_character"] = _character(c, "quote character")
            return self

        def set_escape_character(self, c: str) -> CsvRowSerializationSchema.Builder:
            """What takes the meaning of the character behind it; none unless set."""
            self._options["escape_character"] = _character(c, "escape character")
            return self

        def set_null_literal(self, s: str) -> CsvRowSerializationSchema.Builder:
            """The text of a field that is None; empty unless set."""
            self._options["null_literal"] = s
            return self

        def build(self) -> CsvRowSerializationSchema:
            """The schema."""
            return CsvRowSerializationSchema(self._type_info, self._options)
