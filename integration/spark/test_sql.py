"""SQL over streams with event time on a real Spark, compared with plain Python record by record."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from integration.conftest import wait_until
from integration.spark.savepoint_support import Job, rows
from integration.spark.timed_files import Program, Record, at, plain, put, stream
from yarnflow.api import FileSink, StreamExecutionEnvironment
from yarnflow.api.common import Duration, Time, Types
from yarnflow.api.datastream.functions import ProcessFunction
from yarnflow.api.datastream.window import TumblingEventTimeWindows
from yarnflow.errors import InvalidExpression, UnsupportedGraph

HOURLY = (
    "SELECT window.start AS s, k, count(*) AS c, sum(n) AS t FROM clicks WHERE n >= 0 "
    "GROUP BY window(ts, '1 hour'), k"
)


def environment() -> StreamExecutionEnvironment:
    env = StreamExecutionEnvironment.get_execution_environment()
    return env.set_parallelism(2)


@pytest.fixture
def run(spark: SparkSession, tmp_path: Path) -> Callable[[StreamExecutionEnvironment], None]:
    """Run a program's job to its end."""

    def run_to_end(env: StreamExecutionEnvironment) -> None:
        Job(spark, Program(env), tmp_path).ended()

    return run_to_end


#: six files of half an hour each, out of order by a minute
FILES: list[list[Record]] = [
    [(f"k{n % 3}", 30 * f + n - (n % 2), 10 * f + n) for n in range(0, 30, 3)] for f in range(6)
]
RECORDS: list[Record] = [record for file in FILES for record in file]


def windows(records: Iterable[Record], minutes: int = 60) -> list[tuple[Any, ...]]:
    """Plain Python's tumbling windows: start, key, count, total."""
    found: dict[tuple[Any, str], list[int]] = defaultdict(list)
    for k, minute, n in records:
        found[at(minute // minutes * minutes), k].append(n)
    return sorted((start, k, len(ns), sum(ns)) for (start, k), ns in found.items())


@pytest.mark.gate
def test_windows_of_a_query_close_as_event_time_goes_on(spark: SparkSession, tmp_path: Path) -> None:
    def program() -> Program:
        env = environment()
        clicks = stream(env, tmp_path / "in", bounded=False)
        env.sql(HOURLY, clicks=clicks).sink_to(FileSink(str(tmp_path / "out"), "parquet"))
        return Program(env)

    late: list[Record] = [("late", 1, 1)]
    # a condition that hardly any record meets does not hold the watermark up
    ahead: list[Record] = [("k0", 200, -1)]
    for number, records in enumerate(FILES[:3]):
        put(tmp_path / "in", number, records)
    job = Job(spark, program(), tmp_path)
    first = windows(FILES[0] + FILES[1])
    wait_until(lambda: plain(rows(tmp_path / "out")) == first, "first hour")
    job.cancel()
    for number, records in enumerate([*FILES[3:], ahead, late], start=3):
        put(tmp_path / "in", number, records)
    job = Job(spark, program(), tmp_path)
    every = windows(RECORDS)
    wait_until(lambda: plain(rows(tmp_path / "out")) == every, "three hours")
    wait_until(lambda: state_rows(job) == 0, "all state dropped")
    job.cancel()
    assert plain(rows(tmp_path / "out")) == every


def state_rows(job: Job) -> int | None:
    """Rows in the state of a job's only query, as of its last batch."""
    (run,) = job.program._runs
    assert run._query is not None
    progress = run._query.lastProgress
    if progress is None or run.committed() < 7:
        return None
    operators: list[dict[str, int]] = json.loads(progress.json)["stateOperators"]
    return sum(operator["numRowsTotal"] for operator in operators)


#: what went with the clicks, 15 minutes later to 5 minutes before; the second file has a record that comes
#: late
BUYS: list[list[Record]] = [
    [(f"k{n % 4}", 30 * f + n - 5, 1000 * f + n) for n in range(0, 30, 4)] for f in range(6)
]


def pairs(lower: int, upper: int) -> list[tuple[Any, ...]]:
    buys = [record for file in BUYS for record in file]
    return sorted(
        (k, at(t), n, bought)
        for k, t, n in RECORDS
        for other, then, bought in buys
        if other == k and lower <= then - t <= upper
    )


WITHIN = "b.k = c.k AND b.ts BETWEEN c.ts - INTERVAL 5 MINUTES AND c.ts + INTERVAL 15 MINUTES"


def test_join_of_streams_in_time_drops_its_state(spark: SparkSession, tmp_path: Path) -> None:
    def program() -> Program:
        env = environment()
        clicks, buys = (stream(env, tmp_path / name, False, late_minutes=6) for name in ("clicks", "buys"))
        query = f"SELECT c.k, c.ts, c.n, b.n AS bought FROM clicks c JOIN buys b ON {WITHIN}"
        env.sql(query, clicks=clicks, buys=buys).sink_to(FileSink(str(tmp_path / "out"), "parquet"))
        return Program(env)

    def write(first: int, files: list[list[Record]], name: str) -> None:
        for number, records in enumerate(files, start=first):
            put(tmp_path / name, number, records)

    write(0, FILES[:3], "clicks")
    write(0, BUYS[:3], "buys")
    job = Job(spark, program(), tmp_path)
    wait_until(lambda: job.program._runs[0].committed() >= 1, "a few batches")
    job.cancel()
    end: list[list[Record]] = [[("end", 1000, 0)]]
    # after the end of all: too late for any of the clicks, which state has no more
    late: list[list[Record]] = [[("k0", 0, 7), ("k1", 1, 8)]]
    write(3, FILES[3:] + end + end + late, "clicks")
    write(3, BUYS[3:] + end + end + late, "buys")
    job = Job(spark, program(), tmp_path)
    expected = sorted([*pairs(-5, 15), *[("end", at(1000), 0, 0)] * 4])
    wait_until(lambda: len(rows(tmp_path / "out")) >= len(expected), "all pairs")
    # the records of the end alone
    wait_until(lambda: (state_rows(job) or 99) <= 4 * 4, "the state of all others dropped")
    job.cancel()
    assert plain(rows(tmp_path / "out")) == expected


@pytest.mark.parametrize("kind", ["LEFT", "RIGHT", "FULL"])
def test_outer_join_of_bounded_streams(
    run: Callable[[StreamExecutionEnvironment], None], tmp_path: Path, kind: str
) -> None:
    for number, (clicks, buys) in enumerate(zip(FILES, BUYS, strict=True)):
        put(tmp_path / "clicks", number, clicks)
        put(tmp_path / "buys", number, buys)
    env = environment()
    streams = {name: stream(env, tmp_path / name, True, late_minutes=6) for name in ("clicks", "buys")}
    query = f"SELECT c.k, c.n, b.k AS other, b.n AS bought FROM clicks c {kind} JOIN buys b ON {WITHIN}"
    env.sql(query, **streams).sink_to(FileSink(str(tmp_path / "out"), "parquet"))
    run(env)
    found = pairs(-5, 15)
    expected: list[tuple[Any, ...]] = [(k, n, k, bought) for k, _, n, bought in found]
    if kind != "RIGHT":
        joined = {n for _, _, n, _ in found}
        expected += [(k, n, None, None) for k, _, n in RECORDS if n not in joined]
    if kind != "LEFT":
        bought = {n for _, _, _, n in found}
        expected += [(None, None, k, n) for file in BUYS for k, _, n in file if n not in bought]
    assert sorted(rows(tmp_path / "out"), key=repr) == sorted(expected, key=repr)


def test_event_time_passes_queries_and_all_around_them(
    run: Callable[[StreamExecutionEnvironment], None], tmp_path: Path
) -> None:
    for number, records in enumerate(FILES):
        put(tmp_path / "in", number, records)
    env = environment()
    clicks = stream(env, tmp_path / "in", bounded=True)
    # through a projection that renames it, a query, and a view that shows it beside the fields
    renamed = clicks.select("k", "ts AS at_", "n").filter("n >= 0")
    doubled = env.sql("SELECT k, at_, n * 2 AS n FROM renamed", renamed=renamed).select("k", "n")
    named = env.sql("SELECT k, n, event_time FROM doubled", doubled=doubled)
    windowed = named.key_by("k").window(TumblingEventTimeWindows.of(Time.hours(1)))
    hours = windowed.aggregate("count(*) AS c", "sum(n) AS t")
    hours.sink_to(FileSink(str(tmp_path / "hours"), "parquet"))
    # and a query over windows of a query
    whole = env.sql(
        "SELECT window(window_time(w), '3 hours').start AS s, 'all' AS k, sum(c) AS c, sum(t) AS t FROM "
        "(SELECT window(ts, '1 hour') AS w, count(*) AS c, sum(n) AS t FROM clicks GROUP BY window(ts, '1 "
        "hour')) "
        "GROUP BY window(window_time(w), '3 hours')",
        clicks=clicks,
    )
    whole.sink_to(FileSink(str(tmp_path / "whole"), "parquet"))
    run(env)
    doubled_records = [(k, minute, 2 * n) for k, minute, n in RECORDS]
    found = [(start, k, c, t) for k, start, _, c, t in plain(rows(tmp_path / "hours"))]
    assert sorted(found) == windows(doubled_records)
    assert plain(rows(tmp_path / "whole")) == windows([("all", minute, n) for _, minute, n in RECORDS], 180)


class Timed(ProcessFunction):
    def process_element(self, value: Any, ctx: ProcessFunction.Context) -> Any:
        yield value[1], ctx.timestamp()


def test_functions_behind_a_query_see_event_time(
    run: Callable[[StreamExecutionEnvironment], None], tmp_path: Path
) -> None:
    for number, records in enumerate(FILES[:2]):
        put(tmp_path / "in", number, records)
    env = environment()
    clicks = stream(env, tmp_path / "in", bounded=True)
    query = env.sql("SELECT k, n, ts FROM clicks", clicks=clicks)
    timed = query.process(Timed(), Types.ROW_NAMED(["n", "at_ms"], [Types.LONG(), Types.LONG()]))
    timed.sink_to(FileSink(str(tmp_path / "out"), "parquet"))
    run(env)
    expected = sorted(
        (n, round((at(minute) - at(0)).total_seconds() * 1000)) for file in FILES[:2] for _, minute, n in file
    )
    epoch_ms = 1_356_998_400_000
    assert sorted((n, at_ms - epoch_ms) for n, at_ms in rows(tmp_path / "out")) == expected


def test_windows_as_flink_writes_them(
    run: Callable[[StreamExecutionEnvironment], None], tmp_path: Path
) -> None:
    for number, records in enumerate(FILES):
        put(tmp_path / "in", number, records)
    env = environment()
    clicks = stream(env, tmp_path / "in", bounded=True)
    hours = env.sql(
        "SELECT k, window_start, window_time, count(*) AS c, sum(n) AS t FROM "
        "TABLE(TUMBLE(TABLE clicks, DESCRIPTOR(ts), INTERVAL '1' HOUR)) "
        "GROUP BY k, window_start, window_end, window_time",
        clicks=clicks,
    )
    hours.select("window_start", "k", "c", "t").sink_to(FileSink(str(tmp_path / "hours"), "parquet"))
    # its event time is window_time
    longer = hours.key_by("k").window(TumblingEventTimeWindows.of(Time.hours(3))).aggregate("sum(t) AS t")
    longer.select("k", "t").sink_to(FileSink(str(tmp_path / "longer"), "parquet"))
    sliding = env.sql(
        "SELECT k, window_start, window_end, count(*) AS c FROM "
        "HOP(TABLE clicks, DESCRIPTOR(ts), INTERVAL '30' MINUTES, INTERVAL '1' HOUR) "
        "GROUP BY k, window_start, window_end",
        clicks=clicks,
    )
    sliding.sink_to(FileSink(str(tmp_path / "sliding"), "parquet"))
    run(env)
    assert plain(rows(tmp_path / "hours")) == windows(RECORDS)
    assert sorted(rows(tmp_path / "longer")) == [(k, t) for _, k, _, t in windows(RECORDS, 180)]
    counted: dict[tuple[Any, ...], int] = defaultdict(int)
    for k, minute, _ in RECORDS:
        for start in (minute // 30 * 30, minute // 30 * 30 - 30):
            counted[k, at(start), at(start + 60)] += 1
    assert plain(rows(tmp_path / "sliding")) == sorted((*key, c) for key, c in counted.items())


def test_the_largest_of_each_window(
    run: Callable[[StreamExecutionEnvironment], None], tmp_path: Path
) -> None:
    for number, records in enumerate(FILES):
        put(tmp_path / "in", number, records)
    env = environment()
    clicks = stream(env, tmp_path / "in", bounded=True)
    largest = env.sql(
        "SELECT s, top.n, top.k FROM (SELECT window.start AS s, "
        "explode(slice(sort_array(collect_list(struct(n, k)), false), 1, 3)) AS top "
        "FROM clicks GROUP BY window(ts, '1 hour'))",
        clicks=clicks,
    )
    largest.sink_to(FileSink(str(tmp_path / "out"), "parquet"))
    run(env)
    hours: dict[Any, list[tuple[int, str]]] = defaultdict(list)
    for k, minute, n in RECORDS:
        hours[at(minute // 60 * 60)].append((n, k))
    expected = sorted((start, n, k) for start, found in hours.items() for n, k in sorted(found)[-3:])
    assert plain(rows(tmp_path / "out")) == expected


def test_what_spark_cannot_run_is_said_with_its_line(
    run: Callable[[StreamExecutionEnvironment], None], tmp_path: Path
) -> None:
    put(tmp_path / "in", 0, FILES[0])
    env = environment()
    clicks = stream(env, tmp_path / "in", bounded=False)
    env.sql("SELECT k, n FROM clicks WHERE n IN (SELECT n FROM clicks)", clicks=clicks).print()
    with pytest.raises(InvalidExpression, match=r"'SQL' \(.*test_sql.py:\d+\): .*ubquery"):
        run(env)


def test_results_that_change_do_not_go_into_files(tmp_path: Path) -> None:
    env = environment()
    clicks = stream(env, tmp_path / "in", bounded=False)
    counts = env.sql("SELECT k, count(*) AS c FROM clicks GROUP BY k", clicks=clicks)
    counts.sink_to(FileSink(str(tmp_path / "out"), "parquet"))
    with pytest.raises(UnsupportedGraph, match=r"sink_to\(\): files cannot take .*sql\(\) do"):
        Program(env)


@pytest.mark.gate
def test_results_that_change_are_given_anew(
    run: Callable[[StreamExecutionEnvironment], None], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    for number, records in enumerate([[("a", 0, 1), ("b", 0, 1)], [("a", 1, 2)]]):
        put(tmp_path / "in", number, records)
    env = environment()
    clicks = stream(env, tmp_path / "in", bounded=True)
    env.sql("SELECT k, sum(n) AS t FROM clicks GROUP BY k", clicks=clicks).print(">>")
    run(env)
    lines = [line for line in capfd.readouterr().out.splitlines() if line.startswith(">>")]
    assert sorted(lines) == [">>> +I[a, 1]", ">>> +I[a, 3]", ">>> +I[b, 1]"]


def test_first_of_each_with_late_duplicates_and_a_restart(spark: SparkSession, tmp_path: Path) -> None:
    def program() -> Program:
        env = environment()
        clicks = stream(env, tmp_path / "in", bounded=False)
        first = clicks.drop_duplicates("k", "n", within=Duration.of_minutes(30))
        first.select("k", "n").sink_to(FileSink(str(tmp_path / "out"), "parquet"))
        hours = first.key_by("k").window(TumblingEventTimeWindows.of(Time.hours(1))).count()
        counted = hours.select("k", "window_start AS s", "count AS c")
        counted.sink_to(FileSink(str(tmp_path / "hours"), "parquet"))
        return Program(env)

    # each file again with the next one
    doubled = [file + (FILES[number - 1] if number else []) for number, file in enumerate(FILES)]
    for number, records in enumerate(doubled[:3]):
        put(tmp_path / "in", number, records)
    job = Job(spark, program(), tmp_path)
    wait_until(lambda: job.program._runs[0].committed() >= 1, "a few batches")
    job.cancel()
    end: list[list[Record]] = [[("end", 1000, 0)]]
    for number, records in enumerate(doubled[3:] + end, start=3):
        put(tmp_path / "in", number, records)
    job = Job(spark, program(), tmp_path)
    counts = [(k, start, c) for start, k, c, _ in windows(RECORDS)]
    wait_until(lambda: len(rows(tmp_path / "hours")) >= len(counts), "all hours")
    job.cancel()
    assert sorted(rows(tmp_path / "out")) == sorted([*((k, n) for k, _, n in RECORDS), ("end", 0)])
    assert plain(rows(tmp_path / "hours")) == sorted(counts)


def test_files_that_a_stream_is_joined_with_are_listed_when_the_job_starts(
    spark: SparkSession, tmp_path: Path
) -> None:
    def program() -> Program:
        env = environment()
        clicks = stream(env, tmp_path / "in", bounded=False)
        users = f"parquet.`{tmp_path / 'users'}`"
        query = f"SELECT c.n, u.n AS name FROM clicks c LEFT JOIN {users} u ON c.k = u.k"
        joined = env.sql(query, clicks=clicks)
        joined.sink_to(FileSink(str(tmp_path / "out"), "parquet"))
        return Program(env)

    put(tmp_path / "users", 0, [("a", 0, 100)])
    put(tmp_path / "in", 0, [("a", 0, 1), ("b", 0, 2)])
    job = Job(spark, program(), tmp_path)
    wait_until(lambda: len(rows(tmp_path / "out")) == 2, "the first file")
    put(tmp_path / "users", 1, [("b", 0, 200)])
    put(tmp_path / "in", 1, [("b", 0, 3)])
    wait_until(lambda: len(rows(tmp_path / "out")) == 3, "the second file")
    job.cancel()
    put(tmp_path / "in", 2, [("b", 0, 4)])
    job = Job(spark, program(), tmp_path)
    wait_until(lambda: len(rows(tmp_path / "out")) == 4, "the third file")
    job.cancel()
    assert sorted(rows(tmp_path / "out")) == [(1, 100), (2, None), (3, None), (4, 200)]
