"""Files of CSV: their fields and how they are written.  PyFlink: ``pyflink.datastream.formats.csv``."""

from __future__ import annotations

from typing import Any, Final

from yarnflow.api.common.serialization import BulkWriterFactory
from yarnflow.api.datastream.connectors.files.source import StreamFormat
from yarnflow.api.table.data_types import DataTypes
from yarnflow.errors import SchemaError
from yarnflow.graph.compatibility import differs, refused
from yarnflow.graph.element_schema import type_of_data
from yarnflow.graph.type_info import TypeInfo
from yarnflow.graph.types import DataType

_ELEMENT_SEPARATOR: Final = ";"
#: of which no field of a line can be made
_NESTED: Final = ("map", "struct")


class CsvSchema:
    """Fields of files of CSV and how they are written; made by :meth:`builder`."""

    def __init__(
        self, fields: tuple[tuple[str, DataType], ...], separators: dict[str, str], options: dict[str, str],
        line_separator: str,
    ) -> None:  # fmt: skip
        self._row_type = DataType("struct", children=fields)
        self._separators = separators
        self._options = options
        self._line_separator = line_separator

    @staticmethod
    def builder() -> CsvSchemaBuilder:
        """Begin a schema."""
        return CsvSchemaBuilder()

    def get_type_info(self) -> TypeInfo:
        """The type of the rows."""
        return type_of_data(self._row_type)

    def size(self) -> int:
        """Number of fields."""
        return len(self._row_type.children)

    def __len__(self) -> int:
        return self.size()

    def __str__(self) -> str:
        return f"CsvSchema({self._row_type.ddl()})"

    __repr__ = __str__


class CsvSchemaBuilder:
    """Says the fields of a line, in their order, and how they are written."""

    def __init__(self) -> None:
        self._fields: list[tuple[str, DataType]] = []
        self._own_separators: dict[str, str] = {}
        self._separator = _ELEMENT_SEPARATOR
        # a quote within quotes is written twice; Spark's own default is a backslash before it
        self._options: dict[str, str] = {"escape": '"'}
        self._line_separator = "\n"

    # --- fields -----------------------------------------------------------------------------

    def add_string_column(self, name: str) -> CsvSchemaBuilder:
        """A field of text."""
        return self._add(name, DataTypes.STRING())

    def add_boolean_column(self, name: str) -> CsvSchemaBuilder:
        """A field of ``true`` or ``false``."""
        return self._add(name, DataTypes.BOOLEAN())

    def add_number_column(self, name: str, number_type: DataType | None = None) -> CsvSchemaBuilder:
        """A field of numbers, ``DataTypes.BIGINT()`` unless said otherwise."""
        return self._add(name, number_type or DataTypes.BIGINT())

    def add_array_column(
        self, name: str, separator: str = _ELEMENT_SEPARATOR, element_type: DataType | None = None
    ) -> CsvSchemaBuilder:
        """A field of several values, ``DataTypes.STRING()`` unless said otherwise."""
        element = element_type or DataTypes.STRING()
        if element.children:
            raise SchemaError(f"field '{name}': the elements of an array in CSV are numbers or texts")
        if separator != _ELEMENT_SEPARATOR:
            self._own_separators[name] = separator
        return self._add(name, DataTypes.ARRAY(element))

    def add_columns_from(self, schema: CsvSchema) -> CsvSchemaBuilder:
        """The fields of another schema, behind those that are there."""
        for name, kind in schema._row_type.children:
            self._add(name, kind)
        self._own_separators.update(schema._separators)
        return self

    def clear_columns(self) -> CsvSchemaBuilder:
        """Take all fields away."""
        self._fields.clear()
        self._own_separators.clear()
        return self

    def _add(self, name: str, kind: DataType) -> CsvSchemaBuilder:
        if kind.name in _NESTED:
            raise SchemaError(f"field '{name}': CSV cannot hold {kind.ddl()}")
        self._fields.append((name, kind))
        return self

    # --- how they are written ---------------------------------------------------------------

    def set_column_separator(self, char: str) -> CsvSchemaBuilder:
        """What stands between fields; a comma unless set."""
        self._options["sep"] = _character(char, "Column separator")
        return self

    def set_quote_char(self, char: str) -> CsvSchemaBuilder:
        """What stands around a field that holds a separator; a double quote unless set."""
        self._options["quote"] = _character(char, "Quote char")
        if "escape" in self._options and self._options["escape"] == '"':
            self._options["escape"] = char
        return self

    def disable_quote_char(self) -> CsvSchemaBuilder:
        """Fields are never quoted."""
        self._options["quote"] = ""
        return self

    def set_escape_char(self, char: str) -> CsvSchemaBuilder:
        """What takes the meaning of the character behind it; none unless set."""
        self._options["escape"] = _character(char, "Escape char")
        return self

    def disable_escape_char(self) -> CsvSchemaBuilder:
        """No character has that meaning; the default."""
        self._options["escape"] = self._options.get("quote") or '"'
        return self

    def set_array_element_separator(self, separator: str) -> CsvSchemaBuilder:
        """What stands between the elements of arrays that have no separator of their own."""
        self._separator = separator
        return self

    @refused("without a separator the elements of an array cannot be told apart", "add_string_column(name)")
    def disable_array_element_separator(self) -> Any:
        """No separator for arrays."""

    @refused("without a separator the elements of an array cannot be told apart", "add_string_column(name)")
    def remove_array_element_separator(self, index: int) -> Any:
        """No separator for one array."""

    def set_line_separator(self, separator: str) -> CsvSchemaBuilder:
        """What ends a line that is written; lines that are read end with line feed, return or both."""
        self._line_separator = separator
        return self

    def set_null_value(self, null_value: str) -> CsvSchemaBuilder:
        """The text of a field that is None; a field without text is, unless set."""
        self._options["nullValue"] = null_value
        return self

    def set_allow_comments(self, allow: bool = True) -> CsvSchemaBuilder:
        """Leave out lines that begin with ``#``."""
        self._options["comment"] = "#" if allow else ""
        return self

    def set_use_header(self, use: bool = True) -> CsvSchemaBuilder:
        """The first line of a file has the names of the fields, in their order."""
        self._options["header"] = "true" if use else "false"
        return self

    def set_skip_first_data_row(self, skip: bool = True) -> CsvSchemaBuilder:
        """The first line of a file is left out."""
        return self.set_use_header(skip)

    def set_strict_headers(self, strict: bool = True) -> CsvSchemaBuilder:
        """A file whose first line has other names fails the job."""
        self._options["enforceSchema"] = "false" if strict else "true"
        return self

    @refused("a line has the fields of the schema and no others")
    def set_any_property_name(self, name: str) -> Any:
        """Where fields without a name go."""

    def size(self) -> int:
        """Number of fields."""
        return len(self._fields)

    def __len__(self) -> int:
        return self.size()

    def build(self) -> CsvSchema:
        """The schema."""
        if not self._fields:
            raise SchemaError("a CSV schema needs fields; call add_string_column('name') and the like")
        separators = {
            name: self._own_separators.get(name, self._separator)
            for name, kind in self._fields
            if kind.name == "array"
        }
        return CsvSchema(tuple(self._fields), separators, dict(self._options), self._line_separator)


def _character(char: str, what: str) -> str:
    if len(char) != 1:
        raise ValueError(f"{what} must be a single char, got {char}")
    return char


class CsvReaderFormat(StreamFormat):
    """Lines of CSV as rows; made by :meth:`for_schema`."""

    @staticmethod
    @differs("the header's names are only looked at with set_strict_headers")
    def for_schema(schema: CsvSchema) -> CsvReaderFormat:
        """Rows of the fields of a schema."""
        return CsvReaderFormat("csv", schema._row_type, schema._options, schema._separators)


class CsvBulkWriters:
    """Rows as files of CSV."""

    @staticmethod
    def for_schema(schema: CsvSchema) -> BulkWriterFactory:
        """Files of rows with the fields of a schema."""
        # what tells a reader alone
        left_out = ("comment", "enforceSchema")
        options = {key: value for key, value in schema._options.items() if key not in left_out}
        if schema._line_separator != "\n":
            options["lineSep"] = schema._line_separator
        return BulkWriterFactory("csv", options, schema._row_type, schema._separators)
