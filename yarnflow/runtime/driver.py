"""The driver of one job: takes deployments, runs them one at a time, reports.

Decides when a deployment starts (its executors are there), which phase is reported and when the
process ends.  Spark is seen through :class:`DriverBackend` only.  A JobMaster that cannot be
reached changes nothing: the data keeps flowing and the reports are tried again.

Threads: the program runs in the thread that calls :meth:`Driver.run`, the main thread; calls of
the JobMaster come in any thread and only leave a request; one thread sends the reports.

Flink has no such process; the nearest are ``JobMaster`` with an application-mode main.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from yarnflow.core.ids import ExecutorId
from yarnflow.core.messages import (
    DriverAssignment,
    DriverDeployment,
    DriverPhase,
    DriverRegistration,
    DriverReport,
    ErrorInfo,
    QueryProgress,
)
from yarnflow.core.ports import Clock, JobMasterGateway
from yarnflow.errors import (
    AuthenticationFailed,
    DriverLost,
    ExecutorLost,
    InternalError,
    JobNotFound,
    StaleEpoch,
    YarnflowError,
)
from yarnflow.runtime.registration import RegistrationBackoff

logger = logging.getLogger(__name__)

#: the JobMaster has no use for this driver any more
_DISMISSED = (DriverLost, JobNotFound, AuthenticationFailed)


class RunningProgram(Protocol):
    """One run of the job.  Made, started and awaited by the main thread."""

    def start(self) -> None:
        """Compile and start.  A script only gets ready here; its main is run by ``await_end``."""

    def await_end(self) -> None:
        """Block until the end, by :meth:`stop` as well; raises :class:`YarnflowError` when it failed."""

    def stop(self) -> None:
        """Stop it and return when nothing of it runs any more; any thread, idempotent."""


@dataclass(frozen=True, slots=True)
class Attachment:
    """What executors need to dial in."""

    driver_url: str
    app_id: str
    java_options: tuple[str, ...] = ()
    environment: dict[str, str] = field(default_factory=dict)


class DriverBackend(Protocol):
    """Spark, as a driver sees it.  Everything raises :class:`YarnflowError` only."""

    def open(self, assignment: DriverAssignment) -> Attachment:
        """Bring the session up.  Main thread; once."""

    def executor_ids(self) -> tuple[str, ...]:
        """Executors registered now.  Any thread."""

    def program(self, assignment: DriverAssignment, deployment: DriverDeployment) -> RunningProgram:
        """Make the deployment's program; nothing starts yet.  Main thread."""

    def progress(self) -> tuple[QueryProgress, ...]:
        """What the queries last said.  Any thread."""

    def on_progress(self, listener: Callable[[], None]) -> None:
        """Call ``listener`` after each batch, from any thread."""

    def usable(self) -> bool:
        """Another deployment can run in this driver.  Any thread."""

    def close(self) -> None:
        """Stop session and JVM.  Idempotent."""


@dataclass(frozen=True, slots=True)
class DriverSettings:
    """Times of one driver, in milliseconds."""

    report_interval_ms: int = 1000
    #: shortest pause between two reports, however quick the batches are
    report_min_pause_ms: int = 100
    #: how long the executors of a deployment may take to register
    executor_timeout_ms: int = 120_000
    #: how long the main thread may take to leave after ``shut_down``
    leave_timeout_ms: int = 10_000
    registration_backoff: RegistrationBackoff = RegistrationBackoff(100, 5_000)


class Milestones:
    """Name → first time it was reached.  Thread-safe."""

    def __init__(self, clock: Clock, reached_ms: Mapping[str, int] | None = None) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._times: dict[str, int] = dict(reached_ms or {})

    def reached(self, name: str) -> None:
        """Note the time, unless it was reached before."""
        with self._lock:
            self._times.setdefault(name, self._clock.now_ms())

    def snapshot(self) -> dict[str, int]:
        """All of them."""
        with self._lock:
            return dict(self._times)


class Driver:
    """A driver process's life, from its assignment to its end.

    Implements :class:`yarnflow.core.ports.DriverGateway`.

    Parameters
    ----------
    assignment : DriverAssignment
    backend : DriverBackend
    job_master : JobMasterGateway
        With the fence of the assignment.
    clock : Clock
    milestones : Milestones
        Those of the process's start are in it already.
    pid : int
        Of this process.
    halt : callable, optional
        Ends the process at once; called when the main thread does not leave in time.
    settings : DriverSettings, optional
    """

    def __init__(
        self,
        assignment: DriverAssignment,
        backend: DriverBackend,
        job_master: JobMasterGateway,
        clock: Clock,
        milestones: Milestones,
        pid: int,
        halt: Callable[[], None] | None = None,
        settings: DriverSettings | None = None,
    ) -> None:
        self._assignment = assignment
        self._backend = backend
        self._job_master = job_master
        self._clock = clock
        self._milestones = milestones
        self._pid = pid
        self._halt = halt
        self._settings = settings or DriverSettings()
        self._changed = threading.Condition()
        # all below are guarded by _changed
        self._phase = DriverPhase.IDLE
        self._attempt = 0
        self._error: ErrorInfo | None = None
        self._unusable = False
        self._program: RunningProgram | None = None
        #: threads that stop ``_program``
        self._stops: list[threading.Thread] = []
        self._next: DriverDeployment | None = None
        self._cancel_requested = False
        self._ending = False
        #: a report is due before its interval is over
        self._report_due = False
        #: what was last reported successfully
        self._reported: tuple[int, DriverPhase] | None = None
        self._first_batch_seen = False
        self._left = threading.Event()

    # --- DriverGateway, any thread ---

    def deploy(self, deployment: DriverDeployment) -> None:
        """Run this deployment, instead of an older one if need be."""
        with self._changed:
            newest = self._next.attempt if self._next is not None else self._attempt
            if deployment.attempt <= newest or self._ending:
                return
            self._next = deployment
            self._stop_program()
            self._changed.notify_all()

    def cancel(self) -> None:
        """Stop the running deployment; its end is reported as CANCELED."""
        with self._changed:
            if self._phase in (DriverPhase.FINISHED, DriverPhase.FAILED, DriverPhase.CANCELED):
                return
            self._cancel_requested = True
            self._stop_program()
            if self._program is None and self._phase is DriverPhase.IDLE and self._next is None:
                self._phase = DriverPhase.CANCELED
                self._report_due = True
            self._changed.notify_all()

    def shut_down(self) -> None:
        """Leave: :meth:`run` returns soon."""
        with self._changed:
            first = not self._ending
            self._ending = True
            self._stop_program()
            self._changed.notify_all()
        if first and self._halt is not None:
            threading.Thread(target=self._leave_in_time, name="driver-halt", daemon=True).start()

    def ping(self) -> None:
        """Answer."""

    # --- main thread ---

    def run(self, address: str) -> int:
        """Open the session, register, and serve deployments until told to leave.

        Parameters
        ----------
        address : str
            Where this object is served.

        Returns
        -------
        int
            Exit status of the process: 0 after :meth:`shut_down` or dismissal.
        """
        reporter = threading.Thread(target=self._report_forever, name="driver-reports", daemon=True)
        try:
            attachment = self._backend.open(self._assignment)
        except YarnflowError as error:
            logger.error("The session did not come up: %s", error)
            self._set_failed(error, unusable=True)
            self._send_report()
            return error.exit_code
        self._milestones.reached("SESSION_UP")
        self._backend.on_progress(self._batch_ended)
        try:
            if self._register(attachment, address):
                reporter.start()
                while (deployment := self._await_deployment()) is not None:
                    self._run_deployment(deployment)
        finally:
            with self._changed:
                self._ending = True
                self._changed.notify_all()
            self._backend.close()
            self._left.set()
        return 0

    def _leave_in_time(self) -> None:
        """A main thread that is stuck in user code must not keep the process."""
        if not self._left.wait(self._settings.leave_timeout_ms / 1000) and self._halt is not None:
            logger.warning("The program did not end in time, leaving without it.")
            self._halt()

    def _register(self, attachment: Attachment, address: str) -> bool:
        registration = DriverRegistration(
            job_id=self._assignment.job_id,
            driver_id=self._assignment.driver_id,
            address=address,
            pid=self._pid,
            driver_url=attachment.driver_url,
            app_id=attachment.app_id,
            java_options=attachment.java_options,
            environment=attachment.environment,
            milestones_ms=self._milestones.snapshot(),
        )
        failures = 0
        while True:
            try:
                self._job_master.register_driver(registration)
                logger.info("Registered with the JobMaster of job %s.", self._assignment.job_id)
                return True
            except _DISMISSED as error:
                logger.info("This driver is not wanted: %s", error)
                return False
            except YarnflowError as error:
                failures += 1
                if failures == 1 or isinstance(error, StaleEpoch):
                    logger.warning("Cannot register with the JobMaster, trying on: %s", error)
            with self._changed:
                if self._changed.wait_for(lambda: self._ending, self._backoff_s(failures)):
                    return False

    def _backoff_s(self, failures: int) -> float:
        return self._settings.registration_backoff.delay_ms(failures) / 1000

    def _await_deployment(self) -> DriverDeployment | None:
        with self._changed:
            self._changed.wait_for(lambda: self._ending or self._next is not None)
            if self._ending or self._next is None:
                return None
            deployment, self._next = self._next, None
            self._attempt = deployment.attempt
            self._phase = DriverPhase.DEPLOYING
            self._error = None
            self._report_due = True
            self._changed.notify_all()
            return deployment

    def _run_deployment(self, deployment: DriverDeployment) -> None:
        logger.info("Deploying attempt %d of job %s.", deployment.attempt, self._assignment.job_id)
        error: YarnflowError | None = None
        try:
            self._await_executors(deployment)
            if not self._interrupted():
                program = self._backend.program(self._assignment, deployment)
                with self._changed:
                    self._program = program
                if not self._interrupted():
                    program.start()
                    self._milestones.reached("QUERY_STARTED")
                    self._set_phase(DriverPhase.RUNNING)
                    program.await_end()
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

    def _await_executors(self, deployment: DriverDeployment) -> None:
        """Wait until as many executors as were started have registered.

        Executors that die on the way are replaced under new ids, hence the count.
        """
        wanted = len(deployment.executor_ids)
        deadline = self._clock.monotonic_ms() + self._settings.executor_timeout_ms
        while not self._interrupted():
            present = self._backend.executor_ids()
            if len(present) >= wanted:
                self._milestones.reached("EXECUTORS_UP")
                return
            if not self._backend.usable():
                raise DriverLost("the driver's SparkContext ended while it waited for executors")
            if self._clock.monotonic_ms() >= deadline:
                missing = sorted(set(deployment.executor_ids) - set(present))
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
            self._report_due = True
            self._changed.notify_all()

    def _set_failed(self, error: YarnflowError, unusable: bool) -> None:
        with self._changed:
            self._error = ErrorInfo(error.code, error.message, getattr(error, "traceback_text", ""))
            self._unusable = unusable
        self._set_phase(DriverPhase.FAILED)

    def _batch_ended(self) -> None:
        if not self._first_batch_seen and any(q.batch_id >= 0 for q in self._backend.progress()):
            self._first_batch_seen = True
            self._milestones.reached("FIRST_BATCH")
        with self._changed:
            self._report_due = True
            self._changed.notify_all()

    def _report(self) -> DriverReport:
        with self._changed:
            attempt, phase, error, unusable = self._attempt, self._phase, self._error, self._unusable
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
        )

    def _send_report(self) -> bool:
        """Send one report; whether it arrived (or never can)."""
        report = self._report()
        try:
            self._job_master.report(report)
        except _DISMISSED as error:
            logger.info("The JobMaster dismisses this driver: %s", error)
            self.shut_down()
            return True
        except YarnflowError as error:
            logger.warning("The report did not reach the JobMaster, trying on: %s", error)
            return False
        with self._changed:
            self._reported = (report.attempt, report.phase)
        return True

    def _report_forever(self) -> None:
        interval_s = self._settings.report_interval_ms / 1000
        failures = 0
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._ending or self._report_due, interval_s)
                if self._ending:
                    return
                self._report_due = False
            self._check_backend()
            failures = 0 if self._send_report() else failures + 1
            pause_s = self._backoff_s(failures) if failures else self._settings.report_min_pause_ms / 1000
            with self._changed:
                if self._changed.wait_for(lambda: self._ending, pause_s):
                    return
                if failures:
                    self._report_due = True

    def _check_backend(self) -> None:
        """A JVM that dies while nothing runs would otherwise be noticed at the next deployment."""
        with self._changed:
            idle = self._program is None and self._phase is not DriverPhase.DEPLOYING
            over = self._phase in (DriverPhase.FINISHED, DriverPhase.FAILED, DriverPhase.CANCELED)
        if idle and not over and not self._backend.usable():
            self._set_failed(DriverLost("the driver's JVM ended; see the driver's log"), unusable=True)
