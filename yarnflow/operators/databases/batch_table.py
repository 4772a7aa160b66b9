"""Which micro-batch a database has of each sink, kept in the database itself.

A table of the target database has one row per sink: the attempt of the job that may write, and the newest
batch it has written.  The row changes in the transaction that brings the batch's rows, so rows and row are
there together or not at all.  A later attempt takes the row over before it writes, and from then on no
transaction of an earlier one ends well.

Works on any connection of DB-API 2 that is not in autocommit mode.  All that goes into the statements are
whole numbers and names of few characters, so that drivers' ways of passing values do not matter.

Flink counterpart: ``JdbcExactlyOnceSinkFunction``, whose prepared transactions need privileges and settings
that databases seldom have.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any, Final

from yarnflow.errors import DatabaseError
from yarnflow.operators.databases.tokens import (
    NO_BATCH,
    TABLE,
    UNKNOWN_ROWS,
    BatchToken,
    RunToken,
    StoredBatch,
    is_written,
    replaced,
    takes_over,
)

#: types that all databases know
TABLE_DDL: Final = (
    f"CREATE TABLE {TABLE} (sink VARCHAR(200) NOT NULL PRIMARY KEY, job_id VARCHAR(64) NOT NULL, "
    "epoch DECIMAL(19) NOT NULL, attempt DECIMAL(19) NOT NULL, batch_id DECIMAL(19) NOT NULL, "
    "written_rows DECIMAL(19) NOT NULL)"
)
_COLUMNS: Final = "job_id, epoch, attempt, batch_id, written_rows"
#: goes into statements as it is
_NAME: Final = re.compile(r"[A-Za-z0-9_.:/@+-]{1,200}")
#: how often a row that others change as well is looked at
_LOOKS: Final = 5


class BatchTable:
    """The rows of all sinks of one database.

    Parameters
    ----------
    connection : DB-API 2 connection
        Without autocommit, and without a transaction that has begun.
    """

    def __init__(self, connection: Any) -> None:
        _check_transactional(connection)
        self._connection = connection

    def claim(self, token: BatchToken) -> StoredBatch:
        """Make the token's run the one that writes the sink; ends its own transaction.

        Raises
        ------
        SinkTaken
            A later run of the job has claimed it.
        DatabaseError
            The table is missing and cannot be made, or has later batches than the token's; nothing was
            changed.
        """
        self._make()
        for _ in range(_LOOKS):
            stored = self.read(token.sink)
            if stored is None:
                if self._insert(token):
                    return StoredBatch(token.run)
                continue
            if token.batch_id != NO_BATCH:
                is_written(token, stored)
            if not takes_over(token, stored):
                return stored
            if self._take_over(token, stored):
                return replace(stored, run=token.run)
        raise DatabaseError(f"the row of sink {token.sink} in table {TABLE} is always changed by others")

    def check(self, token: BatchToken) -> StoredBatch:
        """What the sink has, if the token's run may write it still; ends its own transaction.

        Raises
        ------
        SinkTaken
            Another run has claimed it.
        """
        stored = self.read(token.sink)
        if stored is None:
            raise DatabaseError(f"somebody has deleted the row of sink {token.sink} in table {TABLE}")
        if stored.run != token.run:
            raise replaced(token, stored)
        return stored

    def advance(self, token: BatchToken, written_rows: int = UNKNOWN_ROWS) -> bool:
        """Note the batch in the transaction that has brought its rows; whoever calls then commits it.

        Returns
        -------
        bool
            False = the same batch has come meanwhile, and the transaction is rolled back.

        Raises
        ------
        SinkTaken
            Another run has claimed the sink meanwhile; the transaction is rolled back.
        """
        run = token.run
        statement = (
            f"UPDATE {TABLE} SET batch_id = {token.batch_id:d}, written_rows = {written_rows:d} "
            f"WHERE sink = {_text(token.sink)} AND {_is_run(run)} AND batch_id < {token.batch_id:d}"
        )
        if self._change(statement):
            return True
        self._connection.rollback()
        if is_written(token, self.check(token)):
            return False
        raise DatabaseError(f"the row of sink {token.sink} in table {TABLE} did not change")

    def hold(self, token: BatchToken) -> None:
        """Let no later run claim the sink before the transaction ends, in which another sink's batch comes.

        Raises
        ------
        SinkTaken
            Another run has claimed the sink meanwhile; the transaction is rolled back.
        """
        # counted, since some databases do not tell of rows that were found and are what they were
        statement = (
            f"UPDATE {TABLE} SET written_rows = written_rows + 1 "
            f"WHERE sink = {_text(token.sink)} AND {_is_run(token.run)}"
        )
        if not self._change(statement):
            self._connection.rollback()
            self.check(token)
            raise DatabaseError(f"the row of sink {token.sink} in table {TABLE} did not change")

    def read(self, sink: str) -> StoredBatch | None:
        """A sink's row; ends its own transaction."""
        cursor = self._connection.cursor()
        try:
            cursor.execute(f"SELECT {_COLUMNS} FROM {TABLE} WHERE sink = {_text(sink)}")
            found = cursor.fetchone()
        finally:
            cursor.close()
            self._connection.rollback()
        if found is None:
            return None
        job_id, epoch, attempt, batch_id, rows = found
        return StoredBatch(RunToken(str(job_id), int(epoch), int(attempt)), int(batch_id), int(rows))

    def _insert(self, token: BatchToken) -> bool:
        run = token.run
        values = f"{_text(run.job_id)}, {run.epoch:d}, {run.attempt:d}, {NO_BATCH}, 0"
        try:
            self._run(f"INSERT INTO {TABLE} (sink, {_COLUMNS}) VALUES ({_text(token.sink)}, {values})")
            self._connection.commit()
            return True
        except Exception:
            self._connection.rollback()
            if self.read(token.sink) is None:
                raise
            return False

    def _take_over(self, token: BatchToken, stored: StoredBatch) -> bool:
        """Whether the row is the token's run's; False = others have changed it meanwhile."""
        try:
            if self._change(_take_over_sql(token, stored)):
                self._connection.commit()
                return True
            self._connection.rollback()
            return False
        except Exception:
            self._connection.rollback()
            # under SERIALIZABLE it is an error that others have
            if self.read(token.sink) == stored:
                raise
            return False

    def _make(self) -> None:
        if self._is_there():
            return
        try:
            self._run(TABLE_DDL)
            self._connection.commit()
        except Exception as error:
            self._connection.rollback()
            # somebody else may have been faster
            if not self._is_there():
                said = " ".join(str(error).split())
                raise DatabaseError(
                    f"table {TABLE}, in which sinks note what they have written, cannot be made: {said}; "
                    f"make it yourself: {TABLE_DDL}"
                ) from error

    def _is_there(self) -> bool:
        try:
            self._run(f"SELECT sink FROM {TABLE} WHERE 1 = 0")
            return True
        except Exception:
            return False
        finally:
            self._connection.rollback()

    def _run(self, statement: str) -> None:
        cursor = self._connection.cursor()
        try:
            cursor.execute(statement)
        finally:
            cursor.close()

    def _change(self, statement: str) -> bool:
        cursor = self._connection.cursor()
        try:
            cursor.execute(statement)
            return bool(cursor.rowcount == 1)
        finally:
            cursor.close()


def _take_over_sql(token: BatchToken, stored: StoredBatch) -> str:
    run = token.run
    return (
        f"UPDATE {TABLE} SET job_id = {_text(run.job_id)}, epoch = {run.epoch:d}, attempt = {run.attempt:d} "
        f"WHERE sink = {_text(token.sink)} AND {_is_run(stored.run)} AND batch_id = {stored.batch_id:d}"
    )


def _is_run(run: RunToken) -> str:
    return f"job_id = {_text(run.job_id)} AND epoch = {run.epoch:d} AND attempt = {run.attempt:d}"


def _text(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise DatabaseError(f"{name!r} cannot name a sink; use letters, digits and -_./:@+, 200 at most")
    return f"'{name}'"


def _check_transactional(connection: Any) -> None:
    asked = getattr(connection, "get_autocommit", None)
    on = asked() if callable(asked) else getattr(connection, "autocommit", False)
    # sqlite3's word for it; other drivers have no such attribute, or levels in it
    off_for_good = type(connection).__module__ == "sqlite3" and connection.isolation_level is None
    if on is True or off_for_good:
        raise DatabaseError(
            "the connection commits every statement by itself; switch autocommit off, so that rows and the "
            "note of their batch are one transaction"
        )
