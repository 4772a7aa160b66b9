"""What becomes of a job's queries when a savepoint fails halfway."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.patience import PATIENCE
from yarnflow.core.checkpoint.messages import (
    AfterSavepoint,
    CheckpointKind,
    CheckpointOrder,
    QueryPosition,
)
from yarnflow.errors import StateDrained, StorageError
from yarnflow.spark.checkpoints.graph import GraphCheckpoints
from yarnflow.spark.checkpoints.savepoint_writer import QueryState, Written
from yarnflow.spark.run.batch_gate import BatchGate


class Writer:
    """Keeps of savepoints what they would consist of."""

    def __init__(self) -> None:
        self.written: dict[str, QueryState] = {}

    def prepare(self, order: CheckpointOrder) -> None:
        pass

    def abandon(self, order: CheckpointOrder) -> None:
        pass

    def write(
        self, order: CheckpointOrder, states: Sequence[QueryState], check: Callable[[], None]
    ) -> Written:
        self.written = {state.position.query: state for state in states}
        return Written(0, 0)


class FakeRun:
    """A query that has committed batch 4."""

    streaming = windowed = True
    redoes = False

    def __init__(self, name: str, fails_at: str = "", plans_messages_that_return: bool = False) -> None:
        self.name = name
        self.plans_messages_that_return = plans_messages_that_return
        self.gate = BatchGate()
        self.story: list[str] = []
        self._fails_at = fails_at

    def committed(self) -> int:
        return 4

    def position(self, batch_id: int) -> QueryPosition:
        self._do("position")
        return QueryPosition(self.name, batch_id, f"/job/query-{self.name}")

    def close_gate(self) -> None:
        self._do("close")

    def suspend(self, check: Callable[[], None]) -> None:
        self._do("suspend")

    def drain(self, check: Callable[[], None]) -> None:
        self._do("drain")

    def resume(self) -> None:
        self._do("resume")

    def _do(self, step: str) -> None:
        self.story.append(step)
        if step == self._fails_at:
            raise StorageError("no space left")


def checkpoints(*runs: FakeRun, writer: Writer | None = None) -> GraphCheckpoints:
    spark: Any = SimpleNamespace(conf=SimpleNamespace(get=lambda key, default: default))
    made = GraphCheckpoints(spark, cast(Any, writer or Writer()), threading.Event())
    made.begin(runs)  # type: ignore[arg-type]
    return made


def order(after: AfterSavepoint) -> CheckpointOrder:
    return CheckpointOrder(1, CheckpointKind.SAVEPOINT, after, "/savepoint")


def test_no_batch_stays_held_when_a_savepoint_fails_before_its_copy() -> None:
    one, two = FakeRun("one"), FakeRun("two", "position")
    assert checkpoints(one, two).take(order(AfterSavepoint.CONTINUE)).failure == "no space left"
    for run in (one, two):
        entering = threading.Thread(target=run.gate.enter, args=(1000,), daemon=True)
        entering.start()
        entering.join(PATIENCE.thread_s)
        assert run.gate.entered == 1000


def test_messages_that_return_to_their_queue_are_not_in_the_savepoint_as_well() -> None:
    """Those of the batch that is planned and was not begun: the next job would read them twice."""
    writer = Writer()
    made = checkpoints(FakeRun("file"), FakeRun("queue", plans_messages_that_return=True), writer=writer)
    assert not made.take(order(AfterSavepoint.STOP)).failure and made.stopped_job.is_set()
    assert {name: state.planned for name, state in writer.written.items()} == {"file": True, "queue": False}


def test_all_queries_go_on_when_one_cannot_be_suspended() -> None:
    one, two = FakeRun("one"), FakeRun("two", "suspend")
    made = checkpoints(one, two)
    assert made.take(order(AfterSavepoint.DRAIN)).failure == "no space left"
    assert one.story[-1] == two.story[-1] == "resume"
    assert made.failure is None and not made.stopped_job.is_set()


@pytest.mark.parametrize("fails_at", ["drain", "position"])
def test_what_was_drained_never_goes_on(fails_at: str) -> None:
    """Not even if it is unknown which windows have fired."""
    one = FakeRun("one", fails_at)
    made = checkpoints(one)
    assert "no space left" in made.take(order(AfterSavepoint.DRAIN)).failure
    assert "resume" not in one.story
    assert isinstance(made.failure, StateDrained) and made.stopped_job.is_set()


def test_no_savepoint_while_batches_are_done_again_whose_state_was_damaged() -> None:
    run = FakeRun("a")
    run.redoes = True
    found = checkpoints(run).take(order(AfterSavepoint.STOP))
    assert "query a does batches again" in found.failure and run.story == []
