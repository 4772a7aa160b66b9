"""A table of a database that is asked; the database is SQLite's."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from yarnflow.errors import DatabaseError, DatabaseUnavailable
from yarnflow.graph.connectors.lookups import JdbcLookup
from yarnflow.graph.types import parse_schema
from yarnflow.operators.lookups.cache import Key
from yarnflow.spark.connectors.jdbc.connections import Database
from yarnflow.spark.connectors.jdbc.lookup import JdbcTable

COLUMNS = "name STRING, size DOUBLE"


class Asked:
    """A table, and what the database was told."""

    def __init__(
        self, directory: Path, table: str = "towns", key: Sequence[str] = ("id",), columns: str = COLUMNS
    ) -> None:
        lookup = JdbcLookup(parse_schema(columns), table, f"jdbc:sqlite:{directory}/db")
        self.waited: list[float] = []
        self.notes: list[str] = []
        self.table = JdbcTable(lookup, key, 2, self.waited.append, self.notes.append, lookup.what)
        self.statements: list[str] = []

    def ask(self, *keys: Key) -> list[Any]:
        found = list(self.table.ask(keys))
        self.table._connection.set_trace_callback(self._traced)
        return found

    def _traced(self, statement: str) -> None:
        if statement.startswith("SELECT"):
            self.statements.append(statement)


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[Path]:
    run(
        tmp_path,
        "CREATE TABLE towns (id INT, name TEXT, size INT, `land` TEXT COLLATE NOCASE)",
        "INSERT INTO towns VALUES (1, 'Rome', 3, 'it'), (2, 'Oslo', NULL, 'no'), (2, 'Oslo again', 1, 'NO')",
    )
    yield tmp_path


def run(directory: Path, *statements: str) -> None:
    with closing(sqlite3.connect(directory / "db")) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()


def test_all_keys_are_asked_for_by_one_statement(directory: Path) -> None:
    asked = Asked(directory)
    asked.ask((1,))
    assert asked.ask((2,), (1,), (9,)) == [(("Oslo", None), ("Oslo again", 1)), (("Rome", 3),), ()]
    assert len(asked.statements) == 1 and "IN (2, 1, 9)" in asked.statements[0]
    asked.table.close()
    asked.table.close()


def test_several_columns_and_a_query(directory: Path) -> None:
    query = "(SELECT id, land, upper(name) AS name, size FROM towns WHERE name LIKE '%o%') AS t"
    asked = Asked(directory, query, ("id", "land"))
    oslo = (("OSLO", None), ("OSLO AGAIN", 1))
    assert asked.ask((1, "it"), (2, "NO"), (2, "it")) == [(("ROME", 3),), oslo, ()]


def test_the_database_says_what_is_equal(directory: Path) -> None:
    """Each key has all rows that the database finds for it, also where it sees no difference between keys."""
    asked = Asked(directory, key=("land",), columns="name STRING")
    both = (("Oslo",), ("Oslo again",))
    assert asked.ask(("no",), ("NO",), ("it",), ("No ",)) == [both, both, (("Rome",),), ()]


def test_keys_of_another_type(directory: Path) -> None:
    """SQLite compares a number with a text by making it one."""
    asked = Asked(directory, columns="name STRING")
    assert asked.ask(("1",), ("7",), ("2",)) == [(("Rome",),), (), (("Oslo",), ("Oslo again",))]


def test_what_others_commit_is_seen(directory: Path) -> None:
    asked = Asked(directory)
    asked.ask((1,))
    run(directory, "UPDATE towns SET name = 'Roma' WHERE id = 1")
    assert asked.ask((1,)) == [(("Roma", 3),)]


@pytest.mark.parametrize(
    ("table", "key", "columns", "message"),
    [
        ("towns", "id", "nam STRING", "table towns cannot be asked for nam by id: jdbc:.*such column: nam"),
        ("towns", "idd", "name STRING", "towns cannot be asked for name by idd: .*no such column: idd"),
        ("twons", "id", "name STRING", "twons cannot be asked for name by id: .*no such table: twons"),
    ],
)
def test_columns_and_tables_that_are_not_there(
    directory: Path, table: str, key: str, columns: str, message: str
) -> None:
    asked = Asked(directory, table, (key,), columns)
    with pytest.raises(DatabaseError, match=message) as caught:
        asked.ask((1,))
    assert type(caught.value) is DatabaseError and "\n" not in str(caught.value) and not asked.waited


def test_a_connection_that_is_lost_is_made_anew(directory: Path) -> None:
    asked = Asked(directory)
    asked.ask((1,))
    asked.table._connection.close()
    with pytest.raises(DatabaseError):
        asked.ask((1,))
    assert asked.ask((1,)) == [(("Rome", 3),)]


def test_a_database_that_is_away(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection that was kept says nothing; those made anew count."""
    asked = Asked(directory)
    asked.ask((1,))
    connect = Database._connect
    failures = ["locked", "locked"]

    class Broken:
        def __getattr__(self, name: str) -> Any:
            raise sqlite3.OperationalError("database is locked, and the connection lost")

    def failing(self: Database, module: Any) -> Any:
        if failures:
            raise sqlite3.OperationalError(failures.pop())
        return connect(self, module)

    monkeypatch.setattr(Database, "_connect", failing)
    monkeypatch.setattr(asked.table, "_connection", Broken())
    assert asked.ask((1,)) == [(("Rome", 3),)]
    assert asked.waited == [1, 2]
    assert asked.notes[0].startswith("The connection to table towns is lost and made anew: jdbc:sqlite:")
    failures += ["locked"] * 3
    asked.table.close()
    with pytest.raises(DatabaseUnavailable, match="^table towns does not answer: jdbc:sqlite:.*/db: locked$"):
        asked.ask((1,))
