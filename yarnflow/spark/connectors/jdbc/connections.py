"""Connections to databases by Python's drivers.

The only importer of psycopg and PyMySQL.  Decides how a connection is set up (transactions, UTC, no
transaction that stays open when its owner hangs) and which of a driver's errors may pass.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import Any, Final

from yarnflow.errors import DatabaseError, DatabaseUnavailable, EnvironmentUnusable, YarnflowError
from yarnflow.operators.databases.jdbc_url import DatabaseAddress, DatabaseKind

#: the server ends a transaction whose owner is silent for so long, so that it keeps nobody waiting
_IDLE_S: Final = 300
#: how long SQLite waits for another writer
_SQLITE_WAIT_S: Final = 30
#: what is wrong with the address, and stays so; PostgreSQL tells it by words only
_WRONG_ADDRESS: Final = (
    "authentication failed", "does not exist", "no pg_hba.conf entry", "no password supplied",
)  # fmt: skip
#: of MySQL: too many connections, shutting down, broken connections, limits, waits for locks, read-only
#: servers; from 2000 to 2999 are those of clients and networks.  All others are about addresses and
#: statements
_PASSING_MYSQL: Final = (1040, 1053, *range(1158, 1162), 1180, 1203, 1205, 1213, 1226, 1290, 1836, 1927, 4031)
_EXTRAS: Final = {
    DatabaseKind.POSTGRESQL: ("psycopg", "postgresql"),
    DatabaseKind.MYSQL: ("PyMySQL", "mysql"),
}


class Database:
    """One database, as drivers and workers open it.  Can be pickled.

    Parameters
    ----------
    address : DatabaseAddress
    place : str
        The operator and its line in the program, which errors begin with; empty = who asks says it.
    """

    def __init__(self, address: DatabaseAddress, place: str = "") -> None:
        self._address = address
        self._place = f"{place}: " if place else ""

    @property
    def mark(self) -> str:
        """How the driver wants values marked in statements."""
        return "?" if self._address.kind is DatabaseKind.SQLITE else "%s"

    @contextmanager
    def connection(self) -> Iterator[Any]:
        """A connection of DB-API 2 without autocommit, closed at the end; what it raises is told by our
        errors.

        Raises
        ------
        DatabaseUnavailable
            The database does not answer, or has broken off: the same may succeed later.
        DatabaseError
            It does not take what it was told.
        EnvironmentUnusable
            The driver's package is not installed.
        """
        connection = self.connect()
        try:
            with self.told_errors():
                yield connection
        finally:
            close_connection(connection)

    def connect(self) -> Any:
        """A connection as :meth:`connection` gives it, which the caller closes by :func:`close_connection`;
        raises the same."""
        module = self._driver()
        with self.told_errors(connected=False):
            return self._connect(module)

    @contextmanager
    def told_errors(self, connected: bool = True) -> Iterator[None]:
        """Raise errors of the driver as :meth:`connection` does.

        Parameters
        ----------
        connected : bool
            False = it is being connected: then words of the server tell what will not pass.
        """
        module = self._driver()
        try:
            yield
        except DatabaseError as error:
            # of our own notes in the database
            raise type(error)(f"{self._place}{error.message}") from None
        except YarnflowError:
            raise
        except (module.OperationalError, module.InterfaceError) as error:
            raise self._error(error, wrong=self._is_wrong(error, connected)) from None
        except module.Error as error:
            raise self._error(error, wrong=True) from None

    def _connect(self, module: Any) -> Any:
        arguments = dict(self._address.arguments)
        match self._address.kind:
            case DatabaseKind.POSTGRESQL:
                settings = {
                    "TimeZone": "UTC",
                    "idle_in_transaction_session_timeout": str(_IDLE_S * 1000),
                    **self._address.in_transactions,
                }
                return module.connect(**arguments, cursor_factory=_setting_cursor(module, settings))
            case DatabaseKind.MYSQL:
                setup = f"SET time_zone = '+00:00', wait_timeout = {_IDLE_S}"
                return module.connect(autocommit=False, init_command=setup, **arguments)
        return module.connect(timeout=_SQLITE_WAIT_S, **arguments)

    def _driver(self) -> Any:
        kind = self._address.kind
        try:
            if kind is DatabaseKind.POSTGRESQL:
                return import_module("psycopg")
            if kind is DatabaseKind.MYSQL:
                return import_module("pymysql")
        except ImportError as error:
            package, extra = _EXTRAS[kind]
            raise EnvironmentUnusable(
                f"{kind.value} needs the Python package {package}, which cannot be imported here "
                f"({error}); install it where the job runs: pip install 'yarnflow[{extra}]'"
            ) from None
        return import_module("sqlite3")

    def _is_wrong(self, error: Exception, connected: bool) -> bool:
        """Whether trying again cannot help."""
        match self._address.kind:
            case DatabaseKind.POSTGRESQL:
                return not connected and any(words in str(error) for words in _WRONG_ADDRESS)
            case DatabaseKind.MYSQL:
                number = error.args[0] if _is_numbered(error.args) else 0
                return bool(number) and number not in _PASSING_MYSQL and number not in range(2000, 3000)
        return "locked" not in str(error)

    def _error(self, error: Exception, wrong: bool) -> DatabaseError:
        where = f"{self._place}{self._address.shown}: {_said(error) or type(error).__name__}"
        return DatabaseError(where) if wrong else DatabaseUnavailable(where)


def _setting_cursor(psycopg: Any, settings: Mapping[str, str]) -> type:
    """Cursors that begin every transaction with settings, which end with it.

    Poolers such as PgBouncer take few settings when one connects, and give each transaction any connection:
    what is set for longer would be missing there, or be there for others.
    """
    pairs = ", ".join(
        f"set_config({psycopg.sql.quote(name)}, {psycopg.sql.quote(value)}, true)"
        for name, value in settings.items()
    )

    class SettingCursor(psycopg.Cursor):  # type: ignore[misc]
        def execute(self, *args: Any, **options: Any) -> Any:
            self._begun()
            return super().execute(*args, **options)

        def executemany(self, *args: Any, **options: Any) -> None:
            self._begun()
            super().executemany(*args, **options)

        def _begun(self) -> None:
            if self.connection.info.transaction_status is psycopg.pq.TransactionStatus.IDLE:
                super().execute(f"SELECT {pairs}", prepare=False)

    return SettingCursor


def _said(error: Exception) -> str:
    """What the database has said, in one line."""
    if _is_numbered(error.args):
        # of PyMySQL: (number, text)
        return " ".join(str(error.args[1]).split())
    # of PostgreSQL's server: the other fields (detail, context) may hold the values of a row
    told = getattr(error, "diag", None)
    if told is None or not told.message_primary:
        return " ".join(str(error).split())
    return "; ".join(" ".join(part.split()) for part in (told.message_primary, told.message_hint) if part)


def _is_numbered(arguments: Sequence[object]) -> bool:
    return len(arguments) == 2 and isinstance(arguments[0], int)


def close_connection(connection: Any) -> None:
    """Close a connection, also a broken one; what was not committed is gone with it."""
    # each may fail: the connection may be what is broken
    with suppress(Exception):
        connection.rollback()
    with suppress(Exception):
        connection.close()
