"""Connections to real databases: what ends a wait, and what is told of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from integration.database_servers import PASSWORD, SERVERS, USER, DatabaseServer
from integration.servers import running
from yarnflow.errors import DatabaseError, DatabaseUnavailable
from yarnflow.operators.databases.jdbc_url import database_address
from yarnflow.spark.connectors.jdbc.connections import Database

pytestmark = pytest.mark.gate

#: a second each
TIMEOUTS = {"jdbc:postgresql": "socketTimeout=1", "jdbc:mariadb": "socketTimeout=1000"}


@pytest.fixture(scope="module", params=list(SERVERS))
def server(request: pytest.FixtureRequest) -> Iterator[DatabaseServer]:
    with running(SERVERS[request.param]) as found:
        found.run("CREATE TABLE readings (word VARCHAR(20) PRIMARY KEY, n INT)")
        found.run("INSERT INTO readings VALUES ('Reykjavik', 1)")
        yield found


def test_a_statement_that_waits_for_a_lock_is_given_up(server: DatabaseServer) -> None:
    timeout = next(text for name, text in TIMEOUTS.items() if server.url.startswith(name))
    database = Database(database_address(f"{server.url}?{timeout}", USER, PASSWORD))
    update = "UPDATE readings SET n = 2"
    with closing(server.connect()) as holder:
        holder.cursor().execute(update)
        with (
            pytest.raises(DatabaseUnavailable, match="timeout|timed out|Lost connection"),
            database.connection() as connection,
        ):
            connection.cursor().execute(update)


def test_a_key_that_is_there_is_told_without_the_row(server: DatabaseServer) -> None:
    database = Database(database_address(server.url, USER, PASSWORD))
    with pytest.raises(DatabaseError, match="(?i)duplicate") as refused, database.connection() as connection:
        connection.cursor().execute("INSERT INTO readings VALUES ('Reykjavik', 1)")
    assert type(refused.value) is DatabaseError
    if server.url.startswith("jdbc:postgresql"):
        # MariaDB has the key in its only sentence
        assert "Reykjavik" not in refused.value.message


def test_a_wrong_password_is_told_without_it(server: DatabaseServer) -> None:
    database = Database(database_address(server.url, USER, "hunter2"))
    with pytest.raises(DatabaseError, match="(?i)authentication failed|access denied") as refused:
        with database.connection():
            raise AssertionError("never here")
    assert type(refused.value) is DatabaseError
    assert "hunter2" not in refused.value.message and "\n" not in refused.value.message
