"""PostgreSQL behind PgBouncer, which gives each transaction another connection."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pyarrow as pa
import pytest

from integration.database_servers import PASSWORD, USER, PgBouncer
from integration.servers import running
from yarnflow.errors import SinkTaken
from yarnflow.operators.databases.batch_table import BatchTable
from yarnflow.operators.databases.jdbc_url import database_address
from yarnflow.operators.databases.tokens import RunToken
from yarnflow.spark.connectors.jdbc.connections import Database
from yarnflow.spark.connectors.jdbc.sink import WriteTask

FIRST, SECOND = RunToken("a" * 32, 1, 1), RunToken("a" * 32, 1, 2)
SETTINGS = ("TimeZone", "idle_in_transaction_session_timeout", "search_path")


@pytest.fixture(scope="module")
def server() -> Iterator[PgBouncer]:
    with running(PgBouncer) as found:
        found.run("CREATE SCHEMA weather", "CREATE TABLE weather.readings (n INT PRIMARY KEY, word TEXT)")
        yield found


def database_of(server: PgBouncer) -> Database:
    return Database(database_address(f"{server.url}&currentSchema=weather", USER, PASSWORD))


def settings_of(connection: Any) -> list[str]:
    cursor = connection.cursor()
    return [cursor.execute(f"SHOW {name}").fetchone()[0] for name in SETTINGS]


def test_settings_are_those_of_each_transaction_and_of_no_other_client(server: PgBouncer) -> None:
    with closing(server.connect()) as other, database_of(server).connection() as connection:
        usual = settings_of(other)
        other.rollback()
        assert usual != ["UTC", "5min", "weather"]
        for _ in range(3):
            assert settings_of(connection) == ["UTC", "5min", "weather"]
            connection.commit()
            # the pooler gives it the same connection
            assert settings_of(other) == usual
            other.rollback()


@pytest.mark.gate
def test_batches_are_there_once_and_a_driver_that_was_replaced_is_refused(server: PgBouncer) -> None:
    database = database_of(server)

    def write(run: RunToken, batch_id: int) -> tuple[int, int]:
        rows = pa.RecordBatch.from_pydict({"n": [2 * batch_id, 2 * batch_id + 1], "word": ["a", None]})
        task = WriteTask(database, "INSERT INTO readings VALUES (%s, %s)", 1, 0, run.batch("s", batch_id))
        (found,) = task([rows])
        return found.column("rows")[0].as_py(), found.column("written")[0].as_py()

    def claim(run: RunToken) -> None:
        with database.connection() as connection:
            BatchTable(connection).claim(run.batch("s"))

    claim(FIRST)
    # more often than psycopg needs to prepare a statement
    assert [write(FIRST, number) for number in range(10)] == [(2, -1)] * 10
    assert write(FIRST, 9) == (2, 2), "done again"
    claim(SECOND)
    with pytest.raises(SinkTaken):
        write(FIRST, 10)
    assert write(SECOND, 10) == (2, -1)
    assert server.query("SELECT n FROM weather.readings ORDER BY n") == [(n,) for n in range(22)]
