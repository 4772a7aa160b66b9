"""One event's work on a job: the job as it becomes, and the effects as they are decided.

The moves that several rules share.  Which of them is made when is decided by
:mod:`yarnflow.core.job_run.decider` and, of the hot spare, :mod:`yarnflow.core.job_run.spare`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from yarnflow.core.job.record import Changed
from yarnflow.core.job_run import spare_life
from yarnflow.core.job_run.driver_group import Driver, DriverGroup
from yarnflow.core.job_run.effects import (
    DeclareSlots,
    DismissDriver,
    Effect,
    KeepDriver,
    KillDriver,
    Say,
    Show,
    StartExecutor,
    StopExecutor,
)
from yarnflow.core.job_run.events import Stamp
from yarnflow.core.job_run.model import JobRun, Timer, with_timer
from yarnflow.core.resources.executor_pool import ExecutorRecord
from yarnflow.core.resources.scheduling import SlotWait


class Turn:
    """Lives for one event only.

    Parameters
    ----------
    run : JobRun
        As it was.
    at : Stamp
        The event's.
    """

    def __init__(self, run: JobRun, at: Stamp) -> None:
        self.run = run
        self.at = at
        self.effects: list[Effect] = []

    @property
    def active(self) -> DriverGroup:
        """The group that runs the job."""
        return self.run.active

    @active.setter
    def active(self, group: DriverGroup) -> None:
        self.run = replace(self.run, active=group)

    @property
    def spare(self) -> DriverGroup:
        """The hot spare's group."""
        return self.run.spare

    @spare.setter
    def spare(self, group: DriverGroup) -> None:
        self.run = replace(self.run, spare=group)

    # --- telling ---

    def do(self, effect: Effect) -> None:
        """Have something done."""
        self.effects.append(effect)

    def say(self, text: str, is_warning: bool = False) -> None:
        """Have something logged."""
        self.effects.append(Say(text, is_warning))

    def enter(self, changed: Changed) -> None:
        """The record after a step of the job's machine; others see each status, however short."""
        record, changes = changed
        self.run = replace(self.run, record=record)
        self.effects.extend(changes)
        if changes:
            self.do(Show(self.run.details(self.at)))

    def live(self, event: spare_life.SpareEvent) -> None:
        """A step of the hot spare's machine."""
        life, _ = spare_life.MACHINE.step(self.run.spare_life, event)
        self.run = replace(self.run, spare_life=life)

    # --- time ---

    def arm(self, timer: Timer, due_ms: int) -> None:
        """This is due then, and not at any other time."""
        self.run = with_timer(self.run, timer, due_ms)

    def disarm(self, timer: Timer) -> None:
        """This is not due any more."""
        if timer in self.run.timers:
            self.run = with_timer(self.run, timer, None)

    # --- slots ---

    def set_wait(self, wait: SlotWait) -> None:
        """The wait for slots, with what the job has of them."""
        self.run = replace(self.run, wait=wait.with_slots(len(self.active.slots.slots), self.at.ms))

    def wait_anew(self) -> None:
        """A wait for what is missing begins."""
        self.set_wait(self.run.wait.waiting(self.at.ms))

    def declare(self, slots: int) -> None:
        """The job wants so many slots in all."""
        if slots != self.run.declared:
            self.run = replace(self.run, declared=slots)
            self.do(DeclareSlots(slots))

    def declare_own(self) -> None:
        """The job wants its own slots, if it has not said so yet."""
        if not self.run.declared:
            self.declare(self.active.slots.required)
            self.wait_anew()

    # --- drivers and executors; each returns the group as it becomes ---

    def without_driver(self, group: DriverGroup, kill: bool = True) -> DriverGroup:
        """The group's driver ends at once, or has ended; its executors are told, the slots stay."""
        if group.driver is not None and kill:
            self.do(KillDriver(group.driver.driver_id))
        after, orphans = group.without_driver()
        self.stop(orphans)
        return after

    def dismissed(self, group: DriverGroup) -> DriverGroup:
        """The group's driver leaves in good order."""
        if group.driver is None or group.driver.registration is None:
            return self.without_driver(group)
        self.do(DismissDriver(group.driver.driver_id, group.driver.registration.address))
        return self.without_driver(group, kill=False)

    def kept(self, group: DriverGroup, driver: Driver, address: str) -> DriverGroup:
        """The group's driver leaves for another job, with its executors."""
        self.do(KeepDriver(driver.driver_id, address, driver.jobs_before + 1, self.run.next_number))
        return group.without_driver()[0]

    def starting(self, group: DriverGroup) -> DriverGroup:
        """Executors are started on the group's slots that have none."""
        after, started = group.starting_missing(self.at.ms, self.run.next_number)
        self.start(after, started)
        return after

    def start(self, group: DriverGroup, records: Iterable[ExecutorRecord]) -> None:
        """Ask for executors that the group has planned."""
        for record in records:
            descriptor = group.descriptor(record, self.run.executor_slots)
            if descriptor is not None:
                self.do(StartExecutor(record.address, record.task_manager_id, descriptor))

    def stop(self, records: Iterable[ExecutorRecord]) -> None:
        """End executors; their TaskManagers free what they held in any case."""
        for record in records:
            self.do(StopExecutor(record.address, record.executor_id))

    # --- the job's driver ---

    def lose_driver(self, kill: bool = True) -> None:
        """End the job's driver for good, or note its end; its executors end with it, the slots stay."""
        self.active = self.without_driver(self.active, kill)
        self.disarm(Timer.LEASE_GRACE)
        self.disarm(Timer.CALL_AGAIN)
        self.set_wait(self.run.wait.driver_lost())
