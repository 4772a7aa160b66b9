"""A savepoint in the middle of a join of two streams, which has state of both inputs and timers to come.

What comes out does not depend on where micro-batches end, nor on which input is ahead: each element is
numbered among those of its own input, and a timer counts the payments that came until its time.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from integration.conftest import wait_until
from integration.spark.savepoint_support import CONTINUE, DRAIN, Job, restored
from integration.spark.test_elements import Kept, environment
from yarnflow.api import FileSink, FileSource
from yarnflow.api.common import Duration, Types, WatermarkStrategy
from yarnflow.api.common.watermark_strategy import TimestampAssigner
from yarnflow.api.datastream import DataStream, OutputTag
from yarnflow.api.datastream.functions import KeyedCoProcessFunction, RuntimeContext
from yarnflow.api.datastream.state import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor
from yarnflow.spark.state.element_state import read_elements

#: kind, key, number or time, count
RESULT: Final = Types.ROW_NAMED(
    ["kind", "key", "at", "n"], [Types.STRING(), Types.LONG(), Types.LONG(), Types.LONG()]
)
#: of timers
REPORTS: Final = OutputTag("reports", RESULT)
KEYS: Final = 5
#: an event's time is this much out of order at most
DISORDER_MS: Final = 40
PATIENCE_MS: Final = 300
PER_FILE: Final = 30
FILES: Final = 4
INPUTS: Final = ("orders", "payments")
Result = tuple[str, int, int, int]


class At(TimestampAssigner):
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return int(value[1])


class Join(KeyedCoProcessFunction):
    """Numbers the elements of each input, and reports some time after an order what was paid until then."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.orders = runtime_context.get_state(ValueStateDescriptor("orders", Types.LONG()))
        # elements as they are
        paid = ListStateDescriptor("paid", Types.PICKLED_BYTE_ARRAY())
        self.paid = runtime_context.get_list_state(paid)
        due = MapStateDescriptor("due", Types.LONG(), Types.LONG())
        self.due = runtime_context.get_map_state(due)

    def process_element1(self, value: Any, ctx: KeyedCoProcessFunction.Context) -> Iterator[Any]:
        number = (self.orders.value() or 0) + 1
        self.orders.update(number)
        due_ms = value[1] + PATIENCE_MS
        self.due.put(due_ms, (self.due.get(due_ms) or 0) + 1)
        ctx.timer_service().register_event_time_timer(due_ms)
        yield "orders", value[0], number, 0

    def process_element2(self, value: Any, ctx: KeyedCoProcessFunction.Context) -> Iterator[Any]:
        self.paid.add(value)
        yield "payments", value[0], sum(1 for _ in self.paid.get()), 0

    def on_timer(self, timestamp: int, ctx: KeyedCoProcessFunction.OnTimerContext) -> Iterator[Any]:
        paid = sum(1 for payment in self.paid.get() if payment[1] <= timestamp)
        for _ in range(self.due.get(timestamp)):
            yield REPORTS, ("reports", ctx.get_current_key(), timestamp, paid)
        self.due.remove(timestamp)


class Program:
    """The join, its input, and what must come of it."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        chosen = random.Random(1)
        # files of an input → events of (key, time)
        self.events = {
            name: [
                [
                    (chosen.randrange(KEYS), number * 1000 + n * 30 + chosen.randrange(DISORDER_MS))
                    for n in range(PER_FILE)
                ]
                for number in range(FILES)
            ]
            for name in INPUTS
        }
        self.written = dict.fromkeys(INPUTS, 0)
        for name in INPUTS:
            (directory / name).mkdir()

    def add_file(self, name: str) -> None:
        number = self.written[name]
        hidden = self.directory / name / f".{number}"
        hidden.write_text("".join(f"{key},{at}\n" for key, at in self.events[name][number]))
        hidden.rename(self.directory / name / f"{number}.csv")
        self.written[name] += 1

    def graph(self, out: str, parallelism: int) -> Kept:
        env = environment(parallelism)
        strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(DISORDER_MS))

        def events(name: str) -> DataStream:
            path = self.directory / name
            source = FileSource(
                path, "csv", schema="k BIGINT, at BIGINT", bounded=False, max_files_per_trigger=1
            )
            timed = env.from_source(source).uid(name)
            return timed.assign_timestamps_and_watermarks(strategy.with_timestamp_assigner(At()))

        connected = events("orders").connect(events("payments"))
        keyed = connected.key_by(lambda order: order[0], lambda payment: payment[0], Types.LONG())
        joined = keyed.process(Join(), RESULT).uid("join")
        both = joined.union(joined.get_side_output(REPORTS))
        both.sink_to(FileSink(str(self.directory / out), "parquet"))
        return Kept(env)

    def results(self, out: str, until_batch: int | None = None) -> Counter[Result]:
        """What a job has written, or only its batches up to one."""
        found: Counter[Result] = Counter()
        for file in (self.directory / out).glob("part-*"):
            if until_batch is None or int(file.name.split("-")[3]) <= until_batch:
                rows = pq.ParquetFile(file).read().to_pylist()
                found.update((row["kind"], row["key"], row["at"], row["n"]) for row in rows)
        return found

    def await_elements(self, *outs: str) -> None:
        """Until all that was written has been processed."""

        def processed() -> bool:
            kinds = Counter(kind for out in outs for kind, *_ in self.results(out).elements())
            return all(kinds[name] >= self.written[name] * PER_FILE for name in INPUTS)

        wait_until(processed, f"{self.written} files")

    def expected(self) -> Counter[Result]:
        """Of all input."""
        found: Counter[Result] = Counter()
        times: dict[tuple[str, int], list[int]] = defaultdict(list)
        for name in INPUTS:
            for key, at in (event for file in self.events[name] for event in file):
                times[name, key].append(at)
                found[name, key, len(times[name, key]), 0] += 1
        for key in range(KEYS):
            for due_ms in (at + PATIENCE_MS for at in times["orders", key]):
                paid = sum(at <= due_ms for at in times["payments", key])
                found["reports", key, due_ms, paid] += 1
        return found


def _kinds(results: Counter[Result]) -> Counter[str]:
    return Counter(kind for kind, *_ in results.elements())


@pytest.mark.parametrize(
    "before, after, parallelism",
    [pytest.param("hashmap", "hashmap", 2, marks=pytest.mark.drill), ("rocksdb", "hashmap", 3)],
)
def test_a_join_goes_on_where_its_savepoint_was_taken(
    spark: SparkSession, tmp_path: Path, before: str, after: str, parallelism: int
) -> None:
    """The job went on after the savepoint and was canceled; another one starts from the savepoint."""
    program = Program(tmp_path)
    for name in ("orders", "orders", "orders", "payments", "payments"):
        program.add_file(name)
    job = Job(spark, program.graph("first", 2), tmp_path / "job", {"state.backend.type": before})
    program.await_elements("first")
    manifest = job.savepoint(tmp_path / "savepoint", CONTINUE)
    (position,) = manifest.positions
    program.add_file("payments")
    program.await_elements("first")
    job.cancel()

    had = program.results("first", position.batch_id)
    fired, orders = _kinds(had)["reports"], _kinds(had)["orders"]
    assert 0 < fired < orders, "some timers were to come, others had fired"
    found = read_elements(spark, str(tmp_path / "savepoint"), "elements", frozenset(), 0)
    entries = {name: state.entries for (_, name), state in found.overview.states.items()}
    # a list is one entry of its key, and so is a map
    assert entries["paid"] == KEYS and entries["due"] == KEYS < entries["event timers"]

    for name in ("orders", "payments"):
        program.add_file(name)
    graph = program.graph("second", parallelism)
    second = restored(
        spark, graph, tmp_path / "savepoint", tmp_path / "job2", {"state.backend.type": after}
    )
    wait_until(
        lambda: all(
            _kinds(had + program.results("second"))[name] >= FILES * PER_FILE for name in INPUTS
        ),
        "the rest",
    )
    second.savepoint(tmp_path / "drained", DRAIN)
    second.ended()
    assert had + program.results("second") == program.expected()
