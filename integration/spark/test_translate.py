"""Every operator, source and sink on a real Spark."""

from __future__ import annotations

import datetime as dt
import os
import socketserver
import threading
from collections import Counter, defaultdict
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from integration.spark.translate_support import Graph, key, make_session, program, run, schema
from yarnflow.errors import (
    InvalidExpression,
    SchemaError,
    SourceNotFound,
    UnsupportedGraph,
    UserCodeError,
    YarnflowError,
)
from yarnflow.graph.closures import make_closure
from yarnflow.graph.functions import MapFunction, ProcessWindowFunction, ReduceFunction
from yarnflow.graph.operators import (
    AssignTimestamps,
    FileSource,
    FilterExpression,
    Key,
    KeyedReduce,
    PythonKind,
    RateSource,
    RunningAggregate,
    SelectOperator,
    SocketSource,
    SqlOperator,
    UnionOperator,
    Window,
    WindowAggregate,
    WindowFunctionKind,
    WindowKind,
    WindowProcess,
)
from yarnflow.graph.rows import Row
from yarnflow.graph.schema import Field, Schema
from yarnflow.spark.query_groups import GraphIndex, query_groups
from yarnflow.spark.sources import Sources
from yarnflow.spark.translate import Translator

HOUR_MS = 3_600_000
EPOCH = dt.datetime(2013, 1, 1)
MAP, FLAT_MAP, FILTER = PythonKind.MAP, PythonKind.FLAT_MAP, PythonKind.FILTER


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    session = make_session()
    yield session
    session.stop()


def rows(path: Path) -> list[tuple[Any, ...]]:
    """What any reader finds in a directory of Parquet files, sorted."""
    if not path.exists():
        return []
    table = pq.read_table(path)
    return sorted((tuple(r.values()) for r in table.to_pylist()), key=repr)


def at(minutes: int) -> dt.datetime:
    return EPOCH + dt.timedelta(minutes=minutes)


def ms(time: dt.datetime) -> int:
    return int((time - dt.datetime(1970, 1, 1)).total_seconds() * 1000)


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


def test_five_functions_are_one_map_in_arrow(spark: SparkSession, tmp_path: Path) -> None:
    class AddOne(MapFunction):
        def open(self) -> None:
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


def test_user_error_names_the_exception(spark: SparkSession, tmp_path: Path) -> None:
    g = Graph()
    node = g.collection([1, 0], schema("bigint"))
    g.print(g.python(MAP, lambda v: 1 // v, schema("bigint"), node))
    with pytest.raises(YarnflowError, match="ZeroDivisionError"):
        run(spark, g, tmp_path)


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
    litter = [p for p in tmp_path.rglob("*") if p.suffix == ".crc" or p.name.startswith(("_", ".yarnflow"))]
    assert [p for p in litter if "checkpoint" not in p.parts] == []


def test_missing_path(spark: SparkSession, tmp_path: Path) -> None:
    g = Graph()
    g.print(g.add(FileSource(str(tmp_path / "nowhere"), "text", schema("string")), schema("string")))
    with pytest.raises(SourceNotFound, match="nowhere does not exist"):
        run(spark, g, tmp_path)


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
            done.wait(60)

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


def test_sql_over_streams_and_without(spark: SparkSession, tmp_path: Path) -> None:
    g = Graph()
    a = g.collection([("x", 1), ("y", 2)], schema("k string, n bigint"))
    joined = g.add(
        SqlOperator("select k, sum(n) AS n from a group by k", ("a",)), schema("k string, n bigint"), a
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


def test_foreach_batch_failure_has_the_users_traceback(spark: SparkSession, tmp_path: Path) -> None:
    def fails(frame: DataFrame, batch_id: int) -> None:
        raise ValueError("no such table")

    g = Graph()
    g.each_batch(fails, g.collection([1], schema("bigint")))
    with pytest.raises(UserCodeError, match="ValueError: no such table .*fails") as raised:
        run(spark, g, tmp_path)
    assert 'raise ValueError("no such table")' in raised.value.traceback_text


# --- keyed and windowed ---------------------------------------------------------------------


def test_keyed_reduce_keeps_its_state_over_restarts(spark: SparkSession, tmp_path: Path) -> None:
    class Last(ReduceFunction):
        def reduce(self, value1: Any, value2: Any) -> Any:
            assert value1.ts.tzinfo is None
            return Row(k=value1.k, n=value1.n + value2.n, ts=max(value1.ts, value2.ts))

    (tmp_path / "in").mkdir()

    def put(name: str, text: str) -> None:
        (tmp_path / "in" / name).write_text(text)

    def graph() -> Graph:
        g = Graph()
        fields = schema("k string, n bigint, ts timestamp")
        source = g.add(FileSource(str(tmp_path / "in"), "csv", fields), fields)
        keyed = g.python(
            PythonKind.KEY, lambda r: r.k, Schema((*fields.fields, Field("__key", "string"))), source
        )
        reduce = KeyedReduce(Key(("__key",), ("k",)), make_closure(Last(), "job.py:8"))
        node = g.add(reduce, fields, keyed, new_vertex=True)
        node = g.python(MAP, lambda r: (r.k, r.n, r.ts), fields, node)
        g.files(tmp_path / "out", node)
        return g

    put("1.csv", "a,1,2013-01-01 12:00:00\na,2,2013-01-01 11:00:00\nb,5,2013-01-01 12:00:00\n")
    run(spark, graph(), tmp_path)
    put("2.csv", "a,10,2013-01-02 12:00:00\n")
    run(spark, graph(), tmp_path)
    found = [(k, n, ts.replace(tzinfo=None)) for k, n, ts in rows(tmp_path / "out")]
    assert found == [
        ("a", 13, dt.datetime(2013, 1, 2, 12)),
        ("a", 3, dt.datetime(2013, 1, 1, 12)),
        ("b", 5, dt.datetime(2013, 1, 1, 12)),
    ]


EVENTS = [(f"k{n % 3}", at(n * 7), n) for n in range(60)]
EVENT_SCHEMA = schema("k string, ts timestamp, n bigint")


def event_source(g: Graph) -> int:
    node = g.collection(EVENTS, EVENT_SCHEMA)
    return g.add(AssignTimestamps("ts", 60_000), EVENT_SCHEMA, node)


def sliding(size: int, slide: int) -> dict[tuple[str, dt.datetime], list[int]]:
    """Plain Python's windows: (key, start) → values."""
    found: dict[tuple[str, dt.datetime], list[int]] = defaultdict(list)
    for k, ts, n in EVENTS:
        minute = int((ts - EPOCH).total_seconds() // 60)
        start = minute // slide * slide
        while start > minute - size:
            found[k, at(start)].append(n)
            start -= slide
    return found


def plain(found: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return [tuple(v.replace(tzinfo=None) if isinstance(v, dt.datetime) else v for v in row) for row in found]


@pytest.mark.parametrize(("size", "slide"), [(60, 60), (60, 30)])
def test_window_aggregate(spark: SparkSession, tmp_path: Path, size: int, slide: int) -> None:
    kind = WindowKind.TUMBLING if size == slide else WindowKind.SLIDING
    window = Window(kind, size_ms=size * 60_000, slide_ms=slide * 60_000)
    output = schema("k string, window_start timestamp, window_end timestamp, total bigint")
    g = Graph()
    node = g.add(WindowAggregate(key("k"), window, ("sum(n) AS total",)), output, event_source(g))
    g.files(tmp_path / "out", node)
    run(spark, g, tmp_path)
    expected = sorted(
        (k, s, s + dt.timedelta(minutes=size), sum(v)) for (k, s), v in sliding(size, slide).items()
    )
    assert sorted(plain(rows(tmp_path / "out"))) == expected
    run(spark, g, tmp_path)  # ended jobs stay ended: nothing twice
    assert len(rows(tmp_path / "out")) == len(expected)


def test_session_window_then_tumbling_window(spark: SparkSession, tmp_path: Path) -> None:
    output = schema("k string, window_start timestamp, window_end timestamp, n bigint")
    g = Graph()
    node = g.collection(
        [("a", at(0)), ("a", at(5)), ("a", at(40)), ("b", at(3))], schema("k string, ts timestamp")
    )
    node = g.add(AssignTimestamps("ts", 0), schema("k string, ts timestamp"), node)
    session = Window(WindowKind.SESSION, gap_ms=600_000)
    node = g.add(WindowAggregate(key("k"), session, ("count(*) AS n",)), output, node)
    g.files(tmp_path / "sessions", node)
    daily = Window(WindowKind.TUMBLING, size_ms=24 * HOUR_MS)
    node = g.add(WindowAggregate(key("k"), daily, ("count(*) AS sessions", "sum(n) AS n")), Schema(()), node)
    g.files(tmp_path / "days", node)
    run(spark, g, tmp_path)
    assert plain(rows(tmp_path / "sessions")) == [
        ("a", at(0), at(15), 2), ("a", at(40), at(50), 1), ("b", at(3), at(13), 1),
    ]  # fmt: skip
    assert plain(rows(tmp_path / "days")) == [("a", at(0), at(1440), 2, 3), ("b", at(0), at(1440), 1, 1)]


def test_python_window_functions(spark: SparkSession, tmp_path: Path) -> None:
    class Median(ProcessWindowFunction):
        def process(self, key: Any, context: Any, elements: Any) -> Any:
            values = [e.n for e in elements]
            assert values == sorted(values)
            yield key, context.window().start, context.window().end, values[len(values) // 2]

    g = Graph()
    node = g.collection(EVENTS, EVENT_SCHEMA)
    node = g.python(PythonKind.TIMESTAMP, lambda r: ms_of(r.ts), EVENT_SCHEMA, node)
    node = g.add(AssignTimestamps("", 0), EVENT_SCHEMA, node)
    keyed = Schema((*EVENT_SCHEMA.fields, Field("__key", "string")))
    node = g.python(PythonKind.KEY, lambda r: r.k, keyed, node)
    window = Window(WindowKind.TUMBLING, size_ms=HOUR_MS)
    the_key = Key(("__key",), ("key",))
    output = schema("k string, start bigint, end bigint, median bigint")
    process = WindowProcess(the_key, window, WindowFunctionKind.PROCESS, make_closure(Median(), "job.py:5"))
    median = g.add(process, output, node, new_vertex=True)
    median = g.python(FILTER, lambda r: r.median > 3, output, median)
    g.files(tmp_path / "median", median)
    reduce = WindowProcess(
        the_key,
        window,
        WindowFunctionKind.REDUCE,
        make_closure(lambda a, b: (a.k, b.ts, a.n + b.n), "job.py:6"),
    )
    g.files(tmp_path / "sum", g.add(reduce, EVENT_SCHEMA, node, new_vertex=True))
    run(spark, g, tmp_path)
    windows = sliding(60, 60)
    medians = [(k, ms(s), ms(s) + HOUR_MS, v[len(v) // 2]) for (k, s), v in windows.items()]
    assert sorted(rows(tmp_path / "median")) == sorted(m for m in medians if m[3] > 3)
    sums = [(k, at(v[-1] * 7), sum(v)) for (k, s), v in windows.items()]
    assert sorted(plain(rows(tmp_path / "sum"))) == sorted(sums)


def ms_of(time: dt.datetime) -> int:
    return int(time.replace(tzinfo=dt.timezone.utc).timestamp() * 1000)


def test_null_event_time_is_an_error(spark: SparkSession, tmp_path: Path) -> None:
    g = Graph()
    node = g.collection([("a", None)], schema("k string, ts timestamp"))
    node = g.add(AssignTimestamps("ts", 0), schema("k string, ts timestamp"), node)
    window = Window(WindowKind.TUMBLING, size_ms=HOUR_MS)
    g.print(g.add(WindowAggregate(key("k"), window, ("count(*) AS n",)), schema("k string, n bigint"), node))
    with pytest.raises(YarnflowError, match="record without event time"):
        run(spark, g, tmp_path)


def test_window_behind_python_behind_window_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    g = Graph()
    window = Window(WindowKind.TUMBLING, size_ms=HOUR_MS)
    output = schema("k string, window_start timestamp, window_end timestamp, n bigint")
    node = g.add(WindowAggregate(key("k"), window, ("count(*) AS n",)), output, event_source(g))
    node = g.python(MAP, lambda r: r, output, node)
    g.print(g.add(WindowAggregate(key("k"), window, ("count(*) AS n",)), output, node))
    with pytest.raises(UnsupportedGraph, match="loses the watermark"):
        run(spark, g, tmp_path)


# --- crashes ----------------------------------------------------------------------------------


def test_restart_between_batches_and_inside_a_commit(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from yarnflow.spark.hadoop_files import HadoopFiles

    (tmp_path / "in").mkdir()
    for n in range(3):
        (tmp_path / "in" / f"{n}.csv").write_text("".join(f"{n * 10 + i}\n" for i in range(10)))

    def graph() -> Graph:
        g = Graph()
        source = g.add(
            FileSource(str(tmp_path / "in"), "csv", schema("n bigint, x string"), {}, True, 1),
            schema("bigint"),
        )
        spread = g.add(SelectOperator(("n", "n % 2 AS half")), schema("n bigint, half bigint"), source)
        g.files(tmp_path / "out", spread, partition_by=("half",))
        return g

    moved = Counter[str]()
    real = HadoopFiles.rename

    class Crash(Exception):
        pass

    def crashing(self: HadoopFiles, source: str, target: str) -> None:
        if "/out/half" in target:
            moved["files"] += 1
            if moved["files"] == crash_at:
                raise Crash("power cut")
        real(self, source, target)

    monkeypatch.setattr(HadoopFiles, "rename", crashing)
    # the second file of batch 0, then the first of batch 1, then none
    for crash_at in (2, 2, 0):
        moved.clear()
        if crash_at:
            with pytest.raises(YarnflowError):
                run(spark, graph(), tmp_path)
        else:
            run(spark, graph(), tmp_path)
    assert sorted(r[0] for r in rows(tmp_path / "out")) == list(range(30))
    assert not (tmp_path / "out" / ".yarnflow-staging").exists()


def test_batch_done_again_after_its_files_were_moved(spark: SparkSession, tmp_path: Path) -> None:
    g = Graph()
    g.files(tmp_path / "out", g.collection(list(range(5)), schema("bigint")))
    made = program(spark, g, tmp_path)
    made.prepare()
    made.start()
    while not list((tmp_path / "checkpoint").rglob("commits/0")):
        threading.Event().wait(0.1)
    made.stop()
    # Spark lost the commit: it will do batch 0 again
    for commit in (tmp_path / "checkpoint").rglob("commits/*0*"):
        commit.unlink()
    run(spark, g, tmp_path)
    assert rows(tmp_path / "out") == [(n,) for n in range(5)]


def test_stateful_batch_done_again_after_its_files_were_moved(spark: SparkSession, tmp_path: Path) -> None:
    """Spark counts the state stores that a batch wrote in the present run."""
    (tmp_path / "in").mkdir()
    for hour in range(4):
        file = tmp_path / "in" / f"{hour}.csv"
        file.write_text("".join(f"k{n},2013-01-01 0{hour}:{n}0:00,{hour}\n" for n in range(3)))
        os.utime(file, (1_000_000 + hour, 1_000_000 + hour))
    g = Graph()
    node = g.add(FileSource(str(tmp_path / "in"), "csv", EVENT_SCHEMA, max_files_per_trigger=1), EVENT_SCHEMA)
    node = g.add(AssignTimestamps("ts", 0), EVENT_SCHEMA, node)
    window = Window(WindowKind.TUMBLING, size_ms=HOUR_MS, slide_ms=HOUR_MS)
    output = schema("k string, window_start timestamp, window_end timestamp, total bigint")
    g.files(tmp_path / "out", g.add(WindowAggregate(key("k"), window, ("sum(n) AS total",)), output, node))
    made = program(spark, g, tmp_path)
    made.prepare()
    made.start()
    waiting = threading.Thread(target=made.await_end)
    waiting.start()
    while not list((tmp_path / "out").glob("part-*")):
        threading.Event().wait(0.02)
    made.stop()
    waiting.join()
    (query,) = (tmp_path / "checkpoint").rglob("commits")
    numbers = [int(commit.name) for commit in query.iterdir() if commit.name.isdigit()]
    (query / str(max(numbers))).unlink()
    # the checksum beside it is there once the commit was finished; Spark would not write over it
    (query / f".{max(numbers)}.crc").unlink(missing_ok=True)
    run(spark, g, tmp_path)
    expected = [(f"k{n}", at(60 * h), at(60 * h + 60), h) for n in range(3) for h in range(4)]
    assert sorted(plain(rows(tmp_path / "out"))) == sorted(expected)


def test_bounded_query_stopped_in_the_middle_is_resumed(spark: SparkSession, tmp_path: Path) -> None:
    """
    1. four files, an hour each, one per batch; stopped after the first: no end of input
    2. run again: every window once
    """
    (tmp_path / "in").mkdir()
    for hour in range(4):
        file = tmp_path / "in" / f"{hour}.csv"
        file.write_text("".join(f"k{n},2013-01-01 0{hour}:{n}0:00,{hour}\n" for n in range(3)))
        os.utime(file, (1_000_000 + hour, 1_000_000 + hour))

    def slowly(row: Any) -> Any:
        import time

        time.sleep(0.4)
        return row

    g = Graph()
    source = FileSource(str(tmp_path / "in"), "csv", EVENT_SCHEMA, max_files_per_trigger=1)
    node = g.python(MAP, slowly, EVENT_SCHEMA, g.add(source, EVENT_SCHEMA))
    node = g.add(AssignTimestamps("ts", 0), EVENT_SCHEMA, node)
    window = Window(WindowKind.TUMBLING, size_ms=HOUR_MS, slide_ms=HOUR_MS)
    output = schema("k string, window_start timestamp, window_end timestamp, total bigint")
    g.files(tmp_path / "out", g.add(WindowAggregate(key("k"), window, ("sum(n) AS total",)), output, node))
    made = program(spark, g, tmp_path)
    made.prepare()
    made.start()
    waiting = threading.Thread(target=made.await_end)
    waiting.start()
    while not list((tmp_path / "checkpoint").rglob("commits/0")):
        threading.Event().wait(0.02)
    made.stop()
    waiting.join()
    assert not spark.streams.active
    assert not list((tmp_path / "checkpoint").rglob("sentinel.parquet"))
    run(spark, g, tmp_path)
    expected = [(f"k{n}", at(60 * h), at(60 * h + 60), h) for n in range(3) for h in range(4)]
    assert sorted(plain(rows(tmp_path / "out"))) == sorted(expected)


def test_no_query_starts_after_a_stop(spark: SparkSession, tmp_path: Path) -> None:
    g = Graph()
    g.files(tmp_path / "out", g.collection([1], schema("bigint")))
    g.files(tmp_path / "batch", g.add(SqlOperator("select id from range(3)"), schema("id bigint")))
    made = program(spark, g, tmp_path)
    made.stop()
    made.prepare()
    made.start()
    made.await_end()
    assert not spark.streams.active
    assert not (tmp_path / "out").exists() and not (tmp_path / "batch").exists()


def test_stop_waits_for_a_batch_and_its_next_sink_is_not_written(spark: SparkSession, tmp_path: Path) -> None:
    _HELD.clear()
    _LET_GO.clear()

    def hold(frame: DataFrame, batch_id: int) -> None:
        from integration.spark import test_translate as module

        module._HELD.set()
        assert module._LET_GO.wait(60)

    g = Graph()
    node = g.add(SqlOperator("select id from range(3)"), schema("id bigint"))
    g.each_batch(hold, node)
    g.files(tmp_path / "out", node)
    made = program(spark, g, tmp_path)
    made.prepare()
    made.start()
    assert _HELD.wait(60)
    stopping = threading.Thread(target=made.stop)
    stopping.start()
    waiting = threading.Thread(target=made.await_end)
    waiting.start()
    while not made._stopped.is_set():
        threading.Event().wait(0.01)
    # both wait for the function, which cannot be interrupted
    stopping.join(0.5)
    waiting.join(0.5)
    assert stopping.is_alive() and waiting.is_alive()
    _LET_GO.set()
    stopping.join(60)
    waiting.join(60)
    assert not stopping.is_alive() and not waiting.is_alive()
    assert not (tmp_path / "out").exists()


_HELD, _LET_GO = threading.Event(), threading.Event()


def test_batch_that_was_done_is_not_done_again(spark: SparkSession, tmp_path: Path) -> None:
    """A crash after the sinks tidied up and before the job's end was known."""

    def graph(parts: int) -> Graph:
        g = Graph()
        query = f"select /*+ repartition({parts}) */ id from range(10)"
        g.files(tmp_path / "out", g.add(SqlOperator(query), schema("id bigint")))
        return g

    run(spark, graph(3), tmp_path)
    before = {file.name: file.stat().st_mtime_ns for file in (tmp_path / "out").glob("part-*")}
    run(spark, graph(1), tmp_path)
    run(spark, graph(5), tmp_path)
    assert {f.name: f.stat().st_mtime_ns for f in (tmp_path / "out").glob("part-*")} == before
    assert rows(tmp_path / "out") == [(n,) for n in range(10)]
    assert not (tmp_path / "out" / ".yarnflow-staging").exists()


def test_crash_before_the_sinks_tidied_up(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    g = Graph()
    g.files(tmp_path / "out", g.add(SqlOperator("select id from range(3)"), schema("id bigint")))
    with monkeypatch.context() as patched:
        patched.setattr("yarnflow.spark.sinks.FileWriter.finish", lambda self: None)
        run(spark, g, tmp_path)
    assert (tmp_path / "out" / ".yarnflow-staging").exists()
    run(spark, g, tmp_path)
    assert not (tmp_path / "out" / ".yarnflow-staging").exists()
    assert rows(tmp_path / "out") == [(0,), (1,), (2,)]
