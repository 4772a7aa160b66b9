"""Which sink goes on with what a sink of an earlier program has begun."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from tests.graph import graphs as g
from tests.graph.state.test_comparison import FILES, built
from yarnflow.core.json_codec import from_json, to_json
from yarnflow.graph import operators as o
from yarnflow.graph.closures import Closure
from yarnflow.graph.connectors import kafka, messages, redis, sinks
from yarnflow.graph.job_graph import JobGraph
from yarnflow.graph.state.comparison import differences
from yarnflow.graph.state.shape import shape_of
from yarnflow.graph.state.sinks import Change, SinkEntries, SinkEntry, entry_of, gone_on, not_completed
from yarnflow.graph.type_info import Types

FILTER = o.FilterExpression("a > 0")
OUT, OTHER = sinks.FileSink("/out", "csv"), sinks.FileSink("/other", "csv")
TABLE = sinks.JdbcSink("INSERT INTO t VALUES (?)", "jdbc:postgresql://ann:pw@db/shop?ssl=true", "ann", "pw")
SECOND = replace(TABLE, statement="INSERT INTO u VALUES (?)")


def program(
    *outputs: o.Sink, before: tuple[o.Operator, ...] = (), uids: Mapping[int, str] | None = None
) -> JobGraph:
    """Sinks of one stream, each behind the same operators; number of a sink → its uid."""
    made = g.Program()
    source = made.add(FILES)
    source.uid = "in"
    for number, output in enumerate(outputs):
        last = source
        for operator in before:
            last = made.add(operator, last)
        made.add(output, last).uid = (uids or {}).get(number, "")
    return built(made)


def entries(*outputs: o.Sink, **more: Any) -> tuple[SinkEntry, ...]:
    found = [entry_of(node) for node in program(*outputs, **more).nodes]
    return tuple(entry for entry in found if entry is not None)


def keys(found: tuple[SinkEntry, ...]) -> list[str]:
    return [one.key for one in found]


def test_a_query_that_begins_has_its_operators_hashes() -> None:
    now = entries(OUT, TABLE)
    assert gone_on((), now) == now and keys(now) == [one.operator_hash for one in now]
    assert from_json(SinkEntries, to_json(SinkEntries(now))).sinks == now


@pytest.mark.parametrize("outputs", [(OUT,), (OUT, OTHER), (TABLE, SECOND), (OUT, TABLE)])
def test_a_stateless_operator_more_changes_no_key(outputs: tuple[o.Sink, ...]) -> None:
    saved, now = entries(*outputs), entries(*outputs, before=(FILTER,))
    assert not {one.operator_hash for one in saved} & {one.operator_hash for one in now}
    # the state of the one fits the other
    shapes = [shape_of(program(*outputs, before=before)) for before in ((), (FILTER,))]
    assert differences(*shapes) == ()
    assert keys(gone_on(saved, now)) == keys(saved) and not_completed(saved, now) == ()
    # and of a third one
    third = entries(*outputs, before=(FILTER, g.NATIVE))
    assert keys(gone_on(gone_on(saved, now), third)) == keys(saved)


def test_sinks_in_another_order_are_found_by_where_they_write() -> None:
    saved, now = entries(OUT, OTHER, TABLE), entries(TABLE, OTHER, OUT)
    assert keys(gone_on(saved, now)) == keys(saved)[::-1] and not_completed(saved, now) == ()


def test_a_uid_counts_more_than_place_and_target() -> None:
    saved = entries(OUT, OUT, uids={0: "a", 1: "b"})
    now = entries(OUT, OUT, uids={0: "b", 1: "a"}, before=(FILTER,))
    assert keys(gone_on(saved, now)) == keys(saved)[::-1]
    # a sink gets a uid when somebody notices that it should have one
    assert keys(gone_on(entries(OUT), entries(OUT, uids={0: "a"}, before=(FILTER,)))) == keys(entries(OUT))
    # another uid is another sink
    renamed = entries(OUT, uids={0: "c"})
    (gone, _) = not_completed(saved, renamed)
    assert gone == (saved[0], Change.GONE)


def test_a_sink_that_is_gone_or_writes_elsewhere_does_not_complete_its_batch() -> None:
    saved = entries(OUT, TABLE)
    assert not_completed(saved, entries(OUT, before=(FILTER,))) == ((saved[1], Change.GONE),)
    assert not_completed(saved, entries(OTHER, TABLE)) == ((saved[0], Change.MOVED),)
    elsewhere = replace(TABLE, url="jdbc:postgresql://db/stock")
    assert not_completed(saved, entries(OUT, elsewhere)) == ((saved[1], Change.MOVED),)
    # settings and secrets are no place
    same = replace(TABLE, url="jdbc:postgresql://bob:pw2@db/shop", user="bob", password="pw2")
    assert not_completed(saved, entries(OUT, same, before=(FILTER,))) == ()
    # nor is what is written there
    assert not_completed(saved, entries(OUT, SECOND, before=(FILTER,))) == ()


def test_sinks_that_cannot_be_told_apart_are_not_taken_for_each_other() -> None:
    saved = entries(OUT, OUT)
    # nothing before them has changed
    assert keys(gone_on(saved, entries(OUT, OUT, OTHER)))[:2] == keys(saved)
    now = entries(OUT, OUT, before=(FILTER,))
    assert not_completed(saved, now) == ((saved[0], Change.DOUBTFUL), (saved[1], Change.DOUBTFUL))
    after = gone_on(saved, now)
    assert len({one.key for one in after}) == 4 and [one.gone for one in after] == [False] * 2 + [True] * 2
    # one of two tables is gone: which one it was is seen by its statement
    two = entries(TABLE, SECOND)
    after = gone_on(two, entries(SECOND))
    assert after[0].key == two[1].key and after[1] == replace(two[0], gone=True)


def test_what_is_gone_keeps_its_key_from_others() -> None:
    saved = entries(OUT)
    left = gone_on(saved, entries(TABLE))
    assert [one.gone for one in left] == [False, True] and left[0].key != saved[0].key
    assert left[0].operator_hash == saved[0].operator_hash, "it stands where the other one stood"
    # it was given up once; it is not asked for again, nor does it come back
    assert not_completed(left, entries(TABLE)) == ()
    back = gone_on(left, entries(OUT, TABLE))
    assert back[0].key not in keys(left) and back[1].key == left[0].key


def test_functions_are_asked_for_only_where_one_could_be_taken_for_another() -> None:
    first, second = (sinks.ForeachBatchSink(Closure(b"", name, "job.py:1")) for name in ("first", "second"))
    saved = entries(first, second)
    assert keys(gone_on(saved, entries(first, second, before=(FILTER,)))) == keys(saved)
    assert not_completed(saved, entries(second)) == ()
    alike = entries(first, first)
    assert [change for _, change in not_completed(alike, entries(first, first, before=(FILTER,)))] == [
        Change.DOUBTFUL, Change.DOUBTFUL
    ]  # fmt: skip


def test_which_sinks_have_a_key() -> None:
    assert entries(g.PRINT, sinks.DiscardSink()) == ()
    server = redis.RedisServer("db", password="pw")
    keyed = redis.RedisSink(server, redis.RedisCommand.SET, g.CLOSURE)
    text = messages.MessageFormat(messages.MessageFormatKind.STRING, Types.STRING())
    once = kafka.KafkaSink(
        {"bootstrap.servers": "a:1"}, text, topic="t", delivery=kafka.KafkaDelivery.EXACTLY_ONCE,
        transactional_id_prefix="p",
    )  # fmt: skip
    found = entries(keyed, once, replace(once, delivery=kafka.KafkaDelivery.NONE))
    assert [one.exactly_once for one in found] == [True, True, False]
    # more brokers of the same cluster
    saved, now = entries(once), entries(replace(once, properties={"bootstrap.servers": "a:1,b:1"}))
    assert not_completed(saved, now) == () and "pw" not in to_json(SinkEntries(found))
    (moved,) = not_completed(saved, entries(replace(once, transactional_id_prefix="q")))
    assert moved[1] is Change.MOVED
