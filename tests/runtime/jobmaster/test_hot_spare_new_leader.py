"""What a new leader makes of a job with a hot spare."""

from __future__ import annotations

import pytest

from tests.runtime.jobmaster.hot_spare_stage import Stage
from tests.runtime.jobmaster.job_bench import JOB, TM1, TM2, TM3
from yarnflow.core.ha.ports import DriverLeaseInfo
from yarnflow.core.ids import DriverId, ExecutorId
from yarnflow.core.messages import DriverPhase, ExecutorStatus
from yarnflow.core.states import ExecutionState, JobStatus
from yarnflow.errors import DriverLost, ZooKeeperUnavailable
from yarnflow.testing.stores import FakeJobStores

OLD, OLD_HOT_SPARE = DriverId("old-driver"), DriverId("old-hot-spare")


def on(executor_id: str, driver_id: DriverId) -> ExecutorStatus:
    return ExecutorStatus(ExecutorId(executor_id), JOB, driver_id, 77, 2)


def reconciling() -> Stage:
    stores = FakeJobStores(highly_available=True)
    stores.lease_table.hold(DriverLeaseInfo(JOB, OLD, OLD, "host", 42, epoch=1, attempt=3))
    bench = Stage("none", stores=stores, recovered=True)
    bench.start()
    bench.attempt = 3
    return bench


def test_the_hot_spare_is_adopted_with_the_driver() -> None:
    """The slots of the old hot spare come first, and must not be taken for the job's."""
    bench = reconciling()
    assert bench.offer(TM2, 2, on("300", OLD_HOT_SPARE)) == 2
    assert bench.offer(TM1, 2, on("4", OLD)) == 2
    bench.register(OLD_HOT_SPARE)
    bench.register(OLD, attempt=3)
    bench.says(OLD, DriverPhase.RUNNING, "4")
    bench.says(OLD_HOT_SPARE, DriverPhase.IDLE, "300")
    assert bench.status() is JobStatus.RUNNING
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
        bench.offer(TM2, 2, on("300", OLD_HOT_SPARE))
    bench.register(OLD_HOT_SPARE)
    if not offered_first:
        bench.offer(TM2, 2, on("300", OLD_HOT_SPARE))
    bench.says(OLD_HOT_SPARE, DriverPhase.IDLE, "300")
    bench.stores.lease_table.expire(JOB)
    bench.run()
    (deployment,) = bench.fake(OLD_HOT_SPARE).deployments
    assert (deployment.attempt, deployment.executor_ids) == (4, ("300",))
    bench.attempt = 4
    bench.says(OLD_HOT_SPARE, DriverPhase.RUNNING, "300")
    assert bench.status() is JobStatus.RUNNING
    assert bench.drivers == [] and bench.started_on(TM2) == []
    assert bench.details.restarts == 0, "that the master was lost is not the job's fault"


def deserted(**more: object) -> Stage:
    """A job whose driver was lost with the master, and is known to be."""
    bench = Stage("none", stores=FakeJobStores(highly_available=True), recovered=True, **more)
    bench.start()
    return bench


def test_it_steps_in_when_driver_and_master_are_lost() -> None:
    bench = deserted()
    assert bench.status() is JobStatus.CREATED and bench.drivers == []
    bench.offer(TM2, 2, on("300", OLD_HOT_SPARE))
    bench.register(OLD_HOT_SPARE).run()
    (deployment,) = bench.fake(OLD_HOT_SPARE).deployments
    assert deployment.executor_ids == ("300",)
    bench.attempt = deployment.attempt
    bench.says(OLD_HOT_SPARE, DriverPhase.RUNNING, "300")
    assert bench.status() is JobStatus.RUNNING
    (failure,) = bench.details.failures
    assert "lost with its master" in failure.error.message and failure.recovered
    assert bench.details.restarts == 0
    bench.seconds(3)
    assert bench.drivers == [] and bench.started_on(TM2) == []
    bench.offer(TM3, 2)
    bench.seconds(3)
    assert len(bench.drivers) == 1, "and it has a hot spare of its own"


def test_it_keeps_its_executors_when_other_slots_come_first() -> None:
    bench = deserted()
    bench.offer(TM1, 2, on("4", OLD))
    bench.offer(TM2, 2, on("300", OLD_HOT_SPARE))
    bench.register(OLD_HOT_SPARE).run()
    (deployment,) = bench.fake(OLD_HOT_SPARE).deployments
    assert deployment.executor_ids == ("300",)
    assert bench.started_on(TM1) == bench.started_on(TM2) == []
    assert bench.tasks == [("DEPLOYING", TM2), ("DEPLOYING", TM2)]


def test_it_keeps_its_executors_when_other_slots_come_before_and_after_it() -> None:
    bench = deserted()
    bench.register(OLD_HOT_SPARE)
    bench.offer(TM1, 2, on("4", OLD))
    assert bench.details.waiting_for == "slots: 0 of 2"
    bench.offer(TM2, 2, on("300", OLD_HOT_SPARE))
    (deployment,) = bench.fake(OLD_HOT_SPARE).deployments
    assert deployment.executor_ids == ("300",)
    assert bench.tasks == [("DEPLOYING", TM2), ("DEPLOYING", TM2)]
    bench.attempt = deployment.attempt
    bench.says(OLD_HOT_SPARE, DriverPhase.RUNNING, "300")
    assert bench.status() is JobStatus.RUNNING and bench.started_on(TM1) == []
    bench.seconds(6)
    assert len(bench.drivers) == 1, "the other slots are those of the next hot spare"
    assert bench.task_manager(TM2).stopped == [] and bench.started_on(TM2) == []


def test_slots_of_lost_executors_are_not_waited_for_without_end() -> None:
    bench = deserted()
    bench.offer(TM1, 2, on("4", OLD))
    bench.register(OLD_HOT_SPARE)
    assert bench.started_on(TM1) == []
    bench.run(2_500)
    bench.run(500)
    assert bench.started_on(TM1) == [("5", OLD_HOT_SPARE)]
    assert bench.attempts(OLD_HOT_SPARE) == [2]


def test_it_is_not_waited_for_without_end() -> None:
    bench = deserted()
    bench.offer(TM2, 2, on("300", OLD_HOT_SPARE))
    bench.run(2_000)
    (driver,) = bench.drivers
    with pytest.raises(DriverLost, match="must end"):
        bench.register(OLD_HOT_SPARE)
    bench.register(driver)
    assert bench.attempts(driver) == [1]


def test_one_that_did_run_is_no_hot_spare() -> None:
    bench = deserted()
    with pytest.raises(DriverLost, match="must end"):
        bench.register(OLD, attempt=3)


def test_executors_of_one_that_did_not_come_end_before_others_are_started() -> None:
    bench = reconciling()
    bench.offer(TM2, 2, on("300", OLD_HOT_SPARE))
    bench.offer(TM1, 2, on("4", OLD))
    bench.register(OLD, attempt=3)
    bench.says(OLD, DriverPhase.RUNNING, "4")
    assert bench.task_manager(TM2).stopped == [], "it may come yet"
    bench.seconds(5)
    assert bench.task_manager(TM2).stopped == ["300"]
    (hot_spare,) = bench.drivers
    bench.register(hot_spare)
    assert bench.started_on(TM1) == []
    assert bench.started_on(TM2) == [("301", hot_spare)], "an id that is taken there is not started"
    bench.stores.lease_table.expire(JOB)
    bench.run()
    assert bench.status() is JobStatus.FAILED, "of the restart strategy: none"


def test_slots_are_not_lent_while_the_jobs_own_may_come() -> None:
    bench = reconciling()
    bench.offer(TM2, 2, on("7", OLD_HOT_SPARE))
    bench.offer(TM1, 1, on("4", OLD))
    bench.register(OLD, attempt=3)
    bench.says(OLD, DriverPhase.RUNNING, "4")
    assert bench.status() is JobStatus.RUNNING
    bench.run(1_000)
    bench.says(OLD, DriverPhase.RUNNING, "4")
    assert bench.started_on(TM2) == []
    assert bench.offer(TM3, 1, on("5", OLD)) == 1
    assert bench.details.waiting_for != ""
    bench.says(OLD, DriverPhase.RUNNING, "4 5")
    assert bench.states() == {ExecutionState.RUNNING}


def test_slots_are_lent_when_the_jobs_own_did_not_come() -> None:
    bench = reconciling()
    bench.offer(TM2, 2, on("7", OLD_HOT_SPARE))
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
    assert bench.offer(TM2, 2, on("7", OLD_HOT_SPARE)) == 0, "it is offered again"


def test_a_job_that_runs_no_more_begins_on_any_slots() -> None:
    bench = Stage("none", stores=FakeJobStores(highly_available=True), recovered=True)
    bench.start()
    bench.offer(TM2, 2, on("7", OLD_HOT_SPARE))
    bench.run(2_000).register()
    assert bench.attempts(bench.drivers[0]) == [1]
