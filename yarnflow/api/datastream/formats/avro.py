"""Avro.  PyFlink: ``pyflink.datastream.formats.avro``."""

from typing import Any, Final

from yarnflow.graph.compatibility import refused_class

_WHY: Final = "there is no Avro format"
_USE: Final = "json or parquet"

AvroSchema: Any = refused_class("AvroSchema", _WHY, _USE)
GenericRecordAvroTypeInfo: Any = refused_class("GenericRecordAvroTypeInfo", _WHY, "Types.ROW_NAMED(…)")
AvroInputFormat: Any = refused_class("AvroInputFormat", _WHY, _USE)
AvroBulkWriters: Any = refused_class("AvroBulkWriters", _WHY, _USE)
AvroRowDeserializationSchema: Any = refused_class("AvroRowDeserializationSchema", _WHY, _USE)
AvroRowSerializationSchema: Any = refused_class("AvroRowSerializationSchema", _WHY, _USE)
