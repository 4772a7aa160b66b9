"""Rows in real databases: their values, and that each is there once whatever happens between two commits."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable, Iterator
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from integration.database_servers import PASSWORD, SERVERS, USER, DatabaseServer
from integration.servers import running
from integration.spark.translate_support import Graph, schema
from yarnflow.api import FileSource, Row, StreamExecutionEnvironment, commit_once
from yarnflow.api.common.typeinfo import Types
from yarnflow.api.datastream.connectors.jdbc import JdbcConnectionOptions, JdbcExecutionOptions, JdbcSink
from yarnflow.api.datastream.functions import KeyedProcessFunction, RuntimeContext
from yarnflow.api.datastream.state import ValueStateDescriptor
from yarnflow.api.executor import use_executor
from yarnflow.config.configuration import Configuration
from yarnflow.core.ids import JobId
from yarnflow.errors import DatabaseError, DatabaseUnavailable, SinkTaken, YarnflowError
from yarnflow.graph.connectors import sinks
from yarnflow.graph.job_graph import JobGraph
from yarnflow.operators.databases.tokens import TABLE, RunToken
from yarnflow.spark.checkpoints.job import JobIdentity
from yarnflow.spark.connectors.jdbc.sink import JdbcWriter
from yarnflow.spark.progress.collector import ProgressCollector
from yarnflow.spark.run.graph_program import GraphProgram
from yarnflow.spark.run.user_errors import map_spark_error
from yarnflow.spark.script.program import ScriptProgram
from yarnflow.testing.kept_graph import KeptGraph

FILES, LINES, KEYS = 4, 30, 3
JOB = JobId("a" * 32)
COUNTS = "CREATE TABLE counts (word VARCHAR(20), n INT, line INT)"
#: of what does not depend on the database
ONE_DATABASE = pytest.mark.parametrize("server", ["postgresql"], indirect=True)
OTHERS_IN_DRILLS = pytest.mark.parametrize(
    "server", ["postgresql", pytest.param("mariadb", marks=pytest.mark.drill)], indirect=True
)


@pytest.fixture(scope="module", params=list(SERVERS))
def server(request: pytest.FixtureRequest) -> Iterator[DatabaseServer]:
    with running(SERVERS[request.param]) as found:
        yield found


@pytest.fixture(autouse=True)
def clean(server: DatabaseServer) -> None:
    server.start()
    server.run(*(f"DROP TABLE IF EXISTS {name}" for name in ("counts", "kinds", TABLE)))


def connection_of(server: DatabaseServer) -> JdbcConnectionOptions:
    builder = JdbcConnectionOptions.JdbcConnectionOptionsBuilder()
    return builder.with_url(server.url).with_user_name(USER).with_password(PASSWORD).build()


def execution(retries: int = 0) -> JdbcExecutionOptions:
    return JdbcExecutionOptions.builder().with_batch_size(7).with_max_retries(retries).build()


def graph_of(env: StreamExecutionEnvironment) -> JobGraph:
    kept = KeptGraph()
    with use_executor(kept):
        env.execute_async("jdbc")
    return kept.graphs[-1]


def environment() -> StreamExecutionEnvironment:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(2)
    return env


def attempt(
    spark: SparkSession, graph: JobGraph, directory: Path, number: int = 1, epoch: int = 1
) -> None:
    """Run an attempt of the job to its end; what it raises is what a driver would report."""
    program = GraphProgram(
        spark, graph, Configuration.empty(), str(directory), job=JobIdentity(JOB), attempt_number=number - 1,
        epoch=epoch,
    )  # fmt: skip
    program.prepare()
    program.start()
    program.await_end()


# --- values -------------------------------------------------------------------------------

WHEN = dt.datetime(2024, 2, 29, 23, 59, 58, 123456)
VALUES: list[tuple[Any, ...]] = [
    (1, 2**40, 0.1, True, "it's 100% \"ü\" ? \\ \n é😀", b"\x00\xff'", Decimal("12.34"), WHEN.date(), WHEN),
    (2, -1, -1e300, False, "", b"", Decimal("-0.01"), dt.date(1970, 1, 1), dt.datetime(1970, 1, 1)),
    (3, None, None, None, None, None, None, None, None),
]
FIELDS = ["id", "big", "real_", "flag", "words", "raw", "amount", "day_", "at_"]
DDL = (
    "id INT, big BIGINT, real_ DOUBLE, flag BOOLEAN, words STRING, raw BINARY, amount DECIMAL(9,2), "
    "day_ DATE, at_ TIMESTAMP"
)
ROW = Types.ROW_NAMED(
    FIELDS,
    [
        *(Types.INT(), Types.LONG(), Types.DOUBLE(), Types.BOOLEAN(), Types.STRING()),
        *(Types.PRIMITIVE_ARRAY(Types.BYTE()), Types.BIG_DEC(), Types.SQL_DATE(), Types.SQL_TIMESTAMP()),
    ],
)
INSERT_KINDS = f"INSERT INTO kinds VALUES ({', '.join('?' * len(FIELDS))})"


def create_kinds(server: DatabaseServer) -> None:
    postgresql = server.url.startswith("jdbc:postgresql")
    raw, real, at = "VARBINARY(20)", "DOUBLE", "DATETIME(6)"
    if postgresql:
        raw, real, at = "BYTEA", "DOUBLE PRECISION", "TIMESTAMP"
    words = "TEXT" if postgresql else "TEXT CHARACTER SET utf8mb4"
    server.run(
        f"CREATE TABLE kinds (id INT, big BIGINT, real_ {real}, flag BOOLEAN, words {words}, raw {raw}, "
        f"amount DECIMAL(9, 2), day_ DATE, at_ {at})"
    )


@pytest.mark.parametrize("as_columns", [True, pytest.param(False, marks=pytest.mark.gate)])
def test_values(spark: SparkSession, tmp_path: Path, server: DatabaseServer, as_columns: bool) -> None:
    create_kinds(server)
    env = environment()
    expected = VALUES
    if as_columns:
        rows = env.from_collection(VALUES, DDL)
    else:
        # SQL_TIMESTAMP has milliseconds, as in PyFlink
        expected = [tuple(_in_milliseconds(value) for value in values) for values in VALUES]
        elements = [Row(**dict(zip(FIELDS, values, strict=True))) for values in VALUES]
        rows = env.from_collection(elements, ROW).map(lambda row: row, ROW)
    rows.add_sink(JdbcSink.sink(INSERT_KINDS, ROW, connection_of(server)))
    attempt(spark, graph_of(env), tmp_path / "checkpoint")
    found = [
        tuple(bytes(v) if isinstance(v, memoryview) else bool(v) if n == 3 and v is not None else v
              for n, v in enumerate(row))
        for row in server.query("SELECT * FROM kinds ORDER BY id")
    ]  # fmt: skip
    assert found == expected


def _in_milliseconds(value: Any) -> Any:
    if not isinstance(value, dt.datetime):
        return value
    return value.replace(microsecond=value.microsecond // 1000 * 1000)


def test_instants_are_the_same_whatever_zone_the_server_has(
    spark: SparkSession, tmp_path: Path, server: DatabaseServer
) -> None:
    postgresql = server.url.startswith("jdbc:postgresql")
    server.run(f"CREATE TABLE kinds (at_ {'TIMESTAMPTZ' if postgresql else 'TIMESTAMP'})")
    env = environment()
    row = Types.ROW_NAMED(["at_"], [Types.SQL_TIMESTAMP()])
    rows = env.from_collection([Row(at_=WHEN.replace(microsecond=0))], row)
    rows.add_sink(JdbcSink.sink("INSERT INTO kinds VALUES (?)", row, connection_of(server)))
    attempt(spark, graph_of(env), tmp_path / "checkpoint")
    seconds = "EXTRACT(EPOCH FROM at_)" if postgresql else "UNIX_TIMESTAMP(at_)"
    ((found,),) = server.query(f"SELECT {seconds} FROM kinds")
    assert int(found) == int(WHEN.replace(tzinfo=dt.UTC).timestamp())


# --- faults -------------------------------------------------------------------------------


class Count(KeyedProcessFunction):
    """Counts the elements of each key."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.INT()))

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterator[Row]:
        number = (self.count.value() or 0) + 1
        self.count.update(number)
        yield Row(word=value.word, n=number, line=value.line)


COUNTED = Types.ROW_NAMED(["word", "n", "line"], [Types.STRING(), Types.INT(), Types.INT()])


def counting(
    server: DatabaseServer, directory: Path, sink: Callable[[Any], object] | None = None
) -> JobGraph:
    """A count per word, one small file in each micro-batch."""
    directory.mkdir(exist_ok=True)
    for file in range(FILES):
        lines = (f"k{n % KEYS},{file * LINES + n}\n" for n in range(LINES))
        (directory / f"{file}.csv").write_text("".join(lines))
    env = environment()
    source = FileSource(str(directory), "csv", "word STRING, line INT", max_files_per_trigger=1)
    rows = env.from_source(source, None, "lines").map(lambda row: row, Types.ROW_NAMED(
        ["word", "line"], [Types.STRING(), Types.INT()]
    ))  # fmt: skip
    counts = rows.key_by(lambda row: row.word).process(Count(), COUNTED)
    if sink is not None:
        sink(counts)
    else:
        insert = "INSERT INTO counts (word, n, line) VALUES (?, ?, ?)"
        counts.add_sink(JdbcSink.sink(insert, COUNTED, connection_of(server), execution()))
    return graph_of(env)


def assert_each_once(server: DatabaseServer) -> None:
    """Every line is there once, and every word was counted without a gap: rows and state agree."""
    found = server.query("SELECT word, n, line FROM counts")
    assert sorted(line for _, _, line in found) == list(range(FILES * LINES))
    each = FILES * LINES // KEYS
    assert sorted((word, n) for word, n, _ in found) == [
        (f"k{key}", n) for key in range(KEYS) for n in range(1, each + 1)
    ]


class Crash(Exception):
    """The driver ends here."""


def crash_in_batch(number: int, after_commit: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once, in this batch: before the database has it, or before Spark knows that it has."""
    write = JdbcWriter.write
    crashed: list[int] = []

    def crashing(self: JdbcWriter, frame: DataFrame, batch_id: int) -> int:
        ends = batch_id == number and not crashed
        if ends:
            crashed.append(batch_id)
        if ends and not after_commit:
            raise Crash
        rows = write(self, frame, batch_id)
        if ends:
            raise Crash
        return rows

    monkeypatch.setattr(JdbcWriter, "write", crashing)


@OTHERS_IN_DRILLS
@pytest.mark.parametrize("after_commit", [pytest.param(True, marks=pytest.mark.gate), False])
def test_a_crash_in_a_batch(
    spark: SparkSession, tmp_path: Path, server: DatabaseServer, monkeypatch: pytest.MonkeyPatch,
    after_commit: bool,
) -> None:  # fmt: skip
    server.run(COUNTS)
    graph = counting(server, tmp_path / "in")
    crash_in_batch(2, after_commit, monkeypatch)
    with pytest.raises(YarnflowError):
        attempt(spark, graph, tmp_path / "checkpoint")
    before = 3 if after_commit else 2
    assert server.query("SELECT COUNT(*) FROM counts") == [(before * LINES,)]
    attempt(spark, graph, tmp_path / "checkpoint", number=2)
    assert_each_once(server)
    ((sink, job_id, epoch, number, batch_id),) = server.query(
        f"SELECT sink, job_id, epoch, attempt, batch_id FROM {TABLE}"
    )
    assert (job_id, epoch, number, batch_id) == (JOB, 1, 2, FILES - 1)
    (metadata,) = (tmp_path / "checkpoint").glob("query-*/metadata")
    # made before Spark was asked to start the query, and taken by it
    assert sink.startswith(json.loads(metadata.read_text())["id"] + "/")


@OTHERS_IN_DRILLS
def test_a_database_that_is_killed_and_comes_back(
    spark: SparkSession, tmp_path: Path, server: DatabaseServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.run(COUNTS)
    graph = counting(server, tmp_path / "in")
    write = JdbcWriter.write

    def killing(self: JdbcWriter, frame: DataFrame, batch_id: int) -> int:
        if batch_id == 1:
            server.kill()
        return write(self, frame, batch_id)

    with monkeypatch.context() as patched:
        patched.setattr(JdbcWriter, "write", killing)
        with pytest.raises(DatabaseUnavailable, match=f"jdbc:[a-z]+://127.0.0.1:{server.port}/shop"):
            attempt(spark, graph, tmp_path / "checkpoint")
    with pytest.raises(DatabaseUnavailable):
        # it is looked at before anything is read
        attempt(spark, graph, tmp_path / "checkpoint", number=2)
    server.start()
    attempt(spark, graph, tmp_path / "checkpoint", number=3)
    assert_each_once(server)


@pytest.mark.gate
def test_a_driver_that_was_replaced_is_refused_by_the_database(
    spark: SparkSession, server: DatabaseServer
) -> None:
    server.run("CREATE TABLE kinds (id INT)")
    sink = sinks.JdbcSink("INSERT INTO kinds VALUES (?)", server.url, USER, PASSWORD, 5000, 0)
    first, second = (JdbcWriter(sink, "query/sink", RunToken(JOB, 1, number)) for number in (1, 2))
    first.open()
    assert first.write(spark.range(10), 0) == 10
    second.open()
    with pytest.raises(Exception, match="may not write") as caught:
        first.write(spark.range(10, 20), 1)
    assert isinstance(map_spark_error(caught.value), SinkTaken)
    assert second.write(spark.range(10), 0) == 10, "done again"
    assert second.write(spark.range(10, 20).repartition(3), 1) == 10
    assert sorted(server.query("SELECT id FROM kinds")) == [(n,) for n in range(20)]


def test_a_statement_that_the_database_refuses(
    spark: SparkSession, tmp_path: Path, server: DatabaseServer
) -> None:
    """The message is the database's, and nothing of the batch is there."""
    server.run("CREATE TABLE counts (word VARCHAR(20), n INT, line INT PRIMARY KEY)")
    server.run(f"INSERT INTO counts VALUES ('x', 0, {LINES + 1})")
    said = r"^'.+' \(\S+:\d+\): jdbc:.*([Dd]uplicate|already exists)"
    with pytest.raises(DatabaseError, match=said) as caught:
        attempt(spark, counting(server, tmp_path / "in"), tmp_path / "checkpoint")
    assert type(caught.value) is DatabaseError
    # files come in any order, and this one is a batch
    of_its_file = f"SELECT line FROM counts WHERE line BETWEEN {LINES} AND {2 * LINES - 1}"
    assert server.query(of_its_file) == [(LINES + 1,)]


# --- functions of the user's --------------------------------------------------------------


@OTHERS_IN_DRILLS
def test_commit_once_in_a_function(
    spark: SparkSession, tmp_path: Path, server: DatabaseServer
) -> None:
    """It fails after its commit, once."""
    server.run(COUNTS)
    failed = tmp_path / "failed"

    def write(frame: DataFrame, batch_id: int) -> None:
        rows = [tuple(row) for row in frame.collect()]
        with closing(server.connect()) as connection, commit_once(connection) as is_new:
            if is_new:
                insert = "INSERT INTO counts (word, n, line) VALUES (%s, %s, %s)"
                connection.cursor().executemany(insert, rows)
        if batch_id == 1 and not failed.exists():
            failed.touch()
            raise ZeroDivisionError

    graph = counting(server, tmp_path / "in", lambda stream: stream.foreach_batch(write))
    with pytest.raises(YarnflowError, match="ZeroDivisionError"):
        attempt(spark, graph, tmp_path / "checkpoint")
    attempt(spark, graph, tmp_path / "checkpoint", number=2)
    assert_each_once(server)


@ONE_DATABASE
def test_a_graph_built_by_hand_has_its_rows(
    spark: SparkSession, tmp_path: Path, server: DatabaseServer
) -> None:
    """Without Python functions before the sink, in one frame that does not stream."""
    server.run("CREATE TABLE kinds (id INT, word VARCHAR(10))")
    g = Graph()
    source = g.collection([(n, f"w{n}") for n in range(50)], schema("id int, word string"))
    g.sink(sinks.JdbcSink("INSERT INTO kinds VALUES (?, ?)", server.url, USER, PASSWORD), source)
    attempt(spark, g.job(), tmp_path / "checkpoint")
    attempt(spark, g.job(), tmp_path / "checkpoint", number=2)
    assert sorted(server.query("SELECT id, word FROM kinds")) == [(n, f"w{n}") for n in range(50)]


SCRIPT = """
import sys
from contextlib import closing
from pathlib import Path
from pyspark.sql import SparkSession
from integration.database_servers import DATABASE, PASSWORD, USER
from yarnflow.api import batch_token, commit_once

_, kind, port, directory, checkpoint, failed = sys.argv


def connect():
    if kind == "PostgreSql":
        import psycopg
        return psycopg.connect(host="127.0.0.1", port=port, dbname=DATABASE, user=USER, password=PASSWORD)
    import pymysql
    return pymysql.connect(host="127.0.0.1", port=int(port), database=DATABASE, user=USER, password=PASSWORD)


def write(frame, batch_id):
    assert batch_token().batch_id == batch_id and batch_token().sink.endswith("/foreach-batch")
    rows = [tuple(row) for row in frame.collect()]
    with closing(connect()) as connection, commit_once(connection) as is_new:
        if is_new:
            connection.cursor().executemany("INSERT INTO counts (word, n, line) VALUES (%s, 0, %s)", rows)
    if batch_id == 1 and not Path(failed).exists():
        Path(failed).touch()
        raise ZeroDivisionError


spark = SparkSession.builder.getOrCreate()
lines = spark.readStream.schema("word STRING, line INT").option("maxFilesPerTrigger", 1).csv(directory)
query = lines.writeStream.foreachBatch(write).option("checkpointLocation", checkpoint)
query.trigger(availableNow=True).start().awaitTermination()
"""


def test_commit_once_in_a_script(spark: SparkSession, tmp_path: Path, server: DatabaseServer) -> None:
    server.run(COUNTS)
    counting(server, tmp_path / "in")

    def attempt_script(number: int) -> None:
        program = ScriptProgram(
            spark,
            {"job.py": SCRIPT.encode()},
            ["job.py", type(server).__name__, str(server.port),
             *(str(tmp_path / name) for name in ("in", "checkpoint", "failed"))],
            tmp_path / f"job{number}", str(tmp_path / "job-checkpoint"), ProgressCollector(),
            token=RunToken(JOB, 1, number),
        )  # fmt: skip
        program.prepare()
        program.start()
        program.await_end()

    with pytest.raises(YarnflowError, match="ZeroDivisionError"):
        attempt_script(1)
    attempt_script(2)
    lines = sorted(line for (line,) in server.query("SELECT line FROM counts"))
    assert lines == list(range(FILES * LINES))
    assert [int(n) for (n,) in server.query(f"SELECT attempt FROM {TABLE}")] == [2]
