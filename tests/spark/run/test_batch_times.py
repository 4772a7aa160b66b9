"""A batch that is done again has the time and the run it had."""

from __future__ import annotations

import json
from typing import Any, cast

import pytest

from yarnflow.operators.task.micro_batch import MicroBatch
from yarnflow.spark.hadoop_files import HadoopFiles
from yarnflow.spark.run.batch_times import BatchTimes


class Files:
    """One directory."""

    def __init__(self) -> None:
        self.content: dict[str, bytes] = {}

    def plan(self, number: int, time_ms: int) -> None:
        """As Spark does it."""
        described = {"batchWatermarkMs": 0, "batchTimestampMs": time_ms, "conf": {}}
        self.write(f"q/offsets/{number}", f'v1\n{json.dumps(described)}\n{{"logOffset":0}}\n-'.encode())

    def exists(self, path: str) -> bool:
        return path in self.content

    def read(self, path: str) -> bytes:
        return self.content[path]

    def write(self, path: str, content: bytes) -> None:
        self.content[path] = content


@pytest.fixture
def files() -> Files:
    return Files()


def begun(files: Any, planned: int, now_ms: int) -> BatchTimes:
    times = BatchTimes(cast(HadoopFiles, files), "q")
    times.begin_run(planned, now_ms)
    return times


def test_a_batch_has_the_time_at_which_spark_planned_it(files: Files) -> None:
    times = begun(files, -1, 100)
    files.plan(0, 150)
    files.plan(1, 250)
    assert [times.of(number) for number in (0, 1)] == [MicroBatch(0, 150, 100), MicroBatch(1, 250, 100)]


def test_the_next_driver_does_a_batch_again_in_the_run_that_planned_it(files: Files) -> None:
    begun(files, -1, 100)
    files.plan(0, 150)
    times = begun(files, 0, 5000)
    files.plan(1, 5100)
    assert [times.of(number) for number in (0, 1)] == [MicroBatch(0, 150, 100), MicroBatch(1, 5100, 5000)]


def test_runs_that_planned_nothing_leave_nothing(files: Files) -> None:
    begun(files, -1, 100)
    files.plan(0, 150)
    for now_ms in range(1000, 9000, 1000):
        times = begun(files, 0, now_ms)
    files.plan(1, 8100)
    assert [times.of(number).run_ms for number in (0, 1)] == [100, 8000]
    assert json.loads(files.read("q/runs")) == [[0, 100], [1, 8000]]


def test_a_batch_of_a_run_that_noted_nothing_has_none(files: Files) -> None:
    files.plan(6, 150)
    assert begun(files, 6, 1000).of(6) == MicroBatch(6, 150, 0)


def test_a_run_whose_clock_is_behind_that_of_the_one_before(files: Files) -> None:
    begun(files, -1, 5000)
    files.plan(0, 5100)
    times = begun(files, 0, 4000)
    files.plan(1, 4100)
    assert [times.of(number).run_ms for number in (0, 1)] == [5000, 4000]


@pytest.mark.parametrize("content", [b"", b"[[0,", b"[3]", b"{}x"])
def test_a_damaged_note_of_runs_is_written_anew(files: Files, content: bytes) -> None:
    files.plan(0, 150)
    files.write("q/runs", content)
    times = begun(files, 0, 5000)
    assert times.of(0) == MicroBatch(0, 150, 0) and json.loads(files.read("q/runs")) == [[1, 5000]]
