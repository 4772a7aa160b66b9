"""Programs on elements, as one streaming query on a real Spark."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from integration.conftest import wait_until
from integration.spark.savepoint_support import STOP, Job, restored
from yarnflow.api import FileSink, FileSource, StreamExecutionEnvironment
from yarnflow.api.common import Duration, Time, Types, WatermarkStrategy
from yarnflow.api.common.watermark_strategy import TimestampAssigner
from yarnflow.api.datastream import OutputTag
from yarnflow.api.datastream.functions import KeyedProcessFunction, ProcessFunction, RuntimeContext
from yarnflow.api.datastream.state import ListStateDescriptor, ValueStateDescriptor
from yarnflow.api.datastream.window import TumblingEventTimeWindows
from yarnflow.api.executor import use_executor
from yarnflow.config.configuration import Configuration
from yarnflow.graph.job_graph import JobGraph
from yarnflow.spark.run.graph_program import GraphProgram
from yarnflow.testing.kept_graph import KeptGraph

PAIR = Types.TUPLE([Types.LONG(), Types.LONG()])
NUMBERED = Types.ROW_NAMED(["k", "n"], [Types.LONG(), Types.LONG()])


@pytest.fixture
def run(spark: SparkSession, tmp_path: Path) -> Callable[[StreamExecutionEnvironment], None]:
    """Run a program's job to its end."""

    def run_to_end(env: StreamExecutionEnvironment) -> None:
        program = program_of(spark, env, tmp_path / "checkpoint")
        program.start()
        program.await_end()

    return run_to_end


def graph_of(env: StreamExecutionEnvironment) -> JobGraph:
    kept = KeptGraph()
    with use_executor(kept):
        env.execute_async("elements")
    return kept.graphs[-1]


def program_of(spark: SparkSession, env: StreamExecutionEnvironment, directory: Path) -> GraphProgram:
    program = GraphProgram(spark, graph_of(env), Configuration.empty(), str(directory))
    program.prepare()
    return program


def environment(parallelism: int = 2) -> StreamExecutionEnvironment:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(parallelism)
    return env


def printed(capfd: pytest.CaptureFixture[str]) -> list[str]:
    """Lines of the tests' functions, without the sink's subtask."""
    lines = (re.sub(r"^\d+> ", "", line) for line in capfd.readouterr().out.splitlines())
    return [line for line in lines if line.startswith(">>")]


class SecondIsTime(TimestampAssigner):
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return int(value[1])


class Totals(KeyedProcessFunction):
    """A total per key, and a timer 5 ms after each element."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.total = runtime_context.get_state(ValueStateDescriptor("total", Types.LONG()))

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        total = (self.total.value() or 0) + value[1]
        self.total.update(total)
        ctx.timer_service().register_event_time_timer(value[1] + 5)
        yield f">>total {value[0]} {total}"

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterator[Any]:
        yield f">>timer {ctx.get_current_key()} {timestamp} {self.total.value()}"


@pytest.mark.gate
def test_state_timers_and_windows_of_one_stream(
    run: Callable[[StreamExecutionEnvironment], None], capfd: pytest.CaptureFixture[str]
) -> None:
    env = environment(1)
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(SecondIsTime())
    numbers = env.from_collection([(n % 3, n) for n in range(10)], type_info=PAIR)
    keyed = numbers.assign_timestamps_and_watermarks(strategy).key_by(lambda pair: pair[0])
    keyed.process(Totals()).print()
    windowed = keyed.window(TumblingEventTimeWindows.of(Time.milliseconds(5)))
    windowed.reduce(lambda a, b: (a[0], a[1] + b[1])).map(lambda pair: f">>window {pair}").print()
    keyed.sum(1).map(lambda pair: f">>sum {pair}").print()
    run(env)
    totals = {0: [0, 3, 9, 18], 1: [1, 5, 12], 2: [2, 7, 15]}
    found = printed(capfd)
    for key, expected in totals.items():
        assert [line for line in found if line.startswith(f">>total {key}")] == [
            f">>total {key} {total}" for total in expected
        ]
        assert [line for line in found if line.startswith(f">>sum ({key},")] == [
            f">>sum ({key}, {total})" for total in expected
        ]
        assert [line for line in found if line.startswith(f">>timer {key} ")] == [
            f">>timer {key} {n + 5} {expected[-1]}" for n in range(key, 10, 3)
        ]
    windows = sorted(line for line in found if line.startswith(">>window"))
    assert windows == sorted(
        f">>window ({key}, {total})"
        for key, sums in {0: (3, 15), 1: (5, 7), 2: (2, 13)}.items()
        for total in sums
    )
    assert len(found) == 10 * 3 + 6


class Halves(ProcessFunction):
    def __init__(self, tag: OutputTag) -> None:
        self.tag = tag

    def process_element(self, value: Any, ctx: ProcessFunction.Context) -> Iterator[Any]:
        if value % 2:
            yield self.tag, value
        else:
            yield value


class Collected(KeyedProcessFunction):
    """The list of all elements of a key so far."""

    def open(self, runtime_context: RuntimeContext) -> None:
        # numbers first, pairs behind them
        self.seen = runtime_context.get_list_state(ListStateDescriptor("seen", Types.PICKLED_BYTE_ARRAY()))

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        self.seen.add(value)
        yield ctx.get_current_key(), tuple(self.seen.get())


@pytest.mark.gate
def test_side_outputs_unions_and_keyed_operators_behind_each_other(
    run: Callable[[StreamExecutionEnvironment], None], capfd: pytest.CaptureFixture[str]
) -> None:
    env = environment(1)
    odd = OutputTag("odd", Types.LONG())
    numbers = env.from_collection(list(range(8)), type_info=Types.LONG())
    even = numbers.process(Halves(odd), output_type=Types.LONG())
    negative = even.get_side_output(odd).map(lambda n: -n, output_type=Types.LONG())
    lists = even.union(negative).key_by(lambda n: n > 0).process(Collected())
    # keyed again by the length of the list
    lists.key_by(lambda found: len(found[1])).process(Collected()).map(lambda found: f">>{found}").print()
    run(env)
    found = printed(capfd)
    assert len(found) == 8
    # 0, -1, -3, -5, -7 are one key, 2, 4, 6 the other: lists of one element come from both, of five from one
    longest = {len(eval(line[2:])[1]) for line in found if line.startswith(">>(1, ")}
    assert longest == {1, 2}
    assert [line for line in found if line.startswith(">>(5,")] == [">>(5, ((False, (0, -1, -3, -5, -7)),))"]


class Numbered(KeyedProcessFunction):
    """Numbers the elements of a key."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        yield value[0], count


def numbering(directory: Path, out: Path) -> StreamExecutionEnvironment:
    env = environment()
    source = FileSource(directory, "csv", schema="k BIGINT, n BIGINT", bounded=False, max_files_per_trigger=1)
    lines = env.from_source(source)
    numbered = lines.key_by(lambda row: row[0]).process(Numbered(), output_type=NUMBERED).uid("numbered")
    numbered.sink_to(FileSink(str(out), "parquet"))
    return env


def write(directory: Path, number: int) -> None:
    hidden = directory / f".{number}"
    hidden.write_text("".join(f"{n % 4},{n}\n" for n in range(100)))
    hidden.rename(directory / f"{number}.csv")


def counts(out: Path) -> list[tuple[int, int]]:
    return sorted(
        (row["k"], row["n"]) for file in out.glob("part-*") for row in pq.ParquetFile(file).read().to_pylist()
    )


def expected_counts(files: int) -> list[tuple[int, int]]:
    return sorted((key, n + 1) for key in range(4) for n in range(files * 25))


def test_state_goes_on_after_restarts(spark: SparkSession, tmp_path: Path) -> None:
    directory, out = tmp_path / "in", tmp_path / "out"
    directory.mkdir()
    for attempt in range(3):
        for number in range(3):
            write(directory, attempt * 3 + number)
        program = program_of(spark, numbering(directory, out), tmp_path / "checkpoint")
        program.start()
        thread = threading.Thread(target=program.await_end, daemon=True)
        thread.start()
        files = (attempt + 1) * 3
        wait_until(lambda: len(counts(out)) >= files * 100, f"{files} files")
        # in the middle of whatever it does
        program.stop()
        thread.join()
        assert counts(out) == expected_counts(files)


class Alarm(KeyedProcessFunction):
    """Writes a line some time after each element, when no other comes."""

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        timers = ctx.timer_service()
        timers.register_processing_time_timer(timers.current_processing_time() + 1500)
        return iter(())

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterator[Any]:
        yield ctx.get_current_key(), 1


@pytest.mark.gate
def test_processing_timers_fire_while_nothing_comes(spark: SparkSession, tmp_path: Path) -> None:
    directory, out = tmp_path / "in", tmp_path / "out"
    directory.mkdir()
    write(directory, 0)
    env = environment()
    source = FileSource(directory, "csv", schema="k BIGINT, n BIGINT", bounded=False)
    alarms = env.from_source(source).key_by(lambda row: row[0]).process(Alarm(), output_type=NUMBERED)
    alarms.sink_to(FileSink(str(out), "parquet"))
    job = Job(spark, Kept(env), tmp_path)
    wait_until(lambda: {key for key, _ in counts(out)} == {0, 1, 2, 3}, "all alarms")
    job.cancel()


class AtItsTime(KeyedProcessFunction):
    """Emits each element when the watermark reaches its time."""

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        ctx.timer_service().register_event_time_timer(value[1])
        return iter(())

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterator[Any]:
        yield ctx.get_current_key(), timestamp


def test_a_stream_without_elements_becomes_idle_while_nothing_comes(
    spark: SparkSession, tmp_path: Path
) -> None:
    """No element comes when its time is over: the clock alone fires the timers of the other stream."""
    directory, silent, out = tmp_path / "in", tmp_path / "silent", tmp_path / "out"
    directory.mkdir()
    silent.mkdir()
    write(directory, 0)
    env = environment()
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(SecondIsTime())
    streams = []
    for path, own in ((directory, strategy), (silent, strategy.with_idleness(Duration.of_seconds(3)))):
        source = env.from_source(FileSource(path, "csv", schema="k BIGINT, n BIGINT", bounded=False))
        pairs = source.map(lambda row: (row[0], row[1]), PAIR)
        streams.append(pairs.assign_timestamps_and_watermarks(own))
    timers = streams[0].union(streams[1]).key_by(lambda pair: pair[0]).process(AtItsTime(), NUMBERED)
    timers.sink_to(FileSink(str(out), "parquet"))
    job = Job(spark, Kept(env), tmp_path)
    # the watermark is 1 ms before the latest element
    expected = sorted((n % 4, n) for n in range(99))
    wait_until(lambda: counts(out) == expected, "all timers but the last")
    job.cancel()


class Kept:
    """A program's graph as the tests of savepoints take one."""

    def __init__(self, env: StreamExecutionEnvironment) -> None:
        self._graph = graph_of(env)

    def job(self) -> JobGraph:
        return self._graph


def test_a_savepoint_has_the_state(spark: SparkSession, tmp_path: Path) -> None:
    directory, out = tmp_path / "in", tmp_path / "out"
    directory.mkdir()
    for number in range(3):
        write(directory, number)
    first = Job(spark, Kept(numbering(directory, out)), tmp_path)
    wait_until(lambda: len(counts(out)) >= 300, "three files")
    manifest = first.savepoint(tmp_path / "savepoint", STOP)
    first.ended()
    assert [position.query for position in manifest.positions] == ["elements"]
    for number in range(3, 5):
        write(directory, number)
    second = restored(spark, Kept(numbering(directory, out)), tmp_path / "savepoint", tmp_path / "job2")
    wait_until(lambda: len(counts(out)) >= 500, "the other two")
    second.cancel()
    assert counts(out) == expected_counts(5)


class FailsOnce(KeyedProcessFunction):
    """Counts, and fails at the 30th element of key 2 unless a file says that it has done so."""

    def __init__(self, failed: str) -> None:
        self.failed = failed

    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        if (value[0], count) == (2, 30) and not Path(self.failed).exists():
            Path(self.failed).touch()
            raise ValueError("the thirtieth")
        yield value[0], count


def test_a_task_that_failed_leaves_nothing_in_the_state(spark: SparkSession, tmp_path: Path) -> None:
    directory, out = tmp_path / "in", tmp_path / "out"
    directory.mkdir()
    for number in range(3):
        write(directory, number)

    def started() -> GraphProgram:
        env = environment()
        source = FileSource(
            directory, "csv", schema="k BIGINT, n BIGINT", bounded=True, max_files_per_trigger=1
        )
        keyed = env.from_source(source).key_by(lambda row: row[0])
        counted = keyed.process(FailsOnce(str(tmp_path / "failed")), output_type=NUMBERED)
        counted.sink_to(FileSink(str(out), "parquet"))
        program = program_of(spark, env, tmp_path / "checkpoint")
        program.start()
        return program

    with pytest.raises(Exception, match=re.escape("ValueError: the thirtieth")):
        started().await_end()
    assert counts(out) == expected_counts(1), "the second batch has failed"
    started().await_end()
    assert counts(out) == expected_counts(3)
