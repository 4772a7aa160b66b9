"""Kinesis: names only.  PyFlink: ``pyflink.datastream.connectors.kinesis``."""

from typing import Any, Final

from yarnflow.graph.compatibility import refused_class

_WHY: Final = "Spark has no Kinesis connector for its streams"
_USE: Final = "a PySpark script with a connector of AWS's own"

FlinkKinesisConsumer: Any = refused_class("FlinkKinesisConsumer", _WHY, _USE)
KinesisDeserializationSchema: Any = refused_class("KinesisDeserializationSchema", _WHY, _USE)
KinesisFirehoseSink: Any = refused_class("KinesisFirehoseSink", _WHY, _USE)
KinesisFirehoseSinkBuilder: Any = refused_class("KinesisFirehoseSinkBuilder", _WHY, _USE)
KinesisShardAssigner: Any = refused_class("KinesisShardAssigner", _WHY, _USE)
KinesisStreamsSink: Any = refused_class("KinesisStreamsSink", _WHY, _USE)
KinesisStreamsSinkBuilder: Any = refused_class("KinesisStreamsSinkBuilder", _WHY, _USE)
PartitionKeyGenerator: Any = refused_class("PartitionKeyGenerator", _WHY, _USE)
WatermarkTracker: Any = refused_class("WatermarkTracker", _WHY, _USE)
