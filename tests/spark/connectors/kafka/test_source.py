"""What Spark's Kafka reader is told, by what brokers say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from yarnflow.errors import SourceNotFound
from yarnflow.graph.connectors.kafka import KafkaOffsets, KafkaOffsetsKind, KafkaReset, KafkaSource
from yarnflow.spark.connectors.kafka.offsets import (
    Bounds,
    Offsets,
    Partition,
    find_bounds,
    kept_bounds,
    may_pass,
)
from yarnflow.spark.connectors.kafka.source import reader_options

EARLIEST = KafkaOffsets(KafkaOffsetsKind.EARLIEST)
LATEST = KafkaOffsets(KafkaOffsetsKind.LATEST)
A, B = ("t", 0), ("t", 1)


class OneTopic:
    """Brokers with the topic ``t``: two partitions of the offsets 10 to 20."""

    def __init__(self, committed: Offsets | None = None, at_time: Offsets | None = None) -> None:
        self._committed = committed or {}
        self._at_time = at_time or {}
        self.closed = False

    def partitions(self, source: KafkaSource) -> list[Partition]:
        return [A, B]

    def earliest(self, partitions: Sequence[Partition]) -> Offsets:
        return dict.fromkeys(partitions, 10)

    def latest(self, partitions: Sequence[Partition]) -> Offsets:
        return dict.fromkeys(partitions, 20)

    def committed(self, partitions: Sequence[Partition]) -> Offsets:
        return {at: offset for at, offset in self._committed.items() if at in partitions}

    def at_time(self, partitions: Sequence[Partition], timestamp_ms: int) -> Offsets:
        return self._at_time

    def close(self) -> None:
        self.closed = True


def source(
    starting: KafkaOffsets = EARLIEST, stopping: KafkaOffsets | None = None, group: str = "g"
) -> KafkaSource:
    properties = {"bootstrap.servers": "h:1"} | ({"group.id": group} if group else {})
    return KafkaSource(properties, starting, stopping, topics=("t",))


def named(reset: KafkaReset, **offsets: int) -> KafkaOffsets:
    found = tuple(("t", int(number[1:]), offset) for number, offset in offsets.items())
    return KafkaOffsets(KafkaOffsetsKind.OFFSETS, offsets=found, reset=reset)


def committed(reset: KafkaReset) -> KafkaOffsets:
    return KafkaOffsets(KafkaOffsetsKind.COMMITTED, reset=reset)


def test_spark_itself_begins_at_both_ends_and_at_a_time() -> None:
    unbounded = Bounds("", None)
    assert find_bounds(source(), OneTopic()) == unbounded
    assert reader_options(source(), unbounded) == {
        "kafka.bootstrap.servers": "h:1",
        "kafka.group.id": "g",
        "subscribe": "t",
        "startingOffsets": "earliest",
        "includeHeaders": "true",
    }
    assert reader_options(source(LATEST), unbounded)["startingOffsets"] == "latest"
    options = reader_options(source(KafkaOffsets(KafkaOffsetsKind.TIMESTAMP, 5)), unbounded)
    assert options["startingTimestamp"] == "5" and "startingOffsets" not in options
    # Flink begins at the end where no message is as late; Spark would fail
    assert options["startingOffsetsByTimestampStrategy"] == "latest"


def test_topics_by_pattern_and_partitions() -> None:
    unbounded = Bounds("", None)
    by_pattern = KafkaSource({"bootstrap.servers": "h:1"}, EARLIEST, topic_pattern="t.*")
    assert reader_options(by_pattern, unbounded)["subscribePattern"] == "t.*"
    assigned = KafkaSource(
        {"bootstrap.servers": "h:1"}, EARLIEST, partitions=(("u", 0), ("t", 1), ("t", 0))
    )
    assert reader_options(assigned, unbounded)["assign"] == '{"t": [0, 1], "u": [0]}'


@pytest.mark.parametrize(
    ("starting", "expected"),
    [
        (named(KafkaReset.EARLIEST, p0=12, p1=13), '{"t": {"0": 12, "1": 13}}'),
        # Flink asks the group for those that are not named
        (named(KafkaReset.EARLIEST, p1=13), '{"t": {"0": 15, "1": 13}}'),
        (committed(KafkaReset.NONE), None),
        (committed(KafkaReset.EARLIEST), '{"t": {"0": 15, "1": -2}}'),
        (committed(KafkaReset.LATEST), '{"t": {"0": 15, "1": -1}}'),
    ],
)
def test_named_and_committed_offsets_are_looked_up(starting: KafkaOffsets, expected: str | None) -> None:
    brokers = OneTopic(committed={A: 15})
    if expected is None:
        with pytest.raises(SourceNotFound, match="partition 1 of topic t: the group 'g' has committed none"):
            find_bounds(source(starting), brokers)
    else:
        bounds = find_bounds(source(starting), brokers)
        assert bounds.starting == expected
        assert reader_options(source(starting), bounds)["startingOffsets"] == expected


def test_where_a_bounded_source_ends() -> None:
    def end(stopping: KafkaOffsets, brokers: OneTopic | None = None) -> Offsets | None:
        return find_bounds(source(stopping=stopping), brokers or OneTopic(committed={A: 15})).stopping

    assert end(LATEST) == {A: 20, B: 20}
    # partition 1 has no message as late
    at_time = KafkaOffsets(KafkaOffsetsKind.TIMESTAMP, 5)
    assert end(at_time, OneTopic(at_time={A: 14})) == {A: 14, B: 20}
    assert end(named(KafkaReset.LATEST, p0=12, p1=13)) == {A: 12, B: 13}
    assert end(committed(KafkaReset.LATEST)) == {A: 15, B: 20}
    assert end(committed(KafkaReset.EARLIEST)) == {A: 15, B: 10}
    with pytest.raises(SourceNotFound, match="before offset 21 of partition 0 of topic t, whose end is 20"):
        end(named(KafkaReset.LATEST, p0=21, p1=13))


def test_what_was_found_is_read_again_as_it_was() -> None:
    for bounds in (Bounds("", None), Bounds('{"t": {"0": 1}}', {A: 20, B: 3}, "to there")):
        assert Bounds.from_json(bounds.to_json()) == bounds


def test_the_end_of_a_program_that_was_changed() -> None:
    def not_asked() -> OneTopic:
        raise AssertionError

    brokers = OneTopic()
    first = find_bounds(source(named(KafkaReset.EARLIEST, p0=12, p1=13), LATEST), brokers)
    first = replace(first, stopping={A: 15, B: 15})
    # it ends where it would have ended
    assert kept_bounds(first, source(stopping=LATEST), not_asked) == first
    # every message behind the end would be read and left out
    endless = kept_bounds(first, source(), not_asked)
    assert endless.stopping is None and endless.starting == first.starting
    assert kept_bounds(endless, source(), not_asked) == endless
    for before in (endless, first):
        brokers = OneTopic()
        ended = kept_bounds(before, source(stopping=named(KafkaReset.LATEST, p0=18, p1=19)), lambda: brokers)
        assert ended.stopping == {A: 18, B: 19} and brokers.closed
        assert ended.starting == first.starting


def test_brokers_that_do_not_answer_may_do_so_later() -> None:
    errors = "org.apache.kafka.common.errors"
    above = {f"{errors}.RetriableException", f"{errors}.ApiException", "java.lang.RuntimeException"}
    assert may_pass({f"{errors}.TimeoutException", *above})
    assert not may_pass({f"{errors}.UnknownTopicOrPartitionException", *above})
    assert not may_pass({f"{errors}.SaslAuthenticationException", f"{errors}.ApiException"})
