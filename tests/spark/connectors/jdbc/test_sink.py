"""Databases and the task that writes a batch; the database is SQLite's."""

from __future__ import annotations

import builtins
import sqlite3
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame

from yarnflow.errors import DatabaseError, DatabaseUnavailable, EnvironmentUnusable, SinkTaken
from yarnflow.graph.connectors.sinks import JdbcSink
from yarnflow.operators.databases.batch_table import BatchTable
from yarnflow.operators.databases.jdbc_url import database_address
from yarnflow.operators.databases.tokens import RunToken
from yarnflow.spark.connectors.jdbc.connections import Database
from yarnflow.spark.connectors.jdbc.kept_batches import KeptBatches
from yarnflow.spark.connectors.jdbc.sink import JdbcWriter, WriteTask

RUN = RunToken("a" * 32, 1, 1)
INSERT = "INSERT INTO readings VALUES (?, ?)"


def batches(*sizes: int) -> Iterator[pa.RecordBatch]:
    start = 0
    for size in sizes:
        numbers = range(start, start + size)
        start += size
        yield pa.RecordBatch.from_pydict(
            {"n": pa.array(numbers, pa.int64()), "word": [f"w{n}" for n in numbers]}
        )


@pytest.fixture
def database(tmp_path: Path) -> Database:
    found = Database(database_address(f"jdbc:sqlite:{tmp_path}/db"))
    with found.connection() as connection:
        connection.execute("CREATE TABLE readings (n INTEGER PRIMARY KEY, word TEXT)")
        BatchTable(connection).claim(RUN.batch("s"))
    return found


def rows_of(database: Database) -> list[tuple[int, str]]:
    with database.connection() as connection:
        found = connection.execute("SELECT n, word FROM readings ORDER BY n")
        return list(found.fetchall())


def run(task: WriteTask, *sizes: int) -> tuple[int, int]:
    (found,) = task(batches(*sizes))
    return found.column("rows")[0].as_py(), found.column("written")[0].as_py()


def task(database: Any, batch_id: int = 0, token: RunToken = RUN, **options: Any) -> WriteTask:
    settings: dict[str, Any] = {"batch_rows": 3, "max_retries": 0, **options}
    return WriteTask(
        database, INSERT, settings["batch_rows"], settings["max_retries"], token.batch("s", batch_id),
        settings.get("wait", lambda seconds: None),
    )  # fmt: skip


def test_all_rows_of_a_batch_are_there_once(database: Database) -> None:
    assert run(task(database), 4, 0, 3) == (7, -1)
    assert rows_of(database) == [(n, f"w{n}") for n in range(7)]
    assert run(task(database), 4, 0, 3) == (7, 7), "done again"
    assert run(task(database), 8) == (8, 7), "done again with other rows"
    assert len(rows_of(database)) == 7


def test_a_batch_without_rows_asks_nobody() -> None:
    nowhere = Database(database_address("jdbc:sqlite:/no/such/directory/db"))
    assert run(task(nowhere), 0, 0) == (0, -1)


def test_errors_name_the_sink_and_its_line(database: Database, tmp_path: Path) -> None:
    placed = Database(database_address(f"jdbc:sqlite:{tmp_path}/db"), "'readings' (job.py:7)")
    begin = r"^'readings' \(job\.py:7\): "
    assert run(task(placed), 2) == (2, -1)
    with pytest.raises(DatabaseError, match=begin + "jdbc:sqlite:.*UNIQUE") as caught:
        run(task(placed, 1), 1)
    assert type(caught.value) is DatabaseError
    with database.connection() as connection:
        BatchTable(connection).claim(RunToken(RUN.job_id, 1, 2).batch("s"))
    with pytest.raises(SinkTaken, match=begin):
        run(task(placed, 1), 1)
    nowhere = JdbcSink(INSERT, "jdbc:sqlite:/no/such/directory/db")
    with pytest.raises(DatabaseError, match=begin + "jdbc:sqlite:/no"):
        JdbcWriter(nowhere, "s", RUN, "'readings' (job.py:7)").open()


class NoRows:
    """A frame of which Spark knows that it has none: no task runs."""

    def repartition(self, parts: int) -> NoRows:
        return self

    def mapInArrow(self, task: WriteTask, ddl: str) -> NoRows:
        return self

    def collect(self) -> list[object]:
        return []


def test_a_batch_for_which_spark_runs_no_task(tmp_path: Path) -> None:
    writer = JdbcWriter(JdbcSink(INSERT, f"jdbc:sqlite:{tmp_path}/db"), "s", RUN)
    assert writer.write(cast(DataFrame, NoRows()), 0) == 0


def test_a_task_of_a_driver_that_was_replaced_writes_nothing(database: Database) -> None:
    with database.connection() as connection:
        BatchTable(connection).claim(RunToken(RUN.job_id, 1, 2).batch("s"))
    with pytest.raises(SinkTaken):
        run(task(database), 3)
    assert rows_of(database) == []


class Breaking:
    """A database that breaks off: where ``fails`` is true of (connection number, event), in that event."""

    mark = "?"

    def __init__(self, database: Database, fails: Callable[[int, str], bool]) -> None:
        self._database = database
        self._fails = fails
        self.connections = 0

    @contextmanager
    def connection(self) -> Iterator[Any]:
        self.connections += 1
        number = self.connections
        self._event(number, "connect")
        with self._database.connection() as real:

            def events(what: str) -> None:
                self._event(number, what)

            class Cursor(sqlite3.Cursor):
                def executemany(self, *arguments: Any) -> sqlite3.Cursor:  # type: ignore[override]
                    super().executemany(*arguments)
                    events("rows")
                    return self

            def commit() -> None:
                events("before commit")
                real.commit()
                events("after commit")

            yield SimpleNamespace(
                cursor=lambda: real.cursor(Cursor), commit=commit, rollback=real.rollback, autocommit=False
            )

    def _event(self, number: int, what: str) -> None:
        if self._fails(number, what):
            raise DatabaseUnavailable(f"broken off: {what}")


@pytest.mark.parametrize("event", ["connect", "rows", "before commit"])
def test_what_was_broken_off_is_tried_again_from_the_first_row(database: Database, event: str) -> None:
    waits: list[float] = []
    breaking = Breaking(database, lambda number, what: number < 3 and what == event)
    assert run(task(breaking, max_retries=2, wait=waits.append), 4, 5) == (9, -1)
    assert len(rows_of(database)) == 9
    assert waits == [1.0, 2.0]


def test_a_commit_that_came_through_is_found(database: Database) -> None:
    """The answer to the commit was lost: nobody but the table knows."""
    breaking = Breaking(database, lambda number, what: number == 1 and what == "after commit")
    assert run(task(breaking, max_retries=1), 4) == (4, 4)
    assert len(rows_of(database)) == 4


def test_a_database_that_stays_away_is_told(database: Database) -> None:
    breaking = Breaking(database, lambda number, what: what == "connect")
    with pytest.raises(DatabaseUnavailable, match="broken off"):
        run(task(breaking, max_retries=3), 4)
    assert breaking.connections == 4
    assert rows_of(database) == []


def test_a_statement_that_is_refused_is_not_tried_again(database: Database) -> None:
    waits: list[float] = []
    assert run(task(database), 3) == (3, -1)
    with pytest.raises(DatabaseError, match="jdbc:sqlite:.*UNIQUE constraint failed: readings.n") as caught:
        run(task(database, 1, max_retries=3, wait=waits.append), 3)
    assert type(caught.value) is DatabaseError and not waits
    assert len(rows_of(database)) == 3


def test_a_locked_database_may_be_free_later(tmp_path: Path) -> None:
    class Impatient(Database):
        def _connect(self, module: Any) -> Any:
            return module.connect(tmp_path / "db", timeout=0)

    database = Impatient(database_address(f"jdbc:sqlite:{tmp_path}/db"))
    with closing(sqlite3.connect(tmp_path / "db", isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(DatabaseUnavailable, match="locked"), database.connection() as connection:
            connection.execute("CREATE TABLE t (a INTEGER)")


def test_a_missing_driver_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("psycopg", "pymysql"):
        monkeypatch.setitem(sys.modules, name, None)
    for url, extra in (("jdbc:postgresql://h/d", "postgresql"), ("jdbc:mysql://h/d", "mysql")):
        with (
            pytest.raises(EnvironmentUnusable, match=rf"pip install 'yarnflow\[{extra}\]'"),
            Database(database_address(url)).connection(),
        ):
            raise AssertionError("never here")


class FakeDriver:
    """As PyMySQL and psycopg name their errors."""

    class Error(Exception):
        pass

    class OperationalError(Error):
        pass

    class InterfaceError(Error):
        pass

    class IntegrityError(Error):
        pass

    class Cursor:
        """Of psycopg."""

        def __init__(self, connection: Any) -> None:
            self.connection = connection

        def execute(self, statement: str, prepare: bool | None = None) -> None:
            self.connection.statements.append(statement)
            self.connection.info.transaction_status = "in a transaction"

        def executemany(self, statement: str, values: Any) -> None:
            self.connection.statements.append(statement)

    sql = SimpleNamespace(quote=lambda text: f"'{text}'")
    pq = SimpleNamespace(TransactionStatus=SimpleNamespace(IDLE="idle"))

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error
        self.arguments: dict[str, Any] = {}

    def connect(self, **arguments: Any) -> Any:
        self.arguments = arguments
        if self.error is not None:
            raise self.error
        return SimpleNamespace(
            info=SimpleNamespace(transaction_status="idle"), statements=[], close=lambda: None
        )


@pytest.mark.parametrize(
    "url, error, passes",
    [
        ("mysql", FakeDriver.OperationalError(2003, "Can't connect to MySQL server on 'h'"), True),
        ("mysql", FakeDriver.OperationalError(1213, "Deadlock found"), True),
        ("mysql", FakeDriver.OperationalError(1045, "Access denied for user 'x'"), False),
        ("mysql", FakeDriver.OperationalError(1049, "Unknown database 'd'"), False),
        ("mysql", FakeDriver.OperationalError(1054, "Unknown column 'x'"), False),
        ("mysql", FakeDriver.InterfaceError(0, ""), True),
        ("mysql", FakeDriver.IntegrityError(1062, "Duplicate entry"), False),
        ("postgresql", FakeDriver.OperationalError("failed: Connection refused\n\tIs it up?"), True),
        ("postgresql", FakeDriver.OperationalError('FATAL:  password authentication failed for "x"'), False),
        ("postgresql", FakeDriver.OperationalError('FATAL:  database "d" does not exist'), False),
        ("postgresql", FakeDriver.OperationalError("FATAL:  the database system is starting up"), True),
    ],
)
def test_which_errors_may_pass(
    monkeypatch: pytest.MonkeyPatch, url: str, error: Exception, passes: bool
) -> None:
    module = FakeDriver(error)
    monkeypatch.setitem(sys.modules, "pymysql" if url == "mysql" else "psycopg", module)
    with (
        pytest.raises(DatabaseError) as caught,
        Database(database_address(f"jdbc:{url}://h/d?password=secret")).connection(),
    ):
        raise AssertionError("never here")
    assert isinstance(caught.value, DatabaseUnavailable) == passes
    said = str(caught.value)
    assert said.startswith(f"jdbc:{url}://h/d: ") and "secret" not in said and "\n" not in said


@pytest.mark.parametrize("hint", [None, "Drop\nit."])
def test_values_of_a_row_are_not_told(monkeypatch: pytest.MonkeyPatch, hint: str | None) -> None:
    error = FakeDriver.IntegrityError(
        'duplicate key value violates "pk"\nDETAIL:  Failing row contains (ann, hunter2).'
    )
    fields = {"message_primary": 'duplicate key value violates "pk"', "message_hint": hint}
    cast(Any, error).diag = SimpleNamespace(**fields, message_detail="Failing row contains (ann, hunter2).")
    monkeypatch.setitem(sys.modules, "psycopg", FakeDriver(error))
    with (
        pytest.raises(DatabaseError) as caught,
        Database(database_address("jdbc:postgresql://h/d")).connection(),
    ):
        raise AssertionError("never here")
    told = 'jdbc:postgresql://h/d: duplicate key value violates "pk"'
    assert str(caught.value) == (f"{told}; Drop it." if hint else told)
    assert caught.value.__cause__ is None and caught.value.__suppress_context__


def test_how_connections_are_set_up(monkeypatch: pytest.MonkeyPatch) -> None:
    module = FakeDriver()
    monkeypatch.setitem(sys.modules, "psycopg", module)
    with Database(database_address("jdbc:postgresql://h/d?currentSchema=x")).connection() as connection:
        assert "options" not in module.arguments, "poolers refuse them"
        setup = (
            "SELECT set_config('TimeZone', 'UTC', true), "
            "set_config('idle_in_transaction_session_timeout', '300000', true), "
            "set_config('search_path', 'x', true)"
        )
        for _ in range(2):
            cursor = module.arguments["cursor_factory"](connection)
            cursor.executemany("INSERT", [])
            cursor.execute("UPDATE")
            assert connection.statements == [setup, "INSERT", "UPDATE"], "once in each transaction"
            connection.statements.clear()
            connection.info.transaction_status = "idle"
    monkeypatch.setitem(sys.modules, "pymysql", module)
    with Database(database_address("jdbc:mysql://h/d")).connection():
        assert module.arguments["autocommit"] is False
        assert "time_zone = '+00:00'" in module.arguments["init_command"]


def numbers(kept: builtins.object) -> list[int]:
    return [n for batch in kept for n in batch.column(0).to_pylist()]  # type: ignore[attr-defined]


@pytest.mark.parametrize("stop_after", [0, 1, 2, 3])
def test_kept_batches_are_read_again_from_the_first(stop_after: int) -> None:
    kept = KeptBatches(batches(2, 3, 4))
    for number, _ in enumerate(kept, 1):
        if number >= stop_after:
            break
    assert numbers(kept) == list(range(9))
    assert numbers(kept) == list(range(9)), "and once more"
    kept.close()


def test_no_batches_are_kept_as_well() -> None:
    kept = KeptBatches(iter(()))
    assert numbers(kept) == numbers(kept) == []
    kept.close()
