"""What a job does about losses and failures: it goes on with what is left, restarts, or ends.

Spark reruns the tasks of lost executors on others, so a loss interrupts the job only when no executor
is left; here that is noticed and put down in the job's record.  Who noticed what is told apart by
:mod:`yarnflow.core.job_run.decider`.

Flink counterpart: the slot and task failure handling of ``DefaultScheduler``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from yarnflow.core.ids import DriverId, ExecutorId, TaskManagerId
from yarnflow.core.job.failures import error_info, is_loss, is_outage
from yarnflow.core.job_run import endings
from yarnflow.core.job_run import spare as hot_spare
from yarnflow.core.job_run.driver_group import MAX_FAILED_STARTS, Driver
from yarnflow.core.job_run.effects import InterruptCheckpoints, LaunchDriver
from yarnflow.core.job_run.model import Timer
from yarnflow.core.job_run.turn import Turn
from yarnflow.core.messages import ErrorInfo
from yarnflow.core.states import JobStatus, RestartLevel
from yarnflow.errors import (
    DriverLost,
    ExecutorLost,
    LeaseLost,
    SavepointNotFound,
    SlotUnavailable,
    YarnflowError,
)

#: before the next try of a driver whose end was ZooKeeper's, not the job's: it must not spin
_OUTAGE_DELAY_MS: Final = 1_000
_ADAPTIVE_WAIT_KEY: Final = "jobmanager.adaptive-scheduler.submission.resource-wait-timeout"


# --- drivers ----------------------------------------------------------------


def launch(turn: Turn) -> None:
    """Start a driver for the job, unless one of an earlier master may come in a moment."""
    if Timer.LEFT_SPARE in turn.run.timers:
        return
    _milestone(turn, "DRIVER_REQUESTED")
    kept = turn.run.kept
    if kept is None:
        driver = Driver(turn.at.new_driver_id, turn.at.ms)
    else:
        turn.say(f"Job {turn.run.record.name} has driver {kept.driver_id}, which has run {kept.jobs} before.")
        driver = Driver(kept.driver_id, turn.at.ms, jobs_before=kept.jobs)
        turn.run = replace(turn.run, kept=None, first_number=max(turn.run.first_number, kept.next_number))
    turn.active = replace(turn.active, driver=driver)
    turn.do(LaunchDriver(driver.driver_id))


def _milestone(turn: Turn, name: str) -> None:
    turn.run = replace(turn.run, record=turn.run.record.milestone(name, turn.at.wall_ms))


def driver_gone(turn: Turn, driver_id: DriverId, reason: str) -> None:
    """The job's driver does not hold the lease any more, or has never reported to this master.

    A job whose master was lost with its driver is not to blame, so the restart strategy is not asked.
    """
    run = turn.run
    if run.status is not JobStatus.RECONCILING:
        # drivers give up while ZooKeeper is away, and that is not their jobs' fault either
        outage = run.in_doubt or turn.at.ms < run.doubtful_until_ms
        fail(turn, LeaseLost(reason) if outage else DriverLost(reason), driver_id, RestartLevel.DRIVER)
    elif run.cancel_wanted:
        turn.lose_driver()
        turn.enter(run.record.cancelling(turn.at.wall_ms))
        endings.all_stopped(turn)
    else:
        error = DriverLost(f"{reason}; another driver goes on from the last commit")
        turn.say(f"Job {run.record.name}: {error}", is_warning=True)
        restart_after(turn, error_info(error), driver_id, RestartLevel.DRIVER, 0)


# --- executors and slots ------------------------------------------------------


def executor_gone(turn: Turn, executor_id: ExecutorId, reason: str) -> None:
    """An executor of the job ended, or could not be started."""
    record = turn.active.executors.find(executor_id)
    if record is None:
        return
    resume_ms = turn.at.ms + turn.run.settings.executor_replacement_delay_ms
    turn.active = turn.active.without_executor(executor_id, resume_ms)
    where = record.task_manager_id
    if not turn.run.record.wants_executors:
        return
    if turn.active.given_up:
        what = f"{MAX_FAILED_STARTS} executors in a row ended before they registered"
        fail(turn, ExecutorLost(f"{what}, the last one on {where} {reason}"), where, RestartLevel.DRIVER)
        return
    name = turn.run.record.name
    lose(turn, where, ExecutorLost(f"executor {executor_id} of job {name} on {where} {reason}"))


def lose(turn: Turn, task_manager_id: TaskManagerId, error: YarnflowError) -> None:
    """Some executors are gone; Spark reruns their tasks elsewhere, or waits for new executors."""
    if goes_on_elsewhere(turn, error, task_manager_id):
        return
    info, at_ms = error_info(error), turn.at.wall_ms
    turn.say(f"{error}; Spark goes on with what is left, and gets others.", is_warning=True)
    record = turn.run.record.failure(info, task_manager_id, RestartLevel.TASKS, True, at_ms)
    if record.wants_executors:
        record = record.lost_on(task_manager_id, info, at_ms)
    turn.run = replace(turn.run, record=record)
    if turn.run.is_stranded:
        turn.enter(record.interrupted(info, at_ms))


def goes_on_elsewhere(turn: Turn, error: YarnflowError, location: str) -> bool:
    """Whether the hot spare has stepped in: it is quicker than executors that are still to start.

    It counts as a restart: what an executor dies of it may die of on every driver.
    """
    if not turn.run.is_stranded or not hot_spare.evaluate(turn):
        return False
    info = error_info(error)
    policy, decision = turn.run.policy.decide(info, False, turn.at.wall_ms, turn.at.jitter)
    if decision is None:
        return False
    turn.run = replace(turn.run, policy=policy)
    turn.say(f"Job {turn.run.record.name}: {error}; its hot spare goes on.", is_warning=True)
    if decision.counted:
        turn.run = replace(turn.run, record=turn.run.record.restarted())
    restart_after(turn, info, location, RestartLevel.DRIVER, 0)
    return True


def all_offered(turn: Turn) -> None:
    """Whatever slots the job had under an earlier master, it has them now or has lost them."""
    turn.run = replace(turn.run, settled=True)
    turn.declare_own()


def slots_refused(turn: Turn, message: str) -> None:
    """The cluster can never give the job its slots."""
    turn.run = replace(turn.run, refusal=message)
    if turn.run.settings.scheduler.adaptive:  # what it has, or will get in a moment, may do
        turn.set_wait(turn.run.wait.refused(turn.at.ms))
    else:
        error = SlotUnavailable(f"job {turn.run.record.name} {message}")
        fail(turn, error, "", RestartLevel.DRIVER, final=True)


def slots_wait_is_over(turn: Turn) -> None:
    """Time has come to use the slots there are, to give up, or to wait on."""
    run, wait = turn.run, turn.run.wait
    if wait.is_hopeless(turn.at.ms, run.active.executors.any_registered):
        turn.wait_anew()  # for the case of a restart
        fail(turn, _no_slots(turn), "", RestartLevel.DRIVER, final=bool(run.refusal))
    elif run.settings.scheduler.adaptive and wait.may_run(turn.at.ms):
        turn.set_wait(wait.begin())
    else:  # Spark goes on with what there is
        turn.wait_anew()


def _no_slots(turn: Turn) -> SlotUnavailable:
    run = turn.run
    scheduler, name, why = run.settings.scheduler, run.record.name, run.outlook_note
    wait_s = scheduler.patience_ms // 1000
    if run.refusal:
        return SlotUnavailable(f"job {name} {run.refusal}")
    if scheduler.adaptive:
        return SlotUnavailable(
            f"job {name} got no slot within {wait_s} s{why}; start TaskManagers or raise {_ADAPTIVE_WAIT_KEY}"
        )
    have, required = len(run.active.slots.slots), run.active.slots.required
    return SlotUnavailable(
        f"job {name} needs {required} slots and got {have} within {wait_s} s{why}; start TaskManagers, "
        "lower the parallelism or raise slot.request.timeout"
    )


# --- failure and restart --------------------------------------------------------


def fail(
    turn: Turn, error: YarnflowError, location: str, level: RestartLevel, final: bool = False
) -> None:
    """The job cannot go on as it does; final = no restart helps."""
    fail_with(turn, error_info(error), location, level, final)


def fail_with(
    turn: Turn, error: ErrorInfo, location: str, level: RestartLevel, final: bool = False
) -> None:
    """As :func:`fail`, of an error that another process has told."""
    status, at = turn.run.status, turn.at
    if status in (JobStatus.CANCELLING, JobStatus.FAILING):
        endings.all_stopped(turn)
        return
    if status.terminal or status is JobStatus.INITIALIZING:
        return  # over, or not known yet what runs
    turn.say(f"Job {turn.run.record.name} failed: {error.message}", is_warning=True)
    if is_outage(error) and not final:
        restart_after(turn, error, location, level, _OUTAGE_DELAY_MS)
        return
    policy, decision = turn.run.policy.decide(error, final, at.wall_ms, at.jitter)
    record = turn.run.record
    if decision is None:
        record = record.failure(error, location, level, False, at.wall_ms)
        turn.enter(record.failing(error, at.wall_ms))
        endings.all_stopped(turn)
        return
    turn.run = replace(turn.run, policy=policy, record=record.restarted() if decision.counted else record)
    restart_after(turn, error, location, level, decision.delay_ms)


def restart_after(
    turn: Turn, error: ErrorInfo, location: str, level: RestartLevel, delay_ms: int
) -> None:
    """The next attempt begins after a while, with the same driver, the hot spare or another one."""
    worked = turn.run.status is JobStatus.RUNNING
    record = turn.run.record.failure(error, location, level, True, turn.at.wall_ms)
    spare_steps_in = level is RestartLevel.DRIVER and turn.spare.driver is not None
    if delay_ms and not spare_steps_in:
        # whoever sees the new state sees what the job waits for
        turn.arm(Timer.RESTART, turn.at.ms + delay_ms)
    turn.enter(record.restarting(error, turn.at.wall_ms))
    turn.do(InterruptCheckpoints(error.message))
    turn.run = replace(turn.run, attempt=turn.run.attempt + 1)
    if level is RestartLevel.DRIVER:
        turn.lose_driver()
        if spare_steps_in:
            hot_spare.step_in(turn)
            delay_ms = 0 if turn.active.registration is not None and is_loss(error) else delay_ms
        elif worked:
            # it takes longer to come than most delays last; one that cannot even start is not hurried
            launch(turn)
    all_offered(turn)
    turn.say(f"Job {turn.run.record.name} restarts in {delay_ms} ms ({level.value}).")
    if delay_ms:
        turn.arm(Timer.RESTART, turn.at.ms + delay_ms)
    else:
        restart(turn)


def restart(turn: Turn) -> None:
    """The next attempt begins."""
    turn.disarm(Timer.RESTART)
    if turn.run.status is JobStatus.RESTARTING and not turn.active.slots.is_complete:
        turn.wait_anew()


def start_empty(turn: Turn, note: str) -> None:
    """The job starts without the state that a user may expect, and its history says so."""
    run = turn.run
    error = SavepointNotFound(f"{note}; job {run.record.name} starts empty")
    turn.say(str(error), is_warning=True)
    record = run.record.failure(error_info(error), "", RestartLevel.QUERY, True, turn.at.wall_ms)
    turn.run = replace(run, record=record)
