"""Streams joined with tables of real databases, and with functions, on a real Spark."""

from __future__ import annotations

import asyncio
import datetime as dt
import uuid
from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from integration.database_servers import PASSWORD, SERVERS, USER, DatabaseServer
from integration.servers import running
from integration.spark.savepoint_support import Job
from integration.spark.shared_jvm import shared_session
from integration.spark.timed_files import Program, at, plain, put, stream
from integration.spark.translate_support import EPOCH, ms
from yarnflow.api import DataStream, FileSink, Row, StreamExecutionEnvironment, TumblingEventTimeWindows
from yarnflow.api.common.typeinfo import Types
from yarnflow.api.datastream.connectors import JdbcLookup
from yarnflow.api.datastream.execution_mode import RuntimeExecutionMode
from yarnflow.api.datastream.functions import AsyncLookupFunction, LookupFunction, ProcessFunction
from yarnflow.core.ids import JobId
from yarnflow.errors import DatabaseError, DatabaseUnavailable, UserCodeError
from yarnflow.spark.checkpoints.job import JobIdentity

PEOPLE = 1500
#: of the key ``kN`` one row for each 500 from 0 to N, none of the keys that are multiples of 7
TABLE = [
    (f"k{key}", number, f"person {key} {number}")
    for key in range(PEOPLE)
    if key % 7
    for number in range(1 + key // 500)
]
PARTIAL = {"lookup.cache": "PARTIAL"}
#: of what does not depend on the database
ONE_DATABASE = pytest.mark.parametrize("server", ["postgresql"], indirect=True)
OTHERS_IN_DRILLS = pytest.mark.parametrize(
    "server", ["postgresql", pytest.param("mariadb", marks=pytest.mark.drill)], indirect=True
)


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    """One task at a time, so that one worker has all of them, and what it keeps."""
    with shared_session("local[1]") as session:
        yield session


@pytest.fixture(scope="module", params=list(SERVERS))
def server(request: pytest.FixtureRequest) -> Iterator[DatabaseServer]:
    with running(SERVERS[request.param]) as found:
        yield found


@pytest.fixture
def people(server: DatabaseServer) -> DatabaseServer:
    """With the rows of :data:`TABLE`."""
    server.start()
    server.run(
        "DROP TABLE IF EXISTS people",
        "CREATE TABLE people (id VARCHAR(20), n INT, name VARCHAR(50))",
        "CREATE INDEX people_id ON people (id)",
        *(
            f"INSERT INTO people VALUES {', '.join(map(str, TABLE[start : start + 500]))}"
            for start in range(0, len(TABLE), 500)
        ),
    )
    return server


def lookup(server: DatabaseServer, table: str = "people", columns: str = "name STRING") -> JdbcLookup:
    return JdbcLookup(server.url, table, columns, USER, PASSWORD)


def rows(out: Path) -> list[tuple[Any, ...]]:
    """What files that are complete hold, sorted."""
    found = [row for file in out.glob("part-*") for row in pq.ParquetFile(file).read().to_pylist()]
    return sorted((tuple(row.values()) for row in found), key=repr)


class Runner:
    """Attempts of one job."""

    def __init__(self, spark: SparkSession, directory: Path) -> None:
        self._spark = spark
        self._directory = directory
        self._job = JobIdentity(JobId(uuid.uuid4().hex))
        self._attempts = 0
        self.out = directory / "out"
        self.input = directory / "in"

    def start(self, env: StreamExecutionEnvironment) -> Job:
        self._attempts += 1
        return Job(
            self._spark, Program(env), self._directory, job=self._job, attempt_number=self._attempts - 1
        )

    def environment(self) -> StreamExecutionEnvironment:
        return StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)

    def write(self, found: DataStream) -> None:
        found.sink_to(FileSink(str(self.out), "parquet"))

    def clicks(self, env: StreamExecutionEnvironment, bounded: bool = False) -> DataStream:
        return stream(env, self.input, bounded=bounded)

    def put(self, number: int, *keys: int) -> None:
        """A file of one record for each key, a minute each, from that hour on."""
        put(self.input, number, [(f"k{key}", 60 * number + place, place) for place, key in enumerate(keys)])

    def found(self) -> list[tuple[Any, ...]]:
        """What has been written: key and name, sorted."""
        return sorted(((row[0], row[-1]) for row in rows(self.out)), key=repr)


@pytest.fixture
def runner(spark: SparkSession, tmp_path: Path) -> Runner:
    return Runner(spark, tmp_path)


# --- values -------------------------------------------------------------------------------


@pytest.mark.gate
@pytest.mark.parametrize("mode", [RuntimeExecutionMode.STREAMING, RuntimeExecutionMode.BATCH])
@pytest.mark.parametrize("how", ["inner", "left"])
def test_each_record_has_all_rows_of_its_key(
    runner: Runner, people: DatabaseServer, how: str, mode: RuntimeExecutionMode
) -> None:
    """More keys than one statement asks for, each several times, with and without rows, and NULLs."""
    env = runner.environment().set_runtime_mode(mode)
    keys = [None if n % 11 == 0 else f"k{n % (PEOPLE + 50)}" for n in range(4000)]
    orders = env.from_collection(list(zip(keys, range(4000), strict=True)), "who STRING, n INT")
    # the stream has a field n, and so the table's is not asked for
    runner.write(orders.lookup_join(lookup(people), {"who": "id"}, how))
    runner.start(env).ended()
    names: dict[str | None, list[str]] = {}
    for key, _, name in TABLE:
        names.setdefault(key, []).append(name)
    none: list[Any] = [None] if how == "left" else []
    assert rows(runner.out) == sorted(
        ((key, n, name) for n, key in enumerate(keys) for name in names.get(key, none)), key=repr
    )


def test_several_key_columns(runner: Runner, people: DatabaseServer) -> None:
    env = runner.environment()
    pairs = [("k1", 0), ("k1", 1), ("k1002", 1), ("k1002", None), ("k7", 0)]
    orders = env.from_collection(pairs, "who STRING, which INT")
    runner.write(orders.lookup_join(lookup(people), {"who": "id", "which": "n"}, "left"))
    runner.start(env).ended()
    names = ["person 1 0", None, "person 1002 1", None, None]
    expected = [(who, name) for (who, _), name in zip(pairs, names, strict=True)]
    assert runner.found() == sorted(expected, key=repr)


WHEN = dt.datetime(2024, 2, 29, 23, 59, 58, 123456)
COLUMNS = (
    "big BIGINT, real_ DOUBLE, flag BOOLEAN, words STRING, raw BINARY, amount DECIMAL(9,2), day_ DATE, "
    "at_ TIMESTAMP, exact_ DOUBLE"
)
VALUES: tuple[Any, ...] = (
    2**40, 0.1, True, "it's 100% \"ü\" ? é😀", b"\x00\xff'", Decimal("12.34"), WHEN.date(), WHEN, 0.25
)  # fmt: skip


def test_values(runner: Runner, server: DatabaseServer) -> None:
    postgresql = server.url.startswith("jdbc:postgresql")
    raw, real, moment = ("BYTEA", "DOUBLE PRECISION", "TIMESTAMPTZ") if postgresql else (
        "VARBINARY(20)", "DOUBLE", "DATETIME(6)"
    )  # fmt: skip
    words = "TEXT" if postgresql else "TEXT CHARACTER SET utf8mb4"
    server.start()
    server.run(
        "DROP TABLE IF EXISTS kinds",
        f"CREATE TABLE kinds (id INT, big BIGINT, real_ {real}, flag BOOLEAN, words {words}, raw {raw}, "
        f"amount DECIMAL(9, 2), day_ DATE, at_ {moment}, exact_ DECIMAL(5, 2))",
    )
    with server.connect() as connection:
        cursor = connection.cursor()
        if postgresql:
            cursor.execute("SET TIME ZONE 'UTC'")
        marks = ", ".join(["%s"] * (1 + len(VALUES)))
        cursor.execute(f"INSERT INTO kinds VALUES ({marks})", (1, *VALUES))
        cursor.execute(f"INSERT INTO kinds VALUES ({marks})", (2, *(None for _ in VALUES)))
        connection.commit()
    env = runner.environment()
    kinds = lookup(server, "kinds", COLUMNS)
    runner.write(env.from_collection([(1,), (2,), (3,)], "id INT").lookup_join(kinds, "id"))
    runner.start(env).ended()
    assert plain(rows(runner.out)) == [(1, *VALUES), (2, *(None for _ in VALUES))]


def test_texts_are_equal_where_the_database_says_so(runner: Runner, server: DatabaseServer) -> None:
    """MariaDB sees no difference between small letters and capitals, PostgreSQL does."""
    server.start()
    server.run(
        "DROP TABLE IF EXISTS towns",
        "CREATE TABLE towns (id CHAR(8), name VARCHAR(20))",
        "INSERT INTO towns VALUES ('rome', 'Roma'), ('OSLO', 'Kristiania')",
    )
    env = runner.environment()
    keys = ["rome", "ROME", "Oslo", "OSLO"]
    asked = env.from_collection(keys, "STRING").lookup_join(lookup(server, "towns"), {"value": "id"})
    runner.write(asked)
    runner.start(env).ended()
    every = [("OSLO", "Kristiania"), ("Oslo", "Kristiania"), ("ROME", "Roma"), ("rome", "Roma")]
    same = server.url.startswith("jdbc:mariadb")
    assert runner.found() == (every if same else [every[0], every[3]])


@pytest.mark.parametrize(
    ("table", "on", "columns", "message"),
    [
        ("people", "id", "nam STRING", "table people cannot be asked for nam by id: .*nam"),
        ("people", "idd", "name STRING", "table people cannot be asked for name by idd: .*idd"),
        ("persons", "id", "name STRING", "table persons cannot be asked for name by id: .*persons"),
    ],
)
def test_what_is_not_there(
    runner: Runner, people: DatabaseServer, table: str, on: str, columns: str, message: str
) -> None:
    env = runner.environment()
    orders = env.from_collection(["k1"], "STRING").lookup_join(lookup(people, table, columns), {"value": on})
    runner.write(orders)
    place = r"^'.+' \(test_lookup_join\.py:\d+\): "
    with pytest.raises(DatabaseError, match=place + message) as caught:
        runner.start(env).ended()
    assert type(caught.value) is DatabaseError and "\n" not in str(caught.value)


# --- time -----------------------------------------------------------------------------------


def rename(server: DatabaseServer, name: str) -> None:
    server.run(f"UPDATE people SET name = '{name}'")


def names_of(runner: Runner) -> list[Any]:
    return [name for _, name in runner.found()]


@ONE_DATABASE
@pytest.mark.parametrize(
    ("options", "fresh"),
    [
        ({}, True),
        (PARTIAL, False),
        ({**PARTIAL, "lookup.partial-cache.expire-after-write": "1 h"}, False),
        ({**PARTIAL, "lookup.partial-cache.expire-after-write": "1 ms"}, True),
        ({**PARTIAL, "lookup.partial-cache.expire-after-access": "1 ms"}, True),
    ],
)
def test_what_is_kept(
    runner: Runner, people: DatabaseServer, options: dict[str, str], fresh: bool
) -> None:
    """From micro-batch to micro-batch, as long as the options say."""
    env = runner.environment()
    runner.write(runner.clicks(env).lookup_join(lookup(people), {"k": "id"}, options=options))
    runner.put(0, 1, 2)
    job = runner.start(env)
    job.wait_until(lambda: len(runner.found()) == 2, "the first file")
    rename(people, "other")
    runner.put(1, 1, 3)
    job.wait_until(lambda: len(runner.found()) == 4, "the second file")
    job.cancel()
    first, again = (name for key, name in runner.found() if key == "k1")
    assert (first, again) == ("other" if fresh else "person 1 0", "person 1 0")
    assert ("k3", "other") in runner.found(), "asked for later"


@ONE_DATABASE
@pytest.mark.parametrize("kept", [True, False])
def test_that_a_key_has_no_rows_is_kept(runner: Runner, people: DatabaseServer, kept: bool) -> None:
    options = {**PARTIAL, "lookup.partial-cache.cache-missing-key": str(kept)}
    env = runner.environment()
    runner.write(runner.clicks(env).lookup_join(lookup(people), {"k": "id"}, "left", options=options))
    runner.put(0, 7)
    job = runner.start(env)
    job.wait_until(lambda: runner.found() == [("k7", None)], "the first file")
    people.run("INSERT INTO people VALUES ('k7', 0, 'new')")
    runner.put(1, 7)
    job.wait_until(lambda: len(runner.found()) == 2, "the second file")
    job.cancel()
    assert names_of(runner) == ([None, None] if kept else ["new", None])


@ONE_DATABASE
def test_event_time_and_watermark_are_those_of_the_stream(runner: Runner, people: DatabaseServer) -> None:
    """A window behind it closes when the stream's event time has passed, while the job runs."""
    env = runner.environment()
    named = runner.clicks(env).lookup_join(lookup(people), {"k": "id"})
    runner.write(named.key_by("name").window(TumblingEventTimeWindows.of("1 hour")).count())
    runner.put(0, 1, 2, 1, 7)
    runner.put(1, 1)
    runner.put(2, 1, 1, 1)
    job = runner.start(env)
    wanted = [("person 1 0", at(0), 2), ("person 1 0", at(60), 1), ("person 2 0", at(0), 1)]
    job.wait_until(lambda: [(n, s, c) for n, s, _, c in plain(rows(runner.out))] == wanted, "two hours")
    job.cancel()


class Times(ProcessFunction):
    def process_element(self, value: Any, ctx: ProcessFunction.Context) -> Iterator[Row]:
        yield Row(f"{value.name} {ctx.timestamp()}")


@ONE_DATABASE
def test_functions_on_elements_behind_it(runner: Runner, people: DatabaseServer) -> None:
    env = runner.environment()
    named = runner.clicks(env, bounded=True).lookup_join(lookup(people), {"k": "id"})
    runner.put(0, 1, 2, 7)
    runner.write(named.process(Times(), Types.ROW_NAMED(["text"], [Types.STRING()])))
    runner.start(env).ended()
    assert rows(runner.out) == [(f"person 1 0 {ms(EPOCH)}",), (f"person 2 0 {ms(EPOCH) + 60_000}",)]


# --- databases that are away ------------------------------------------------------------------


@OTHERS_IN_DRILLS
def test_a_database_that_is_restarted(runner: Runner, people: DatabaseServer) -> None:
    """The connection that a worker keeps is lost with it, and made anew."""
    env = runner.environment()
    asked = runner.clicks(env).lookup_join(lookup(people), {"k": "id"}, options={"lookup.max-retries": 0})
    runner.write(asked)
    runner.put(0, 1)
    job = runner.start(env)
    job.wait_until(lambda: len(runner.found()) == 1, "the first file")
    people.kill()
    people.start()
    runner.put(1, 2)
    job.wait_until(lambda: len(runner.found()) == 2, "the second file")
    job.cancel()


@OTHERS_IN_DRILLS
def test_a_database_that_is_away_for_long(runner: Runner, people: DatabaseServer) -> None:
    def program() -> StreamExecutionEnvironment:
        env = runner.environment()
        asked = runner.clicks(env).lookup_join(lookup(people), {"k": "id"}, options={"lookup.max-retries": 1})
        runner.write(asked)
        return env

    runner.put(0, 1)
    job = runner.start(program())
    job.wait_until(lambda: len(runner.found()) == 1, "the first file")
    people.kill()
    runner.put(1, 2, 3)
    away = f"table people does not answer: jdbc:[a-z]+://127.0.0.1:{people.port}/shop: "
    with pytest.raises(DatabaseUnavailable, match=away) as caught:
        job.ended()
    assert PASSWORD not in str(caught.value) and caught.value.retryable
    people.start()
    job = runner.start(program())
    job.wait_until(lambda: len(runner.found()) == 3, "the second file")
    job.cancel()
    assert names_of(runner) == ["person 1 0", "person 2 0", "person 3 0"]


# --- functions: of no database ----------------------------------------------------------------


class Squares(LookupFunction):
    """Notes in a file how it is used."""

    def __init__(self, notes: Path) -> None:
        self.notes = notes

    def note(self, text: str) -> None:
        with self.notes.open("a") as file:
            file.write(f"{text}\n")

    def open(self, runtime_context: object) -> None:
        self.note("open")

    def lookup(self, key_row: Row) -> Iterable[tuple[int, str]]:
        raise NotImplementedError

    def lookup_all(self, key_rows: Any) -> Any:
        self.note(f"keys {len(key_rows)}")
        return [[(key.id**2, "x")] if key.id % 2 else [] for key in key_rows]


class SlowSquares(AsyncLookupFunction):
    async def async_lookup(self, key_row: Row) -> list[tuple[int, str]]:
        await asyncio.sleep(0.001)
        return [(key_row.id**2, "x")] if key_row.id % 2 else []


SQUARES: dict[str, Callable[[Path], Any]] = {"many": Squares, "async": lambda notes: SlowSquares()}


@pytest.mark.parametrize("kind", list(SQUARES))
def test_functions(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    runner = Runner(spark, tmp_path)
    env = runner.environment()
    numbers = env.from_collection([n % 100 for n in range(1000)], "INT")
    function = SQUARES[kind](tmp_path / "notes")
    runner.write(numbers.lookup_join(function, {"value": "id"}, output_type="square INT, x STRING"))
    runner.start(env).ended()
    assert rows(runner.out) == sorted([(n, n * n, "x") for n in range(1, 100, 2)] * 10, key=repr)
    if kind == "many":
        noted = (tmp_path / "notes").read_text().splitlines()
        assert noted.count("open") == 1, "one worker"
        assert set(noted) == {"open", "keys 100"}, "each key of a batch once"


class Wrong(LookupFunction):
    def lookup(self, key_row: Row) -> Any:
        return 1 / 0


class Gone(LookupFunction):
    def lookup(self, key_row: Row) -> Any:
        raise ConnectionRefusedError("nobody at home")


@pytest.mark.parametrize(
    ("function", "error", "message"),
    [
        (Wrong(), UserCodeError, r"ZeroDivisionError.*test_lookup_join.py"),
        (Gone(), DatabaseUnavailable, r"Gone \(test_lookup_join.py:\d+\) does not answer: .*nobody at home"),
    ],
)
def test_functions_that_fail(
    spark: SparkSession, tmp_path: Path, function: LookupFunction, error: type[Exception], message: str
) -> None:
    runner = Runner(spark, tmp_path)
    env = runner.environment()
    numbers = env.from_collection([1, 2], "INT")
    options = {"lookup.max-retries": 0}
    runner.write(numbers.lookup_join(function, {"value": "id"}, output_type="a INT", options=options))
    with pytest.raises(error, match=message):
        runner.start(env).ended()
