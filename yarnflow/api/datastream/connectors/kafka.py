"""Kafka.  PyFlink: ``pyflink.datastream.connectors.kafka``.

Decides how a program names topics, offsets and formats.  Reading is Spark's, whose jars for it the submit
adds to the job; writing is librdkafka's: ``pip install yarnflow[kafka]``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from typing import Any, Final

from yarnflow.api.building.definitions import check_options, columns
from yarnflow.api.common.serialization import DeserializationSchema, SerializationSchema
from yarnflow.api.datastream.connectors.base import (
    DeliveryGuarantee,
    Sink,
    Source,
    StreamTransformer,
    SupportsPreprocessing,
)
from yarnflow.api.origin import definition_origin
from yarnflow.errors import UnsupportedGraph
from yarnflow.graph import operators
from yarnflow.graph.closures import make_closure
from yarnflow.graph.compatibility import differs, refused_class, same_and
from yarnflow.graph.connectors import kafka, messages
from yarnflow.graph.connectors.kafka import KafkaOffsets, KafkaOffsetsKind, KafkaReset
from yarnflow.graph.element_schema import element_schema
from yarnflow.graph.schema import Field, Schema
from yarnflow.operators.functions.output_tag import OutputTag

_SERVERS: Final = "bootstrap.servers"
_OLD: Final = "Flink 2 has only the newer form"
#: Spark reads bytes and keeps the offsets itself; Flink overrides these as well
_OVERRIDDEN: Final = frozenset({"key.deserializer", "value.deserializer", "enable.auto.commit"})
#: of Flink's source, not of Kafka's consumer
_OF_FLINK: Final = frozenset({
    "partition.discovery.interval.ms", "commit.offsets.on.checkpoint", "client.id.prefix",
    "register.consumer.metrics", "auto.offset.reset", "auto.offset.reset.strategy",
})  # fmt: skip
#: options of Spark's reader
_SET_BY_SOURCE: Final = frozenset({
    "subscribe", "subscribepattern", "assign", "startingoffsets", "startingtimestamp", "includeheaders",
    "startingoffsetsbytimestamp", "startingoffsetsbytimestampstrategy", "endingoffsets", "endingtimestamp",
    "endingoffsetsbytimestamp",
})  # fmt: skip
#: Flink's limit
_LONGEST_PREFIX_BYTES: Final = 6400
#: without a deserializer
_COLUMNS: Final = Schema(
    tuple(
        Field(name, kind)
        for name, kind in (
            ("key", "binary"),
            ("value", "binary"),
            ("topic", "string"),
            ("partition", "int"),
            ("offset", "bigint"),
            ("timestamp", "timestamp"),
            ("timestampType", "int"),
            ("headers", "array<struct<key: string, value: binary>>"),
        )
    )
)

FlinkKafkaConsumer: Any = refused_class("FlinkKafkaConsumer", _OLD, "KafkaSource")
FlinkKafkaProducer: Any = refused_class("FlinkKafkaProducer", _OLD, "KafkaSink")
Semantic: Any = refused_class("Semantic", "it is FlinkKafkaProducer's", "DeliveryGuarantee")

# --- reading ------------------------------------------------------------------------------


class KafkaTopicPartition:
    """A partition of a topic."""

    def __init__(self, topic: str, partition: int) -> None:
        self._topic = topic
        self._partition = partition

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, KafkaTopicPartition):
            return NotImplemented
        return (self._topic, self._partition) == (other._topic, other._partition)

    def __hash__(self) -> int:
        return hash((self._topic, self._partition))

    def __repr__(self) -> str:
        return f"KafkaTopicPartition({self._topic!r}, {self._partition!r})"


class KafkaOffsetResetStrategy(Enum):
    """Where to begin in a partition without an offset."""

    LATEST = 0
    EARLIEST = 1
    NONE = 2


class KafkaOffsetsInitializer:
    """From where a topic is read, or up to where."""

    def __init__(self, offsets: KafkaOffsets) -> None:
        self._offsets = offsets

    @staticmethod
    def committed_offsets(
        offset_reset_strategy: KafkaOffsetResetStrategy = KafkaOffsetResetStrategy.NONE,
    ) -> KafkaOffsetsInitializer:
        """What the consumer group has committed; NONE fails the job where it has not."""
        reset = KafkaReset[offset_reset_strategy.name]
        return KafkaOffsetsInitializer(KafkaOffsets(KafkaOffsetsKind.COMMITTED, reset=reset))

    @staticmethod
    def timestamp(timestamp: int) -> KafkaOffsetsInitializer:
        """The first message of that time, in ms since the epoch, or of a later one; else the end."""
        if timestamp < 0:
            raise ValueError(f"the timestamp {timestamp} is before 1970")
        return KafkaOffsetsInitializer(KafkaOffsets(KafkaOffsetsKind.TIMESTAMP, timestamp))

    @staticmethod
    def earliest() -> KafkaOffsetsInitializer:
        """The first message there is."""
        return KafkaOffsetsInitializer(KafkaOffsets(KafkaOffsetsKind.EARLIEST))

    @staticmethod
    def latest() -> KafkaOffsetsInitializer:
        """Behind the last message there is when the job starts."""
        return KafkaOffsetsInitializer(KafkaOffsets(KafkaOffsetsKind.LATEST))

    @staticmethod
    def offsets(
        offsets: dict[KafkaTopicPartition, int],
        offset_reset_strategy: KafkaOffsetResetStrategy = KafkaOffsetResetStrategy.EARLIEST,
    ) -> KafkaOffsetsInitializer:
        """These; partitions without one have what the group has committed, else what the strategy says."""
        found = tuple(sorted((at._topic, at._partition, offset) for at, offset in offsets.items()))
        for topic, partition, offset in found:
            if offset < 0:
                raise ValueError(f"offset {offset} of {topic}-{partition} is negative")
        reset = KafkaReset[offset_reset_strategy.name]
        return KafkaOffsetsInitializer(KafkaOffsets(KafkaOffsetsKind.OFFSETS, offsets=found, reset=reset))


class KafkaSource(Source):
    """Messages of topics; made by its builder.

    Elements have the messages' timestamps, which a watermark strategy without an assigner uses.
    """

    name = "Kafka Source"

    def __init__(self, source: kafka.KafkaSource) -> None:
        self._source = source
        # columns have a column of it
        self.timestamped = source.format is not None
        self.side_outputs = source.side_outputs

    @staticmethod
    def builder() -> KafkaSourceBuilder:
        """Begin a source."""
        return KafkaSourceBuilder()

    def operator(self) -> tuple[operators.Operator, Schema]:
        found = self._source.format
        return self._source, _COLUMNS if found is None else element_schema(found.element_type)


class KafkaSourceBuilder:
    """Builds a :class:`KafkaSource` step by step."""

    def __init__(self) -> None:
        self._properties: dict[str, str] = {}
        self._options: dict[str, object] = {}
        self._what: dict[str, Any] = {}
        self._starting = KafkaOffsets(KafkaOffsetsKind.EARLIEST)
        self._stopping: KafkaOffsets | None = None
        self._format: messages.MessageFormat | None = None
        self._malformed = ""
        self._is_columns = False

    def build(self) -> KafkaSource:
        """The source.

        Raises
        ------
        UnsupportedGraph
            Servers, topics or the format are missing, or settings cannot go together.
        """
        if not self._properties.get(_SERVERS):
            raise UnsupportedGraph("a Kafka source needs set_bootstrap_servers('host:port')")
        if not self._what:
            raise UnsupportedGraph(
                "a Kafka source needs set_topics(…), set_topic_pattern(…) or set_partitions(…)"
            )
        if self._format is None and not self._is_columns:
            raise UnsupportedGraph("a Kafka source needs set_value_only_deserializer(…), or set_columns()")
        if self._format is not None and self._is_columns:
            raise UnsupportedGraph(
                "set_columns() leaves messages as they are: leave out set_value_only_deserializer(…)"
            )
        if self._malformed and (self._format is None or self._format.ignore_errors):
            raise UnsupportedGraph(
                "set_malformed_output(…) takes what set_value_only_deserializer(…) cannot read: leave out "
                + ("set_columns()" if self._is_columns else "ignore_parse_errors()")
            )
        kinds = {offsets.kind for offsets in (self._starting, self._stopping) if offsets is not None}
        if KafkaOffsetsKind.COMMITTED in kinds and not self._properties.get("group.id"):
            raise UnsupportedGraph("committed_offsets() needs set_group_id(…)")
        options = check_options(self._options)
        for key in options:
            if key.lower().startswith("kafka."):
                raise UnsupportedGraph(f"option '{key}' is Kafka's: set_property('{key[6:]}', …)")
            if key.lower() in _SET_BY_SOURCE:
                raise UnsupportedGraph(f"option '{key}' is set by the source's other methods")
        return KafkaSource(
            kafka.KafkaSource(
                dict(self._properties),
                self._starting,
                self._stopping,
                format=self._format,
                malformed=self._malformed,
                options=options,
                **self._what,
            )
        )

    def set_bootstrap_servers(self, bootstrap_servers: str) -> KafkaSourceBuilder:
        """Brokers to begin with: ``host:port,host:port``."""
        return self.set_property(_SERVERS, bootstrap_servers)

    @differs("offsets are in the job's checkpoints alone: none is committed to the group")
    def set_group_id(self, group_id: str) -> KafkaSourceBuilder:
        """Name of the consumer group."""
        return self.set_property("group.id", group_id)

    def set_topics(self, *topics: str) -> KafkaSourceBuilder:
        """Read all partitions of these topics, which must exist."""
        return self._read(topics=tuple(topics))

    def set_topic_pattern(self, topic_pattern: str) -> KafkaSourceBuilder:
        """Read all topics whose whole names a regular expression of Java's matches, new ones as well."""
        return self._read(topic_pattern=topic_pattern)

    def set_partitions(self, partitions: Iterable[KafkaTopicPartition]) -> KafkaSourceBuilder:
        """Read these partitions alone."""
        return self._read(partitions=tuple(sorted((at._topic, at._partition) for at in partitions)))

    def _read(self, **what: Any) -> KafkaSourceBuilder:
        if self._what:
            raise UnsupportedGraph(
                "a Kafka source has either set_topics(…), set_topic_pattern(…) or set_partitions(…), once"
            )
        if not all(what.values()):
            raise UnsupportedGraph(f"a Kafka source without {' '.join(what)} reads nothing")
        self._what = what
        return self

    def set_starting_offsets(
        self, starting_offsets_initializer: KafkaOffsetsInitializer
    ) -> KafkaSourceBuilder:
        """Where a job begins that has no checkpoint; unless set, with the earliest messages."""
        self._starting = starting_offsets_initializer._offsets
        return self

    @differs("the source is bounded then, as with set_bounded()")
    def set_unbounded(self, stopping_offsets_initializer: KafkaOffsetsInitializer) -> KafkaSourceBuilder:
        """End before these offsets, which are looked up when the job first starts."""
        return self.set_bounded(stopping_offsets_initializer)

    @differs("offsets behind the end of a partition fail the job")
    def set_bounded(self, stopping_offsets_initializer: KafkaOffsetsInitializer) -> KafkaSourceBuilder:
        """End before these offsets, which are looked up when the job first starts."""
        if stopping_offsets_initializer._offsets.kind is KafkaOffsetsKind.EARLIEST:
            raise UnsupportedGraph("a source that ends at the earliest offsets reads nothing")
        self._stopping = stopping_offsets_initializer._offsets
        return self

    def set_value_only_deserializer(
        self, deserialization_schema: DeserializationSchema
    ) -> KafkaSourceBuilder:
        """What the messages' values become; messages without a value are left out."""
        self._format = deserialization_schema._read()
        return self

    def set_malformed_output(self, output_tag: OutputTag) -> KafkaSourceBuilder:
        """Where messages go that the deserializer cannot read; unless set, the first of them fails the job.

        ``get_side_output(output_tag)`` of the stream that ``from_source`` gives has a row for each of them:
        ``topic STRING, partition INT, offset LONG, timestamp_ms LONG`` (since the epoch), ``key`` and
        ``value`` (bytes as they are; the key may be None), ``reason STRING``.  Their time is the message's.
        They are left out where nobody reads that output.  It is Flink's way for functions; its sources have
        none.

        Parameters
        ----------
        output_tag : OutputTag
            Without a type; it has that of these rows.
        """
        if not isinstance(output_tag, OutputTag):
            raise TypeError(f"set_malformed_output() takes an OutputTag, not {output_tag!r}")
        self._malformed = output_tag.tag_id
        return self

    def set_columns(self) -> KafkaSourceBuilder:
        """Read messages as they are, for expressions and SQL.

        The stream has the columns ``key BINARY, value BINARY, topic STRING, partition INT, offset BIGINT,
        timestamp TIMESTAMP, timestampType INT, headers ARRAY<STRUCT<key: STRING, value: BINARY>>``.
        """
        self._is_columns = True
        return self

    def set_option(self, key: str, value: object) -> KafkaSourceBuilder:
        """A reader option as Spark names it, such as ``maxOffsetsPerTrigger`` or ``failOnDataLoss``."""
        self._options[key] = value
        return self

    def set_client_id_prefix(self, prefix: str) -> KafkaSourceBuilder:
        """How the names begin by which brokers know the clients."""
        return self.set_property("client.id", prefix)

    @same_and("settings of Flink's own source have no effect")
    def set_property(self, key: str, value: str) -> KafkaSourceBuilder:
        """A setting of Kafka's consumer."""
        if not isinstance(value, str):
            raise TypeError(f"the property {key} is {value!r}, which is no text")
        if key not in _OVERRIDDEN | _OF_FLINK:
            self._properties[key] = value
        return self

    def set_properties(self, props: Mapping[str, str]) -> KafkaSourceBuilder:
        """Settings of Kafka's consumer."""
        for key, value in props.items():
            self.set_property(key, value)
        return self


# --- writing ------------------------------------------------------------------------------


class KafkaTopicSelector(ABC):
    """Says the topic of each element."""

    @abstractmethod
    def apply(self, data: Any) -> str:
        """The topic."""


class KafkaRecordSerializationSchema(SerializationSchema):
    """What messages are made of elements; made by its builder."""

    def __init__(
        self,
        topic: str,
        topic_selector: Any,
        key: messages.MessageFormat | None,
        value: messages.MessageFormat,
    ) -> None:
        self._topic = topic
        self._topic_selector = topic_selector
        self._key = key
        self._value = value

    @staticmethod
    def builder() -> KafkaRecordSerializationSchemaBuilder:
        """Begin one."""
        return KafkaRecordSerializationSchemaBuilder()


class KafkaRecordSerializationSchemaBuilder:
    """Says topic, key and value of the messages."""

    def __init__(self) -> None:
        self._topic = ""
        self._selector: Any = None
        self._key: messages.MessageFormat | None = None
        self._value: messages.MessageFormat | None = None

    def build(self) -> KafkaRecordSerializationSchema:
        """The schema.  Raises UnsupportedGraph where topic or value are missing."""
        if not self._topic and self._selector is None:
            raise UnsupportedGraph("Kafka's records need set_topic(…) or set_topic_selector(…)")
        if self._value is None:
            raise UnsupportedGraph("Kafka's records need set_value_serialization_schema(…)")
        return KafkaRecordSerializationSchema(self._topic, self._selector, self._key, self._value)

    def set_topic(self, topic: str) -> KafkaRecordSerializationSchemaBuilder:
        """Write everything to one topic."""
        self._topic, self._selector = topic, None
        return self

    def set_topic_selector(
        self, topic_selector: Callable[[Any], str] | KafkaTopicSelector
    ) -> KafkaRecordSerializationSchemaBuilder:
        """Write each element to the topic that a function or a selector says."""
        if not isinstance(topic_selector, KafkaTopicSelector) and not callable(topic_selector):
            raise TypeError("topic_selector must be KafkaTopicSelector or a callable")
        self._topic, self._selector = "", topic_selector
        return self

    def set_key_serialization_schema(
        self, key_serialization_schema: SerializationSchema
    ) -> KafkaRecordSerializationSchemaBuilder:
        """How elements become keys; unless set, messages have none."""
        self._key = key_serialization_schema._written()
        return self

    def set_value_serialization_schema(
        self, value_serialization_schema: SerializationSchema
    ) -> KafkaRecordSerializationSchemaBuilder:
        """How elements become values."""
        self._value = value_serialization_schema._written()
        return self


class KafkaSink(Sink, SupportsPreprocessing):
    """Messages of elements; made by its builder.

    A message has the time of its element.  EXACTLY_ONCE: the messages of a micro-batch become readable by its
    commit, to consumers of ``isolation.level`` ``read_committed``, however often the batch is done.  With a
    parallelism of 1 they do so all at once; with more, each subtask's do, and the batch's messages go
    through a file in the job's checkpoint directory first.
    """

    name = "Kafka Sink"

    def __init__(
        self,
        properties: Mapping[str, str],
        schema: KafkaRecordSerializationSchema,
        delivery: kafka.KafkaDelivery,
        transactional_id_prefix: str,
    ) -> None:
        self._properties = dict(properties)
        self._schema = schema
        self._delivery = delivery
        self._prefix = transactional_id_prefix

    @staticmethod
    def builder() -> KafkaSinkBuilder:
        """Begin a sink."""
        return KafkaSinkBuilder()

    def get_transformer(self) -> StreamTransformer | None:
        """None: topics are told where messages are made."""
        return None

    def operator(self, schema: Schema) -> operators.Operator:
        made, selector = self._schema, None
        if made._topic_selector is not None:
            origin = definition_origin(made._topic_selector, "set_topic_selector")
            selector = make_closure(made._topic_selector, origin)
        if schema.element_type is None:
            columns(schema)
        return kafka.KafkaSink(
            self._properties, made._value, made._key, made._topic, selector, self._delivery, self._prefix
        )


class KafkaSinkBuilder:
    """Builds a :class:`KafkaSink` step by step."""

    def __init__(self) -> None:
        self._properties: dict[str, str] = {}
        self._schema: KafkaRecordSerializationSchema | None = None
        self._delivery = kafka.KafkaDelivery.NONE
        self._prefix = ""

    def build(self) -> KafkaSink:
        """The sink.

        Raises
        ------
        UnsupportedGraph
            Servers or the record serializer are missing, or settings cannot go together.
        """
        if not self._properties.get(_SERVERS):
            raise UnsupportedGraph("a Kafka sink needs set_bootstrap_servers('host:port')")
        if self._schema is None:
            raise UnsupportedGraph("a Kafka sink needs set_record_serializer(…)")
        if "transactional.id" in self._properties:
            raise UnsupportedGraph("the ids of transactions are the sink's: set_transactional_id_prefix(…)")
        if self._delivery is kafka.KafkaDelivery.EXACTLY_ONCE and not self._prefix:
            raise UnsupportedGraph(
                "EXACTLY_ONCE needs set_transactional_id_prefix(…): jobs whose transactions are called alike "
                "abort each other's"
            )
        return KafkaSink(self._properties, self._schema, self._delivery, self._prefix)

    def set_bootstrap_servers(self, bootstrap_servers: str) -> KafkaSinkBuilder:
        """Brokers to begin with: ``host:port,host:port``."""
        return self.set_property(_SERVERS, bootstrap_servers)

    @differs("NONE waits for the brokers as AT_LEAST_ONCE does")
    def set_delivery_guarantee(self, delivery_guarantee: DeliveryGuarantee) -> KafkaSinkBuilder:
        """What holds after a failure; NONE unless set."""
        self._delivery = kafka.KafkaDelivery[delivery_guarantee.name]
        return self

    def set_transactional_id_prefix(self, transactional_id_prefix: str) -> KafkaSinkBuilder:
        """How the ids of the transactions begin; no two jobs on one Kafka may have the same."""
        if not transactional_id_prefix or len(transactional_id_prefix.encode()) > _LONGEST_PREFIX_BYTES:
            raise UnsupportedGraph(f"the prefix must have 1 to {_LONGEST_PREFIX_BYTES} bytes")
        self._prefix = transactional_id_prefix
        return self

    def set_record_serializer(self, record_serializer: KafkaRecordSerializationSchema) -> KafkaSinkBuilder:
        """What messages are made of elements."""
        self._schema = record_serializer
        return self

    @differs("messages are written by librdkafka: a setting that it has not is refused when the job starts")
    def set_property(self, key: str, value: str) -> KafkaSinkBuilder:
        """A setting of Kafka's producer, as Java names it."""
        if not isinstance(value, str):
            raise TypeError(f"the property {key} is {value!r}, which is no text")
        self._properties[key] = value
        return self


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
