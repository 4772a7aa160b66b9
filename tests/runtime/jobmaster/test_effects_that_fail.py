"""Effects that cannot even be begun: who waits for an answer gets one, and nobody takes them for done."""

from __future__ import annotations

import logging

import pytest

from tests.runtime.jobmaster.hot_spare_stage import Stage
from tests.runtime.jobmaster.job_bench import ADDRESS, TM1, Bench
from yarnflow.core.ids import JobId
from yarnflow.core.messages import DriverPhase
from yarnflow.core.states import JobStatus, RestartLevel
from yarnflow.errors import RpcUnavailable, StorageUnavailable

NOT_NOW = RpcUnavailable("not now")


def test_a_driver_that_cannot_be_asked_for_is_a_failure_of_the_job(caplog: pytest.LogCaptureFixture) -> None:
    bench = Bench()
    bench.launcher.error = NOT_NOW
    bench.start()
    (failure,) = bench.details.failures
    assert (failure.error.code, failure.error.message) == (NOT_NOW.code, "not now")
    assert failure.level is RestartLevel.DRIVER
    assert bench.status() is JobStatus.RESTARTING
    (record,) = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert record.getMessage().startswith("LaunchDriver of job flights, driver driver-")
    assert record.getMessage().endswith(": not now")

    bench.launcher.error = None
    bench.run(1_000)
    bench.offer(TM1, 2)
    bench.attempt = 2
    bench.register().report(DriverPhase.RUNNING)
    assert bench.status() is JobStatus.RUNNING


def test_drivers_that_cannot_be_asked_for_use_up_the_attempts() -> None:
    bench = Bench(attempts=2)
    bench.launcher.error = NOT_NOW
    bench.start()
    assert bench.status() is JobStatus.RESTARTING
    bench.run(1_000)
    assert bench.status() is JobStatus.RESTARTING
    bench.run(1_000)
    assert bench.status() is JobStatus.FAILED
    assert bench.details.error is not None and bench.details.error.message == "not now"


def test_a_hot_spare_that_cannot_be_asked_for_is_tried_again_and_the_job_goes_on() -> None:
    stage = Stage().starts()
    stage.offer(TM1, 2)
    assert len(stage.drivers) == 2, "the hot spare is prepared"
    hot_spare = stage.drivers[1]
    stage.launcher.error = NOT_NOW
    stage.launcher.end(hot_spare, -9)
    stage.seconds(3)
    assert len(stage.drivers) == 2 and stage.status() is JobStatus.RUNNING
    stage.launcher.error = None
    stage.seconds(10)
    assert len(stage.drivers) == 3 and stage.status() is JobStatus.RUNNING


def test_an_executor_at_what_is_no_address_could_not_be_started() -> None:
    bench = Bench()
    bench.gateways.bad_addresses = {ADDRESS[TM1]}
    bench.start()
    assert bench.offer(TM1, 2) == 2
    bench.register().run(1_000).run(1_000)
    assert "could not be started: 'host1:1' is no address" in bench.details.failures[-1].error.message
    assert bench.details.failures[-1].level is RestartLevel.DRIVER


def test_a_driver_at_what_is_no_address_did_not_take_the_job() -> None:
    bench = Bench()
    bench.gateways.bad_addresses = {"driver:1"}
    bench.start()
    bench.offer(TM1, 2)
    bench.register()
    assert "did not take the job: 'driver:1' is no address" in bench.details.failures[-1].error.message
    assert bench.status() is JobStatus.RESTARTING


def test_a_driver_that_cannot_be_told_to_leave_is_killed() -> None:
    bench = Bench().running()
    bench.gateways.bad_addresses = {"driver:1"}
    bench.report(DriverPhase.FINISHED)
    assert bench.status() is JobStatus.FINISHED
    assert bench.launcher.killed[:1] == [bench.driver_id]
    assert not bench.driver.shut_downs


def test_a_cancel_that_nobody_can_hear_ends_the_job_by_force() -> None:
    bench = Bench().running()
    bench.gateways.bad_addresses = {"driver:1"}
    bench.master.cancel()
    bench.run()
    assert bench.status() is JobStatus.CANCELED


def test_an_effect_that_nobody_answers_for_ends_the_endpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not as an error that a caller may take for its own: the decider believes that slots are asked for."""

    def declare(job_id: JobId, slots: int) -> None:
        raise StorageUnavailable("a bug")

    bench = Bench()
    monkeypatch.setattr(bench.slots, "declare_requirements", declare)
    said = "^DeclareSlots of job flights: a bug; please report this$"
    with pytest.raises(RuntimeError, match=said) as caught:
        bench.start()
    assert isinstance(caught.value.__cause__, StorageUnavailable)
    bench.run()
    assert not bench.launcher.assignments, "it goes on although nobody knows in which state it is"
