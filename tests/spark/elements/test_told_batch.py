"""Tasks work at the time of their micro-batch, not at that of their machine."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from pyspark import TaskContext

from yarnflow.operators.elements import Chunk
from yarnflow.operators.state.store import GroupStore
from yarnflow.operators.task.blocks import TICK, Block
from yarnflow.operators.task.micro_batch import MicroBatch
from yarnflow.operators.task.plan import JobInfo, LevelPlan
from yarnflow.spark.elements import level_stages
from yarnflow.spark.elements.block_rows import to_batches
from yarnflow.spark.elements.told_batch import tell_batch, told_batch
from yarnflow.spark.elements.worker_runs import LevelTask, worker_runs


class Properties:
    """Spark's local properties, of a driver's thread and of the tasks it starts."""

    def __init__(self) -> None:
        self.values: dict[str, str] = {}

    def setLocalProperty(self, name: str, value: str) -> None:  # noqa: N802
        self.values[name] = value

    def getLocalProperty(self, name: str) -> str | None:  # noqa: N802
        return self.values.get(name)

    def partitionId(self) -> int:  # noqa: N802
        return 1


@pytest.fixture
def properties(monkeypatch: pytest.MonkeyPatch) -> Properties:
    """Of the task that runs."""
    made = Properties()
    monkeypatch.setattr(TaskContext, "get", lambda: made)
    return made


def test_a_task_knows_what_the_driver_told(properties: Any) -> None:
    told = MicroBatch(7, 1_700_000_000_123)
    tell_batch(properties, told)
    assert told_batch() == told


def test_a_task_that_was_told_nothing_does_not_guess(properties: Properties) -> None:
    with pytest.raises(RuntimeError, match="outside of its micro-batch"):
        told_batch()


def test_a_task_that_was_told_of_the_batch_before_does_not_take_its_time(properties: Any) -> None:
    tell_batch(properties, MicroBatch(7, 1_700_000_000_123))
    properties.values["streaming.sql.batchId"] = "7"
    assert told_batch().number == 7
    properties.values["streaming.sql.batchId"] = "8"
    with pytest.raises(RuntimeError, match="outside of its micro-batch .*Spark's: 8, told: 7 "):
        told_batch()


def test_without_spark_there_is_no_time() -> None:
    assert told_batch() == MicroBatch(0, 0)


class Run:
    """Remembers at which time it was run."""

    def __init__(self) -> None:
        self.batches: list[MicroBatch] = []

    def run_source(self, chunks: Iterator[Chunk], sender: int, batch: MicroBatch) -> Iterator[Block]:
        self.batches.append(batch)
        return iter(())

    def run_group(
        self, group: int, store: GroupStore, blocks: list[Block], batch: MicroBatch
    ) -> Iterator[Block]:
        self.batches.append(batch)
        return iter(())

    def close(self) -> list[Exception]:
        return []


def test_all_levels_of_a_batch_have_its_time(properties: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run()
    monkeypatch.setattr(worker_runs, "_open_level", lambda task, subtask: run)
    told = MicroBatch(3, 1_700_000_000_000)
    tell_batch(properties, told)
    task = LevelTask("told", LevelPlan(1, ()), JobInfo())
    blocks: list[pa.RecordBatch] = list(to_batches([Block(1, 0, 0, TICK, 0, 0, pickle.dumps(()))]))
    list(level_stages.PlainStage(task)(blocks))
    list(level_stages.SourceStage(task, lambda batch: Chunk([]))(blocks))
    assert run.batches == [told, told]
    worker_runs.close()
