"""Tables outside that streams are joined with, row by row: what is asked for what, and what is kept of it.

Flink counterparts: ``LookupTableSource`` and ``LookupOptions``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from yarnflow.graph.closures import Closure
from yarnflow.graph.schema import Schema

#: rows a worker keeps where nothing is said; Flink keeps all
DEFAULT_MAX_ROWS: Final = 100_000


@dataclass(frozen=True, slots=True)
class LookupOptions:
    """How a table is asked.  Flink: the options ``lookup.…`` and ``table.exec.async-lookup.…``."""

    #: answers are kept in each worker
    cached: bool = False
    max_rows: int = DEFAULT_MAX_ROWS
    #: None = for ever
    expire_after_write_ms: int | None = None
    #: None = for ever
    expire_after_access_ms: int | None = None
    #: it is kept, too, that a key has no rows
    cache_missing_key: bool = True
    #: how often a table that is away is asked again, before the job restarts
    max_retries: int = 3
    #: of an asynchronous function: keys it is asked for at a time
    capacity: int = 100
    #: of an asynchronous function, for one key; 0 = no limit
    timeout_ms: int = 180_000


@dataclass(frozen=True, slots=True)
class JdbcLookup:
    """Columns of a table of a database, asked for by statements.  Flink: ``JdbcRowDataLookupFunction``."""

    #: what the join adds to each record
    columns: Schema
    #: as it stands behind FROM
    table: str
    #: ``jdbc:postgresql://host:port/database``; may hold a password
    url: str = field(repr=False)
    user: str = ""
    password: str = field(default="", repr=False)

    @property
    def what(self) -> str:
        """What is asked, for people."""
        return f"table {self.table}"


@dataclass(frozen=True, slots=True)
class FunctionLookup:
    """What a function of the program finds.  Flink: ``LookupFunction``, ``AsyncLookupFunction``."""

    #: what the join adds to each record
    columns: Schema
    #: of a LookupFunction or an AsyncLookupFunction
    closure: Closure
    asynchronous: bool = False

    @property
    def what(self) -> str:
        """What is asked, for people."""
        return f"{self.closure.name} ({self.closure.origin})"


Lookup = JdbcLookup | FunctionLookup
