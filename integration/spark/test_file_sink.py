"""The file sink when two drivers believe that they own it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from integration.spark.translate_support import make_session
from yarnflow.errors import LeaseLost, StorageError
from yarnflow.graph.operators import FileSink
from yarnflow.spark.file_sink import STAGING, FileWriter


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    session = make_session()
    yield session
    session.stop()


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


@pytest.mark.parametrize("calls", [1, 2, 3, 4])
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
    if calls == 1:
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
        if len(taken) == 2:
            # another driver takes over at the first move
            other = writer(spark, out)
            other.write(spark.range(4), 0)

    with pytest.raises(LeaseLost, match="taken over"):
        writer(spark, out, fence=fence).write(spark.range(4).repartition(2), 0)
    assert len(output(out)) == 4


def test_an_output_file_of_another_job_is_not_written_over(spark: SparkSession, tmp_path: Path) -> None:
    out = tmp_path / "out"
    first = writer(spark, out)
    first.write(spark.range(2), 5)
    first.finish()
    with pytest.raises(StorageError, match="exists already"):
        writer(spark, out).write(spark.range(2, 4), 5)
    assert len(output(out)) == 2


def test_the_last_one_tidies_up_after_all(spark: SparkSession, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with pytest.raises(Asleep):
        writer(spark, out, fence=Sleeper(1)).write(spark.range(2), 0)
    last = writer(spark, out)
    last.write(spark.range(2), 0)
    last.finish()
    assert not (out / STAGING).exists()
    assert len(output(out)) == 2
