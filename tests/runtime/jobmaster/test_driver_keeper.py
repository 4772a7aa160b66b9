"""Two jobs with fakes all around: the second gets what the first has left."""

from __future__ import annotations

from collections.abc import Callable

from tests.runtime.jobmaster.job_bench import ADDRESS, TM1, USER_ERROR, Bench
from yarnflow.core.ids import DriverId, ExecutorId, JobId
from yarnflow.core.messages import DriverPhase, ExecutorStatus
from yarnflow.core.states import JobStatus
from yarnflow.errors import RpcTimeout, RpcUnavailable
from yarnflow.runtime.jobmaster.driver_keeper import DriverKeeper
from yarnflow.testing.runtime import ManualClock

EARLIER = JobId("b" * 32)


class Keeping:
    """A cluster's keeper; time passes when a test says so."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.jobs = 0
        self.killed: list[DriverId] = []
        self.timers: list[Callable[[], None]] = []
        self.keeper = DriverKeeper(
            1_000, self.clock, lambda _ms, action: self.timers.append(action), self.killed.append
        )

    def finished(self) -> Bench:
        """A job that has finished."""
        bench = Bench(keeper=self.keeper).running()
        bench.report(DriverPhase.FINISHED)
        assert bench.status() is JobStatus.FINISHED
        return bench

    def next(self) -> Bench:
        """Another job, which has begun."""
        self.jobs += 1
        return Bench(keeper=self.keeper, first_id=1_000 * self.jobs).start()

    def wait(self, ms: int) -> None:
        self.clock.advance(ms)
        for timer in self.timers:
            timer()


def test_a_second_job_starts_nothing() -> None:
    keeping = Keeping()
    first = keeping.finished()
    assert first.driver.shut_downs == 1, "it was not told to leave the job"
    assert not first.launcher.killed
    assert not first.gateways.task_executors[ADDRESS[TM1]].stopped
    assert first.slots.released, "slots are for everybody"

    second = keeping.next()
    assert second.driver_id == first.driver_id
    second.offer(TM1, 2, ExecutorStatus(ExecutorId("0"), EARLIER, first.driver_id, 1, 2))
    second.register()
    (descriptor,) = second.gateways.task_executors[ADDRESS[TM1]].started
    assert (descriptor.executor_id, descriptor.driver_id) == ("0", first.driver_id)
    assert second.driver.deployments[0].executor_ids == ("0",)
    second.report(DriverPhase.RUNNING)
    assert second.status() is JobStatus.RUNNING
    # a third job beside it has a driver of its own
    assert keeping.next().driver_id != first.driver_id
    assert not keeping.killed


def test_new_executors_have_numbers_that_spark_has_not_seen() -> None:
    keeping = Keeping()
    keeping.finished()
    second = keeping.next()
    second.offer(TM1, 2)
    second.register()
    (descriptor,) = second.gateways.task_executors[ADDRESS[TM1]].started
    assert descriptor.executor_id == "1"


def test_the_driver_of_a_failed_job_ends_with_it() -> None:
    keeping = Keeping()
    first = Bench("none", keeper=keeping.keeper).running()
    first.report(DriverPhase.FAILED, error=USER_ERROR)
    assert first.status() is JobStatus.FAILED
    assert first.launcher.killed == [first.driver_id]
    assert first.gateways.task_executors[ADDRESS[TM1]].stopped == ["0"]
    assert keeping.next().driver_id != first.driver_id


def test_a_driver_that_does_not_hear_of_it_is_killed() -> None:
    keeping = Keeping()
    first = Bench(keeper=keeping.keeper).running()
    first.driver.error = RpcTimeout("no answer")
    first.report(DriverPhase.FINISHED)
    assert first.launcher.killed == [first.driver_id]


def test_one_that_has_left_before_it_was_told_is_not() -> None:
    keeping = Keeping()
    first = Bench(keeper=keeping.keeper).running()
    first.driver.error = RpcUnavailable("nobody serves there")
    first.report(DriverPhase.FINISHED)
    assert not first.launcher.killed
    assert keeping.next().driver_id == first.driver_id


def test_it_is_killed_when_no_job_comes() -> None:
    keeping = Keeping()
    first = keeping.finished()
    keeping.wait(999)
    assert not keeping.killed
    keeping.wait(1)
    assert keeping.killed == [first.driver_id]
    assert keeping.next().driver_id != first.driver_id


def test_a_driver_that_has_ended_meanwhile_is_not_given_away() -> None:
    keeping = Keeping()
    first = keeping.finished()
    keeping.keeper.exited(first.driver_id)
    assert keeping.next().driver_id != first.driver_id


def test_a_job_that_keeps_none_takes_none() -> None:
    keeping = Keeping()
    first = keeping.finished()
    assert Bench(first_id=2).start().driver_id != first.driver_id
    assert not keeping.killed
