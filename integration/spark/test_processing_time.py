"""The clock of programs on elements, on a real Spark: one time per micro-batch, however often it is done."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from integration.conftest import wait_until
from integration.spark.test_elements import environment, program_of
from tests.patience import PATIENCE
from yarnflow.api import FileSink, FileSource, StreamExecutionEnvironment
from yarnflow.api.common import Types
from yarnflow.api.datastream.functions import KeyedProcessFunction, ProcessFunction
from yarnflow.errors import YarnflowError
from yarnflow.operators.task.planner import LevelsPlan
from yarnflow.spark.elements.element_frames import tick_blocks
from yarnflow.spark.run.query_run import QueryRun

#: what it is, key, and three times
TIMES = Types.ROW_NAMED(
    ["what", "k", "a", "b", "c"],
    [Types.STRING(), Types.LONG(), Types.LONG(), Types.LONG(), Types.LONG()],
)
STAMPED = Types.TUPLE([Types.STRING(), Types.LONG(), Types.LONG(), Types.LONG(), Types.LONG()])
KEYS = range(8)
LAST_KEY = 100
DELAY_MS = 5000


#: so long ago was the state made
PAUSE_MS = 30 * 86_400_000


class Crash(Exception):
    """Power cut."""


class Stamp(ProcessFunction):
    """Sets one of an element's times."""

    def __init__(self, position: int) -> None:
        self.position = position

    def process_element(self, value: Any, ctx: ProcessFunction.Context) -> Iterator[Any]:
        now_ms = ctx.timer_service().current_processing_time()
        yield *value[: self.position], now_ms, *value[self.position + 1 :]


class Alarm(KeyedProcessFunction):
    """A timer for some time later."""

    def __init__(self, delay_ms: int) -> None:
        self.delay_ms = delay_ms

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        now_ms = ctx.timer_service().current_processing_time()
        ctx.timer_service().register_processing_time_timer(now_ms + self.delay_ms)
        yield "element", value[1], value[2], now_ms, 0

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterator[Any]:
        yield "timer", ctx.get_current_key(), timestamp, ctx.timer_service().current_processing_time(), 0


def stamping(directory: Path, out: Path, keyed: bool, delay_ms: int = 1) -> StreamExecutionEnvironment:
    env = environment()
    # level 0: with the source
    lines = env.from_source(
        FileSource(directory, "csv", schema="k BIGINT", bounded=False, max_files_per_trigger=1)
    )
    stamped = lines.map(lambda row: ("element", row[0], 0, 0, 0), STAMPED).process(Stamp(2), STAMPED)
    if keyed:
        stamped = stamped.key_by(lambda row: row[1]).process(Alarm(delay_ms), STAMPED)
    # a level without state
    stamped.rebalance().process(Stamp(4), TIMES).sink_to(FileSink(str(out), "parquet"))
    return env


def found(out: Path, what: str) -> list[tuple[int, ...]]:
    """Key and times of all rows of a kind."""
    rows = (row for file in out.glob("part-*") for row in pq.ParquetFile(file).read().to_pylist())
    return sorted((row["k"], row["a"], row["b"], row["c"]) for row in rows if row["what"] == what)


def planned(checkpoint: Path) -> list[int]:
    """The times of all micro-batches in Spark's log."""
    logged = {int(file.name): file for file in checkpoint.glob("*/offsets/*") if file.name.isdigit()}
    return [
        json.loads(file.read_text().splitlines()[1])["batchTimestampMs"] for _, file in sorted(logged.items())
    ]


@pytest.mark.parametrize("keyed", [True, False], ids=["timers", "without state"])
def test_a_batch_done_again_has_the_time_it_had(
    keyed: bool, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The driver dies when the sink has published the rows of batch 0, before Spark's commit."""
    directory, out, checkpoint = tmp_path / "in", tmp_path / "out", tmp_path / "checkpoint"
    directory.mkdir()
    (directory / "0.csv").write_text("".join(f"{key}\n" for key in KEYS))
    write = QueryRun._write

    def crashing(self: QueryRun, frame: DataFrame, batch_id: int) -> None:
        write(self, frame, batch_id)
        raise Crash

    with monkeypatch.context() as patched:
        patched.setattr(QueryRun, "_write", crashing)
        first = program_of(spark, stamping(directory, out, keyed), checkpoint)
        first.start()
        with pytest.raises(YarnflowError, match="Crash"):
            first.await_end()
        first.stop()
    (planned_ms,) = planned(checkpoint)
    assert not list(checkpoint.glob("*/commits/0"))
    assert [key for key, *_ in found(out, "element")] == list(KEYS)

    if not keyed:
        # or no batch would follow
        (directory / "1.csv").write_text(f"{LAST_KEY}\n")
    second = program_of(spark, stamping(directory, out, keyed), checkpoint)
    second.start()
    thread = threading.Thread(target=second.await_end, daemon=True)
    thread.start()
    last = 3 if keyed else 1
    wait_until(lambda: list(checkpoint.glob(f"*/commits/{last}")), f"batch {last}")
    second.stop()
    thread.join()
    first_ms, second_ms, *_ = planned(checkpoint)
    assert first_ms == planned_ms
    b_ms = planned_ms if keyed else 0
    assert found(out, "element")[: len(KEYS)] == [(key, planned_ms, b_ms, planned_ms) for key in KEYS]
    if keyed:
        assert found(out, "timer") == [(key, planned_ms + 1, second_ms, second_ms) for key in KEYS]
    else:
        assert found(out, "element")[len(KEYS) :] == [(LAST_KEY, second_ms, 0, second_ms)]


def test_timers_that_became_due_in_between_are_not_lost(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    1. a batch registers timers; the driver dies in the next, after the sink has published another row
    2. when that is done again the timers are due by the clock; what they emitted in it would not be written
    """
    directory, out, checkpoint = tmp_path / "in", tmp_path / "out", tmp_path / "checkpoint"
    directory.mkdir()
    write = QueryRun._write

    def crashing(self: QueryRun, frame: DataFrame, batch_id: int) -> None:
        write(self, frame, batch_id)
        if found(out, "element")[-1:] > [(LAST_KEY,)]:
            raise Crash

    def ends() -> None:
        with pytest.raises(YarnflowError, match="Crash"):
            first.await_end()
        ended.set()

    ended = threading.Event()
    with monkeypatch.context() as patched:
        patched.setattr(QueryRun, "_write", crashing)
        first = program_of(spark, stamping(directory, out, True, DELAY_MS), checkpoint)
        first.start()
        thread = threading.Thread(target=ends, daemon=True)
        thread.start()
        # the first batches take longer than the timers have
        wait_until(lambda: list(checkpoint.glob("*/commits/1")), "two batches")
        for number, keys in enumerate((KEYS, [LAST_KEY])):
            hidden = directory / f".{number}"
            hidden.write_text("".join(f"{key}\n" for key in keys))
            os.utime(hidden, (1_000_000 + number, 1_000_000 + number))
            hidden.rename(directory / f"{number}.csv")
        assert ended.wait(PATIENCE.condition_s)
        first.stop()
    crashed = len(planned(checkpoint)) - 1
    due_ms = max(at_ms for key, _, at_ms, _ in found(out, "element") if key != LAST_KEY) + DELAY_MS
    wait_until(lambda: time.time() * 1000 > due_ms, "the timers' time")
    second = program_of(spark, stamping(directory, out, True, DELAY_MS), checkpoint)
    second.start()
    thread = threading.Thread(target=second.await_end, daemon=True)
    thread.start()
    wait_until(lambda: list(checkpoint.glob(f"*/commits/{crashed + 2}")), "two more batches")
    second.stop()
    thread.join()
    assert [key for key, *_ in found(out, "timer") if key != LAST_KEY] == list(KEYS)


def test_a_long_pause_is_not_made_up_for(spark: SparkSession, tmp_path: Path) -> None:
    """A job that starts from a state of last month has two million seconds behind it."""
    state, output = tmp_path / "state", tmp_path / "ticks"
    plan = cast(LevelsPlan, SimpleNamespace(levels=[SimpleNamespace(level=1), SimpleNamespace(level=2)]))

    def run() -> int:
        query = tick_blocks(spark, plan).writeStream.format("json").option("checkpointLocation", str(state))
        query.trigger(availableNow=True).start(str(output)).awaitTermination()
        return sum(len(path.read_text().splitlines()) for path in output.glob("part-*.json"))

    run()
    begin = state / "sources" / "0" / "0"
    version, begin_ms = begin.read_text().split()
    begin.write_text(f"{version}\n{int(begin_ms) - PAUSE_MS}")
    begin.with_name(".0.crc").unlink()
    ticks = run()
    assert 2 <= ticks <= 2 * 62, "those of the last minute"
