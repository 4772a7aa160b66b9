"""The driver of one job: takes deployments, runs them one at a time, reports.

Decides when a deployment starts (its executors are there, and the right to write the job's state),
which phase is reported and when the process ends.  Spark is seen through
:class:`~yarnflow.runtime.driver.services.DriverBackend` only.  A JobMaster that cannot be reached,
or whose master is followed by another one, changes nothing: the data keeps flowing and the reports
are tried again.

Threads: the program runs in the thread that calls :meth:`Driver.run`, the main thread; calls of
the JobMaster come in any thread and only leave a request; reports
(:mod:`~yarnflow.runtime.driver.reports`) and checkpoints
(:mod:`~yarnflow.runtime.driver.checkpoints`) have threads of their own.

Flink has no such process; the nearest are ``JobMaster`` with an application-mode main.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from typing import Final

from yarnflow.core.checkpoint.messages import CheckpointOrder, ClaimMode, RestoreSettings
from yarnflow.core.ha.ports import DriverLease, FreeLease, NoStateOwner, StateOwner
from yarnflow.core.ids import ExecutorId
from yarnflow.core.job_run.spare_life import REHEARSED
from yarnflow.core.messages import (
    DriverAssignment,
    DriverDeployment,
    DriverPhase,
    DriverRegistration,
    DriverReport,
    ErrorInfo,
    IdleQueries,
    LogLevel,
)
from yarnflow.core.ports import Clock, JobMasterGateway
from yarnflow.core.resources.attachment import ExecutorAttachment
from yarnflow.core.resources.diagnostics import ThreadInfo
from yarnflow.errors import DriverLost, ExecutorLost, InternalError, JobCanceled, YarnflowError
from yarnflow.runtime.driver.checkpoints import DriverCheckpoints
from yarnflow.runtime.driver.lease import LeaseKeeper
from yarnflow.runtime.driver.measuring import Measurements
from yarnflow.runtime.driver.reports import Reporter
from yarnflow.runtime.driver.run_context import HeldJob, RunContext, manifest_of
from yarnflow.runtime.driver.services import DriverBackend, DriverSettings, Milestones, RunningProgram
from yarnflow.runtime.halting import halt_soon
from yarnflow.runtime.leader_follower import LeaderFollower
from yarnflow.runtime.log_levels import is_of_java, set_log_level

logger = logging.getLogger(__name__)

#: between two looks whether the hot spare's executors have come
_REHEARSAL_POLL_S: Final = 0.2

_ENDED: Final = (DriverPhase.FINISHED, DriverPhase.FAILED, DriverPhase.CANCELED)


class Driver:
    """A driver process's life with one job, from its assignment to its end.

    Implements :class:`yarnflow.core.ports.DriverGateway`.

    Parameters
    ----------
    assignment : DriverAssignment
    backend : DriverBackend
    leaders : LeaderFollower
        The master that launched this driver, and those that come after it.
    clock : Clock
    milestones : Milestones
        Those of the process's start are in it already.
    pid : int
        Of this process.
    halt : callable
        Ends the process at once, from any thread: without an error when the main thread does not
        leave in time, with LeaseLost when nothing may be written any more.
    lease : DriverLease, optional
        The right to write the job's checkpoint directory; without it nobody else could have it.
    owner : StateOwner, optional
        Whether that directory is the job's at all, and other state may become its own.
    settings : DriverSettings, optional
    threads : callable, optional
        What the threads of this process and of its JVM do.
    """

    def __init__(
        self,
        assignment: DriverAssignment,
        backend: DriverBackend,
        leaders: LeaderFollower[JobMasterGateway],
        clock: Clock,
        milestones: Milestones,
        pid: int,
        halt: Callable[[YarnflowError | None], None],
        lease: DriverLease | None = None,
        settings: DriverSettings | None = None,
        owner: StateOwner | None = None,
        threads: Callable[[], Sequence[ThreadInfo]] = tuple,
    ) -> None:
        self._threads = threads
        self._assignment = assignment
        self._backend = backend
        self._leaders = leaders
        self._clock = clock
        self._milestones = milestones
        self._pid = pid
        self._halt = halt
        self._settings = settings or DriverSettings()
        self._lease = LeaseKeeper(lease or FreeLease(), assignment, pid, halt)
        self._owner = owner or NoStateOwner()
        self._reporter = Reporter(
            leaders, self._registration, self._report, self.shut_down, self._settings, clock
        )
        self._checkpoints = DriverCheckpoints(self._reporter.due, clock)
        self._measurements = Measurements(backend.metrics, self._settings.metrics_interval_ms)
        #: set by the main thread before anybody can ask
        self._address = ""
        self._attachment = ExecutorAttachment("", "")
        self._changed = threading.Condition()
        # all below are guarded by _changed
        self._phase = DriverPhase.IDLE
        self._attempt = 0
        self._error: ErrorInfo | None = None
        self._unusable = False
        self._program: RunningProgram | None = None
        #: threads that stop ``_program``
        self._stops: list[threading.Thread] = []
        self._next: RunContext | None = None
        self._job = HeldJob(assignment)
        self._cancel_requested = False
        self._ending = False
        self._first_batch_seen = False
        #: see :attr:`stays`
        self._stays = False
        self._left = threading.Event()

    # --- DriverGateway, any thread ---

    def deploy(self, deployment: DriverDeployment) -> None:
        """Run this deployment, instead of an older one if need be.

        Raises
        ------
        SubmissionMissing
            It names a submission that this driver was not sent; what runs goes on.
        """
        with self._changed:
            newest = self._next.attempt if self._next is not None else self._attempt
            if deployment.attempt <= newest or self._ending:
                return
            # calls of any other master were refused
            self._next = self._job.context(deployment, self._leaders.fence.epoch)
            self._stop_program()
            self._changed.notify_all()

    def cancel(self) -> None:
        """Stop the running deployment; its end is reported as CANCELED."""
        with self._changed:
            # also for a deployment on its way: a cancel is for good, and calls may overtake each other
            self._cancel_requested = True
            if self._phase in _ENDED and self._next is None:
                return
            self._stop_program()
            if self._program is None and self._phase is DriverPhase.IDLE and self._next is None:
                self._phase = DriverPhase.CANCELED
            self._changed.notify_all()
        self._reporter.due()

    def take_checkpoint(self, order: CheckpointOrder) -> None:
        """Begin a checkpoint or savepoint of what runs; its outcome comes with the reports."""
        with self._changed:
            program, why_not = self._program, ""
            if self._phase in _ENDED:
                why_not = f"attempt {self._attempt} of the job is {self._phase.value} already"
            elif self._interrupted():
                why_not = "the job is being stopped"
            elif program is None or self._phase is not DriverPhase.RUNNING:
                why_not = "no query of the job runs; try again when the job is RUNNING"
        self._checkpoints.take(order, None if why_not else program, why_not)

    def shut_down(self) -> None:
        """Leave the job: :meth:`run` returns soon."""
        with self._changed:
            first = not self._ending
            self._ending = True
            self._stop_program()
            self._changed.notify_all()
        self._reporter.stop()
        if first:
            threading.Thread(target=self._leave_in_time, name="driver-halt", daemon=True).start()

    def ping(self) -> None:
        """Answer."""

    def thread_dump(self) -> Sequence[ThreadInfo]:
        """What the threads of this process and of its JVM do."""
        return self._threads()

    def halt(self) -> None:
        """Kill this process, for a drill; its JVM ends with it."""
        halt_soon()

    def set_log_level(self, level: LogLevel) -> None:
        """What a logger of this process says; one of Java's, of its JVM."""
        set_log_level(level)
        if is_of_java(level.logger):
            self._backend.set_log_level(level.logger, level.level.upper())

    @property
    def stays(self) -> bool:
        """After :meth:`run`: the process may be given another job, of which the session knows nothing yet."""
        return self._stays

    # --- main thread ---

    def run(self, address: str) -> int:
        """Register as soon as executors can dial in, and serve deployments until told to leave.

        Parameters
        ----------
        address : str
            Where this object is served.

        Returns
        -------
        int
            Exit status of the process, unless it :attr:`stays`: 0 after :meth:`shut_down` or dismissal.
        """
        self._address = address
        try:
            self._attachment = self._backend.open(self._assignment)
        except YarnflowError as error:
            return self._did_not_come_up(error)
        self._milestones.reached("CONTEXT_UP")
        self._backend.on_progress(self._batch_ended)
        try:
            self._reporter.start()
            try:
                # while executors are coming
                self._backend.complete()
            except YarnflowError as error:
                return self._did_not_come_up(error)
            self._milestones.reached("SESSION_UP")
            self._measurements.start()
            if self._assignment.hot_spare_of:
                threading.Thread(target=self._rehearse, name="rehearsal", daemon=True).start()
            while (context := self._await_deployment()) is not None:
                self._run(context)
        finally:
            with self._changed:
                self._ending = True
                went_well = self._phase is DriverPhase.FINISHED and self._attempt == 1
            self._reporter.stop()
            self._measurements.stop()
            self._stays = went_well and self._may_stay() and self._backend.release()
            if not self._stays:
                self._backend.close()
            # not before: the session may write until it is closed
            self._lease.release()
            self._left.set()
        return 0

    def _may_stay(self) -> bool:
        """Whether the job has left nothing in this process; asked of one that has finished."""
        job = self._job.job
        if not self._settings.serves_several_jobs or job is None or job.submission.files:
            return False
        return not job.graph.runs_code_in_driver

    def _did_not_come_up(self, error: YarnflowError) -> int:
        logger.error("The session did not come up: %s", error)
        self._set_failed(error, unusable=True)
        self._reporter.send_once()
        return error.exit_code

    def _rehearse(self) -> None:
        """Get warm as soon as there are executors, unless the job comes first."""
        while not self._backend.executor_ids():
            if self._is_wanted(_REHEARSAL_POLL_S):
                return
        self._backend.rehearse(self._assignment, self._is_wanted)
        self._milestones.reached(REHEARSED)
        self._reporter.due()

    def _is_wanted(self, wait_s: float = 0.0) -> bool:
        """Whether there is a deployment, or will never be one; waits for that for a while."""
        with self._changed:
            return self._changed.wait_for(
                lambda: self._ending or self._next is not None or self._phase is not DriverPhase.IDLE, wait_s
            )

    def _leave_in_time(self) -> None:
        """A main thread that is stuck in user code must not keep the process."""
        if not self._left.wait(self._settings.leave_timeout_ms / 1000):
            logger.warning("The program did not end in time, leaving without it.")
            self._halt(None)

    def _await_deployment(self) -> RunContext | None:
        with self._changed:
            self._changed.wait_for(lambda: self._ending or self._next is not None)
            if self._ending or self._next is None:
                return None
            context, self._next = self._next, None
            self._attempt = context.attempt
            self._phase = DriverPhase.DEPLOYING
            self._error = None
            self._changed.notify_all()
        self._reporter.due()
        return context

    def _run(self, context: RunContext) -> None:
        self._checkpoints.goes_on()
        logger.info("Deploying attempt %d of job %s.", context.attempt, self._assignment.job_id)
        error: YarnflowError | None = None
        try:
            # first, as an earlier driver may take as long to end as executors to come
            self._lease.hold(self._address, context.attempt, self._settings.lease_timeout_ms)
            self._owner.hold()
            if context.restore is not None:
                # copying is the executors' work
                self._await_executors(context)
                if not self._interrupted():
                    self._claim_and_restore(context, context.restore)
            if not self._interrupted():
                program = self._backend.program(context, self._lease.check)
                with self._changed:
                    self._program = program
                if program.compiles_on_executors:
                    self._await_executors(context)
                if not self._interrupted():
                    program.prepare()
                # all of them: state stays where the first batch has put it
                self._await_executors(context)
                if not self._interrupted():
                    if context.job.submission.job_key:  # nobody looks for others
                        self._lease.check()
                        self._owner.describe(manifest_of(context.job, self._clock.now_ms()))
                    program.start()
                    self._milestones.reached("QUERY_STARTED")
                    self._set_phase(DriverPhase.RUNNING)
                    program.await_end()
                    # the end of the job is the end of its files, and the report of it the last one
                    self._checkpoints.await_none(self._settings.checkpoint_timeout_ms, self._interrupted)
                    self._measurements.last()
        except YarnflowError as raised:
            error = raised
        except KeyboardInterrupt:
            # how a script is stopped; anybody else's Ctrl-C ends the driver
            if not self._interrupted():
                raise
        except Exception as raised:
            logger.exception("The program failed in an unforeseen way")
            error = InternalError(f"{type(raised).__name__}: {raised}; see the driver's log")
        finally:
            with self._changed:
                self._program = None
                stops, self._stops = self._stops, []
            # a stop that is late would hit the next attempt, and that must not run beside this one
            for stop in stops:
                stop.join()
        self._ended(error)

    def _ended(self, error: YarnflowError | None) -> None:
        with self._changed:
            superseded = self._next is not None
            canceled = self._cancel_requested and not superseded
            self._cancel_requested = False
        if canceled:
            self._set_phase(DriverPhase.CANCELED)
        elif superseded or self._ending:
            # nobody asks about this attempt any more
            logger.info("The attempt was stopped.")
        elif error is not None:
            logger.error("The job failed: %s", error)
            self._set_failed(error, unusable=not self._backend.usable())
        else:
            self._set_phase(DriverPhase.FINISHED)

    def _claim_and_restore(self, context: RunContext, restore: RestoreSettings) -> None:
        if restore.claim_mode is not ClaimMode.CLAIM:
            return self._restore(context)
        self._owner.claim(restore.path, context.job.submission.job_key)
        try:
            self._restore(context)
        except YarnflowError as error:
            with self._changed:
                canceled = self._cancel_requested and self._next is None
            # another attempt, of this driver or the next one, goes on with what was claimed
            goes_on = not canceled if isinstance(error, JobCanceled) else error.retryable
            if not goes_on:
                self._give_back(restore.path)
            raise

    def _give_back(self, path: str) -> None:
        """Nobody else could ever claim what a job has that did not start."""
        try:
            self._lease.check()
            self._owner.give_back(path)
        except YarnflowError as error:
            logger.warning("The claim of %s was not given back: %s", path, error)

    def _restore(self, context: RunContext) -> None:
        def fence() -> None:
            self._lease.check()
            if self._interrupted():
                raise JobCanceled("the deployment ended while state was brought to its place")

        fence()
        if self._backend.restore(context, fence):
            self._milestones.reached("STATE_RESTORED")

    def _await_executors(self, context: RunContext) -> None:
        """Wait until as many executors as were started have registered.

        Executors that die on the way are replaced under new ids, hence the count.
        """
        wanted = len(context.executor_ids)
        deadline = self._clock.monotonic_ms() + self._settings.executor_timeout_ms
        while not self._interrupted():
            present = self._backend.executor_ids()
            if len(present) >= wanted:
                self._milestones.reached("EXECUTORS_UP")
                return
            if not self._backend.usable():
                raise DriverLost("the driver's SparkContext ended while it waited for executors")
            if self._clock.monotonic_ms() >= deadline:
                missing = sorted(set(context.executor_ids) - set(present))
                raise ExecutorLost(
                    f"{len(present)} of {wanted} executors registered within "
                    f"{self._settings.executor_timeout_ms // 1000} s, missing: {', '.join(missing)}; "
                    "see the TaskManagers' logs"
                )
            with self._changed:
                self._changed.wait(0.05)

    def _interrupted(self) -> bool:
        with self._changed:
            return self._cancel_requested or self._ending or self._next is not None

    def _stop_program(self) -> None:
        """Stop what runs, if anything does; with ``_changed`` held, so that its end waits for the stop."""
        if self._program is None:
            return
        # not in the caller's thread: queries take their time to stop, calls must be answered at once
        stop = threading.Thread(
            target=self._stop_logged, args=(self._program,), name="driver-stop", daemon=True
        )
        self._stops.append(stop)
        stop.start()

    def _stop_logged(self, program: RunningProgram) -> None:
        try:
            program.stop()
        except Exception:
            logger.exception("Stopping the program failed")

    # --- state and reports ---

    def _set_phase(self, phase: DriverPhase) -> None:
        with self._changed:
            logger.info("Attempt %d switched from %s to %s.", self._attempt, self._phase.value, phase.value)
            self._phase = phase
            self._changed.notify_all()
        self._reporter.due()

    def _set_failed(self, error: YarnflowError, unusable: bool) -> None:
        with self._changed:
            self._error = ErrorInfo(error.code, error.message, getattr(error, "traceback_text", ""))
            self._unusable = unusable
        self._set_phase(DriverPhase.FAILED)

    def _batch_ended(self) -> None:
        if not self._first_batch_seen and any(q.batch_id >= 0 for q in self._backend.progress()):
            self._first_batch_seen = True
            self._milestones.reached("FIRST_BATCH")
        self._reporter.due()

    def _registration(self, with_job: bool = False) -> DriverRegistration:
        with self._changed:
            job = self._job.job
            # one that waits for the session is as good as running: nobody else may run it
            attempt = self._attempt if self._next is None else self._next.attempt
        return DriverRegistration(
            job_id=self._assignment.job_id,
            driver_id=self._assignment.driver_id,
            address=self._address,
            pid=self._pid,
            driver_url=self._attachment.driver_url,
            app_id=self._attachment.app_id,
            java_options=self._attachment.java_options,
            environment=self._attachment.environment,
            milestones_ms=self._milestones.snapshot(),
            attempt=attempt,
            submission=job.submission if with_job and job is not None else None,
        )

    def _report(self) -> DriverReport:
        self._check_backend()
        with self._changed:
            attempt, phase, error, unusable = self._attempt, self._phase, self._error, self._unusable
        # before the batches: one in between is in this report, too
        idle = self._backend.idle() if phase is DriverPhase.RUNNING else IdleQueries()
        return DriverReport(
            job_id=self._assignment.job_id,
            driver_id=self._assignment.driver_id,
            attempt=attempt,
            phase=phase,
            executor_ids=tuple(ExecutorId(i) for i in self._backend.executor_ids()),
            queries=self._backend.progress(),
            milestones_ms=self._milestones.snapshot(),
            error=error if phase is DriverPhase.FAILED else None,
            driver_unusable=unusable and phase is DriverPhase.FAILED,
            # looked at after the phase: a savepoint that ends the job must not come later than the end
            checkpoints=self._checkpoints.outcomes(),
            metrics=self._measurements.take(),
            idle=idle,
        )

    def _check_backend(self) -> None:
        """A JVM that dies while nothing runs would otherwise be noticed at the next deployment."""
        with self._changed:
            idle = self._program is None and self._phase is not DriverPhase.DEPLOYING
            over = self._phase in _ENDED
        if idle and not over and not self._backend.usable():
            lost = DriverLost("the driver's JVM ended; see driver-<n>.jvm.log beside the driver's log")
            self._set_failed(lost, unusable=True)
