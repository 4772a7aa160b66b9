"""Keyed and windowed operators on a real Spark."""

from __future__ import annotations

import datetime as dt
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from integration.spark.translate_support import (
    EPOCH,
    EVENT_SCHEMA,
    EVENTS,
    HOUR_MS,
    Graph,
    at,
    event_source,
    key,
    ms,
    plain,
    rows,
    run,
    schema,
)
from yarnflow.errors import UnsupportedGraph, YarnflowError
from yarnflow.graph.closures import make_closure
from yarnflow.graph.connectors.sources import FileSource
from yarnflow.graph.operators import (
    AssignTimestamps,
    Key,
    KeyedReduce,
    PythonKind,
    Window,
    WindowAggregate,
    WindowFunctionKind,
    WindowKind,
    WindowProcess,
)
from yarnflow.graph.rows import Row
from yarnflow.graph.schema import Field, Schema
from yarnflow.operators.functions.elements import ReduceFunction
from yarnflow.operators.functions.windows import ProcessWindowFunction

MAP, FLAT_MAP, FILTER = PythonKind.MAP, PythonKind.FLAT_MAP, PythonKind.FILTER


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


@pytest.mark.gate
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
    class Median(ProcessWindowFunction[Any, Any, Any, Any]):
        def process(self, key: Any, context: Any, elements: Any) -> Any:
            values = [e.n for e in elements]
            assert values == sorted(values)
            yield key, context.window().start, context.window().end, values[len(values) // 2]

    g = Graph()
    node = g.collection(EVENTS, EVENT_SCHEMA)
    node = g.python(PythonKind.TIMESTAMP, lambda r: ms(r.ts), EVENT_SCHEMA, node)
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
