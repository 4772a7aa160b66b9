"""Calls that were not made, as their target had not answered before, are made later, and nobody is ended."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import pytest

from tests.runtime.jobmaster.job_bench import ADDRESS, TM1, Bench
from yarnflow.core.ids import ExecutorId, JobId
from yarnflow.core.messages import DriverPhase
from yarnflow.core.states import JobStatus
from yarnflow.errors import CallSuspended, RpcTimeout, YarnflowError
from yarnflow.runtime.jobmaster.runner import STOP_TRIES
from yarnflow.runtime.mailbox import Mailbox, Work
from yarnflow.testing.gateways.driver import FakeDriver
from yarnflow.testing.gateways.task_executor import FakeTaskExecutor
from yarnflow.testing.runtime import InlineEffects

SUSPENDED = CallSuspended("it was not reached 3 times in a row")
DRIVER = "driver:1"
T = TypeVar("T")


class SuspendingEffects(InlineEffects):
    """Makes no call to a target that is suspended until it is heard of."""

    def __init__(self) -> None:
        super().__init__()
        self.suspended: set[str] = set()

    def perform(
        self,
        mailbox: Mailbox,
        effect: Callable[[], T],
        on_success: Callable[[T], None],
        on_failure: Callable[[YarnflowError], None],
        work: Work = Work.CALL,
        target: str = "",
    ) -> None:
        if target in self.suspended:
            mailbox.post(lambda: on_failure(SUSPENDED))
        else:
            super().perform(mailbox, effect, on_success, on_failure, work, target)

    def alive(self, target: str) -> None:
        self.suspended.discard(target)


def task_executor_of(bench: Bench) -> FakeTaskExecutor:
    return bench.gateways.task_executors.setdefault(ADDRESS[TM1], FakeTaskExecutor())


def driver_of(bench: Bench) -> FakeDriver:
    return bench.gateways.drivers.setdefault(DRIVER, FakeDriver())


@pytest.mark.parametrize("error", [SUSPENDED, RpcTimeout("no answer")])
def test_an_executor_is_told_to_end_until_its_task_manager_has_heard_it(error: YarnflowError) -> None:
    """Its slots cannot be used as long as it is there."""
    bench = Bench().running()
    task_executor = task_executor_of(bench)
    task_executor.error = error
    bench.launcher.end(bench.driver_id, -9)
    for _ in range(5):
        bench.run(1_000)
    assert bench.status() is JobStatus.RESTARTING and not task_executor.stopped
    task_executor.error = None
    bench.run(1_000)
    assert task_executor.stopped == ["0"]
    bench.run(10_000)
    assert task_executor.stopped == ["0"], "it is not told so twice"


def test_an_executor_is_not_told_to_end_for_ever() -> None:
    bench = Bench().running()
    task_executor = task_executor_of(bench)
    tries = 0

    def refuses(job_id: JobId, executor_id: ExecutorId) -> None:
        nonlocal tries
        tries += 1
        raise SUSPENDED

    task_executor.stop_executor = refuses  # type: ignore[method-assign]
    bench.launcher.end(bench.driver_id, -9)
    for _ in range(2 * STOP_TRIES):
        bench.run(1_000)
    assert tries == STOP_TRIES


def test_executors_of_a_job_that_is_over_end_with_its_slots() -> None:
    bench = Bench().running()
    task_executor = task_executor_of(bench)
    task_executor.error = SUSPENDED
    bench.launcher.end(bench.driver_id, -9)
    bench.run(1_000)
    bench.master.cancel()
    bench.run(1_000)
    assert bench.status() is JobStatus.CANCELED and bench.slots.released
    task_executor.error = None
    bench.run(5_000)
    assert not task_executor.stopped


def test_a_driver_that_is_not_called_for_a_while_is_deployed_later() -> None:
    bench = Bench().start()
    bench.offer(TM1, 2)
    driver_of(bench).error = SUSPENDED
    bench.register()
    for _ in range(10):
        bench.run(1_000).report(DriverPhase.IDLE)
    assert bench.details.restarts == 0 and not bench.launcher.killed
    bench.driver.error = None
    bench.run(1_000).report(DriverPhase.RUNNING)
    assert bench.status() is JobStatus.RUNNING
    assert [deployment.attempt for deployment in bench.driver.deployments] == [1]


def test_a_driver_that_says_nothing_is_ended_as_before() -> None:
    bench = Bench(attempts=0).start()
    bench.offer(TM1, 2)
    driver_of(bench).error = SUSPENDED
    bench.register()
    for _ in range(5):
        bench.run(1_000)
    assert bench.status() is JobStatus.FAILED
    assert bench.details.error is not None and "has not reported for 3 s" in bench.details.error.message
    bench.driver.error = None
    bench.run(5_000)
    assert not bench.driver.deployments, "one that was given up is not deployed"


def test_a_cancel_waits_for_a_driver_that_is_not_called_for_a_while() -> None:
    bench = Bench().running()
    bench.driver.error = SUSPENDED
    bench.master.cancel()
    bench.run(1_000).report(DriverPhase.RUNNING)
    assert bench.status() is JobStatus.CANCELLING and not bench.launcher.killed
    bench.driver.error = None
    bench.run(1_000)
    assert bench.driver.cancels == 1
    bench.report(DriverPhase.CANCELED)
    assert bench.status() is JobStatus.CANCELED


def test_a_driver_that_stays_suspended_is_ended_when_the_time_for_a_cancel_is_over() -> None:
    bench = Bench().running()
    bench.driver.error = SUSPENDED
    bench.master.cancel()
    bench.run()
    for _ in range(4):
        bench.run(1_000).report(DriverPhase.RUNNING)
    assert bench.status() is JobStatus.CANCELLING
    bench.run(1_000)
    assert bench.status() is JobStatus.CANCELED and bench.launcher.killed


def test_whoever_registers_or_reports_is_called_again() -> None:
    effects = SuspendingEffects()
    bench = Bench(effects=effects).start()
    bench.offer(TM1, 2)
    effects.suspended.add(DRIVER)
    bench.register()
    assert bench.driver.deployments, "its predecessor at the address was suspended"
    bench.report(DriverPhase.RUNNING)
    effects.suspended.add(DRIVER)
    bench.report(DriverPhase.RUNNING)
    assert not effects.suspended
