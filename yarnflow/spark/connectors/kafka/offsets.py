"""Which offsets a Kafka source begins and ends with.

Decides by what brokers say, asked once per job: what was found is kept with the checkpoint, so a job that is
started again ends where it would have ended.  Flink counterpart: ``OffsetsInitializer``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, Protocol

from pyspark.sql import SparkSession

from yarnflow.errors import BrokerUnavailable, ServerError, SourceNotFound
from yarnflow.graph.connectors.kafka import KafkaOffsets, KafkaOffsetsKind, KafkaReset, KafkaSource
from yarnflow.spark.connectors.kafka.properties import without_secrets
from yarnflow.spark.java_classes import java_class

#: topic and number
Partition = tuple[str, int]
Offsets = dict[Partition, int]

_CONSUMER: Final = "org.apache.kafka.clients.consumer.KafkaConsumer"
_PACKAGE: Final = "org.apache.kafka.common.serialization.ByteArrayDeserializer"
_GROUP: Final = "group.id"
_ERRORS: Final = "org.apache.kafka.common.errors"
#: Kafka calls it retriable, for it may be known later; a source waits for no topic
_NOT_THERE: Final = frozenset({f"{_ERRORS}.UnknownTopicOrPartitionException"})
_REFUSED: Final = frozenset({f"{_ERRORS}.AuthenticationException", f"{_ERRORS}.AuthorizationException"})
#: ms, for the brokers' answer
_ASK_TIMEOUT_MS: Final = 30_000
#: in the offsets that Spark is told: the earliest, the latest
_SPARK_EARLIEST: Final = -2
_SPARK_LATEST: Final = -1


class Brokers(Protocol):
    """What is asked of brokers; all maps have a value for each partition that has one."""

    def partitions(self, source: KafkaSource) -> list[Partition]:
        """Partitions the source reads now.  Raises SourceNotFound for a topic that is not there."""

    def earliest(self, partitions: Sequence[Partition]) -> Offsets: ...

    def latest(self, partitions: Sequence[Partition]) -> Offsets: ...

    def committed(self, partitions: Sequence[Partition]) -> Offsets: ...

    def at_time(self, partitions: Sequence[Partition], timestamp_ms: int) -> Offsets: ...

    def close(self) -> None:
        """Let go of the connections."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """What is kept of a source."""

    #: as Spark's option ``startingOffsets``; empty = as the source says
    starting: str
    #: first offset of each partition that is not read; None = there is no end
    stopping: Offsets | None
    #: what the program asked for when the end was found
    asked: str = ""

    def to_json(self) -> str:
        """The text of :meth:`from_json`."""
        stopping = None if self.stopping is None else [[*at, offset] for at, offset in self.stopping.items()]
        return json.dumps({"starting": self.starting, "stopping": stopping, "asked": self.asked})

    @classmethod
    def from_json(cls, text: str) -> Bounds:
        """Read what :meth:`to_json` wrote."""
        found = json.loads(text)
        stopping = found["stopping"]
        return cls(
            found["starting"],
            None if stopping is None else {(topic, number): offset for topic, number, offset in stopping},
            found["asked"],
        )


def find_bounds(source: KafkaSource, brokers: Brokers) -> Bounds:
    """Ask the brokers for what the source's offsets are.

    Raises
    ------
    SourceNotFound
        A topic or a wanted offset is not there.
    """
    partitions = brokers.partitions(source)
    starting = ""
    latest = dict.fromkeys(partitions, _SPARK_LATEST)
    if source.stopping is not None and KafkaOffsetsKind.LATEST.name in (
        source.starting.kind.name, source.starting.reset.name
    ):
        # a batch of Spark's does not begin with the latest
        latest = brokers.latest(partitions)
        if source.starting.kind is KafkaOffsetsKind.LATEST:
            starting = starting_json(latest)
    if source.starting.kind in (KafkaOffsetsKind.OFFSETS, KafkaOffsetsKind.COMMITTED):
        earliest = source.starting.reset is KafkaReset.EARLIEST
        starting = starting_json(
            {
                at: (_SPARK_EARLIEST if earliest else latest[at]) if offset is None else offset
                for at, offset in _wanted(source, source.starting, brokers, partitions).items()
            }
        )
    stopping = None if source.stopping is None else _stopping(source, source.stopping, brokers, partitions)
    return Bounds(starting, stopping, asked_end(source))


def kept_bounds(before: Bounds, source: KafkaSource, ask: Callable[[], Brokers]) -> Bounds:
    """What holds for a source that has been read before, maybe by a program that wanted another end.

    The beginning is in Spark's checkpoint and stays.  An end that is wanted anew is looked up anew; one that
    no program wants any more would have later messages read and left out, for good.

    Parameters
    ----------
    before : Bounds
        What was kept.
    source : KafkaSource
        As the program has it now.
    ask : callable
        Connects to the brokers, if they have to be asked.
    """
    asked = asked_end(source)
    if asked == before.asked:
        return before
    if source.stopping is None:
        return replace(before, stopping=None, asked=asked)
    brokers = ask()
    try:
        stopping = _stopping(source, source.stopping, brokers, brokers.partitions(source))
    finally:
        brokers.close()
    return replace(before, stopping=stopping, asked=asked)


def asked_end(source: KafkaSource) -> str:
    """Where the program wants the source to end, and of what; empty = nowhere."""
    if source.stopping is None:
        return ""
    end = source.stopping
    return repr(
        (sorted(source.topics), source.topic_pattern, sorted(source.partitions))
        + (end.kind.value, end.timestamp_ms, sorted(end.offsets), end.reset.value)
    )


def starting_json(offsets: Mapping[Partition, int]) -> str:
    """Offsets as Spark's reader takes them."""
    by_topic: dict[str, dict[str, int]] = {}
    for (topic, number), offset in sorted(offsets.items()):
        by_topic.setdefault(topic, {})[str(number)] = offset
    return json.dumps(by_topic)


def _wanted(
    source: KafkaSource, offsets: KafkaOffsets, brokers: Brokers, partitions: Sequence[Partition]
) -> dict[Partition, int | None]:
    """Named or committed offsets; None = the reset decides."""
    named: Offsets = {(topic, number): offset for topic, number, offset in offsets.offsets}
    others = [at for at in partitions if at not in named]
    committed = brokers.committed(others) if others and source.properties.get(_GROUP) else {}
    found = {at: named.get(at, committed.get(at)) for at in partitions}
    missing = [at for at, offset in found.items() if offset is None]
    if missing and offsets.reset is KafkaReset.NONE:
        topic, number = missing[0]
        group = source.properties.get(_GROUP, "")
        who = f"the group '{group}' has committed none" if group else "there is no group to ask"
        raise SourceNotFound(
            f"no offset is known for partition {number} of topic {topic}: {who}; commit one, or use "
            "KafkaOffsetResetStrategy.EARLIEST or LATEST"
        )
    return found


def _stopping(
    source: KafkaSource, offsets: KafkaOffsets, brokers: Brokers, partitions: Sequence[Partition]
) -> Offsets:
    latest = brokers.latest(partitions)
    match offsets.kind:
        case KafkaOffsetsKind.LATEST:
            return latest
        case KafkaOffsetsKind.TIMESTAMP:
            return {**latest, **brokers.at_time(partitions, offsets.timestamp_ms)}
    found = _wanted(source, offsets, brokers, partitions)
    reset = brokers.earliest(partitions) if offsets.reset is KafkaReset.EARLIEST else latest
    stopping: Offsets = {}
    for at, offset in found.items():
        stopping[at] = reset[at] if offset is None else offset
        if stopping[at] > latest[at]:
            raise SourceNotFound(
                f"the source is to end before offset {stopping[at]} of partition {at[1]} of topic {at[0]}, "
                f"whose end is {latest[at]} now; start the job when the messages are there"
            )
    return stopping


class JavaBrokers:
    """Implements :class:`Brokers` with the driver's own JVM, so by the very settings Spark reads with.

    Raises
    ------
    SourceNotFound
        The jars are not there, or the settings are none.
    BrokerUnavailable
        No broker answers.
    ServerError
        The brokers refuse the client.
    """

    def __init__(self, spark: SparkSession, properties: Mapping[str, str]) -> None:
        gateway: Any = spark.sparkContext._gateway
        self._gateway = gateway
        self._properties = dict(properties)
        self._servers = properties["bootstrap.servers"]
        # by the view of the JVM, which says whether there is such a class
        consumer = getattr(gateway.jvm, _CONSUMER)
        if type(consumer).__name__ == "JavaPackage":
            raise SourceNotFound(
                "the jars of Spark's Kafka connector are not on the class path of the job; name "
                "org.apache.spark:spark-sql-kafka-0-10_2.13 in spark.jars.packages"
            )
        found = java_class(self._gateway, "java.util.Properties")()
        for key, value in properties.items():
            found.setProperty(key, value)
        for key in ("key.deserializer", "value.deserializer"):
            found.setProperty(key, _PACKAGE)
        found.setProperty("enable.auto.commit", "false")
        found.putIfAbsent("default.api.timeout.ms", str(_ASK_TIMEOUT_MS))
        self._consumer = self._asked(lambda: consumer(found))

    def close(self) -> None:
        """Let go of the connections."""
        self._consumer.close()

    def partitions(self, source: KafkaSource) -> list[Partition]:
        topics = list(source.topics)
        if source.topic_pattern:
            matches = java_class(self._gateway, "java.util.regex.Pattern").matches
            known = self._asked(self._consumer.listTopics)
            topics = [topic for topic in known.keySet() if matches(source.topic_pattern, topic)]
        if source.partitions:
            topics = sorted({topic for topic, _ in source.partitions})
        found: list[Partition] = []
        for topic in sorted(topics):
            described = self._asked(partial(self._consumer.partitionsFor, topic))
            if not described:
                raise SourceNotFound(
                    f"there is no topic {topic} at {self._servers}; create it, or correct its name"
                )
            found += [(topic, info.partition()) for info in described]
        missing = [at for at in source.partitions if at not in found]
        if missing:
            raise SourceNotFound(f"topic {missing[0][0]} has no partition {missing[0][1]}")
        return sorted(source.partitions or found)

    def earliest(self, partitions: Sequence[Partition]) -> Offsets:
        return self._offsets(lambda: self._consumer.beginningOffsets(self._java(partitions)))

    def latest(self, partitions: Sequence[Partition]) -> Offsets:
        return self._offsets(lambda: self._consumer.endOffsets(self._java(partitions)))

    def committed(self, partitions: Sequence[Partition]) -> Offsets:
        wanted = java_class(self._gateway, "java.util.HashSet")(self._java(partitions))
        return self._offsets(lambda: self._consumer.committed(wanted), lambda found: found.offset())

    def at_time(self, partitions: Sequence[Partition], timestamp_ms: int) -> Offsets:
        wanted = java_class(self._gateway, "java.util.HashMap")()
        for at in self._java(partitions):
            # py4j makes an Integer of a smaller number, and no message is as old
            wanted.put(at, max(timestamp_ms, 2**31))
        return self._offsets(lambda: self._consumer.offsetsForTimes(wanted), lambda found: found.offset())

    def _java(self, partitions: Sequence[Partition]) -> Any:
        found = java_class(self._gateway, "java.util.ArrayList")()
        place = java_class(self._gateway, "org.apache.kafka.common.TopicPartition")
        for topic, number in partitions:
            found.add(place(topic, number))
        return found

    def _offsets(self, ask: Any, offset: Any = int) -> Offsets:
        found = self._asked(ask)
        return {
            (entry.getKey().topic(), entry.getKey().partition()): offset(entry.getValue())
            for entry in found.entrySet()
            if entry.getValue() is not None
        }

    def _asked(self, ask: Any) -> Any:
        try:
            return ask()
        except Exception as error:
            java = getattr(error, "java_exception", None)
            if java is None:
                raise
            cause = java.getCause() or java
            said = without_secrets(cause.toString().splitlines()[0], self._properties)
            names = _class_names(cause)
            if names & _REFUSED:
                raise ServerError(
                    f"Kafka at {self._servers} does not let in the source: {said}; correct its "
                    "properties, or what the broker allows"
                ) from None
            failure = BrokerUnavailable if may_pass(names) else SourceNotFound
            raise failure(
                f"Kafka at {self._servers} does not say what it has: {said}; check that it runs, and the "
                "source's properties"
            ) from None


def may_pass(names: Set[str]) -> bool:
    """Whether an error of Kafka's client may be gone at the next attempt, by its class and those above it."""
    return f"{_ERRORS}.RetriableException" in names and not names & _NOT_THERE


def _class_names(java: Any) -> set[str]:
    names, found = set(), java.getClass()
    while found is not None:
        names.add(str(found.getName()))
        found = found.getSuperclass()
    return names
