"""Scenarios of one job, from submission to its end, without any process."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.runtime.jobmaster.job_bench import ADAPTIVE, ADDRESS, JOB, TM1, TM2, USER_ERROR, Bench
from yarnflow.core.ids import AllocationId, ExecutorId, TaskManagerId
from yarnflow.core.job.description import EventLog, JobDescription
from yarnflow.core.messages import DriverPhase, DriverReport, ExecutorExited, MetricDump, ProgramKind
from yarnflow.core.metrics import ScopeKind
from yarnflow.core.states import ExecutionState, JobStatus, RestartLevel
from yarnflow.errors import CallSuspended, DriverLost, JavaUnavailable, SlotUnavailable
from yarnflow.testing.gateways.task_executor import FakeTaskExecutor


def test_a_job_runs_and_finishes() -> None:
    """1. slots and driver are asked for at once  2. executors and deployment follow when both are there
    3. RUNNING only when the driver says so  4. everything is given back."""
    bench = Bench().start()
    assert bench.slots.declared == {JOB: 2}
    assert len(bench.launcher.assignments) == 1
    assert bench.status() is JobStatus.CREATED
    assert bench.details.waiting_for == "slots: 0 of 2"

    assert bench.offer(TM1) == 1
    bench.register()
    assert not bench.gateways.task_executors, "an executor was started before all slots were there"
    assert bench.offer(TM2, 2) == 1, "a surplus slot was accepted"

    started = [d for fake in bench.gateways.task_executors.values() for d in fake.started]
    assert [(d.executor_id, d.cores) for d in started] == [("0", 1), ("1", 1)]
    (deployment,) = bench.gateways.drivers["driver:1"].deployments
    assert (deployment.attempt, deployment.executor_ids) == (1, ("0", "1"))
    assert bench.status() is JobStatus.CREATED

    bench.report(DriverPhase.RUNNING, "0 1")
    assert bench.status() is JobStatus.RUNNING
    assert bench.states() == {ExecutionState.RUNNING}

    bench.report(DriverPhase.FINISHED, "0 1")
    assert bench.status() is JobStatus.FINISHED
    assert bench.states() == {ExecutionState.FINISHED}
    assert bench.slots.released == [JOB]
    assert bench.ended == [JOB]
    assert bench.gateways.drivers["driver:1"].shut_downs == 1


def test_a_job_shorter_than_a_report_still_was_running() -> None:
    bench = Bench().start()
    bench.offer(TM1, 2)
    bench.register().report(DriverPhase.FINISHED)
    assert bench.status() is JobStatus.FINISHED
    assert "RUNNING" in bench.details.timestamps_ms


def test_an_executor_is_replaced_without_a_restart() -> None:
    """Two executors, one dies: the job stays RUNNING, a new executor with a new id serves the slot."""
    bench = Bench().start()
    bench.offer(TM1)
    bench.offer(TM2)
    bench.register().report(DriverPhase.RUNNING, "0 1")

    bench.master.executor_exited(ExecutorExited(JOB, bench.driver_id, ExecutorId("0"), TM1, -9))
    bench.run()
    assert bench.status() is JobStatus.RUNNING
    assert bench.details.restarts == 0
    assert bench.details.failures[-1].level is RestartLevel.TASKS

    bench.run(1_000)
    assert [d.executor_id for d in bench.gateways.task_executors[ADDRESS[TM1]].started] == ["0", "2"]
    bench.report(DriverPhase.RUNNING, "1 2")
    assert bench.states() == {ExecutionState.RUNNING}


def test_a_job_without_any_executor_is_not_running() -> None:
    bench = Bench().running()
    bench.master.executor_exited(ExecutorExited(JOB, bench.driver_id, ExecutorId("0"), TM1, -9))
    bench.run()
    assert bench.status() is JobStatus.RESTARTING
    bench.run(1_000).report(DriverPhase.RUNNING, "1")
    assert bench.status() is JobStatus.RUNNING
    assert bench.details.restarts == 0, "Spark reran the tasks; the restart strategy has nothing to count"


def test_a_lost_task_manager_is_replaced_by_another_slot() -> None:
    bench = Bench().running()
    bench.master.task_manager_lost(TM1, "killed")
    bench.run()
    assert bench.status() is JobStatus.RESTARTING
    assert bench.details.overview.slots_allocated == 0
    assert bench.offer(TM2, 2) == 2
    assert [d.cores for d in bench.gateways.task_executors[ADDRESS[TM2]].started] == [2]
    bench.report(DriverPhase.RUNNING, "1")
    assert bench.status() is JobStatus.RUNNING
    assert bench.states() == {ExecutionState.RUNNING}


def test_a_failed_query_starts_again_in_the_same_driver() -> None:
    bench = Bench().running().report(DriverPhase.RUNNING, batch=0)
    bench.report(DriverPhase.FAILED, error=USER_ERROR)
    assert bench.status() is JobStatus.RESTARTING
    bench.run(1_000)
    assert len(bench.launcher.assignments) == 1, "the driver was thrown away although it is good"
    assert [d.attempt for d in bench.gateways.drivers["driver:1"].deployments] == [1, 2]
    assert bench.gateways.drivers["driver:1"].received == 1, "the job travelled again"
    bench.attempt = 2
    bench.report(DriverPhase.RUNNING)
    assert bench.status() is JobStatus.RUNNING
    assert bench.details.restarts == 1


def test_user_code_that_never_worked_fails_at_once() -> None:
    bench = Bench().running()
    bench.report(DriverPhase.FAILED, error=USER_ERROR)
    assert bench.status() is JobStatus.FAILED
    assert bench.details.error == USER_ERROR
    assert bench.ended == [JOB]


def test_a_dead_driver_is_replaced_on_the_same_slots() -> None:
    bench = Bench().running()
    first = bench.driver_id
    bench.launcher.end(first, -9)
    bench.run()
    assert bench.status() is JobStatus.RESTARTING
    assert bench.details.failures[-1].level is RestartLevel.DRIVER
    bench.run(1_000)
    assert bench.driver_id != first
    assert bench.details.overview.slots_allocated == 2
    bench.register()
    started = bench.gateways.task_executors[ADDRESS[TM1]].started
    assert [(d.executor_id, d.driver_id == first) for d in started] == [("0", True), ("1", False)]
    bench.attempt = 2
    bench.report(DriverPhase.RUNNING, "1")
    assert bench.status() is JobStatus.RUNNING


def test_the_next_driver_starts_during_the_restart_delay_and_is_deployed_after_it() -> None:
    bench = Bench().running()
    bench.launcher.end(bench.driver_id, -9)
    bench.run()
    assert len(bench.launcher.assignments) == 2
    bench.register()
    deployments = bench.gateways.drivers["driver:1"].deployments
    assert [deployment.attempt for deployment in deployments] == [1]
    bench.run(1_000)
    assert [deployment.attempt for deployment in deployments] == [1, 2]
    assert bench.gateways.drivers["driver:1"].received == 2, "each driver process is sent the job"


def test_a_driver_that_ends_before_it_worked_is_not_hurried() -> None:
    bench = Bench().running()
    for launched in (2, 2):
        bench.launcher.end(bench.driver_id, -9)
        bench.run()
        assert len(bench.launcher.assignments) == launched
    bench.run(1_000)
    assert len(bench.launcher.assignments) == 3


def test_a_replaced_driver_is_told_to_end() -> None:
    bench = Bench().running()
    stale = DriverReport(JOB, bench.driver_id, 1, DriverPhase.RUNNING)
    bench.launcher.end(bench.driver_id, -9)
    bench.run(2_000)
    with pytest.raises(DriverLost, match="was replaced"):
        bench.master.report(stale)


def test_a_silent_driver_is_given_up() -> None:
    bench = Bench().running()
    for _ in range(5):
        bench.run(1_000)
    assert bench.status() is JobStatus.RESTARTING
    assert "has not reported" in bench.details.failures[-1].error.message
    assert bench.launcher.killed == [bench.launcher.assignments[0].driver_id]


def test_the_restart_strategy_gives_up() -> None:
    bench = Bench(attempts=1).running()
    bench.launcher.end(bench.driver_id, 1, "boom")
    bench.run().run(1_000)
    bench.launcher.end(bench.driver_id, 1, "boom again")
    bench.run()
    assert bench.status() is JobStatus.FAILED
    assert bench.details.error is not None and "boom again" in bench.details.error.message
    assert bench.slots.released == [JOB]


def test_a_script_always_gets_a_new_driver() -> None:
    bench = Bench(kind=ProgramKind.SCRIPT).running().report(DriverPhase.RUNNING, batch=0)
    first = bench.driver_id
    bench.report(DriverPhase.FAILED, error=USER_ERROR)
    bench.run(1_000)
    assert bench.driver_id != first


def test_cancel_in_good_order() -> None:
    bench = Bench().running()
    bench.master.cancel()
    bench.run()
    assert bench.status() is JobStatus.CANCELLING
    assert bench.states() == {ExecutionState.CANCELING}
    assert bench.gateways.drivers["driver:1"].cancels == 1
    bench.report(DriverPhase.CANCELED)
    assert bench.status() is JobStatus.CANCELED
    assert bench.ended == [JOB]


@pytest.mark.parametrize(
    "until",
    [
        pytest.param(lambda bench: bench.start(), id="waiting for everything"),
        pytest.param(lambda bench: bench.start().register(), id="waiting for slots"),
    ],
)
def test_cancel_before_it_ran(until: Callable[[Bench], object]) -> None:
    bench = Bench()
    until(bench)
    bench.master.cancel()
    bench.run()
    assert bench.status() is JobStatus.CANCELED
    assert bench.launcher.killed == [bench.driver_id]


def test_cancel_of_a_driver_that_does_not_answer() -> None:
    bench = Bench().running()
    bench.master.cancel()
    bench.run()
    driver = bench.driver_id
    for _ in range(6):
        bench.run(1_000)
    assert bench.status() is JobStatus.CANCELED
    assert driver in bench.launcher.killed


def test_slots_that_never_come() -> None:
    bench = Bench("none").start()
    bench.run(10_000)
    assert bench.status() is JobStatus.FAILED
    assert bench.details.error is not None
    assert "needs 2 slots and got 0" in bench.details.error.message


def test_a_late_finish_of_a_canceled_job_is_canceled() -> None:
    bench = Bench().running()
    bench.master.cancel()
    bench.run().report(DriverPhase.FINISHED)
    assert bench.status() is JobStatus.CANCELED


def test_versions_rise_with_each_change() -> None:
    bench = Bench().start()
    before = bench.details.version
    bench.offer(TM1)
    assert bench.details.version > before


def test_cancel_before_anything_began() -> None:
    """The cancellation overtakes the start; an illegal event would end the whole JobManager."""
    bench = Bench()
    bench.master.cancel()
    bench.start()
    assert bench.status() is JobStatus.CANCELED


def test_cancel_during_the_restart_delay() -> None:
    bench = Bench().running().report(DriverPhase.RUNNING, batch=0)
    bench.report(DriverPhase.FAILED, error=USER_ERROR)
    bench.master.cancel()
    bench.run()
    assert bench.status() is JobStatus.CANCELED, "it waits for a driver that has nothing to cancel"


def test_one_lost_slot() -> None:
    bench = Bench().start()
    bench.offer(TM1)
    bench.offer(TM2)
    bench.register().report(DriverPhase.RUNNING, "0 1")
    bench.master.slot_lost(AllocationId("alloc-2"), "freed")
    bench.run()
    assert bench.gateways.task_executors[ADDRESS[TM2]].stopped == ["1"]
    assert bench.details.overview.slots_allocated == 1
    assert bench.status() is JobStatus.RUNNING, "the other executor goes on"
    bench.offer(TM1)
    bench.report(DriverPhase.RUNNING, "0 2")
    assert bench.states() == {ExecutionState.RUNNING}


def test_an_executor_its_driver_does_not_see_any_more_is_replaced() -> None:
    bench = Bench().running()
    bench.report(DriverPhase.RUNNING, "")
    assert bench.status() is JobStatus.RESTARTING, "no executor, and shown RUNNING"
    for _ in range(11):
        bench.run(1_000).report(DriverPhase.RUNNING, "")
    bench.run(1_000)
    fake = bench.gateways.task_executors[ADDRESS[TM1]]
    assert fake.stopped == ["0"]
    assert [d.executor_id for d in fake.started] == ["0", "1"]


def test_executors_that_never_come_up_fail_the_job() -> None:
    bench = Bench("none").start()
    bench.offer(TM1, 2)
    bench.register()
    for executor in "012":
        bench.master.executor_exited(
            ExecutorExited(JOB, bench.driver_id, ExecutorId(executor), TM1, 1, "error: no such option")
        )
        bench.run().run(1_000)
    assert bench.status() is JobStatus.FAILED
    assert bench.details.error is not None
    assert "3 executors in a row" in bench.details.error.message
    assert "no such option" in bench.details.error.message


def test_executors_that_did_come_up_are_no_failed_starts() -> None:
    bench = Bench("none").running()
    for number in range(5):
        bench.report(DriverPhase.RUNNING, "")  # the driver notices first
        bench.master.executor_exited(ExecutorExited(JOB, bench.driver_id, ExecutorId(str(number)), TM1, -9))
        bench.run().run(1_000)
        bench.report(DriverPhase.RUNNING, str(number + 1))
    assert bench.status() is JobStatus.RUNNING


def test_a_task_manager_that_can_never_start_executors_fails_the_job() -> None:
    bench = Bench().start()
    fake = bench.gateways.task_executors.setdefault(ADDRESS[TM1], FakeTaskExecutor())
    fake.error = JavaUnavailable("no Java found")
    bench.offer(TM1, 2)
    bench.register()
    assert bench.status() is JobStatus.FAILED
    assert bench.details.error is not None and bench.details.error.code == "JAVA_UNAVAILABLE"


def test_a_slot_whose_old_executor_is_still_ending_is_tried_again() -> None:
    bench = Bench("none").start()
    bench.offer(TM1, 2)
    fake = bench.gateways.task_executors.setdefault(ADDRESS[TM1], FakeTaskExecutor())
    fake.error = SlotUnavailable("executor 7 still has the slot")
    bench.register()
    for _ in range(5):
        bench.run(1_000).report(DriverPhase.DEPLOYING, "")
    fake.error = None
    bench.run(1_000)
    assert [d.executor_id for d in fake.started] == ["0"]
    assert bench.status() is JobStatus.CREATED


# --- schedulers ---------------------------------------------------------------


def adaptive(restart: str = "fixed-delay") -> Bench:
    return Bench(restart, scheduler=ADAPTIVE).start()


def test_adaptive_starts_with_what_there_is_and_takes_what_comes() -> None:
    """1. one slot of two, nothing more for a while: the job starts on it  2. what has no slot is shown
    SCHEDULED, and what is missing is said  3. the other slot comes and is used at once."""
    bench = adaptive().register()
    bench.offer(TM1)
    bench.run(1_999)
    assert not bench.gateways.task_executors
    assert bench.details.waiting_for == "slots: 1 of 2"
    bench.run(1)
    assert [d.cores for d in bench.gateways.task_executors[ADDRESS[TM1]].started] == [1]
    (deployment,) = bench.gateways.drivers["driver:1"].deployments
    assert deployment.executor_ids == ("0",)
    assert bench.details.waiting_for == "executors: 0 of 1"

    bench.report(DriverPhase.RUNNING, "0")
    assert bench.status() is JobStatus.RUNNING
    assert bench.tasks == [("RUNNING", TM1), ("SCHEDULED", "")]
    assert bench.details.waiting_for == "slots: 1 of 2"

    assert bench.offer(TM2) == 1
    assert bench.tasks == [("RUNNING", TM1), ("DEPLOYING", TM2)]
    assert [d.executor_id for d in bench.gateways.task_executors[ADDRESS[TM2]].started] == ["1"]
    bench.report(DriverPhase.RUNNING, "0 1")
    assert bench.states() == {ExecutionState.RUNNING}
    assert bench.details.waiting_for == ""
    assert len(bench.gateways.drivers["driver:1"].deployments) == 1, "the query was started again"
    assert bench.details.restarts == 0


def test_adaptive_does_not_wait_when_all_slots_are_there() -> None:
    bench = adaptive()
    bench.offer(TM1)
    bench.offer(TM2)
    bench.register()
    assert len(bench.gateways.drivers["driver:1"].deployments) == 1


def test_adaptive_with_a_late_driver_starts_when_it_comes() -> None:
    bench = adaptive()
    bench.offer(TM1)
    bench.run(5_000)
    assert bench.details.waiting_for == "driver"
    bench.register()
    assert len(bench.gateways.drivers["driver:1"].deployments) == 1


def test_adaptive_does_not_begin_to_wait_anew_once_it_has_decided() -> None:
    bench = adaptive()
    bench.offer(TM1)
    bench.run(5_000)
    bench.master.task_manager_lost(TM1, "killed")
    bench.run(1_000)
    bench.offer(TM2)
    bench.register()
    assert len(bench.gateways.drivers["driver:1"].deployments) == 1


def test_adaptive_without_any_slot_fails() -> None:
    bench = adaptive("none")
    bench.run(9_999)
    assert bench.status() is JobStatus.CREATED
    bench.run(1)
    assert bench.status() is JobStatus.FAILED
    assert bench.details.error is not None
    assert "got no slot within 10 s" in bench.details.error.message


def test_adaptive_goes_on_with_fewer_for_ever() -> None:
    bench = adaptive("none")
    bench.offer(TM1)
    bench.offer(TM2)
    bench.register().report(DriverPhase.RUNNING, "0 1", batch=0)
    bench.master.task_manager_lost(TM2, "killed")
    bench.run()
    for _ in range(60):
        bench.run(1_000).report(DriverPhase.RUNNING, "0", batch=0)
    assert bench.status() is JobStatus.RUNNING
    assert bench.tasks == [("RUNNING", TM1), ("SCHEDULED", "")]


def test_adaptive_gives_a_new_driver_the_slots_there_are() -> None:
    bench = adaptive()
    bench.offer(TM1)
    bench.run(2_000).register().report(DriverPhase.RUNNING, "0", batch=0)
    bench.launcher.end(bench.driver_id, -9)
    bench.run().run(1_000).register()
    assert [d.executor_id for d in bench.gateways.task_executors[ADDRESS[TM1]].started] == ["0", "1"]


def test_adaptive_takes_a_cluster_that_is_too_small() -> None:
    bench = adaptive().register()
    bench.master.slots_unfulfillable("needs 2 slots and this cluster can have no more than 1")
    bench.run()
    assert bench.status() is JobStatus.CREATED
    bench.offer(TM1)
    bench.run(2_000).report(DriverPhase.RUNNING, "0")
    assert bench.status() is JobStatus.RUNNING


def test_adaptive_that_can_never_have_a_slot_says_why() -> None:
    bench = adaptive()
    bench.master.slots_unfulfillable("needs containers of 9 GB and YARN gives 8 GB at most")
    bench.run().run(2_000)
    assert bench.status() is JobStatus.FAILED, "it waits for what it cannot get"
    assert bench.details.error is not None
    assert bench.details.error.message == "job flights needs containers of 9 GB and YARN gives 8 GB at most"


def test_a_job_that_can_never_have_its_slots_fails_at_once() -> None:
    bench = Bench().start()
    bench.master.slots_unfulfillable("needs 2 slots and this cluster can have no more than 1")
    bench.run()
    assert bench.status() is JobStatus.FAILED


def test_every_wait_for_slots_counts_as_one_failure() -> None:
    bench = Bench("fixed-delay", attempts=2).start()
    bench.run(10_000)
    assert (bench.status(), bench.details.restarts) == (JobStatus.RESTARTING, 1)
    bench.run(1_000)
    bench.run(9_999)
    assert bench.details.restarts == 1
    bench.run(1)
    assert bench.details.restarts == 2


def test_default_gives_arriving_slots_to_what_waits_for_them() -> None:
    bench = Bench().start()
    bench.offer(TM1)
    bench.offer(TM2)
    bench.register().report(DriverPhase.RUNNING, "0 1", batch=0)
    bench.master.task_manager_lost(TM2, "killed")
    bench.run()
    assert bench.status() is JobStatus.RUNNING
    assert bench.tasks == [("RUNNING", TM1), ("SCHEDULED", "")]
    assert bench.details.waiting_for == "slots: 1 of 2"
    for _ in range(30):
        bench.run(1_000).report(DriverPhase.RUNNING, "0", batch=0)
    assert bench.status() is JobStatus.RUNNING


def test_default_gives_a_new_driver_all_slots_or_none() -> None:
    bench = Bench().start()
    bench.offer(TM1)
    bench.offer(TM2)
    bench.register().report(DriverPhase.RUNNING, "0 1", batch=0)
    bench.master.task_manager_lost(TM2, "killed")
    bench.launcher.end(bench.driver_id, -9)
    bench.run().run(1_000).register()
    assert bench.details.waiting_for == "slots: 1 of 2"
    assert len(bench.gateways.task_executors[ADDRESS[TM1]].started) == 1
    bench.offer(TM2)
    assert len(bench.gateways.task_executors[ADDRESS[TM1]].started) == 2


# --- what the ResourceManager says ---------------------------------------------


def test_why_slots_do_not_come_is_said() -> None:
    bench = Bench("none").start()
    version = bench.details.version
    bench.master.resources_wait("YARN: 2 containers are waited for; queue default is full")
    bench.run()
    assert bench.details.waiting_for == (
        "slots: 0 of 2 (YARN: 2 containers are waited for; queue default is full)"
    )
    assert bench.details.version > version
    bench.run(10_000)
    assert bench.details.error is not None
    assert "queue default is full" in bench.details.error.message


def test_an_old_outlook_is_forgotten() -> None:
    bench = Bench().start()
    bench.master.resources_wait("YARN: queue default is full")
    bench.master.resources_wait("")
    bench.run()
    assert bench.details.waiting_for == "slots: 0 of 2"


def test_the_diagnosis_joins_the_failure_it_explains() -> None:
    bench = Bench().start()
    bench.offer(TM1)
    bench.offer(TM2)
    bench.register().report(DriverPhase.RUNNING, "0 1")
    bench.master.task_manager_lost(TM1, "no longer reachable")
    bench.master.task_manager_lost(TM2, "no longer reachable")
    bench.master.task_manager_diagnosed(TM1, "YARN: killed for exceeding memory limits")
    bench.master.task_manager_diagnosed(TM1, "YARN: killed for exceeding memory limits")
    bench.master.task_manager_diagnosed(TaskManagerId("unknown"), "YARN: nothing of ours")
    bench.run()
    assert [failure.error.message for failure in bench.details.failures] == [
        "TaskManager tm-1 is lost: no longer reachable; YARN: killed for exceeding memory limits",
        "TaskManager tm-2 is lost: no longer reachable",
    ]


def test_a_task_manager_that_is_not_called_for_a_while_costs_no_restart() -> None:
    """Nothing was sent, so nothing failed; the executor is asked for again."""
    bench = Bench().start()
    bench.offer(TM1, 2)
    task_executor = bench.gateways.task_executors.setdefault(ADDRESS[TM1], FakeTaskExecutor())
    task_executor.error = CallSuspended("it was not reached 3 times in a row")
    bench.register()
    for _ in range(10):
        bench.run(1_000).report(DriverPhase.IDLE)
    assert bench.details.restarts == 0 and not task_executor.started
    task_executor.error = None
    bench.run(1_000)
    assert len(task_executor.started) == 1


def test_what_the_driver_measured_is_passed_on_and_not_kept() -> None:
    bench = Bench().running()
    dump = MetricDump(ScopeKind.JOB, counts={"a": 1})
    bench.report(DriverPhase.RUNNING, "0", metrics=(dump,))
    bench.report(DriverPhase.RUNNING, "0")
    assert bench.measured == [(JOB, (dump,))]


def test_spark_names_of_drivers_are_known_where_they_write_event_logs() -> None:
    """One of each driver that has run the job; they are asked for after its end, too."""
    bench = Bench(description=JobDescription(JOB, "flights", event_log=EventLog("hdfs:///x"))).running()
    first = bench.driver_id
    bench.launcher.end(first, -9)
    bench.run().run(1_000).register()
    second = bench.driver_id
    assert first != second
    bench.attempt = 2
    bench.report(DriverPhase.RUNNING, "1").report(DriverPhase.FINISHED, "1")
    log = bench.master.description().event_log
    assert log is not None and log.application_ids == (f"app-{first}", f"app-{second}")
    assert Bench().running().master.description() == JobDescription(JOB, "flights")
