"""The right to write a job's state, and starting from another job's."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from tests.patience import PATIENCE
from tests.runtime.driver.driver_harness import SUBMISSION, Harness
from yarnflow.core.checkpoint.messages import ClaimMode, RestoreSettings
from yarnflow.core.messages import DriverPhase
from yarnflow.core.submissions import submission_digest
from yarnflow.errors import (
    LeaseLost,
    SavepointInvalid,
    SavepointNotFound,
    StateDrained,
    StateIncompatible,
    StateInUse,
    StorageError,
    StorageUnavailable,
    YarnflowError,
    ZooKeeperUnavailable,
)

RESTORE = RestoreSettings("hdfs://nn/savepoint-1")


@pytest.fixture
def harness() -> Iterator[Harness]:
    made = Harness()
    yield made
    made.close()


def test_a_spare_has_no_lease_and_a_deployment_has_it_before_its_program(harness: Harness) -> None:
    harness.start()
    harness.job_master.wait(lambda: bool(harness.job_master.registrations))
    assert not harness.lease.acquired
    harness.deploy(3)
    harness.backend.await_program(1)
    assert harness.backend.story == ["program with 1 leases"]
    (info,) = harness.lease.acquired
    assert (info.driver_id, info.address, info.host, info.pid) == ("d1", "host:99", "host", 42)
    assert (info.epoch, info.attempt) == (1, 3)


def test_the_next_attempt_keeps_the_lease_and_says_so(harness: Harness) -> None:
    program = harness.run_program()
    program.end(YarnflowError("x"))
    harness.job_master.await_phase(1, DriverPhase.FAILED)
    harness.deploy(2)
    harness.job_master.await_phase(2, DriverPhase.RUNNING)
    assert len(harness.lease.acquired) == 1
    assert [info.attempt for info in harness.lease.updates] == [2]


def test_an_update_that_does_not_get_through_stops_nothing(harness: Harness) -> None:
    program = harness.run_program()
    program.end(YarnflowError("x"))
    harness.job_master.await_phase(1, DriverPhase.FAILED)
    harness.lease.update_error = ZooKeeperUnavailable("no quorum")
    harness.deploy(2)
    harness.job_master.await_phase(2, DriverPhase.RUNNING)


def test_a_lease_that_is_not_to_be_had_fails_the_attempt_and_the_next_one_tries_again(
    harness: Harness,
) -> None:
    harness.lease.error = LeaseLost("driver d0 has it")
    harness.start()
    harness.deploy(1)
    report = harness.job_master.await_phase(1, DriverPhase.FAILED)
    assert report.error is not None and report.error.code == "LEASE_LOST"
    assert not report.driver_unusable and not harness.backend.programs
    harness.lease.error = None
    harness.deploy(2)
    harness.job_master.await_phase(2, DriverPhase.RUNNING)
    assert [info.attempt for info in harness.lease.acquired] == [2]


def test_a_lost_lease_ends_the_process_at_once_whatever_the_main_thread_does(harness: Harness) -> None:
    program = harness.run_program()
    program.fence()
    harness.lease.lose("no answer from ZooKeeper for 7 s")
    assert harness.halted.is_set()
    assert isinstance(harness.halt_error, LeaseLost)
    assert "driver d1" in str(harness.halt_error) and "for 7 s" in str(harness.halt_error)
    with pytest.raises(LeaseLost):
        program.fence()


def test_the_lease_is_given_back_after_the_session_was_closed(harness: Harness) -> None:
    harness.run_program()
    harness.driver.shut_down()
    assert harness.join() == 0
    assert harness.backend.story[-1] == "closed, released=False"
    assert harness.lease.released


def test_state_is_restored_with_the_lease_and_before_the_program(harness: Harness) -> None:
    harness.start()
    harness.deploy(1, restore=RESTORE)
    harness.backend.await_program(1)
    assert harness.backend.story == [
        "restore hdfs://nn/savepoint-1 with 1 leases",
        "program with 1 leases",
    ]
    report = harness.job_master.await_phase(1, DriverPhase.RUNNING)
    assert "STATE_RESTORED" in report.milestones_ms


def test_a_cancel_does_not_wait_until_state_is_restored(harness: Harness) -> None:
    harness.backend.may_restore.clear()
    harness.start()
    harness.deploy(1, restore=RESTORE)
    assert harness.backend.restoring.wait(PATIENCE.thread_s)
    harness.driver.cancel()
    try:
        report = harness.job_master.await_phase(1, DriverPhase.CANCELED)
    finally:
        harness.backend.may_restore.set()
    assert "STATE_RESTORED" not in report.milestones_ms and not harness.backend.programs


def test_without_the_lease_no_state_is_restored(harness: Harness) -> None:
    harness.lease.lost = "expired"
    harness.start()
    harness.deploy(1, restore=RESTORE)
    report = harness.job_master.await_phase(1, DriverPhase.FAILED)
    assert report.error is not None and report.error.code == "LEASE_LOST"
    assert not harness.backend.story


@pytest.mark.parametrize("error", [StateIncompatible, StateDrained, SavepointInvalid, SavepointNotFound])
def test_state_that_cannot_be_used_fails_the_attempt(harness: Harness, error: type[YarnflowError]) -> None:
    harness.backend.restore_error = error("operator 'sum' is gone")
    harness.start()
    harness.deploy(1, restore=RESTORE)
    report = harness.job_master.await_phase(1, DriverPhase.FAILED)
    assert report.error is not None
    assert (report.error.code, report.error.message) == (error.code, "operator 'sum' is gone")
    assert not report.driver_unusable and not harness.backend.programs


def test_a_deployment_that_restores_nothing_does_not_ask(harness: Harness) -> None:
    harness.run_program()
    assert harness.backend.story == ["program with 1 leases"]
    assert not harness.halted.is_set()


def test_state_is_claimed_before_it_is_moved(harness: Harness) -> None:
    harness.start()
    harness.deploy(1, restore=replace(RESTORE, claim_mode=ClaimMode.CLAIM))
    harness.backend.await_program(1)
    assert harness.backend.story[:2] == [
        "claim hdfs://nn/savepoint-1",
        "restore hdfs://nn/savepoint-1 with 1 leases",
    ]


@pytest.mark.parametrize(("error", "given_back"), [(StateIncompatible, True), (StorageError, False)])
def test_what_was_claimed_is_given_back_when_it_is_refused(
    harness: Harness, error: type[YarnflowError], given_back: bool
) -> None:
    """An error that may pass leaves it claimed: the next attempt goes on with it."""
    harness.backend.restore_error = error("operator 'sum' is gone")
    harness.start()
    harness.deploy(1, restore=replace(RESTORE, claim_mode=ClaimMode.CLAIM))
    harness.job_master.await_phase(1, DriverPhase.FAILED)
    assert ("give back hdfs://nn/savepoint-1" in harness.backend.story) is given_back


def test_what_was_claimed_is_given_back_when_the_job_is_canceled(harness: Harness) -> None:
    harness.backend.may_restore.clear()
    harness.start()
    harness.deploy(1, restore=replace(RESTORE, claim_mode=ClaimMode.CLAIM))
    assert harness.backend.restoring.wait(PATIENCE.thread_s)
    harness.driver.cancel()
    harness.job_master.await_phase(1, DriverPhase.CANCELED)
    assert "give back hdfs://nn/savepoint-1" in harness.backend.story


def test_what_was_claimed_stays_for_the_next_attempt(harness: Harness) -> None:
    harness.backend.may_restore.clear()
    harness.start()
    harness.deploy(1, restore=replace(RESTORE, claim_mode=ClaimMode.CLAIM))
    assert harness.backend.restoring.wait(PATIENCE.thread_s)
    harness.deploy(2)
    harness.backend.await_program(1)
    assert "give back hdfs://nn/savepoint-1" not in harness.backend.story


def test_nothing_is_read_or_written_of_what_is_another_jobs(harness: Harness) -> None:
    harness.owner.error = StateInUse("job b has claimed it")
    harness.start()
    harness.deploy(1, restore=RESTORE)
    report = harness.job_master.await_phase(1, DriverPhase.FAILED)
    assert report.error is not None and report.error.code == StateInUse.code
    assert not harness.backend.story and not harness.backend.programs


KEYED = replace(SUBMISSION, job_key="flights")


def test_what_a_job_is_is_put_down_before_its_program_starts(harness: Harness) -> None:
    """Whoever finds it lost can go on from its state then, and cannot mistake it for one that did nothing."""
    harness.backend.may_restore.clear()
    harness.start()
    harness.deploy(1, restore=RESTORE, submission=KEYED, digest=submission_digest(KEYED))
    assert harness.backend.restoring.wait(PATIENCE.thread_s)
    assert "describe flights" not in harness.backend.story, "its state is not in its place yet"
    harness.backend.may_restore.set()
    harness.backend.await_program(1)
    assert harness.backend.story[-1] == "describe flights"


def test_a_program_whose_job_cannot_be_put_down_does_not_start(harness: Harness) -> None:
    harness.owner.describe_error = StorageUnavailable("safe mode")
    harness.start()
    harness.deploy(1, submission=KEYED, digest=submission_digest(KEYED))
    report = harness.job_master.await_phase(1, DriverPhase.FAILED)
    assert report.error is not None and report.error.code == StorageUnavailable.code
    assert not harness.backend.programs[0].started.is_set()


def test_a_claim_names_the_key_of_its_job(harness: Harness) -> None:
    harness.start()
    restore = replace(RESTORE, claim_mode=ClaimMode.CLAIM)
    harness.deploy(1, restore=restore, submission=KEYED, digest=submission_digest(KEYED))
    harness.backend.await_program(1)
    assert harness.backend.story[0] == "claim hdfs://nn/savepoint-1 for flights"
