"""The hot spare of a job: when there is one, which slots are its, and what its losses mean.

A loss means another one, and nothing else.  When it steps in is decided by
:mod:`yarnflow.core.job_run.losses`; how far it is, by :mod:`yarnflow.core.job_run.spare_life`.

Slots: the job's own come first.  Only when it has all of them are as many again asked for; when it
loses some and gets no others, the hot spare's are given to it.

Flink has no counterpart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from yarnflow.core.ids import ExecutorId, TaskManagerId
from yarnflow.core.job.failures import ended_by
from yarnflow.core.job_run import spare_life
from yarnflow.core.job_run.driver_group import MAX_FAILED_STARTS, Driver
from yarnflow.core.job_run.effects import LaunchDriver, StopExecutor
from yarnflow.core.job_run.events import DriverExited
from yarnflow.core.job_run.model import JobRun, Timer
from yarnflow.core.job_run.spare_life import SpareState
from yarnflow.core.job_run.turn import Turn
from yarnflow.core.messages import DriverPhase, DriverRegistration, DriverReport, SlotOffer
from yarnflow.core.resources.executor_pool import number_of
from yarnflow.core.states import JobStatus
from yarnflow.errors import DriverLost, YarnflowError

#: the ResourceManager is quicker than that when it has a free slot, and the hot spare keeps its own
LEND_AFTER_MS: Final = 300
#: a job that has committed something since it began to run has the processors for itself so long
PREPARE_AFTER_MS: Final = 5_000
#: the same for one that has begun to run, and commits nothing: perhaps there is no input
PREPARE_WITHOUT_COMMIT_MS: Final = 30_000


# --- its life -----------------------------------------------------------------


def advance(turn: Turn) -> None:
    """Do whatever has become possible."""
    run = turn.run
    if not run.settings.hot_spare or run.ended:
        return
    running = run.status is JobStatus.RUNNING
    _note_running(turn, running)
    complete = turn.active.slots.is_complete
    if complete and running:  # what the job's adopted driver has is known, or does not matter any more
        turn.run = replace(turn.run, settled=True)
    if complete and turn.run.settled and not run.spare_life.slots_asked and not run.spare_place_awaited:
        # not before: slots of a TaskManager are given away together, and these are for others
        turn.live(spare_life.SlotsAsked(turn.at.ms))
        turn.declare(2 * turn.spare.slots.required)
    if turn.run.may_prepare and turn.run.settled and turn.spare.slots.slots:
        _prepare(turn)
    evaluate(turn)


def _note_running(turn: Turn, running: bool) -> None:
    if not running:
        turn.disarm(Timer.PREPARE)
        turn.run = replace(turn.run, may_prepare=False, job_commits=False)
    elif not turn.run.may_prepare and Timer.PREPARE not in turn.run.timers:
        turn.arm(Timer.PREPARE, turn.at.ms + PREPARE_WITHOUT_COMMIT_MS)


def job_commits(turn: Turn) -> None:
    """Each query of the job reports a batch."""
    due_ms = turn.run.timers.get(Timer.PREPARE)
    if due_ms is not None and not turn.run.job_commits:
        turn.run = replace(turn.run, job_commits=True)
        turn.arm(Timer.PREPARE, min(due_ms, turn.at.ms + PREPARE_AFTER_MS))


def _prepare(turn: Turn) -> None:
    _evict(turn)
    driver = turn.spare.driver
    if driver is None and turn.run.spare_life.state is not SpareState.PAUSE:
        turn.live(spare_life.SpareLaunched(turn.at.ms))
        turn.spare = replace(turn.spare, driver=Driver(turn.at.new_driver_id, turn.at.ms))
        turn.do(LaunchDriver(turn.at.new_driver_id, hot_spare_of=turn.active.driver_id))
        turn.say(f"{name_of(turn.run)} is being prepared: driver {turn.at.new_driver_id}.")
    elif driver is not None and driver.registration is not None:
        if driver.driver_id == turn.run.spare_misplaced:
            who = name_of(turn.run)
            turn.say(f"{who} moves: another master could have it, as this one has the driver.")
            turn.live(spare_life.SpareMoved(turn.at.ms))
            turn.spare = turn.without_driver(turn.spare)
        else:
            turn.spare = turn.starting(turn.spare)


def _evict(turn: Turn) -> None:
    """End executors of other drivers on these slots: an earlier master's hot spare is gone."""
    for address, executor_id in turn.spare.foreign_executors():
        if (address, executor_id) not in turn.run.evicted:
            number = max(turn.run.first_number, number_of(executor_id) + 1)
            evicted = turn.run.evicted | {(address, executor_id)}
            turn.run = replace(turn.run, evicted=evicted, first_number=number)
            turn.do(StopExecutor(address, executor_id))


def evaluate(turn: Turn) -> bool:
    """Note whether it could go on with the job at once; returns that."""
    state, warm = turn.run.spare_life.state, turn.spare.could_run_at_once
    if state is SpareState.EXECUTORS and warm:
        turn.live(spare_life.SpareWarm(turn.at.ms))
        if turn.run.spare_life.slots_asked:
            turn.say(f"{name_of(turn.run)} is ready: driver {turn.spare.driver_id}.")
    elif state is SpareState.WARM and not warm:
        turn.live(spare_life.SpareCooled(turn.at.ms))
    return warm


def end(turn: Turn) -> None:
    """The job is over."""
    turn.live(spare_life.JobOver(turn.at.ms))
    turn.spare = turn.dismissed(turn.spare)


def name_of(run: JobRun) -> str:
    """The subject of a line for the log."""
    return f"The hot spare of job {run.record.name}"


# --- its driver -----------------------------------------------------------------


def adopt(turn: Turn, registration: DriverRegistration) -> bool:
    """Take over the hot spare of an earlier master; whether there was none and one is wanted."""
    if not turn.run.settings.hot_spare or turn.spare.driver is not None:
        return False
    turn.say(f"{name_of(turn.run)} is driver {registration.driver_id}, of the master before.")
    driver = Driver(registration.driver_id, turn.at.ms, adopted=True).registered(registration, turn.at.ms)
    turn.spare = replace(turn.spare, driver=driver).adopting_executors(turn.at.ms)
    turn.live(spare_life.SpareReady(turn.at.ms))
    return True


def registered(turn: Turn, driver: Driver, registration: DriverRegistration) -> None:
    """Its driver can take executors now."""
    turn.spare = replace(turn.spare, driver=driver.registered(registration, turn.at.ms))
    if turn.run.spare_life.state is SpareState.DRIVER:
        turn.live(spare_life.SpareReady(turn.at.ms))


def reported(turn: Turn, driver: Driver, report: DriverReport) -> None:
    """Heartbeat of its driver."""
    settings, rehearsed = turn.run.settings, spare_life.REHEARSED in report.milestones_ms
    group = replace(turn.spare, driver=replace(driver, heard_ms=turn.at.ms, rehearsed=rehearsed))
    turn.spare, overdue = group.seen_by_driver(
        report.executor_ids, turn.at.ms, settings.executor_missing_ms, settings.executor_start_ms
    )
    turn.stop(overdue)
    for record in overdue:
        executor_gone(turn, record.executor_id, "is not seen by its driver")
    if report.phase is DriverPhase.FAILED and turn.spare.driver is not None:
        message = report.error.message if report.error else "it failed without saying why"
        lost(turn, DriverLost(message))


def exited(turn: Turn, event: DriverExited) -> None:
    """Its driver process has ended."""
    lost(turn, DriverLost(f"it {ended_by(event.exit_status, event.output_tail)}"), kill=False)


def lost(turn: Turn, error: YarnflowError, kill: bool = True) -> None:
    """The next one, after a while: the job itself is not concerned."""
    turn.live(spare_life.SpareLost(turn.at.ms))
    delay_ms = turn.run.spare_life.retry_ms - turn.at.ms
    who = name_of(turn.run)
    turn.say(f"{who} is lost: {error}; another one is prepared in {delay_ms} ms.", is_warning=True)
    turn.spare = turn.without_driver(turn.spare, kill)


def executor_gone(turn: Turn, executor_id: ExecutorId, reason: str) -> None:
    """An executor ended, or could not be started."""
    record = turn.spare.executors.find(executor_id)
    if record is None:
        return
    turn.say(f"{name_of(turn.run)}: executor {executor_id} on {record.task_manager_id} {reason}.")
    resume_ms = turn.at.ms + turn.run.settings.executor_replacement_delay_ms
    turn.spare = turn.spare.without_executor(executor_id, resume_ms)
    if turn.spare.given_up:
        what = f"{MAX_FAILED_STARTS} executors in a row ended before they registered"
        lost(turn, DriverLost(f"{what}, the last one {reason}"))


def step_in(turn: Turn) -> None:
    """Go on with the job, which has no driver; what it had else is for the next hot spare."""
    turn.say(f"{name_of(turn.run)}, driver {turn.spare.driver_id}, steps in.", is_warning=True)
    turn.live(spare_life.SpareStepped(turn.at.ms))
    turn.run = replace(turn.run, active=turn.run.spare, spare=turn.run.active)
    _share(turn, [*turn.active.slots.slots, *turn.spare.slots.slots])


# --- its slots ------------------------------------------------------------------


def offered(turn: Turn, offers: Sequence[SlotOffer]) -> None:
    """The job takes what it lacks, and the hot spare of the rest what that lacks."""
    own, others = _sorted(turn.run, offers)
    turn.active, accepted = turn.active.offered(own, turn.at.ms)
    turn.set_wait(turn.run.wait)
    left = [*others, *(offer for offer in own if offer.allocation_id not in accepted)]
    turn.spare, _ = turn.spare.offered(left, turn.at.ms)
    if turn.run.spare_life.slots_asked:  # more than was asked for may come after all
        turn.declare(max(turn.run.declared, _slots_there(turn.run)))


def _sorted(run: JobRun, offers: Sequence[SlotOffer]) -> tuple[Sequence[SlotOffer], Sequence[SlotOffer]]:
    """Which offers the job itself may take, and which only the hot spare.

    The slots of a running job's executors must not be taken for others: they would be ended.
    """
    if run.settled:
        return offers, ()
    driver_id = run.active.driver_id
    if driver_id is None:
        return (), ()  # not known yet; they are offered again
    mine = [offer for offer in offers if offer.runs_for(driver_id)]
    return mine, [offer for offer in offers if offer not in mine]


def gather(turn: Turn) -> None:
    """The job has a driver of an earlier master: it gets the slots with that driver's executors first.

    Others are the hot spare's until it is known that no more of these come.
    """
    driver_id = turn.active.driver_id
    slots = [*turn.spare.slots.slots, *turn.active.slots.slots]
    own = [slot for slot in slots if driver_id is not None and slot.runs_for(driver_id)]
    turn.active = turn.active.with_slots(own)
    left = [slot for slot in slots if slot not in turn.active.slots.slots]
    turn.spare = turn.spare.with_slots(left)
    _share(turn, [*turn.active.slots.slots, *(slot for slot in left if slot not in turn.spare.slots.slots)])


def _share(turn: Turn, wanted: Sequence[SlotOffer]) -> None:
    """The job has the first of these slots, as many as it needs; the hot spare the rest of all."""
    slots = [*turn.active.slots.slots, *turn.spare.slots.slots, *wanted]
    turn.active = turn.active.with_slots(wanted).adopting_executors(turn.at.ms)
    turn.spare = turn.spare.with_slots(slot for slot in slots if slot not in turn.active.slots.slots)
    turn.set_wait(turn.run.wait)


def fill(turn: Turn) -> None:
    """The job gets the slots that it lacks after a moment, unless others have come by then."""
    if turn.active.slots.is_complete or not turn.spare.slots.slots or not turn.run.settled:
        turn.disarm(Timer.LEND)
    elif Timer.LEND not in turn.run.timers:
        turn.arm(Timer.LEND, turn.at.ms + LEND_AFTER_MS)


def lend(turn: Turn) -> None:
    """Give slots to the job: those beside its others first, so that the two stay apart."""
    _evict(turn)  # they would be in the way
    beside = set(turn.active.slots.task_manager_ids)
    ordered = sorted(
        turn.spare.slots.slots,
        key=lambda slot: (slot.task_manager_id not in beside, slot.task_manager_id, slot.slot_index),
    )
    turn.active, lent = turn.active.offered(ordered, turn.at.ms)
    turn.spare, _, ended = turn.spare.without_slots(lent)
    turn.stop(ended)
    turn.set_wait(turn.run.wait)
    turn.say(f"{name_of(turn.run)} gives {len(lent)} of its slots to the job.")


def task_manager_gone(turn: Turn, task_manager_id: TaskManagerId) -> None:
    """A TaskManager is gone with everything on it."""
    turn.spare, had_slots = turn.spare.task_manager_gone(task_manager_id)
    if had_slots:
        turn.say(f"{name_of(turn.run)} has lost TaskManager {task_manager_id}.")


def refused(turn: Turn) -> bool:
    """The cluster can never give all the slots; whether that is a matter of the hot spare alone."""
    have, required = _slots_there(turn.run), turn.active.slots.required
    if not turn.run.spare_life.slots_asked:
        return False
    if have >= turn.run.declared:
        return True  # said before less was asked for
    if turn.run.declared <= required:
        return False
    count = len(turn.spare.slots.slots)
    turn.say(f"{name_of(turn.run)} has {count} slots: the cluster has no more.", is_warning=True)
    turn.run = replace(turn.run, spare_refused=True)
    turn.declare(max(required, have))
    return True


def _slots_there(run: JobRun) -> int:
    return len(run.active.slots.slots) + len(run.spare.slots.slots)
