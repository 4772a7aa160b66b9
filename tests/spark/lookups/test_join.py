"""Batches with the rows of a table beside them."""

from __future__ import annotations

import datetime as dt
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from yarnflow.errors import DatabaseError
from yarnflow.graph.closures import make_closure
from yarnflow.graph.connectors.lookups import FunctionLookup, JdbcLookup, LookupOptions
from yarnflow.graph.operators import LookupJoin
from yarnflow.graph.rows import Row
from yarnflow.graph.schema import EVENT_TIME_FIELD
from yarnflow.graph.types import parse_schema
from yarnflow.operators.databases.tokens import RunToken
from yarnflow.operators.functions.lookup import AsyncLookupFunction, FoundRows, LookupFunction
from yarnflow.operators.lookups.answers import LookupTable
from yarnflow.operators.lookups.cache import Key, Rows
from yarnflow.spark.lookups import join as join_module
from yarnflow.spark.lookups.join import LookupJoinTask
from yarnflow.spark.lookups.kept import KeptLookups, LookupTask, open_table

CLOSURE = make_closure(len, "job.py:3", "Towns")
UTC = pa.timestamp("us", tz="UTC")
RUN = RunToken("a" * 32)
ROWS: dict[Key, Rows] = {(1,): (("Rome", 3),), (2,): (("Oslo", None), ("Oslo again", 1))}


class Towns:
    """A table of :data:`ROWS`."""

    def __init__(self) -> None:
        self.asked: list[list[Key]] = []
        self.opened = self.closed = 0
        self.failure: Exception | None = None

    def open(self, task: LookupTask) -> LookupTable:
        self.opened += 1
        return self

    def ask(self, keys: Sequence[Key]) -> Sequence[Rows]:
        self.asked.append(list(keys))
        if self.failure is not None:
            raise self.failure
        return [ROWS.get(key, ()) for key in keys]

    def close(self) -> None:
        self.closed += 1
        raise ValueError("close() of the user's")


@pytest.fixture
def towns(monkeypatch: pytest.MonkeyPatch) -> Iterator[Towns]:
    found = Towns()
    kept = KeptLookups(found.open)
    monkeypatch.setattr(join_module, "kept_lookups", kept)
    yield found
    kept.close()


def task(left: bool = False, cached: bool = False, run: RunToken = RUN, name: str = "op") -> LookupJoinTask:
    lookup = FunctionLookup(parse_schema("name STRING, size INT"), CLOSURE)
    join = LookupJoin(lookup, (("town", "id"),), left, LookupOptions(cached))
    output = pa.schema(
        [
            *(("id", pa.int64()), ("town", pa.int32()), ("name", pa.string()), ("size", pa.int32())),
            (EVENT_TIME_FIELD, UTC),
        ]
    )
    return LookupJoinTask(LookupTask(run, name, join), output, {"name": "string", "size": "int"})


def batch(*towns: int | None) -> pa.RecordBatch:
    times = [dt.datetime(2024, 1, 1, n, tzinfo=dt.UTC) for n in range(len(towns))]
    return pa.RecordBatch.from_pydict(
        {
            "id": pa.array(range(len(towns)), pa.int64()),
            "town": pa.array(towns, pa.int32()),
            EVENT_TIME_FIELD: pa.array(times, UTC),
        }
    )


def rows_of(found: Iterator[pa.RecordBatch]) -> list[tuple[Any, ...]]:
    return [
        (row["id"], row["name"], row["size"], row[EVENT_TIME_FIELD].hour)
        for one in found
        for row in one.to_pylist()
    ]


def test_inner(towns: Towns) -> None:
    assert rows_of(task()(iter([batch(1, 2, None, 9, 1)]))) == [
        (0, "Rome", 3, 0), (1, "Oslo", None, 1), (1, "Oslo again", 1, 1), (4, "Rome", 3, 4)
    ]  # fmt: skip
    assert towns.asked == [[(1,), (2,), (9,)]]


def test_left(towns: Towns) -> None:
    assert rows_of(task(left=True)(iter([batch(9, 2, None), batch(), batch(None)]))) == [
        (0, None, None, 0), (1, "Oslo", None, 1), (1, "Oslo again", 1, 1), (2, None, None, 2),
        (0, None, None, 0),
    ]  # fmt: skip
    assert towns.asked == [[(9,), (2,)]], "a batch without keys asks nothing"


@pytest.mark.parametrize("left", [True, False])
def test_nothing_is_found(towns: Towns, left: bool) -> None:
    assert len(rows_of(task(left)(iter([batch(9), batch(8)])))) == (2 if left else 0)


def test_large_results_come_in_several_batches(towns: Towns, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(join_module, "OUTPUT_BATCH_ROWS", 3)
    found = list(task()(iter([batch(2, 2, 2, 1)])))
    assert [one.num_rows for one in found] == [3, 3, 1]


def test_a_worker_keeps_answers_from_task_to_task(towns: Towns) -> None:
    for _ in range(3):
        list(task(cached=True)(iter([batch(1, 9)])))
    assert towns.asked == [[(1,), (9,)]] and towns.opened == 1
    list(task(cached=True, name="another operator")(iter([batch(1)])))
    assert towns.opened == 2 and not towns.closed
    list(task(cached=True, run=RunToken("a" * 32, 0, 2))(iter([batch(1)])))
    assert (towns.opened, towns.closed) == (3, 2), "another attempt"


def test_what_has_failed_is_opened_anew(towns: Towns) -> None:
    towns.failure = KeyError("x")
    with pytest.raises(KeyError):
        list(task()(iter([batch(1)])))
    assert towns.closed == 1
    towns.failure = None
    assert list(task()(iter([batch(1)])))
    assert towns.opened == 2


def test_values_that_are_not_of_the_declared_type(towns: Towns, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ROWS, (1,), (("Rome", "large"),))
    with pytest.raises(TypeError, match=r"^Towns \(job.py:3\): field 'size' is declared int, got 'large'"):
        list(task()(iter([batch(1)])))


# --- what is opened ----------------------------------------------------------------------------


class Opened(LookupFunction):
    prefix = ""

    def open(self, runtime_context: Any) -> None:
        self.prefix = "opened "

    def lookup(self, key_row: Row) -> Iterator[tuple[str]]:
        yield (self.prefix + str(key_row.id),)


class AsyncOpened(AsyncLookupFunction):
    prefix = ""

    def open(self) -> None:  # type: ignore[override]
        self.prefix = "opened "

    async def async_lookup(self, key_row: Row) -> FoundRows:
        return [[self.prefix + str(key_row.id)]]


@pytest.mark.parametrize("function", [Opened(), AsyncOpened()])
def test_functions_are_opened(function: LookupFunction | AsyncLookupFunction) -> None:
    closure = make_closure(function, "job.py:3")
    lookup = FunctionLookup(parse_schema("name STRING"), closure, isinstance(function, AsyncLookupFunction))
    table = open_table(LookupTask(RUN, "op", LookupJoin(lookup, (("town", "id"),))))
    assert table.ask([(5,), (6,)]) == [(("opened 5",),), (("opened 6",),)]
    table.close()


@pytest.mark.parametrize(
    ("columns", "error", "said"),
    [
        ("nam STRING", DatabaseError, "table towns cannot be asked for nam by id: .*no such column: nam"),
        ("size INT", TypeError, "table towns: field 'size' is declared int, got 'big'"),
    ],
)
def test_errors_of_a_database_name_the_join_and_its_line(
    columns: str, error: type[Exception], said: str, tmp_path: Path
) -> None:
    with closing(sqlite3.connect(tmp_path / "db")) as connection:
        connection.execute("CREATE TABLE towns (id INT, size TEXT)")
        connection.execute("INSERT INTO towns VALUES (1, 'big')")
        connection.commit()
    lookup = JdbcLookup(parse_schema(columns), "towns", f"jdbc:sqlite:{tmp_path}/db")
    asked = LookupTask(RUN, "op", LookupJoin(lookup, (("town", "id"),)), "'lookup towns' (job.py:7)")
    name, kind = columns.split()
    output = pa.schema([("id", pa.int64()), (name, pa.string() if kind == "STRING" else pa.int32())])
    joined = LookupJoinTask(asked, output, {name: kind.lower()})
    with pytest.raises(error, match=rf"^'lookup towns' \(job\.py:7\): {said}"):
        list(joined(iter([batch(1)])))
