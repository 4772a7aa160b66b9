"""Runs one job: feeds what happens to its decider, performs what that wants, and shows the outcome.

Decisions are made by :mod:`yarnflow.core.job_run.decider`; here answers become events, times are read, and
every effect is performed in order.  It never blocks: calls to others end as events.  Used in the
JobMaster's mailbox only, except for :attr:`JobRunner.run`, a value that any thread may read.

Flink counterpart: the main thread of a ``JobMaster``.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from yarnflow.core.checkpoint.messages import CheckpointOrder, CheckpointRequest, JobStop
from yarnflow.core.ha.ports import DriverLeaseInfo
from yarnflow.core.ids import DriverId, JobId
from yarnflow.core.job.job import StatusChanged
from yarnflow.core.job.record import JobRecord
from yarnflow.core.job_run import effects as do
from yarnflow.core.job_run import events as ev
from yarnflow.core.job_run.decider import handle
from yarnflow.core.job_run.driver_group import CALL_RETRY_MS
from yarnflow.core.job_run.kept_drivers import KeptDriver
from yarnflow.core.job_run.model import JobRun
from yarnflow.core.messages import JobDetails, JobSubmission
from yarnflow.core.states import JobStatus
from yarnflow.errors import CheckpointError, CheckpointFailed, DriverLost, RpcError, YarnflowError
from yarnflow.graph.job_graph import JobGraph
from yarnflow.runtime.jobmaster.checkpoints import CheckpointControl
from yarnflow.runtime.jobmaster.driver_calls import DriverCalls, OnFailure
from yarnflow.runtime.jobmaster.lease import LeaseWatch
from yarnflow.runtime.jobmaster.restore import RestoreChoice
from yarnflow.runtime.jobmaster.services import JobMasterServices, JobMasterSettings
from yarnflow.runtime.mailbox import Mailbox, TimerHandle

logger = logging.getLogger(__name__)

#: how often a TaskManager that does not answer is told to end an executor, each CALL_RETRY_MS
STOP_TRIES: Final = 30


class JobRunner:
    """One job.

    Parameters
    ----------
    submission, graph : JobSubmission, JobGraph
        What to run.
    settings, services
        The job's options and the process's shared parts.
    mailbox : Mailbox
        This job's own.
    on_ended : callable
        Called once with the job id when the job is globally terminal, its result is stored and nothing
        of it is left but what it retained.
    start : Fresh or Adopted
        How the job came to this master.
    """

    def __init__(
        self,
        submission: JobSubmission,
        graph: JobGraph,
        settings: JobMasterSettings,
        services: JobMasterServices,
        mailbox: Mailbox,
        on_ended: Callable[[JobId], None],
        start: ev.StartKind,
    ) -> None:
        self._submission = submission
        self._services = services
        self._mailbox = mailbox
        self._on_ended = on_ended
        vertices = (
            (v.vertex_id, v.name, v.parallelism, v.max_parallelism, v.slot_sharing_group)
            for v in graph.vertices
        )
        job_id, clock = submission.job_id, services.clock
        #: replaced, never changed in place
        self.run = JobRun.create(
            job_id,
            submission.kind,
            settings,
            start,
            JobRecord.create(job_id, submission.name, submission.job_key, vertices, clock.now_ms()),
            graph.required_slots(),
            clock.monotonic_ms(),
        )
        self._drivers = DriverCalls(submission, services, settings, mailbox)
        self._lease = LeaseWatch(job_id, services, mailbox, self._holder_changed)
        self.checkpoints = CheckpointControl(
            submission, graph, settings, services, mailbox, self._order, self._checkpoints_unusable
        )
        self._restore = RestoreChoice(
            submission, settings, services, mailbox, self._state_unreadable, isinstance(start, ev.Fresh)
        )
        #: what has happened and is not decided about yet
        self._unheard: deque[Callable[[ev.Stamp], ev.Event]] = deque()
        self._at_work = False
        self._new_driver_id = DriverId("")
        self._published: JobDetails | None = None
        self._timer: TimerHandle | None = None
        self._timer_due_ms = 0

    # --- events ---

    def start(self) -> None:
        """The job may be worked on."""
        if isinstance(self.run.start, ev.Adopted) and self.run.status is JobStatus.INITIALIZING:
            self.checkpoints.recover(lambda: self.happened(ev.CommitsFound))
        self.happened(lambda at: ev.Started(at, self._kept_driver()))

    def _kept_driver(self) -> KeptDriver | None:
        """A driver for a job that begins; one that does not would never give it back."""
        begins = isinstance(self.run.start, ev.Fresh) and self.run.status is JobStatus.INITIALIZING
        return self._drivers.take_kept() if begins else None

    def happened(self, event: Callable[[ev.Stamp], ev.Event]) -> None:
        """Decide what follows from an event, and do it; what happens meanwhile has its turn then.

        Parameters
        ----------
        event : callable
            Makes the event, given when it happened.
        """
        self._unheard.append(event)
        if self._at_work:
            return
        self._at_work = True
        try:
            while self._unheard:
                self._look_for_places()
                self._decide(self._unheard.popleft())
        finally:
            self._at_work = False
        self._schedule()

    def publish(self) -> None:
        """Show the present state to everybody, if it is news."""
        self._show(self.run.details(self._stamp()))

    def _all_recorded(self, stop: JobStop | None) -> None:
        if stop is not None:
            stop = replace(stop, savepoint=self.checkpoints.path_of(stop.request_id))
        self.happened(lambda at: ev.AllRecorded(at, stop))

    def _show(self, details: JobDetails) -> None:
        if details != self._published:
            self._published = details
            self._services.board.publish(details)

    def _decide(self, event: Callable[[ev.Stamp], ev.Event]) -> None:
        self.run, effects = handle(self.run, event(self._stamp()))
        for effect in effects:
            self._perform(effect)
        self.publish()

    def _stamp(self) -> ev.Stamp:
        if not self._new_driver_id:
            self._new_driver_id = DriverId(f"driver-{self._services.new_id()[:12]}")
        clock = self._services.clock
        return ev.Stamp(clock.monotonic_ms(), clock.now_ms(), self._new_driver_id, self._services.jitter())

    def _look_for_places(self) -> None:
        """Where a hot spare can be changes by itself."""
        run, launcher = self.run, self._services.hot_spare_launcher
        if not run.settings.hot_spare or run.ended:
            return
        awaited = not run.spare_life.slots_asked and launcher.awaits_standby()
        misplaced, active_id = run.spare.driver_id, run.active.driver_id
        if misplaced is None or active_id is None or not launcher.misplaced(misplaced, active_id):
            misplaced = None
        if (awaited, misplaced) != (run.spare_place_awaited, run.spare_misplaced):
            self._decide(lambda at: ev.SparePlaceKnown(at, awaited, misplaced))

    def _schedule(self) -> None:
        """A timer that comes too early only looks; so reports do not move it each time."""
        now_ms = self._services.clock.monotonic_ms()
        due_ms = self.run.deadline_ms(now_ms)
        if due_ms is None or (self._timer is not None and self._timer_due_ms <= due_ms):
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer, self._timer_due_ms = self._mailbox.schedule(due_ms - now_ms, self._look), due_ms

    def _look(self) -> None:
        self._timer = None
        self.happened(ev.TimePassed)

    # --- effects ---

    def _perform(self, effect: do.Effect) -> None:
        """Begin with an effect; what keeps a driver from being launched is the answer, as its end.

        Raises
        ------
        RuntimeError
            Another effect cannot be begun: the job is not as its decider has it, and nobody would answer.
        """
        try:
            self._begin(effect)
        except YarnflowError as error:
            what = f"{type(effect).__name__} of job {self._submission.name}"
            if not isinstance(effect, do.LaunchDriver):
                raise RuntimeError(f"{what}: {error}; please report this") from error
            logger.error("%s, driver %s: %s", what, effect.driver_id, error)
            driver_id, status, said = effect.driver_id, error.exit_code, f"error: {error}"
            # not at once: where nothing limits restarts, they must not keep all others out
            self._mailbox.post(lambda: self.happened(lambda at: ev.DriverExited(at, driver_id, status, said)))

    def _begin(self, effect: do.Effect) -> None:
        match effect:
            case do.Say(text, is_warning):
                logger.log(logging.WARNING if is_warning else logging.INFO, "%s", text)
            case StatusChanged():
                self._status_changed(effect)
            case do.Show(details):
                self._show(details)
            case do.TakeReport(report):
                self.checkpoints.reported(report)
            case do.InterruptCheckpoints(reason):
                self.checkpoints.interrupted(reason)
            case do.AwaitRecords(stop):
                self.checkpoints.when_recorded(lambda: self._all_recorded(stop))
            case do.FindDriver():
                self._lease.begin(self._holder_found)
            case do.WatchLease():
                self._lease.begin(self._holder_changed)
            case do.FindState():
                self._restore.resolve(self._state_found)
            case do.DeclareSlots(slots):
                self._services.slots.declare_requirements(self._submission.job_id, slots)
            case do.ReleaseSlots():
                self._services.slots.release_slots(self._submission.job_id)
            case do.StartExecutor() | do.StopExecutor():
                self._tell_task_manager(effect)
            case do.EndJob():
                self._end()
            case _:
                self._tell_driver(effect)

    def _tell_driver(
        self,
        effect: do.LaunchDriver
        | do.KillDriver
        | do.DismissDriver
        | do.KeepDriver
        | do.Deploy
        | do.CancelDriver,
    ) -> None:
        match effect:
            case do.LaunchDriver():
                self._new_driver_id = DriverId("")
                self._drivers.launch(effect)
            case do.KillDriver(driver_id):
                self._drivers.kill(driver_id)
            case do.DismissDriver():
                self._drivers.dismiss(effect)
            case do.KeepDriver():
                self._drivers.keep(effect)
            case do.Deploy(driver_id, _, attempt):
                self._drivers.deploy(
                    effect,
                    lambda error: self.happened(lambda at: ev.DeployFailed(at, driver_id, attempt, error)),
                )
            case do.CancelDriver(driver_id):
                self._drivers.cancel(
                    effect, lambda error: self.happened(lambda at: ev.CancelFailed(at, driver_id, error))
                )

    def _tell_task_manager(self, effect: do.StartExecutor | do.StopExecutor) -> None:
        gateways, address = self._services.gateways, effect.address
        if isinstance(effect, do.StopExecutor):
            self._stop_executor(effect, STOP_TRIES)
            return
        descriptor = effect.descriptor
        driver_id, executor_id = descriptor.driver_id, descriptor.executor_id
        self._call(
            address,
            lambda: gateways.task_executor(address).start_executor(descriptor),
            lambda error: self.happened(
                lambda at: ev.ExecutorStartFailed(at, driver_id, executor_id, error)
            ),
        )

    def _stop_executor(self, effect: do.StopExecutor, tries: int) -> None:
        """Until it is heard, or the job is over, whose slots are taken back with what runs on them."""
        gateways, job_id = self._services.gateways, self._submission.job_id
        address, executor_id = effect.address, effect.executor_id

        def again() -> None:
            if not self.run.ended:
                self._stop_executor(effect, tries - 1)

        def failed(error: YarnflowError) -> None:
            if tries > 1 and isinstance(error, RpcError) and error.retryable:
                self._mailbox.schedule(CALL_RETRY_MS, again)
            else:
                logger.warning("%s was not told to end executor %s: %s", address, executor_id, error)

        self._call(
            address, lambda: gateways.task_executor(address).stop_executor(job_id, executor_id), failed
        )

    def _call(self, address: str, call: Callable[[], None], on_failure: OnFailure) -> None:
        self._services.effects.perform(
            self._mailbox, call, lambda _none: None, on_failure, target=address
        )

    def _status_changed(self, change: StatusChanged) -> None:
        logger.info(
            "Job %s (%s) switched from state %s to %s.",
            self._submission.name,
            self._submission.job_id,
            change.old.value,
            change.new.value,
        )
        if change.new is JobStatus.RUNNING and isinstance(self.run.start, ev.Fresh):
            restored = None
            if self.run.state is not None:
                restored = self._restore.restored(self._services.clock.now_ms())
            self.checkpoints.started_from(restored)

    def _end(self) -> None:
        """See to what is kept, then tell the Dispatcher."""
        self._lease.end()
        self._restore.end()
        if self._timer is not None:
            self._timer.cancel()
        details = self._services.board.last(self._submission.job_id)
        if details is not None:
            self.checkpoints.end(details, lambda: self._on_ended(self._submission.job_id))

    # --- answers ---

    def _holder_found(self, info: DriverLeaseInfo | None) -> None:
        driver_id, attempt = (None, 0) if info is None else (info.driver_id, info.attempt)
        self.happened(lambda at: ev.HolderFound(at, driver_id, attempt))

    def _holder_changed(self, info: DriverLeaseInfo | None) -> None:
        self.happened(lambda at: ev.HolderChanged(at, None if info is None else info.driver_id))

    def _state_found(self, note: str) -> None:
        state, if_gone = self._restore.settings, self._restore.note_if_gone
        self.happened(lambda at: ev.StateFound(at, state, note, if_gone))

    def _state_unreadable(self, error: YarnflowError) -> None:
        self.happened(lambda at: ev.StateUnreadable(at, error))

    def _checkpoints_unusable(self, error: YarnflowError) -> None:
        self.happened(lambda at: ev.CheckpointsUnusable(at, error))

    # --- checkpoints ---

    def trigger_checkpoint(self, request: CheckpointRequest) -> None:
        """Begin a checkpoint or savepoint."""
        if self.checkpoints.knows(request.request_id):
            return
        status, name = self.run.status, self._submission.name
        if self.run.ended or not self.run.record.wants_executors:
            raise CheckpointError(f"job {name} is {status.value}; there is nothing to take a checkpoint of")
        if status is not JobStatus.RUNNING:
            raise CheckpointFailed(f"job {name} is {status.value}; try again when it is RUNNING")
        self.checkpoints.requested(request)

    def _order(self, order: CheckpointOrder, on_failure: OnFailure) -> None:
        registration = self.run.active.registration
        if registration is None:
            on_failure(DriverLost("the job has no driver at the moment"))
        else:
            self._drivers.order(registration.address, order, on_failure)
