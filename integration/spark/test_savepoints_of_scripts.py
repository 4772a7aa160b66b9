"""Checkpoints and savepoints of unmodified PySpark scripts."""

from __future__ import annotations

import re
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from integration.spark.savepoint_support import Input, read_manifest, wait_until
from yarnflow.core.checkpoint.manifest import METADATA_FILE, SavepointMetadata, to_bytes
from yarnflow.core.checkpoint.messages import (
    AfterSavepoint,
    CheckpointKind,
    CheckpointOrder,
    CheckpointOutcome,
    RestoreSettings,
)
from yarnflow.core.checkpoint.program_shape import ProgramShape
from yarnflow.core.ids import JobId
from yarnflow.errors import LeaseLost, StorageError, YarnflowError
from yarnflow.spark.checkpoints.restore import restore
from yarnflow.spark.run.progress import ProgressCollector
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
    ) -> None:
        spark.conf.unset("spark.sql.streaming.checkpointLocation")
        text = text.replace("OPTIONS", options)
        self.program = ScriptProgram(
            spark,
            {"job.py": text.encode()},
            ["job.py", str(source.directory), str(out)],
            directory,
            str(directory / "checkpoint"),
            progress or ProgressCollector(),
        )
        self.outcomes: list[CheckpointOutcome] = []

    def run(self, *orders: CheckpointOrder, after: Callable[[], bool]) -> None:
        """Run to the end; once it is time, the orders are given, and then the job is canceled."""

        def give() -> None:
            try:
                wait_until(after, "the time for the orders")
                for order in orders:
                    self.outcomes.append(self.program.take_checkpoint(order))
            finally:
                self.program.stop()

        beside = threading.Thread(target=give, daemon=True)
        self.program.prepare()
        self.program.start()
        beside.start()
        self.program.await_end()
        beside.join(240)


def savepoint(target: Path, after: AfterSavepoint) -> CheckpointOrder:
    return CheckpointOrder(1, CheckpointKind.SAVEPOINT, after, str(target))


NAMED = 'format("parquet").queryName("copy")'


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
    own = tmp_path / "own"
    options = f'format("parquet").queryName("copy").option("checkpointLocation", {str(own)!r})'
    job = ScriptJob(spark, tmp_path / "job", options, source, tmp_path / "out")
    job.run(
        savepoint(tmp_path / "s", AfterSavepoint.DRAIN),
        savepoint(tmp_path / "s", AfterSavepoint.CONTINUE),
        after=(own / "commits/0").exists,
    )
    drained, placed = (outcome.failure for outcome in job.outcomes)
    assert "stop without --drain" in drained
    assert re.search("copy keeps its checkpoint in .*own.* leave out the option checkpointLocation", placed)
    assert not (tmp_path / "s").exists()


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
    assert [path.name for path in target.iterdir() if not path.name.startswith(".")] == ["restored.json"]


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

        threading.Thread(target=save, daemon=True).start()
        job.program.await_end()
    assert job.outcomes[0].failure
    assert (tmp_path / "job/checkpoint/copy/commits/0").exists()


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
