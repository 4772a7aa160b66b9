"""Sources and sinks.  PyFlink: ``pyflink.datastream.connectors``."""

from yarnflow.api.datastream.connectors.base import (
    DeliveryGuarantee,
    PrintSink,
    Sink,
    Source,
)
from yarnflow.api.datastream.connectors.dynamic_kafka import (
    DynamicKafkaSource,
    DynamicKafkaSourceBuilder,
    KafkaMetadataService,
    KafkaStreamSetSubscriber,
    KafkaStreamSubscriber,
    StreamPatternSubscriber,
)
from yarnflow.api.datastream.connectors.file_system import (
    BucketAssigner,
    FileEnumeratorProvider,
    FileSink,
    FileSource,
    FileSourceBuilder,
    FileSplitAssignerProvider,
    OutputFileConfig,
    RollingPolicy,
    StreamFormat,
    StreamingFileSink,
)
from yarnflow.api.datastream.connectors.jdbc import (
    JdbcConnectionOptions,
    JdbcExecutionOptions,
    JdbcLookup,
    JdbcSink,
)
from yarnflow.api.datastream.connectors.kafka import (
    FlinkKafkaConsumer,
    FlinkKafkaProducer,
    KafkaSource,
    Semantic,
)
from yarnflow.api.datastream.connectors.number_seq import (
    NumberSequenceSource,
)
from yarnflow.api.datastream.connectors.pulsar import (
    PulsarSource,
    PulsarSourceBuilder,
    StartCursor,
    StopCursor,
)
from yarnflow.api.datastream.connectors.python import (
    PythonSink,
    PythonSource,
)
from yarnflow.api.datastream.connectors.rabbitmq import (
    RMQConnectionConfig,
    RMQSink,
    RMQSource,
)
from yarnflow.api.datastream.connectors.redis import (
    RedisCommand,
    RedisCommandDescription,
    RedisConfig,
    RedisMapper,
    RedisSink,
)
from yarnflow.api.datastream.connectors.simple import (
    DataGeneratorSource,
    RateSource,
    SocketSink,
    SocketSource,
)

__all__ = [
    "BucketAssigner",
    "DataGeneratorSource",
    "DeliveryGuarantee",
    "DynamicKafkaSource",
    "DynamicKafkaSourceBuilder",
    "FileEnumeratorProvider",
    "FileSink",
    "FileSource",
    "FileSourceBuilder",
    "FileSplitAssignerProvider",
    "FlinkKafkaConsumer",
    "FlinkKafkaProducer",
    "JdbcConnectionOptions",
    "JdbcExecutionOptions",
    "JdbcLookup",
    "JdbcSink",
    "KafkaMetadataService",
    "KafkaSource",
    "KafkaStreamSetSubscriber",
    "KafkaStreamSubscriber",
    "NumberSequenceSource",
    "OutputFileConfig",
    "PrintSink",
    "PulsarSource",
    "PulsarSourceBuilder",
    "PythonSink",
    "PythonSource",
    "RMQConnectionConfig",
    "RMQSink",
    "RMQSource",
    "RateSource",
    "RedisCommand",
    "RedisCommandDescription",
    "RedisConfig",
    "RedisMapper",
    "RedisSink",
    "RollingPolicy",
    "Semantic",
    "Sink",
    "SocketSink",
    "SocketSource",
    "Source",
    "StartCursor",
    "StopCursor",
    "StreamFormat",
    "StreamPatternSubscriber",
    "StreamingFileSink",
]
