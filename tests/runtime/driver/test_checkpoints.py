"""Orders for checkpoints, in a driver with a fake program."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace

import pytest

from tests.patience import PATIENCE
from tests.runtime.driver.driver_harness import Harness
from yarnflow.core.checkpoint.messages import (
    AfterSavepoint,
    CheckpointKind,
    CheckpointOrder,
    CheckpointOutcome,
)
from yarnflow.core.messages import DriverPhase, DriverReport
from yarnflow.errors import CheckpointFailed, RpcUnavailable
from yarnflow.testing.ha.leader_retrieval import FakeLeaderRetrieval, leader_info


@pytest.fixture
def masters() -> FakeLeaderRetrieval:
    return FakeLeaderRetrieval()


@pytest.fixture
def harness(masters: FakeLeaderRetrieval) -> Iterator[Harness]:
    made = Harness(masters)
    yield made
    made.close()


def order(checkpoint_id: int) -> CheckpointOrder:
    return CheckpointOrder(checkpoint_id, CheckpointKind.CHECKPOINT)


def await_outcome(harness: Harness, checkpoint_id: int) -> CheckpointOutcome:
    def found() -> list[CheckpointOutcome]:
        return [
            outcome
            for report in harness.job_master.reports[-1:]
            for outcome in report.checkpoints
            if outcome.checkpoint_id == checkpoint_id
        ]

    harness.job_master.wait(lambda: bool(found()))
    return found()[0]


def next_report(harness: Harness) -> DriverReport:
    count = len(harness.job_master.reports)
    harness.job_master.wait(lambda: len(harness.job_master.reports) > count)
    return harness.job_master.reports[count]


def test_an_order_is_carried_out_beside_the_program_and_its_outcome_repeated(harness: Harness) -> None:
    program = harness.run_program()
    program.may_complete.clear()
    harness.driver.take_checkpoint(order(4))
    assert not next_report(harness).checkpoints
    program.may_complete.set()
    assert await_outcome(harness, 4) == CheckpointOutcome(4, copied_bytes=7)
    harness.job_master.report_error = RpcUnavailable("lost")
    harness.job_master.wait(lambda: harness.job_master.refused > 2)
    harness.job_master.report_error = None
    assert [outcome.checkpoint_id for outcome in next_report(harness).checkpoints] == [4]


def test_the_same_order_twice_is_one(harness: Harness) -> None:
    program = harness.run_program()
    program.may_complete.clear()
    harness.driver.take_checkpoint(order(4))
    harness.driver.take_checkpoint(order(4))
    program.may_complete.set()
    await_outcome(harness, 4)
    harness.driver.take_checkpoint(order(4))
    # given up by the coordinator before it arrived: it has asked for 4 since
    harness.driver.take_checkpoint(order(3))
    harness.driver.take_checkpoint(order(5))
    await_outcome(harness, 5)
    assert [taken.checkpoint_id for taken in program.orders] == [4, 5]


def test_orders_are_carried_out_one_after_the_other(harness: Harness) -> None:
    program = harness.run_program()
    program.may_complete.clear()
    harness.driver.take_checkpoint(order(1))
    harness.driver.take_checkpoint(order(2))
    next_report(harness)
    assert len(program.orders) == 1
    program.may_complete.set()
    await_outcome(harness, 2)
    await_outcome(harness, 1)


def test_a_new_leader_hears_what_became_of_the_old_ones_order(
    harness: Harness, masters: FakeLeaderRetrieval
) -> None:
    harness.run_program()
    harness.driver.take_checkpoint(order(4))
    await_outcome(harness, 4)
    second = leader_info(2)
    masters.set_leader(second)
    job_master = harness.job_master_at(second.address)
    report = job_master.await_phase(1, DriverPhase.RUNNING)
    assert [outcome.checkpoint_id for outcome in report.checkpoints] == [4]


def test_a_new_leaders_order_for_the_same_request_is_no_second_one(harness: Harness) -> None:
    """The client of a `stop` asks the next master again; what the last one ordered is what it wants."""
    program = harness.run_program()
    stop = CheckpointOrder(
        4, CheckpointKind.SAVEPOINT, AfterSavepoint.STOP, "hdfs://nn/saved/savepoint-1", request_id="r1"
    )
    harness.driver.take_checkpoint(stop)
    outcome = await_outcome(harness, 4)
    assert (outcome.request_id, outcome.kind, outcome.target, outcome.after) == (
        "r1",
        stop.kind,
        stop.target,
        stop.after,
    )
    harness.driver.take_checkpoint(replace(stop, checkpoint_id=5, target="hdfs://nn/saved/savepoint-2"))
    harness.driver.take_checkpoint(order(6))
    await_outcome(harness, 6)
    assert [taken.checkpoint_id for taken in program.orders] == [4, 6]


def test_only_the_last_outcomes_are_repeated(harness: Harness) -> None:
    harness.run_program()
    for number in range(1, 16):
        harness.driver.take_checkpoint(order(number))
        await_outcome(harness, number)
    kept = [outcome.checkpoint_id for outcome in next_report(harness).checkpoints]
    assert kept == list(range(6, 16))


@pytest.mark.parametrize(
    ("error", "failure"),
    [
        (CheckpointFailed("no space on device"), "no space on device"),
        (ValueError("a bug"), "ValueError: a bug; see the driver's log"),
    ],
)
def test_a_failure_is_an_outcome(harness: Harness, error: Exception, failure: str) -> None:
    program = harness.run_program()
    program.checkpoint_error = error
    harness.driver.take_checkpoint(order(1))
    assert await_outcome(harness, 1).failure == failure
    assert not program.stopped.is_set()


def test_without_a_program_an_order_fails(harness: Harness) -> None:
    harness.start()
    harness.driver.take_checkpoint(order(1))
    assert "try again when the job is RUNNING" in await_outcome(harness, 1).failure


def test_an_order_for_a_program_that_has_ended_fails(harness: Harness) -> None:
    program = harness.run_program()
    program.end()
    harness.job_master.await_phase(1, DriverPhase.FINISHED)
    harness.driver.take_checkpoint(order(1))
    assert await_outcome(harness, 1).failure == "attempt 1 of the job is FINISHED already"
    assert not program.orders


def test_the_end_of_the_job_waits_for_its_last_savepoint_and_both_are_one_report(harness: Harness) -> None:
    """``stop``: the query ends, the copy takes longer."""
    program = harness.run_program()
    program.may_complete.clear()
    harness.driver.take_checkpoint(
        CheckpointOrder(1, CheckpointKind.SAVEPOINT, AfterSavepoint.STOP, "file:///savepoint")
    )
    program.end()
    for _ in range(5):
        assert next_report(harness).phase is DriverPhase.RUNNING
    program.may_complete.set()
    report = harness.job_master.await_phase(1, DriverPhase.FINISHED)
    assert [outcome.checkpoint_id for outcome in report.checkpoints] == [1]


def test_what_goes_on_was_not_stopped_by_an_order_of_an_earlier_attempt(harness: Harness) -> None:
    """The savepoint was complete when the attempt failed all the same."""
    program = harness.run_program()
    harness.driver.take_checkpoint(
        CheckpointOrder(1, CheckpointKind.SAVEPOINT, AfterSavepoint.STOP, "file:///savepoint", "r1")
    )
    assert await_outcome(harness, 1).after is AfterSavepoint.STOP
    program.end(CheckpointFailed("its files are gone"))
    harness.job_master.await_phase(1, DriverPhase.FAILED)
    harness.deploy(2)
    harness.backend.await_program(2).end()
    report = harness.job_master.await_phase(2, DriverPhase.FINISHED)
    assert [(each.request_id, each.after) for each in report.checkpoints] == [("r1", AfterSavepoint.CONTINUE)]


def test_a_job_that_is_canceled_does_not_wait_for_a_savepoint(harness: Harness) -> None:
    program = harness.run_program()
    program.may_complete.clear()
    harness.driver.take_checkpoint(order(1))
    program.end()
    harness.driver.cancel()
    harness.job_master.await_phase(1, DriverPhase.CANCELED)
    assert program.stopped.wait(PATIENCE.thread_s)
    program.may_complete.set()
    assert await_outcome(harness, 1).failure == "the program was stopped"


def test_a_program_that_is_being_stopped_takes_no_order(harness: Harness) -> None:
    stopping, go_on = threading.Event(), threading.Event()
    program = harness.run_program()

    def slow_stop() -> None:
        stopping.set()
        assert go_on.wait(PATIENCE.thread_s)
        program.end()

    program.stop = slow_stop  # type: ignore[method-assign]
    harness.driver.cancel()
    assert stopping.wait(PATIENCE.thread_s)
    harness.driver.take_checkpoint(order(1))
    assert await_outcome(harness, 1).failure == "the job is being stopped"
    go_on.set()
    assert not program.orders
