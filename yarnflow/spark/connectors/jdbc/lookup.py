"""Rows of a database by their keys, in a worker.

One statement asks for all keys of an Arrow batch, or for some hundred of them.  The connection is kept as
long as the worker works; each statement is a transaction of its own, so it sees what others have committed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from yarnflow.errors import DatabaseError, DatabaseUnavailable
from yarnflow.graph.connectors.lookups import JdbcLookup
from yarnflow.graph.types import parse_type
from yarnflow.operators.databases.column_values import from_database
from yarnflow.operators.databases.jdbc_url import database_address
from yarnflow.operators.databases.lookup_statement import Key, divided, pieces, select_by_keys
from yarnflow.operators.lookups.answers import with_retries
from yarnflow.operators.lookups.cache import Rows
from yarnflow.spark.connectors.jdbc.connections import Database, close_connection


class JdbcTable:
    """A table of a database that is asked.

    Parameters
    ----------
    lookup : JdbcLookup
    key : sequence of str
        Columns that keys are compared with.
    max_retries : int
        How often a database that does not answer is asked again.
    wait : callable
        Waits so many seconds.
    note : callable
        Told why there is a further try.
    name : str
        Of the table, for people.
    """

    def __init__(
        self,
        lookup: JdbcLookup,
        key: Sequence[str],
        max_retries: int,
        wait: Callable[[float], None],
        note: Callable[[str], None],
        name: str,
    ) -> None:
        self._address = database_address(lookup.url, lookup.user, lookup.password)
        self._database = Database(self._address)
        self._table = lookup.table
        self._key = tuple(key)
        self._columns = lookup.columns.names
        self._converters = [from_database(parse_type(one.type or "void")) for one in lookup.columns.fields]
        self._max_retries = max_retries
        self._wait = wait
        self._note = note
        #: errors of connections name the address themselves
        self._name = name
        self._connection: Any = None

    def ask(self, keys: Sequence[Key]) -> Sequence[Rows]:
        found: dict[Key, Rows] = {}
        for piece in pieces(keys):
            rows = self._tried(list(piece.values()))
            parts = divided(piece, rows)
            if parts is None:
                # the database compares otherwise than Python: it has to say itself whose rows they are
                width = len(self._key)
                parts = {key: [row[width:] for row in self._tried([key])] for key in piece.values()}
            for key, part in parts.items():
                found[key] = tuple(map(self._converted, part))
        return [found[key] for key in keys]

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            close_connection(connection)

    def _tried(self, keys: Sequence[Key]) -> list[tuple[Any, ...]]:
        if self._connection is not None:
            try:
                return self._select(keys)
            except DatabaseUnavailable as error:
                # a connection that was silent for long may be broken, which says nothing of the database
                self._note(f"The connection to {self._name} is lost and made anew: {error}")
        return with_retries(lambda: self._select(keys), self._max_retries, self._wait, self._note, self._name)

    def _select(self, keys: Sequence[Key]) -> list[tuple[Any, ...]]:
        statement = select_by_keys(
            self._address.kind, self._table, self._key, self._columns, len(keys), self._database.mark
        )
        try:
            if self._connection is None:
                self._connection = self._database.connect()
            with self._database.told_errors():
                cursor = self._connection.cursor()
                try:
                    cursor.execute(statement, [value for key in keys for value in key])
                    rows = list(cursor.fetchall())
                finally:
                    cursor.close()
                # what is committed by others until the next statement is to be seen by that
                self._connection.rollback()
        except DatabaseError as error:
            self.close()
            if isinstance(error, DatabaseUnavailable):
                raise
            raise DatabaseError(
                f"{self._name} cannot be asked for {', '.join(self._columns)} by {', '.join(self._key)}: "
                f"{error.message}"
            ) from None
        return rows

    def _converted(self, row: tuple[Any, ...]) -> tuple[object, ...]:
        return tuple(convert(value) for convert, value in zip(self._converters, row, strict=True))
