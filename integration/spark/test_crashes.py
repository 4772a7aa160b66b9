"""Queries that end between, or in, batches, and go on: nothing is lost, nothing twice."""

from __future__ import annotations

import os
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from integration.spark.translate_support import (
    EVENT_SCHEMA,
    HOUR_MS,
    Graph,
    at,
    key,
    plain,
    program,
    rows,
    run,
    schema,
)
from tests.patience import PATIENCE
from yarnflow.errors import YarnflowError
from yarnflow.graph.connectors.sources import FileSource
from yarnflow.graph.operators import (
    AssignTimestamps,
    PythonKind,
    SelectOperator,
    SqlOperator,
    Window,
    WindowAggregate,
    WindowKind,
)


@pytest.mark.gate
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
    while not list((tmp_path / "checkpoint").glob("*/commits/0")):
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

        time.sleep(0.2)
        return row

    g = Graph()
    source = FileSource(str(tmp_path / "in"), "csv", EVENT_SCHEMA, max_files_per_trigger=1)
    node = g.python(PythonKind.MAP, slowly, EVENT_SCHEMA, g.add(source, EVENT_SCHEMA))
    node = g.add(AssignTimestamps("ts", 0), EVENT_SCHEMA, node)
    window = Window(WindowKind.TUMBLING, size_ms=HOUR_MS, slide_ms=HOUR_MS)
    output = schema("k string, window_start timestamp, window_end timestamp, total bigint")
    g.files(tmp_path / "out", g.add(WindowAggregate(key("k"), window, ("sum(n) AS total",)), output, node))
    made = program(spark, g, tmp_path)
    made.prepare()
    made.start()
    waiting = threading.Thread(target=made.await_end)
    waiting.start()
    while not list((tmp_path / "checkpoint").glob("*/commits/0")):
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


@pytest.mark.gate
def test_stop_waits_for_a_batch_and_its_next_sink_is_not_written(spark: SparkSession, tmp_path: Path) -> None:
    _HELD.clear()
    _LET_GO.clear()

    def hold(frame: DataFrame, batch_id: int) -> None:
        from integration.spark import test_crashes as module

        module._HELD.set()
        assert module._LET_GO.wait(PATIENCE.condition_s)

    g = Graph()
    node = g.add(SqlOperator("select id from range(3)"), schema("id bigint"))
    g.each_batch(hold, node)
    g.files(tmp_path / "out", node)
    made = program(spark, g, tmp_path)
    made.prepare()
    made.start()
    assert _HELD.wait(PATIENCE.condition_s)
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
    stopping.join(PATIENCE.thread_s)
    waiting.join(PATIENCE.thread_s)
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


@pytest.mark.gate
def test_crash_before_the_sinks_tidied_up(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    g = Graph()
    g.files(tmp_path / "out", g.add(SqlOperator("select id from range(3)"), schema("id bigint")))
    with monkeypatch.context() as patched:
        patched.setattr("yarnflow.spark.connectors.sinks.FileWriter.finish", lambda self: None)
        run(spark, g, tmp_path)
    assert (tmp_path / "out" / ".yarnflow-staging").exists()
    run(spark, g, tmp_path)
    assert not (tmp_path / "out" / ".yarnflow-staging").exists()
    assert rows(tmp_path / "out") == [(0,), (1,), (2,)]
