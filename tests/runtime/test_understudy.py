"""A job with an understudy: when there is one, how it steps in, what becomes of it."""

from __future__ import annotations

import pytest

from tests.runtime.job_bench import ADDRESS, JOB, TM1, TM2, USER_ERROR, Bench
from yarnflow.core.ha import DriverLeaseInfo
from yarnflow.core.ids import AllocationId, DriverId, ExecutorId, TaskManagerId
from yarnflow.core.messages import (
    DriverPhase,
    DriverRegistration,
    DriverReport,
    ErrorInfo,
    ExecutorExited,
    ExecutorStatus,
    ProgramKind,
    QueryProgress,
)
from yarnflow.core.states import ExecutionState, JobStatus, RestartLevel
from yarnflow.errors import ConfigError, DriverLost, ZooKeeperUnavailable
from yarnflow.runtime.driver_services import REHEARSED
from yarnflow.testing.gateways import FakeDriver, FakeTaskExecutor
from yarnflow.testing.stores import FakeJobStores

TM3 = TaskManagerId("tm-3")


@pytest.fixture(autouse=True)
def third_task_manager(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ADDRESS, TM3, "host3:1")


class Stage(Bench):
    """A bench whose drivers are told apart: each is served under its own id."""

    def __init__(self, *arguments: str, **more: object) -> None:
        super().__init__(*arguments, **{"understudy": True, **more})  # type: ignore[arg-type]
        self._last: dict[DriverId, DriverReport] = {}

    @property
    def drivers(self) -> list[DriverId]:
        """All that were launched."""
        return [assignment.driver_id for assignment in self.launcher.assignments]

    def register(self, driver_id: DriverId | None = None, attempt: int = 0) -> Stage:
        driver_id = driver_id or self.driver_id
        self.master.register_driver(
            DriverRegistration(JOB, driver_id, driver_id, 42, "spark://x@y:1", "app", attempt=attempt)
        )
        self.run()
        return self

    def says(self, driver_id: DriverId, phase: DriverPhase, executors: str = "", **more: object) -> Stage:
        if phase is DriverPhase.IDLE:
            more = {"milestones_ms": {REHEARSED: 1}, **more}
        elif phase is DriverPhase.RUNNING:
            more = {"queries": (QueryProgress("q", batch_id=0),), **more}
        report = DriverReport(
            JOB,
            driver_id,
            self.attempt if phase is not DriverPhase.IDLE else 0,
            phase,
            tuple(ExecutorId(executor) for executor in executors.split()),
            **more,  # type: ignore[arg-type]
        )
        self._last[driver_id] = report
        self.master.report(report)
        self.run()
        return self

    def seconds(self, count: int, *silent: DriverId) -> Stage:
        """Time passes, and drivers that have reported go on to."""
        for _ in range(count):
            self.run(1_000)
            for driver_id, report in self._last.items():
                if driver_id not in silent:
                    try:
                        self.master.report(report)
                    except DriverLost:
                        continue
            self.run()
        return self

    def starts(self) -> Stage:
        """The job itself runs on TaskManager 1, for some time."""
        self.start()
        self.offer(TM1, 2)
        self.register()
        return self.says(self.drivers[0], DriverPhase.RUNNING, "0").seconds(5)

    def ready(self, rehearsed: bool = True) -> Stage:
        """Its understudy has an executor on TaskManager 2."""
        self.starts()
        self.offer(TM2, 2)
        self.register()
        milestones_ms = {REHEARSED: 1} if rehearsed else {}
        return self.says(self.drivers[1], DriverPhase.IDLE, "1", milestones_ms=milestones_ms)

    def report_batch(self) -> Stage:
        """The job has committed something."""
        queries = (QueryProgress("q", batch_id=3),)
        return self.says(self.drivers[0], DriverPhase.RUNNING, "0", queries=queries)

    def fake(self, driver_id: DriverId) -> FakeDriver:
        return self.gateways.drivers.setdefault(driver_id, FakeDriver())

    def task_manager(self, task_manager: TaskManagerId) -> FakeTaskExecutor:
        return self.gateways.task_executors.setdefault(ADDRESS[task_manager], FakeTaskExecutor())

    def attempts(self, driver_id: DriverId) -> list[int]:
        return [deployment.attempt for deployment in self.fake(driver_id).deployments]

    def started_on(self, task_manager: TaskManagerId) -> list[tuple[str, str]]:
        return [(d.executor_id, d.driver_id) for d in self.task_manager(task_manager).started]


# --- how it is prepared ---------------------------------------------------------


def test_without_it_everything_is_as_it_was() -> None:
    bench = Stage(understudy=False).starts()
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
    assert bench.status is JobStatus.RUNNING
    assert bench.details.overview.slots_allocated == 2
    assert len(bench.drivers) == 1, "a driver without executors is no understudy"
    assert bench.details.waiting_for == "the understudy's slots: 0 of 2"
    bench.master.resources_wait("1 TaskManager to start")
    bench.run()
    assert bench.details.waiting_for == "the understudy's slots: 0 of 2 (1 TaskManager to start)"


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
    assert bench.details.waiting_for == "the understudy's driver"
    bench.seconds(1, first)
    second = bench.drivers[2]
    bench.register(second)
    bench.says(second, DriverPhase.IDLE, "2", milestones_ms={})
    assert bench.details.waiting_for == "the understudy's rehearsal", "it has not been warm, ever"
    bench.says(second, DriverPhase.IDLE, "2")
    assert bench.details.waiting_for == ""
    assert bench.status is JobStatus.RUNNING


def test_it_has_everything_but_a_deployment() -> None:
    bench = Stage().starts()
    assert bench.offer(TM2, 2) == 2
    job, understudy = bench.drivers
    assert bench.details.waiting_for == "the understudy's driver"
    bench.register(understudy)
    assert bench.started_on(TM2) == [("1", understudy)]
    assert bench.details.waiting_for == "the understudy's executors: 0 of 1"
    bench.says(understudy, DriverPhase.IDLE, "1", milestones_ms={})
    assert bench.details.waiting_for == "the understudy's rehearsal"
    bench.says(understudy, DriverPhase.IDLE, "1")
    assert bench.details.waiting_for == ""
    assert bench.attempts(understudy) == []
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
    assert bench.status is JobStatus.RUNNING
    assert bench.slots.declared == {JOB: 2}
    assert bench.details.waiting_for == "the understudy's slots: 0 of 2 (the cluster has no more)"


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
    assert bench.status is JobStatus.FAILED


# --- how it steps in ------------------------------------------------------------


def stepped_in(bench: Stage) -> None:
    old, understudy = bench.drivers[:2]
    assert bench.attempts(understudy) == [2], "no restart delay"
    assert bench.fake(understudy).deployments[0].executor_ids == ("1",)
    assert bench.tasks == [("DEPLOYING", TM2), ("DEPLOYING", TM2)]
    assert bench.details.restarts == 1
    assert bench.details.failures[-1].level is RestartLevel.DRIVER
    assert bench.details.failures[-1].location == old
    bench.attempt = 2
    bench.says(understudy, DriverPhase.RUNNING, "1")
    assert bench.status is JobStatus.RUNNING
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
    understudy = bench.drivers[1]
    bench.says(understudy, DriverPhase.IDLE, "1")
    bench.launcher.end(bench.drivers[0], -9)
    bench.run()
    assert bench.started_on(TM1)[1:] == [("2", understudy)]
    (deployment,) = bench.fake(understudy).deployments
    assert set(deployment.executor_ids) == {"1", "2"}
    assert deployment.total_cores == 2
    assert sorted(bench.tasks) == [("DEPLOYING", TM1), ("DEPLOYING", TM2)]


def test_one_that_is_being_started_is_waited_for() -> None:
    """Another driver beside it would be no quicker; the delay is that of any restart."""
    bench = Stage().starts()
    bench.offer(TM2, 2)
    bench.launcher.end(bench.drivers[0], -9)
    bench.run()
    assert bench.details.waiting_for == "restart delay"
    bench.run(1_000)
    understudy = bench.drivers[1]
    assert len(bench.drivers) == 2
    bench.register(understudy)
    assert bench.attempts(understudy) == [2]


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
    assert bench.status is JobStatus.FAILED
    assert bench.fake(bench.drivers[1]).shut_downs == 1
    assert bench.attempts(bench.drivers[1]) == []


def test_a_query_that_fails_stays_with_its_driver() -> None:
    bench = Stage().ready().report_batch()
    bench.says(bench.drivers[0], DriverPhase.FAILED, "0", error=USER_ERROR)
    bench.run(1_000)
    assert bench.attempts(bench.drivers[0]) == [1, 2]
    assert bench.attempts(bench.drivers[1]) == []


# --- how it is lost -------------------------------------------------------------


def test_it_is_replaced_quietly() -> None:
    bench = Stage().ready()
    understudy = bench.drivers[1]
    bench.launcher.end(understudy, -9)
    bench.run()
    assert bench.status is JobStatus.RUNNING
    assert bench.details.failures == ()
    assert bench.details.restarts == 0
    assert bench.details.waiting_for == "the understudy's driver"
    assert bench.task_manager(TM2).stopped == ["1"]
    bench.run(1_000).register()
    assert bench.started_on(TM2)[1:] == [("2", bench.drivers[2])]
    with pytest.raises(DriverLost):
        bench.says(understudy, DriverPhase.IDLE)


@pytest.mark.parametrize("silent", [True, False])
def test_a_broken_one_is_replaced(silent: bool) -> None:
    bench = Stage().ready()
    if silent:
        bench.seconds(4, bench.drivers[1])
    else:
        bench.says(bench.drivers[1], DriverPhase.FAILED, error=ErrorInfo("X", "no JVM"), driver_unusable=True)
    assert bench.status is JobStatus.RUNNING
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
    assert bench.status is JobStatus.RUNNING


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
    assert bench.status is JobStatus.RUNNING
    assert bench.launcher.killed == [bench.drivers[1]]


def test_losing_its_task_manager_costs_the_job_nothing() -> None:
    bench = Stage().ready()
    bench.master.task_manager_lost(TM2, "gone")
    bench.run()
    assert bench.details.failures == ()
    assert bench.details.waiting_for == "the understudy's slots: 0 of 2"
    assert len(bench.drivers) == 2, "the driver waits for other slots"
    bench.offer(TM3, 2)
    assert bench.started_on(TM3) == [("2", bench.drivers[1])]


def test_losing_the_jobs_task_manager_costs_it_its_slots() -> None:
    bench = Stage().ready(rehearsed=False)
    job, understudy = bench.drivers
    bench.master.task_manager_lost(TM1, "gone")
    bench.run()
    assert bench.status is JobStatus.RESTARTING
    assert bench.task_manager(TM2).stopped == [], "a free TaskManager would give slots in a moment"
    bench.run(300)
    assert bench.task_manager(TM2).stopped == ["1"]
    assert bench.started_on(TM2) == [("1", understudy), ("2", job)]
    bench.says(job, DriverPhase.RUNNING, "2")
    assert bench.status is JobStatus.RUNNING
    assert bench.launcher.killed == []
    bench.offer(TM3, 2)
    bench.seconds(5)
    assert bench.started_on(TM3) == [("3", understudy)]


def test_free_slots_leave_the_understudy_its_own() -> None:
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
    assert bench.status is status
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
    assert bench.status is JobStatus.CANCELED
    assert bench.drivers[1] in bench.launcher.killed


# --- a new leader ---------------------------------------------------------------

OLD, OLD_UNDERSTUDY = DriverId("old-driver"), DriverId("old-understudy")


def on(executor_id: str, driver_id: DriverId) -> ExecutorStatus:
    return ExecutorStatus(ExecutorId(executor_id), JOB, driver_id, 77, 2)


def reconciling() -> Stage:
    stores = FakeJobStores(highly_available=True)
    stores.lease_table.hold(DriverLeaseInfo(JOB, OLD, OLD, "host", 42, epoch=1, attempt=3))
    bench = Stage("none", stores=stores, recovered=True)
    bench.start()
    bench.attempt = 3
    return bench


def test_the_understudy_is_adopted_with_the_driver() -> None:
    """The slots of the old understudy come first, and must not be taken for the job's."""
    bench = reconciling()
    assert bench.offer(TM2, 2, on("300", OLD_UNDERSTUDY)) == 2
    assert bench.offer(TM1, 2, on("4", OLD)) == 2
    bench.register(OLD_UNDERSTUDY)
    bench.register(OLD, attempt=3)
    bench.says(OLD, DriverPhase.RUNNING, "4")
    bench.says(OLD_UNDERSTUDY, DriverPhase.IDLE, "300")
    assert bench.status is JobStatus.RUNNING
    assert bench.slots.declared == {JOB: 4}
    bench.seconds(6)
    assert bench.drivers == [] and bench.details.waiting_for == "", "all there was is used"
    assert bench.task_manager(TM1).stopped == bench.task_manager(TM2).stopped == []
    assert bench.started_on(TM1) == bench.started_on(TM2) == []


@pytest.mark.parametrize("offered_first", [True, False])
def test_an_adopted_one_steps_in(offered_first: bool) -> None:
    """The driver was lost with the master, as the new one finds out after a while."""
    bench = reconciling()
    if offered_first:
        bench.offer(TM2, 2, on("300", OLD_UNDERSTUDY))
    bench.register(OLD_UNDERSTUDY)
    if not offered_first:
        bench.offer(TM2, 2, on("300", OLD_UNDERSTUDY))
    bench.says(OLD_UNDERSTUDY, DriverPhase.IDLE, "300")
    bench.stores.lease_table.expire(JOB)
    bench.run()
    (deployment,) = bench.fake(OLD_UNDERSTUDY).deployments
    assert (deployment.attempt, deployment.executor_ids) == (4, ("300",))
    bench.attempt = 4
    bench.says(OLD_UNDERSTUDY, DriverPhase.RUNNING, "300")
    assert bench.status is JobStatus.RUNNING
    assert bench.drivers == [] and bench.started_on(TM2) == []
    assert bench.details.restarts == 0, "that the master was lost is not the job's fault"


def deserted(**more: object) -> Stage:
    """A job whose driver was lost with the master, and is known to be."""
    bench = Stage("none", stores=FakeJobStores(highly_available=True), recovered=True, **more)
    bench.start()
    return bench


def test_it_steps_in_when_driver_and_master_are_lost() -> None:
    bench = deserted()
    assert bench.status is JobStatus.CREATED and bench.drivers == []
    bench.offer(TM2, 2, on("300", OLD_UNDERSTUDY))
    bench.register(OLD_UNDERSTUDY).run()
    (deployment,) = bench.fake(OLD_UNDERSTUDY).deployments
    assert deployment.executor_ids == ("300",)
    bench.attempt = deployment.attempt
    bench.says(OLD_UNDERSTUDY, DriverPhase.RUNNING, "300")
    assert bench.status is JobStatus.RUNNING
    (failure,) = bench.details.failures
    assert "lost with its master" in failure.error.message and failure.recovered
    assert bench.details.restarts == 0
    bench.seconds(3)
    assert bench.drivers == [] and bench.started_on(TM2) == []
    bench.offer(TM3, 2)
    bench.seconds(3)
    assert len(bench.drivers) == 1, "and it has an understudy of its own"


def test_it_keeps_its_executors_when_other_slots_come_first() -> None:
    bench = deserted()
    bench.offer(TM1, 2, on("4", OLD))
    bench.offer(TM2, 2, on("300", OLD_UNDERSTUDY))
    bench.register(OLD_UNDERSTUDY).run()
    (deployment,) = bench.fake(OLD_UNDERSTUDY).deployments
    assert deployment.executor_ids == ("300",)
    assert bench.started_on(TM1) == bench.started_on(TM2) == []
    assert bench.tasks == [("DEPLOYING", TM2), ("DEPLOYING", TM2)]


def test_it_keeps_its_executors_when_other_slots_come_before_and_after_it() -> None:
    bench = deserted()
    bench.register(OLD_UNDERSTUDY)
    bench.offer(TM1, 2, on("4", OLD))
    assert bench.details.waiting_for == "slots: 0 of 2"
    bench.offer(TM2, 2, on("300", OLD_UNDERSTUDY))
    (deployment,) = bench.fake(OLD_UNDERSTUDY).deployments
    assert deployment.executor_ids == ("300",)
    assert bench.tasks == [("DEPLOYING", TM2), ("DEPLOYING", TM2)]
    bench.attempt = deployment.attempt
    bench.says(OLD_UNDERSTUDY, DriverPhase.RUNNING, "300")
    assert bench.status is JobStatus.RUNNING and bench.started_on(TM1) == []
    bench.seconds(6)
    assert len(bench.drivers) == 1, "the other slots are those of the next understudy"
    assert bench.task_manager(TM2).stopped == [] and bench.started_on(TM2) == []


def test_slots_of_lost_executors_are_not_waited_for_without_end() -> None:
    bench = deserted()
    bench.offer(TM1, 2, on("4", OLD))
    bench.register(OLD_UNDERSTUDY)
    assert bench.started_on(TM1) == []
    bench.run(2_500)
    bench.run(500)
    assert bench.started_on(TM1) == [("5", OLD_UNDERSTUDY)]
    assert bench.attempts(OLD_UNDERSTUDY) == [2]


def test_it_is_not_waited_for_without_end() -> None:
    bench = deserted()
    bench.offer(TM2, 2, on("300", OLD_UNDERSTUDY))
    bench.run(2_000)
    (driver,) = bench.drivers
    with pytest.raises(DriverLost, match="must end"):
        bench.register(OLD_UNDERSTUDY)
    bench.register(driver)
    assert bench.attempts(driver) == [1]


def test_one_that_did_run_is_no_understudy() -> None:
    bench = deserted()
    with pytest.raises(DriverLost, match="must end"):
        bench.register(OLD, attempt=3)


def test_executors_of_one_that_did_not_come_end_before_others_are_started() -> None:
    bench = reconciling()
    bench.offer(TM2, 2, on("300", OLD_UNDERSTUDY))
    bench.offer(TM1, 2, on("4", OLD))
    bench.register(OLD, attempt=3)
    bench.says(OLD, DriverPhase.RUNNING, "4")
    assert bench.task_manager(TM2).stopped == [], "it may come yet"
    bench.seconds(5)
    assert bench.task_manager(TM2).stopped == ["300"]
    (understudy,) = bench.drivers
    bench.register(understudy)
    assert bench.started_on(TM1) == []
    assert bench.started_on(TM2) == [("301", understudy)], "an id that is taken there is not started"
    bench.stores.lease_table.expire(JOB)
    bench.run()
    assert bench.status is JobStatus.FAILED, "of the restart strategy: none"


def test_slots_are_not_lent_while_the_jobs_own_may_come() -> None:
    bench = reconciling()
    bench.offer(TM2, 2, on("7", OLD_UNDERSTUDY))
    bench.offer(TM1, 1, on("4", OLD))
    bench.register(OLD, attempt=3)
    bench.says(OLD, DriverPhase.RUNNING, "4")
    assert bench.status is JobStatus.RUNNING
    bench.run(1_000)
    bench.says(OLD, DriverPhase.RUNNING, "4")
    assert bench.started_on(TM2) == []
    assert bench.offer(TM3, 1, on("5", OLD)) == 1
    assert bench.details.waiting_for != ""
    bench.says(OLD, DriverPhase.RUNNING, "4 5")
    assert bench.states() == {ExecutionState.RUNNING}


def test_slots_are_lent_when_the_jobs_own_did_not_come() -> None:
    bench = reconciling()
    bench.offer(TM2, 2, on("7", OLD_UNDERSTUDY))
    bench.offer(TM1, 1, on("4", OLD))
    bench.register(OLD, attempt=3)
    for _ in range(6):
        bench.says(OLD, DriverPhase.RUNNING, "4")
        bench.run(1_000)
    assert bench.started_on(TM2)[0] == ("104", OLD)


def test_nothing_is_sorted_before_the_driver_is_known() -> None:
    stores = FakeJobStores(highly_available=True)
    stores.lease_table.hold(DriverLeaseInfo(JOB, OLD, OLD, "host", 42, epoch=1, attempt=3))
    stores.lease_table.error = ZooKeeperUnavailable("connection lost")
    bench = Stage("none", stores=stores, recovered=True)
    bench.start()
    assert bench.offer(TM2, 2, on("7", OLD_UNDERSTUDY)) == 0, "it is offered again"


def test_a_job_that_runs_no_more_begins_on_any_slots() -> None:
    bench = Stage("none", stores=FakeJobStores(highly_available=True), recovered=True)
    bench.start()
    bench.offer(TM2, 2, on("7", OLD_UNDERSTUDY))
    bench.run(2_000).register()
    assert bench.attempts(bench.drivers[0]) == [1]
