"""Savepoints of running graphs, and jobs that go on from them, on a real Spark."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from integration.conftest import wait_until
from integration.spark.savepoint_support import (
    BACKENDS,
    DRAIN,
    EPOCH,
    RECORD,
    STOP,
    Input,
    Job,
    copying,
    counting,
    expected_totals,
    numbers,
    numbers_of,
    restored,
    rows,
    totals,
    use_backend,
    windowed,
)
from integration.spark.translate_support import Graph, program, schema
from tests.patience import PATIENCE
from yarnflow.core.checkpoint.messages import CheckpointKind, CheckpointOrder, CheckpointOutcome
from yarnflow.errors import StateDrained, StorageError, UserCodeError
from yarnflow.graph.operators import SqlOperator, UnionOperator
from yarnflow.spark.run.batch_gate import BatchGate

SNAPSHOT_AFTER = "spark.sql.streaming.stateStore.minDeltasForSnapshot"


@pytest.fixture(scope="module")
def spark(spark: SparkSession) -> SparkSession:
    use_backend(spark)
    return spark


@pytest.fixture(autouse=True)
def _nothing_left_running(spark: SparkSession) -> Iterator[None]:
    """A test that fails must not make the next one fail."""
    yield
    for query in spark.streams.active:
        query.stop()


@pytest.fixture(params=BACKENDS)
def backend(spark: SparkSession, request: pytest.FixtureRequest) -> Iterator[str]:
    use_backend(spark, request.param)
    # by default there is a snapshot after ten batches
    spark.conf.set(SNAPSHOT_AFTER, "2")
    yield request.param
    spark.conf.unset(SNAPSHOT_AFTER)
    use_backend(spark)


def test_a_savepoint_while_running_is_one_batch_of_the_past(
    spark: SparkSession, tmp_path: Path, backend: str
) -> None:
    source = Input(tmp_path / "in")
    graph = counting(source, tmp_path / "out")
    job = Job(spark, graph, tmp_path)
    source.add(8)
    # two snapshots' worth of batches, and more to come while it is copied
    wait_until(lambda: (tmp_path / "checkpoint/query-counts/commits/4").exists(), "five batches")
    manifest = job.savepoint(tmp_path / "savepoint")
    last = manifest.positions[0].batch_id
    assert last >= 4 and not (tmp_path / f"savepoint/query-counts/offsets/{last + 1}").exists()
    source.add(2)
    wait_until(lambda: totals(tmp_path / "out") == expected_totals(source.written), "the job to go on")
    job.cancel()
    # relocatable: moved as a whole, and the job it is of is gone
    (tmp_path / "savepoint").rename(tmp_path / "elsewhere")
    (tmp_path / "checkpoint").rename(tmp_path / "gone")
    second = restored(
        spark, counting(source, tmp_path / "second"), tmp_path / "elsewhere", tmp_path / "job2"
    )
    wait_until(lambda: totals(tmp_path / "second") == expected_totals(source.written), "the second job")
    second.cancel()
    # each file was one batch: those before the savepoint were not read again
    assert len(list((tmp_path / "second").glob("part-*"))) >= source.written // 10 - last - 1
    assert min(c for _, c, _ in rows(tmp_path / "second")) > 3


def test_records_before_and_after_a_running_savepoint_are_there_once(
    spark: SparkSession, tmp_path: Path
) -> None:
    source = Input(tmp_path / "in")
    job = Job(spark, copying(source, tmp_path / "out"), tmp_path)
    source.add(9)
    wait_until(lambda: (tmp_path / "checkpoint/query-numbers/commits/2").exists(), "three batches")
    last = job.savepoint(tmp_path / "savepoint").positions[0].batch_id
    wait_until(lambda: len(numbers(tmp_path / "out")) == source.written, "the job to go on")
    job.cancel()
    # the same output: a job forked off another may not write over its files
    graph = copying(source, tmp_path / "out")
    before = {file.name for file in (tmp_path / "out").glob("part-*")}
    second = restored(spark, graph, tmp_path / "savepoint", tmp_path / "job2")
    source.add(2)
    wait_until(lambda: source.written - 1 in numbers(tmp_path / "out"), "the second job")
    second.cancel()
    old = sum((numbers_of(tmp_path / "out" / name) for name in before), Counter())
    assert old == Counter(range(source.written - 20))
    fresh = numbers(tmp_path / "out") - old
    assert fresh == Counter(range(10 * (last + 1), source.written))


@pytest.mark.gate
def test_stop_writes_nothing_after_the_savepoint_and_loses_nothing(
    spark: SparkSession, tmp_path: Path
) -> None:
    source = Input(tmp_path / "in")
    g = counting(source, tmp_path / "totals")
    copied = g.add(source.source(), RECORD, uid="numbers")
    g.files(tmp_path / "out", copied)
    source.add(9)
    job = Job(spark, g, tmp_path)
    wait_until(lambda: (tmp_path / "checkpoint/query-counts/commits/1").exists(), "two batches")
    # a batch that was planned and waits at the gate is the hard case: it is refused, and done by the next job
    last = job.hold("counts")
    wait_until(lambda: (tmp_path / f"checkpoint/query-counts/offsets/{last + 1}").exists(), "a planned batch")
    manifest = job.savepoint(tmp_path / "savepoint", STOP)
    job.ended()
    positions = {position.query: position.batch_id for position in manifest.positions}
    assert numbers(tmp_path / "out") == Counter(range(10 * (positions["numbers"] + 1)))
    assert positions["counts"] == last < 9, "stopped in the middle"
    files = {file.path for file in manifest.files}
    assert f"query-counts/offsets/{last + 1}" in files, "the planned batch travels with the savepoint"
    second = restored(spark, g, tmp_path / "savepoint", tmp_path / "job2")
    done = Counter(range(source.written))
    wait_until(lambda: len(numbers(tmp_path / "out")) == source.written, "all records")
    wait_until(lambda: totals(tmp_path / "totals") == expected_totals(source.written), "all totals")
    second.cancel()
    assert numbers(tmp_path / "out") == done
    assert len({(k, c) for k, c, _ in rows(tmp_path / "totals")}) == len(rows(tmp_path / "totals"))


def test_drain_fires_every_window_and_reads_nothing(spark: SparkSession, tmp_path: Path) -> None:
    source = Input(tmp_path / "in")
    source.add(20)
    job = Job(spark, windowed(source, tmp_path / "out"), tmp_path)
    wait_until(lambda: (tmp_path / "checkpoint/query-windows/commits/2").exists(), "three batches")
    manifest = job.savepoint(tmp_path / "savepoint", DRAIN)
    job.ended()
    position = manifest.positions[0]
    read = 10 * (json.loads(position.sources[0].end_offset)["logOffset"] + 1)
    assert 30 <= read < source.written, "drained in the middle of the input"
    expected = [(start, min(20, read - start)) for start in range(0, read, 20)]
    assert rows(tmp_path / "out") == expected
    with pytest.raises(StateDrained, match="for jobs that end for good"):
        restored(spark, windowed(source, tmp_path / "out"), tmp_path / "savepoint", tmp_path / "again")
    assert not (tmp_path / "again").exists()
    # stopped without draining, the last window is still open
    stopped = Job(spark, windowed(source, tmp_path / "stopped"), tmp_path / "job2")
    wait_until(lambda: (tmp_path / "job2/checkpoint/query-windows/commits/2").exists(), "three batches")
    stopped.savepoint(tmp_path / "savepoint2", STOP)
    stopped.ended()
    assert all(count == 20 for _, count in rows(tmp_path / "stopped"))


def test_an_idle_job_is_stopped_and_goes_on(spark: SparkSession, tmp_path: Path) -> None:
    source = Input(tmp_path / "in")
    job = Job(spark, counting(source, tmp_path / "out"), tmp_path)
    wait_until(lambda: totals(tmp_path / "out") == expected_totals(10), "the first file")
    wait_until(lambda: (tmp_path / "checkpoint/query-counts/commits/0").exists(), "its commit")
    manifest = job.savepoint(tmp_path / "savepoint", STOP)
    job.ended()
    assert manifest.positions[0].batch_id == 0 and manifest.positions[0].committed_ms > 0
    source.add(1)
    second = restored(spark, counting(source, tmp_path / "out"), tmp_path / "savepoint", tmp_path / "job2")
    wait_until(lambda: totals(tmp_path / "out") == expected_totals(20), "the second file")
    second.cancel()


@pytest.mark.gate
def test_a_stop_that_cannot_be_saved_lets_the_job_go_on(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = Input(tmp_path / "in")
    job = Job(spark, copying(source, tmp_path / "out"), tmp_path)
    wait_until(lambda: len(numbers(tmp_path / "out")) == 10, "the first file")
    (tmp_path / "file").write_text("no directory")
    assert str(tmp_path / "file") in job.order(tmp_path / "file/savepoint", STOP).failure
    assert "exists already" in job.order(tmp_path / "file", STOP).failure
    with monkeypatch.context() as patched:
        patched.setattr("yarnflow.spark.checkpoints.savepoint_writer.copy_files", out_of_space)
        assert job.order(tmp_path / "half", STOP).failure == "no space left"
    assert not (tmp_path / "half").exists()
    source.add(2)
    wait_until(lambda: len(numbers(tmp_path / "out")) == 30, "the job to go on")
    manifest = job.savepoint(tmp_path / "savepoint", STOP)
    job.ended()
    assert manifest.positions[0].batch_id == 2
    assert numbers(tmp_path / "out") == Counter(range(30))


def holding(source: Input, signals: Path, then: str = "") -> Graph:
    """A job whose batch 1 waits for the file ``go-on``, and then fails with a message if there is one."""
    signals.mkdir()

    def hold(frame: DataFrame, batch_id: int) -> None:
        import time

        frame.collect()
        if batch_id == 1:
            (signals / "begun").touch()
            while not (signals / "go-on").exists():
                time.sleep(0.05)
            if then:
                raise ValueError(then)

    g = Graph()
    g.each_batch(hold, g.add(source.source(), RECORD, uid="numbers"))
    return g


def in_background(work: Callable[[], CheckpointOutcome]) -> tuple[threading.Thread, list[CheckpointOutcome]]:
    outcomes: list[CheckpointOutcome] = []
    thread = threading.Thread(target=lambda: outcomes.append(work()), daemon=True)
    thread.start()
    return thread, outcomes


def out_of_space(*_: object) -> None:
    raise StorageError("no space left")


def test_a_drain_that_cannot_be_saved_fails_the_job(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it would read after all windows have fired would be too late for its own."""
    source = Input(tmp_path / "in")
    job = Job(spark, windowed(source, tmp_path / "out"), tmp_path)
    wait_until(lambda: (tmp_path / "checkpoint/query-windows/commits/0").exists(), "the first batch")
    monkeypatch.setattr("yarnflow.spark.checkpoints.savepoint_writer.copy_files", out_of_space)
    assert "no space left" in job.order(tmp_path / "savepoint", DRAIN).failure
    with pytest.raises(StateDrained, match="fired by --drain, but the savepoint failed"):
        job.ended()
    # as after a driver that died in the middle of it
    with pytest.raises(StateDrained, match="query windows was drained"):
        Job(spark, windowed(source, tmp_path / "out"), tmp_path)


def test_a_drain_whose_last_batch_fails_ends_the_job(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = Input(tmp_path / "in")
    job = Job(spark, windowed(source, tmp_path / "out"), tmp_path)
    wait_until(lambda: (tmp_path / "checkpoint/query-windows/commits/0").exists(), "the first batch")
    monkeypatch.setattr("yarnflow.spark.connectors.file_sink.FileWriter.write", out_of_space)
    assert job.order(tmp_path / "savepoint", DRAIN).failure
    with pytest.raises(StateDrained, match="fired by --drain, but the savepoint failed"):
        job.ended()


def test_a_query_that_cannot_be_resumed_fails_the_job(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = Input(tmp_path / "in")
    job = Job(spark, copying(source, tmp_path / "out"), tmp_path)
    wait_until(lambda: (tmp_path / "checkpoint/query-numbers/commits/0").exists(), "the first batch")
    monkeypatch.setattr("yarnflow.spark.checkpoints.savepoint_writer.copy_files", out_of_space)
    monkeypatch.setattr("pyspark.sql.streaming.readwriter.DataStreamWriter.start", out_of_space)
    assert "no space left" in job.order(tmp_path / "savepoint", STOP).failure
    with pytest.raises(StorageError, match="no space left"):
        job.ended()


def test_a_stop_right_after_a_restart_ends_what_was_begun(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The attempt before had moved the files of a batch and not committed it."""
    source = Input(tmp_path / "in")
    source.add(2)
    graph = copying(source, tmp_path / "out")
    job = Job(spark, graph, tmp_path)
    wait_until(lambda: (tmp_path / "checkpoint/query-numbers/commits/2").exists(), "three batches")
    job.cancel()
    for file in (tmp_path / "checkpoint/query-numbers/commits").glob("*2*"):
        file.unlink()
    enter, arrived, go_on = BatchGate.enter, threading.Event(), threading.Event()

    def late(gate: BatchGate, batch_id: int) -> None:
        arrived.set()
        go_on.wait(PATIENCE.condition_s)
        enter(gate, batch_id)

    monkeypatch.setattr(BatchGate, "enter", late)
    again = Job(spark, graph, tmp_path)
    assert arrived.wait(PATIENCE.condition_s)
    waiting, outcomes = in_background(lambda: again.order(tmp_path / "savepoint", STOP))
    waiting.join(0.5)
    go_on.set()
    waiting.join(PATIENCE.condition_s)
    again.ended()
    assert outcomes[0].positions[0].batch_id == 2
    second = restored(spark, graph, tmp_path / "savepoint", tmp_path / "job2")
    source.add(1)
    wait_until(lambda: len(numbers(tmp_path / "out")) == source.written, "the second job")
    second.cancel()
    assert numbers(tmp_path / "out") == Counter(range(source.written))


def test_a_checkpoint_waits_for_the_batch_that_runs(spark: SparkSession, tmp_path: Path) -> None:
    source = Input(tmp_path / "in")
    job = Job(spark, holding(source, tmp_path / "signals"), tmp_path)
    wait_until(lambda: (tmp_path / "checkpoint/query-numbers/commits/0").exists(), "the first batch")
    assert job.order().positions[0].batch_id == 0
    source.add(1)
    wait_until((tmp_path / "signals/begun").exists, "the second batch")
    waiting, outcomes = in_background(job.order)
    waiting.join(0.5)
    assert not outcomes, "the batch has not been committed"
    (tmp_path / "signals/go-on").touch()
    waiting.join(PATIENCE.condition_s)
    assert outcomes[0].positions[0].batch_id == 1
    assert outcomes[0].commit_wait_ms > 0
    job.cancel()
    assert job.order().failure == "the job has ended"


def test_a_batch_that_fails_during_a_stop_fails_the_job(spark: SparkSession, tmp_path: Path) -> None:
    source = Input(tmp_path / "in")
    job = Job(spark, holding(source, tmp_path / "signals", "on purpose"), tmp_path)
    source.add(1)
    wait_until((tmp_path / "signals/begun").exists, "the second batch")
    waiting, outcomes = in_background(lambda: job.order(tmp_path / "savepoint", STOP))
    waiting.join(0.3)
    (tmp_path / "signals/go-on").touch()
    waiting.join(PATIENCE.condition_s)
    assert "ended in batch 1" in outcomes[0].failure
    with pytest.raises(UserCodeError, match="on purpose"):
        job.ended()
    assert not (tmp_path / "savepoint").exists()


def test_a_program_without_a_stream_has_no_savepoints(spark: SparkSession, tmp_path: Path) -> None:
    g = Graph()
    g.files(tmp_path / "out", g.add(SqlOperator("select id from range(3)"), schema("id bigint")))
    made = program(spark, g, tmp_path)
    made.prepare()
    made.start()
    outcome = made.take_checkpoint(CheckpointOrder(1, CheckpointKind.SAVEPOINT, STOP, str(tmp_path / "s")))
    assert "reads no stream" in outcome.failure
    made.await_end()


def test_a_collection_is_not_read_again_in_the_job_that_goes_on(spark: SparkSession, tmp_path: Path) -> None:
    """Its rows lie in the first job's own directory, whose name stands in Spark's logs."""
    source = Input(tmp_path / "in")

    def both(out: Path) -> Graph:
        g = Graph()
        collected = g.collection([(-1, 0, EPOCH), (-2, 0, EPOCH)], RECORD)
        watched = g.add(source.source(), RECORD)
        g.files(out, g.add(UnionOperator(), RECORD, collected, watched, uid="both"))
        return g

    job = Job(spark, both(tmp_path / "out"), tmp_path)
    wait_until(lambda: len(numbers(tmp_path / "out")) == 12, "the first batch")
    job.savepoint(tmp_path / "savepoint", STOP)
    job.ended()
    for path in (tmp_path / "checkpoint").rglob("*"):
        if path.is_file():
            path.unlink()
    source.add(1)
    second = restored(spark, both(tmp_path / "out"), tmp_path / "savepoint", tmp_path / "job2")
    wait_until(lambda: len(numbers(tmp_path / "out")) == 22, "the second batch")
    second.cancel()
    assert numbers(tmp_path / "out") == Counter([-1, -2, *range(20)])
