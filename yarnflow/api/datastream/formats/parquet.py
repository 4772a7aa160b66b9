"""Parquet.  PyFlink: ``pyflink.datastream.formats.parquet``."""

from __future__ import annotations

from yarnflow.api.common.configuration import Configuration
from yarnflow.api.common.serialization import BulkWriterFactory
from yarnflow.api.datastream.connectors.files.source import BulkFormat, StreamFormat
from yarnflow.api.datastream.formats.avro import AvroSchema
from yarnflow.api.table.data_types import row_type as checked_row_type
from yarnflow.graph.compatibility import differs
from yarnflow.graph.types import DataType


def _options(config: Configuration | None) -> dict[str, str]:
    return {} if config is None else config.to_dict()


class AvroParquetReaders:
    """Parquet files whose fields an Avro schema tells."""

    @staticmethod
    @differs("records are rows, not dicts")
    def for_generic_record(schema: AvroSchema) -> StreamFormat:
        """Rows of the fields of a record."""
        return StreamFormat("parquet", schema.fields())


class AvroParquetWriters:
    """Records as Parquet files."""

    @staticmethod
    def for_generic_record(schema: AvroSchema) -> BulkWriterFactory:
        """Files of the fields of a record."""
        return BulkWriterFactory("parquet", {}, schema.fields())


class ParquetColumnarRowInputFormat(BulkFormat):
    """Rows of Parquet files.

    Parameters
    ----------
    row_type : DataType
        ``DataTypes.ROW(…)``: the fields that are read, by name; one that a file does not have is None.
    hadoop_config : Configuration, optional
        ``parquet.…`` for the reader.
    """

    @differs("batch_size is Spark's; times are UTC; names of fields are found in any case")
    def __init__(
        self,
        row_type: DataType,
        hadoop_config: Configuration | None = None,
        batch_size: int = 2048,
        is_utc_timestamp: bool = False,
        is_case_sensitive: bool = True,
    ) -> None:
        fields = checked_row_type(row_type, "ParquetColumnarRowInputFormat()")
        super().__init__("parquet", fields, _options(hadoop_config))


class ParquetBulkWriters:
    """Rows as Parquet files."""

    @staticmethod
    @differs("times are UTC, whatever utc_timestamp says")
    def for_row_type(
        row_type: DataType, hadoop_config: Configuration | None = None, utc_timestamp: bool = False
    ) -> BulkWriterFactory:
        """Files of rows of this type; the fields of the stream are written as these types."""
        kind = checked_row_type(row_type, "ParquetBulkWriters.for_row_type()")
        return BulkWriterFactory("parquet", _options(hadoop_config), kind)
