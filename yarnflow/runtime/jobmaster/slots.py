"""The slots of one job, and its wait for those it lacks.

When to run with what there is and when to give up is decided by
:mod:`yarnflow.core.resources.scheduling`; what happens then by the JobMaster.  Used in the JobMaster's
mailbox only.

Flink counterparts: ``DeclarativeSlotPoolService``, ``PhysicalSlotRequestBulkChecker``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from yarnflow.core.ids import AllocationId, DriverId, TaskManagerId
from yarnflow.core.messages import JobSubmission, SlotOffer
from yarnflow.core.resources.scheduling import NEVER_MS, SchedulerSettings, SlotWait
from yarnflow.core.resources.slot_pool import SlotPool
from yarnflow.errors import SlotUnavailable
from yarnflow.runtime.jobmaster.services import JobMasterServices
from yarnflow.runtime.mailbox import Mailbox, TimerHandle

_ADAPTIVE_WAIT_KEY: Final = "jobmanager.adaptive-scheduler.submission.resource-wait-timeout"


class JobSlots:
    """What a job has of the slots it wants.

    Parameters
    ----------
    submission : JobSubmission
        Whose slots.
    required : int
        How many it wants.
    settings : SchedulerSettings
        How it waits.
    services, mailbox
        The JobMaster's.
    working : callable
        Whether anything of the job runs.
    on_runnable : callable
        Time has made the slots there are enough.
    on_given_up : callable
        ``(error, final)``: the wait is over without enough of them; final = waiting again is no use.
    """

    def __init__(
        self,
        submission: JobSubmission,
        required: int,
        settings: SchedulerSettings,
        services: JobMasterServices,
        mailbox: Mailbox,
        working: Callable[[], bool],
        on_runnable: Callable[[], None],
        on_given_up: Callable[[SlotUnavailable, bool], None],
    ) -> None:
        self._job_id = submission.job_id
        self._name = submission.name
        self._settings = settings
        self._services = services
        self._mailbox = mailbox
        self._working = working
        self._on_runnable = on_runnable
        self._on_given_up = on_given_up
        self._pool = SlotPool(self._job_id, required)
        self._wait = SlotWait(settings, required, since_ms=self._now_ms())
        self._timer: TimerHandle | None = None
        #: what the ResourceManager says all missing slots wait for
        self._outlook = ""
        self._refusal = ""

    @property
    def offers(self) -> tuple[SlotOffer, ...]:
        """The slots the job has."""
        return self._pool.slots

    @property
    def task_manager_ids(self) -> tuple[TaskManagerId, ...]:
        """The TaskManager of each slot."""
        return self._pool.task_manager_ids

    @property
    def is_complete(self) -> bool:
        """Nothing is missing."""
        return self._pool.is_complete

    @property
    def may_run(self) -> bool:
        """The slots there are should be used."""
        return self._wait.may_run(self._now_ms())

    @property
    def reason(self) -> str:
        """What missing slots wait for, in brackets; empty when nothing is known."""
        return f" ({self._outlook})" if self._outlook else ""

    @property
    def waiting_for(self) -> str:
        """What is missing; empty when nothing is."""
        if self.is_complete:
            return ""
        return f"slots: {len(self._pool.slots)} of {self._pool.required}{self.reason}"

    def declare(self) -> None:
        """Ask for the slots and begin to wait."""
        self._services.slots.declare_requirements(self._job_id, self._pool.required)
        self.wait()

    def wait(self) -> None:
        """Begin a new wait for what is missing."""
        self._set(self._wait.waiting(self._now_ms()))

    def offer(self, offers: Sequence[SlotOffer]) -> tuple[AllocationId, ...]:
        """Take what is missing; returns the accepted allocations."""
        self._pool, accepted = self._pool.offer(offers)
        self._set(self._wait.with_slots(len(self._pool.slots), self._now_ms()))
        return accepted

    def exchange(self, others: Sequence[SlotOffer]) -> tuple[SlotOffer, ...]:
        """Have other slots, and as many of the present ones as are missing then; returns the rest."""
        before = self._pool.slots
        self._pool, _ = SlotPool(self._job_id, self._pool.required).offer([*others, *before])
        self._set(self._wait.with_slots(len(self._pool.slots), self._now_ms()))
        kept = set(self._pool.slots)
        return tuple(slot for slot in before if slot not in kept)

    def give_all_but(self, driver_id: DriverId) -> tuple[SlotOffer, ...]:
        """Give up the slots on which executors of other drivers run, or none."""
        others = [slot.allocation_id for slot in self._pool.slots if not slot.runs_for(driver_id)]
        self._pool, given = self._pool.release(others)
        self._set(self._wait.with_slots(len(self._pool.slots), self._now_ms()))
        return given

    def task_manager_lost(self, task_manager_id: TaskManagerId) -> tuple[SlotOffer, ...]:
        """A TaskManager is gone; returns the slots the job had there."""
        self._pool, dropped = self._pool.task_manager_lost(task_manager_id)
        return self._dropped(dropped)

    def slot_lost(self, allocation_id: AllocationId) -> tuple[SlotOffer, ...]:
        """A slot is not the job's any more; returns it, if it was."""
        self._pool, dropped = self._pool.release([allocation_id])
        return self._dropped(dropped)

    def deployed(self) -> None:
        """The job runs on the slots there are."""
        self._set(self._wait.begin())

    def driver_lost(self) -> None:
        """Nothing runs on the slots any more."""
        self._set(self._wait.driver_lost())

    def refused(self, message: str) -> None:
        """The cluster can never give all the slots.

        Parameters
        ----------
        message : str
            A sentence whose subject is the job.
        """
        self._refusal = message
        if self._settings.adaptive:  # what it has, or will get in a moment, may do
            self._set(self._wait.refused(self._now_ms()))
        else:
            self._on_given_up(SlotUnavailable(f"job {self._name} {message}"), True)

    def outlook(self, text: str) -> bool:
        """What the ResourceManager says missing slots wait for; whether that is news."""
        changed, self._outlook = text != self._outlook, text
        return changed and not self.is_complete

    def release(self) -> None:
        """The job is over; give everything back."""
        self._cancel_timer()
        self._services.slots.release_slots(self._job_id)

    def _dropped(self, dropped: tuple[SlotOffer, ...]) -> tuple[SlotOffer, ...]:
        if dropped:
            now_ms = self._now_ms()
            self._set(self._wait.with_slots(len(self._pool.slots), now_ms).waiting(now_ms))
        return dropped

    def _set(self, wait: SlotWait) -> None:
        before_ms, self._wait = self._wait.check_at_ms, wait
        at_ms = wait.check_at_ms
        if at_ms == before_ms and self._timer is not None:
            return
        self._cancel_timer()
        if at_ms != NEVER_MS:
            self._timer = self._mailbox.schedule(at_ms - self._now_ms(), self._check)

    def _check(self) -> None:
        self._timer = None
        now_ms = self._now_ms()
        if self._wait.is_hopeless(now_ms, self._working()):
            self.wait()  # for the case of a restart
            self._on_given_up(self._given_up(), bool(self._refusal))
        elif self._settings.adaptive and self._wait.may_run(now_ms):
            self._set(self._wait.begin())
            self._on_runnable()
        else:  # Spark goes on with what there is
            self.wait()

    def _given_up(self) -> SlotUnavailable:
        have, wait_s = len(self._pool.slots), self._settings.patience_ms // 1000
        if self._refusal:
            return SlotUnavailable(f"job {self._name} {self._refusal}")
        if self._settings.adaptive:
            return SlotUnavailable(
                f"job {self._name} got no slot within {wait_s} s{self.reason}; start TaskManagers or "
                f"raise {_ADAPTIVE_WAIT_KEY}"
            )
        return SlotUnavailable(
            f"job {self._name} needs {self._pool.required} slots and got {have} within {wait_s} s"
            f"{self.reason}; start TaskManagers, lower the parallelism or raise slot.request.timeout"
        )

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _now_ms(self) -> int:
        return self._services.clock.monotonic_ms()
