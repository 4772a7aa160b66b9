"""Topics of Kafka that are read and written, as plain values.  Flink: ``KafkaSource``, ``KafkaSink``."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import ClassVar

from yarnflow.graph.closures import Closure
from yarnflow.graph.connectors.messages import MALFORMED_MESSAGE, MessageFormat
from yarnflow.graph.type_info import TypeInfo


class KafkaOffsetsKind(Enum):
    """From where a topic is read, or up to where."""

    EARLIEST = "EARLIEST"
    LATEST = "LATEST"
    #: what the consumer group has committed
    COMMITTED = "COMMITTED"
    #: of the first message at a time or later
    TIMESTAMP = "TIMESTAMP"
    #: a number for each partition
    OFFSETS = "OFFSETS"


class KafkaReset(Enum):
    """What stands in for an offset that is not known."""

    EARLIEST = "EARLIEST"
    LATEST = "LATEST"
    #: nothing does: it is an error
    NONE = "NONE"


@dataclass(frozen=True, slots=True)
class KafkaOffsets:
    """Offsets of all partitions.  Flink: ``OffsetsInitializer``."""

    kind: KafkaOffsetsKind
    #: TIMESTAMP: since the epoch
    timestamp_ms: int = 0
    #: OFFSETS: topic, partition, offset
    offsets: tuple[tuple[str, int, int], ...] = ()
    #: COMMITTED, OFFSETS: for partitions without an offset
    reset: KafkaReset = KafkaReset.NONE


@dataclass(frozen=True, slots=True)
class KafkaSource:
    """Messages of topics; bounded where it has ``stopping`` offsets.  Flink: ``KafkaSource``.

    Exactly one of ``topics``, ``topic_pattern`` and ``partitions`` is not empty.
    """

    #: whose jars it needs
    connector: ClassVar[str] = "kafka"
    #: of Kafka's consumer, bootstrap.servers among them; may hold passwords
    properties: dict[str, str] = field(repr=False)
    starting: KafkaOffsets
    stopping: KafkaOffsets | None = None
    topics: tuple[str, ...] = ()
    #: regular expression of Java's
    topic_pattern: str = ""
    #: topic and number
    partitions: tuple[tuple[str, int], ...] = ()
    #: None = the stream has the messages' own columns
    format: MessageFormat | None = None
    #: id of the side output for messages that cannot be read; empty = they are as the format says
    malformed: str = ""
    #: reader options as Spark names them
    options: dict[str, str] = field(default_factory=dict)
    #: which fields of its rows are read; None = all.  Found by :mod:`yarnflow.graph.generation.projection`
    fields: tuple[str, ...] | None = None

    @property
    def bounded(self) -> bool:
        return self.stopping is not None

    @property
    def read_at_once(self) -> bool:
        # Spark's options that limit a micro-batch
        return self.bounded and not any(key.lower().startswith("max") for key in self.options)

    @property
    def side_outputs(self) -> tuple[tuple[str, TypeInfo], ...]:
        """Id and type of each."""
        return ((self.malformed, MALFORMED_MESSAGE),) if self.malformed else ()

    @property
    def where(self) -> str:
        """What is read, for people."""
        named = ", ".join(self.topics) or ", ".join(f"{topic}-{number}" for topic, number in self.partitions)
        return f"topics {named}" if named else f"topics like {self.topic_pattern}"


class KafkaDelivery(Enum):
    """What a Kafka sink promises after a failure.  Flink: ``DeliveryGuarantee``."""

    EXACTLY_ONCE = "EXACTLY_ONCE"
    AT_LEAST_ONCE = "AT_LEAST_ONCE"
    NONE = "NONE"


@dataclass(frozen=True, slots=True)
class KafkaSink:
    """Messages of topics.  Flink: ``KafkaSink``."""

    #: of Kafka's producer, bootstrap.servers among them; may hold passwords
    properties: dict[str, str] = field(repr=False)
    value: MessageFormat
    key: MessageFormat | None = None
    #: empty = the selector tells
    topic: str = ""
    #: ``f(element) -> topic``, or an object with ``apply``
    topic_selector: Closure | None = None
    delivery: KafkaDelivery = KafkaDelivery.NONE
    #: EXACTLY_ONCE: how the ids of its transactions begin; no other job's do so
    transactional_id_prefix: str = ""
