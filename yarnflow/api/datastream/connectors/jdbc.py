"""Rows into databases, exactly once, and rows of databases by their keys.

PyFlink: ``pyflink.datastream.connectors.jdbc``.  Python's drivers do it, so that no jar is needed:
``psycopg`` for PostgreSQL, ``PyMySQL`` for MySQL and MariaDB (``pip install 'yarnflow[postgresql]'``,
``'yarnflow[mysql]'``).
"""

from __future__ import annotations

from typing import ClassVar, Final

from yarnflow.api.building.definitions import columns
from yarnflow.api.building.lookups import checked_columns
from yarnflow.api.datastream.connectors.base import Sink
from yarnflow.errors import GraphError, SchemaError
from yarnflow.graph import operators
from yarnflow.graph.compatibility import differs, same_and
from yarnflow.graph.connectors import lookups, sinks
from yarnflow.graph.schema import Schema
from yarnflow.graph.type_info import RowTypeInfo, TypeInfo
from yarnflow.graph.types import parse_type, to_schema
from yarnflow.operators.databases.jdbc_url import DatabaseKind, database_address
from yarnflow.operators.databases.statement import count_values

_DEFAULT_ROWS: Final = 5000
_DEFAULT_RETRIES: Final = 3
#: what no column of a database holds
_NESTED: Final = ("struct", "map")


class JdbcConnectionOptions:
    """Where the database is; made by :class:`JdbcConnectionOptionsBuilder`."""

    def __init__(self, url: str, driver_name: str | None, user_name: str, password: str) -> None:
        self._url = url
        self._driver_name = driver_name
        self._user_name = user_name
        self._password = password

    def get_db_url(self) -> str:
        """``jdbc:postgresql://host:port/database``."""
        return self._url

    def get_driver_name(self) -> str | None:
        """Java's driver, as it was set."""
        return self._driver_name

    def get_user_name(self) -> str:
        """The user."""
        return self._user_name

    def get_password(self) -> str:
        """The password."""
        return self._password

    class JdbcConnectionOptionsBuilder:
        """Says where the database is."""

        def __init__(self) -> None:
            self._url = ""
            self._driver_name: str | None = None
            self._user_name = ""
            self._password = ""

        @same_and("known are `jdbc:postgresql:`, `jdbc:mysql:` and `jdbc:mariadb:`")
        def with_url(self, url: str) -> JdbcConnectionOptions.JdbcConnectionOptionsBuilder:
            """``jdbc:postgresql://host:port/database?sslmode=require``."""
            self._url = url
            return self

        @differs("without effect: a Python driver is found by the URL")
        def with_driver_name(self, driver_name: str) -> JdbcConnectionOptions.JdbcConnectionOptionsBuilder:
            """Java's driver."""
            self._driver_name = driver_name
            return self

        def with_user_name(self, user_name: str) -> JdbcConnectionOptions.JdbcConnectionOptionsBuilder:
            """The user, instead of one in the URL."""
            self._user_name = user_name
            return self

        def with_password(self, password: str) -> JdbcConnectionOptions.JdbcConnectionOptionsBuilder:
            """The password, instead of one in the URL; it is part of the job that is submitted."""
            self._password = password
            return self

        def build(self) -> JdbcConnectionOptions:
            """The options.

            Raises
            ------
            ConfigError
                The URL is none, is of no known database, or has a setting that is not known.
            """
            database_address(self._url, self._user_name, self._password)
            return JdbcConnectionOptions(self._url, self._driver_name, self._user_name, self._password)


class JdbcExecutionOptions:
    """How rows are written; made by :meth:`builder`."""

    def __init__(self, batch_interval_ms: int, batch_size: int, max_retries: int) -> None:
        self._batch_interval_ms = batch_interval_ms
        self._batch_size = batch_size
        self._max_retries = max_retries

    def get_batch_interval_ms(self) -> int:
        """As it was set."""
        return self._batch_interval_ms

    def get_batch_size(self) -> int:
        """Rows handed to the database at a time."""
        return self._batch_size

    def get_max_retries(self) -> int:
        """How often a database that does not answer is asked again."""
        return self._max_retries

    @staticmethod
    def defaults() -> JdbcExecutionOptions:
        """5000 rows at a time, three retries."""
        return JdbcExecutionOptions.builder().build()

    @staticmethod
    def builder() -> JdbcExecutionOptions.Builder:
        """Begin the options."""
        return JdbcExecutionOptions.Builder()

    class Builder:
        """Says how rows are written."""

        def __init__(self) -> None:
            self._batch_size = _DEFAULT_ROWS
            self._batch_interval_ms = 0
            self._max_retries = _DEFAULT_RETRIES

        @same_and("rows become visible with their micro-batch, however many are handed over at a time")
        def with_batch_size(self, size: int) -> JdbcExecutionOptions.Builder:
            """Rows handed to the database at a time; 0 = as many as by default."""
            self._batch_size = _whole("with_batch_size", size)
            return self

        @differs("without effect: rows are committed with their micro-batch")
        def with_batch_interval_ms(self, interval_ms: int) -> JdbcExecutionOptions.Builder:
            """Longest time between two hand-overs."""
            self._batch_interval_ms = _whole("with_batch_interval_ms", interval_ms)
            return self

        @same_and("only a database that does not answer is asked again; then the job restarts")
        def with_max_retries(self, max_retries: int) -> JdbcExecutionOptions.Builder:
            """How often a database that does not answer is asked again, after 1, 2, 3 … seconds."""
            self._max_retries = _whole("with_max_retries", max_retries)
            return self

        def build(self) -> JdbcExecutionOptions:
            """The options."""
            return JdbcExecutionOptions(self._batch_interval_ms, self._batch_size, self._max_retries)


class JdbcSink(Sink):
    """Rows of a database, exactly-once; made by :meth:`sink`.

    Each micro-batch is one transaction, in which the table ``yarnflow_batches`` notes that the batch is
    there; yarnflow makes this table in the same database.
    """

    name: ClassVar[str] = "JDBC Sink"

    def __init__(
        self,
        sql: str,
        type_info: TypeInfo,
        jdbc_connection_options: JdbcConnectionOptions,
        jdbc_execution_options: JdbcExecutionOptions,
    ) -> None:
        self._sql = sql
        self._type_info = type_info
        self._connection = jdbc_connection_options
        self._execution = jdbc_execution_options

    @staticmethod
    @same_and(
        "it is exactly-once, which Flink's is only for statements that are idempotent; one subtask writes, "
        "in one transaction per micro-batch, and needs the table `yarnflow_batches`, which it makes"
    )
    def sink(
        sql: str,
        type_info: RowTypeInfo,
        jdbc_connection_options: JdbcConnectionOptions,
        jdbc_execution_options: JdbcExecutionOptions | None = None,
    ) -> JdbcSink:
        """A sink for ``add_sink``.

        Parameters
        ----------
        sql : str
            A statement with a ``?`` for each field, in their order: ``INSERT INTO t (a, b) VALUES (?, ?)``.
        type_info : TypeInfo
            The rows' type.
        jdbc_connection_options : JdbcConnectionOptions
        jdbc_execution_options : JdbcExecutionOptions, optional

        Raises
        ------
        GraphError
            The statement has not as many ``?`` as the type has fields.
        """
        if not isinstance(type_info, RowTypeInfo):
            raise GraphError(f"JdbcSink.sink(): {type_info!r} is no row type; give Types.ROW or ROW_NAMED")
        _check_count(sql, len(type_info.get_field_names()))
        return JdbcSink(
            sql, type_info, jdbc_connection_options, jdbc_execution_options or JdbcExecutionOptions.defaults()
        )

    def operator(self, schema: Schema) -> operators.Operator:
        schema = columns(schema)
        connection = self._connection
        if schema.known:
            _check_count(self._sql, len(schema.fields))
        kind = database_address(connection.get_db_url()).kind
        for field in schema.fields:
            found = parse_type(field.type).name if field.type else ""
            if found in _NESTED or (found == "array" and kind is not DatabaseKind.POSTGRESQL):
                raise SchemaError(
                    f"{kind.value} cannot hold field '{field.name}' of type {field.type}; make it text "
                    "before, by json.dumps for example"
                )
        return sinks.JdbcSink(
            self._sql,
            connection.get_db_url(),
            connection.get_user_name(),
            connection.get_password(),
            self._execution.get_batch_size() or _DEFAULT_ROWS,
            self._execution.get_max_retries(),
        )


class JdbcLookup:
    """A table of a database that :meth:`DataStream.lookup_join` asks.

    One statement asks for all keys of an Arrow batch (``WHERE key IN (…)``, some hundred at a time).  Its
    columns are found as Flink's ``jdbc`` tables find them, by Python's drivers.

    Parameters
    ----------
    url : str
        ``jdbc:postgresql://host:port/database?sslmode=require``; known are ``jdbc:postgresql:``,
        ``jdbc:mysql:`` and ``jdbc:mariadb:``.
    table : str
        What stands behind ``FROM``: a table, a view, or a query in parentheses with its name behind it, as
        ``(SELECT id, name AS customer FROM customers) AS c``.
    columns : str or type
        The columns that are added to the stream, named as the database has them:
        ``"name STRING, city STRING"``.  The key's are not among them, as the stream has them.
    username, password : str, optional
        In place of those in the URL; they are part of the job that is submitted.

    Raises
    ------
    ConfigError
        The URL is none, is of no known database, or has a setting that is not known.
    SchemaError
        The columns are none.
    """

    def __init__(
        self, url: str, table: str, columns: object, username: str = "", password: str = ""
    ) -> None:
        database_address(url, username, password)
        if not isinstance(table, str) or not table.strip():
            raise SchemaError(f"JdbcLookup: table {table!r} is no name")
        schema = checked_columns(to_schema(columns))
        for field in schema.fields:
            if parse_type(field.type or "").name in (*_NESTED, "array"):
                raise SchemaError(
                    f"JdbcLookup: column '{field.name}' of type {field.type} cannot be looked up; declare it "
                    "STRING, and take it apart afterwards"
                )
        #: for the job
        self._described = lookups.JdbcLookup(schema, table.strip(), url, username, password)


def _check_count(sql: str, fields: int) -> None:
    values = count_values(sql)
    if values != fields:
        raise GraphError(
            f"JdbcSink.sink(): the statement has {values} '?' and the rows have {fields} fields: {sql}"
        )


def _whole(call: str, value: int) -> int:
    if type(value) is not int or value < 0:
        raise GraphError(f"JdbcExecutionOptions: {call}({value!r}) must be a whole number, 0 or more")
    return value
