"""Savepoints of programs on elements: what is in them, and what may be done with them."""

from __future__ import annotations

import json
import re
import shutil
import stat
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from integration.conftest import wait_until
from integration.spark.savepoint_support import DRAIN, STOP, Job, restored
from integration.spark.test_elements import (
    NUMBERED,
    Kept,
    counts,
    environment,
    expected_counts,
    write,
)
from yarnflow.api import FileSink, FileSource, StreamExecutionEnvironment
from yarnflow.api.common import Duration, Row, Time, Types, WatermarkStrategy
from yarnflow.api.common.watermark_strategy import TimestampAssigner
from yarnflow.api.datastream.functions import KeyedProcessFunction, RuntimeContext
from yarnflow.api.datastream.state import ValueStateDescriptor
from yarnflow.api.datastream.window import TumblingEventTimeWindows
from yarnflow.core.checkpoint.manifest import METADATA_FILE
from yarnflow.core.checkpoint.messages import RestoreSettings
from yarnflow.core.ids import JobId
from yarnflow.errors import StateDrained, StateNotTrusted
from yarnflow.graph.state.shape import shape_of
from yarnflow.spark.checkpoints.job import JobIdentity
from yarnflow.spark.checkpoints.restoring.restore import restore
from yarnflow.spark.state.element_state import read_elements

OWN_KEY, OTHER_KEY = b"own", b"other"
NUMBER = Types.INT()


@dataclass(frozen=True)
class Count:
    n: int


class CountsObjects(KeyedProcessFunction):
    """Counts the elements of a key in a state of objects."""

    def open(self, runtime_context: RuntimeContext) -> None:
        descriptor = ValueStateDescriptor("count", Types.PICKLED_BYTE_ARRAY())
        self.count = runtime_context.get_state(descriptor)

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        count = Count((self.count.value() or Count(0)).n + 1)
        self.count.update(count)
        timers = ctx.timer_service()
        timers.register_processing_time_timer(2**50)
        yield value[0], count.n


def counting_objects(directory: Path, out: Path) -> StreamExecutionEnvironment:
    env = environment()
    source = FileSource(directory, "csv", schema="k BIGINT, n BIGINT", bounded=False, max_files_per_trigger=1)
    keyed = env.from_source(source).key_by(lambda row: row[0])
    counted = keyed.process(CountsObjects(), output_type=NUMBERED).uid("objects")
    counted.sink_to(FileSink(str(out), "parquet"))
    return env


@pytest.fixture(scope="module")
def objects(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[Kept, Path]:
    """A program with objects in its state, and a savepoint of it, signed with OWN_KEY."""
    directory = tmp_path_factory.mktemp("objects")
    (directory / "in").mkdir()
    write(directory / "in", 0)
    program = Kept(counting_objects(directory / "in", directory / "out"))
    identity = JobIdentity(JobId("0" * 32), savepoint_key=OWN_KEY)
    # as pages
    job = Job(spark, program, directory, {"state.backend.type": "rocksdb"}, job=identity)
    wait_until(lambda: len(counts(directory / "out")) >= 100, "one file")
    assert counts(directory / "out") == expected_counts(1)
    job.savepoint(directory / "savepoint", STOP)
    job.ended()
    return program, directory / "savepoint"


def test_the_state_is_shown_without_unpickling_objects(
    spark: SparkSession, objects: tuple[Kept, Path]
) -> None:
    program, savepoint = objects
    (operator,) = shape_of(program.job()).queries[0].operators
    found = read_elements(spark, str(savepoint), "elements", frozenset({operator.operator_hash}), 3)
    states = {name: (s.kind, s.keys, s.entries) for (_, name), s in found.overview.states.items()}
    assert states == {
        "count": ("value of PickledByteArrayTypeInfo", 4, 4),
        "processing timers": ("timer", 4, 4),
    }
    assert len(found.entries) == 3 and found.more
    shown = {repr(entry.value) for entry in found.entries if entry.state == "count"}
    assert shown == {f"<object of {__name__}.Count>"}


@contextmanager
def mode_of(path: Path, mode: int) -> Iterator[None]:
    before = stat.S_IMODE(path.stat().st_mode)
    path.chmod(mode)
    yield
    path.chmod(before)


@pytest.mark.gate
def test_a_savepoint_is_its_users_alone(objects: tuple[Kept, Path]) -> None:
    _, savepoint = objects
    found = {(path.is_dir(), stat.S_IMODE(path.stat().st_mode)) for path in savepoint.rglob("*")}
    assert found == {(True, 0o700), (False, 0o600)}
    assert stat.S_IMODE(savepoint.stat().st_mode) == 0o700


@pytest.mark.gate
def test_objects_are_made_only_of_state_that_is_vouched_for(
    spark: SparkSession, objects: tuple[Kept, Path], tmp_path: Path
) -> None:
    program, savepoint = objects
    settings, shape = RestoreSettings(str(savepoint)), shape_of(program.job())
    # of another cluster, but the user's alone
    for number, key in enumerate((OTHER_KEY, b"")):
        assert restore(spark, settings, str(tmp_path / f"own{number}"), shape, key) is not None
    named = re.escape(f"holds objects of {__name__}.Count, and others may have written it to run anything")
    state_file = next(savepoint.glob("query-elements/commits/*"))
    for place, mode in ((savepoint, 0o770), (savepoint / METADATA_FILE, 0o620), (state_file, 0o602)):
        with mode_of(place, mode), pytest.raises(StateNotTrusted, match=f"{named}.*{place.name} is writable"):
            restore(spark, settings, str(tmp_path / "refused"), shape, OTHER_KEY)
    with mode_of(savepoint, 0o770):
        # the same driver again, or the next one: what was copied is still not vouched for
        with pytest.raises(StateNotTrusted, match=named):
            restore(spark, settings, str(tmp_path / "refused"), shape, b"")
        assert restore(spark, settings, str(tmp_path / "signed"), shape, OWN_KEY) is not None
        assert restore(spark, settings, str(tmp_path / "trusted"), shape, OTHER_KEY, trusted=True) is not None


@pytest.mark.gate
def test_a_manifest_that_was_changed_vouches_for_nothing(
    spark: SparkSession, objects: tuple[Kept, Path], tmp_path: Path
) -> None:
    program, savepoint = objects
    manifest = savepoint / METADATA_FILE
    content = manifest.read_bytes()
    described = json.loads(content)
    described["job_name"] = "another"
    manifest.write_text(json.dumps(described))
    try:
        with mode_of(savepoint, 0o770), pytest.raises(StateNotTrusted, match="has not signed it"):
            settings, shape = RestoreSettings(str(savepoint)), shape_of(program.job())
            restore(spark, settings, str(tmp_path / "job"), shape, OWN_KEY)
    finally:
        manifest.write_bytes(content)


class Counts(KeyedProcessFunction):
    """Numbers the elements of a key, and tells at the end of input how many there were."""

    def __init__(self, type_info: Any) -> None:
        self.type_info = type_info

    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", self.type_info))

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        if count == 1:
            # once: a timer that is lost with state must not come again
            ctx.timer_service().register_event_time_timer(1000)
        yield value[0], count

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterator[Any]:
        yield 10 + ctx.get_current_key(), self.count.value()


class Renumbered(KeyedProcessFunction):
    """Numbers the elements of a key, which is all that is left of them."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        yield ctx.get_current_key(), count


class NumberIsTime(TimestampAssigner):
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return int(value[1])


class Program:
    """Two keyed operators behind each other, with timers, and windows beside them.

    Nothing is due before the end of input.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.files = 0
        (directory / "in").mkdir()

    def add_file(self) -> None:
        write(self.directory / "in", self.files)
        self.files += 1

    def graph(self, parallelism: int, type_info: Any = NUMBER) -> Kept:
        env = environment(parallelism)
        source = FileSource(
            self.directory / "in", "csv", schema="k BIGINT, n BIGINT", bounded=False, max_files_per_trigger=1
        )
        strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_hours(1))
        timed = env.from_source(source).assign_timestamps_and_watermarks(
            strategy.with_timestamp_assigner(NumberIsTime())
        )
        keyed = timed.key_by(lambda row: row[0])
        counted = keyed.process(Counts(type_info), output_type=NUMBERED).uid("counts")
        by_parity = counted.key_by(lambda row: row[0] if row[0] >= 10 else row[1] % 2)
        again = by_parity.process(Renumbered(), output_type=NUMBERED).uid("again")
        again.sink_to(FileSink(str(self.directory / "out"), "parquet"))
        windows = keyed.window(TumblingEventTimeWindows.of(Time.hours(1)))
        sums = windows.reduce(lambda a, b: Row(k=a[0], n=a[1] + b[1])).uid("sums")
        sums.sink_to(FileSink(str(self.directory / "windows"), "parquet"))
        return Kept(env)

    def results(self) -> list[tuple[int, int]]:
        return counts(self.directory / "out")

    def windows(self) -> list[tuple[int, int]]:
        return counts(self.directory / "windows")

    def expected(self) -> list[tuple[int, int]]:
        """Before the end of input."""
        elements = Counter(count % 2 for _, count in expected_counts(self.files))
        return sorted((parity, n + 1) for parity in elements for n in range(elements[parity]))

    def expected_windows(self) -> list[tuple[int, int]]:
        return [(key, self.files * sum(range(key, 100, 4))) for key in range(4)]

    def expected_states(self) -> set[tuple[str, int, int]]:
        """(state, keys, entries)."""
        return {("count", 4, 4), ("count", 2, 2), ("event timers", 4, 4), ("window-contents", 4, 4)}

    def await_results(self) -> None:
        # each look reads all results in this process, where batches are begun as well
        wait_until(lambda: len(self.results()) >= self.files * 100, f"{self.files} files", pause_s=0.3)
        assert self.results() == self.expected()
        assert self.windows() == []


def keys_and_entries(spark: SparkSession, savepoint: Path) -> set[tuple[str, int, int]]:
    found = read_elements(spark, str(savepoint), "elements", frozenset(), 0)
    return {(name, s.keys, s.entries) for (_, name), s in found.overview.states.items()}


def test_another_parallelism_and_a_drain_give_the_same_results(spark: SparkSession, tmp_path: Path) -> None:
    program = Program(tmp_path)
    program.add_file()
    job = Job(spark, program.graph(2), tmp_path / "p2")
    program.await_results()
    job.savepoint(tmp_path / "savepoint2", STOP)
    job.ended()
    # as a cluster does when a job was stopped
    shutil.rmtree(tmp_path / "p2" / "checkpoint")
    assert keys_and_entries(spark, tmp_path / "savepoint2") == program.expected_states()
    for before, parallelism in ((2, 3), (3, 1)):
        program.add_file()
        job = restored(
            spark,
            program.graph(parallelism),
            tmp_path / f"savepoint{before}",
            tmp_path / f"p{parallelism}",
            {"state.backend.type": "rocksdb" if parallelism == 3 else "hashmap"},
        )
        program.await_results()
        state = tmp_path / f"p{parallelism}" / "checkpoint/query-elements/state"
        for operator in ("0", "1"):
            found = {int(entry.name) for entry in (state / operator).iterdir() if entry.name.isdigit()}
            assert found == set(range(parallelism))
        after = DRAIN if parallelism == 1 else STOP
        job.savepoint(tmp_path / f"savepoint{parallelism}", after)
        job.ended()
        if after is STOP:
            assert keys_and_entries(spark, tmp_path / f"savepoint{parallelism}") == program.expected_states()
    timers = [(10 + key, 1) for key in range(4)]
    assert program.results() == [*program.expected(), *timers]
    assert program.windows() == program.expected_windows()
    with pytest.raises(StateDrained):
        restored(spark, program.graph(1), tmp_path / "savepoint1", tmp_path / "drained")

    # the first savepoint is as it was; its state is not of another type
    program.add_file()
    refused = restored(
        spark, program.graph(2, Types.STRING()), tmp_path / "savepoint2", tmp_path / "another-type"
    )
    with pytest.raises(Exception, match="'count' is stored as Integer, the program registers it as String"):
        refused.ended()
