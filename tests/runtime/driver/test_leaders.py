"""Masters come and go while a driver runs its job."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace

import pytest

from tests.patience import PATIENCE
from tests.runtime.driver.driver_harness import ASSIGNMENT, SUBMISSION, Harness
from yarnflow.core.messages import DriverPhase, DriverRegistration, Fence
from yarnflow.errors import (
    AuthenticationFailed,
    DriverLost,
    JobNotFound,
    LeadershipLost,
    RpcUnavailable,
    StaleEpoch,
    SubmissionMissing,
    YarnflowError,
    ZooKeeperUnavailable,
)
from yarnflow.runtime.registration import RegistrationBackoff
from yarnflow.testing.gateways.job_master import FakeJobMaster
from yarnflow.testing.ha.leader_retrieval import FakeLeaderRetrieval, leader_info

SECOND, THIRD = leader_info(2), leader_info(3)


@pytest.fixture
def masters() -> FakeLeaderRetrieval:
    return FakeLeaderRetrieval(leader_info(1, ASSIGNMENT.job_master_address))


@pytest.fixture
def harness(masters: FakeLeaderRetrieval) -> Iterator[Harness]:
    made = Harness(masters)
    yield made
    made.close()


def await_registration(job_master: FakeJobMaster) -> DriverRegistration:
    job_master.wait(lambda: bool(job_master.registrations))
    return job_master.registrations[-1]


def test_a_new_leader_is_told_what_runs_and_nothing_stops(
    harness: Harness, masters: FakeLeaderRetrieval
) -> None:
    """
    1. attempt 1 runs under leader 1
    2. nobody leads, then leader 2 does
    3. it gets registration and report, and its calls are accepted; the program has not noticed
    """
    program = harness.run_program()
    masters.set_leader(None)
    assert harness.link.fence == ASSIGNMENT.fence
    masters.set_leader(SECOND)
    second = harness.job_master_at(SECOND.address)
    registration = await_registration(second)
    assert (registration.attempt, registration.driver_url) == (1, "spark://x")
    second.await_phase(1, DriverPhase.RUNNING)
    assert harness.link.fence == harness.fences[SECOND.address] == SECOND.fence
    assert not program.stopped.is_set() and len(harness.backend.programs) == 1
    program.end()
    second.await_phase(1, DriverPhase.FINISHED)
    assert len(second.registrations) == 1


def test_an_attempt_has_the_epoch_of_the_leader_that_deployed_it(
    harness: Harness, masters: FakeLeaderRetrieval
) -> None:
    """Not that of the driver's launch: of two attempts, the later one has the larger (epoch, attempt)."""
    harness.run_program()
    masters.set_leader(SECOND)
    await_registration(harness.job_master_at(SECOND.address))
    harness.deploy(2)
    harness.backend.await_program(2)
    epochs = [(context.epoch, context.attempt) for context in harness.backend.contexts]
    assert epochs == [(ASSIGNMENT.fence.epoch, 1), (SECOND.fence.epoch, 2)]


def test_a_driver_whose_launcher_was_deposed_before_it_was_up_finds_the_leader(
    harness: Harness, masters: FakeLeaderRetrieval
) -> None:
    masters.set_leader(SECOND)
    harness.start()
    assert await_registration(harness.job_master_at(SECOND.address)).attempt == 0
    assert not harness.job_master.registrations


def test_a_new_leader_does_not_wait_for_a_call_to_a_frozen_one(
    harness: Harness, masters: FakeLeaderRetrieval
) -> None:
    thaw, entered = threading.Event(), threading.Event()
    harness.run_program()

    def frozen(report: object) -> None:
        entered.set()
        assert thaw.wait(PATIENCE.thread_s)
        raise DriverLost("this master thinks that it still leads")

    harness.job_master.report = frozen  # type: ignore[method-assign]
    assert entered.wait(PATIENCE.thread_s)
    masters.set_leader(SECOND)
    second = harness.job_master_at(SECOND.address)
    second.await_phase(1, DriverPhase.RUNNING)
    # what it says when it wakes up means nothing any more
    reports = len(second.reports)
    thaw.set()
    second.wait(lambda: len(second.reports) > reports + 5)
    assert not harness.backend.programs[0].stopped.is_set()


def test_a_leader_that_comes_while_reports_are_held_back_gets_its_report_at_once(
    masters: FakeLeaderRetrieval,
) -> None:
    harness = Harness(masters)
    harness.settings = replace(harness.settings, registration_backoff=RegistrationBackoff(10**8, 10**8))
    try:
        program = harness.run_program()
        harness.job_master.report_error = RpcUnavailable("gone")
        harness.job_master.wait(lambda: harness.job_master.refused == 1)
        masters.set_leader(None)
        masters.set_leader(SECOND)
        harness.job_master_at(SECOND.address).await_phase(1, DriverPhase.RUNNING)
        assert not program.stopped.is_set()
    finally:
        harness.close()


def test_the_end_of_the_job_is_kept_until_there_is_a_leader(
    harness: Harness, masters: FakeLeaderRetrieval
) -> None:
    program = harness.run_program()
    masters.set_leader(None)
    harness.job_master.report_error = RpcUnavailable("gone")
    program.end()
    harness.job_master.wait(lambda: harness.job_master.refused > 5)
    masters.set_leader(SECOND)
    second = harness.job_master_at(SECOND.address)
    assert second.await_phase(1, DriverPhase.FINISHED) is second.reports[0]


@pytest.mark.parametrize("answer", [StaleEpoch("who?"), LeadershipLost("a standby")])
def test_whoever_does_not_lead_makes_the_driver_look_again(
    answer: YarnflowError, harness: Harness, masters: FakeLeaderRetrieval
) -> None:
    """The notice of the new leader got lost, ZooKeeper is not to be asked for a while either."""
    program = harness.run_program()
    masters.error = ZooKeeperUnavailable("no quorum")
    masters.set_leader(SECOND, tell=False)
    harness.job_master.report_error = answer
    harness.job_master.wait(lambda: harness.job_master.refused > 2)
    masters.error = None
    harness.job_master_at(SECOND.address).await_phase(1, DriverPhase.RUNNING)
    assert masters.looks > 1 and not program.stopped.is_set()


def test_an_older_leader_is_never_followed(harness: Harness, masters: FakeLeaderRetrieval) -> None:
    harness.run_program()
    masters.set_leader(THIRD)
    harness.job_master_at(THIRD.address).await_phase(1, DriverPhase.RUNNING)
    masters.set_leader(SECOND)
    assert harness.link.fence == THIRD.fence
    assert SECOND.address not in harness.fences
    # nor another one of the same epoch
    masters.set_leader(replace(SECOND, fence=Fence("impostor", 3)))
    assert harness.link.fence == THIRD.fence


def test_a_leader_that_waits_for_another_driver_ends_this_one(
    harness: Harness, masters: FakeLeaderRetrieval
) -> None:
    program = harness.run_program()
    second = harness.job_master_at(SECOND.address)
    second.register_errors = [DriverLost("driver d1 was replaced")]
    masters.set_leader(SECOND)
    assert program.stopped.wait(PATIENCE.thread_s)
    assert harness.join() == 0
    assert not second.registrations and not second.reports


def test_a_leader_that_does_not_know_the_job_yet_is_asked_again(
    harness: Harness, masters: FakeLeaderRetrieval
) -> None:
    program = harness.run_program()
    second = harness.job_master_at(SECOND.address)
    second.register_errors = [JobNotFound("?"), JobNotFound("?"), RpcUnavailable("?")]
    masters.set_leader(SECOND)
    assert await_registration(second).attempt == 1
    assert not program.stopped.is_set()


def test_a_leader_that_cannot_read_the_job_is_given_it(
    harness: Harness, masters: FakeLeaderRetrieval
) -> None:
    program = harness.run_program()
    second = harness.job_master_at(SECOND.address)
    second.register_errors = [SubmissionMissing("send it along"), RpcUnavailable("?")]
    masters.set_leader(SECOND)
    registration = await_registration(second)
    assert (registration.attempt, registration.submission) == (1, SUBMISSION)
    second.await_phase(1, DriverPhase.RUNNING)
    assert not program.stopped.is_set()
    masters.set_leader(THIRD)
    assert await_registration(harness.job_master_at(THIRD.address)).submission is None, "it was not asked"


def test_a_leader_that_never_knows_the_job_ends_its_driver(masters: FakeLeaderRetrieval) -> None:
    harness = Harness(masters)
    harness.settings = replace(harness.settings, recovery_timeout_ms=3)
    program = harness.run_program()
    harness.job_master_at(SECOND.address).register_errors = [JobNotFound("?") for _ in range(100)]
    masters.set_leader(SECOND)
    assert program.stopped.wait(PATIENCE.thread_s)
    assert harness.join() == 0


def test_another_process_at_a_dead_leaders_address_is_not_listened_to(
    harness: Harness, masters: FakeLeaderRetrieval
) -> None:
    program = harness.run_program()
    harness.job_master.report_error = AuthenticationFailed("wrong secret")
    harness.job_master.wait(lambda: harness.job_master.refused > 2)
    masters.set_leader(SECOND)
    harness.job_master_at(SECOND.address).await_phase(1, DriverPhase.RUNNING)
    assert not program.stopped.is_set()


@pytest.mark.parametrize("answer", [JobNotFound("?"), AuthenticationFailed("?")])
def test_without_high_availability_a_driver_that_is_not_wanted_leaves_at_once(answer: YarnflowError) -> None:
    harness = Harness()
    program = harness.run_program()
    harness.job_master.report_error = answer
    assert program.stopped.wait(PATIENCE.thread_s)
    assert harness.join() == 0
    assert harness.job_master.refused == 1


def test_a_stale_epoch_without_high_availability_is_tried_again() -> None:
    harness = Harness()
    try:
        program = harness.run_program()
        harness.job_master.report_error = StaleEpoch("?")
        harness.job_master.wait(lambda: harness.job_master.refused > 2)
        harness.job_master.report_error = None
        program.end()
        harness.job_master.await_phase(1, DriverPhase.FINISHED)
    finally:
        harness.close()


def test_a_deployment_that_waits_for_the_session_is_told_to_a_new_leader(
    harness: Harness, masters: FakeLeaderRetrieval
) -> None:
    harness.backend.may_complete.clear()
    harness.start()
    harness.deploy(4)
    masters.set_leader(SECOND)
    assert await_registration(harness.job_master_at(SECOND.address)).attempt == 4
    harness.backend.may_complete.set()
    harness.backend.await_program(1)
