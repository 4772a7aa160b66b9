"""What one job's decider does in cases that random interleavings come to too seldom."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.core.job_run.job_world import (
    JOB,
    KEPT,
    OLD,
    OLD_SPARE,
    SLOTS,
    Process,
    World,
    is_settled,
    settings,
)
from yarnflow.core.ids import DriverId, ExecutorId, TaskManagerId
from yarnflow.core.job.restart import FixedDelay
from yarnflow.core.job_run import effects as do
from yarnflow.core.job_run import events as ev
from yarnflow.core.job_run.decider import handle
from yarnflow.core.job_run.spare_life import SpareState
from yarnflow.core.messages import (
    DriverPhase,
    DriverReport,
    ErrorInfo,
    ExecutorExited,
    ExecutorStatus,
)
from yarnflow.core.states import JobStatus, RestartLevel
from yarnflow.errors import LeadershipLost, StorageDenied

TM1, TM2 = TaskManagerId("tm-1"), TaskManagerId("tm-2")


def fresh(hot_spare: bool = False) -> World:
    world = World(ev.Fresh(), settings(hot_spare))
    world.apply(ev.Started(world.at))
    return world


def taken_over(hot_spare: bool = False) -> World:
    """An earlier master accepted the job, and its driver lives."""
    world = World(ev.Adopted(7), settings(hot_spare))
    world.drivers[OLD] = Process(OLD, attempt=3)
    world.apply(ev.Started(world.at))
    world.answer(world.calls[0], True)
    return world


@pytest.mark.parametrize(
    ("hot_spare", "keeps_driver", "places", "is_whole"),
    [
        (False, False, [TM1], True),
        (False, False, [TM1, TM2], False),
        (True, False, [TM1], False),
        (False, True, [TM1], False),
    ],
)
def test_an_executor_is_told_whether_its_job_has_another_one(
    hot_spare: bool, keeps_driver: bool, places: list[TaskManagerId], is_whole: bool
) -> None:
    world = World(ev.Fresh(), settings(hot_spare, keeps_driver=keeps_driver))
    world.apply(ev.Started(world.at))
    for where in places:
        world.offer(where, SLOTS // len(places))
    (driver_id,) = world.drivers
    world.register(driver_id)
    started = [call.descriptor for call in world.calls if isinstance(call, do.StartExecutor)]
    assert [descriptor.has_whole_job for descriptor in started] == [is_whole] * len(places)


@pytest.mark.parametrize("adaptive", [False, True])
@pytest.mark.parametrize("hot_spare", [False, True])
def test_all_goes_well(hot_spare: bool, adaptive: bool) -> None:
    world = World(ev.Fresh(), settings(hot_spare, adaptive))
    world.apply(ev.Started(world.at))
    world.go_well(12)
    assert is_settled(world.run) and not world.run.ended
    assert len(world.drivers) == (2 if hot_spare else 1)


def test_the_two_groups_change_places() -> None:
    world = fresh(hot_spare=True)
    world.go_well(12)
    before = world.run
    assert before.spare_life.state is SpareState.WARM
    assert before.active.driver_id is not None
    world.exit(world.drivers[before.active.driver_id])
    after = world.run
    assert after.active.driver_id == before.spare.driver_id
    assert after.active.executors == before.spare.executors
    assert after.active.slots == before.spare.slots
    assert after.spare.slots == before.active.slots
    assert after.spare.driver is None and after.spare_life.state is SpareState.SLOTS
    world.go_well(12)
    assert is_settled(world.run) and len(world.drivers) == 3


def test_a_job_that_restarts_is_seen_to_wait_for_the_delay_from_the_first() -> None:
    world = fresh()
    world.go_well(12)
    (process,) = world.drivers.values()
    error = ErrorInfo("EXECUTOR_LOST", "it broke")
    report = DriverReport(JOB, process.driver_id, process.attempt, DriverPhase.FAILED, error=error)
    _, effects = handle(world.run, ev.DriverReported(world.at, report))
    shown = [effect.details for effect in effects if isinstance(effect, do.Show)]
    assert [(each.overview.status, each.waiting_for) for each in shown] == [
        (JobStatus.RESTARTING, "restart delay")
    ]


def test_an_adoption_is_an_event_of_its_own() -> None:
    world = taken_over()
    assert world.status() is JobStatus.RECONCILING
    world.go_well(3)
    assert world.status() is JobStatus.RUNNING
    (entry,) = world.run.record.failures
    assert (entry.level, entry.recovered) == (RestartLevel.MASTER, True)
    assert entry.error.code == LeadershipLost.code
    assert "adopted by leader epoch 7" in entry.error.message


def test_a_job_that_was_canceled_while_it_was_adopted_asks_for_nothing() -> None:
    """Its driver never registers: the end of that wait must not ask for slots of a job that is over."""
    world = taken_over()
    world.apply(ev.CancelRequested(world.at))
    world.wait(10_000)
    assert world.status() is JobStatus.CANCELED
    assert world.declared == 0


def test_a_state_that_cannot_be_read_matters_when_it_is_needed() -> None:
    """The adopted driver has it; the next one would have to be told, and waited for it without end."""
    world = taken_over()
    (call,) = world.calls
    world.answer(call, False, StorageDenied("not yours"))
    assert world.status() is JobStatus.RECONCILING, "the driver that runs does not need it"
    world.exit(world.drivers[OLD])
    world.go_well(5)
    assert world.status() is JobStatus.FAILED
    assert world.run.record.job.error is not None and "not yours" in world.run.record.job.error.message


def test_a_lease_that_the_driver_before_lost_does_not_end_the_next_one() -> None:
    world = fresh()
    world.go_well(3)
    first = world.run.active.driver_id
    assert first is not None
    world.apply(ev.HolderChanged(world.at, first))
    world.apply(ev.HolderChanged(world.at, None))
    world.exit(world.drivers[first])
    second = world.run.active.driver_id
    world.wait(1_500)
    assert second not in (None, first) and world.run.active.driver_id == second


def test_the_hot_spares_executors_end_before_its_slots_serve_the_job() -> None:
    world = fresh(hot_spare=True)
    world.go_well(12)
    lent = world.run.spare.slots.slots[0].task_manager_id
    world.report(world.drivers[DriverId("d1")], DriverPhase.IDLE, blind=True)  # not to step in
    world.apply(ev.SlotLost(world.at, world.run.active.slots.slots[0].allocation_id, "freed"))
    assert not world.run.active.slots.is_complete, "others come in a moment"
    world.wait(300)
    assert len(world.run.active.slots.slots) == SLOTS
    assert lent in world.run.active.slots.task_manager_ids


def test_slots_of_the_hot_spare_that_are_offered_again_stay_its_own() -> None:
    world = fresh(hot_spare=True)
    world.go_well(12)
    world.report(world.drivers[DriverId("d1")], DriverPhase.IDLE, blind=True)  # not to step in
    spare = world.run.spare
    world.apply(ev.SlotLost(world.at, world.run.active.slots.slots[0].allocation_id, "freed"))
    world.apply(ev.SlotsOffered(world.at, spare.slots.slots))
    assert len(world.run.active.slots.slots) == SLOTS - 1
    assert world.run.spare == spare


def test_an_attempt_waits_for_executors_in_place_of_lost_ones() -> None:
    """State stays where the first batch has put it, so all of them have a part in it."""
    world = World(ev.Fresh(), replace(settings(hot_spare=False), restart_strategy=FixedDelay(1_000, 0)))
    world.apply(ev.Started(world.at))
    for where in (TM1, TM2):
        world.offer(where, SLOTS // 2)
    world.go_well(3)
    assert len(world.run.active.executors.records) == 2
    (driver,) = world.drivers.values()
    ended = world.executors.pop(0)
    report = ExecutorExited(JOB, ended.driver_id, ended.executor_id, ended.task_manager_id, -9)
    world.apply(ev.ExecutorEnded(world.at, report))
    world.wait(50)
    world.report(driver, DriverPhase.FAILED, batch=7)
    assert not [call for call in world.calls if isinstance(call, do.Deploy)]
    world.wait(200)
    (deployment,) = [call for call in world.calls if isinstance(call, do.Deploy)]
    assert len(deployment.executor_ids) == 2


def test_a_hot_spare_of_the_master_before_gets_the_slots_of_its_executors() -> None:
    world = World(ev.Adopted(7), settings())
    world.apply(ev.Started(world.at))
    world.answer(world.calls[0], False)
    assert not world.drivers.get(DriverId("d0")), "one that was ready may come in a moment"
    world.register(OLD_SPARE)
    assert world.run.active.driver_id == OLD_SPARE
    world.offer(TM1, SLOTS)
    assert not world.run.active.slots.slots, "its own are not known yet"
    world.go_well(20)
    assert is_settled(world.run) and world.run.active.driver_id == OLD_SPARE


def test_nothing_is_done_after_the_end() -> None:
    world = fresh()
    world.go_well(3)
    world.apply(ev.CancelRequested(world.at))
    world.wait(10_000)
    assert world.status() is JobStatus.CANCELED
    before = world.run
    world.offer(TM2, SLOTS)
    world.lose(TM1)
    world.apply(ev.TimePassed(world.at))
    assert world.run == before
    assert not any(isinstance(call, do.StartExecutor) for call in world.calls[-1:])


# --- a driver for several jobs ----------------------------------------------------


def keeping(kept: bool = False) -> World:
    world = World(ev.Fresh(), settings(False, keeps_driver=True))
    world.apply(ev.Started(world.at, KEPT if kept else None))
    return world


def waiting(cores: int, number: str = "7") -> ExecutorStatus:
    """An executor that an earlier job of the kept driver has left."""
    return ExecutorStatus(ExecutorId(number), JOB, KEPT.driver_id, 1, cores)


def finish(world: World) -> None:
    (driver,) = world.deployed()
    world.report(driver, DriverPhase.FINISHED)
    world.answer(next(call for call in world.calls if isinstance(call, do.AwaitRecords)), True)
    assert world.status() is JobStatus.FINISHED


def test_the_driver_of_a_job_that_went_well_is_kept_with_its_executors() -> None:
    world = keeping()
    world.go_well(3)
    finish(world)
    assert world.kept == 1


def test_a_driver_that_was_ever_in_trouble_is_not() -> None:
    world = keeping()
    world.go_well(3)
    (driver,) = world.deployed()
    world.report(driver, DriverPhase.FAILED)
    world.wait(1_000)
    world.go_well(3)
    finish(world)
    assert not world.kept


@pytest.mark.parametrize("phase", [DriverPhase.CANCELED, DriverPhase.FAILED])
def test_nor_is_that_of_a_job_that_did_not_finish(phase: DriverPhase) -> None:
    world = World(ev.Fresh(), settings(False, attempts=0, keeps_driver=True))
    world.apply(ev.Started(world.at))
    world.go_well(3)
    (driver,) = world.deployed()
    world.report(driver, phase)
    assert world.run.ended and not world.kept


def test_the_next_job_gets_the_driver_and_the_executors_that_wait_on_its_slots() -> None:
    world = keeping(kept=True)
    assert set(world.drivers) == {KEPT.driver_id}
    world.offer(TM1, SLOTS, waiting(SLOTS))
    world.register(KEPT.driver_id)
    assert [each.executor_id for each in world.executors] == ["7"]
    world.go_well(3)
    assert world.status() is JobStatus.RUNNING
    finish(world)
    assert world.kept == 1, "it is used a third time"


def test_an_executor_with_other_slots_beside_the_job_s_is_left_alone() -> None:
    world = keeping(kept=True)
    world.offer(TM1, SLOTS, waiting(SLOTS + 1))
    world.register(KEPT.driver_id)
    (executor,) = world.executors
    assert int(executor.executor_id) >= KEPT.next_number


def test_an_executor_that_is_lost_is_not_found_again_in_the_offer() -> None:
    world = keeping(kept=True)
    world.offer(TM1, SLOTS, waiting(SLOTS))
    world.register(KEPT.driver_id)
    world.go_well(3)
    lost = world.executors.pop()
    world.apply(ev.ExecutorEnded(world.at, ExecutorExited(JOB, KEPT.driver_id, lost.executor_id, TM1, -9)))
    world.wait(1_000)
    (executor,) = world.executors
    assert int(executor.executor_id) >= KEPT.next_number


def test_a_job_whose_kept_driver_is_lost_gets_a_new_one() -> None:
    world = keeping(kept=True)
    world.exit(world.drivers[KEPT.driver_id])
    world.go_well(4)
    assert world.status() is JobStatus.RUNNING
    assert len(world.drivers) == 2


def test_a_driver_for_a_job_that_was_canceled_before_it_began_ends() -> None:
    world = keeping()
    _, effects = handle(world.run, ev.Started(world.at, KEPT))
    assert effects == (do.KillDriver(KEPT.driver_id),)


def test_a_driver_that_waits_for_its_turn_is_not_late() -> None:
    world = fresh()
    (process,) = world.drivers.values()
    world.apply(ev.DriverWaits(world.at, process.driver_id, True))
    world.offer(TM1, SLOTS)
    world.wait(100_000)
    assert world.run.active.driver_id == process.driver_id
    world.apply(ev.DriverWaits(world.at, process.driver_id, False))
    world.wait(10_000)
    assert world.run.active.driver_id == process.driver_id
    world.wait(1)
    assert not process.alive, "it had its time"
    (failure,) = world.run.record.failures
    assert "did not register for 10 s" in failure.error.message
    world.apply(ev.DriverWaits(world.at, process.driver_id, True))
    world.go_well(12)
    assert is_settled(world.run) and len(world.drivers) == 2


@pytest.mark.parametrize("ran", [False, True])
def test_a_driver_whose_end_another_master_reports_is_lost(ran: bool) -> None:
    world = fresh()
    if ran:
        world.go_well(12)
    (process,) = world.drivers.values()
    error = ErrorInfo("DRIVER_LOST", "its container was lost")
    report = DriverReport(
        JOB, process.driver_id, 0, DriverPhase.FAILED, error=error, driver_unusable=True
    )
    world.apply(ev.DriverReported(world.at, report))
    assert world.status() is JobStatus.RESTARTING and process.given_up
    world.executors.clear()
    world.go_well(20)
    assert is_settled(world.run) and len(world.drivers) == 2
    assert world.run.record.failures[0].error == error


def test_a_hot_spare_that_waits_for_its_container_is_not_late() -> None:
    world = fresh(hot_spare=True)
    for _ in range(12):
        if world.run.spare.driver is None:
            world.go_well(1)
    spare_id, own_id = world.run.spare.driver_id, world.run.active.driver_id
    assert spare_id is not None and own_id is not None and world.run.spare.registration is None

    def pass_s(seconds: int) -> None:
        for _ in range(seconds):
            world.report(world.drivers[own_id], DriverPhase.RUNNING, batch=1)
            world.wait(1000)

    world.apply(ev.DriverWaits(world.at, spare_id, True))
    pass_s(100)
    assert world.run.spare.driver_id == spare_id
    world.apply(ev.DriverWaits(world.at, spare_id, False))
    pass_s(10)
    assert world.run.spare.driver_id == spare_id
    pass_s(1)
    assert world.run.spare.driver_id != spare_id and not world.drivers[spare_id].alive
