"""A job with a hot spare: when there is one, what becomes of it."""

from __future__ import annotations

import pytest

from tests.runtime.jobmaster.hot_spare_stage import Stage
from tests.runtime.jobmaster.job_bench import JOB, TM1, TM2, TM3
from yarnflow.core.ids import AllocationId, ExecutorId
from yarnflow.core.messages import DriverPhase, ErrorInfo, ExecutorExited, QueryProgress
from yarnflow.core.states import ExecutionState, JobStatus
from yarnflow.errors import ConfigError, DriverLost

# --- how it is prepared ---------------------------------------------------------


def test_without_it_everything_is_as_it_was() -> None:
    bench = Stage(hot_spare=False).starts()
    assert bench.slots.declared == {JOB: 2}
    assert bench.offer(TM2) == 0
    assert len(bench.drivers) == 1
    assert bench.details.waiting_for == ""


def test_the_jobs_own_slots_come_first() -> None:
    bench = Stage().start()
    assert bench.slots.declared == {JOB: 2}
    bench.offer(TM1)
    assert bench.slots.declared == {JOB: 2}, "the slots of the two would be mixed"
    bench.offer(TM1)
    assert bench.slots.declared == {JOB: 4}


def test_the_job_runs_without_waiting_for_it() -> None:
    bench = Stage().starts()
    assert bench.status() is JobStatus.RUNNING
    assert bench.details.overview.slots_allocated == 2
    assert len(bench.drivers) == 1, "a driver without executors is no hot spare"
    assert bench.details.waiting_for == "the hot spare's slots: 0 of 2"
    bench.master.resources_wait("1 TaskManager to start")
    bench.run()
    assert bench.details.waiting_for == "the hot spare's slots: 0 of 2 (1 TaskManager to start)"


def test_it_is_not_started_beside_a_job_that_starts() -> None:
    bench = Stage().start()
    bench.offer(TM1, 2)
    assert bench.offer(TM2, 2) == 2
    bench.register()
    bench.says(bench.drivers[0], DriverPhase.RUNNING, "0")
    assert len(bench.drivers) == 1
    bench.seconds(4)
    assert len(bench.drivers) == 1, "its first batches need the processors"
    bench.seconds(1)
    assert len(bench.drivers) == 2


@pytest.mark.parametrize("queries", [(), (QueryProgress("q", batch_id=4), QueryProgress("r"))])
def test_it_is_not_started_before_the_job_has_committed(queries: tuple[QueryProgress, ...]) -> None:
    bench = Stage().start()
    bench.offer(TM1, 2)
    assert bench.offer(TM2, 2) == 2
    bench.register()
    bench.says(bench.drivers[0], DriverPhase.RUNNING, "0", queries=queries)
    bench.seconds(29)
    assert len(bench.drivers) == 1
    bench.seconds(1)
    assert len(bench.drivers) == 2, "perhaps there is no input"


def test_it_moves_when_another_master_could_have_it() -> None:
    bench = Stage().ready()
    _, first = bench.drivers
    bench.launcher.misplaced_ids.add(first)
    bench.seconds(1)
    assert bench.launcher.killed == [first]
    assert bench.details.waiting_for == "the hot spare's driver"
    bench.seconds(1, first)
    second = bench.drivers[2]
    bench.register(second)
    bench.says(second, DriverPhase.IDLE, "2", milestones_ms={})
    assert bench.details.waiting_for == "the hot spare's rehearsal", "it has not been warm, ever"
    bench.says(second, DriverPhase.IDLE, "2")
    assert bench.details.waiting_for == ""
    assert bench.status() is JobStatus.RUNNING


def test_it_has_everything_but_a_deployment() -> None:
    bench = Stage().starts()
    assert bench.offer(TM2, 2) == 2
    job, hot_spare = bench.drivers
    assert bench.details.waiting_for == "the hot spare's driver"
    bench.register(hot_spare)
    assert bench.started_on(TM2) == [("1", hot_spare)]
    assert bench.details.waiting_for == "the hot spare's executors: 0 of 1"
    bench.says(hot_spare, DriverPhase.IDLE, "1", milestones_ms={})
    assert bench.details.waiting_for == "the hot spare's rehearsal"
    bench.says(hot_spare, DriverPhase.IDLE, "1")
    assert bench.details.waiting_for == ""
    assert bench.attempts(hot_spare) == []
    assert bench.started_on(TM1) == [("0", job)]
    assert bench.details.overview.slots_allocated == 2, "those of the job alone"


def test_its_slots_are_not_asked_for_before_its_place_is_there() -> None:
    """They would be of the leader's own application, and be lost with it."""
    bench = Stage()
    bench.launcher.awaiting = True
    bench.starts()
    bench.says(bench.drivers[0], DriverPhase.RUNNING, "0")
    assert bench.slots.declared == {JOB: 2}
    bench.launcher.awaiting = False
    bench.says(bench.drivers[0], DriverPhase.RUNNING, "0")
    assert bench.slots.declared == {JOB: 4}


def test_more_slots_than_both_need_are_not_taken() -> None:
    bench = Stage().ready()
    assert bench.offer(TM3) == 0


def test_a_cluster_that_can_never_give_them_runs_the_job() -> None:
    bench = Stage("none").starts()
    for _ in range(2):  # it is said once for each look at the slots
        bench.master.slots_unfulfillable("needs 4 slots and this cluster can have no more than 2")
        bench.run()
    assert bench.status() is JobStatus.RUNNING
    assert bench.slots.declared == {JOB: 2}
    assert bench.details.waiting_for == "the hot spare's slots: 0 of 2 (the cluster has no more)"


def test_what_a_cluster_can_give_is_used() -> None:
    bench = Stage("none").starts()
    bench.master.slots_unfulfillable("needs 4 slots and this cluster can have no more than 3")
    bench.run()
    assert bench.offer(TM2) == 1, "it was on its way"
    assert bench.slots.declared == {JOB: 3}, "or it would not be replaced when it is lost"
    bench.register()
    assert bench.started_on(TM2) == [("1", bench.drivers[1])]


def test_a_job_that_does_not_fit_itself_fails_all_the_same() -> None:
    bench = Stage("none").start()
    bench.master.slots_unfulfillable("needs 2 slots and this cluster can have no more than 1")
    bench.run()
    assert bench.status() is JobStatus.FAILED


# --- how it is lost -------------------------------------------------------------


def test_it_is_replaced_quietly() -> None:
    bench = Stage().ready()
    hot_spare = bench.drivers[1]
    bench.launcher.end(hot_spare, -9)
    bench.run()
    assert bench.status() is JobStatus.RUNNING
    assert bench.details.failures == ()
    assert bench.details.restarts == 0
    assert bench.details.waiting_for == "the hot spare's driver"
    assert bench.task_manager(TM2).stopped == ["1"]
    bench.run(1_000).register()
    assert bench.started_on(TM2)[1:] == [("2", bench.drivers[2])]
    with pytest.raises(DriverLost):
        bench.says(hot_spare, DriverPhase.IDLE)


@pytest.mark.parametrize("silent", [True, False])
def test_a_broken_one_is_replaced(silent: bool) -> None:
    bench = Stage().ready()
    if silent:
        bench.seconds(4, bench.drivers[1])
    else:
        bench.says(bench.drivers[1], DriverPhase.FAILED, error=ErrorInfo("X", "no JVM"), driver_unusable=True)
    assert bench.status() is JobStatus.RUNNING
    assert bench.launcher.killed == [bench.drivers[1]]
    bench.run(1_000)
    assert len(bench.drivers) == 3


def test_one_that_never_comes_up_is_tried_less_and_less_often() -> None:
    bench = Stage().starts()
    bench.offer(TM2, 2)
    for _ in range(60):
        if bench.drivers[-1] not in bench.launcher.killed:
            bench.launcher.end(bench.drivers[-1], 1)
        bench.run(1_000).report_batch()
    assert 5 <= len(bench.drivers) <= 8
    assert bench.status() is JobStatus.RUNNING


def test_its_executor_is_replaced() -> None:
    bench = Stage().ready()
    bench.master.executor_exited(ExecutorExited(JOB, bench.drivers[1], ExecutorId("1"), TM2, -9, ""))
    bench.run().run(200)
    assert bench.started_on(TM2) == [("1", bench.drivers[1]), ("2", bench.drivers[1])]
    assert bench.details.failures == ()
    assert bench.states() == {ExecutionState.RUNNING}


def test_a_task_manager_that_cannot_start_its_executors_does_not_end_the_job() -> None:
    bench = Stage("none").starts()
    bench.offer(TM2, 2)
    bench.task_manager(TM2).error = ConfigError("no java")
    bench.register()
    assert bench.status() is JobStatus.RUNNING
    assert bench.launcher.killed == [bench.drivers[1]]


def test_losing_its_task_manager_costs_the_job_nothing() -> None:
    bench = Stage().ready()
    bench.master.task_manager_lost(TM2, "gone")
    bench.run()
    assert bench.details.failures == ()
    assert bench.details.waiting_for == "the hot spare's slots: 0 of 2"
    assert len(bench.drivers) == 2, "the driver waits for other slots"
    bench.offer(TM3, 2)
    assert bench.started_on(TM3) == [("2", bench.drivers[1])]


def test_losing_the_jobs_task_manager_costs_it_its_slots() -> None:
    bench = Stage().ready(rehearsed=False)
    job, hot_spare = bench.drivers
    bench.master.task_manager_lost(TM1, "gone")
    bench.run()
    assert bench.status() is JobStatus.RESTARTING
    assert bench.task_manager(TM2).stopped == [], "a free TaskManager would give slots in a moment"
    bench.run(300)
    assert bench.task_manager(TM2).stopped == ["1"]
    assert bench.started_on(TM2) == [("1", hot_spare), ("2", job)]
    bench.says(job, DriverPhase.RUNNING, "2")
    assert bench.status() is JobStatus.RUNNING
    assert bench.launcher.killed == []
    bench.offer(TM3, 2)
    bench.seconds(5)
    assert bench.started_on(TM3) == [("3", hot_spare)]


def test_free_slots_leave_the_hot_spare_its_own() -> None:
    bench = Stage().ready(rehearsed=False)
    bench.master.task_manager_lost(TM1, "gone")
    bench.run()
    bench.offer(TM3, 2)
    bench.run(300)
    assert bench.task_manager(TM2).stopped == []
    assert bench.started_on(TM3) == [("2", bench.drivers[0])]


def test_one_lost_slot_is_filled_from_beside_the_others() -> None:
    bench = Stage().start()
    bench.offer(TM1)
    bench.offer(TM2)
    bench.register()
    bench.says(bench.drivers[0], DriverPhase.RUNNING, "0 1").seconds(5)
    bench.offer(TM3)
    bench.offer(TM2)
    bench.register()
    assert bench.started_on(TM3) == [("3", bench.drivers[1])]
    bench.master.slot_lost(AllocationId("alloc-1"), "freed")
    bench.run().run(300)
    assert bench.task_manager(TM3).stopped == []
    assert bench.started_on(TM2)[-1] == ("4", bench.drivers[0])


# --- the end --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("phase", "status"),
    [(DriverPhase.FINISHED, JobStatus.FINISHED), (DriverPhase.CANCELED, JobStatus.CANCELED)],
)
def test_both_end_with_the_job(phase: DriverPhase, status: JobStatus) -> None:
    bench = Stage().ready()
    if phase is DriverPhase.CANCELED:
        bench.master.cancel()
        bench.run()
    bench.says(bench.drivers[0], phase, "0")
    assert bench.status() is status
    assert [bench.fake(driver).shut_downs for driver in bench.drivers] == [1, 1]
    assert bench.task_manager(TM2).stopped == ["1"]
    assert bench.slots.released == [JOB]
    bench.launcher.end(bench.drivers[1], 0)
    bench.run(60_000)
    assert len(bench.drivers) == 2, "another one was started after the end"


def test_cancel_of_a_job_that_has_just_begun() -> None:
    bench = Stage().starts()
    bench.offer(TM2, 2)
    bench.master.cancel()
    bench.run()
    bench.says(bench.drivers[0], DriverPhase.CANCELED)
    assert bench.status() is JobStatus.CANCELED
    assert bench.drivers[1] in bench.launcher.killed
