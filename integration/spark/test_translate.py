"""Every operator, source and sink on a real Spark."""

from __future__ import annotations

import datetime as dt
import socketserver
import threading
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from integration.spark.translate_support import Graph, key, program, rows, run, schema
from tests.patience import PATIENCE
from yarnflow.errors import InvalidExpression, SchemaError, SourceNotFound, UserCodeError, YarnflowError
from yarnflow.graph.connectors.sources import FileSource, RateSource, SocketSource
from yarnflow.graph.operators import (
    AssignTimestamps,
    FilterExpression,
    Key,
    PythonKind,
    RunningAggregate,
    SelectOperator,
    SqlOperator,
    UnionOperator,
    Window,
    WindowAggregate,
    WindowKind,
)
from yarnflow.graph.rows import Row
from yarnflow.graph.schema import Field, Schema
from yarnflow.operators.functions.elements import MapFunction
from yarnflow.spark.connectors.sources import Sources
from yarnflow.spark.translate.query_groups import GraphIndex, query_groups
from yarnflow.spark.translate.translator import Translator

MAP, FLAT_MAP, FILTER = PythonKind.MAP, PythonKind.FLAT_MAP, PythonKind.FILTER


@pytest.mark.gate
def test_word_count(spark: SparkSession, tmp_path: Path) -> None:
    g = Graph()
    lines = g.collection(["to be or", "not to be"], schema("string"))
    words = g.python(FLAT_MAP, lambda line: line.split(), schema("string"), lines)
    count = g.add(
        RunningAggregate(Key(("value",), ("word",)), ("count(*) AS n",)),
        schema("word string, n bigint"),
        words,
    )
    g.files(tmp_path / "out", count)
    run(spark, g, tmp_path)
    assert rows(tmp_path / "out") == [("be", 2), ("not", 1), ("or", 1), ("to", 2)]


@pytest.mark.gate
def test_five_functions_are_one_map_in_arrow(spark: SparkSession, tmp_path: Path) -> None:
    class AddOne(MapFunction):
        def open(self, runtime_context: Any = None) -> None:
            self.one = 1

        def map(self, value: Any) -> Any:
            return value + self.one

    g = Graph()
    node = g.collection([1, 2, 3, 4], schema("bigint"))
    node = g.python(MAP, AddOne(), schema("bigint"), node)
    node = g.python(FILTER, lambda v: v % 2 == 0, schema("bigint"), node)
    node = g.python(FLAT_MAP, lambda v: [v] * v, schema("bigint"), node)
    node = g.python(MAP, lambda v: {"a": v, "b": str(v)}, schema("a bigint, b string"), node)
    node = g.python(MAP, lambda r: Row(b=r.b + "!", a=r["a"]), schema("a bigint, b string"), node)
    g.files(tmp_path / "out", node)
    frame = Translator(spark, GraphIndex(g.job()), Sources(spark, str(tmp_path / "plan"))).frame(node)
    plan = frame._jdf.queryExecution().analyzed().toString()
    assert sum(line.lstrip(" :+-~").startswith("MapInArrow ") for line in plan.splitlines()) == 1, plan
    run(spark, g, tmp_path)
    assert rows(tmp_path / "out") == sorted([(2, "2!")] * 2 + [(4, "4!")] * 4)


@pytest.mark.gate
def test_types_go_through_python_unchanged(spark: SparkSession, tmp_path: Path) -> None:
    output = Schema(
        (
            Field("i", "int"), Field("f", "double"), Field("d", "decimal(10,2)"), Field("day", "date"),
            Field("ts", "timestamp"), Field("b", "binary"), Field("a", "array<timestamp>"),
            Field("m", "map<string,int>"), Field("s", "struct<x:int,t:timestamp>"), Field("n", "string"),
        )
    )  # fmt: skip
    g = Graph()
    query = (
        "select 1 i, 1.5D f, cast('2.50' as decimal(10,2)) d, date'2020-02-29' day, "
        "timestamp'2020-01-01 12:00:00' ts, "
        "cast('xy' as binary) b, array(timestamp'2020-01-01 12:00:00') a, map('k', 7) m, "
        "named_struct('x', 3, 't', timestamp'2020-01-01 12:00:00') s, cast(null as string) n"
    )
    node = g.add(SqlOperator(query), output)

    def check(r: Any) -> Any:
        noon = dt.datetime(2020, 1, 1, 12)
        expected = (
            1,
            1.5,
            Decimal("2.50"),
            dt.date(2020, 2, 29),
            noon,
            b"xy",
            [noon],
            {"k": 7},
            (3, noon),
            None,
        )
        assert tuple(r) == expected, tuple(r)
        assert r.s.x == 3
        return r

    node = g.python(MAP, check, output, node)
    node = g.add(SelectOperator(("*", "ts = timestamp'2020-01-01 12:00:00' AS same")), Schema(()), node)
    g.files(tmp_path / "out", node)
    run(spark, g, tmp_path)
    (found,) = pq.read_table(tmp_path / "out").to_pylist()
    assert found["same"] is True
    assert found["d"] == Decimal("2.50") and found["m"] == [("k", 7)] and found["s"]["x"] == 3


def test_value_that_does_not_fit_its_type(spark: SparkSession, tmp_path: Path) -> None:
    g = Graph()
    node = g.collection(["1", "x"], schema("string"))
    node = g.python(MAP, lambda v: (v, int(v) if v == "1" else v), schema("a string, b bigint"), node)
    g.files(tmp_path / "out", node)
    with pytest.raises(
        YarnflowError, match=r"<lambda> \(job.py:7\): field 'b' is declared bigint, got 'x' \(str\)"
    ):
        run(spark, g, tmp_path)


@pytest.mark.gate
def test_user_error_names_the_exception(spark: SparkSession, tmp_path: Path) -> None:
    g = Graph()
    node = g.collection([1, 0], schema("bigint"))
    g.print(g.python(MAP, lambda v: 1 // v, schema("bigint"), node))
    with pytest.raises(YarnflowError, match="ZeroDivisionError"):
        run(spark, g, tmp_path)


@pytest.mark.gate
def test_files_csv_json_text(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text("k,n\na,1\nb,2\n")
    (tmp_path / "in" / "b.csv").write_text("k,n\nc,3\n")
    g = Graph()
    inferred = Schema((Field("k"), Field("n")))
    source = g.add(
        FileSource(str(tmp_path / "in"), "csv", inferred, {"header": "true", "inferSchema": "true"}, True, 1),
        inferred,
    )
    node = g.add(FilterExpression("n > 1"), inferred, source)
    node = g.add(SelectOperator(("upper(k) AS k", "n * 2 AS n")), inferred, node)
    g.files(tmp_path / "json", node, "json")
    g.files(tmp_path / "csv", node, "csv", options={"header": "true"}, partition_by=("k",))
    text = g.add(FileSource(str(tmp_path / "in" / "a.csv"), "text", schema("string")), schema("string"))
    g.files(tmp_path / "text", text)
    assert len(query_groups(g.job())) == 2
    run(spark, g, tmp_path)
    found = sorted((r.k, r.n) for r in spark.read.json(str(tmp_path / "json")).collect())
    assert found == [("B", 4), ("C", 6)]
    assert sorted(p.name for p in (tmp_path / "csv").iterdir()) == ["k=B", "k=C"]
    assert [p.read_text() for p in (tmp_path / "csv" / "k=B").iterdir()] == ["n\n4\n"]
    assert rows(tmp_path / "text") == [("a,1",), ("b,2",), ("k,n",)]
    files = [p for p in tmp_path.rglob("*") if p.suffix == ".crc" or p.name.startswith(("_", ".yarnflow"))]
    assert [p for p in files if "checkpoint" not in p.parts] == []


def test_missing_path(spark: SparkSession, tmp_path: Path) -> None:
    g = Graph()
    g.print(g.add(FileSource(str(tmp_path / "nowhere"), "text", schema("string")), schema("string")))
    with pytest.raises(SourceNotFound, match="nowhere does not exist"):
        run(spark, g, tmp_path)


@pytest.mark.gate
def test_bad_expression_names_the_line(spark: SparkSession, tmp_path: Path) -> None:
    g = Graph()
    node = g.collection([1], schema("bigint"))
    g.print(g.add(FilterExpression("nope > 1"), schema("bigint"), node))
    with pytest.raises(InvalidExpression, match=r"\(job.py:2\).*nope"):
        run(spark, g, tmp_path)


def test_undeclared_type(spark: SparkSession, tmp_path: Path) -> None:
    g = Graph()
    node = g.collection([1], schema("bigint"))
    g.print(g.python(MAP, lambda v: v, Schema((Field("value"),), True), node))
    with pytest.raises(SchemaError, match="declare it"):
        run(spark, g, tmp_path)


def test_counted_rate(spark: SparkSession, tmp_path: Path) -> None:
    g = Graph()
    node = g.add(RateSource(20, 30), schema("timestamp timestamp, value bigint"))
    g.files(tmp_path / "out", node)
    run(spark, g, tmp_path)
    assert sorted(r[1] for r in rows(tmp_path / "out")) == list(range(30))


def test_windows_of_a_counted_rate_all_fire(spark: SparkSession, tmp_path: Path) -> None:
    g = Graph()
    node = g.add(RateSource(20, 30), schema("timestamp timestamp, value bigint"))
    node = g.add(AssignTimestamps("timestamp", 0), schema("timestamp timestamp, value bigint"), node)
    window = Window(WindowKind.TUMBLING, size_ms=500, slide_ms=500)
    output = schema("part bigint, window_start timestamp, window_end timestamp, records bigint")
    node = g.add(WindowAggregate(key("value % 2 AS part"), window, ("count(*) AS records",)), output, node)
    g.files(tmp_path / "out", node)
    run(spark, g, tmp_path)
    assert sum(r[3] for r in rows(tmp_path / "out")) == 30


def test_socket(spark: SparkSession, tmp_path: Path) -> None:
    done = threading.Event()

    class Lines(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            self.request.sendall(b"one\ntwo\n")
            done.wait(PATIENCE.thread_s)

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Lines) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        g = Graph()
        g.files(
            tmp_path / "out", g.add(SocketSource("127.0.0.1", server.server_address[1]), schema("string"))
        )
        made = program(spark, g, tmp_path)
        made.prepare()
        made.start()
        try:
            while len(rows(tmp_path / "out")) < 2:
                threading.Event().wait(0.1)
        finally:
            done.set()
            made.stop()
            server.shutdown()
        made.await_end()
    assert rows(tmp_path / "out") == [("one",), ("two",)]


@pytest.mark.gate
def test_sql_over_streams_and_without(spark: SparkSession, tmp_path: Path) -> None:
    g = Graph()
    a = g.collection([("x", 1), ("y", 2)], schema("k string, n bigint"))
    joined = g.add(
        SqlOperator("select k, sum(n) AS n from a group by k", ("a",), True, True),
        schema("k string, n bigint"),
        a,
    )
    g.files(tmp_path / "stream", joined)
    g.files(tmp_path / "batch", g.add(SqlOperator("select id from range(3)"), schema("id bigint")))
    run(spark, g, tmp_path)
    assert rows(tmp_path / "stream") == [("x", 1), ("y", 2)]
    assert rows(tmp_path / "batch") == [(0,), (1,), (2,)]


def test_union_and_rebalance(spark: SparkSession, tmp_path: Path) -> None:
    g = Graph()
    a = g.collection([1, 2], schema("bigint"))
    b = g.collection([3], schema("bigint"))
    both = g.add(UnionOperator(), schema("bigint"), a, b)
    node = g.python(MAP, lambda v: v * 10, schema("bigint"), both, rebalance=True)
    g.files(tmp_path / "out", node)
    run(spark, g, tmp_path)
    assert rows(tmp_path / "out") == [(10,), (20,), (30,)]


def test_print_and_foreach_batch_share_a_query(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = str(tmp_path / "seen")

    def seen(frame: DataFrame, batch_id: int) -> None:
        with open(target, "a") as out:
            out.write(f"{batch_id} {sorted(tuple(r) for r in frame.collect())}\n")

    reads = str(tmp_path / "reads")

    def read_once(v: Any) -> Any:
        with open(reads, "a") as out:
            out.write("r")
        return v, None if v == 1 else float(v)

    g = Graph()
    node = g.collection([1, 2], schema("bigint"))
    node = g.python(MAP, read_once, schema("a bigint, b double"), node)
    g.print(node, "out")
    g.print(g.add(SelectOperator(("a AS value",)), schema("bigint"), node))
    g.each_batch(seen, g.python(FILTER, lambda r: r.a == 2, g.output(node), node))
    assert len(query_groups(g.job())) == 1
    run(spark, g, tmp_path)
    printed = capsys.readouterr().out.splitlines()
    assert sorted(printed) == ["1", "2", "out> +I[1, null]", "out> +I[2, 2.0]"]
    assert Path(target).read_text() == "0 [(2, 2.0)]\n"
    assert Path(reads).read_text() == "rr"


@pytest.mark.gate
def test_foreach_batch_failure_has_the_users_traceback(spark: SparkSession, tmp_path: Path) -> None:
    def fails(frame: DataFrame, batch_id: int) -> None:
        raise ValueError("no such table")

    g = Graph()
    g.each_batch(fails, g.collection([1], schema("bigint")))
    with pytest.raises(UserCodeError, match="ValueError: no such table .*fails") as raised:
        run(spark, g, tmp_path)
    assert 'raise ValueError("no such table")' in raised.value.traceback_text
