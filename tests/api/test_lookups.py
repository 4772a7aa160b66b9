"""Lookup joins as programs describe them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import pytest

from yarnflow.api import DataStream, Row, StreamExecutionEnvironment, WatermarkStrategy
from yarnflow.api.common.typeinfo import Types
from yarnflow.api.datastream.connectors import JdbcLookup
from yarnflow.api.datastream.functions import AsyncLookupFunction, LookupFunction
from yarnflow.api.executor import use_executor
from yarnflow.errors import ConfigError, GraphError, SchemaError, UnknownField, YarnflowError
from yarnflow.graph.connectors import lookups
from yarnflow.graph.job_graph import JobGraph, StreamNode
from yarnflow.graph.operators import LookupJoin
from yarnflow.testing.kept_graph import KeptGraph

URL = "jdbc:postgresql://db/shop"


class Customer(NamedTuple):
    name: str
    city: str


class Annotated(LookupFunction):
    def lookup(self, key_row: Row) -> Iterable[Customer]:
        return []


class Plain(LookupFunction):
    def lookup(self, key_row: Row) -> Any:
        return []


class Asked(AsyncLookupFunction):
    async def async_lookup(self, key_row: Row) -> Iterable[Customer]:
        return []


def people(columns: str = "name STRING, city STRING") -> JdbcLookup:
    return JdbcLookup(URL, "customers", columns, "ann", "pw")


def orders(env: StreamExecutionEnvironment) -> DataStream:
    return env.from_collection([(1, 7, None)], "id INT, customer INT, at TIMESTAMP")


def graph_of(define: Callable[[StreamExecutionEnvironment], DataStream]) -> JobGraph:
    kept = KeptGraph()
    with use_executor(kept):
        env = StreamExecutionEnvironment.get_execution_environment()
        define(env).print()
        env.execute_async()
    return kept.graphs[-1]


def joined(*arguments: Any, **options: Any) -> StreamNode:
    found = graph_of(lambda env: orders(env).lookup_join(*arguments, **options)).nodes[-2]
    assert found.name == "Lookup Join"
    return found


def operator_of(node: StreamNode) -> LookupJoin:
    assert isinstance(node.operator, LookupJoin)
    return node.operator


def test_a_table_of_a_database() -> None:
    node = joined(people(), {"customer": "id"}, "left")
    assert [(f.name, f.type) for f in node.output_schema.fields] == [
        ("id", "int"), ("customer", "int"), ("at", "timestamp"), ("name", "string"), ("city", "string")
    ]  # fmt: skip
    found = operator_of(node)
    assert found.keys == (("customer", "id"),) and found.left
    assert isinstance(found.lookup, lookups.JdbcLookup)
    assert (found.lookup.url, found.lookup.user, found.lookup.password) == (URL, "ann", "pw")
    assert found.options == lookups.LookupOptions()
    assert "pw" not in repr(found)


@pytest.mark.parametrize(
    ("on", "keys"),
    [
        ("ID", (("id", "ID"),)),
        (["id", "customer"], (("id", "id"), ("customer", "customer"))),
        ({"customer": "id", "id": "order"}, (("customer", "id"), ("id", "order"))),
    ],
)
def test_keys(on: Any, keys: tuple[tuple[str, str], ...]) -> None:
    assert operator_of(joined(people(), on)).keys == keys
    assert not operator_of(joined(people(), on)).left


@pytest.mark.parametrize(
    ("function", "output_type", "asynchronous"),
    [(Annotated(), None, False), (Plain(), "name STRING, city STRING", False), (Asked(), None, True)],
)
def test_functions(function: Any, output_type: str | None, asynchronous: bool) -> None:
    found = operator_of(joined(function, "id", output_type=output_type)).lookup
    assert isinstance(found, lookups.FunctionLookup)
    assert found.columns.names == ("name", "city") and found.asynchronous is asynchronous
    assert found.closure.name == type(function).__name__
    assert found.closure.origin.startswith("test_lookups.py:")


def test_options_are_those_of_flink() -> None:
    texts = {
        "lookup.cache": "partial",
        "lookup.partial-cache.max-rows": "10",
        "lookup.partial-cache.expire-after-write": "10 min",
        "lookup.partial-cache.expire-after-access": "5 s",
        "lookup.partial-cache.cache-missing-key": "false",
        "lookup.max-retries": "0",
        "table.exec.async-lookup.buffer-capacity": "7",
        "table.exec.async-lookup.timeout": "1 s",
    }
    values: dict[str, object] = {
        **texts,
        "lookup.partial-cache.max-rows": 10,
        "lookup.partial-cache.cache-missing-key": False,
        "lookup.max-retries": 0,
    }
    for options in (texts, values):
        assert operator_of(joined(Asked(), "id", options=options)).options == lookups.LookupOptions(
            True, 10, 600_000, 5000, False, 0, 7, 1000
        )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"lookup.cach": "PARTIAL"}, "has no option 'lookup.cach'; it has lookup.cache, lookup.partial"),
        ({"lookup.cache": "ALL"}, "option 'lookup.cache' is 'ALL', and must be NONE or PARTIAL"),
        ({"lookup.cache": "FULL"}, "'FULL' is not possible; join a table that is read whole by env.sql"),
        ({"lookup.partial-cache.max-rows": 5}, "says nothing without a cache; add 'lookup.cache': 'PARTIAL'"),
        (
            {"lookup.cache": "PARTIAL", "lookup.partial-cache.max-rows": 0},
            "option 'lookup.partial-cache.max-rows' is 0, and must be a whole number, 1 or more",
        ),
        ({"table.exec.async-lookup.timeout": "1 s"}, "is for an AsyncLookupFunction, which this is not"),
    ],
)
def test_options_that_are_none(options: dict[str, object], message: str) -> None:
    with pytest.raises(GraphError, match=message) as caught:
        joined(people(), "id", options=options)
    assert str(caught.value).startswith("test_lookups.py:") and "lookup_join(): " in str(caught.value)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((people(), "custmer"), UnknownField, "no field 'custmer' in the stream; did you mean 'customer'"),
        ((people("city STRING, ID INT"), "id"), SchemaError, "customers gives 'ID', and the stream has it"),
        ((Annotated, "id"), GraphError, "is needed, not .*; make an object of it: Annotated()"),
        ((Plain(), "id"), SchemaError, "annotate Iterable.T. as its return type or add output_type"),
        ((Plain(), "id", "inner", "STRING"), SchemaError, "columns need names and types"),
        ((people(), "id", "inner", "a INT"), GraphError, "output_type is for functions"),
        ((people(), "id", "right"), GraphError, "how='right' is neither 'inner' nor 'left'"),
        ((people(), []), GraphError, "must be a field, a list of fields or a mapping"),
        ((people(), ["id", "ID"]), GraphError, "names the field of the stream 'ID' twice"),
        ((people(), {"id": "a", "customer": "A"}), GraphError, "names the column of the table 'A' twice"),
    ],
)  # fmt: skip
def test_calls_that_are_wrong(arguments: Any, error: type[YarnflowError], message: str) -> None:
    with pytest.raises(error, match=message) as caught:
        joined(*arguments)
    assert str(caught.value).startswith("test_lookups.py:") and "lookup_join(): " in str(caught.value)


def test_columns_and_tables_that_are_none() -> None:
    with pytest.raises(SchemaError, match="columns need names and types"):
        people("STRING")
    with pytest.raises(SchemaError, match="'a' of type array<int> cannot be looked up; declare it STRING"):
        people("a ARRAY<INT>")
    with pytest.raises(SchemaError, match="table '' is no name"):
        JdbcLookup(URL, "", "a INT")
    with pytest.raises(ConfigError, match="jdbc:oracle: databases"):
        JdbcLookup("jdbc:oracle://db/shop", "t", "a INT")


def test_keys_that_cannot_be_compared() -> None:
    with pytest.raises(SchemaError, match="'parts' is of type array<int>, by which nothing can be looked up"):
        graph_of(lambda env: env.from_collection([([1],)], "parts ARRAY<INT>").lookup_join(people(), "parts"))


def test_objects_without_columns_are_refused() -> None:
    with pytest.raises(SchemaError, match="have no columns"):
        graph_of(lambda env: env.from_collection([{"id": 1}, {"id": "a"}]).lookup_join(people(), "id"))


def test_lone_values_are_a_key_called_value() -> None:
    node = graph_of(lambda env: env.from_collection([1, 2]).lookup_join(people(), {"value": "id"})).nodes[-2]
    assert node.output_schema.names == ("value", "name", "city") and not node.output_schema.scalar


def test_elements_of_rows_have_keys() -> None:
    row = Types.ROW_NAMED(["id"], [Types.INT()])
    node = graph_of(lambda env: env.from_collection([Row(id=1)], row).lookup_join(people(), "id")).nodes[-2]
    assert node.output_schema.names == ("id", "name", "city")
    assert node.output_schema.element_type is None


@pytest.mark.parametrize(
    ("assigner", "columns", "event_time"),
    [
        ("at", "name STRING", "at"),
        ("at + INTERVAL 1 SECOND", "name STRING", "event_time"),
        ("at + INTERVAL 1 SECOND", "event_time STRING", "event_time_"),
    ],
)
def test_event_time_stays(assigner: str, columns: str, event_time: str) -> None:
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(assigner)
    graph = graph_of(
        lambda env: orders(env).assign_timestamps_and_watermarks(strategy).lookup_join(people(columns), "id")
    )
    assert graph.nodes[-2].output_schema.event_time == event_time


def test_windows_behind_it() -> None:
    """One may follow; a second one behind it may not, as behind any function."""
    from yarnflow.api import TumblingEventTimeWindows
    from yarnflow.errors import UnsupportedGraph

    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner("at")

    def window(stream: DataStream) -> DataStream:
        return stream.key_by("id").window(TumblingEventTimeWindows.of("1 hour")).count()

    def timed(env: StreamExecutionEnvironment) -> DataStream:
        return orders(env).assign_timestamps_and_watermarks(strategy)

    assert graph_of(lambda env: window(timed(env).lookup_join(people(), "id")))
    with pytest.raises(UnsupportedGraph, match=r"lookup_join\(\) hides the event time"):
        graph_of(lambda env: window(window(timed(env)).lookup_join(people(), "id")))
