"""A driver's life with a fake Spark and a fake JobMaster."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from dataclasses import replace

import pytest

from tests.patience import PATIENCE
from tests.runtime.driver.driver_harness import JOB, SUBMISSION, Harness
from yarnflow.core.ids import DriverId
from yarnflow.core.job_run.spare_life import REHEARSED
from yarnflow.core.messages import (
    DriverPhase,
    IdleQueries,
    JobSubmission,
    LogLevel,
    ProgramKind,
    QueryProgress,
)
from yarnflow.errors import DriverLost, InvalidOption, RpcUnavailable, UserCodeError
from yarnflow.graph.codec import job_graph_to_json
from yarnflow.graph.job_graph import JobGraph


@pytest.fixture
def harness() -> Iterator[Harness]:
    made = Harness()
    yield made
    made.close()


def test_registers_with_what_executors_need(harness: Harness) -> None:
    harness.start()
    harness.job_master.wait(lambda: bool(harness.job_master.registrations))
    registration = harness.job_master.registrations[0]
    assert (registration.address, registration.pid) == ("host:99", 42)
    assert (registration.driver_url, registration.java_options) == ("spark://x", ("-Da=b",))
    assert registration.milestones_ms["DRIVER_STARTED"] == 7
    assert "CONTEXT_UP" in registration.milestones_ms


def test_registration_is_tried_until_it_succeeds(harness: Harness) -> None:
    harness.job_master.register_errors = [RpcUnavailable("down"), RpcUnavailable("down")]
    harness.start()
    harness.job_master.wait(lambda: bool(harness.job_master.registrations))


def test_a_driver_that_was_replaced_leaves(harness: Harness) -> None:
    harness.job_master.register_errors = [DriverLost("replaced")]
    harness.start()
    assert harness.join() == 0
    assert harness.backend.closed


def test_a_session_that_does_not_come_up_is_reported_and_ends_the_driver(harness: Harness) -> None:
    harness.backend.open_error = InvalidOption("option spark.master cannot be set")
    harness.start()
    assert harness.join() == InvalidOption.exit_code
    report = harness.job_master.reports[-1]
    assert (report.attempt, report.phase, report.driver_unusable) == (0, DriverPhase.FAILED, True)
    assert report.error is not None and report.error.code == "INVALID_OPTION"


def test_a_session_that_fails_when_executors_are_coming_ends_the_driver_as_well(harness: Harness) -> None:
    harness.backend.complete_error = DriverLost("the JVM ended")
    harness.start()
    assert harness.join() == DriverLost.exit_code
    assert harness.job_master.reports[-1].phase is DriverPhase.FAILED and harness.backend.closed


def test_executors_can_come_before_the_session_is_there(harness: Harness) -> None:
    harness.backend.may_complete.clear()
    harness.start()
    harness.job_master.wait(lambda: bool(harness.job_master.registrations))
    assert "SESSION_UP" not in harness.job_master.registrations[0].milestones_ms
    harness.deploy(1)
    assert not harness.backend.programs
    harness.backend.may_complete.set()
    harness.backend.await_program(1)


@pytest.mark.parametrize("end", ["cancel", "shut_down"])
def test_a_job_can_end_before_the_session_is_there(harness: Harness, end: str) -> None:
    harness.backend.may_complete.clear()
    harness.start()
    harness.job_master.wait(lambda: bool(harness.job_master.registrations))
    harness.deploy(1)
    getattr(harness.driver, end)()
    harness.backend.may_complete.set()
    if end == "cancel":
        harness.job_master.await_phase(1, DriverPhase.CANCELED)
    else:
        assert harness.join() == 0
    assert not any(program.started.is_set() for program in harness.backend.programs)


def test_what_compiles_on_executors_waits_for_them(harness: Harness) -> None:
    harness.backend.compiles_on_executors, harness.backend.executors = True, ()
    harness.settings = replace(harness.settings, report_interval_ms=20, executor_timeout_ms=10**9)
    harness.start()
    harness.deploy(1)
    harness.job_master.await_phase(1, DriverPhase.DEPLOYING)
    with harness.backend.made:
        assert harness.backend.made.wait_for(lambda: bool(harness.backend.programs), PATIENCE.thread_s)
    program = harness.backend.programs[0]
    assert not program.prepared.is_set()
    harness.backend.executors = ("0", "1")
    harness.backend.await_program(1)


def test_deploy_run_finish(harness: Harness) -> None:
    """
    1. deployed → DEPLOYING
    2. executors are there, program started → RUNNING
    3. program ends → FINISHED, again and again until told to leave
    """
    harness.start()
    harness.deploy(1)
    program = harness.backend.await_program(1)
    running = harness.job_master.await_phase(1, DriverPhase.RUNNING)
    assert running.executor_ids == ("0", "1")
    assert {"EXECUTORS_UP", "QUERY_STARTED"} <= set(running.milestones_ms)
    program.end()
    harness.job_master.await_phase(1, DriverPhase.FINISHED)
    harness.driver.shut_down()
    assert harness.join() == 0
    assert harness.backend.closed and not harness.halted.is_set()


def test_the_same_deployment_twice_runs_once(harness: Harness) -> None:
    harness.start()
    harness.deploy(1)
    program = harness.backend.await_program(1)
    harness.deploy(1)
    assert not program.stopped.is_set()
    program.end()
    harness.job_master.await_phase(1, DriverPhase.FINISHED)
    harness.deploy(1)
    harness.deploy(2)
    harness.backend.await_program(2)
    harness.job_master.await_phase(2, DriverPhase.RUNNING)
    assert len(harness.backend.programs) == 2


def test_a_failure_carries_line_and_traceback_and_the_next_attempt_is_taken(harness: Harness) -> None:
    harness.start()
    harness.deploy(1)
    error = UserCodeError("ValueError: bad row (in function f, job.py:3)", "Traceback…")
    harness.backend.await_program(1).end(error)
    report = harness.job_master.await_phase(1, DriverPhase.FAILED)
    assert report.error is not None
    assert (report.error.code, report.error.details) == ("USER_CODE", "Traceback…")
    assert not report.driver_unusable
    harness.deploy(2)
    harness.backend.await_program(2).end()
    assert harness.job_master.await_phase(2, DriverPhase.FINISHED).error is None


def test_a_failure_with_the_context_gone_says_so(harness: Harness) -> None:
    harness.start()
    harness.deploy(1)
    program = harness.backend.await_program(1)
    harness.backend.is_usable = False
    program.end(DriverLost("gone"))
    assert harness.job_master.await_phase(1, DriverPhase.FAILED).driver_unusable


def test_a_jvm_that_dies_while_nothing_runs_is_noticed(harness: Harness) -> None:
    harness.start()
    harness.job_master.wait(lambda: bool(harness.job_master.reports))
    harness.backend.is_usable = False
    harness.job_master.wait(lambda: harness.job_master.reports[-1].driver_unusable)


def test_a_program_that_cannot_be_made_fails_the_attempt(harness: Harness) -> None:
    harness.backend.program_error = InvalidOption("no")
    harness.start()
    harness.deploy(1)
    report = harness.job_master.await_phase(1, DriverPhase.FAILED)
    assert report.error is not None and report.error.code == "INVALID_OPTION"


def test_executors_are_waited_for_and_a_replacement_counts(harness: Harness) -> None:
    harness.backend.executors = ("0",)
    harness.settings = replace(harness.settings, report_interval_ms=20, executor_timeout_ms=10**9)
    harness.start()
    harness.deploy(1, ("0", "1"))
    program = harness.backend.await_prepared(1)
    harness.job_master.await_phase(1, DriverPhase.DEPLOYING)
    assert not program.started.is_set()
    harness.backend.executors = ("0", "2")
    harness.backend.await_program(1)


def test_executors_that_never_come_fail_the_attempt_by_name(harness: Harness) -> None:
    harness.backend.executors = ("0",)
    harness.start()
    harness.deploy(1, ("0", "1"))
    report = harness.job_master.await_phase(1, DriverPhase.FAILED)
    assert report.error is not None and report.error.code == "EXECUTOR_LOST"
    assert "1 of 2 executors" in report.error.message and "missing: 1;" in report.error.message


def test_cancel_stops_the_program_and_is_reported(harness: Harness) -> None:
    harness.start()
    harness.deploy(1)
    program = harness.backend.await_program(1)
    harness.driver.cancel()
    assert program.stopped.wait(PATIENCE.thread_s)
    harness.job_master.await_phase(1, DriverPhase.CANCELED)
    assert all(r.phase is not DriverPhase.FINISHED for r in harness.job_master.reports)


def test_a_cancel_that_overtakes_the_next_deployment_holds_for_that(harness: Harness) -> None:
    harness.start()
    harness.deploy(1)
    harness.backend.await_program(1).end(ValueError("no"))
    harness.job_master.await_phase(1, DriverPhase.FAILED)
    harness.driver.cancel()
    harness.deploy(2)
    harness.job_master.await_phase(2, DriverPhase.CANCELED)
    assert len(harness.backend.contexts) == 1


def test_cancel_while_waiting_for_executors(harness: Harness) -> None:
    harness.backend.executors = ()
    harness.settings = replace(harness.settings, report_interval_ms=20, executor_timeout_ms=10**9)
    harness.start()
    harness.deploy(1)
    program = harness.backend.await_prepared(1)
    harness.driver.cancel()
    harness.job_master.await_phase(1, DriverPhase.CANCELED)
    assert not program.started.is_set()


def test_a_newer_attempt_replaces_a_running_one(harness: Harness) -> None:
    harness.start()
    harness.deploy(1)
    first = harness.backend.await_program(1)
    harness.deploy(2)
    assert first.stopped.wait(PATIENCE.thread_s)
    harness.backend.await_program(2)
    harness.job_master.await_phase(2, DriverPhase.RUNNING)
    ended = {DriverPhase.FINISHED, DriverPhase.FAILED, DriverPhase.CANCELED}
    assert not any(r.attempt == 1 and r.phase in ended for r in harness.job_master.reports)


def test_a_newer_attempt_waits_until_the_older_one_is_stopped(harness: Harness) -> None:
    """await_end of the old attempt returns while its stop is still at work."""
    may_stop = threading.Event()
    harness.start()
    harness.deploy(1)
    first = harness.backend.await_program(1)

    def slow_stop() -> None:
        first.end()
        assert may_stop.wait(PATIENCE.thread_s)
        first.stopped.set()

    first.stop = slow_stop  # type: ignore[method-assign]
    harness.deploy(2)
    assert first.ended.wait(PATIENCE.thread_s)
    with harness.backend.made:
        assert not harness.backend.made.wait_for(lambda: len(harness.backend.programs) > 1, 0.2)
    may_stop.set()
    harness.backend.await_program(2)
    assert first.stopped.is_set()


def test_an_unreachable_job_master_stops_nothing_and_hears_the_end_later(harness: Harness) -> None:
    harness.start()
    harness.deploy(1)
    program = harness.backend.await_program(1)
    harness.job_master.await_phase(1, DriverPhase.RUNNING)
    harness.job_master.report_error = RpcUnavailable("down")
    harness.job_master.wait(lambda: harness.job_master.refused > 2)
    assert not program.stopped.is_set()
    program.end()
    harness.job_master.report_error = None
    harness.job_master.await_phase(1, DriverPhase.FINISHED)


def test_a_dismissed_driver_stops_its_program_and_leaves(harness: Harness) -> None:
    harness.start()
    harness.deploy(1)
    program = harness.backend.await_program(1)
    harness.job_master.report_error = DriverLost("driver d1 was replaced; it must end")
    assert program.stopped.wait(PATIENCE.thread_s)
    assert harness.join() == 0


def test_a_batch_is_reported_at_once_and_the_first_is_a_milestone(harness: Harness) -> None:
    harness.settings = replace(harness.settings, report_interval_ms=10**9, report_min_pause_ms=1)
    harness.start()
    harness.deploy(1)
    harness.backend.await_program(1)
    harness.job_master.await_phase(1, DriverPhase.RUNNING)
    harness.backend.queries = (QueryProgress("q", batch_id=0),)
    assert harness.backend.listener is not None
    harness.backend.listener()
    harness.job_master.wait(lambda: any(r.queries for r in harness.job_master.reports))
    assert "FIRST_BATCH" in harness.job_master.reports[-1].milestones_ms
    for report in harness.job_master.reports:
        is_running = report.phase is DriverPhase.RUNNING
        assert report.idle == (IdleQueries(300) if is_running else IdleQueries())


def test_a_program_that_does_not_stop_is_left_behind(harness: Harness) -> None:
    harness.settings = replace(harness.settings, report_interval_ms=20, leave_timeout_ms=1)
    harness.start()
    harness.deploy(1)
    program = harness.backend.await_program(1)
    program.stop = lambda: None  # type: ignore[method-assign]
    harness.driver.shut_down()
    assert harness.halted.wait(PATIENCE.thread_s)
    program.end()


# --- as a hot spare ---


def test_a_hot_spare_rehearses_until_it_is_wanted(harness: Harness) -> None:
    harness.assignment = replace(harness.assignment, hot_spare_of=DriverId("theirs"))
    harness.start()
    assert harness.backend.rehearsing.wait(PATIENCE.thread_s)
    assert not harness.backend.rehearsed.is_set()
    harness.deploy(1)
    assert harness.backend.rehearsed.wait(PATIENCE.thread_s)
    harness.backend.await_program(1)
    harness.job_master.wait(lambda: REHEARSED in harness.job_master.reports[-1].milestones_ms)


def test_one_without_executors_does_not(harness: Harness) -> None:
    harness.assignment = replace(harness.assignment, hot_spare_of=DriverId("theirs"))
    harness.backend.executors = ()
    harness.start()
    harness.job_master.wait(lambda: len(harness.job_master.reports) > 2)
    harness.driver.shut_down()
    assert harness.join() == 0
    assert not harness.backend.rehearsing.is_set()


def test_a_job_s_own_driver_does_not(harness: Harness) -> None:
    harness.run_program()
    assert not harness.backend.rehearsing.is_set()


# --- several jobs ---------------------------------------------------------------


@pytest.fixture
def lasting(harness: Harness) -> Harness:
    """A driver whose process may have further jobs."""
    harness.settings = replace(harness.settings, serves_several_jobs=True)
    return harness


def test_it_stays_when_its_job_has_finished_and_leaves_nothing_of_it(lasting: Harness) -> None:
    lasting.run_program().end()
    lasting.job_master.await_phase(1, DriverPhase.FINISHED)
    lasting.driver.shut_down()
    assert lasting.join() == 0
    assert lasting.driver.stays
    assert lasting.backend.story[-1] == "left, released=False", "the lease went too soon"
    assert lasting.lease.released
    assert not lasting.backend.closed


@pytest.mark.parametrize("error", [UserCodeError("bad row", ""), None])
def test_it_does_not_stay_after_any_other_end(lasting: Harness, error: UserCodeError | None) -> None:
    program = lasting.run_program()
    if error is None:
        lasting.driver.cancel()
        lasting.job_master.await_phase(1, DriverPhase.CANCELED)
    else:
        program.end(error)
        lasting.job_master.await_phase(1, DriverPhase.FAILED)
    lasting.driver.shut_down()
    lasting.join()
    assert lasting.backend.closed and not lasting.driver.stays


def test_nor_when_its_job_has_finished_at_the_second_attempt_only(lasting: Harness) -> None:
    lasting.run_program().end(UserCodeError("bad row", ""))
    lasting.job_master.await_phase(1, DriverPhase.FAILED)
    lasting.deploy(2)
    lasting.backend.await_program(2).end()
    lasting.job_master.await_phase(2, DriverPhase.FINISHED)
    lasting.driver.shut_down()
    lasting.join()
    assert lasting.backend.closed and not lasting.driver.stays


def test_nor_when_something_of_the_job_would_be_left(lasting: Harness) -> None:
    lasting.backend.may_release = False
    lasting.run_program().end()
    lasting.job_master.await_phase(1, DriverPhase.FINISHED)
    lasting.driver.shut_down()
    lasting.join()
    assert lasting.backend.closed and not lasting.driver.stays


SCRIPT_GRAPH = job_graph_to_json(JobGraph(JOB, "job", ProgramKind.SCRIPT))


@pytest.mark.parametrize(
    "submission",
    [replace(SUBMISSION, job_graph_json=SCRIPT_GRAPH), replace(SUBMISSION, files={"a.py": b""})],
    ids=["script", "files"],
)
def test_nor_when_code_ran_in_it_or_files_were_shipped(lasting: Harness, submission: JobSubmission) -> None:
    lasting.start()
    lasting.deploy(1, submission=submission)
    lasting.backend.await_program(1).end()
    lasting.job_master.await_phase(1, DriverPhase.FINISHED)
    lasting.driver.shut_down()
    lasting.join()
    assert lasting.backend.closed and not lasting.driver.stays


def test_levels_of_loggers_are_those_of_python_and_of_the_jvm(harness: Harness) -> None:
    name = "yarnflow.test.driver"
    harness.driver.set_log_level(LogLevel(name, "DEBUG"))
    assert logging.getLogger(name).level == logging.DEBUG and harness.backend.story == []
    harness.driver.set_log_level(LogLevel("org.apache.spark", "info"))
    assert harness.backend.story == ["org.apache.spark has level INFO"]
    with pytest.raises(InvalidOption, match="no level of a log"):
        harness.driver.set_log_level(LogLevel("org.apache.spark", "LOUD"))
    logging.getLogger(name).setLevel(logging.NOTSET)
    logging.getLogger("org.apache.spark").setLevel(logging.NOTSET)
