"""The history server's copies of archives: one database in a file of this machine.

Nothing of it is held in memory; what is there after a restart is not fetched again.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from yarnflow.errors import ConfigError
from yarnflow.rest.history.form import Content, Owner

logger: Final = logging.getLogger(__name__)

_FILE: Final = "history.db"
#: a file of another version is made anew
_VERSION: Final = 1
_TABLES: Final = (
    """CREATE TABLE archives (kind TEXT, id TEXT, source TEXT, path TEXT, modified_ms INTEGER,
       bytes INTEGER, summary BLOB, name TEXT, state TEXT, start_ms INTEGER, PRIMARY KEY (kind, id))""",
    "CREATE INDEX by_start ON archives (kind, start_ms)",
    """CREATE TABLE answers (kind TEXT, id TEXT, path TEXT, json BLOB, PRIMARY KEY (path)) WITHOUT ROWID""",
    "CREATE INDEX by_owner ON answers (kind, id)",
)


@dataclass(frozen=True, slots=True)
class Copied:
    """Where a copy comes from."""

    owner: Owner
    #: directory of archives
    source: str
    #: of the file
    path: str
    modified_ms: int
    bytes: int


class ArchiveStore:
    """Copies of archives; any thread.

    Parameters
    ----------
    directory : Path
        Of this history server only.

    Raises
    ------
    ConfigError
        It cannot be used.
    """

    def __init__(self, directory: Path) -> None:
        self._path: Final = directory / _FILE
        self._lock = threading.Lock()
        try:
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            # the file is the owner's before anything is in it
            os.close(os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
            self._database = self._open()
        except (OSError, sqlite3.Error) as error:
            raise ConfigError(
                f"the history server cannot use {directory}: {error}; choose another directory "
                "(historyserver.web.tmpdir)"
            ) from error

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._database.close()

    # --- writing ---

    def put(self, content: Content, copied: Copied) -> None:
        """Take an archive in place of the one of its owner that was there."""
        owner = content.owner
        key = (owner.kind, owner.id)
        with self._changing() as database:
            self._remove(database, owner)
            database.execute(
                "INSERT INTO archives VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (*key, copied.source, copied.path, copied.modified_ms, copied.bytes, content.summary,
                 _plain(content.name), _plain(content.state), content.start_ms),
            )  # fmt: skip
            database.executemany(
                "INSERT INTO answers VALUES (?, ?, ?, ?)",
                ((*key, _plain(path), json) for path, json in content.answers.items()),
            )

    def remove(self, owner: Owner) -> None:
        """Forget an archive.  Idempotent."""
        with self._changing() as database:
            self._remove(database, owner)

    # --- reading ---

    def copies(self, source: str) -> Sequence[Copied]:
        """All that come from a directory."""
        rows = self._rows(
            "SELECT kind, id, source, path, modified_ms, bytes FROM archives WHERE source = ?", source
        )
        return [
            Copied(Owner(kind, id_), of, path, modified_ms, size)
            for kind, id_, of, path, modified_ms, size in rows
        ]

    def copy(self, owner: Owner) -> Copied | None:
        """Where the copy of an archive comes from; None = there is none."""
        rows = self._rows(
            "SELECT source, path, modified_ms, bytes FROM archives WHERE kind = ? AND id = ?",
            owner.kind, owner.id,
        )  # fmt: skip
        return Copied(owner, *rows[0]) if rows else None

    def summaries(self, kind: str) -> Sequence[bytes]:
        """Entries of the overview of all, the newest first."""
        query = "SELECT summary FROM archives WHERE kind = ? ORDER BY start_ms DESC, id"
        return [summary for (summary,) in self._rows(query, kind)]

    def states(self) -> Sequence[tuple[str, str]]:
        """Id and state of every job, the oldest first."""
        query = "SELECT id, state FROM archives WHERE kind = 'jobs' ORDER BY start_ms, id"
        return [(id_, state) for id_, state in self._rows(query)]

    def state(self, job_id: str) -> str:
        """Of one job; empty = there is none."""
        rows = self._rows("SELECT state FROM archives WHERE kind = 'jobs' AND id = ?", job_id)
        return str(rows[0][0]) if rows else ""

    def answer(self, path: str) -> bytes | None:
        """What a path answered."""
        rows = self._rows("SELECT json FROM answers WHERE path = ?", path)
        return bytes(rows[0][0]) if rows else None

    def _rows(self, query: str, *values: object) -> list[Any]:
        with self._lock:
            return self._database.execute(query, values).fetchall()

    @contextmanager
    def _changing(self) -> Iterator[sqlite3.Connection]:
        with self._lock, self._database:
            yield self._database

    @staticmethod
    def _remove(database: sqlite3.Connection, owner: Owner) -> None:
        for table in ("answers", "archives"):
            database.execute(f"DELETE FROM {table} WHERE kind = ? AND id = ?", (owner.kind, owner.id))

    def _open(self) -> sqlite3.Connection:
        """What cannot be read is made anew: the archives are still where they were."""
        try:
            return self._opened()
        except sqlite3.DatabaseError as error:
            logger.warning("The copies in %s cannot be read and are made anew: %s", self._path, error)
        for path in (self._path, *(Path(f"{self._path}-{end}") for end in ("wal", "shm", "journal"))):
            with suppress(FileNotFoundError):
                path.unlink()
        os.close(os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        return self._opened()

    def _opened(self) -> sqlite3.Connection:
        database = sqlite3.connect(self._path, check_same_thread=False)
        try:
            # nothing is lost with it that could not be fetched again
            database.execute("PRAGMA synchronous = OFF")
            database.execute("PRAGMA secure_delete = OFF")
            version = database.execute("PRAGMA user_version").fetchone()[0]
            if version != _VERSION:
                with database:
                    for table in ("archives", "answers"):
                        database.execute(f"DROP TABLE IF EXISTS {table}")
                    for table in _TABLES:
                        database.execute(table)
                    database.execute(f"PRAGMA user_version = {_VERSION}")
            return database
        except BaseException:
            database.close()
            raise


def _plain(text: str) -> str:
    """Half surrogates cannot be stored."""
    return text.encode("utf-8", "replace").decode()
