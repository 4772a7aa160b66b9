"""Kafka over several clusters: names only.  PyFlink: ``pyflink.datastream.connectors.dynamic_kafka``."""

from typing import Any, Final

from yarnflow.graph.compatibility import refused_class

_WHY: Final = "there is no Kafka connector for DataStream programs yet"
_USE: Final = "a PySpark script, whose readStream and writeStream have one"

DynamicKafkaSource: Any = refused_class("DynamicKafkaSource", _WHY, _USE)
DynamicKafkaSourceBuilder: Any = refused_class("DynamicKafkaSourceBuilder", _WHY, _USE)
KafkaMetadataService: Any = refused_class("KafkaMetadataService", _WHY, _USE)
KafkaRecordDeserializationSchema: Any = refused_class("KafkaRecordDeserializationSchema", _WHY, _USE)
KafkaStreamSetSubscriber: Any = refused_class("KafkaStreamSetSubscriber", _WHY, _USE)
KafkaStreamSubscriber: Any = refused_class("KafkaStreamSubscriber", _WHY, _USE)
SingleClusterTopicMetadataService: Any = refused_class("SingleClusterTopicMetadataService", _WHY, _USE)
StreamPatternSubscriber: Any = refused_class("StreamPatternSubscriber", _WHY, _USE)
