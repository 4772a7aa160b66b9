"""Which fields of messages are read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from yarnflow import api
from yarnflow.api.common import Types
from yarnflow.api.datastream.connectors.kafka import KafkaSource as KafkaSourceBuilder
from yarnflow.api.datastream.formats.json import JsonRowDeserializationSchema
from yarnflow.api.executor import use_executor
from yarnflow.graph.closures import Closure
from yarnflow.graph.connectors.kafka import KafkaSource
from yarnflow.graph.generation.projection import fields_of_record
from yarnflow.graph.operators import PythonKind, PythonOperator
from yarnflow.graph.schema import Schema
from yarnflow.graph.types import to_schema
from yarnflow.testing.kept_graph import KeptGraph

NAMES = ["auction", "price", "channel", "at_ms"]
ROW = Types.ROW_NAMED(NAMES, [Types.LONG(), Types.LONG(), Types.STRING(), Types.LONG()])
TIMES = api.WatermarkStrategy.for_bounded_out_of_orderness("1 s")
SCHEMA = to_schema("a INT, B INT, c STRING")

Program = Callable[[Any], object]


def fields(*programs: Program, how: str = "") -> tuple[str, ...] | None:
    """What the source of a program is told."""
    kept = KeptGraph()
    with use_executor(kept):
        env = api.StreamExecutionEnvironment.get_execution_environment()
        _describe(env, programs, how)
        env.execute_async()
    (found,) = (node.operator for node in kept.graphs[-1].nodes if isinstance(node.operator, KafkaSource))
    return found.fields


def _describe(env: Any, programs: tuple[Program, ...], how: str) -> None:
    rows = JsonRowDeserializationSchema.builder().type_info(ROW)
    if how:
        getattr(rows, how)()
    builder = KafkaSourceBuilder.builder().set_bootstrap_servers("b:1").set_topics("t")
    source = builder.set_value_only_deserializer(rows.build()).build()
    bids = env.from_source(source, api.WatermarkStrategy.no_watermarks(), "bids")
    for program in programs:
        made: Any = program(bids)
        made.print()


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        (lambda bids: bids.select("auction", "price + 1 AS p"), ("auction", "price")),
        (lambda bids: bids.filter("PRICE > 3").select("`auction`"), ("auction", "price")),
        (lambda bids: bids.filter("price > 3").map(lambda bid: bid.price, "p BIGINT"), ("price",)),
        (
            lambda bids: bids.filter("price > 3").flat_map(lambda bid: [bid.at_ms], "t BIGINT"),
            ("price", "at_ms"),
        ),
        (
            lambda bids: bids.filter("price > 3").filter(lambda bid: bid.at_ms).select("auction"),
            ("auction", "price", "at_ms"),
        ),
        (lambda bids: bids.key_by("auction").aggregate("count(*) AS n"), ("auction",)),
        (
            lambda bids: bids.filter("price > 3")
            .key_by(lambda bid: bid.auction % 3, key_type="BIGINT")
            .aggregate("max(at_ms) AS last"),
            ("auction", "price", "at_ms"),
        ),
        (
            lambda bids: bids.assign_timestamps_and_watermarks(
                TIMES.with_timestamp_assigner("timestamp_millis(at_ms)")
            )
            .key_by("auction")
            .window(api.TumblingEventTimeWindows.of("1 s"))
            .aggregate("sum(price) AS total"),
            ("auction", "price", "at_ms"),
        ),
        # the parser takes it for a unit of time
        (
            lambda bids: bids.select("date_trunc(Channel, timestamp_millis(at_ms)) AS t"),
            ("channel", "at_ms"),
        ),
        # all of them
        (lambda bids: bids, None),
        (lambda bids: bids.filter("price > 3"), None),
        (lambda bids: bids.select("*"), None),
        (lambda bids: bids.select("struct(*) AS all"), None),
        (lambda bids: bids.select("1 AS one"), None),
        (lambda bids: bids.map(lambda bid: bid.price, Types.LONG()), None),
        (lambda bids: bids.filter("price > 3").map(lambda bid: bid[0], "p BIGINT"), None),
        (lambda bids: bids.filter("price > 3").map(lambda bid: bid.unknown, "p BIGINT"), None),
        (lambda bids: bids.select("auction", "price", "channel", "at_ms"), None),
        (lambda bids: bids.union(bids).select("price"), None),
        (lambda bids: bids.drop_duplicates("auction"), None),
    ],
)
def test_fields_of_messages(program: Program, expected: tuple[str, ...] | None) -> None:
    assert fields(program) == expected


def test_all_readers_count() -> None:
    def prices(bids: Any) -> Any:
        return bids.select("price")

    assert fields(prices, lambda bids: bids.select("channel")) == ("price", "channel")
    assert fields(prices, lambda bids: bids) is None


@pytest.mark.parametrize("how", ["fail_on_missing_field", "ignore_parse_errors"])
def test_a_format_that_judges_messages_by_all_fields(how: str) -> None:
    assert fields(lambda bids: bids.select("price"), how=how) is None


def operator(kind: PythonKind, *names: str, known: bool = True) -> PythonOperator:
    return PythonOperator(kind, Closure(b"", "f", "job.py:1"), names if known else None)


@pytest.mark.parametrize(
    ("operators", "schema", "expected"),
    [
        ([operator(PythonKind.MAP, "c", "B")], SCHEMA, ("B", "c")),
        ([operator(PythonKind.FILTER, "a"), operator(PythonKind.MAP, "c")], SCHEMA, ("a", "c")),
        ([operator(PythonKind.MAP, "c"), operator(PythonKind.MAP, known=False)], SCHEMA, ("c",)),
        ([operator(PythonKind.MAP)], SCHEMA, ("a",)),
        ([operator(PythonKind.FILTER, "a")], SCHEMA, ("a", "B", "c")),
        ([operator(PythonKind.FILTER, known=False), operator(PythonKind.MAP, "c")], SCHEMA, ("a", "B", "c")),
        ([operator(PythonKind.MAP, "b")], SCHEMA, ("a", "B", "c")),
        ([operator(PythonKind.MAP, "real")], to_schema("int"), ("value",)),
    ],
)
def test_fields_of_a_record(
    operators: list[PythonOperator], schema: Schema, expected: tuple[str, ...]
) -> None:
    assert fields_of_record(operators, schema) == expected
