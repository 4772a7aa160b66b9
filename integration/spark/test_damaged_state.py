"""Jobs whose state was damaged while they did not run: by a power cut, a disk, somebody's hand."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable
from http import HTTPStatus
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from integration.spark.savepoint_support import (
    RECORD,
    Input,
    Job,
    counting,
    expected_totals,
    restored,
    rows,
    totals,
    use_backend,
)
from integration.spark.translate_support import Graph, key
from yarnflow.errors import StateDamaged, StateNotTrusted, StateWentBack, YarnflowError
from yarnflow.graph.closures import make_closure
from yarnflow.graph.operators import KeyedReduce
from yarnflow.spark.progress.collector import ProgressCollector
from yarnflow.spark.script.program import ScriptProgram

#: committed before files are damaged
BATCHES = 4


class Counted:
    """A job that counts, with a directory that can be damaged."""

    def __init__(self, spark: SparkSession, directory: Path) -> None:
        self.spark = spark
        self.directory = directory
        self.source = Input(directory / "in")
        self.out = directory / "out"
        job = Job(spark, self.graph(), directory)
        self.source.add(BATCHES - 1)
        job.wait_until(lambda: totals(self.out) == expected_totals(self.source.written), "all counts")
        (self.query,) = (directory / "checkpoint").glob("query-*")
        job.wait_until((self.query / f"commits/{BATCHES - 1}").exists, "the commit")
        job.cancel()

    def graph(self) -> Graph:
        return counting(self.source, self.out)

    def fails(self) -> YarnflowError:
        """Start it, as a restart does, with more to read; what it fails with."""
        self.source.add(1)
        with pytest.raises(YarnflowError) as raised:
            Job(self.spark, self.graph(), self.directory).ended()
        return raised.value

    def goes_on(self) -> None:
        """Start it, with more to read."""
        self.source.add(1)
        job = Job(self.spark, self.graph(), self.directory)
        job.wait_until(lambda: totals(self.out) == expected_totals(self.source.written), "all counts")
        job.cancel()

    def state(self, pattern: str) -> list[Path]:
        return sorted(path for path in self.query.glob(f"state/0/*/{pattern}") if path.name[0] != ".")


def empty(path: Path) -> None:
    """As file systems leave it that had written the name, and not the content."""
    path.write_bytes(b"")
    path.with_name(f".{path.name}.crc").unlink(missing_ok=True)


def flip(path: Path, checksum: bool = True) -> None:
    """One bit in the middle of a file."""
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0x10
    path.write_bytes(content)
    if not checksum:
        path.with_name(f".{path.name}.crc").unlink()


def commit_is_empty(job: Counted) -> None:
    empty(job.query / f"commits/{BATCHES - 1}")


def bit_of_changes_flipped(job: Counted) -> None:
    flip(job.state(f"{BATCHES}.changelog")[0])


def bit_of_changes_flipped_that_the_file_system_does_not_find(job: Counted) -> None:
    flip(job.state(f"{BATCHES}.changelog")[0], checksum=False)


def changes_are_empty(job: Counted) -> None:
    for path in job.state(f"{BATCHES - 1}.changelog"):
        empty(path)


@pytest.mark.parametrize(
    "damage, said",
    [
        pytest.param(commit_is_empty, "commits/3 is empty", marks=pytest.mark.gate),
        (bit_of_changes_flipped, "4.changelog does not fit its checksum"),
        pytest.param(
            bit_of_changes_flipped_that_the_file_system_does_not_find,
            "4.changelog is not what was compressed",
            marks=pytest.mark.drill,
        ),
        pytest.param(changes_are_empty, "3.changelog is empty", marks=pytest.mark.drill),
    ],
)
def test_a_job_goes_on_from_its_newest_sound_batch_and_writes_nothing_twice(
    spark: SparkSession,
    tmp_path: Path,
    damage: Callable[[Counted], None],
    said: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    use_backend(spark)
    job = Counted(spark, tmp_path)
    damage(job)
    with caplog.at_level(logging.ERROR):
        error = job.fails()
    assert isinstance(error, StateWentBack) and error.retryable, error
    assert said in error.message and "the newest that is sound" in error.message
    assert error.message in caplog.messages
    job.goes_on()
    # each batch has one row of a key, with another count
    assert set(Counter((k, c) for k, c, _ in rows(job.out)).values()) == {1}


def test_a_batch_whose_input_is_lost_is_read_anew(spark: SparkSession, tmp_path: Path) -> None:
    use_backend(spark)
    job = Counted(spark, tmp_path)
    for log in ("commits", "offsets"):
        empty(job.query / f"{log}/{BATCHES - 1}")
    (job.query / f"commits/{BATCHES - 1}").unlink()
    error = job.fails()
    assert isinstance(error, StateWentBack) and "may be there twice" in error.message
    job.goes_on()


@pytest.mark.drill
def test_a_snapshot_of_which_a_table_is_damaged(spark: SparkSession, tmp_path: Path) -> None:
    use_backend(spark)
    spark.conf.set("spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled", "false")
    job = Counted(spark, tmp_path)
    flip(max(job.state("SSTs/*.sst"), key=lambda path: path.stat().st_mtime_ns))
    error = job.fails()
    assert isinstance(error, StateWentBack) and ".sst does not fit its checksum" in error.message
    job.goes_on()
    assert set(Counter((k, c) for k, c, _ in rows(job.out)).values()) == {1}


def test_without_a_sound_batch_a_job_fails_with_one_clear_error(spark: SparkSession, tmp_path: Path) -> None:
    use_backend(spark)
    job = Counted(spark, tmp_path)
    flip(job.state("1.changelog")[0])
    # Spark forgets them when there are more
    for log in ("commits", "offsets"):
        for name in ("0", ".0.crc"):
            (job.query / log / name).unlink(missing_ok=True)
    for _ in range(2):
        error = job.fails()
        assert isinstance(error, StateDamaged) and not error.retryable
        assert "1.changelog does not fit its checksum; there is no committed batch" in error.message
        assert "-s PATH" in error.message


SCRIPT = """
import sys
from pyspark.sql import SparkSession
spark = SparkSession.builder.getOrCreate()
numbers = spark.readStream.schema("n bigint, k bigint, at timestamp").parquet(sys.argv[1])
query = numbers.writeStream.format("parquet").queryName("copy").option("path", sys.argv[2])
query.trigger(availableNow=True).start().awaitTermination()
"""


def test_a_script_whose_state_is_damaged_fails_with_one_clear_error(
    spark: SparkSession, tmp_path: Path
) -> None:
    source = Input(tmp_path / "in")

    def run() -> None:
        spark.conf.unset("spark.sql.streaming.checkpointLocation")
        arguments = ["job.py", str(source.directory), str(tmp_path / "out")]
        program = ScriptProgram(
            spark, {"job.py": SCRIPT.encode()}, arguments, tmp_path / "work", str(tmp_path / "checkpoint"),
            ProgressCollector(),
        )  # fmt: skip
        program.prepare()
        program.start()
        program.await_end()

    run()
    empty(tmp_path / "checkpoint/copy/offsets/0")
    for _ in range(2):
        with pytest.raises(StateDamaged, match="copy/offsets/0 is empty; query copy cannot be brought back"):
            run()


@pytest.mark.gate
def test_accumulators_of_state_that_others_could_have_written_are_not_unpickled(
    spark: SparkSession, tmp_path: Path
) -> None:
    use_backend(spark)
    source = Input(tmp_path / "in")

    def graph() -> Graph:
        made = Graph()
        numbers = made.add(source.source(), RECORD)
        # an object, as well as a number
        reduce = make_closure(lambda a, b: (HTTPStatus.OK, b[1], b[2]), "job.py:3")
        made.files(tmp_path / "out", made.add(KeyedReduce(key("k"), reduce), RECORD, numbers, uid="last"))
        return made

    job = Job(spark, graph(), tmp_path)
    job.wait_until(lambda: list((tmp_path / "out").glob("part-*")), "a batch")
    job.savepoint(tmp_path / "savepoint")
    job.cancel()
    restored(spark, graph(), tmp_path / "savepoint", tmp_path / "own").cancel()
    (tmp_path / "savepoint/_metadata").chmod(0o666)
    with pytest.raises(StateNotTrusted, match="http.HTTPStatus, and others may have written it"):
        restored(spark, graph(), tmp_path / "savepoint", tmp_path / "others")
