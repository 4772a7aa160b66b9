"""The sink of databases as programs describe it."""

from __future__ import annotations

from typing import Any

import pytest

from yarnflow.api import StreamExecutionEnvironment
from yarnflow.api.common.typeinfo import Types
from yarnflow.api.datastream.connectors.jdbc import JdbcConnectionOptions, JdbcExecutionOptions, JdbcSink
from yarnflow.api.executor import use_executor
from yarnflow.errors import ConfigError, GraphError, SchemaError
from yarnflow.graph.connectors import sinks
from yarnflow.testing.kept_graph import KeptGraph

PAIR = Types.ROW_NAMED(["word", "n"], [Types.STRING(), Types.INT()])
INSERT = "INSERT INTO t VALUES (?, ?)"


def connection(url: str = "jdbc:postgresql://db/shop") -> JdbcConnectionOptions:
    builder = JdbcConnectionOptions.JdbcConnectionOptionsBuilder().with_url(url)
    return builder.with_driver_name("org.x.Driver").with_user_name("ann").with_password("pw").build()


def operator_of(sink: JdbcSink, stream_type: Any = PAIR, elements: Any = (("a", 1),)) -> sinks.JdbcSink:
    kept = KeptGraph()
    with use_executor(kept):
        env = StreamExecutionEnvironment.get_execution_environment()
        env.from_collection(list(elements), stream_type).add_sink(sink)
        env.execute_async()
    found = kept.graphs[-1].nodes[-1].operator
    assert isinstance(found, sinks.JdbcSink)
    return found


def test_what_reaches_the_graph() -> None:
    builder = JdbcExecutionOptions.builder().with_batch_size(7).with_max_retries(0)
    execution = builder.with_batch_interval_ms(9).build()
    found = operator_of(JdbcSink.sink(INSERT, PAIR, connection(), execution))
    assert found == sinks.JdbcSink(INSERT, "jdbc:postgresql://db/shop", "ann", "pw", 7, 0)
    assert "pw" not in repr(found)


def test_defaults_are_those_of_flink() -> None:
    found = operator_of(JdbcSink.sink(INSERT, PAIR, connection()))
    assert (found.batch_rows, found.max_retries) == (5000, 3)
    defaults = JdbcExecutionOptions.defaults()
    assert defaults.get_batch_size() == 5000 and defaults.get_max_retries() == 3
    assert defaults.get_batch_interval_ms() == 0
    by_default = JdbcExecutionOptions.builder().with_batch_size(0).build()
    assert operator_of(JdbcSink.sink(INSERT, PAIR, connection(), by_default)).batch_rows == 5000


def test_options_are_read_back() -> None:
    found = connection()
    assert (found.get_db_url(), found.get_driver_name()) == ("jdbc:postgresql://db/shop", "org.x.Driver")
    assert (found.get_user_name(), found.get_password()) == ("ann", "pw")


@pytest.mark.parametrize("call", ["with_batch_size", "with_batch_interval_ms", "with_max_retries"])
@pytest.mark.parametrize("value", [-1, 1.5, "3", True])
def test_numbers_are_whole(call: str, value: Any) -> None:
    with pytest.raises(GraphError, match=rf"{call}\({value!r}\) must be a whole number"):
        getattr(JdbcExecutionOptions.builder(), call)(value)


def test_a_wrong_address_is_told_where_it_is_written() -> None:
    with pytest.raises(ConfigError, match="is no JDBC URL"):
        connection("postgresql://db/shop")


def test_a_value_for_each_field() -> None:
    with pytest.raises(GraphError, match="the statement has 1 '\\?' and the rows have 2 fields"):
        JdbcSink.sink("INSERT INTO t VALUES (?, 'why?')", PAIR, connection())
    with pytest.raises(GraphError, match="the statement has 2 '\\?' and the rows have 1 fields"):
        operator_of(JdbcSink.sink(INSERT, PAIR, connection()), Types.ROW([Types.INT()]), [(1,)])
    with pytest.raises(GraphError, match="is no row type"):
        JdbcSink.sink(INSERT, Types.INT(), connection())  # type: ignore[arg-type]


def test_elements_without_columns_are_refused() -> None:
    with pytest.raises(SchemaError, match="have no columns"):
        operator_of(JdbcSink.sink(INSERT, PAIR, connection()), None)


@pytest.mark.parametrize(
    "url, kind, taken",
    [
        ("jdbc:postgresql://db/shop", "a ARRAY<INT>, n INT", True),
        ("jdbc:mysql://db/shop", "a ARRAY<INT>, n INT", False),
        ("jdbc:postgresql://db/shop", "a MAP<STRING, INT>, n INT", False),
        ("jdbc:postgresql://db/shop", "a STRUCT<x: INT>, n INT", False),
    ],
)
def test_values_without_a_column(url: str, kind: str, taken: bool) -> None:
    sink = JdbcSink.sink(INSERT, PAIR, connection(url))
    if taken:
        operator_of(sink, kind, [([1], 1)])
    else:
        with pytest.raises(SchemaError, match="cannot hold field 'a' of type"):
            operator_of(sink, kind, [(None, 1)])
