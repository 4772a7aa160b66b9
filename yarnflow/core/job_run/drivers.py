"""What a job makes of its drivers: those of an earlier master, what each says, and how it ends.

A driver is told from others by its id: the job's own, its hot spare, or one that nobody wants and that
is told to end.  What a loss leads to is decided by :mod:`yarnflow.core.job_run.losses`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from yarnflow.core.checkpoint.messages import JobStop
from yarnflow.core.job.failures import ended_by, error_info
from yarnflow.core.job_run import endings, losses
from yarnflow.core.job_run import events as ev
from yarnflow.core.job_run import spare as hot_spare
from yarnflow.core.job_run.driver_group import CALL_RETRY_MS, Driver
from yarnflow.core.job_run.effects import AwaitRecords, CancelDriver, FindState, TakeReport
from yarnflow.core.job_run.model import Timer
from yarnflow.core.job_run.turn import Turn
from yarnflow.core.messages import DriverPhase, DriverRegistration, DriverReport, ErrorInfo, ProgramKind
from yarnflow.core.states import JobStatus, RestartLevel
from yarnflow.errors import (
    CallSuspended,
    DriverLost,
    ExecutorLost,
    InternalError,
    SavepointNotFound,
    StateUndecided,
    error_from_exit,
)

#: within that time a hot spare has found its new leader
LEFT_DRIVER_MS: Final = 2_000
#: a driver whose lease vanished is as a rule a process that ended, whose own end says more
LEASE_GRACE_MS: Final = 1_000


# --- start and adoption ---------------------------------------------------------


def begin(turn: Turn) -> None:
    """Ask for slots and a driver at the same time."""
    turn.enter(turn.run.record.initialized(turn.at.wall_ms))
    losses.all_offered(turn)


def holder_found(turn: Turn, event: ev.HolderFound) -> None:
    """It is known now whether a driver of the master before lives."""
    if not turn.run.is_driver_unknown:
        return
    turn.run = replace(turn.run, lease_holder=event.driver_id)
    if turn.run.settings.hot_spare:  # a driver that an earlier master had ready may register in a moment
        turn.arm(Timer.LEFT_SPARE, turn.at.ms + LEFT_DRIVER_MS)
    if event.driver_id is None:
        begin(turn)
    else:
        turn.say(f"Job {turn.run.record.name}: driver {event.driver_id} lives, waiting for it.")
        turn.arm(Timer.ADOPTION, turn.at.ms + turn.run.settings.adoption_timeout_ms)
        turn.run = replace(turn.run, attempt=max(event.attempt, 1))
        turn.enter(turn.run.record.adopting(turn.at.wall_ms))
        driver = Driver(event.driver_id, turn.at.ms, adopted=True)
        turn.active = replace(turn.active, driver=driver).adopting_executors(turn.at.ms)
    if turn.run.cancel_wanted:
        endings.cancel(turn)
    else:
        turn.do(FindState())


def adoption_over(turn: Turn) -> None:
    """What was not offered to this master by now will not be."""
    driver = turn.active.driver
    if driver is not None and driver.adopted and driver.registration is None:
        timeout_s = turn.run.settings.adoption_timeout_ms // 1000
        reason = f"driver {driver.driver_id} did not report to the new leader within {timeout_s} s"
        losses.driver_gone(turn, driver.driver_id, reason)
    if not turn.run.ended:
        losses.all_offered(turn)


def _adopts(turn: Turn, registration: DriverRegistration) -> bool:
    """Whether a driver that nobody here launched, and that never ran the job, is of use.

    It is the hot spare of the master before: that of the job as well, or, when the job's own
    driver was lost with that master, the one that steps in for it.
    """
    run, driver_id = turn.run, registration.driver_id
    is_left = run.settings.hot_spare and isinstance(run.start, ev.Adopted) and not registration.attempt
    if not is_left or run.is_driver_unknown or run.cancel_wanted or run.status.terminal:
        return False
    if run.active.driver is not None or not run.record.wants_executors:
        # too late if the job is about to start executors in place of its own
        return not run.active.runs_for(driver_id) and hot_spare.adopt(turn, registration)
    turn.say(f"Job {run.record.name}: driver {driver_id}, which was ready, steps in.", is_warning=True)
    turn.disarm(Timer.LEFT_SPARE)
    if run.status is JobStatus.CREATED:  # executions may have others' slots
        error = DriverLost(f"the driver was lost with its master; {driver_id}, which was ready, goes on")
        losses.restart_after(turn, error_info(error), "", RestartLevel.DRIVER, 0)
    driver = Driver(driver_id, turn.at.ms, adopted=True).registered(registration, turn.at.ms)
    turn.active = replace(turn.active, driver=driver)
    # TaskManagers with its executors may still be to come, and others came already
    turn.run = replace(turn.run, settled=False)
    turn.arm(Timer.LEFT_SLOTS, turn.at.ms + LEFT_DRIVER_MS)
    hot_spare.gather(turn)
    return True


def holder_changed(turn: Turn, event: ev.HolderChanged) -> None:
    before, driver = turn.run.lease_holder, turn.active.driver
    turn.run = replace(turn.run, lease_holder=event.driver_id)
    if before is None or before == event.driver_id or driver is None or driver.driver_id != before:
        return
    if driver.adopted:  # another master's supervisor knows how it ended
        without_lease(turn)
    else:
        turn.arm(Timer.LEASE_GRACE, turn.at.ms + LEASE_GRACE_MS)


def without_lease(turn: Turn) -> None:
    driver_id = turn.active.driver_id
    if driver_id is not None and turn.run.lease_holder != driver_id:
        losses.driver_gone(turn, driver_id, f"driver {driver_id} has lost its lease in ZooKeeper")


# --- what drivers say -------------------------------------------------------------


def registered(turn: Turn, event: ev.DriverRegistered) -> None:
    registration, driver_id = event.registration, event.registration.driver_id
    if turn.spare.driver is not None and turn.spare.has_driver(driver_id):
        hot_spare.registered(turn, turn.spare.driver, registration)
        return
    driver = turn.active.driver
    if driver is None or driver.driver_id != driver_id:
        _adopts(turn, registration)
        return
    turn.active = replace(turn.active, driver=driver.registered(registration, turn.at.ms))
    record = turn.run.record.milestones(registration.milestones_ms)
    turn.run = replace(turn.run, record=record.milestone("DRIVER_REGISTERED", turn.at.wall_ms))
    if turn.run.status is JobStatus.RECONCILING and registration.attempt:
        turn.run = replace(turn.run, attempt=registration.attempt)
        turn.set_wait(turn.run.wait.begin())
    elif turn.run.status is JobStatus.RECONCILING:
        losses.all_offered(turn)  # it never ran: what it needs must be found first
    if turn.run.cancel_wanted:
        endings.cancel(turn)


def reported(turn: Turn, event: ev.DriverReported) -> None:
    report = event.report
    if turn.spare.driver is not None and turn.spare.has_driver(report.driver_id):
        hot_spare.reported(turn, turn.spare.driver, report)
        return
    if not turn.active.has_driver(report.driver_id):
        return
    turn.do(TakeReport(report))
    record = turn.run.record.milestones(report.milestones_ms).progress(report.queries)
    turn.run = replace(turn.run, record=record)
    settings = turn.run.settings
    turn.active, overdue = turn.active.heard(turn.at.ms).seen_by_driver(
        report.executor_ids, turn.at.ms, settings.executor_missing_ms, settings.executor_start_ms
    )
    turn.stop(overdue)
    for each in overdue:
        losses.executor_gone(turn, each.executor_id, "is not seen by its driver")
    if any(query.batch_id >= 0 for query in report.queries):
        turn.run = replace(turn.run, policy=turn.run.policy.committed())
    if turn.run.ended:
        return
    if report.phase is DriverPhase.FAILED and report.attempt in (0, turn.run.attempt):
        _driver_failed(turn, report)
    elif report.attempt == turn.run.attempt:
        _take_phase(turn, report)
    if report.queries and all(query.batch_id >= 0 for query in report.queries):
        hot_spare.advance(turn)  # what it is told of must have begun
        hot_spare.job_commits(turn)


def _take_phase(turn: Turn, report: DriverReport) -> None:
    phase = report.phase
    if phase is DriverPhase.RUNNING:
        _confirm_running(turn)
    elif phase is DriverPhase.FINISHED:
        turn.do(AwaitRecords(JobStop.of(report.checkpoints)))
    elif phase is DriverPhase.CANCELED and not turn.run.status.terminal:
        turn.disarm(Timer.RESTART)
        turn.enter(turn.run.record.cancelling(turn.at.wall_ms))  # if the master before has told it so
        endings.all_stopped(turn)


def _confirm_running(turn: Turn) -> None:
    """The queries are active: executions whose executor is there are running."""
    before, at_ms = turn.run.status, turn.at.wall_ms
    places = {each.task_manager_id for each in turn.active.executors.records if each.registered}
    turn.enter(turn.run.record.running_on(places, at_ms))
    # the driver may know it before their TaskManagers say so
    error = ExecutorLost("no executor is registered with the driver")
    if turn.run.is_stranded and not losses.goes_on_elsewhere(turn, error, ""):
        turn.enter(turn.run.record.interrupted(error_info(error), at_ms))
    start, status = turn.run.start, turn.run.status
    if before is JobStatus.RECONCILING and status is JobStatus.RUNNING and isinstance(start, ev.Adopted):
        # the driver reports as before: nothing was interrupted
        record, policy = turn.run.record.adopted(start.epoch, at_ms), turn.run.policy.committed()
        turn.run = replace(turn.run, record=record, policy=policy)
        turn.say(f"Job {record.name}: {record.failures[-1].error.message}.")
        if turn.active.executors.all_registered:
            turn.declare_own()


def _driver_failed(turn: Turn, report: DriverReport) -> None:
    error = report.error or ErrorInfo(InternalError.code, "the driver failed without saying why")
    new_driver = report.driver_unusable or turn.run.kind is ProgramKind.SCRIPT
    level = RestartLevel.DRIVER if new_driver else RestartLevel.QUERY
    note = turn.run.note_if_gone if error.code == SavepointNotFound.code else ""
    if note:  # nobody has asked for a job that starts empty
        error = error_info(StateUndecided(note))
    losses.fail_with(turn, error, report.driver_id, level)


def all_recorded(turn: Turn, event: ev.AllRecorded) -> None:
    """The driver has finished, and all that it was asked for is written."""
    if turn.run.record.wants_executors or turn.run.status is JobStatus.CANCELLING:
        turn.enter(turn.run.record.ran(turn.at.wall_ms))
        turn.enter(turn.run.record.finished(event.stop, turn.at.wall_ms))
        endings.end(turn)


def exited(turn: Turn, event: ev.DriverExited) -> None:
    driver_id = event.driver_id
    if turn.spare.has_driver(driver_id):
        hot_spare.exited(turn, event)
    elif turn.active.has_driver(driver_id):
        how = f"driver {driver_id} {ended_by(event.exit_status, event.output_tail)}"
        if turn.run.status is JobStatus.RECONCILING:
            losses.driver_gone(turn, driver_id, how)
            return
        turn.lose_driver(kill=False)
        error = error_from_exit(event.exit_status, event.output_tail) or DriverLost(how)
        losses.fail(turn, error, driver_id, RestartLevel.DRIVER)


def start_waits(turn: Turn, event: ev.DriverWaits) -> None:
    """How long it takes to register counts from when it is started."""
    turn.active = turn.active.start_waits(event.driver_id, event.waits, turn.at.ms)
    turn.spare = turn.spare.start_waits(event.driver_id, event.waits, turn.at.ms)


def deploy_failed(turn: Turn, event: ev.DeployFailed) -> None:
    driver = turn.active.driver
    if driver is None or (driver.driver_id, driver.deployed_attempt) != (event.driver_id, event.attempt):
        return
    if isinstance(event.error, CallSuspended) and turn.run.record.wants_executors:
        # it heard of nothing; whether it lives is seen by its reports
        turn.active = replace(turn.active, driver=replace(driver, deployed_attempt=0))
        turn.arm(Timer.CALL_AGAIN, turn.at.ms + CALL_RETRY_MS)
        return
    error = DriverLost(f"driver {driver.driver_id} did not take the job: {event.error}")
    losses.fail(turn, error, driver.driver_id, RestartLevel.DRIVER)


def cancel_failed(turn: Turn, event: ev.CancelFailed) -> None:
    if not turn.active.has_driver(event.driver_id):
        return
    if isinstance(event.error, CallSuspended):
        turn.arm(Timer.CALL_AGAIN, turn.at.ms + CALL_RETRY_MS)
    else:
        endings.force_end(turn, f"the driver did not answer: {event.error}")


def call_again(turn: Turn) -> None:
    """A cancel that was not made is made; a deployment follows by itself."""
    driver = turn.active.driver
    if turn.run.status is JobStatus.CANCELLING and driver is not None and driver.registration is not None:
        turn.do(CancelDriver(driver.driver_id, driver.registration.address))
