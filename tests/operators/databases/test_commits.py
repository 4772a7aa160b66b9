"""Who may write which batch, on real databases of SQLite."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from yarnflow.core.job.failures import error_info, is_outage
from yarnflow.errors import DatabaseError, SinkTaken, UnsupportedCall
from yarnflow.operators.databases.batch_table import BatchTable
from yarnflow.operators.databases.commits import batch_token, commit_once, current_batch
from yarnflow.operators.databases.tokens import TABLE, BatchToken, RunToken, StoredBatch

JOB = "a" * 32
FIRST, SECOND = RunToken(JOB, 1, 1), RunToken(JOB, 1, 2)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE readings (batch INTEGER, writer TEXT)")
    return path


@pytest.fixture
def connection(file: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(file, timeout=0)) as made:
        yield made


@pytest.fixture
def other(file: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(file, timeout=0)) as made:
        yield made


def written(file: Path) -> list[tuple[int, str]]:
    with closing(sqlite3.connect(file)) as connection:
        return connection.execute("SELECT batch, writer FROM readings ORDER BY batch").fetchall()


def write(connection: Any, token: BatchToken, writer: str = "x") -> bool:
    with commit_once(connection, token) as is_new:
        if is_new:
            connection.execute(f"INSERT INTO readings VALUES ({token.batch_id}, '{writer}')")
    return is_new


def test_a_batch_that_comes_again_is_written_once(connection: sqlite3.Connection, file: Path) -> None:
    assert write(connection, FIRST.batch("s", 0))
    assert not write(connection, FIRST.batch("s", 0)), "done again by the same attempt"
    assert not write(connection, SECOND.batch("s", 0)), "done again by the next one"
    assert write(connection, SECOND.batch("s", 1))
    assert [batch for batch, _ in written(file)] == [0, 1]


def test_numbers_may_be_left_out(connection: sqlite3.Connection, file: Path) -> None:
    """A batch without rows leaves no note."""
    assert write(connection, FIRST.batch("s", 3)) and write(connection, FIRST.batch("s", 7))
    assert not write(connection, FIRST.batch("s", 7))


def test_an_earlier_attempt_writes_nothing_any_more(connection: sqlite3.Connection, file: Path) -> None:
    write(connection, FIRST.batch("s", 0))
    write(connection, SECOND.batch("s", 1), "second")
    for batch_id in (1, 2):
        refused = "attempt 1 .epoch 1. of job a+ may not write sink s any more"
        with pytest.raises(SinkTaken, match=refused) as told:
            write(connection, FIRST.batch("s", batch_id), "zombie")
        # two jobs that take a sink from each other are not restarted for ever
        assert told.value.retryable and not is_outage(error_info(told.value))
    assert written(file) == [(0, "x"), (1, "second")]


def test_attempts_of_a_later_leader_count_from_one(connection: sqlite3.Connection, file: Path) -> None:
    write(connection, RunToken(JOB, 1, 7).batch("s", 0))
    assert write(connection, RunToken(JOB, 2, 1).batch("s", 1))
    with pytest.raises(SinkTaken):
        write(connection, RunToken(JOB, 1, 8).batch("s", 2))


def test_who_is_replaced_in_the_middle_of_a_batch_is_rolled_back(
    connection: sqlite3.Connection, other: sqlite3.Connection, file: Path
) -> None:
    """The zombie has looked at the row, and has not begun to write when it falls asleep."""
    with pytest.raises(SinkTaken), commit_once(connection, FIRST.batch("s", 0)) as is_new:
        assert is_new
        assert BatchTable(other).claim(SECOND.batch("s")).batch_id == -1
        connection.execute("INSERT INTO readings VALUES (0, 'zombie')")
    assert written(file) == []
    assert write(other, SECOND.batch("s", 0), "second")
    assert written(file) == [(0, "second")]


def test_of_two_copies_of_a_task_one_writes(
    connection: sqlite3.Connection, other: sqlite3.Connection, file: Path
) -> None:
    token = FIRST.batch("s", 0)
    with commit_once(connection, token) as is_new:
        assert is_new
        assert write(other, token, "copy")
        connection.execute("INSERT INTO readings VALUES (0, 'slower')")
    assert written(file) == [(0, "copy")]


def test_an_error_of_the_body_leaves_nothing(connection: sqlite3.Connection, file: Path) -> None:
    with pytest.raises(ZeroDivisionError), commit_once(connection, FIRST.batch("s", 0)):
        connection.execute("INSERT INTO readings VALUES (0, 'x')")
        raise ZeroDivisionError
    assert written(file) == []
    assert write(connection, FIRST.batch("s", 0))


def test_batches_of_another_lineage_are_refused(connection: sqlite3.Connection) -> None:
    """Two jobs that went on from one retained checkpoint; the one that is further goes on undisturbed."""
    further = RunToken("b" * 32)
    write(connection, further.batch("s", 9))
    with pytest.raises(DatabaseError, match="has written batch 9 already .job b+. and is to write batch 4"):
        write(connection, FIRST.batch("s", 4))
    assert write(connection, further.batch("s", 10))


def test_a_job_that_goes_on_from_a_checkpoint_takes_the_sink_over(connection: sqlite3.Connection) -> None:
    before = RunToken("b" * 32, 5, 9)
    write(connection, before.batch("s", 9))
    assert not write(connection, FIRST.batch("s", 9)), "the batch that the other job has not committed"
    assert write(connection, FIRST.batch("s", 10))
    with pytest.raises(SinkTaken, match="of job a+ does"):
        BatchTable(connection).check(before.batch("s", 10))


def test_sinks_and_names_have_rows_of_their_own(connection: sqlite3.Connection, file: Path) -> None:
    token = FIRST.batch("s", 0)
    assert write(connection, token) and write(connection, FIRST.batch("t", 0))
    for name in ("left", "right"):
        with commit_once(connection, token, name) as is_new:
            assert is_new
    sinks = connection.execute(f"SELECT sink FROM {TABLE} ORDER BY sink").fetchall()
    assert sinks == [("s",), ("s/left",), ("s/right",), ("t",)]


def test_a_task_of_an_earlier_attempt_is_refused_whatever_its_name(
    connection: sqlite3.Connection, other: sqlite3.Connection, file: Path
) -> None:
    """The batch had three parts; done again by the next attempt, it has two."""
    asleep = commit_once(connection, FIRST.batch("s", 0), "2")
    assert asleep.__enter__()
    for name in ("0", "1"):
        with commit_once(other, SECOND.batch("s", 0), name) as is_new:
            assert is_new
            other.execute("INSERT INTO readings VALUES (0, 'second')")
    # it wakes up and goes on
    connection.execute("INSERT INTO readings VALUES (0, 'zombie')")
    with pytest.raises(SinkTaken, match="attempt 1 .epoch 1. of job a+ may not write sink s any more"):
        asleep.__exit__(None, None, None)
    # or had not begun
    with pytest.raises(SinkTaken), commit_once(connection, FIRST.batch("s", 0), "3"):
        raise AssertionError("never here")
    assert written(file) == [(0, "second"), (0, "second")]


def test_a_transaction_that_cannot_be_serialized_is_rolled_back_and_may_be_repeated(
    file: Path, connection: sqlite3.Connection, other: sqlite3.Connection
) -> None:
    """Under SERIALIZABLE one of two tasks that commit at the same time fails.

    SQLite's transactions see one snapshot when its log is written ahead, and fail when another has committed
    since that was taken.
    """
    connection.execute("PRAGMA journal_mode=WAL")

    def task(connection: sqlite3.Connection, name: str, meanwhile: Callable[[], None] = lambda: None) -> None:
        with commit_once(connection, FIRST.batch("s", 0), name) as is_new:
            assert is_new
            connection.execute("BEGIN")
            connection.execute("SELECT * FROM readings").fetchall()
            meanwhile()
            connection.execute(f"INSERT INTO readings VALUES (0, '{name}')")

    with pytest.raises(sqlite3.OperationalError, match="locked"):
        task(connection, "0", lambda: task(other, "1"))
    assert not connection.in_transaction and written(file) == [(0, "1")]
    # by the same connection
    task(connection, "0")
    assert sorted(written(file)) == [(0, "0"), (0, "1")]


def test_a_claim_that_fails_leaves_no_transaction(
    connection: sqlite3.Connection, other: sqlite3.Connection
) -> None:
    """Its locks would stay until the connection is closed."""
    write(connection, FIRST.batch("s", 0))
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(sqlite3.OperationalError, match="locked"):
        write(connection, SECOND.batch("s", 1))
    assert not connection.in_transaction
    other.rollback()
    assert write(connection, SECOND.batch("s", 1))


def test_a_claim_that_cannot_be_serialized_is_looked_at_again(
    connection: sqlite3.Connection, other: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of two tasks of a new attempt; PostgreSQL says so where other levels find no row to change."""
    write(connection, FIRST.batch("s", 0))
    change = BatchTable._change
    others: list[str] = []

    def fail_after_the_other(self: BatchTable, statement: str) -> bool:
        if self is table and not others:
            others.append(statement)
            BatchTable(other).claim(SECOND.batch("s", 1))
            raise sqlite3.OperationalError("could not serialize access due to concurrent update")
        return change(self, statement)

    monkeypatch.setattr(BatchTable, "_change", fail_after_the_other)
    table = BatchTable(connection)
    stored = table.claim(SECOND.batch("s", 1))
    assert (stored.run, stored.batch_id) == (SECOND, 0)
    assert others and not connection.in_transaction


def test_what_is_written_although_the_batch_is_there_is_rolled_back(
    connection: sqlite3.Connection, file: Path
) -> None:
    write(connection, FIRST.batch("s", 0))
    with commit_once(connection, FIRST.batch("s", 0)) as is_new:
        assert not is_new
        connection.execute("INSERT INTO readings VALUES (0, 'again')")
    connection.commit()
    assert written(file) == [(0, "x")]


def test_rows_are_noted(connection: sqlite3.Connection) -> None:
    table = BatchTable(connection)
    assert table.claim(FIRST.batch("s")) == StoredBatch(FIRST)
    assert table.advance(FIRST.batch("s", 4), 17)
    connection.commit()
    assert table.check(FIRST.batch("s", 5)) == StoredBatch(FIRST, 4, 17)
    assert table.claim(SECOND.batch("s")) == StoredBatch(SECOND, 4, 17)


def test_two_drivers_claim_at_once(
    connection: sqlite3.Connection, other: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both find no row; the one that inserts second finds that of the first, and takes it over."""
    table, read = BatchTable(connection), BatchTable.read
    seen: list[None] = []

    def read_before_the_other(self: BatchTable, sink: str) -> StoredBatch | None:
        found = read(self, sink)
        if self is table and not seen:
            seen.append(None)
            BatchTable(other).claim(FIRST.batch("s"))
        return found

    monkeypatch.setattr(BatchTable, "read", read_before_the_other)
    assert table.claim(SECOND.batch("s")) == StoredBatch(SECOND)
    assert seen


def test_a_connection_must_have_transactions(file: Path) -> None:
    class Automatic:
        autocommit = True

    class AskedFor:
        def autocommit(self, on: bool) -> None: ...

        def get_autocommit(self) -> bool:
            return True

    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        for found in (connection, Automatic(), AskedFor()):
            with pytest.raises(DatabaseError, match="switch autocommit off"), commit_once(
                found, FIRST.batch("s", 0)
            ):
                raise AssertionError("never here")


def test_a_table_that_cannot_be_made_is_asked_for(file: Path) -> None:
    with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as connection:
        with pytest.raises(DatabaseError, match="make it yourself: CREATE TABLE yarnflow_batches"):
            BatchTable(connection).claim(FIRST.batch("s"))


def test_a_row_that_somebody_deletes_is_missed(
    connection: sqlite3.Connection, other: sqlite3.Connection
) -> None:
    with pytest.raises(DatabaseError, match="deleted the row"), commit_once(connection, FIRST.batch("s", 0)):
        other.execute(f"DELETE FROM {TABLE}")
        other.commit()


@pytest.mark.parametrize("sink", ["", "it's", "a b", "x" * 201])
def test_names_that_could_be_more_than_names_are_refused(connection: sqlite3.Connection, sink: str) -> None:
    with pytest.raises(DatabaseError, match="cannot name a sink"):
        BatchTable(connection).read(sink)


def test_functions_ask_for_their_batch() -> None:
    with pytest.raises(UnsupportedCall, match="only functions of foreach_batch"):
        batch_token()
    token = FIRST.batch("s", 3)
    with current_batch(token):
        assert batch_token() is token
    with pytest.raises(UnsupportedCall):
        batch_token()


def test_the_token_of_the_running_function_is_the_default(connection: sqlite3.Connection) -> None:
    with current_batch(FIRST.batch("s", 3)), commit_once(connection) as is_new:
        assert is_new
    stored = BatchTable(connection).read("s")
    assert stored is not None and stored.batch_id == 3
