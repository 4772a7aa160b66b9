"""What a query gives by DuckDB, and how far the rows of a program differ from it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import duckdb

from integration.bench.nexmark.generator import Events
from integration.bench.nexmark.queries import Query
from integration.bench.stream.results import result_files

_COLUMNS: Final = {
    "event_type": "INTEGER",
    "person": "STRUCT(id BIGINT, name VARCHAR, email VARCHAR, card VARCHAR, city VARCHAR, state VARCHAR, "
    "time_ms BIGINT, extra VARCHAR)",
    "auction": "STRUCT(id BIGINT, item VARCHAR, description VARCHAR, initial_bid BIGINT, reserve BIGINT, "
    "time_ms BIGINT, expires_ms BIGINT, seller BIGINT, category BIGINT, extra VARCHAR)",
    "bid": "STRUCT(auction BIGINT, bidder BIGINT, price BIGINT, channel VARCHAR, url VARCHAR, "
    "time_ms BIGINT, extra VARCHAR)",
}


@dataclass(frozen=True)
class Comparison:
    """Rows of a query's result.

    Attributes
    ----------
    expected : int
    written : int
        All that the program wrote, also rows that later ones replace.
    missing, additional : int
        Of those that count; rows that are equal are as many as there are.
    examples : list of str
        Some of the rows that differ.
    """

    expected: int
    written: int
    missing: int
    additional: int
    examples: list[str]

    @property
    def is_equal(self) -> bool:
        return not self.missing and not self.additional


class Reference:
    """The tables of Nexmark in a database in memory.

    Parameters
    ----------
    events : Events
    """

    def __init__(self, events: Events) -> None:
        self._database = duckdb.connect()
        self._database.execute("SET threads TO 2")
        pattern = str(events.directory / "*.json")
        self._database.execute(
            "CREATE TABLE event AS SELECT * FROM read_json(?, format = 'newline_delimited', columns = ?)",
            [pattern, _COLUMNS],
        )
        for event_type, table in enumerate(("person", "auction", "bid")):
            self._database.execute(
                f"CREATE TABLE {table} AS SELECT unnest({table}) FROM event WHERE event_type = {event_type}"
            )
        self._database.execute("DROP TABLE event")

    def close(self) -> None:
        """Forget all."""
        self._database.close()

    def compare(self, query: Query, directory: Path) -> Comparison:
        """Compare a program's CSV files with what the query gives.

        Raises
        ------
        duckdb.Error
            The files have other columns.
        """
        self._database.execute(f"CREATE OR REPLACE TEMP TABLE expected AS {query.sql}")
        self._read(result_files(directory))
        self._database.execute(f"CREATE OR REPLACE TEMP VIEW counted AS {query.counted}")
        missing, additional = (
            f"SELECT * FROM {one} EXCEPT ALL SELECT * FROM {other}"
            for one, other in (("expected", "counted"), ("counted", "expected"))
        )
        return Comparison(
            self._count("expected"),
            self._count("written"),
            self._count(f"({missing})"),
            self._count(f"({additional})"),
            [
                f"{what}: {row}"
                for what, rows in (("missing", missing), ("additional", additional))
                for row in self._rows(f"SELECT * FROM ({rows}) LIMIT 3")
            ],
        )

    def _read(self, files: list[Path]) -> None:
        """Make the table ``written``, with the columns of ``expected``."""
        columns = {name: kind for name, kind, *_ in self._rows("DESCRIBE expected")}
        if not files:
            self._database.execute("CREATE OR REPLACE TEMP TABLE written AS FROM expected LIMIT 0")
            return
        self._database.execute(
            "CREATE OR REPLACE TEMP TABLE written AS "
            "SELECT * FROM read_csv(?, columns = ?, header = false, delim = ',', auto_detect = false)",
            [[str(file) for file in files], columns],
        )

    def _count(self, relation: str) -> int:
        ((count,),) = self._rows(f"SELECT count(*) FROM {relation}")
        return int(count)

    def _rows(self, sql: str) -> list[tuple[Any, ...]]:
        rows: list[tuple[Any, ...]] = self._database.execute(sql).fetchall()
        return rows
