"""The file sink when two drivers believe that they own it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from yarnflow.errors import LeaseLost, StorageError
from yarnflow.graph.connectors.sinks import FileSink
from yarnflow.operators.databases.tokens import RunToken
from yarnflow.spark.connectors.file_sink import STAGING, FileWriter
from yarnflow.spark.hadoop_files import HadoopFiles


def writer(spark: SparkSession, out: Path, **options: object) -> FileWriter:
    return FileWriter(spark, FileSink(str(out), "json"), "job", **options)  # type: ignore[arg-type]


def output(out: Path) -> list[str]:
    return sorted(line for file in out.glob("part-*") for line in file.read_text().split())


class Asleep(Exception):
    """The driver was stopped here (SIGSTOP)."""


class Sleeper:
    """A fence at which a driver falls asleep the n-th time it comes to it."""

    def __init__(self, calls: int) -> None:
        self.calls = calls

    def __call__(self) -> None:
        self.calls -= 1
        if self.calls == 0:
            raise Asleep


@pytest.mark.gate
@pytest.mark.parametrize("calls", [2, 3, 4, 5])
def test_what_one_driver_began_another_finishes_once(spark: SparkSession, tmp_path: Path, calls: int) -> None:
    """Asleep before the manifest, before the first, the second or the third move."""
    out = tmp_path / "out"
    frame = spark.range(6).repartition(3)
    zombie = writer(spark, out, fence=Sleeper(calls))
    with pytest.raises(Asleep):
        zombie.write(frame, 0)
    assert writer(spark, out).write(frame, 0) == 6
    once = output(out)
    assert len(once) == 6
    # it wakes up, and its lease says nothing: what it goes on with
    zombie._fence = lambda: None
    manifest = f"{zombie._staging}/0.json"
    if calls == 2:
        # it had staged the batch and was about to write the manifest
        with pytest.raises(LeaseLost, match="taken over"):
            zombie.write(frame, 0)
    else:
        with pytest.raises(StorageError):
            zombie._move(manifest, 0, redo=False)
    assert output(out) == once


def test_a_moved_file_that_is_gone_fences(spark: SparkSession, tmp_path: Path) -> None:
    """Taken over between the manifest and the moves."""
    out = tmp_path / "out"
    taken: list[int] = []

    def fence() -> None:
        taken.append(1)
        if len(taken) == 3:
            # another driver takes over at the first move
            other = writer(spark, out)
            other.write(spark.range(4), 0)

    with pytest.raises(LeaseLost, match="taken over"):
        writer(spark, out, fence=fence).write(spark.range(4).repartition(2), 0)
    assert len(output(out)) == 4


@pytest.mark.gate
def test_an_output_file_of_another_job_is_not_written_over(spark: SparkSession, tmp_path: Path) -> None:
    out = tmp_path / "out"
    first = writer(spark, out)
    first.write(spark.range(2), 5)
    first.finish()
    with pytest.raises(StorageError, match="exists already"):
        writer(spark, out).write(spark.range(2, 4), 5)
    assert len(output(out)) == 2


def test_partition_fields_may_begin_with_an_underscore(spark: SparkSession, tmp_path: Path) -> None:
    out = tmp_path / "out"
    sink = FileSink(str(out), "json", partition_by=("_day",))
    assert FileWriter(spark, sink, "job").write(spark.range(4).selectExpr("id", "id % 2 AS _day"), 0) == 4
    assert sorted(row.id for row in spark.read.json(str(out)).collect()) == [0, 1, 2, 3]


def test_rows_without_files_are_an_error(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FileWriter, "_moves", lambda *_: [])
    with pytest.raises(StorageError, match="has 2 rows, but no file"):
        writer(spark, tmp_path / "out").write(spark.range(2), 0)


@pytest.mark.gate
def test_a_driver_without_its_lease_takes_nothing_over(spark: SparkSession, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with pytest.raises(Asleep):
        # before the first move: the manifest is there
        writer(spark, out, fence=Sleeper(3)).write(spark.range(2), 0)
    (before,) = (out / STAGING).iterdir()
    with pytest.raises(Asleep):
        writer(spark, out, fence=Sleeper(1)).write(spark.range(2), 0)
    assert [*(out / STAGING).iterdir()] == [before]


def test_an_earlier_attempt_takes_nothing_from_a_later_one(spark: SparkSession, tmp_path: Path) -> None:
    """Its lease says nothing: the clock of its machine has stood still as long as it has."""
    out = tmp_path / "out"
    first, second = (writer(spark, out, run=RunToken("j", 1, number)) for number in (1, 2))
    assert second.write(spark.range(2), 0) == 2
    staging = sorted(path.name for path in (out / STAGING).iterdir())
    with pytest.raises(LeaseLost, match=r"attempt 1 \(epoch 1\) .* any more: attempt 2 \(epoch 1\) does"):
        first.write(spark.range(2), 0)
    assert sorted(path.name for path in (out / STAGING).iterdir()) == staging
    assert second.write(spark.range(2, 5), 1) == 3
    # the next leader's attempts count from one, and those of another job have no order
    assert writer(spark, out, run=RunToken("j", 2, 1)).write(spark.range(5, 6), 2) == 1
    assert writer(spark, out, run=RunToken("other", 0, 1)).write(spark.range(6, 7), 3) == 1
    assert len(output(out)) == 7


def test_of_two_that_take_over_at_once_the_earlier_one_sees_the_other(
    spark: SparkSession, tmp_path: Path
) -> None:
    """It has looked, and found nobody, before the other was there."""
    out = tmp_path / "out"
    seen: list[int] = []

    def fence() -> None:
        seen.append(1)
        if len(seen) == 1:
            writer(spark, out, run=RunToken("j", 1, 2)).write(spark.range(4), 0)

    with pytest.raises(LeaseLost):
        writer(spark, out, fence=fence, run=RunToken("j", 1, 1)).write(spark.range(4), 0)
    assert len(output(out)) == 4
    assert writer(spark, out, run=RunToken("j", 1, 3)).write(spark.range(4), 0) == 4
    assert len(output(out)) == 4


def test_several_directories_with_owners_are_merged(spark: SparkSession, tmp_path: Path) -> None:
    out = tmp_path / "out"
    for batch_id in (3, 4):
        with pytest.raises(Asleep):
            writer(spark, out, fence=Sleeper(3)).write(spark.range(batch_id), batch_id)
        (made,) = (path for path in (out / STAGING).iterdir() if path.name.startswith("job."))
        made.rename(out / STAGING / f"other.{batch_id}")
    for directory in (out / STAGING).iterdir():
        directory.rename(directory.with_name(directory.name.replace("other", "job")))
    last = writer(spark, out)
    assert last.write(spark.range(3), 3) == 3
    assert last.write(spark.range(4), 4) == 4
    assert len(output(out)) == 7


def test_a_batch_of_two_owners_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with pytest.raises(Asleep):
        writer(spark, out, fence=Sleeper(3)).write(spark.range(2), 0)
    (made,) = (out / STAGING).iterdir()
    shutil.copytree(made, out / STAGING / "job.other")
    with pytest.raises(StorageError, match="both say how batch 0 goes to"):
        writer(spark, out).write(spark.range(2), 0)
    assert not output(out)


def test_a_small_file_is_replaced_as_a_whole(spark: SparkSession, tmp_path: Path) -> None:
    files = HadoopFiles(spark)
    for content in (b"one", b"two"):
        files.write(f"{tmp_path}/file", content)
        files.write((tmp_path / "second").as_uri(), content)
    assert (tmp_path / "file").read_bytes() == (tmp_path / "second").read_bytes() == b"two"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "second"]


def test_the_last_one_tidies_up_after_all(spark: SparkSession, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with pytest.raises(Asleep):
        writer(spark, out, fence=Sleeper(2)).write(spark.range(2), 0)
    last = writer(spark, out)
    last.write(spark.range(2), 0)
    last.finish()
    assert not (out / STAGING).exists()
    assert len(output(out)) == 2
