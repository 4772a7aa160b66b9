"""How a job's hot spare steps in, and when it does not."""

from __future__ import annotations

import pytest

from tests.runtime.jobmaster.hot_spare_stage import Stage
from tests.runtime.jobmaster.job_bench import JOB, TM1, TM2, USER_ERROR
from yarnflow.core.ha.ports import DriverLeaseInfo
from yarnflow.core.ids import AllocationId, ExecutorId
from yarnflow.core.messages import DriverPhase, ErrorInfo, ExecutorExited, ProgramKind
from yarnflow.core.states import ExecutionState, JobStatus, RestartLevel
from yarnflow.errors import DriverLost
from yarnflow.testing.stores import FakeJobStores


def stepped_in(bench: Stage) -> None:
    old, hot_spare = bench.drivers[:2]
    assert bench.attempts(hot_spare) == [2], "no restart delay"
    assert bench.fake(hot_spare).deployments[0].executor_ids == ("1",)
    assert bench.fake(hot_spare).received == 1, "it has to be sent the job before it can be named"
    assert bench.tasks == [("DEPLOYING", TM2), ("DEPLOYING", TM2)]
    assert bench.details.restarts == 1
    assert bench.details.failures[-1].level is RestartLevel.DRIVER
    assert bench.details.failures[-1].location == old
    bench.attempt = 2
    bench.says(hot_spare, DriverPhase.RUNNING, "1")
    assert bench.status() is JobStatus.RUNNING
    assert bench.states() == {ExecutionState.RUNNING}
    with pytest.raises(DriverLost):
        bench.says(old, DriverPhase.RUNNING, "0")


def test_it_steps_in_when_the_driver_ends() -> None:
    bench = Stage().ready()
    bench.launcher.end(bench.drivers[0], -9)
    bench.run()
    stepped_in(bench)


def test_it_steps_in_when_the_driver_is_silent() -> None:
    bench = Stage(stores=FakeJobStores(highly_available=True)).ready()
    bench.seconds(4, bench.drivers[0])
    assert bench.launcher.killed == [bench.drivers[0]]
    assert bench.stores.lease_table.revoked == [bench.drivers[0]]
    stepped_in(bench)


def test_it_steps_in_when_the_lease_is_gone() -> None:
    bench = Stage(stores=FakeJobStores(highly_available=True)).ready()
    driver = bench.drivers[0]
    bench.stores.lease_table.hold(DriverLeaseInfo(JOB, driver, driver, "host", 42, epoch=1, attempt=1))
    bench.run()
    bench.stores.lease_table.expire(JOB)
    bench.run().run(1_000)
    assert bench.launcher.killed == [driver]
    stepped_in(bench)


def test_it_steps_in_when_the_jvm_ends() -> None:
    bench = Stage().ready()
    error = ErrorInfo(DriverLost.code, "the driver's JVM ended")
    bench.says(bench.drivers[0], DriverPhase.FAILED, error=error, driver_unusable=True)
    bench.run()
    stepped_in(bench)


def stranded(bench: Stage) -> None:
    """Its driver lives and has no executor."""
    assert bench.attempts(bench.drivers[1]) == [2], "no restart delay"
    assert bench.launcher.killed == [bench.drivers[0]]
    assert bench.details.restarts == 1
    (failure,) = bench.details.failures
    assert (failure.level, failure.location) == (RestartLevel.DRIVER, TM1)


def test_it_steps_in_when_no_executor_is_left() -> None:
    bench = Stage().ready()
    bench.master.executor_exited(ExecutorExited(JOB, bench.drivers[0], ExecutorId("0"), TM1, -9, ""))
    bench.run()
    stranded(bench)


def test_it_steps_in_when_the_jobs_task_manager_is_lost() -> None:
    bench = Stage().ready()
    bench.master.task_manager_lost(TM1, "gone")
    bench.run()
    stranded(bench)


@pytest.mark.parametrize("then", ["nothing", "executor", "task manager"])
def test_it_steps_in_when_the_driver_is_the_first_to_know(then: str) -> None:
    """It reports every second, and a TaskManager that is silent is waited for longer."""
    bench = Stage().ready()
    bench.says(bench.drivers[0], DriverPhase.RUNNING, "")
    if then == "executor":
        bench.master.executor_exited(ExecutorExited(JOB, bench.drivers[0], ExecutorId("0"), TM1, -9, ""))
    elif then == "task manager":
        bench.master.task_manager_lost(TM1, "gone")
    bench.run().run(300)
    assert bench.attempts(bench.drivers[1]) == [2]
    assert bench.launcher.killed == [bench.drivers[0]]
    assert bench.task_manager(TM2).stopped == [], "its executor was ended"
    assert bench.details.restarts == 1


def test_it_steps_in_when_the_last_slot_is_lost() -> None:
    bench = Stage().ready()
    bench.master.slot_lost(AllocationId("alloc-1"), "freed")
    bench.run()
    assert bench.attempts(bench.drivers[1]) == [2], "it waits for a restart delay"


@pytest.mark.parametrize("restart, rehearsed", [("none", True), ("fixed-delay", False)])
def test_otherwise_executors_are_replaced(restart: str, rehearsed: bool) -> None:
    bench = Stage(restart).ready(rehearsed)
    bench.master.executor_exited(ExecutorExited(JOB, bench.drivers[0], ExecutorId("0"), TM1, -9, ""))
    bench.run().run(200)
    assert bench.started_on(TM1) == [("0", bench.drivers[0]), ("2", bench.drivers[0])]
    assert [failure.level for failure in bench.details.failures] == [RestartLevel.TASKS]


def test_the_next_one_is_prepared_on_the_freed_slots() -> None:
    bench = Stage().ready()
    bench.launcher.end(bench.drivers[0], -9)
    bench.run()
    stepped_in(bench)
    assert len(bench.drivers) == 2, "not before the job runs again"
    bench.seconds(5)
    third = bench.drivers[2]
    bench.register(third)
    assert bench.started_on(TM1)[1:] == [("2", third)]
    bench.says(third, DriverPhase.IDLE, "2")
    assert bench.details.waiting_for == ""
    bench.launcher.end(bench.drivers[1], -9)
    bench.run()
    assert bench.attempts(third) == [3]
    assert bench.tasks == [("DEPLOYING", TM1), ("DEPLOYING", TM1)]
    assert bench.slots.declared == {JOB: 4}


def test_one_with_too_few_slots_takes_some_of_the_freed_ones() -> None:
    bench = Stage().starts()
    bench.offer(TM2)
    bench.register()
    hot_spare = bench.drivers[1]
    bench.says(hot_spare, DriverPhase.IDLE, "1")
    bench.launcher.end(bench.drivers[0], -9)
    bench.run()
    assert bench.started_on(TM1)[1:] == [("2", hot_spare)]
    (deployment,) = bench.fake(hot_spare).deployments
    assert set(deployment.executor_ids) == {"1", "2"}
    assert sorted(bench.tasks) == [("DEPLOYING", TM1), ("DEPLOYING", TM2)]


def test_one_that_is_being_started_is_waited_for() -> None:
    """Another driver beside it would be no quicker; the delay is that of any restart."""
    bench = Stage().starts()
    bench.offer(TM2, 2)
    bench.launcher.end(bench.drivers[0], -9)
    bench.run()
    assert bench.details.waiting_for == "restart delay"
    bench.run(1_000)
    hot_spare = bench.drivers[1]
    assert len(bench.drivers) == 2
    bench.register(hot_spare)
    assert bench.attempts(hot_spare) == [2]


def test_a_silent_one_that_stepped_in_is_lost_like_any_driver() -> None:
    bench = Stage().ready()
    bench.launcher.end(bench.drivers[0], -9)
    bench.run()
    stepped_in(bench)
    bench.run(1_000).run(3_000)
    assert "has not reported" in bench.details.failures[-1].error.message
    assert bench.drivers[1] in bench.launcher.killed


def test_a_failure_of_the_program_is_not_hurried() -> None:
    """A script that fails is run by another driver; that one comes no sooner than the strategy says."""
    bench = Stage(kind=ProgramKind.SCRIPT).ready()
    bench.report_batch()
    bench.says(bench.drivers[0], DriverPhase.FAILED, "0", error=USER_ERROR)
    assert bench.attempts(bench.drivers[1]) == []
    bench.run(1_000)
    assert bench.attempts(bench.drivers[1]) == [2]


def test_a_job_without_restarts_is_over() -> None:
    bench = Stage("none").ready()
    bench.launcher.end(bench.drivers[0], -9)
    bench.run()
    assert bench.status() is JobStatus.FAILED
    assert bench.fake(bench.drivers[1]).shut_downs == 1
    assert bench.attempts(bench.drivers[1]) == []


def test_a_query_that_fails_stays_with_its_driver() -> None:
    bench = Stage().ready().report_batch()
    bench.says(bench.drivers[0], DriverPhase.FAILED, "0", error=USER_ERROR)
    bench.run(1_000)
    assert bench.attempts(bench.drivers[0]) == [1, 2]
    assert bench.attempts(bench.drivers[1]) == []
