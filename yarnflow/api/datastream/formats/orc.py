"""ORC.  PyFlink: ``pyflink.datastream.formats.orc``."""

from __future__ import annotations

from yarnflow.api.common.configuration import Configuration
from yarnflow.api.common.serialization import BulkWriterFactory
from yarnflow.api.table.data_types import row_type as checked_row_type
from yarnflow.graph.types import DataType


class OrcBulkWriters:
    """Rows as ORC files."""

    @staticmethod
    def for_row_type(
        row_type: DataType,
        writer_properties: Configuration | None = None,
        hadoop_config: Configuration | None = None,
    ) -> BulkWriterFactory:
        """Files of rows of this type.

        Parameters
        ----------
        row_type : DataType
            ``DataTypes.ROW(…)``; the fields of the stream are written as these types.
        writer_properties, hadoop_config : Configuration, optional
            ``orc.compress`` and the like.
        """
        options: dict[str, str] = {}
        for given in (hadoop_config, writer_properties):
            options.update(given.to_dict() if given is not None else {})
        return BulkWriterFactory("orc", options, checked_row_type(row_type, "OrcBulkWriters.for_row_type()"))
