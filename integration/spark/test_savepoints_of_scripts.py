"""Checkpoints and savepoints of unmodified PySpark scripts."""

from __future__ import annotations

import re
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from integration.conftest import wait_until
from integration.spark.savepoint_support import Input, read_manifest
from tests.patience import PATIENCE
from yarnflow.core.checkpoint.manifest import FREE, HELD, METADATA_FILE, SavepointMetadata, to_bytes
from yarnflow.core.checkpoint.messages import (
    AfterSavepoint,
    CheckpointKind,
    CheckpointOrder,
    CheckpointOutcome,
    RestoreSettings,
)
from yarnflow.core.checkpoint.program_shape import ProgramShape
from yarnflow.core.ids import JobId
from yarnflow.errors import LeaseLost, StateIncompatible, StateInUse, StorageError, YarnflowError
from yarnflow.spark.checkpoints.restoring.restore import restore
from yarnflow.spark.progress.collector import ProgressCollector
from yarnflow.spark.script.program import ScriptProgram

SCRIPT = """
import sys
from pyspark.sql import SparkSession
spark = SparkSession.builder.getOrCreate()
numbers = (spark.readStream.schema("n bigint, k bigint, at timestamp").option("maxFilesPerTrigger", 1)
           .parquet(sys.argv[1]))
query = numbers.writeStream.OPTIONS.option("path", sys.argv[2]).start()
query.awaitTermination()
"""


@pytest.fixture(autouse=True)
def _nothing_left_running(spark: SparkSession) -> Iterator[None]:
    """A test that fails must not make the next one fail."""
    yield
    for query in spark.streams.active:
        query.stop()


class ScriptJob:
    """A script in this process; main runs in this thread, so what else happens does so beside it."""

    def __init__(
        self,
        spark: SparkSession,
        directory: Path,
        options: str,
        source: Input,
        out: Path,
        text: str = SCRIPT,
        progress: ProgressCollector | None = None,
        arguments: tuple[str, ...] = (),
    ) -> None:
        spark.conf.unset("spark.sql.streaming.checkpointLocation")
        text = text.replace("OPTIONS", options)
        self.program = ScriptProgram(
            spark,
            {"job.py": text.encode()},
            ["job.py", str(source.directory), str(out), *arguments],
            directory,
            str(directory / "checkpoint"),
            progress or ProgressCollector(),
        )
        self.outcomes: list[CheckpointOutcome] = []

    def run(self, *orders: CheckpointOrder, after: Callable[[], bool]) -> None:
        """Run to the end; once it is time, the orders are given, and then the job is canceled.

        Nothing of it goes on when this returns or raises: a look at the output, and the stop after it, would
        come while another job runs in the session.
        """
        ended = threading.Event()
        failures: list[Exception] = []

        def give() -> None:
            try:
                wait_until(lambda: ended.is_set() or after(), "the time for the orders")
                assert not ended.is_set(), "the script ended before it was time for the orders"
                for order in orders:
                    self.outcomes.append(self.program.take_checkpoint(order))
            except Exception as error:
                failures.append(error)
            finally:
                self.program.stop()

        beside = threading.Thread(target=give, daemon=True)
        self.program.prepare()
        self.program.start()
        beside.start()
        try:
            self.program.await_end()
        finally:
            # its end cancels what else is asked of Spark, such as the look at the output
            ended.set()
            beside.join(PATIENCE.condition_s)
            assert not beside.is_alive(), "the orders do not end"
        if failures:
            raise failures[0]


def savepoint(target: Path, after: AfterSavepoint) -> CheckpointOrder:
    return CheckpointOrder(1, CheckpointKind.SAVEPOINT, after, str(target))


NAMED = 'format("parquet").queryName("copy")'


@pytest.mark.gate
def test_stopped_with_a_savepoint_and_gone_on(spark: SparkSession, tmp_path: Path) -> None:
    source, out = Input(tmp_path / "in"), tmp_path / "out"
    source.add(15)
    job = ScriptJob(spark, tmp_path / "job1", NAMED, source, out)
    commits = tmp_path / "job1/checkpoint/copy/commits"
    checkpoint = CheckpointOrder(1, CheckpointKind.CHECKPOINT)
    stop = savepoint(tmp_path / "savepoint", AfterSavepoint.STOP)
    job.run(checkpoint, stop, savepoint(tmp_path / "late", AfterSavepoint.STOP), after=(commits / "2").exists)
    first, stopped, late = job.outcomes
    assert (first.failure, stopped.failure, late.failure) == ("", "", "the job has ended")
    last = stopped.positions[0].batch_id
    assert 2 <= first.positions[0].batch_id <= last < 15, "stopped in the middle of the input"
    state = restore(
        spark,
        RestoreSettings(str(tmp_path / "savepoint")),
        str(tmp_path / "job2/checkpoint"),
        ProgramShape("SCRIPT"),
        # nobody knows what queries it has: none of them is gone
        allow_non_restored=True,
    )
    assert state is not None
    job = ScriptJob(spark, tmp_path / "job2", NAMED, source, out)

    def numbers() -> Counter[int]:
        # Spark's own file sink lists in its log what counts
        return Counter(row.n for row in spark.read.parquet(str(out)).select("n").collect())

    # a file that was listed when the query was stopped is read with the next one: not one batch each
    job.run(after=lambda: len(numbers()) == source.written)
    assert numbers() == Counter(range(source.written))
    assert read_manifest(tmp_path / "savepoint").program.kind == "SCRIPT"


def test_what_a_script_cannot_do_is_said(spark: SparkSession, tmp_path: Path) -> None:
    source = Input(tmp_path / "in")
    job = ScriptJob(spark, tmp_path / "job", NAMED, source, tmp_path / "out")
    after = (tmp_path / "job/checkpoint/copy/commits/0").exists
    job.run(savepoint(tmp_path / "s", AfterSavepoint.DRAIN), after=after)
    assert "stop without --drain" in job.outcomes[0].failure
    assert not (tmp_path / "s").exists()


#: as scripts are: no names, locations in the code, and one query that says nothing at all
USUAL = """
import sys
from pathlib import Path
from pyspark.sql import SparkSession
spark = SparkSession.builder.getOrCreate()
_, files, out, location = sys.argv
numbers = (spark.readStream.schema("n bigint, k bigint, at timestamp").option("maxFilesPerTrigger", 1)
           .parquet(files))
for name, rows in {"all": numbers, "even": numbers.where("n % 2 = 0")}.items():
    (rows.writeStream.format("parquet").option("checkpointLocation", f"{location}/{name}")
         .option("path", f"{out}/{name}").start())
def note(frame, batch_id):
    found = {row["k"]: row["count"] for row in frame.collect()}
    with Path(out, "counts").open("a") as file:
        print(batch_id, sum(found.values()), file=file)
numbers.groupBy("k").count().writeStream.outputMode("complete").foreachBatch(note).start()
spark.streams.awaitAnyTermination()
"""


def test_a_script_as_it_is_goes_on_where_it_was_and_elsewhere(spark: SparkSession, tmp_path: Path) -> None:
    source, out = Input(tmp_path / "in"), tmp_path / "out"
    out.mkdir()
    counts = out / "counts"

    def counted() -> list[tuple[int, int]]:
        """Batch, and how many numbers there were by then."""
        lines = counts.read_text().splitlines() if counts.exists() else []
        return [(int(batch), int(total)) for batch, total in map(str.split, lines)]

    def copied(name: str) -> list[int]:
        there = (out / name / "_spark_metadata").exists()
        return sorted(row.n for row in spark.read.parquet(str(out / name)).collect()) if there else []

    def script(name: str, location: str, start_from: Path | None) -> ScriptJob:
        if start_from is not None:
            settings = RestoreSettings(str(start_from))
            restore(spark, settings, str(tmp_path / name / "checkpoint"), ProgramShape("SCRIPT"))
        return ScriptJob(
            spark, tmp_path / name, "", source, out, USUAL, arguments=(str(tmp_path / location),)
        )

    def run(name: str, location: str, start_from: Path | None = None) -> Path:
        """Until all input there is was read; then it is stopped."""
        job = script(name, location, start_from)

        def all_read() -> bool:
            everything = list(range(source.written))
            done = counted()[-1:] and counted()[-1][1] == source.written
            return bool(done) and copied("all") == everything and copied("even") == everything[::2]

        order = savepoint(tmp_path / f"savepoint-{name}", AfterSavepoint.STOP)
        job.run(CheckpointOrder(1, CheckpointKind.CHECKPOINT), order, after=all_read)
        for outcome in job.outcomes:
            assert outcome.failure == ""
            places = Counter(re.sub("-[0-9a-f]{6}$", "", position.query) for position in outcome.positions)
            assert places == {"start-1": 2, "start-2": 1}
        return tmp_path / f"savepoint-{name}"

    source.add(1)
    first = run("job1", "here")
    source.add(1)
    second = run("job2", "here", first)
    source.add(1)
    run("job3", "there", second)
    # nothing was begun anew: batches count on, and the counts with them
    batches = [batch for batch, _ in counted()]
    assert batches == sorted(set(batches))
    assert [total for _, total in counted()] == sorted(total for _, total in counted())
    # what is newer than the savepoint stays
    newer = sorted((tmp_path / "here/all/commits").iterdir())
    with pytest.raises(StateIncompatible, match="has other state than"):
        # all is read already: whoever stopped it when that is so might be faster than its failure
        script("job4", "here", first).run(after=lambda: False)
    assert sorted((tmp_path / "here/all/commits").iterdir()) == newer


def test_queries_of_another_session_are_the_jobs_as_well(spark: SparkSession, tmp_path: Path) -> None:
    source, out = Input(tmp_path / "in"), tmp_path / "out"
    text = SCRIPT.replace("getOrCreate()", "getOrCreate().newSession()")
    # main ends at once: the job is its queries
    text = text.replace("query.awaitTermination()", "")
    progress = ProgressCollector()
    job = ScriptJob(spark, tmp_path / "job1", NAMED, source, out, text, progress)
    commits = tmp_path / "job1/checkpoint/copy/commits"
    job.run(savepoint(tmp_path / "savepoint", AfterSavepoint.STOP), after=(commits / "0").exists)
    assert job.outcomes[0].failure == ""
    assert [position.query for position in job.outcomes[0].positions] == ["copy"]
    assert [query.query for query in progress.snapshot()] == ["copy"]


def test_no_query_starts_while_the_job_is_stopped(spark: SparkSession, tmp_path: Path) -> None:
    """Its rows would be in the output and not in the savepoint."""
    source, out = Input(tmp_path / "in"), tmp_path / "out"
    again = (
        "import pathlib\n"
        "try:\n"
        "    late = numbers.writeStream.format('parquet').queryName('late')\n"
        "    late.option('path', sys.argv[2] + '2').start()\n"
        "except Exception as error:\n"
        "    pathlib.Path(sys.argv[2] + '.refused').write_text(str(error))\n"
    )
    job = ScriptJob(spark, tmp_path / "job1", NAMED, source, out, SCRIPT + again)
    commits = tmp_path / "job1/checkpoint/copy/commits"
    job.run(savepoint(tmp_path / "savepoint", AfterSavepoint.STOP), after=(commits / "0").exists)
    assert [position.query for position in job.outcomes[0].positions] == ["copy"]
    assert "no query starts any more" in (tmp_path / "out.refused").read_text()
    assert not (tmp_path / "job1/checkpoint/late").exists()


def test_names_that_find_no_place_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    source = Input(tmp_path / "in")
    job = ScriptJob(
        spark, tmp_path / "job", NAMED.replace('"copy"', '"sources"'), source, tmp_path / "out"
    )
    after = (tmp_path / "job/checkpoint/sources/commits/0").exists
    job.run(savepoint(tmp_path / "s", AfterSavepoint.CONTINUE), after=after)
    assert "'sources' cannot be told from other files" in job.outcomes[0].failure


def test_a_query_with_a_place_of_its_own_goes_on_there(spark: SparkSession, tmp_path: Path) -> None:
    """The next run of a job that FAILED starts from its newest checkpoint without being asked."""
    source, out, own = Input(tmp_path / "in"), tmp_path / "out", tmp_path / "own"
    options = f'{NAMED}.option("checkpointLocation", {str(own)!r})'
    job = ScriptJob(spark, tmp_path / "job", options, source, out)
    job.run(CheckpointOrder(1, CheckpointKind.CHECKPOINT), after=(own / "commits/0").exists)
    manifest = SavepointMetadata(
        checkpoint_id=1,
        kind=CheckpointKind.CHECKPOINT,
        job_id=JobId("5" * 32),
        job_name="job",
        job_key="",
        created_ms=0,
        yarnflow_version="0",
        program=ProgramShape("SCRIPT"),
        positions=job.outcomes[0].positions,
        files=(),
    )
    chk = tmp_path / "job/checkpoint/chk-1"
    chk.mkdir(parents=True)
    (chk / METADATA_FILE).write_bytes(to_bytes(manifest))
    target = tmp_path / "job2/checkpoint"
    state = restore(spark, RestoreSettings(str(chk)), str(target), ProgramShape("SCRIPT"))
    assert state is not None
    brought = {path.name for path in target.iterdir() if not path.name.startswith(".")}
    assert brought == {"restored.json", "saved-queries.json"}


def test_a_location_is_used_by_one_job_at_a_time(spark: SparkSession, tmp_path: Path) -> None:
    """And what says so is nothing to Spark, which goes on from there without us."""
    source, out, own = Input(tmp_path / "in"), tmp_path / "out", tmp_path / "own"
    options = f'{NAMED}.option("checkpointLocation", {str(own)!r})'
    held = tmp_path / "job1/checkpoint" / HELD
    held.parent.mkdir(parents=True)
    held.touch()
    job = ScriptJob(spark, tmp_path / "job1", options, source, out)
    job.run(CheckpointOrder(1, CheckpointKind.CHECKPOINT), after=(own / "commits/0").exists)
    # its driver is gone, and it is not over
    with pytest.raises(StateInUse, match="job1/checkpoint may still run"):
        ScriptJob(spark, tmp_path / "job2", options, source, out).run(after=lambda: False)
    source.add(1)
    numbers = spark.readStream.schema("n bigint, k bigint, at timestamp").parquet(str(source.directory))
    writer = numbers.writeStream.format("parquet").option("checkpointLocation", str(own))
    query = writer.option("path", str(out)).trigger(availableNow=True).start()
    assert query.awaitTermination(240)
    assert not (own / "commits/2").exists(), "it has gone on"
    source.add(1)
    held.rename(held.with_name(FREE))
    ScriptJob(spark, tmp_path / "job2", options, source, out).run(after=(own / "commits/2").exists)
    found = Counter(row.n for row in spark.read.parquet(str(out)).select("n").collect())
    assert found == Counter(range(source.written))


def test_a_stop_that_cannot_be_saved_fails_the_job(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def out_of_space(*_: object) -> None:
        raise StorageError("no space left")

    monkeypatch.setattr("yarnflow.spark.checkpoints.savepoint_writer.copy_files", out_of_space)
    source = Input(tmp_path / "in")
    job = ScriptJob(spark, tmp_path / "job", NAMED, source, tmp_path / "out")
    with pytest.raises(YarnflowError, match="the savepoint failed"):
        run = savepoint(tmp_path / "savepoint", AfterSavepoint.STOP)
        # canceled by nobody: else the failure would be nobody's either
        job.program.prepare()
        job.program.start()

        def save() -> None:
            wait_until((tmp_path / "job/checkpoint/copy/commits/0").exists, "a batch")
            job.outcomes.append(job.program.take_checkpoint(run))

        saving = threading.Thread(target=save, daemon=True)
        saving.start()
        try:
            job.program.await_end()
        finally:
            saving.join(PATIENCE.condition_s)
    assert job.outcomes[0].failure
    assert (tmp_path / "job/checkpoint/copy/commits/0").exists()


@pytest.mark.gate
def test_a_fenced_driver_calls_no_batch_function(spark: SparkSession, tmp_path: Path) -> None:
    source, out = Input(tmp_path / "in"), tmp_path / "out"
    text = SCRIPT.replace(
        'OPTIONS.option("path", sys.argv[2])',
        'foreachBatch(lambda frame, _: frame.write.mode("append").parquet(sys.argv[2])).queryName("each")',
    )

    def fence() -> None:
        raise LeaseLost("the lease of this driver is over")

    program = ScriptProgram(
        spark,
        {"job.py": text.encode()},
        ["job.py", str(source.directory), str(out)],
        tmp_path / "job",
        str(tmp_path / "job/checkpoint"),
        ProgressCollector(),
        fence=fence,
    )
    program.prepare()
    program.start()
    with pytest.raises(YarnflowError, match="LeaseLost|lease of this driver"):
        program.await_end()
    assert not out.exists()
