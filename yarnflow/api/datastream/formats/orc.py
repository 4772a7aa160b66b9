"""ORC.  PyFlink: ``pyflink.datastream.formats.orc``."""

from typing import Any

from yarnflow.graph.compatibility import refused_class

OrcBulkWriters: Any = refused_class(
    "OrcBulkWriters", "files are written as csv, json or parquet", "FileSink(path, format='parquet')"
)
