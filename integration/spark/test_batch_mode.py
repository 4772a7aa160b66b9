"""``execution.runtime-mode: BATCH`` on a real Spark: the results a stream ends with, from one batch."""

from __future__ import annotations

import datetime as dt
import itertools
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from integration.spark.test_elements import (
    PAIR,
    SecondIsTime,
    Totals,
    environment,
    printed,
    program_of,
)
from integration.spark.translate_support import (
    EVENT_SCHEMA,
    EVENTS,
    Graph,
    event_source,
    key,
    plain,
    rows,
    run,
    schema,
)
from yarnflow.api import StreamExecutionEnvironment
from yarnflow.api.common import Types, WatermarkStrategy
from yarnflow.api.datastream import OutputTag, RuntimeExecutionMode
from yarnflow.api.datastream.functions import KeyedProcessFunction, RuntimeContext
from yarnflow.api.datastream.state import ListStateDescriptor
from yarnflow.errors import YarnflowError
from yarnflow.graph.closures import make_closure
from yarnflow.graph.connectors.sources import FileSource, RateSource, SequenceSource
from yarnflow.graph.operators import (
    FilterExpression,
    KeyedReduce,
    PythonKind,
    RunningAggregate,
    UnionOperator,
    Window,
    WindowAggregate,
    WindowFunctionKind,
    WindowKind,
    WindowProcess,
)

HOUR = Window(WindowKind.TUMBLING, size_ms=3_600_000)
TOTALS = schema("k string, window_start timestamp, window_end timestamp, total bigint")


def both(spark: SparkSession, build: Any, directory: Path) -> tuple[list[Any], list[Any]]:
    """What the same graph writes as a stream and as a batch."""
    found = []
    for batch in (False, True):
        own = directory / str(batch)
        g = Graph(batch=batch)
        build(g, own / "out")
        run(spark, g, own)
        found.append(sorted(plain(rows(own / "out")), key=repr))
    return found[0], found[1]


def query_files(directory: Path, log: str) -> list[str]:
    """Entries of a log of the only query."""
    (query,) = [path for path in (directory / "checkpoint").iterdir() if path.name.startswith("query-")]
    found = os.listdir(query / log) if (query / log).exists() else []
    return sorted(name for name in found if name.isdigit())


@pytest.mark.gate
def test_windows_give_what_a_stream_gives(spark: SparkSession, tmp_path: Path) -> None:
    def build(g: Graph, out: Path) -> None:
        node = g.add(WindowAggregate(key("k"), HOUR, ("sum(n) AS total",)), TOTALS, event_source(g))
        g.files(out, node)

    stream, batch = both(spark, build, tmp_path)
    assert stream == batch and len(batch) == 21
    assert query_files(tmp_path / "True", "offsets") == query_files(tmp_path / "True", "commits") == []
    # all input, and the end of it; then the windows
    assert query_files(tmp_path / "False", "commits") == ["0", "1"]


def test_windows_behind_windows_and_behind_functions(spark: SparkSession, tmp_path: Path) -> None:
    def build(g: Graph, out: Path) -> None:
        window = Window(WindowKind.SESSION, gap_ms=600_000)
        sessions = g.add(WindowAggregate(key("k"), window, ("sum(n) AS total",)), TOTALS, event_source(g))
        day = Window(WindowKind.TUMBLING, size_ms=86_400_000)
        node = g.add(WindowAggregate(key("k"), day, ("count(*) AS total",)), TOTALS, sessions)
        g.files(out, node)

    stream, batch = both(spark, build, tmp_path)
    assert stream == batch and [row[3] for row in batch] == [20, 20, 20]

    def python(g: Graph, out: Path) -> None:
        window = WindowProcess(
            key("k"),
            HOUR,
            WindowFunctionKind.REDUCE,
            make_closure(lambda a, b: max(a, b, key=lambda r: r.n), "job.py:8"),
        )
        g.files(out, g.add(window, EVENT_SCHEMA, event_source(g)))

    stream, batch = both(spark, python, tmp_path / "python")
    assert stream == batch and len(batch) == 21


@pytest.mark.drill
def test_running_results_are_the_last_ones(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for number in range(4):
        (tmp_path / "in" / f"{number}.csv").write_text(f"a,{number}\nb,{10 * number}\n")
    fields = schema("k string, n bigint")

    def aggregate(g: Graph, out: Path) -> None:
        # a stream takes it in two micro-batches, and gives two results of each key
        source = g.add(FileSource(str(tmp_path / "in"), "csv", fields, max_files_per_trigger=2), fields)
        g.files(out, g.add(RunningAggregate(key("k"), ("sum(n) AS total",)), fields, source))

    stream, batch = both(spark, aggregate, tmp_path / "aggregate")
    assert len(stream) == 4 and batch == [("a", 6), ("b", 60)]
    assert set(batch) <= set(stream)

    def reduce(g: Graph, out: Path) -> None:
        source = g.add(FileSource(str(tmp_path / "in"), "csv", fields, max_files_per_trigger=2), fields)
        reduction = KeyedReduce(key("k"), make_closure(lambda a, b: (a.k, a.n + b.n), "job.py:8"))
        g.files(out, g.add(reduction, fields, source))

    stream, batch = both(spark, reduce, tmp_path / "reduce")
    assert len(stream) == 4 and batch == [("a", 6), ("b", 60)]


def test_sources_unions_and_functions(spark: SparkSession, tmp_path: Path) -> None:
    number = schema("bigint")

    def build(g: Graph, out: Path) -> None:
        numbers = g.add(SequenceSource(1, 100), number)
        rate = g.add(RateSource(10, 5), schema("timestamp timestamp, value bigint"))
        values = g.python(PythonKind.MAP, lambda r: r.value, number, rate)
        union = g.add(UnionOperator(), number, numbers, values, g.collection([7, 8], number))
        even = g.add(FilterExpression("value % 2 = 0"), number, union)
        g.files(out, g.python(PythonKind.MAP, lambda n: n * 10, number, even, rebalance=True))

    stream, batch = both(spark, build, tmp_path)
    assert stream == batch
    assert sorted(value for (value,) in batch) == sorted(
        n * 10 for n in [*range(1, 101), *range(5), 7, 8] if n % 2 == 0
    )


def test_times_of_a_rate_source(spark: SparkSession, tmp_path: Path) -> None:
    g = Graph(batch=True)
    g.files(tmp_path / "out", g.add(RateSource(4, 9), schema("timestamp timestamp, value bigint")))
    run(spark, g, tmp_path)
    found = sorted(rows(tmp_path / "out"), key=lambda row: row[1])
    assert [value for _, value in found] == list(range(9))
    assert {after - before for (before, _), (after, _) in itertools.pairwise(found)} == {
        dt.timedelta(milliseconds=250)
    }


@pytest.mark.gate
def test_a_batch_that_failed_begins_again_and_is_written_once(spark: SparkSession, tmp_path: Path) -> None:
    marker = tmp_path / "failed"

    def fail_once(frame: DataFrame, batch_id: int) -> None:
        assert batch_id == 0 and frame.count() == len(EVENTS)
        if not marker.exists():
            marker.write_text("")
            raise ValueError("not yet")

    def graph() -> Graph:
        g = Graph(batch=True)
        source = event_source(g)
        # the first sink has written when the second one fails
        g.files(tmp_path / "out", source)
        g.each_batch(fail_once, source)
        return g

    with pytest.raises(YarnflowError, match="not yet"):
        run(spark, graph(), tmp_path)
    assert len(rows(tmp_path / "out")) == len(EVENTS)
    run(spark, graph(), tmp_path)
    assert sorted(plain(rows(tmp_path / "out"))) == sorted(EVENTS)
    run(spark, graph(), tmp_path)  # it is done
    assert len(rows(tmp_path / "out")) == len(EVENTS)
    assert not list((tmp_path / "out").glob(".yarnflow-staging*"))


def as_batch(parallelism: int = 2) -> StreamExecutionEnvironment:
    return environment(parallelism).set_runtime_mode(RuntimeExecutionMode.BATCH)


def run_elements(spark: SparkSession, env: StreamExecutionEnvironment, directory: Path) -> None:
    program = program_of(spark, env, directory / "checkpoint")
    program.start()
    program.await_end()


class Seen(KeyedProcessFunction):
    """In which order elements and timers come."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.seen = runtime_context.get_list_state(ListStateDescriptor("seen", Types.LONG()))

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        self.seen.add(value[1])
        timers = ctx.timer_service()
        assert timers.current_watermark() == -(2**63)
        timers.register_event_time_timer(value[1] + 1)
        timers.register_processing_time_timer(1)
        return iter(())

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterator[Any]:
        # for ever, if timers registered now fired
        ctx.timer_service().register_event_time_timer(timestamp + 1)
        ctx.timer_service().register_processing_time_timer(timestamp + 1)
        yield f">>{ctx.get_current_key()} {timestamp} {list(self.seen.get())}"


def test_elements_come_by_their_times_and_then_all_timers(
    spark: SparkSession, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    env = as_batch()
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(SecondIsTime())
    pairs = env.from_collection([(1, 30), (2, 5), (1, 10), (2, 1), (1, 20)], type_info=PAIR)
    stamped = pairs.assign_timestamps_and_watermarks(strategy)
    stamped.key_by(lambda pair: pair[0]).process(Seen(), Types.STRING()).print()
    run_elements(spark, env, tmp_path)
    found = printed(capfd)
    assert [line for line in found if line.startswith(">>1")] == [
        f">>1 {timestamp} [10, 20, 30]" for timestamp in (11, 21, 31, 1)
    ]
    assert [line for line in found if line.startswith(">>2")] == [
        f">>2 {timestamp} [1, 5]" for timestamp in (2, 6, 1)
    ]
    assert query_files(tmp_path, "offsets") == []


def test_keyed_elements_give_what_a_stream_gives(
    spark: SparkSession, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    found = []
    for mode in (RuntimeExecutionMode.STREAMING, RuntimeExecutionMode.AUTOMATIC):
        # of two senders a stream takes one after the other, a batch goes by their times
        env = environment(1).set_runtime_mode(mode)
        late = OutputTag("late", PAIR)
        strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(SecondIsTime())
        numbers = env.from_collection([(n % 3, n) for n in range(50)], type_info=PAIR)
        keyed = numbers.assign_timestamps_and_watermarks(strategy).key_by(lambda pair: pair[0])
        totals = keyed.process(Totals(), Types.STRING())
        totals.key_by(len).map(lambda text: text).print()
        totals.get_side_output(late).print()
        totals.rebalance().map(lambda text: text).print()
        run_elements(spark, env, tmp_path / mode.name)
        found.append(sorted(printed(capfd)))
    assert found[0] == found[1] and len(found[0]) == 200


@pytest.mark.drill
def test_functions_on_elements_behind_state_of_columns(
    spark: SparkSession, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Refused in a stream, whose query has one kind of state."""
    env = as_batch()
    numbers = env.from_collection([(number,) for number in range(1, 7)], "value BIGINT")
    sums = numbers.select("value % 2 AS odd", "value").key_by("odd").aggregate("sum(value) AS total")
    sums.key_by(lambda row: row["odd"]).map(lambda row: f">>{row['odd']} {row['total']}").print()
    run_elements(spark, env, tmp_path)
    assert sorted(printed(capfd)) == [">>0 12", ">>1 9"]
