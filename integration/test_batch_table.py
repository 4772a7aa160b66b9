"""Two drivers at one row of a real database, where each waits for the other's lock."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import pytest

from integration.conftest import wait_until
from integration.database_servers import SERVERS, DatabaseServer
from integration.servers import running
from tests.patience import PATIENCE
from yarnflow.errors import DatabaseError, SinkTaken
from yarnflow.operators.databases.batch_table import BatchTable
from yarnflow.operators.databases.commits import commit_once
from yarnflow.operators.databases.tokens import TABLE, RunToken, StoredBatch

FIRST, SECOND = RunToken("a" * 32, 1, 1), RunToken("a" * 32, 1, 2)
WAITING = {
    "jdbc:postgresql": "SELECT COUNT(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'",
    "jdbc:mariadb": "SELECT COUNT(*) FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT'",
}


@pytest.fixture(scope="module", params=list(SERVERS))
def server(request: pytest.FixtureRequest) -> Iterator[DatabaseServer]:
    with running(SERVERS[request.param]) as found:
        yield found


@pytest.fixture(autouse=True)
def clean(server: DatabaseServer) -> None:
    server.run(*(f"DROP TABLE IF EXISTS {name}" for name in (TABLE, "numbers")))
    server.run("CREATE TABLE numbers (n INT)")


@pytest.fixture
def connection(server: DatabaseServer) -> Iterator[Any]:
    with closing(server.connect()) as made:
        yield made


@pytest.fixture
def other(server: DatabaseServer) -> Iterator[Any]:
    with closing(server.connect()) as made:
        yield made


def somebody_waits(server: DatabaseServer) -> None:
    query = next(text for name, text in WAITING.items() if server.url.startswith(name))
    wait_until(lambda: server.query(query)[0][0], "a transaction to wait for a lock")


@pytest.mark.gate
@pytest.mark.parametrize("commits", [True, False])
def test_who_takes_over_waits_for_the_commit_that_is_on_its_way(
    server: DatabaseServer, connection: Any, other: Any, commits: bool
) -> None:
    table = BatchTable(connection)
    table.claim(FIRST.batch("s"))
    connection.cursor().execute("INSERT INTO numbers VALUES (1)")
    assert table.advance(FIRST.batch("s", 0), 1)
    with ThreadPoolExecutor() as pool:
        found = pool.submit(BatchTable(other).claim, SECOND.batch("s"))
        somebody_waits(server)
        connection.commit() if commits else connection.rollback()
        expected = StoredBatch(SECOND, 0, 1) if commits else StoredBatch(SECOND)
        assert found.result(PATIENCE.condition_s) == expected
    with commit_once(other, SECOND.batch("s", 0)) as is_new:
        assert is_new != commits
        if is_new:
            other.cursor().execute("INSERT INTO numbers VALUES (1)")
    assert server.query("SELECT n FROM numbers") == [(1,)]


@pytest.mark.gate
def test_who_was_replaced_meanwhile_is_rolled_back(
    server: DatabaseServer, connection: Any, other: Any
) -> None:
    with pytest.raises(SinkTaken), commit_once(connection, FIRST.batch("s", 0)) as is_new:
        assert is_new
        connection.cursor().execute("INSERT INTO numbers VALUES (1)")
        BatchTable(other).claim(SECOND.batch("s"))
    assert server.query("SELECT n FROM numbers") == []


def test_of_two_copies_of_a_task_one_waits_and_writes_nothing(
    server: DatabaseServer, connection: Any, other: Any
) -> None:
    table, copy = BatchTable(connection), BatchTable(other)
    token = FIRST.batch("s", 0)
    table.claim(FIRST.batch("s"))
    for one, made in ((table, connection), (copy, other)):
        assert one.check(token).batch_id == -1
        made.cursor().execute("INSERT INTO numbers VALUES (1)")
    assert table.advance(token, 1)
    with ThreadPoolExecutor() as pool:
        found = pool.submit(copy.advance, token, 1)
        somebody_waits(server)
        connection.commit()
        assert found.result(PATIENCE.condition_s) is False
    other.commit()
    assert server.query("SELECT n FROM numbers") == [(1,)]


def test_many_make_the_table_and_the_row_at_once(server: DatabaseServer) -> None:
    def claim(number: int) -> int:
        with closing(server.connect()) as made:
            try:
                return BatchTable(made).claim(RunToken("a" * 32, 1, number).batch("s")).batch_id
            except SinkTaken:
                return -1

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(claim, range(1, 9))) == {-1}
    assert server.query(f"SELECT sink, attempt FROM {TABLE}") == [("s", 8)]


def test_a_connection_in_autocommit_is_refused(server: DatabaseServer, connection: Any) -> None:
    if server.url.startswith("jdbc:postgresql"):
        connection.autocommit = True
    else:
        connection.autocommit(True)
    with pytest.raises(DatabaseError, match="switch autocommit off"):
        BatchTable(connection)
