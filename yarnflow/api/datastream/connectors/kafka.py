"""Kafka: names only.  PyFlink: ``pyflink.datastream.connectors.kafka``."""

from typing import Any, Final

from yarnflow.api.datastream.connectors.base import DeliveryGuarantee
from yarnflow.graph.compatibility import refused_class

_WHY: Final = "there is no Kafka connector for DataStream programs yet"
_USE: Final = "a PySpark script, whose readStream and writeStream have one"

FlinkKafkaConsumer: Any = refused_class("FlinkKafkaConsumer", _WHY, _USE)
FlinkKafkaProducer: Any = refused_class("FlinkKafkaProducer", _WHY, _USE)
KafkaOffsetResetStrategy: Any = refused_class("KafkaOffsetResetStrategy", _WHY, _USE)
KafkaOffsetsInitializer: Any = refused_class("KafkaOffsetsInitializer", _WHY, _USE)
KafkaRecordSerializationSchema: Any = refused_class("KafkaRecordSerializationSchema", _WHY, _USE)
KafkaRecordSerializationSchemaBuilder: Any = refused_class(
    "KafkaRecordSerializationSchemaBuilder", _WHY, _USE
)
KafkaSink: Any = refused_class("KafkaSink", _WHY, _USE)
KafkaSinkBuilder: Any = refused_class("KafkaSinkBuilder", _WHY, _USE)
KafkaSource: Any = refused_class("KafkaSource", _WHY, _USE)
KafkaSourceBuilder: Any = refused_class("KafkaSourceBuilder", _WHY, _USE)
KafkaTopicPartition: Any = refused_class("KafkaTopicPartition", _WHY, _USE)
KafkaTopicSelector: Any = refused_class("KafkaTopicSelector", _WHY, _USE)
Semantic: Any = refused_class("Semantic", _WHY, _USE)

__all__ = [
    "DeliveryGuarantee",
    "FlinkKafkaConsumer",
    "FlinkKafkaProducer",
    "KafkaOffsetResetStrategy",
    "KafkaOffsetsInitializer",
    "KafkaRecordSerializationSchema",
    "KafkaRecordSerializationSchemaBuilder",
    "KafkaSink",
    "KafkaSinkBuilder",
    "KafkaSource",
    "KafkaSourceBuilder",
    "KafkaTopicPartition",
    "KafkaTopicSelector",
    "Semantic",
]
