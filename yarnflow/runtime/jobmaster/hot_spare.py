"""A second driver of a job, with executors on slots of their own, that can step in at once.

Decides when there is to be one, which of the job's slots are its, and what its loss means: another
one, and nothing else.  It is assigned and registered like any driver, but not deployed, and so has
no lease: two drivers that write cannot come of it.  When it steps in is decided by the JobMaster.
Used in the JobMaster's mailbox only, except :meth:`HotSpare.is_current`.

Slots: the job's own come first.  Only when it has all of them are as many again asked for; when it
loses some and gets no others, the hot spare's are given to it.

Flink has no counterpart.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Final

from yarnflow.core.ids import AllocationId, DriverId, ExecutorId, TaskManagerId
from yarnflow.core.messages import (
    DriverPhase,
    DriverRegistration,
    DriverReport,
    ExecutorExited,
    JobSubmission,
    SlotOffer,
)
from yarnflow.core.resources.executor_pool import number_of
from yarnflow.core.resources.slot_pool import SlotPool
from yarnflow.errors import DriverLost, YarnflowError
from yarnflow.runtime.driver.services import REHEARSED
from yarnflow.runtime.jobmaster.driver_process import DriverLink
from yarnflow.runtime.jobmaster.executor_fleet import MAX_FAILED_STARTS, ExecutorFleet
from yarnflow.runtime.jobmaster.failures import ended_by
from yarnflow.runtime.jobmaster.services import JobMasterServices, JobMasterSettings
from yarnflow.runtime.jobmaster.slots import JobSlots
from yarnflow.runtime.mailbox import Mailbox, TimerHandle

logger = logging.getLogger(__name__)

#: the ResourceManager is quicker than that when it has a free slot, and the hot spare keeps its own
LEND_AFTER_MS: Final = 300
#: a job that has committed something since it began to run has the processors for itself so long
PREPARE_AFTER_MS: Final = 5_000
#: the same for one that has begun to run, and commits nothing: perhaps there is no input
PREPARE_WITHOUT_COMMIT_MS: Final = 30_000
#: before a lost hot spare is replaced; doubled each time, until one is complete
_RETRY_MS: Final = 1_000
_MAX_RETRY_MS: Final = 60_000


class HotSpare:
    """One job's hot spare.

    Parameters
    ----------
    submission : JobSubmission
        Whose.
    slots_required : int
        How many slots it wants; 0 = there is to be no hot spare.
    settings, services, mailbox
        The JobMaster's.
    job_driver, job_slots
        What it may stand in for, and the slots that come first.
    on_changed : callable
        Something may have become possible.
    settled : bool
        False = a job that ran under an earlier master, of whose slots some may be the job's own;
        see :meth:`settle`.
    """

    def __init__(
        self,
        submission: JobSubmission,
        slots_required: int,
        settings: JobMasterSettings,
        services: JobMasterServices,
        mailbox: Mailbox,
        job_driver: DriverLink,
        job_slots: JobSlots,
        on_changed: Callable[[], None],
        settled: bool,
    ) -> None:
        self._submission = submission
        self._settings = settings
        self._services = services
        self._mailbox = mailbox
        self._job_driver = job_driver
        self._job_slots = job_slots
        self._on_changed = on_changed
        self._driver = DriverLink(
            submission, services, settings, mailbox, lambda error, _id: self._give_up(error), True
        )
        self._fleet = ExecutorFleet(
            submission.job_id, services, settings, mailbox, self._executor_gone, self._refused_there
        )
        self._pool = SlotPool(submission.job_id, slots_required)
        #: slots the ResourceManager is asked for, the job's own included
        self._declared = slots_required
        #: those of the hot spare were asked for
        self._asked = False
        self._refused = False
        self._settled = settled or not slots_required
        self._lend_at_ms: int | None = None
        #: the job runs, and may be disturbed from then on
        self._prepare_at_ms: int | None = None
        self._job_commits = False
        self._retry: TimerHandle | None = None
        self._failures = 0
        #: executors of others on the same TaskManagers may have lower numbers
        self._first_number = 0
        self._ended = False
        #: the driver has said that it is warm
        self._rehearsed = False
        #: executors of others that were told to end
        self._ended_foreign: set[tuple[str, ExecutorId]] = set()

    # --- reading ---

    @property
    def exists(self) -> bool:
        """There is one, or it is being started."""
        return self._driver.exists

    @property
    def ready(self) -> bool:
        """It could be deployed now."""
        return self._driver.registration is not None

    @property
    def complete(self) -> bool:
        """It could go on at once: driver and executors are there, and warm."""
        return (
            self.ready and not self._pool.missing and self._fleet.pool.all_registered and self._rehearsed
        )

    @property
    def next_number(self) -> int:
        """Executors of the job's own driver must have at least this one."""
        return max(self._fleet.pool.next_number, self._first_number)

    @property
    def waiting_for(self) -> str:
        """What it lacks; empty when nothing, or when none is wanted."""
        if not self._asked:
            return ""
        have, pool = len(self._pool.slots), self._fleet.pool
        if self._pool.missing:
            return f"the hot spare's slots: {have} of {self._pool.required}{self._reason}"
        if not self.ready:
            return "the hot spare's driver"
        if not pool.all_registered:
            seen = sum(record.registered for record in pool.records)
            return f"the hot spare's executors: {seen} of {len(pool.records)}"
        return "" if self._rehearsed else "the hot spare's rehearsal"

    @property
    def _reason(self) -> str:
        return " (the cluster has no more)" if self._refused else self._job_slots.reason

    def is_current(self, driver_id: DriverId) -> bool:
        """Whether this driver is the hot spare; from any thread."""
        return self._driver.is_current(driver_id)

    # --- slots ---

    def settle(self) -> None:
        """What the job's adopted driver has is known by now, or does not matter any more."""
        if not self._settled:
            self._settled = True
            self._mailbox.post(self._on_changed)

    def unsettle(self) -> None:
        """What a driver that was adopted just now has is not known yet."""
        self._settled = False

    def sort(self, offers: Sequence[SlotOffer]) -> tuple[Sequence[SlotOffer], Sequence[SlotOffer]]:
        """Which offers the job itself may take, and which only the hot spare.

        The slots of a running job's executors must not be taken for others: they would be ended.
        """
        if self._settled:
            return offers, ()
        driver_id = self._job_driver.driver_id
        if driver_id is None:
            return (), ()  # not known yet; they are offered again
        mine = [offer for offer in offers if offer.runs_for(driver_id)]
        return mine, [offer for offer in offers if offer not in mine]

    def offer(self, offers: Sequence[SlotOffer]) -> tuple[AllocationId, ...]:
        """Take what the job itself does not; returns the accepted allocations."""
        self._pool, accepted = self._pool.offer(offers)
        self._adopt_executors()
        # more than was asked for may come after all
        self._declare(max(self._declared, len(self._job_slots.offers) + len(self._pool.slots)))
        return accepted

    def task_manager_lost(self, task_manager_id: TaskManagerId) -> None:
        """A TaskManager is gone with everything on it."""
        self._pool, dropped = self._pool.task_manager_lost(task_manager_id)
        if dropped:
            self._fleet.task_manager_lost(task_manager_id)
            logger.info("%s has lost TaskManager %s.", self, task_manager_id)
            self._mailbox.post(self._on_changed)

    def slot_lost(self, allocation_id: AllocationId) -> None:
        """One slot is not the job's any more."""
        self._pool, dropped = self._pool.release([allocation_id])
        if dropped:
            self._fleet.slot_lost(allocation_id)
            self._mailbox.post(self._on_changed)

    def refused(self) -> bool:
        """The cluster can never give all the slots; whether that is a matter of the hot spare alone."""
        have = len(self._job_slots.offers) + len(self._pool.slots)
        if not self._asked:
            return False
        if have >= self._declared:
            return True  # said before less was asked for
        if self._declared <= self._pool.required:
            return False
        logger.warning("%s has %d slots: the cluster has no more.", self, len(self._pool.slots))
        self._refused = True
        self._declare(max(self._pool.required, have))
        self._on_changed()
        return True

    def fill(self) -> None:
        """Give the job the slots it lacks, unless others come in a moment."""
        if self._job_slots.is_complete or not self._pool.slots or not self._settled:
            self._lend_at_ms = None
            return
        now_ms = self._services.clock.monotonic_ms()
        if self._lend_at_ms is None:
            self._lend_at_ms = now_ms + LEND_AFTER_MS
            self._mailbox.schedule(LEND_AFTER_MS, self._on_changed)
        elif now_ms >= self._lend_at_ms:
            self._lend_at_ms = None
            self._lend()

    def _lend(self) -> None:
        """Those beside the job's others first, so that the two stay apart."""
        self._end_foreign_executors()  # they would be in the way
        beside = set(self._job_slots.task_manager_ids)
        ordered = sorted(
            self._pool.slots,
            key=lambda slot: (slot.task_manager_id not in beside, slot.task_manager_id, slot.slot_index),
        )
        lent = self._job_slots.offer(ordered)
        logger.info("%s gives %d of its slots to the job.", self, len(lent))
        self._pool, _ = self._pool.release(lent)
        for allocation_id in lent:
            self._fleet.slot_lost(allocation_id)

    def _declare(self, slots: int) -> None:
        if self._asked and slots != self._declared:
            self._declared = slots
            self._services.slots.declare_requirements(self._submission.job_id, slots)

    def _adopt_executors(self) -> None:
        """Take over what an earlier master started for the driver that was taken over."""
        if self._driver.driver_id is not None and self._driver.adopted:
            self._fleet.adopt(self._pool.slots, self._driver.driver_id)

    def _end_foreign_executors(self) -> None:
        """End executors of other drivers on these slots: an earlier master's hot spare is gone."""
        driver_id = self._driver.driver_id
        found = {
            (slot.address, slot.executor.executor_id)
            for slot in self._pool.slots
            if slot.executor is not None and slot.executor.driver_id != driver_id
        }
        for address, executor_id in sorted(found - self._ended_foreign):
            self._ended_foreign.add((address, executor_id))
            self._end_stranger(address, executor_id)

    def _end_stranger(self, address: str, executor_id: ExecutorId) -> None:
        gateway = self._services.gateways.task_executor(address)
        self._first_number = max(self._first_number, number_of(executor_id) + 1)
        self._services.effects.perform(
            self._mailbox,
            lambda: gateway.stop_executor(self._submission.job_id, executor_id),
            lambda _none: None,
            lambda _error: None,  # it ends with its driver
        )

    # --- its life ---

    def advance(self, running: bool, next_number: int) -> None:
        """Do whatever has become possible.

        Parameters
        ----------
        running : bool
            The job itself runs.
        next_number : int
            Executors must have at least this one: those of the job's own driver have lower ones.
        """
        if not self._pool.required or self._ended:
            return
        complete = self._job_slots.is_complete
        if complete and running:
            self.settle()
        awaits_standby = self._services.hot_spare_launcher.awaits_standby
        if not self._asked and complete and self._settled and not awaits_standby():
            # not before: slots of a TaskManager are given away together, and these are for others
            self._asked = True
            self._declare(2 * self._pool.required)
        if not self._may_prepare(running) or not self._settled or not self._pool.slots:
            return
        self._end_foreign_executors()
        registration = self._driver.registration
        if registration is not None:
            if self._misplaced(registration.driver_id):
                logger.info("%s moves: another master could have it, as this one has the driver.", self)
                self._replace(_RETRY_MS)
                return
            self._first_number = max(self._first_number, next_number)
            self._fleet.start_missing(self._pool.slots, registration, self._first_number)
        elif not self._driver.exists and self._retry is None:
            self._rehearsed = False
            self._driver.launch(self._job_driver.driver_id)
            logger.info("%s is being prepared: driver %s.", self, self._driver.driver_id)

    def _misplaced(self, driver_id: DriverId) -> bool:
        job_driver_id = self._job_driver.driver_id
        launcher = self._services.hot_spare_launcher
        return job_driver_id is not None and launcher.misplaced(driver_id, job_driver_id)

    def _may_prepare(self, running: bool) -> bool:
        if not running:
            self._prepare_at_ms, self._job_commits = None, False
            return False
        if self._prepare_at_ms is None:
            self._prepare_at_ms = self._in(PREPARE_WITHOUT_COMMIT_MS)
        return self._services.clock.monotonic_ms() >= self._prepare_at_ms

    def job_commits(self) -> None:
        """Each query of the job reports a batch."""
        if self._prepare_at_ms is not None and not self._job_commits:
            self._job_commits = True
            self._prepare_at_ms = min(self._prepare_at_ms, self._in(PREPARE_AFTER_MS))

    def _in(self, delay_ms: int) -> int:
        """Look again then."""
        at_ms = self._services.clock.monotonic_ms() + delay_ms
        self._mailbox.schedule(delay_ms, self._on_changed)
        return at_ms

    def adopt(self, registration: DriverRegistration) -> bool:
        """Take over the hot spare of an earlier master; whether there was none and one is wanted."""
        if not self._pool.required or self._ended or self._driver.exists:
            return False
        logger.info("%s is driver %s, of the master before.", self, registration.driver_id)
        self._driver.adopt(registration.driver_id)
        self._driver.register(registration)
        self._adopt_executors()
        self._on_changed()
        return True

    def give(self, driver_id: DriverId) -> tuple[SlotOffer, ...]:
        """Give up the slots on which executors of this driver run."""
        theirs = (slot.allocation_id for slot in self._pool.slots if slot.runs_for(driver_id))
        self._pool, given = self._pool.release(theirs)
        return given

    def register(self, registration: DriverRegistration) -> bool:
        """A driver can take executors now; whether it is the hot spare."""
        if not self.is_current(registration.driver_id):
            return False
        self._driver.register(registration)
        self._on_changed()
        return True

    def resumed(self) -> None:
        """Its silence until now means nothing."""
        self._driver.seen()

    def report(self, report: DriverReport) -> bool:
        """Heartbeat of a driver; whether it is the hot spare."""
        if not self.is_current(report.driver_id):
            return False
        before = self.waiting_for
        self._driver.seen()
        self._rehearsed = REHEARSED in report.milestones_ms
        for record in self._fleet.seen_by_driver(report.executor_ids):
            self._fleet.stop(record)
            self._executor_gone(record.executor_id, "is not seen by its driver")
        if report.phase is DriverPhase.FAILED:
            message = report.error.message if report.error else "it failed without saying why"
            self._give_up(DriverLost(message))
        elif not self.waiting_for:
            self._failures = 0
            if before:
                logger.info("%s is ready: driver %s.", self, report.driver_id)
        if before != self.waiting_for:
            self._on_changed()
        return True

    def executor_exited(self, report: ExecutorExited) -> None:
        """A TaskManager reports the end of an executor."""
        if self.is_current(report.driver_id):
            self._executor_gone(report.executor_id, ended_by(report.exit_status, report.output_tail))

    def exited(self, driver_id: DriverId, exit_status: int, output_tail: str) -> bool:
        """A driver process has ended; whether it was the hot spare."""
        if not self.is_current(driver_id):
            return False
        self._driver.gone()
        self._give_up(DriverLost(f"it {ended_by(exit_status, output_tail)}"))
        return True

    def end(self) -> None:
        """The job is over."""
        self._ended = True
        self._driver.dismiss()
        self._fleet.driver_lost()
        if self._retry is not None:
            self._retry.cancel()

    # --- stepping in ---

    def step_in(self, fleet: ExecutorFleet) -> ExecutorFleet:
        """Become the job's driver; what the job's old one had is for the next hot spare.

        Parameters
        ----------
        fleet : ExecutorFleet
            The job's, empty: its driver is gone.

        Returns
        -------
        ExecutorFleet
            The hot spare's, with its executors.
        """
        logger.warning("%s, driver %s, steps in.", self, self._driver.driver_id)
        self._job_driver.take_over(self._driver)
        freed = self._job_slots.exchange(self._pool.slots)
        self._pool, _ = SlotPool(self._submission.job_id, self._pool.required).offer(freed)
        stepped_in, self._fleet = self._fleet, fleet
        self._fleet.report_to(self._executor_gone, self._refused_there)
        return stepped_in

    # --- losses ---

    def _executor_gone(self, executor_id: ExecutorId, reason: str) -> None:
        record = self._fleet.forget(executor_id)
        if record is None or self._ended:
            return
        logger.info("%s: executor %s on %s %s.", self, executor_id, record.task_manager_id, reason)
        if self._fleet.given_up:
            what = f"{MAX_FAILED_STARTS} executors in a row ended before they registered"
            self._give_up(DriverLost(f"{what}, the last one {reason}"))
        else:
            self._mailbox.schedule(self._settings.executor_replacement_delay_ms, self._on_changed)

    def _refused_there(self, error: YarnflowError, task_manager_id: TaskManagerId) -> None:
        self._give_up(DriverLost(f"TaskManager {task_manager_id} starts no executor: {error}"))

    def _give_up(self, error: YarnflowError) -> None:
        """The next one, after a while: the job itself is not concerned."""
        if self._ended:
            return
        delay_ms = min(_RETRY_MS << min(self._failures, 10), _MAX_RETRY_MS)
        self._failures += 1
        logger.warning("%s is lost: %s; another one is prepared in %d ms.", self, error, delay_ms)
        self._replace(delay_ms)
        self._on_changed()

    def _replace(self, delay_ms: int) -> None:
        self._driver.drop()
        self._fleet.driver_lost()
        if self._retry is not None:
            self._retry.cancel()
        self._retry = self._mailbox.schedule(delay_ms, self._try_again)

    def _try_again(self) -> None:
        self._retry = None
        self._on_changed()

    def __str__(self) -> str:
        return f"The hot spare of job {self._submission.name}"
