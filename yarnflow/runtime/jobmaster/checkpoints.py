"""Checkpoints and savepoints of one job: performs what the coordinator decides.

When a checkpoint is due and when it is complete is decided by :mod:`yarnflow.core.checkpoint.coordinator`;
here ids are drawn, records written and removed, orders handed to the driver and waiting clients told.
Used in the JobMaster's mailbox, except for :meth:`CheckpointControl.await_outcome` and
:meth:`CheckpointControl.snapshot`, which work as long as the object lives.

Flink counterparts: ``CheckpointCoordinator`` with its ``CompletedCheckpointStore`` and
``CheckpointStatsTracker``.
"""

from __future__ import annotations

import functools
import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final, TypeVar

from yarnflow.core.checkpoint.coordinator import CheckpointCoordinator, Result
from yarnflow.core.checkpoint.effects import Discard, Effect, Ended, NeedId, OrderDriver, Persist
from yarnflow.core.checkpoint.messages import (
    AfterSavepoint,
    CheckpointInfo,
    CheckpointOrder,
    CheckpointOutcome,
    CheckpointRequest,
    CheckpointStatus,
    CheckpointTrigger,
    JobCheckpoints,
    QueryPosition,
    RestoredState,
)
from yarnflow.core.checkpoint.pending import Stage
from yarnflow.core.messages import DriverReport, JobDetails, JobSubmission
from yarnflow.errors import CheckpointError, CheckpointFailed, ConfigError, YarnflowError
from yarnflow.graph.job_graph import JobGraph
from yarnflow.runtime.jobmaster.checkpoint_orders import CheckpointOrders, GiveOrder
from yarnflow.runtime.jobmaster.services import JobMasterServices, JobMasterSettings
from yarnflow.runtime.jobmaster.state_files import JobStateFiles
from yarnflow.runtime.mailbox import Mailbox, TimerHandle, Work

T = TypeVar("T")

logger = logging.getLogger(__name__)

#: requests of users that wait for the one under way; further ones are refused
MAX_WAITING: Final = 100
#: pause before something that did not work is tried again
_RETRY_MS: Final = 1_000
#: so often; then a job that is over leaves behind what could not be cleared away
_CLEAR_ATTEMPTS: Final = 10


class CheckpointControl:
    """One job's checkpoints.

    Parameters
    ----------
    submission, graph, settings, services, mailbox
        The JobMaster's.
    give_order : callable
        Hands an order to the job's driver.
    on_failed : callable
        There is no place for checkpoints, and there never will be.
    """

    def __init__(
        self,
        submission: JobSubmission,
        graph: JobGraph,
        settings: JobMasterSettings,
        services: JobMasterServices,
        mailbox: Mailbox,
        give_order: GiveOrder,
        on_failed: Callable[[YarnflowError], None],
    ) -> None:
        self._submission = submission
        self._settings = settings
        self._services = services
        self._mailbox = mailbox
        self._on_failed = on_failed
        self._files = JobStateFiles(submission, graph, settings, services)
        self._coordinator = CheckpointCoordinator.create(settings.checkpointing)
        self._restored: RestoredState | None = None
        self._orders = CheckpointOrders(submission, settings, services, mailbox, give_order)
        #: what became of the last order to stop
        self._stop: CheckpointInfo | None = None
        #: effects whose end has not come back yet
        self._under_way = 0
        #: what waits until everything a user asked for is written, or has failed
        self._when_recorded: list[Callable[[], None]] = []
        #: what waits until, besides, no effect is under way
        self._when_settled: list[Callable[[], None]] = []
        self._timer: TimerHandle | None = None
        self._timer_due_ms: int | None = None
        #: what earlier masters recorded is being read
        self._recovering = False
        #: what the driver said meanwhile
        self._unheard: DriverReport | None = None
        #: the job is over
        self._closing = False
        self._now_ms = 0
        #: guards what other threads read: the coordinator and what the job started from
        self._changed = threading.Condition()

    # --- any thread, also after the job's end ---

    def await_outcome(self, request_id: str, timeout_ms: int) -> CheckpointInfo:
        """What a request led to as soon as it has ended, or so far after the time.

        Raises
        ------
        CheckpointError
            Nobody asked for one under this id.
        """
        def found() -> CheckpointInfo:
            info = self._coordinator.find(request_id)
            if info is None:
                raise CheckpointError(
                    f"nobody asked job {self._submission.name} for checkpoint {request_id!r}; ask again"
                )
            return info

        def has_ended() -> bool:
            return found().status is not CheckpointStatus.IN_PROGRESS

        with self._changed:
            # the caller's time, which goes on while a leader's stands still
            self._changed.wait_for(has_ended, timeout_ms / 1000)
            return found()

    def snapshot(self) -> JobCheckpoints:
        """All that is known."""
        with self._changed:
            coordinator, restored = self._coordinator, self._restored
        settings = self._settings.checkpointing
        return JobCheckpoints(
            job_id=self._submission.job_id,
            completed=coordinator.completed,
            failed=coordinator.failed,
            history=coordinator.history,
            restored=restored,
            interval_ms=settings.interval_ms,
            min_pause_ms=settings.min_pause_ms,
            timeout_ms=settings.timeout_ms,
            retained=settings.retained,
            retention=self._settings.retention.value,
            directory=self._settings.checkpoint_dir,
            up_to_date_ms=coordinator.up_to_date_ms,
        )

    def path_of(self, request_id: str) -> str:
        """The checkpoint or savepoint of a request; empty = it is not complete."""
        info = self._coordinator.find(request_id)
        return info.external_path if info is not None and info.status is CheckpointStatus.COMPLETED else ""

    # --- what happens ---

    def recover(self, on_found: Callable[[], None]) -> None:
        """Begin with what earlier masters recorded; ``on_found`` is called if that is anything."""
        self._recovering = True

        def found(infos: Sequence[CheckpointInfo]) -> None:
            self._recovering = False
            newest = max(infos, key=lambda info: info.checkpoint_id, default=None)
            if newest is not None and newest.trigger is CheckpointTrigger.STOP:
                # the driver ends, or has
                self._stop = newest
            self._apply_only(self._coordinator.recovered(infos, self._at_ms()))
            if infos:
                on_found()
            if self._unheard is not None:
                self.reported(self._unheard)
            self._check_settled()

        def failed(error: YarnflowError) -> None:
            logger.warning("Checkpoints of %s cannot be read, trying on: %s", self._submission.name, error)
            self._mailbox.schedule(_RETRY_MS, again)

        def again() -> None:
            if not self._closing:
                self.recover(on_found)

        self._services.effects.perform(
            self._mailbox, self._files.completed, found, failed, Work.STORAGE
        )

    def reported(self, report: DriverReport) -> None:
        """The job's driver says how far its queries and its orders are."""
        if self._closing:
            return
        if self._recovering:
            self._unheard = report
            return
        at_ms = self._at_ms()
        for outcome in report.checkpoints:
            self._apply(self._coordinator.outcome(outcome, at_ms))
        positions, idle = _positions(report), report.idle
        # the driver has a clock of its own
        idle_at_ms = at_ms - idle.ago_ms if idle.ago_ms >= 0 else -1
        if positions or idle.positions or idle_at_ms >= 0:
            self._apply(self._coordinator.progressed(positions, at_ms, idle_at_ms, idle.positions))

    def knows(self, request_id: str) -> bool:
        """It was asked for already."""
        return self._coordinator.find(request_id) is not None

    def requested(self, request: CheckpointRequest) -> None:
        """A user wants one.

        Raises
        ------
        CheckpointError
            Nobody says where the savepoint shall be.
        CheckpointFailed
            This master has just taken over, or too many wait.
        """
        if self._recovering:
            raise CheckpointFailed("this master has just taken over the job; try again")
        # a stop is the last one
        if request.after is AfterSavepoint.CONTINUE and len(self._coordinator.queue) >= MAX_WAITING:
            raise CheckpointFailed(
                f"{MAX_WAITING} checkpoints and savepoints of job {self._submission.name} wait already; try "
                "again when some of them are complete"
            )
        self._orders.admit(request)
        self._apply(self._coordinator.requested(request, self._at_ms()))

    def interrupted(self, reason: str) -> None:
        """The queries do not run any more, and so nothing of what they were asked for comes."""
        # what goes on after a savepoint was not stopped by it
        self._stop = None
        self._apply(self._coordinator.driver_lost(reason, self._at_ms()))

    def started_from(self, restored: RestoredState | None) -> None:
        """The job runs, for the first time or again; None = it started empty."""
        if self._restored is None:
            with self._changed:
                self._restored = restored

    def suspended(self) -> None:
        """Whether this master leads is not certain."""
        self._apply(self._coordinator.suspended())

    def resumed(self) -> None:
        """It led all the time."""
        self._apply(self._coordinator.resumed(self._at_ms()))

    def when_recorded(self, action: Callable[[], None]) -> None:
        """Call ``action`` as soon as nothing a user asked for is being written; at once, if so."""
        self._when_recorded.append(action)
        self._check_settled()

    def end(self, details: JobDetails, on_ended: Callable[[], None]) -> None:
        """The job is over: keep or delete its state, then call ``on_ended``."""
        self._closing = True
        reason = f"the job is {details.overview.status.value}"
        self._apply(self._coordinator.over(reason, self._at_ms()))
        if not self._is_writing:
            self._cancel_timer()
        self._when_settled.append(lambda: self._clear(details, on_ended, _CLEAR_ATTEMPTS))
        self._check_settled()

    def _clear(self, details: JobDetails, on_ended: Callable[[], None], attempts: int) -> None:
        def clear() -> None:
            self._files.end(details, self._stop, self._coordinator.positions)

        def failed(error: YarnflowError) -> None:
            if error.retryable and attempts > 1:
                self._mailbox.schedule(_RETRY_MS, lambda: self._clear(details, on_ended, attempts - 1))
                return
            where = self._settings.checkpoint_dir
            logger.error("What job %s leaves in %s is not in order: %s", self._submission.name, where, error)
            on_ended()

        self._services.effects.perform(
            self._mailbox, clear, lambda _none: on_ended(), failed, Work.STORAGE
        )

    # --- the coordinator ---

    def _apply(self, result: Result) -> None:
        self._apply_only(result)
        self._check_settled()

    def _apply_only(self, result: Result) -> None:
        coordinator, effects = result
        with self._changed:
            self._coordinator = coordinator
            self._changed.notify_all()
        for effect in effects:
            self._perform(effect)
        self._schedule_tick()

    def _perform(self, effect: Effect) -> None:
        if isinstance(effect, Ended):
            self._ended(effect.info)
        elif isinstance(effect, Discard):
            self._discard(effect.checkpoint_id)
        elif isinstance(effect, Persist):
            if not self._closing or effect.info.request_id:
                self._persist(effect.info)
        elif self._closing:
            return
        elif isinstance(effect, NeedId):
            self._draw_id()
        elif isinstance(effect, OrderDriver):
            self._order(effect.order)

    def _draw_id(self) -> None:
        def failed(error: YarnflowError) -> None:
            self._apply(self._coordinator.id_failed(error.message, self._at_ms()))
            self._fail_if_hopeless(error)

        self._do(
            self._files.next_id,
            lambda number: self._apply(self._coordinator.id_given(number, self._at_ms())),
            failed,
        )

    def _order(self, order: CheckpointOrder) -> None:
        pending = self._coordinator.pending

        def refused(error: YarnflowError) -> None:
            outcome = CheckpointOutcome(order.checkpoint_id, failure=error.message)
            self._apply(self._coordinator.outcome(outcome, self._at_ms()))

        if pending is not None:
            is_wanted = functools.partial(self._awaits_driver, order.checkpoint_id)
            self._orders.give(order, pending.info.request_id, is_wanted, refused)

    def _awaits_driver(self, checkpoint_id: int) -> bool:
        pending = self._coordinator.pending
        return (
            pending is not None
            and pending.stage is Stage.ORDERED
            and pending.info.checkpoint_id == checkpoint_id
        )

    def _persist(self, info: CheckpointInfo) -> None:
        completed = self._coordinator.completed + 1
        info = replace(info, status=CheckpointStatus.COMPLETED, end_ms=self._at_ms(), completed=completed)

        def failed(error: YarnflowError) -> None:
            logger.warning("Checkpoint %d cannot be recorded: %s", info.checkpoint_id, error)
            self._apply(self._coordinator.persist_failed(info.checkpoint_id, error.message, self._at_ms()))
            self._fail_if_hopeless(error)

        self._do(
            lambda: self._files.record(info),
            lambda recorded: self._apply(self._coordinator.persisted(recorded, self._at_ms())),
            failed,
        )

    def _discard(self, checkpoint_id: int) -> None:
        def failed(error: YarnflowError) -> None:
            # the next master to recover finds one too many, and removes it
            logger.warning("Checkpoint %d cannot be removed: %s", checkpoint_id, error)

        self._do(lambda: self._files.discard(checkpoint_id), lambda _none: None, failed)

    def _ended(self, info: CheckpointInfo) -> None:
        self._orders.forget(info.request_id)
        name, what = self._submission.name, info.kind.value.lower()
        if info.trigger is CheckpointTrigger.STOP:
            self._stop = info
        elif info.status is CheckpointStatus.COMPLETED:
            # it has gone on
            self._stop = None
        if info.status is CheckpointStatus.FAILED:
            logger.warning("Job %s: %s %d failed: %s", name, what, info.checkpoint_id, info.failure)
            return
        logger.info("Job %s: %s %d is complete: %s", name, what, info.checkpoint_id, info.external_path)

    def _fail_if_hopeless(self, error: YarnflowError) -> None:
        """A directory that cannot be used at all is not worth a number of restarts."""
        if isinstance(error, ConfigError) and not self._closing:
            self._on_failed(error)

    def _do(
        self,
        action: Callable[[], T],
        on_success: Callable[[T], None],
        on_failure: Callable[[YarnflowError], None],
    ) -> None:
        """Perform an effect the job's end has to wait for."""
        self._under_way += 1

        def succeeded(result: T) -> None:
            self._under_way -= 1
            on_success(result)
            self._check_settled()

        def failed(error: YarnflowError) -> None:
            self._under_way -= 1
            on_failure(error)
            self._check_settled()

        self._services.effects.perform(self._mailbox, action, succeeded, failed, Work.STORAGE)

    # --- time and rest ---

    @property
    def _is_writing(self) -> bool:
        """Something a user asked for is being written, or will be as soon as that is possible."""
        pending = self._coordinator.pending
        if self._coordinator.copied:
            return True
        return (
            pending is not None
            and pending.request is not None
            and pending.stage in (Stage.READY, Stage.PERSISTING)
        )

    def _check_settled(self) -> None:
        if self._is_writing:
            return
        if self._recovering and not self._closing:
            return  # what a driver says of its orders cannot be taken in yet
        actions, self._when_recorded = self._when_recorded, []
        if not self._under_way:
            actions, self._when_settled = actions + self._when_settled, []
        for action in actions:
            action()

    def _schedule_tick(self) -> None:
        deadline_ms = self._coordinator.deadline_ms
        if self._closing and not self._is_writing:
            deadline_ms = None
        if deadline_ms == self._timer_due_ms:
            return  # as with most reports
        self._cancel_timer()
        if deadline_ms is not None:
            self._timer = self._mailbox.schedule(deadline_ms - self._at_ms(), self._tick)
            self._timer_due_ms = deadline_ms

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._timer_due_ms = None

    def _tick(self) -> None:
        self._timer = self._timer_due_ms = None
        self._apply(self._coordinator.tick(self._at_ms()))

    def _at_ms(self) -> int:
        """Time of day that does not run backwards."""
        self._now_ms = max(self._now_ms, self._services.clock.now_ms())
        return self._now_ms


def _positions(report: DriverReport) -> tuple[QueryPosition, ...]:
    return tuple(
        QueryPosition(
            query=query.query,
            batch_id=query.batch_id,
            directory=query.directory,
            committed_ms=query.at_ms + query.batch_duration_ms,
            watermark_ms=query.watermark_ms,
            sources=query.sources,
            operators=query.operators,
        )
        for query in report.queries
        if query.batch_id >= 0
    )
