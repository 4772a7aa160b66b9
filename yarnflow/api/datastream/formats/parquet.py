"""Parquet.  PyFlink: ``pyflink.datastream.formats.parquet``."""

from typing import Any, Final

from yarnflow.graph.compatibility import refused_class

_WHY: Final = "its schema is of the Table API or Avro"

AvroParquetReaders: Any = refused_class("AvroParquetReaders", _WHY, "FileSource(path, 'parquet', schema)")
AvroParquetWriters: Any = refused_class("AvroParquetWriters", _WHY, "FileSink(path, 'parquet')")
ParquetColumnarRowInputFormat: Any = refused_class(
    "ParquetColumnarRowInputFormat", _WHY, "FileSource(path, 'parquet', schema)"
)
ParquetBulkWriters: Any = refused_class("ParquetBulkWriters", _WHY, "FileSink(path, 'parquet')")
