"""Programs on elements that start from the state of others: operators more, operators less, other levels."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from integration.conftest import wait_until
from integration.spark.savepoint_support import DRAIN, STOP, Job, read_manifest, restored
from integration.spark.test_element_savepoints import (
    Counts,
    NumberIsTime,
    Renumbered,
    keys_and_entries,
)
from integration.spark.test_elements import (
    NUMBERED,
    Kept,
    counts,
    environment,
    expected_counts,
    write,
)
from integration.spark.test_restore import rewrite_manifest
from yarnflow.api import FileSink, FileSource
from yarnflow.api.common import Duration, Row, Types, WatermarkStrategy
from yarnflow.api.datastream import DataStream
from yarnflow.api.datastream.functions import KeyedProcessFunction, RuntimeContext
from yarnflow.api.datastream.state import ValueStateDescriptor
from yarnflow.core.checkpoint.messages import CheckpointKind
from yarnflow.errors import StateIncompatible

ROCKSDB = {"state.backend.type": "rocksdb"}
STATE_FORMAT = "spark.sql.streaming.stateStore.checkpointFormatVersion"
#: elements of a file
SIZE = 100


class Seen(KeyedProcessFunction):
    """Counts elements and passes them on; fails in the middle of a batch while there is a file."""

    def __init__(self, failing: Path) -> None:
        self.failing = failing
        self.elements = 0

    def open(self, runtime_context: RuntimeContext) -> None:
        self.seen = runtime_context.get_state(ValueStateDescriptor("seen", Types.INT()))

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        self.elements += 1
        if self.elements > SIZE // 10 and self.failing.exists():
            raise ValueError("as it was told to")
        self.seen.update((self.seen.value() or 0) + 1)
        yield value


class Clocked(Seen):
    """Has timers that may be due while no elements come."""

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        ctx.timer_service().register_processing_time_timer(2**50)
        yield from super().process_element(value, ctx)

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterator[Any]:
        raise AssertionError("never due")


class Program:
    """Elements of watched files, numbered by key, and these numbers again by parity.

    Every key has a timer that is due at the end of input.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.failing = directory / "failing"
        self.files = 0
        (directory / "in").mkdir()

    def add_file(self) -> None:
        write(self.directory / "in", self.files)
        self.files += 1

    def source(self, parallelism: int, bounded: bool = False) -> DataStream:
        directory, schema = self.directory / "in", "k BIGINT, n BIGINT"
        source = FileSource(directory, "csv", schema=schema, bounded=bounded, max_files_per_trigger=1)
        strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_hours(1))
        timed: DataStream = (
            environment(parallelism)
            .from_source(source)
            .uid("files")
            .assign_timestamps_and_watermarks(strategy.with_timestamp_assigner(NumberIsTime()))
        )
        return timed

    def graph(self, parallelism: int = 2, seen: bool = False, again: str = "") -> Kept:
        """With an operator with state before the numbering, and one behind it that writes to a directory.

        Sums stand beside the numbering where there is none before it.
        """
        stream = self.source(parallelism)
        self.sums(stream)
        if seen:
            stream = stream.key_by(lambda row: row[0]).process(Seen(self.failing), NUMBERED).uid("seen")
        counted = stream.key_by(lambda row: row[0]).process(Counts(Types.INT()), NUMBERED).uid("counts")
        counted.sink_to(FileSink(str(self.directory / "out"), "parquet"))
        if again:
            by_parity = counted.key_by(lambda row: row[0] if row[0] >= 10 else row[1] % 2)
            renumbered = by_parity.process(Renumbered(), NUMBERED).uid("again")
            renumbered.sink_to(FileSink(str(self.directory / again), "parquet"))
        return Kept(counted.get_execution_environment())

    def sums(self, stream: DataStream, out: str = "sums") -> None:
        sums = stream.key_by(lambda row: row[0]).reduce(lambda a, b: Row(k=a[0], n=a[1] + b[1])).uid("sums")
        sums.sink_to(FileSink(str(self.directory / out), "parquet"))

    def expected_sums(self, files: int = 0) -> list[tuple[int, int]]:
        """Of the first files; 0 = of all."""
        found = Counter[int]()
        sums = []
        for n in (n for _ in range(files or self.files) for n in range(SIZE)):
            found[n % 4] += n
            sums.append((n % 4, found[n % 4]))
        return sorted(sums)

    def results(self, out: str = "out") -> list[tuple[int, int]]:
        return counts(self.directory / out)

    def expected_again(self, first: int = 0) -> list[tuple[int, int]]:
        """What is numbered by parity of the files from one on."""
        numbers = Counter(expected_counts(self.files)) - Counter(expected_counts(first))
        elements = Counter(number % 2 for _, number in numbers.elements())
        return sorted((parity, n + 1) for parity in elements for n in range(elements[parity]))

    def await_results(self, again: str = "", first: int = 0) -> None:
        """Of all files there are; what is numbered by parity, of those from one on."""
        numbered = (self.files - first) * SIZE if again else 0

        def complete() -> bool:
            found = [len(self.results(out)) for out in ("out", "sums")]
            return min(found) >= self.files * SIZE and len(self.results(again)) >= numbered

        # each look reads all results in this process, where batches are begun as well
        wait_until(complete, f"{self.files} files", pause_s=0.3)
        assert self.results() == expected_counts(self.files)
        assert self.results("sums") == self.expected_sums()
        assert not again or self.results(again) == self.expected_again(first)


def levels(directory: Path) -> int:
    """With state, of a job."""
    return len([*(directory / "checkpoint/query-elements/state").glob("[0-9]*")])


def offsets(directory: Path) -> list[str]:
    """Of the sources, after the newest batch."""
    newest = max((directory / "checkpoint/query-elements/offsets").glob("[0-9]*"), key=lambda p: int(p.name))
    return newest.read_text().splitlines()[2:]


@pytest.fixture
def state_with_ids(spark: SparkSession) -> Iterator[None]:
    """Files of new state are called by ids, which stand in the log of commits."""
    spark.conf.set(STATE_FORMAT, "2")
    yield
    spark.conf.unset(STATE_FORMAT)


@pytest.mark.drill
@pytest.mark.usefixtures("state_with_ids")
def test_operators_come_and_go_and_the_others_go_on(spark: SparkSession, tmp_path: Path) -> None:
    program = Program(tmp_path)
    program.add_file()
    job = Job(spark, program.graph(again="again"), tmp_path / "first")
    program.await_results("again")
    job.savepoint(tmp_path / "savepoint1", STOP)
    job.ended()
    of_counts = {("count", 4, 4), ("event timers", 4, 4), ("_reduce_state", 4, 4)}
    of_again, of_seen = {("count", 2, 2)}, {("seen", 4, 4)}

    # one with state before the others, which come a level further; the first batch fails halfway
    program.failing.touch()
    program.add_file()
    second = program.graph(seen=True, again="again")
    job = restored(spark, second, tmp_path / "savepoint1", tmp_path / "second")
    with pytest.raises(Exception, match="as it was told to"):
        job.ended()
    # what was begun is completed as it was begun, not by operators that keep state elsewhere
    retained = tmp_path / "second/checkpoint/chk-1"
    retained.mkdir()
    manifest = read_manifest(tmp_path / "savepoint1")
    rewrite_manifest(retained, replace(manifest, kind=CheckpointKind.CHECKPOINT, files=()))
    with pytest.raises(StateIncompatible, match="has begun a batch .* and the operators it was begun with"):
        restored(spark, program.graph(again="again"), retained, tmp_path / "refused")
    shutil.rmtree(retained)
    program.failing.unlink()
    job = restored(spark, second, tmp_path / "savepoint1", tmp_path / "second")
    program.await_results("again")
    again = program.results("again")
    assert levels(tmp_path / "second") == 3
    job.savepoint(tmp_path / "savepoint2", STOP)
    job.ended()
    assert keys_and_entries(spark, tmp_path / "savepoint2") == of_counts | of_again | of_seen

    # without the last one; in another form and number of partitions as well
    third = program.graph(parallelism=3, seen=True)
    named = r"stateful operator 'KEYED PROCESS' \(uid 'again', .*is not in the program any more: bring"
    with pytest.raises(StateIncompatible, match=named) as refused:
        restored(spark, third, tmp_path / "savepoint2", tmp_path / "third", ROCKSDB)
    assert "--allow-non-restored-state" in str(refused.value) and "'seen'" not in str(refused.value)
    assert not (tmp_path / "third").exists() and not (tmp_path / "refused").exists()
    program.add_file()
    job = restored(
        spark, third, tmp_path / "savepoint2", tmp_path / "third", ROCKSDB, allow_non_restored=True
    )
    program.await_results()
    assert levels(tmp_path / "third") == 2
    job.savepoint(tmp_path / "savepoint3", STOP)
    job.ended()
    assert keys_and_entries(spark, tmp_path / "savepoint3") == of_counts | of_seen

    # without the first one, and with the last one again, which knows nothing of what it was told before
    before = program.files
    program.add_file()
    job = restored(
        spark,
        program.graph(parallelism=3, again="anew"),
        tmp_path / "savepoint3",
        tmp_path / "fourth",
        allow_non_restored=True,
    )
    program.await_results("anew", before)
    job.savepoint(tmp_path / "savepoint4", DRAIN)
    job.ended()
    # the timers of the first job
    ends = [(10 + key, program.files * SIZE // 4) for key in range(4)]
    assert program.results() == [*expected_counts(program.files), *ends]
    assert program.results("again") == again


def test_a_clock_and_an_end_come_and_go(spark: SparkSession, tmp_path: Path) -> None:
    program = Program(tmp_path)

    def graph(clock: bool, out: str = "sums", bounded: bool = False) -> Kept:
        stream = program.source(1, bounded)
        program.sums(stream, out)
        if clock:
            # beside the sums, which stay where they are
            keyed = stream.key_by(lambda row: row[0])
            clocked = keyed.process(Clocked(program.failing), NUMBERED).uid("clocked")
            clocked.sink_to(FileSink(str(tmp_path / "clocked"), "parquet"))
        return Kept(stream.get_execution_environment())

    job: Job | None = None
    for number, clock in enumerate((False, True, False)):
        program.add_file()
        directory, savepoint = tmp_path / f"job{number}", tmp_path / f"savepoint{number}"
        if job is None:
            job = Job(spark, graph(clock), directory)
        else:
            last = tmp_path / f"savepoint{number - 1}"
            job = restored(spark, graph(clock), last, directory, allow_non_restored=True)
        wait_until(lambda: len(program.results("sums")) >= program.files * SIZE, "the sums")
        assert program.results("sums") == program.expected_sums()
        job.savepoint(savepoint, STOP)
        job.ended()
        found = offsets(directory)
        assert len(found) == 1 + clock and levels(directory) == 1
        assert json.loads(found[0])["logOffset"] == number

    # the clock makes room for the end of input, to which a job comes by itself
    bounded, last = graph(False, out="to-the-end", bounded=True), tmp_path / "last"
    restored(spark, bounded, tmp_path / "savepoint1", last, allow_non_restored=True).ended()
    rest = Counter(program.expected_sums(3)) - Counter(program.expected_sums(2))
    assert program.results("to-the-end") == sorted(rest.elements())
    found = offsets(last)
    assert len(found) == 2 and "-" not in found
