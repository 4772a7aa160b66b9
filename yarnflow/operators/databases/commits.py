"""Micro-batches that functions of the user's write exactly once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from typing import Any, Final

from yarnflow.errors import UnsupportedCall
from yarnflow.operators.databases.batch_table import BatchTable
from yarnflow.operators.databases.tokens import NO_BATCH, BatchToken, is_written

_current: Final[ContextVar[BatchToken | None]] = ContextVar("batch token", default=None)


@contextmanager
def current_batch(token: BatchToken) -> Iterator[None]:
    """While a function of ``foreach_batch`` runs, :func:`batch_token` gives this."""
    reset = _current.set(token)
    try:
        yield
    finally:
        _current.reset(reset)


def batch_token() -> BatchToken:
    """The token of the micro-batch that a function of ``foreach_batch`` was called with.

    Raises
    ------
    UnsupportedCall
        No such function is running in this thread.
    """
    token = _current.get()
    if token is None:
        raise UnsupportedCall("batch_token(): only functions of foreach_batch have one, in their own thread")
    return token


@contextmanager
def commit_once(connection: Any, token: BatchToken | None = None, name: str = "") -> Iterator[bool]:
    """Write a micro-batch to a database exactly once, whatever is restarted meanwhile.

    The body writes by the same connection, and only if the value says so; the batch is then committed
    together with a note of it in the table ``yarnflow_batches``.  An exception rolls both back.  Once a later
    attempt of the job has called it, no transaction of an earlier one ends well, whatever its name and
    wherever its function or task still runs::

        def write(frame, batch_id):
            rows = [tuple(row) for row in frame.toLocalIterator()]
            with closing(psycopg.connect(address)) as connection, commit_once(connection) as is_new:
                if is_new:
                    connection.cursor().executemany("INSERT INTO readings VALUES (%s, %s)", rows)

        stream.foreach_batch(write)

    Under the isolation level SERIALIZABLE (in PostgreSQL also under REPEATABLE READ) a transaction fails when
    another has changed what it reads or writes since it began: a serialization failure, SQLSTATE 40001.
    Transactions with a ``name`` all change the row of their function, so of several that end at the same time
    one commits and the others fail.  So may one of an attempt that was replaced, in place of ``SinkTaken``.
    The driver's exception is raised from the ``with`` statement when all is rolled back, and nothing of the
    batch is there under that name.  It is then repeated: a task by Spark, four times at most, and the batch,
    with the same input and id, when the job is restarted; what other names have committed is not written
    again.  A function may also catch it and enter ``commit_once`` again with the same connection, token and
    name.  READ COMMITTED, under which they wait for each other, is enough for ``commit_once`` itself.

    Parameters
    ----------
    connection : DB-API 2 connection
        Without autocommit, and without a transaction that has begun.  It is not closed.
    token : BatchToken, optional
        Default that of the batch whose function runs.  Tasks are given it by the function.
    name : str
        Tells several from each other that one function, or its tasks, commit to the same database.  What is
        written under a name must be the same when a batch is done again.

    Yields
    ------
    bool
        False = the batch is there already.

    Raises
    ------
    SinkTaken
        Another driver of the job has taken over; what the body has written is rolled back.
    DatabaseError
        The connection has autocommit, or the table cannot be made.
    Exception
        Of the body or of the database's driver, such as a serialization failure; all is rolled back.
    """
    of_function = token or batch_token()
    token = replace(of_function, sink=f"{of_function.sink}/{name}") if name else of_function
    table = BatchTable(connection)
    if name:
        # the names of another attempt may be others: what all of them share tells which attempt may write
        table.claim(replace(of_function, batch_id=NO_BATCH))
    is_new = not is_written(token, table.claim(token))
    try:
        yield is_new
        if is_new:
            if name:
                table.hold(of_function)
            if table.advance(token):
                connection.commit()
        else:
            # what the body should not have written
            connection.rollback()
    except BaseException:
        connection.rollback()
        raise
