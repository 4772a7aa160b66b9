"""All that is known of one job while a master runs it: its drivers, slots, executors and history.

A value that is only read here; what becomes of it is decided by :mod:`yarnflow.core.job_run.decider`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum

from yarnflow.core.checkpoint.messages import RestoreSettings
from yarnflow.core.ids import AllocationId, DriverId, ExecutorId, JobId
from yarnflow.core.job.failures import FailurePolicy
from yarnflow.core.job.record import JobRecord
from yarnflow.core.job.restart import RestartStrategy
from yarnflow.core.job_run.driver_group import DriverGroup
from yarnflow.core.job_run.events import Adopted, Stamp, StartKind
from yarnflow.core.job_run.kept_drivers import KeptDriver
from yarnflow.core.job_run.spare_life import SpareLife
from yarnflow.core.messages import ErrorInfo, JobDetails, ProgramKind
from yarnflow.core.resources.scheduling import NEVER_MS, SchedulerSettings, SlotWait
from yarnflow.core.resources.slot_pool import SlotPool
from yarnflow.core.states import JobStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSettings:
    """What one job's decider is told of its options."""

    restart_strategy: RestartStrategy
    scheduler: SchedulerSettings
    cancellation_timeout_ms: int
    driver_heartbeat_timeout_ms: int
    driver_registration_timeout_ms: int
    #: how long the driver of an earlier master may take to report to this one
    adoption_timeout_ms: int = 20_000
    #: have a second driver ready, with executors on as many slots again
    hot_spare: bool = False
    #: a driver whose job has finished, and that was never in trouble, is kept for another job
    keeps_driver: bool = False
    #: before a lost executor is replaced; a crash loop must not spin
    executor_replacement_delay_ms: int = 200
    #: patience with an executor the driver does not see any more although nobody reported its end
    executor_missing_ms: int = 10_000
    #: patience with an executor that has never come
    executor_start_ms: int = 120_000


class Timer(Enum):
    """What is due at some time, in the order in which it is seen to when several are."""

    #: the lease vanished, and the end of the driver's process has not explained it
    LEASE_GRACE = "LEASE_GRACE"
    #: the driver of the master before has not registered
    ADOPTION = "ADOPTION"
    #: a hot spare of the master before will not come any more
    LEFT_SPARE = "LEFT_SPARE"
    #: slots of a hot spare that stepped in will not come any more
    LEFT_SLOTS = "LEFT_SLOTS"
    #: the next attempt begins
    RESTART = "RESTART"
    #: the driver's next call: the last one was not made, as the driver had not answered before
    CALL_AGAIN = "CALL_AGAIN"
    #: a cancel takes too long
    FORCED_END = "FORCED_END"
    #: the hot spare gives the job the slots it lacks
    LEND = "LEND"
    #: the job runs, and a hot spare may be started beside it
    PREPARE = "PREPARE"


@dataclass(frozen=True, slots=True)
class JobRun:
    """One job under one master; see :func:`yarnflow.core.job_run.decider.handle`."""

    job_id: JobId
    kind: ProgramKind
    settings: RunSettings
    start: StartKind
    record: JobRecord
    policy: FailurePolicy
    #: runs the job, or will
    active: DriverGroup
    #: could go on with it; its driver is never deployed
    spare: DriverGroup
    spare_life: SpareLife
    wait: SlotWait
    #: driver of another job, which is this one's as soon as it needs one
    kept: KeptDriver | None = None
    #: rises with each deployment, over all drivers
    attempt: int = 1
    timers: Mapping[Timer, int] = field(default_factory=dict)
    #: slots the ResourceManager was asked for; 0 = it was not asked yet
    declared: int = 0
    #: which of the offered slots are the job's own is known: none of an earlier master's is to come
    settled: bool = True
    #: which state the job starts from is known
    state_known: bool = False
    state: RestoreSettings | None = None
    #: it cannot be known
    state_error: ErrorInfo | None = None
    #: what to say if the driver finds no state; empty = what the driver says
    note_if_gone: str = ""
    #: a user wants the end, but what runs is not known yet
    cancel_wanted: bool = False
    #: everything was given back
    ended: bool = False
    #: what missing slots wait for
    outlook: str = ""
    #: why the cluster can never give all slots, and that it cannot give the hot spare's
    refusal: str = ""
    spare_refused: bool = False
    lease_holder: DriverId | None = None
    in_doubt: bool = False
    #: until then it may come out what an outage of ZooKeeper has cost
    doubtful_until_ms: int = 0
    #: the job has run for a while: a hot spare beside it costs it nothing
    may_prepare: bool = False
    #: each of its queries has committed something since it began to run
    job_commits: bool = False
    spare_place_awaited: bool = False
    spare_misplaced: DriverId | None = None
    #: foreign executors that were told to end, with the addresses of their TaskManagers
    evicted: frozenset[tuple[str, ExecutorId]] = frozenset()
    #: executors have at least this number: those had lower ones
    first_number: int = 0

    @classmethod
    def create(
        cls,
        job_id: JobId,
        kind: ProgramKind,
        settings: RunSettings,
        start: StartKind,
        record: JobRecord,
        slots_required: int,
        at_ms: int,
    ) -> JobRun:
        """A job that has just come to this master; the time is that of :attr:`Stamp.ms`."""
        spare_slots = slots_required if settings.hot_spare else 0
        return cls(
            job_id,
            kind,
            settings,
            start,
            record,
            FailurePolicy(settings.restart_strategy),
            active=DriverGroup(SlotPool(job_id, slots_required)),
            spare=DriverGroup(SlotPool(job_id, spare_slots)),
            spare_life=SpareLife.create(job_id, at_ms),
            wait=SlotWait(settings.scheduler, slots_required, since_ms=at_ms),
            settled=not (settings.hot_spare and isinstance(start, Adopted)),
        )

    # --- reading; from any thread, as it is a value ---

    @property
    def status(self) -> JobStatus:
        """The job's status."""
        return self.record.status

    @property
    def is_driver_unknown(self) -> bool:
        """Whose driver runs the job cannot be said yet."""
        return isinstance(self.start, Adopted) and self.status is JobStatus.INITIALIZING

    @property
    def next_number(self) -> int:
        """New executors have at least this number: numbers rise over all drivers of the job."""
        return max(
            self.first_number, self.active.executors.next_number, self.spare.executors.next_number
        )

    def knows(self, driver_id: DriverId) -> bool:
        """Whether this driver is the job's, or its hot spare."""
        return self.active.has_driver(driver_id) or self.spare.has_driver(driver_id)

    def address_of(self, driver_id: DriverId) -> str:
        """Where the job's driver, or its hot spare, is called; empty = it has not registered."""
        for group in (self.active, self.spare):
            if group.has_driver(driver_id) and group.registration is not None:
                return group.registration.address
        return ""

    def has_slot(self, allocation_id: AllocationId) -> bool:
        """Whether this slot is the job's, or its hot spare's."""
        slots = (*self.active.slots.slots, *self.spare.slots.slots)
        return any(slot.allocation_id == allocation_id for slot in slots)

    @property
    def executor_slots(self) -> int:
        """All that executors of the job and its hot spare are for; 0 = another job may have them after it."""
        return 0 if self.settings.keeps_driver else self.active.slots.required + self.spare.slots.required

    @property
    def is_stranded(self) -> bool:
        """A job whose query has no executor is not RUNNING, whatever its driver says."""
        return self.status is JobStatus.RUNNING and not self.active.executors.any_registered

    def deadline_ms(self, at_ms: int) -> int | None:
        """When :class:`~yarnflow.core.job_run.events.TimePassed` is due next; None = never."""
        if self.ended:
            return None
        due = [*self.timers.values()]
        for group in (self.active, self.spare):
            due += [due_ms for _, due_ms in group.retries]
            if group.driver is not None:
                silent_ms = group.driver.silent_ms(
                    self.settings.driver_heartbeat_timeout_ms, self.settings.driver_registration_timeout_ms
                )
                due += [] if silent_ms is None else [silent_ms]
            if group.not_before_ms > at_ms:
                due.append(group.not_before_ms)
        if self.spare_life.retry_ms >= 0:
            due.append(self.spare_life.retry_ms)
        if self.waits_for_slots and self.wait.check_at_ms != NEVER_MS:
            due.append(self.wait.check_at_ms)
        return min(due, default=None)

    @property
    def waits_for_slots(self) -> bool:
        """How long slots may be missing is limited."""
        return self.declared > 0 and self.record.wants_executors

    # --- what others see ---

    def details(self, at: Stamp) -> JobDetails:
        """The snapshot."""
        slots = self.active.slots
        return self.record.details(len(slots.slots), slots.required, self._waiting_for(at.ms))

    @property
    def outlook_note(self) -> str:
        """What missing slots wait for, in brackets; empty when nothing is known."""
        return f" ({self.outlook})" if self.outlook else ""

    def _waiting_for(self, at_ms: int) -> str:
        if not self.record.wants_executors:
            return ""
        if Timer.RESTART in self.timers:
            return "restart delay"
        slots = self.active.slots
        missing = ""
        if not slots.is_complete:
            missing = f"slots: {len(slots.slots)} of {slots.required}{self.outlook_note}"
        if self.status is JobStatus.RUNNING:
            return missing or self._spare_waits_for()
        # the adaptive scheduler begins with fewer, so what is missing may not be what holds it up
        if missing and not self.wait.may_run(at_ms):
            return missing
        if self.active.registration is None:
            return "driver"
        if not self.active.executors.all_registered:
            return f"executors: {self.active.executors_seen}"
        return "queries to start"

    def _spare_waits_for(self) -> str:
        if not self.spare_life.slots_asked:
            return ""
        spare = self.spare
        if spare.slots.missing:
            why = " (the cluster has no more)" if self.spare_refused else self.outlook_note
            return f"the hot spare's slots: {len(spare.slots.slots)} of {spare.slots.required}{why}"
        if spare.driver is None or spare.driver.registration is None:
            return "the hot spare's driver"
        if not spare.executors.all_registered:
            return f"the hot spare's executors: {spare.executors_seen}"
        return "" if spare.driver.rehearsed else "the hot spare's rehearsal"


def with_timer(run: JobRun, timer: Timer, due_ms: int | None) -> JobRun:
    """The same with this timer due then, or not at all."""
    timers = {each: at_ms for each, at_ms in run.timers.items() if each is not timer}
    return replace(run, timers=timers if due_ms is None else {**timers, timer: due_ms})
