"""CSV.  PyFlink: ``pyflink.datastream.formats.csv``."""

from typing import Any, Final

from yarnflow.graph.compatibility import refused_class

_TABLE: Final = "its types are the Table API's"
_MESSAGES: Final = "messages are not read as CSV"

CsvSchema: Any = refused_class("CsvSchema", _TABLE, "FileSource(path, 'csv', 'name TYPE, …')")
CsvSchemaBuilder: Any = refused_class("CsvSchemaBuilder", _TABLE, "FileSource(path, 'csv', 'name TYPE, …')")
CsvReaderFormat: Any = refused_class("CsvReaderFormat", _TABLE, "FileSource(path, 'csv', 'name TYPE, …')")
CsvBulkWriters: Any = refused_class("CsvBulkWriters", _TABLE, "FileSink(path, 'csv')")
CsvRowDeserializationSchema: Any = refused_class(
    "CsvRowDeserializationSchema", _MESSAGES, "map(…) of lines"
)
CsvRowSerializationSchema: Any = refused_class("CsvRowSerializationSchema", _MESSAGES, "map(…) to lines")
