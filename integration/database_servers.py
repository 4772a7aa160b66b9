"""Real databases for tests."""

from __future__ import annotations

import shutil
import signal
from abc import abstractmethod
from contextlib import closing
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from integration.servers import Server, program

USER: Final = "yarnflow"
PASSWORD: Final = "it's a %s test?"
DATABASE: Final = "shop"
#: where Debian keeps the programs of PostgreSQL's server, newest last
_POSTGRESQL: Final = Path("/usr/lib/postgresql")


class DatabaseServer(Server):
    """A server with one database and one user, running."""

    #: ``jdbc:postgresql://127.0.0.1:5432/shop``, without a user
    url: str

    @abstractmethod
    def connect(self) -> Any:
        """A connection of the user; the caller closes it."""

    def run(self, *statements: str) -> None:
        """Run statements of the user's, in one transaction."""
        with closing(self.connect()) as connection:
            for statement in statements:
                connection.cursor().execute(statement)
            connection.commit()

    def query(self, statement: str) -> list[tuple[Any, ...]]:
        """Rows of a query."""
        with closing(self.connect()) as connection:
            cursor = connection.cursor()
            cursor.execute(statement)
            return list(cursor.fetchall())


class PostgreSql(DatabaseServer):
    """PostgreSQL."""

    # what clients have begun is rolled back
    quick_stop = signal.SIGINT

    @property
    def url(self) -> str:  # type: ignore[override]
        return f"jdbc:postgresql://127.0.0.1:{self.port}/{DATABASE}"

    def connect(self) -> Any:
        return self._connect(DATABASE)

    def _connect(self, database: str, **options: Any) -> Any:
        return import_module("psycopg").connect(
            host="127.0.0.1", port=self.port, dbname=database, user=USER, password=PASSWORD, **options
        )

    def _create(self) -> None:
        secret = self.directory / "password"
        secret.write_text(PASSWORD)
        if self._owner is not None:
            shutil.chown(secret, self._owner)
        self._run_program(
            program("initdb", *_POSTGRESQL.glob("*/bin")), "-D", str(self.directory / "data"), "-U", USER,
            "--auth=scram-sha-256", f"--pwfile={secret}", "--encoding=UTF8", "--no-sync",
        )  # fmt: skip

    def _command(self) -> list[str]:
        # without fsync: what is tried is the end of processes, not of machines
        return [
            program("postgres", *_POSTGRESQL.glob("*/bin")), "-D", str(self.directory / "data"), "-p",
            str(self.port), "-h", "127.0.0.1", "-k", str(self.directory), "-c", "fsync=off",
        ]  # fmt: skip

    def _ready(self) -> bool:
        try:
            self._connect("postgres").close()
        except import_module("psycopg").OperationalError as error:
            assert "starting up" in str(error) or "recovery" in str(error), error
            return False
        return True

    def _prepare(self) -> None:
        with closing(self._connect("postgres", autocommit=True)) as connection:
            connection.execute(f"CREATE DATABASE {DATABASE}")


class PgBouncer(DatabaseServer):
    """PostgreSQL behind a pooler that gives each transaction any of two connections."""

    def __init__(self) -> None:
        self.behind = PostgreSql()
        try:
            super().__init__()
        except BaseException:
            self.behind.stop()
            raise

    @property
    def url(self) -> str:  # type: ignore[override]
        # prepared statements are of a connection, as with Java's driver
        return f"jdbc:postgresql://127.0.0.1:{self.port}/{DATABASE}?prepareThreshold=0"

    def connect(self) -> Any:
        return import_module("psycopg").connect(
            host="127.0.0.1", port=self.port, dbname=DATABASE, user=USER, password=PASSWORD,
            prepare_threshold=None,
        )  # fmt: skip

    def stop(self) -> None:
        super().stop()
        self.behind.stop()

    def _create(self) -> None:
        users, config = self.directory / "users", self.directory / "pgbouncer.ini"
        users.write_text(f'"{USER}" "{PASSWORD}"\n')
        config.write_text(
            f"[databases]\n{DATABASE} = host=127.0.0.1 port={self.behind.port}\n"
            "[pgbouncer]\nlisten_addr = 127.0.0.1\nunix_socket_dir =\nauth_type = scram-sha-256\n"
            f"listen_port = {self.port}\nauth_file = {users}\n"
            "pool_mode = transaction\ndefault_pool_size = 2\n"
        )
        if self._owner is not None:
            shutil.chown(users, self._owner)
            shutil.chown(config, self._owner)

    def _command(self) -> list[str]:
        return [program("pgbouncer", Path("/usr/sbin")), str(self.directory / "pgbouncer.ini")]


class MariaDb(DatabaseServer):
    """MariaDB."""

    @property
    def url(self) -> str:  # type: ignore[override]
        return f"jdbc:mariadb://127.0.0.1:{self.port}/{DATABASE}"

    def connect(self) -> Any:
        return self._connect(USER, PASSWORD, DATABASE)

    def _connect(self, user: str, password: str, database: str | None) -> Any:
        return import_module("pymysql").connect(
            host="127.0.0.1", port=self.port, user=user, password=password, database=database
        )

    def _create(self) -> None:
        self._run_program(
            program("mariadb-install-db"), "--no-defaults", f"--datadir={self.directory / 'data'}",
            "--auth-root-authentication-method=normal", "--skip-test-db",
        )  # fmt: skip

    def _command(self) -> list[str]:
        return [
            program("mariadbd", Path("/usr/sbin")), "--no-defaults", f"--datadir={self.directory / 'data'}",
            f"--port={self.port}", "--bind-address=127.0.0.1", f"--socket={self.directory / 'socket'}",
            f"--pid-file={self.directory / 'pid'}", "--innodb-flush-log-at-trx-commit=2",
            "--innodb-buffer-pool-size=32M", "--skip-name-resolve",
        ]  # fmt: skip

    def _prepare(self) -> None:
        password = PASSWORD.replace("'", "''")
        with closing(self._connect("root", "", None)) as connection:
            cursor = connection.cursor()
            cursor.execute(f"CREATE DATABASE {DATABASE}")
            cursor.execute(f"CREATE USER '{USER}'@'127.0.0.1' IDENTIFIED BY '{password}'")
            cursor.execute(f"GRANT ALL ON {DATABASE}.* TO '{USER}'@'127.0.0.1'")
            # to see who waits for whom
            cursor.execute(f"GRANT PROCESS ON *.* TO '{USER}'@'127.0.0.1'")


SERVERS: Final[dict[str, type[DatabaseServer]]] = {"postgresql": PostgreSql, "mariadb": MariaDb}
