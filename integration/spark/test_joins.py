"""Joins of streams on a real Spark, compared with plain Python record by record."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from integration.spark.savepoint_support import Job, rows
from integration.spark.timed_files import Program, Record, at, plain, put, stream
from yarnflow.api import DataStream, FileSink, StreamExecutionEnvironment
from yarnflow.api.common import Duration, Time, Types
from yarnflow.api.datastream import OutputTag
from yarnflow.api.datastream.functions import (
    CoGroupFunction,
    JoinFunction,
    ProcessJoinFunction,
)
from yarnflow.api.datastream.window import TumblingEventTimeWindows, WindowAssigner

CLICKS: list[list[Record]] = [
    [(f"k{n % 3}", 30 * f + n - (n % 2), 100 * f + n) for n in range(0, 30, 3)] for f in range(6)
]
BUYS: list[list[Record]] = [
    [(f"k{n % 4}", 30 * f + n - 5, 10_000 + 100 * f + n) for n in range(0, 30, 4)] for f in range(6)
]
#: of files six and seven: beyond all others, then too late for any
END: list[list[Record]] = [[("end", 1000, 1)], [("k0", 1, 7)]]
PAIR = Types.ROW_NAMED(["k", "n", "bought"], [Types.STRING(), Types.LONG(), Types.LONG()])
NUMBER = Types.ROW_NAMED(["n"], [Types.LONG()])
# late elements are as they came
LATE = OutputTag(
    "late", Types.ROW_NAMED(["k", "ts", "n"], [Types.STRING(), Types.SQL_TIMESTAMP(), Types.LONG()])
)
GROUPED = Types.ROW_NAMED(["clicks", "buys"], [Types.LONG(), Types.LONG()])


def clicks_and_buys(tmp_path: Path) -> tuple[StreamExecutionEnvironment, DataStream, DataStream]:
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)
    clicks, buys = (stream(env, tmp_path / name, False, late_minutes=6) for name in ("clicks", "buys"))
    return env, clicks, buys


def write(tmp_path: Path, first: int, last: int) -> None:
    for name, files in (("clicks", CLICKS + END), ("buys", BUYS + END)):
        for number in range(first, last):
            put(tmp_path / name, number, files[number])


def in_two_attempts(spark: SparkSession, tmp_path: Path, program: Any, expected: dict[str, Any]) -> None:
    """Run a program that is stopped in the middle, until its outputs are as expected."""
    write(tmp_path, 0, 3)
    job = Job(spark, program(), tmp_path)
    # of a batch that is planned when the job is canceled, Spark may have the files of one side noted only
    job.wait_until(lambda: job.program._runs[0].committed() >= 2, "its three files")
    job.cancel()
    write(tmp_path, 3, 8)
    job = Job(spark, program(), tmp_path)
    for name, wanted in expected.items():
        job.wait_until(lambda: len(rows(tmp_path / name)) >= len(wanted), name)
    job.wait_until(lambda: job.program._runs[0].committed() >= 7, "all batches")
    job.cancel()
    for name, wanted in expected.items():
        assert plain(rows(tmp_path / name)) == sorted(wanted)


def pairs(lower: int, upper: int) -> list[tuple[Any, ...]]:
    found = [
        (k, n, bought)
        for k, t, n in (record for file in CLICKS for record in file)
        for other, then, bought in (record for file in BUYS for record in file)
        if other == k and lower <= then - t <= upper
    ]
    return [*found, ("end", 1, 1)]


class Bought(ProcessJoinFunction):
    def process_element(self, left: Any, right: Any, ctx: ProcessJoinFunction.Context) -> Iterator[Any]:
        assert ctx.get_timestamp() == max(ctx.get_left_timestamp(), ctx.get_right_timestamp())
        yield left.k, left.n, right.n


@pytest.mark.drill
def test_interval_join_by_a_function(spark: SparkSession, tmp_path: Path) -> None:
    def program() -> Program:
        env, clicks, buys = clicks_and_buys(tmp_path)
        joined = (
            clicks.key_by(lambda row: row.k)
            .interval_join(buys.key_by("k"))
            .between(Duration.of_minutes(-5), Time.minutes(15))
            .side_output_left_late_data(LATE)
            .process(Bought(), PAIR)
        )
        joined.uid("join").sink_to(FileSink(str(tmp_path / "out"), "parquet"))
        late = joined.get_side_output(LATE).map(lambda row: (row.n,), NUMBER)
        late.sink_to(FileSink(str(tmp_path / "late"), "parquet"))
        return Program(env)

    in_two_attempts(spark, tmp_path, program, {"out": pairs(-5, 15), "late": [(7,)]})


def test_interval_join_of_columns_is_sparks_own(spark: SparkSession, tmp_path: Path) -> None:
    def program() -> Program:
        env, clicks, buys = clicks_and_buys(tmp_path)
        joined = clicks.key_by("k").interval_join(buys.key_by("k")).between(-5 * 60_000, 15 * 60_000)
        within = joined.upper_bound_exclusive().select("left.k", "left.n", "right.n AS bought")
        within.sink_to(FileSink(str(tmp_path / "out"), "parquet"))
        return Program(env)

    in_two_attempts(spark, tmp_path, program, {"out": pairs(-5, 14)})


class Sum(JoinFunction):
    def join(self, first: Any, second: Any) -> Any:
        return first.k, first.n, second.n


class Counted(CoGroupFunction):
    def co_group(self, first: Any, second: Any) -> Iterator[Any]:
        yield len(first), len(second)


def test_window_joins(spark: SparkSession, tmp_path: Path) -> None:
    hour: WindowAssigner[Any, Any] = TumblingEventTimeWindows.of(Time.hours(1))

    def program() -> Program:
        env, clicks, buys = clicks_and_buys(tmp_path)
        pairs = clicks.join(buys).where(lambda row: row.k).equal_to("k").window(hour).apply(Sum(), PAIR)
        pairs.sink_to(FileSink(str(tmp_path / "pairs"), "parquet"))
        groups = clicks.co_group(buys).where("k").equal_to("k").window(hour).apply(Counted(), GROUPED)
        groups.sink_to(FileSink(str(tmp_path / "groups"), "parquet"))
        return Program(env)

    found: dict[tuple[Any, str], tuple[list[int], list[int]]] = {}
    for side, files in enumerate((CLICKS, BUYS)):
        for k, minute, n in (record for file in files for record in file):
            found.setdefault((at(minute // 60 * 60), k), ([], []))[side].append(n)
    joined = [(k, n, bought) for (_, k), sides in found.items() for n in sides[0] for bought in sides[1]]
    counts = [(len(clicks), len(buys)) for clicks, buys in found.values()]
    in_two_attempts(spark, tmp_path, program, {"pairs": joined, "groups": counts})
