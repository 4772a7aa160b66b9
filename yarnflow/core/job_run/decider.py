"""Decides about one job: drivers, deployments, restarts, adoption, cancellation and end.

:func:`handle` takes what happened (:mod:`~yarnflow.core.job_run.events`) and returns the job as it is
then and what is to be done (:mod:`~yarnflow.core.job_run.effects`).  It never does anything itself,
and never reads a clock.  Two groups of a driver, slots and executors are told apart by the driver's
id: the *active* one runs the job, the *spare* one (:mod:`~yarnflow.core.job_run.spare`) could; when it
steps in, the two change places.  Only the active one's driver is ever deployed.

After each event whatever has become possible is done, so no rule has to remember what it makes
possible for others.  The rules about drivers are in :mod:`~yarnflow.core.job_run.drivers`.

How far up a failure goes (:mod:`~yarnflow.core.job_run.losses`): Spark reruns tasks on other executors
(``TASKS``); the query is started again in the same driver (``QUERY``); a new driver on the same slots
(``DRIVER``).  The restart strategy counts the last two.  A new master takes over the driver that runs
(``MASTER``), or, when that is gone, starts another one; neither is the job's fault, and neither is
counted.  Nor is a driver that ends because ZooKeeper was away from it.

Flink counterparts: ``DefaultScheduler``, ``PhysicalSlotRequestBulkChecker``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from yarnflow.core.job.failures import ended_by, error_info
from yarnflow.core.job_run import drivers, endings, losses, spare_life
from yarnflow.core.job_run import events as ev
from yarnflow.core.job_run import spare as hot_spare
from yarnflow.core.job_run.driver_group import CALL_RETRY_MS
from yarnflow.core.job_run.effects import (
    Deploy,
    Effect,
    FindDriver,
    FindState,
    KillDriver,
    StopExecutor,
    WatchLease,
)
from yarnflow.core.job_run.model import JobRun, Timer
from yarnflow.core.job_run.turn import Turn
from yarnflow.core.resources.scheduling import NEVER_MS
from yarnflow.core.states import JobStatus, RestartLevel
from yarnflow.errors import CallSuspended, DriverLost, RpcError, SlotUnavailable, TaskManagerLost


def handle(run: JobRun, event: ev.Event) -> tuple[JobRun, tuple[Effect, ...]]:
    """What becomes of a job by an event, and what is to be done, in order."""
    turn = Turn(run, event.at)
    if not run.ended or isinstance(event, ev.TaskManagerDiagnosed):
        _RULES[type(event)](turn, event)
        _go_on(turn)
    return turn.run, tuple(turn.effects)


def _go_on(turn: Turn) -> None:
    """Do whatever has become possible: slots and a driver, executors on the slots, the deployment."""
    if turn.run.ended:
        return
    if turn.run.status is JobStatus.RECONCILING and turn.active.slots.is_complete:
        turn.declare_own()
    if turn.run.record.wants_executors:
        hot_spare.fill(turn)
        _launch_if_due(turn)
        if turn.run.wait.may_run(turn.at.ms):
            _use_slots(turn)
    hot_spare.advance(turn)


def _launch_if_due(turn: Turn) -> None:
    waits = turn.run.status in (JobStatus.CREATED, JobStatus.RESTARTING)
    if waits and turn.active.driver is None and Timer.RESTART not in turn.run.timers:
        losses.launch(turn)


def _use_slots(turn: Turn) -> None:
    if turn.active.registration is None and Timer.RESTART in turn.run.timers:
        return
    record = turn.run.record.milestone("SLOTS", turn.at.wall_ms)
    record = record.assign_slots(turn.active.slots.task_manager_ids, turn.at.wall_ms)
    turn.run = replace(turn.run, record=record)
    turn.active = turn.starting(turn.active)
    _deploy_if_due(turn)


def _deploy_if_due(turn: Turn) -> None:
    run, driver, executors = turn.run, turn.active.driver, turn.active.executors
    if (
        driver is None
        or driver.registration is None
        or driver.deployed_attempt == run.attempt
        or Timer.RESTART in run.timers
        or Timer.CALL_AGAIN in run.timers
        or not executors.records
        or turn.at.ms < turn.active.not_before_ms  # those in place of lost ones are part of it
    ):
        return
    # what has committed something goes on from there
    restore = None if run.policy.has_committed else run.state
    if not run.state_known and not run.policy.has_committed:
        if run.state_error is not None:
            losses.fail_with(turn, run.state_error, "", RestartLevel.QUERY, final=True)
        return
    turn.active = replace(turn.active, driver=replace(driver, deployed_attempt=run.attempt))
    turn.set_wait(run.wait.begin())
    turn.do(
        Deploy(
            driver.driver_id,
            driver.registration.address,
            run.attempt,
            executors.executor_ids,
            restore,
            again=driver.deployed_attempt > 0,
        )
    )


# --- start ----------------------------------------------------------------------


def _started(turn: Turn, event: ev.Started) -> None:
    run = turn.run
    if run.status is not JobStatus.INITIALIZING:
        if event.kept is not None:
            turn.do(KillDriver(event.kept.driver_id))
        return  # canceled before it began
    turn.run = replace(run, record=run.record.milestone("SUBMITTED", turn.at.wall_ms), kept=event.kept)
    if isinstance(run.start, ev.Adopted):
        turn.do(FindDriver())
    else:
        turn.do(WatchLease())
        turn.do(FindState())
        drivers.begin(turn)


def _state_found(turn: Turn, event: ev.StateFound) -> None:
    turn.run = replace(turn.run, state_known=True, state=event.state, note_if_gone=event.note_if_gone)
    if event.note:
        losses.start_empty(turn, event.note)


def _state_unreadable(turn: Turn, event: ev.StateUnreadable) -> None:
    turn.run = replace(turn.run, state_error=error_info(event.error))
    driver = turn.active.driver
    if driver is None or not driver.adopted:  # an adopted one started long ago
        losses.fail(turn, event.error, "", RestartLevel.QUERY, final=True)


def _checkpoints_unusable(turn: Turn, event: ev.CheckpointsUnusable) -> None:
    losses.fail(turn, event.error, "", RestartLevel.QUERY, final=True)


def _commits_found(turn: Turn, event: ev.CommitsFound) -> None:
    turn.run = replace(turn.run, policy=turn.run.policy.committed())


# --- slots and executors ----------------------------------------------------------


def _offered(turn: Turn, event: ev.SlotsOffered) -> None:
    if not turn.run.status.terminal:
        # one that comes again changes nothing, whichever of the two groups has that slot
        news = [offer for offer in event.offers if not turn.run.has_slot(offer.allocation_id)]
        hot_spare.offered(turn, news)


def _task_manager_gone(turn: Turn, event: ev.TaskManagerGone) -> None:
    where = event.task_manager_id
    hot_spare.task_manager_gone(turn, where)
    turn.active, had_slots = turn.active.task_manager_gone(where)
    if had_slots:
        turn.wait_anew()
        losses.lose(turn, where, TaskManagerLost(f"TaskManager {where} is lost: {event.reason}"))


def _slot_lost(turn: Turn, event: ev.SlotLost) -> None:
    turn.spare, _, ended = turn.spare.without_slots([event.allocation_id])
    turn.stop(ended)
    turn.active, dropped, ended = turn.active.without_slots([event.allocation_id])
    turn.stop(ended)
    for slot in dropped:
        turn.wait_anew()
        where = slot.task_manager_id
        error = SlotUnavailable(f"slot {slot.slot_index} of {where} is lost: {event.reason}")
        losses.lose(turn, where, error)


def _refused(turn: Turn, event: ev.SlotsRefused) -> None:
    if not hot_spare.refused(turn):
        losses.slots_refused(turn, event.message)


def _outlook_changed(turn: Turn, event: ev.OutlookChanged) -> None:
    turn.run = replace(turn.run, outlook=event.text)


def _diagnosed(turn: Turn, event: ev.TaskManagerDiagnosed) -> None:
    record = turn.run.record.diagnosed(event.task_manager_id, event.text)
    turn.run = replace(turn.run, record=record)


def _executor_ended(turn: Turn, event: ev.ExecutorEnded) -> None:
    report = event.report
    how = ended_by(report.exit_status, report.output_tail)
    if turn.active.has_driver(report.driver_id):
        losses.executor_gone(turn, report.executor_id, how)
    elif turn.spare.has_driver(report.driver_id):
        hot_spare.executor_gone(turn, report.executor_id, how)


def _start_failed(turn: Turn, event: ev.ExecutorStartFailed) -> None:
    is_active = turn.active.has_driver(event.driver_id)
    group = turn.active if is_active else turn.spare
    record = group.executors.find(event.executor_id)
    if record is None or not group.has_driver(event.driver_id):
        return  # of a driver or a slot that is gone
    error, where = event.error, record.task_manager_id
    if isinstance(error, (SlotUnavailable, CallSuspended)):
        # its predecessor is still ending, or the TaskManager was not even asked, as it answers nobody: it
        # does again, or the slot is lost and we will hear of it
        group = replace(group, retries=(*group.retries, (event.executor_id, turn.at.ms + CALL_RETRY_MS)))
        if is_active:
            turn.active = group
        else:
            turn.spare = group
        return
    turn.do(StopExecutor(record.address, record.executor_id))  # after a time-out it may be there
    if error.retryable or isinstance(error, RpcError):
        gone = losses.executor_gone if is_active else hot_spare.executor_gone
        gone(turn, event.executor_id, f"could not be started: {error}")
    elif is_active:
        losses.fail(turn, error, where, RestartLevel.DRIVER)
    else:
        hot_spare.lost(turn, DriverLost(f"TaskManager {where} starts no executor: {error}"))


def _spare_place_known(turn: Turn, event: ev.SparePlaceKnown) -> None:
    turn.run = replace(turn.run, spare_place_awaited=event.awaited, spare_misplaced=event.misplaced)


# --- time ---------------------------------------------------------------------


def _time_passed(turn: Turn, event: ev.TimePassed) -> None:
    for timer in Timer:
        if turn.run.timers.get(timer, turn.at.ms + 1) <= turn.at.ms:
            turn.disarm(timer)
            _DUE[timer](turn)
    if not turn.run.ended:
        _look_for_silent_drivers(turn)
    wait_ends_ms = turn.run.wait.check_at_ms
    if turn.run.waits_for_slots and wait_ends_ms != NEVER_MS and wait_ends_ms <= turn.at.ms:
        losses.slots_wait_is_over(turn)
    if turn.run.ended:
        return
    if 0 <= turn.run.spare_life.retry_ms <= turn.at.ms:
        turn.live(spare_life.PauseOver(turn.at.ms))
    turn.active, again = turn.active.trying_again(turn.at.ms)
    turn.start(turn.active, again)
    turn.spare, again = turn.spare.trying_again(turn.at.ms)
    turn.start(turn.spare, again)


def _look_for_silent_drivers(turn: Turn) -> None:
    settings = turn.run.settings
    heartbeat_ms, start_ms = settings.driver_heartbeat_timeout_ms, settings.driver_registration_timeout_ms
    for driver in (turn.active.driver, turn.spare.driver):
        silent_ms = None if driver is None else driver.silent_ms(heartbeat_ms, start_ms)
        if driver is None or silent_ms is None or turn.at.ms < silent_ms:
            continue
        registered = driver.registration is not None
        what = "has not reported" if registered else "did not register"
        limit_s = (heartbeat_ms if registered else start_ms) // 1000
        error = DriverLost(f"driver {driver.driver_id} {what} for {limit_s} s; see its log")
        if turn.spare.has_driver(driver.driver_id):
            hot_spare.lost(turn, error)
        elif turn.active.has_driver(driver.driver_id):
            losses.fail(turn, error, driver.driver_id, RestartLevel.DRIVER)


def _may_prepare(turn: Turn) -> None:
    turn.run = replace(turn.run, may_prepare=True)


_DUE: Final[dict[Timer, Callable[[Turn], None]]] = {
    Timer.LEASE_GRACE: drivers.without_lease,
    Timer.ADOPTION: drivers.adoption_over,
    Timer.LEFT_SPARE: lambda _turn: None,  # now the job's own driver may be launched
    Timer.LEFT_SLOTS: losses.all_offered,
    Timer.RESTART: losses.restart,
    Timer.CALL_AGAIN: drivers.call_again,
    Timer.FORCED_END: lambda turn: endings.force_end(turn, "task.cancellation.timeout is over"),
    Timer.LEND: hot_spare.lend,
    Timer.PREPARE: _may_prepare,
}

# --- the lead -------------------------------------------------------------------


def _lead_in_doubt(turn: Turn, event: ev.LeadInDoubt) -> None:
    turn.run = replace(turn.run, in_doubt=True)


def _lead_confirmed(turn: Turn, event: ev.LeadConfirmed) -> None:
    until_ms = turn.at.ms + turn.run.settings.adoption_timeout_ms
    turn.run = replace(turn.run, in_doubt=False, doubtful_until_ms=until_ms)
    # silence until now means nothing
    turn.active = turn.active.heard(turn.at.ms)
    turn.spare = turn.spare.heard(turn.at.ms)


_RULES: Final[dict[type, Callable[[Turn, Any], None]]] = {
    ev.Started: _started,
    ev.CancelRequested: lambda turn, _event: endings.cancel(turn),
    ev.TimePassed: _time_passed,
    ev.LeadInDoubt: _lead_in_doubt,
    ev.LeadConfirmed: _lead_confirmed,
    ev.HolderFound: drivers.holder_found,
    ev.HolderChanged: drivers.holder_changed,
    ev.StateFound: _state_found,
    ev.StateUnreadable: _state_unreadable,
    ev.CheckpointsUnusable: _checkpoints_unusable,
    ev.CommitsFound: _commits_found,
    ev.AllRecorded: drivers.all_recorded,
    ev.DriverRegistered: drivers.registered,
    ev.DriverReported: drivers.reported,
    ev.DriverExited: drivers.exited,
    ev.DriverWaits: drivers.start_waits,
    ev.DeployFailed: drivers.deploy_failed,
    ev.CancelFailed: drivers.cancel_failed,
    ev.SparePlaceKnown: _spare_place_known,
    ev.SlotsOffered: _offered,
    ev.SlotLost: _slot_lost,
    ev.TaskManagerGone: _task_manager_gone,
    ev.TaskManagerDiagnosed: _diagnosed,
    ev.SlotsRefused: _refused,
    ev.OutlookChanged: _outlook_changed,
    ev.ExecutorEnded: _executor_ended,
    ev.ExecutorStartFailed: _start_failed,
}
