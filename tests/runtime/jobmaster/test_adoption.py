"""A job whose master was lost: the next one takes over the driver that runs, or starts another."""

from __future__ import annotations

import pytest

from tests.runtime.jobmaster.job_bench import ADDRESS, JOB, TM1, TM2, Bench
from yarnflow.core.checkpoint.messages import (
    CheckpointInfo,
    CheckpointKind,
    CheckpointStatus,
    CheckpointTrigger,
)
from yarnflow.core.ha.ports import DriverLeaseInfo
from yarnflow.core.ids import AllocationId, DriverId, ExecutorId, JobId
from yarnflow.core.messages import DriverPhase, ErrorInfo, ExecutorExited, ExecutorStatus, SlotOffer
from yarnflow.core.resources.executor_pool import ExecutorPool
from yarnflow.core.states import ExecutionState, JobStatus, RestartLevel
from yarnflow.core.submissions import submission_digest
from yarnflow.errors import DriverLost, LeadershipLost, ZooKeeperUnavailable
from yarnflow.testing.gateways.driver import FakeDriver
from yarnflow.testing.stores import FakeCheckpoints, FakeJobStores

OLD = DriverId("driver-of-the-master-before")
RUNS_ALREADY = ExecutorStatus(ExecutorId("4"), JOB, OLD, 77, 2)


def lease(driver_id: DriverId = OLD, attempt: int = 3) -> DriverLeaseInfo:
    return DriverLeaseInfo(JOB, driver_id, "driver:1", "host", 42, epoch=1, attempt=attempt)


def stores(held: bool = True) -> FakeJobStores:
    found = FakeJobStores(highly_available=True)
    if held:
        found.lease_table.hold(lease())
    return found


def reconciling(restart: str = "none") -> Bench:
    bench = Bench(restart, stores=stores(), recovered=True).start()
    assert bench.status() is JobStatus.RECONCILING
    return bench


def adopted(restart: str = "none", slots: int = 2) -> Bench:
    """A job of two slots whose driver and executor were taken over, with so many of its slots."""
    bench = reconciling(restart)
    bench.offer(TM1, slots, RUNS_ALREADY)
    bench.register(OLD, attempt=3)
    bench.adopted_driver, bench.attempt = OLD, 3
    return bench.report(DriverPhase.RUNNING, "4", batch=9)


def started(bench: Bench) -> list[str]:
    return [d.executor_id for fake in bench.gateways.task_executors.values() for d in fake.started]


def test_a_running_driver_is_adopted() -> None:
    bench = adopted()
    assert bench.status() is JobStatus.RUNNING
    assert bench.states() == {ExecutionState.RUNNING}
    assert bench.launcher.assignments == [], "another driver was started beside it"
    assert bench.gateways.drivers.get("driver:1") is None or not bench.driver.deployments
    assert started(bench) == []
    (failure,) = bench.details.failures
    assert (failure.level, failure.recovered) == (RestartLevel.MASTER, True)
    assert "adopted by leader epoch 1 without a restart" in failure.error.message
    assert bench.details.restarts == 0


def test_executions_are_reconciling_until_the_driver_has_reported() -> None:
    bench = reconciling()
    bench.offer(TM1, 2, RUNS_ALREADY)
    assert bench.tasks == [("RECONCILING", TM1), ("RECONCILING", TM1)]
    bench.register(OLD, attempt=3)
    assert bench.status() is JobStatus.RECONCILING


def test_other_slots_are_not_asked_for_before_the_old_ones_can_be_there() -> None:
    """A free TaskManager that is quicker must not get the job's slots."""
    bench = reconciling()
    assert not bench.slots.declared
    bench.offer(TM1, 2, RUNS_ALREADY)
    assert bench.slots.declared == {JOB: 2}


def test_slots_that_do_not_come_back_are_replaced() -> None:
    bench = adopted(slots=1)
    assert bench.status() is JobStatus.RUNNING
    assert bench.slots.declared == {JOB: 2}
    assert bench.tasks == [("RUNNING", TM1), ("SCHEDULED", "")]
    bench.offer(TM2)
    bench.report(DriverPhase.RUNNING, "4 104", batch=9)
    assert started(bench) == ["104"], "an id that an executor may have had before"
    assert bench.states() == {ExecutionState.RUNNING}


def test_reports_before_the_lease_was_read_are_asked_for_again() -> None:
    """Told that it is not the job's, the driver would end."""
    held = stores()
    held.lease_table.error = ZooKeeperUnavailable("connection lost")
    bench = Bench(stores=held, recovered=True).start()
    bench.adopted_driver = OLD
    with pytest.raises(LeadershipLost, match="ask again"):
        bench.report(DriverPhase.RUNNING)
    with pytest.raises(LeadershipLost, match="ask again"):
        bench.register(OLD, attempt=3)
    bench.offer(TM1, 2, RUNS_ALREADY)
    assert bench.launcher.assignments == []
    held.lease_table.error = None
    bench.run(1_000).register(OLD, attempt=3)
    bench.attempt = 3
    bench.report(DriverPhase.RUNNING, "4", batch=9)
    assert bench.status() is JobStatus.RUNNING
    assert started(bench) == []


def test_another_driver_is_turned_away() -> None:
    bench = reconciling()
    with pytest.raises(DriverLost, match="was replaced"):
        bench.register(DriverId("driver-zombie"), attempt=3)


def test_a_job_without_a_driver_starts_one() -> None:
    bench = Bench(stores=stores(held=False), recovered=True).start()
    assert bench.status() is JobStatus.CREATED
    assert bench.slots.declared == {JOB: 2}
    assert len(bench.launcher.assignments) == 1


def test_a_driver_that_is_gone_is_replaced_without_being_counted() -> None:
    bench = reconciling("none")
    bench.stores.lease_table.expire(JOB)
    bench.run()
    assert bench.status() is JobStatus.RESTARTING
    assert bench.details.restarts == 0
    assert bench.details.failures[-1].level is RestartLevel.DRIVER
    bench.offer(TM1, 2)
    bench.register()
    assert bench.driver_id != OLD
    (deployment,) = bench.driver.deployments
    assert deployment.attempt == 4, "attempts rise over all masters"


def test_a_silent_driver_loses_its_lease() -> None:
    bench = reconciling("none")
    bench.run(5_000)
    assert bench.status() is JobStatus.RESTARTING
    assert bench.stores.lease_table.revoked == [OLD]
    assert bench.launcher.killed == [OLD]
    assert bench.slots.declared == {JOB: 2}
    bench.run()
    assert bench.driver_id != OLD
    with pytest.raises(DriverLost):
        bench.register(OLD, attempt=3)


def test_a_revocation_is_tried_until_it_worked() -> None:
    bench = reconciling("none")
    bench.stores.lease_table.error = ZooKeeperUnavailable("connection lost")
    bench.run(5_000)
    assert bench.stores.lease_table.revoked == []
    bench.stores.lease_table.error = None
    bench.run(1_000)
    assert bench.stores.lease_table.revoked == [OLD]


def test_a_driver_that_was_never_deployed_is_used() -> None:
    bench = reconciling()
    bench.register(OLD, attempt=0)
    assert bench.slots.declared == {JOB: 2}
    bench.offer(TM1, 2)
    (deployment,) = bench.driver.deployments
    assert deployment.attempt == 3
    assert started(bench) == ["0"]
    bench.adopted_driver, bench.attempt = OLD, 3
    bench.report(DriverPhase.RUNNING, "0")
    assert bench.status() is JobStatus.RUNNING


def test_an_adopted_executor_that_ended_is_not_adopted_again() -> None:
    """What TaskManagers offer later does not change what became of the slots there are."""
    bench = adopted(slots=1)
    bench.master.executor_exited(ExecutorExited(JOB, OLD, ExecutorId("4"), TM1, -9, ""))
    for _ in range(5):
        bench.run(1_000)
        bench.report(DriverPhase.RUNNING, "", batch=9)
    assert started(bench) == ["104"]
    bench.offer(TM2)
    for _ in range(20):
        bench.run(1_000)
        bench.report(DriverPhase.RUNNING, "104 105", batch=10)
    assert bench.status() is JobStatus.RUNNING and bench.states() == {ExecutionState.RUNNING}
    assert bench.details.waiting_for == ""
    assert len(bench.details.failures) == 2, "the master, and the executor"


def test_executors_of_a_dead_driver_are_not_adopted() -> None:
    bench = reconciling()
    bench.offer(TM1, 2, ExecutorStatus(ExecutorId("4"), JOB, DriverId("driver-older"), 77, 2))
    bench.register(OLD, attempt=3)
    assert started(bench) == ["5"], "a number of its own"


def test_executors_of_another_driver_have_other_numbers() -> None:
    """The old driver may only be halted, and its executor still there."""
    bench = Bench(stores=stores(held=False), recovered=True).start()
    bench.offer(TM1, 2, RUNS_ALREADY)
    bench.register()
    assert started(bench) == ["5"]


def test_an_adopted_driver_that_ends_is_replaced_under_the_restart_strategy() -> None:
    bench = adopted("fixed-delay")
    bench.stores.lease_table.expire(JOB)
    bench.run()
    assert bench.status() is JobStatus.RESTARTING
    assert bench.details.restarts == 1
    bench.run(1_000)
    assert len(bench.launcher.assignments) == 1
    assert bench.details.overview.slots_allocated == 2


def test_an_adopted_driver_that_falls_silent_is_lost() -> None:
    bench = adopted("fixed-delay")
    for _ in range(5):
        bench.run(1_000)
    assert bench.status() is JobStatus.RESTARTING
    assert "has not reported" in bench.details.failures[-1].error.message
    assert bench.stores.lease_table.revoked == [OLD]


@pytest.mark.parametrize(
    ("phase", "status"),
    [(DriverPhase.FINISHED, JobStatus.FINISHED), (DriverPhase.CANCELED, JobStatus.CANCELED)],
)
def test_a_job_that_ended_without_a_master(phase: DriverPhase, status: JobStatus) -> None:
    bench = reconciling()
    bench.offer(TM1, 2, RUNS_ALREADY)
    bench.register(OLD, attempt=3)
    bench.adopted_driver, bench.attempt = OLD, 3
    bench.report(phase, "4", batch=9)
    assert bench.status() is status
    assert bench.ended == [JOB]


def test_a_cancel_that_was_under_way_when_the_master_was_lost() -> None:
    """The driver has reported RUNNING to the new one before it was done with it."""
    bench = adopted()
    bench.report(DriverPhase.CANCELED, "4", batch=9)
    assert bench.status() is JobStatus.CANCELED
    assert bench.ended == [JOB]


def test_a_job_that_failed_without_a_master() -> None:
    bench = reconciling("fixed-delay")
    bench.offer(TM1, 2, RUNS_ALREADY)
    bench.register(OLD, attempt=3)
    bench.adopted_driver, bench.attempt = OLD, 3
    bench.report(DriverPhase.FAILED, "4", batch=9, error=ErrorInfo("USER_CODE", "ValueError"))
    assert bench.status() is JobStatus.RESTARTING
    held = {submission_digest(bench.submission): bench.submission}
    bench.gateways.drivers["driver:1"] = FakeDriver(held=held)
    bench.run(1_000)
    assert [d.attempt for d in bench.driver.deployments] == [4]
    assert bench.driver.received == 0, "the driver was sent the job by the master before"


def test_cancel_before_the_driver_has_reported() -> None:
    """It may be stopping already, as the master before has told it."""
    bench = reconciling()
    bench.master.cancel()
    bench.run()
    assert bench.status() is JobStatus.RECONCILING
    bench.register(OLD, attempt=3)
    assert (bench.status(), bench.driver.cancels) == (JobStatus.CANCELLING, 1)
    bench.adopted_driver, bench.attempt = OLD, 3
    bench.report(DriverPhase.CANCELED, "4", batch=9)
    assert bench.status() is JobStatus.CANCELED
    assert bench.stores.lease_table.revoked == []
    assert bench.slots.released == [JOB]


def test_cancel_of_a_driver_that_never_reports() -> None:
    bench = reconciling()
    bench.master.cancel()
    bench.run()
    bench.stores.lease_table.expire(JOB)
    bench.run().run(1_000)
    assert bench.status() is JobStatus.CANCELED
    assert bench.slots.released == [JOB] and bench.launcher.assignments == []


def test_cancel_before_it_is_known_what_runs() -> None:
    """The driver of the master before would go on writing."""
    held = stores()
    held.lease_table.error = ZooKeeperUnavailable("connection lost")
    bench = Bench(stores=held, recovered=True).start()
    bench.master.cancel()
    bench.run()
    assert bench.status() is JobStatus.INITIALIZING
    held.lease_table.error = None
    bench.run(1_000)
    assert bench.status() is JobStatus.RECONCILING
    bench.register(OLD, attempt=3)
    assert bench.driver.cancels == 1


def test_a_job_lives_on_although_its_master_never_saw_a_commit() -> None:
    """What the master before recorded shows that it has worked."""
    found = stores(held=False)
    found.by_job[JOB] = FakeCheckpoints(
        "file:/checkpoints",
        8,
        {
            8: CheckpointInfo(
                8, CheckpointKind.CHECKPOINT, CheckpointStatus.COMPLETED, CheckpointTrigger.INTERVAL, 1
            )
        },
    )
    bench = Bench(stores=found, recovered=True).running()
    bench.report(DriverPhase.FAILED, error=ErrorInfo("USER_CODE", "ValueError"))
    assert bench.status() is JobStatus.RESTARTING
    assert bench.master.checkpoints().history[0].checkpoint_id == 8


def test_a_lease_that_changes_while_it_is_read_is_read_again() -> None:
    held = stores(held=False)
    read = held.lease_table.holder

    def holder(job_id: JobId) -> DriverLeaseInfo | None:
        found = read(job_id)
        held.lease_table.holder = read  # type: ignore[method-assign]
        held.lease_table.hold(lease())
        return found

    held.lease_table.holder = holder  # type: ignore[method-assign]
    bench = Bench(stores=held, recovered=True).start()
    assert bench.status() is JobStatus.RECONCILING and bench.launcher.assignments == []


def test_ids_of_checkpoints_rise_over_masters() -> None:
    found = stores(held=False)
    found.by_job[JOB] = FakeCheckpoints("file:/checkpoints", 8)
    bench = Bench(stores=found, recovered=True).running()
    for _ in range(11):
        bench.report(DriverPhase.RUNNING, batch=9).run(1_000)
    assert bench.master.checkpoints().history[0].checkpoint_id == 9


# --- the lease of a driver of this master -----------------------------------------


def own() -> Bench:
    bench = Bench(stores=stores(held=False)).running()
    bench.stores.lease_table.hold(lease(bench.driver_id))
    return bench.run().report(DriverPhase.RUNNING, batch=1)


def test_a_driver_without_its_lease_is_lost() -> None:
    bench = own()
    driver = bench.driver_id
    bench.stores.lease_table.expire(JOB)
    bench.run()
    assert bench.status() is JobStatus.RUNNING, "its process's end would say more"
    bench.run(1_000)
    assert bench.status() is JobStatus.RESTARTING
    assert "has lost its lease" in bench.details.failures[-1].error.message
    assert bench.launcher.killed == [driver]
    assert bench.details.restarts == 1


def test_the_end_of_the_process_says_more() -> None:
    bench = own()
    bench.stores.lease_table.expire(JOB)
    bench.launcher.end(bench.driver_id, -9)
    bench.run().run(1_000)
    assert "ended by signal 9" in bench.details.failures[-1].error.message
    assert bench.details.restarts == 1


def test_a_driver_that_is_dropped_loses_its_lease() -> None:
    bench = own()
    driver = bench.driver_id
    for _ in range(5):
        bench.run(1_000)
    assert bench.stores.lease_table.revoked == [driver]


def test_without_high_availability_no_lease_is_touched() -> None:
    bench = Bench(stores=FakeJobStores()).running()
    for _ in range(5):
        bench.run(1_000)
    assert bench.status() is JobStatus.RESTARTING
    assert bench.stores.lease_table.revoked == []


# --- the pool ---------------------------------------------------------------------


def offer(number: int, executor: ExecutorStatus | None) -> SlotOffer:
    return SlotOffer(AllocationId(f"a{number}"), number, TM1, ADDRESS[TM1], executor)


def test_the_pool_adopts_each_executor_once() -> None:
    slots = [offer(1, RUNS_ALREADY), offer(2, RUNS_ALREADY), offer(3, None)]
    pool = ExecutorPool().adopt(slots, OLD, 5)
    assert pool == pool.adopt(slots, OLD, 6)
    (record,) = pool.records
    assert (record.executor_id, record.cores, record.registered) == ("4", 2, False)
    _, (missing,) = pool.start_missing(slots, 6)
    assert (missing.executor_id, missing.allocation_ids) == ("104", ("a3",))
