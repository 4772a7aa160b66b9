"""How a job ends: a user's cancel, the end of what runs, and what is given back.

That it ends of a failure, too, is decided by :mod:`yarnflow.core.job_run.losses`.

Flink counterpart: ``SchedulerBase.cancel``.
"""

from __future__ import annotations

from dataclasses import replace

from yarnflow.core.job_run import spare as hot_spare
from yarnflow.core.job_run.driver_group import Driver
from yarnflow.core.job_run.effects import CancelDriver, EndJob, InterruptCheckpoints, ReleaseSlots
from yarnflow.core.job_run.kept_drivers import MAX_JOBS
from yarnflow.core.job_run.model import JobRun, Timer
from yarnflow.core.job_run.turn import Turn
from yarnflow.core.states import JobStatus


def cancel(turn: Turn) -> None:
    """A user wants the end."""
    run = turn.run
    if run.status.terminal or run.status is JobStatus.CANCELLING:
        return
    driver = run.active.driver
    if run.is_driver_unknown or (driver is not None and driver.adopted and driver.registration is None):
        # what runs is to end in good order, and may be about to already
        turn.run = replace(run, cancel_wanted=True)
        return
    turn.enter(run.record.cancelling(turn.at.wall_ms))
    turn.do(InterruptCheckpoints("the job is canceled"))
    turn.disarm(Timer.RESTART)
    if driver is None or driver.registration is None or driver.deployed_attempt != run.attempt:
        turn.lose_driver()  # nothing of this attempt runs
        all_stopped(turn)
        return
    turn.do(CancelDriver(driver.driver_id, driver.registration.address))
    turn.arm(Timer.FORCED_END, turn.at.ms + run.settings.cancellation_timeout_ms)


def force_end(turn: Turn, reason: str) -> None:
    """A driver that does not stop is ended."""
    if turn.run.status is JobStatus.CANCELLING:
        turn.say(f"Job {turn.run.record.name} is ended by force: {reason}", is_warning=True)
        turn.lose_driver()
        all_stopped(turn)


def all_stopped(turn: Turn) -> None:
    """Nothing of the job runs any more."""
    if not turn.run.ended:
        turn.enter(turn.run.record.all_stopped(turn.at.wall_ms))
        end(turn)


def end(turn: Turn) -> None:
    """Give everything back."""
    turn.run = replace(turn.run, ended=True, timers={})
    driver = turn.active.driver
    if driver is not None and driver.registration is not None and _is_of_further_use(turn.run, driver):
        turn.active = turn.kept(turn.active, driver, driver.registration.address)
    else:
        turn.active = turn.dismissed(turn.active)
    hot_spare.end(turn)
    turn.do(ReleaseSlots())
    turn.do(EndJob())


def _is_of_further_use(run: JobRun, driver: Driver) -> bool:
    """Whether another job may have the driver: all went well with this one, at the first attempt."""
    went_well = run.status is JobStatus.FINISHED and run.attempt == 1 and not driver.adopted
    return run.settings.keeps_driver and went_well and driver.jobs_before + 1 < MAX_JOBS
