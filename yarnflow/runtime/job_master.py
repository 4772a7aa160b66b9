"""Runs one job: decides about slots, executors, driver, restarts and cancellation.

It owns the job's state machines and turns what happened into effects on TaskManagers
(:mod:`~yarnflow.runtime.executor_fleet`) and on the driver (:mod:`~yarnflow.runtime.driver_link`).
It never touches records, and never blocks: calls to others are effects whose ends come back as
posts.

How far up a failure goes: Spark reruns tasks on other executors (``TASKS``); the query is started
again in the same driver (``QUERY``); a new driver on the same slots (``DRIVER``).  The restart
strategy counts the last two.

Flink counterparts: ``JobMaster``, ``DefaultScheduler``.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Final

from yarnflow.core import execution as ex
from yarnflow.core import job as jb
from yarnflow.core.execution_graph import ExecutionGraph, in_state, not_terminal, on_task_manager
from yarnflow.core.ids import AllocationId, DriverId, ExecutorId, JobId, TaskManagerId
from yarnflow.core.messages import (
    DriverDeployment,
    DriverPhase,
    DriverRegistration,
    DriverReport,
    ErrorInfo,
    ExecutorExited,
    FailureInfo,
    JobSubmission,
    ProgramKind,
    SlotOffer,
)
from yarnflow.core.restart import RestartState
from yarnflow.core.slot_pool import SlotPool
from yarnflow.core.states import ExecutionState, JobStatus, RestartLevel
from yarnflow.errors import (
    ERRORS_BY_CODE,
    DriverLost,
    ExecutorLost,
    InternalError,
    SlotUnavailable,
    TaskManagerLost,
    YarnflowError,
    error_from_exit,
)
from yarnflow.graph.job_graph import JobGraph
from yarnflow.runtime.driver_link import DriverLink
from yarnflow.runtime.executor_fleet import MAX_STILLBORN, ExecutorFleet
from yarnflow.runtime.job_history import JobHistory
from yarnflow.runtime.job_services import JobMasterServices, JobMasterSettings
from yarnflow.runtime.mailbox import Mailbox, TimerHandle

logger = logging.getLogger(__name__)

#: states in which the job wants executors and a deployment
_ACTIVE: Final = (JobStatus.CREATED, JobStatus.RUNNING, JobStatus.RESTARTING)


class JobMaster:
    """One job's endpoint; see :class:`yarnflow.runtime.dispatcher.JobEndpoint`.

    Parameters
    ----------
    submission, graph : JobSubmission, JobGraph
        What to run.
    settings, services
        The job's options and the process's shared parts.
    mailbox : Mailbox
        This job's own.
    on_ended : callable
        Called once with the job id when the job is globally terminal and nothing of it is left.
    """

    def __init__(
        self,
        submission: JobSubmission,
        graph: JobGraph,
        settings: JobMasterSettings,
        services: JobMasterServices,
        mailbox: Mailbox,
        on_ended: Callable[[JobId], None],
    ) -> None:
        self._submission = submission
        self._job_id = submission.job_id
        self._settings = settings
        self._services = services
        self._mailbox = mailbox
        self._on_ended = on_ended
        now_ms = services.clock.now_ms()
        self._job = jb.JobModel.create(self._job_id, now_ms)
        self._executions = ExecutionGraph.create(
            (
                (v.vertex_id, v.name, v.parallelism, v.max_parallelism, v.slot_sharing_group)
                for v in graph.vertices
            ),
            now_ms,
        )
        self._slots = SlotPool(self._job_id, graph.required_slots())
        self._fleet = ExecutorFleet(
            self._job_id, services, settings, mailbox, self._executor_gone, self._executors_refused
        )
        self._driver = DriverLink(submission, services, settings, mailbox, self._driver_lost)
        #: rises with each deployment, over all drivers
        self._attempt = 1
        self._restart_state = RestartState()
        self._restart_timer: TimerHandle | None = None
        self._slot_timer: TimerHandle | None = None
        self._has_committed = False
        self._history = JobHistory(submission, graph.required_slots(), now_ms)
        self._ended = False

    # --- from the Dispatcher, RPC and the ResourceManager; any thread ---

    def start(self) -> None:
        """Begin: ask for slots and a driver at the same time."""
        self._publish()  # whoever gets the answer to the submission may ask for the job at once
        self._mailbox.start()
        self._mailbox.post(self._start)

    def cancel(self) -> None:
        """Begin to cancel."""
        self._mailbox.post(self._cancel)

    def stop(self) -> None:
        """Do nothing more; driver and executors are not touched."""
        self._mailbox.stop()

    def offer_slots(self, offers: Sequence[SlotOffer]) -> Sequence[AllocationId]:
        """Accept what the job still needs."""
        return self._mailbox.call(lambda: self._offer_slots(offers), self._settings.call_timeout_ms)

    def executor_exited(self, report: ExecutorExited) -> None:
        """An executor ended."""
        self._mailbox.post(lambda: self._executor_exited(report))

    def register_driver(self, registration: DriverRegistration) -> None:
        """A driver is ready.

        Raises
        ------
        DriverLost
            It is not this job's current driver, and must end.
        """
        self._mailbox.call(lambda: self._register_driver(registration), self._settings.call_timeout_ms)

    def report(self, report: DriverReport) -> None:
        """Heartbeat of the driver.

        Raises
        ------
        DriverLost
            It is not this job's current driver, and must end.
        """
        if not self._driver.is_current(report.driver_id):
            raise DriverLost(f"driver {report.driver_id} was replaced; it must end")
        self._mailbox.post(lambda: self._report(report))

    def driver_exited(self, driver_id: DriverId, exit_status: int, output_tail: str) -> None:
        """A driver process ended."""
        self._mailbox.post(lambda: self._driver_exited(driver_id, exit_status, output_tail))

    def task_manager_lost(self, task_manager_id: TaskManagerId, reason: str) -> None:
        """A TaskManager is gone with everything on it."""
        self._mailbox.post(lambda: self._task_manager_lost(task_manager_id, reason))

    def slot_lost(self, allocation_id: AllocationId, reason: str) -> None:
        """One slot is not the job's any more; its TaskManager lives."""
        self._mailbox.post(lambda: self._slot_lost(allocation_id, reason))

    def slots_unfulfillable(self, message: str) -> None:
        """The cluster can never give the slots."""
        error = SlotUnavailable(f"job {self._submission.name} {message}")
        self._mailbox.post(lambda: self._fail(error, "", RestartLevel.DRIVER, final=True))

    # --- start ---

    def _start(self) -> None:
        self._mailbox.assert_mailbox_thread()
        if self._job.state is not JobStatus.INITIALIZING:
            return  # canceled before it began
        now_ms = self._now_ms()
        self._history.milestone("SUBMITTED", now_ms)
        self._step_job(jb.JobInitialized(now_ms))
        self._executions = self._executions.scheduled(now_ms)
        self._services.slots.declare_requirements(self._job_id, self._slots.required)
        self._await_slots()
        self._launch_driver()
        self._publish()

    def _launch_driver(self) -> None:
        self._history.milestone("DRIVER_REQUESTED", self._now_ms())
        self._driver.launch()

    def _await_slots(self) -> None:
        if self._slot_timer is not None:
            self._slot_timer.cancel()
        self._slot_timer = self._mailbox.schedule(self._settings.slot_request_timeout_ms, self._slots_overdue)

    def _slots_overdue(self) -> None:
        if self._slots.is_complete or self._job.state.terminal:
            return
        have, want = len(self._slots.slots), self._slots.required
        if have and self._fleet.pool.any_registered:
            self._await_slots()  # Spark goes on with what there is
            return
        self._fail(
            SlotUnavailable(
                f"job {self._submission.name} needs {want} slots and got {have} within "
                f"{self._settings.slot_request_timeout_ms // 1000} s; start TaskManagers, "
                "lower the parallelism or raise slot.request.timeout"
            ),
            "",
            RestartLevel.DRIVER,
        )

    # --- slots and executors ---

    def _offer_slots(self, offers: Sequence[SlotOffer]) -> Sequence[AllocationId]:
        self._mailbox.assert_mailbox_thread()
        if self._job.state.terminal or self._ended:
            return ()
        self._slots, accepted = self._slots.offer(offers)
        if self._slots.is_complete:
            if self._slot_timer is not None:
                self._slot_timer.cancel()
                self._slot_timer = None
            self._history.milestone("SLOTS", self._now_ms())
        self._advance()
        return accepted

    def _advance(self) -> None:
        """Do whatever has become possible: executors on new slots, then the deployment."""
        if self._job.state in _ACTIVE:
            if self._slots.is_complete:
                self._executions = self._executions.assign_slots(self._slots.task_manager_ids, self._now_ms())
            registration = self._driver.registration
            # the first deployment waits for all slots; later ones take what there is (default scheduler)
            if registration is not None and (self._slots.is_complete or self._driver.deployed_attempt):
                self._fleet.start_missing(self._slots.slots, registration)
                self._deploy_if_due()
        self._publish()

    def _deploy_if_due(self) -> None:
        pool = self._fleet.pool
        if (
            self._driver.deployed_attempt == self._attempt
            or self._restart_timer is not None
            or not pool.records
        ):
            return
        self._driver.deploy(
            DriverDeployment(
                attempt=self._attempt,
                submission=self._submission,
                executor_ids=pool.executor_ids,
                total_cores=pool.total_cores,
            )
        )

    def _executor_exited(self, report: ExecutorExited) -> None:
        if self._driver.is_current(report.driver_id):
            self._executor_gone(report.executor_id, _ended_by(report.exit_status, report.output_tail))

    def _executor_gone(self, executor_id: ExecutorId, reason: str) -> None:
        record = self._fleet.forget(executor_id)
        if record is None or self._job.state not in _ACTIVE:
            return
        where = record.task_manager_id
        if self._fleet.given_up:
            message = (
                f"{MAX_STILLBORN} executors in a row ended before they registered, "
                f"the last one on {where} {reason}"
            )
            self._fail(ExecutorLost(message), where, RestartLevel.DRIVER)
            return
        name = self._submission.name
        self._lost(
            where,
            ExecutorLost(f"executor {executor_id} of job {name} on {where} {reason}; another one is started"),
        )
        self._mailbox.schedule(self._settings.executor_replacement_delay_ms, self._advance)

    def _executors_refused(self, error: YarnflowError, task_manager_id: TaskManagerId) -> None:
        self._fail(error, task_manager_id, RestartLevel.DRIVER)

    def _task_manager_lost(self, task_manager_id: TaskManagerId, reason: str) -> None:
        self._slots, dropped = self._slots.task_manager_lost(task_manager_id)
        if not dropped or self._job.state.terminal:
            return
        self._fleet.task_manager_lost(task_manager_id)
        self._lost(task_manager_id, TaskManagerLost(f"TaskManager {task_manager_id} is lost: {reason}"))
        self._await_slots()
        self._advance()

    def _slot_lost(self, allocation_id: AllocationId, reason: str) -> None:
        self._slots, dropped = self._slots.release([allocation_id])
        if not dropped or self._job.state.terminal:
            return
        self._fleet.slot_lost(allocation_id)
        (slot,) = dropped
        where = slot.task_manager_id
        self._lost(where, SlotUnavailable(f"slot {slot.slot_index} of {where} is lost: {reason}"))
        self._await_slots()
        self._advance()

    def _lost(self, task_manager_id: TaskManagerId, error: YarnflowError) -> None:
        """Some executors are gone; Spark reruns their tasks elsewhere, or waits for new executors."""
        now_ms = self._now_ms()
        info = _info(error)
        logger.warning("%s", error)
        self._history.failure(FailureInfo(now_ms, info, task_manager_id, RestartLevel.TASKS, recovered=True))
        if self._job.state in _ACTIVE:
            lost = on_task_manager(task_manager_id)
            self._executions = self._executions.apply(ex.Failed(now_ms, info), lost)
            self._executions = self._executions.new_attempts(now_ms, in_state(ExecutionState.FAILED))
            self._executions = self._executions.scheduled(now_ms)
        self._check_still_running(info)
        self._publish()

    def _check_still_running(self, reason: ErrorInfo) -> None:
        """A job whose query has no executor is not RUNNING, whatever its driver says."""
        if self._job.state is JobStatus.RUNNING and not self._fleet.pool.any_registered:
            self._step_job(jb.RestartBegan(self._now_ms(), reason))

    # --- driver ---

    def _register_driver(self, registration: DriverRegistration) -> None:
        self._mailbox.assert_mailbox_thread()
        self._driver.register(registration)
        self._history.milestones(registration.milestones_ms)
        self._history.milestone("DRIVER_REGISTERED", self._now_ms())
        self._advance()

    def _report(self, report: DriverReport) -> None:
        self._mailbox.assert_mailbox_thread()
        if not self._driver.is_current(report.driver_id) or self._ended:
            return
        self._driver.seen()
        self._history.milestones(report.milestones_ms)
        self._history.progress(report.queries)
        for record in self._fleet.seen_by_driver(report.executor_ids):
            self._fleet.stop(record)
            self._executor_gone(record.executor_id, "is not seen by its driver")
        if any(query.batch_id >= 0 for query in report.queries):
            self._has_committed = True
        if report.phase is DriverPhase.FAILED and report.attempt in (0, self._attempt):
            self._driver_failed(report)
        elif report.attempt == self._attempt:
            self._take_phase(report.phase)
        self._publish()

    def _take_phase(self, phase: DriverPhase) -> None:
        if phase is DriverPhase.RUNNING:
            self._confirm_running()
        elif phase is DriverPhase.FINISHED:
            self._finish()
        elif phase is DriverPhase.CANCELED and self._job.state is JobStatus.CANCELLING:
            self._all_stopped()

    def _confirm_running(self) -> None:
        """The queries are active: executions whose executor is there are running."""
        now_ms = self._now_ms()
        present = {record.task_manager_id for record in self._fleet.pool.records if record.registered}

        def there(execution: ex.Execution) -> bool:
            return execution.task_manager_id in present

        self._executions = self._executions.apply(
            ex.DeployAcked(now_ms), lambda e: e.state is ExecutionState.DEPLOYING and there(e)
        )
        self._executions = self._executions.apply(
            ex.SwitchedToRunning(now_ms), lambda e: e.state is ExecutionState.INITIALIZING and there(e)
        )
        if present and self._job.state in (JobStatus.CREATED, JobStatus.RESTARTING):
            self._step_job(jb.ExecutionsRunning(now_ms))
        self._check_still_running(_info(ExecutorLost("no executor is registered with the driver")))

    def _finish(self) -> None:
        if self._job.state not in (*_ACTIVE, JobStatus.CANCELLING):
            return
        now_ms = self._now_ms()
        if self._job.state in (JobStatus.CREATED, JobStatus.RESTARTING):  # shorter than a report interval
            self._step_job(jb.ExecutionsRunning(now_ms))
        self._executions = self._executions.apply(ex.Finished(now_ms))
        # a subtask that was being replaced when Spark finished the work elsewhere has nothing left to do
        self._executions = self._executions.apply(ex.CancelRequested(now_ms), not_terminal)
        self._step_job(jb.AllExecutionsFinished(now_ms))
        self._end()

    def _driver_failed(self, report: DriverReport) -> None:
        error = report.error or ErrorInfo(InternalError.code, "the driver failed without saying why")
        new_driver = report.driver_unusable or self._submission.kind is ProgramKind.SCRIPT
        self._fail_with(error, report.driver_id, RestartLevel.DRIVER if new_driver else RestartLevel.QUERY)

    def _driver_exited(self, driver_id: DriverId, exit_status: int, output_tail: str) -> None:
        if not self._driver.is_current(driver_id) or self._ended:
            return
        self._driver.gone()
        error = error_from_exit(exit_status, output_tail)
        if error is None:
            error = DriverLost(f"driver {driver_id} {_ended_by(exit_status, output_tail)}")
        self._driver_lost(error, driver_id)

    def _driver_lost(self, error: YarnflowError, driver_id: DriverId) -> None:
        self._fail(error, driver_id, RestartLevel.DRIVER)

    # --- failure and restart ---

    def _fail(self, error: YarnflowError, location: str, level: RestartLevel, final: bool = False) -> None:
        self._fail_with(_info(error), location, level, final)

    def _fail_with(self, error: ErrorInfo, location: str, level: RestartLevel, final: bool = False) -> None:
        if self._job.state in (JobStatus.CANCELLING, JobStatus.FAILING):
            self._all_stopped()
            return
        if self._job.state.terminal:
            return
        now_ms = self._now_ms()
        decision = self._settings.restart_strategy.on_failure(
            self._restart_state, now_ms, self._services.jitter()
        )
        self._restart_state = decision.state
        never_worked = not self._has_committed and not _may_pass(error)
        restart = decision.can_restart and not final and not never_worked
        logger.warning("Job %s failed: %s", self._submission.name, error.message)
        self._history.failure(FailureInfo(now_ms, error, location, level, recovered=restart))
        self._executions = self._executions.apply(ex.Failed(now_ms, error))
        self._executions = self._executions.apply(ex.CancelCompleted(now_ms))
        if not restart:
            self._step_job(jb.FailureUnrecoverable(now_ms, error))
            self._all_stopped()
            return
        self._step_job(jb.RestartBegan(now_ms, error))
        self._executions = self._executions.new_attempts(now_ms).scheduled(now_ms)
        if decision.counted:
            self._history.restarted()
        self._attempt += 1
        self._cancel_restart()
        if level is RestartLevel.DRIVER:
            self._drop_driver()
        logger.info("Job %s restarts in %d ms (%s).", self._submission.name, decision.delay_ms, level.value)
        self._restart_timer = self._mailbox.schedule(decision.delay_ms, self._restart)
        self._publish()

    def _restart(self) -> None:
        self._restart_timer = None
        if self._job.state is not JobStatus.RESTARTING:
            return
        if not self._slots.is_complete:
            self._await_slots()
        if not self._driver.exists:
            self._launch_driver()
        self._advance()

    def _cancel_restart(self) -> None:
        if self._restart_timer is not None:
            self._restart_timer.cancel()
            self._restart_timer = None

    def _drop_driver(self) -> None:
        """End the current driver for good; its executors end with it."""
        self._driver.drop()
        self._fleet.driver_lost()

    # --- cancel and end ---

    def _cancel(self) -> None:
        if self._job.state.terminal or self._job.state is JobStatus.CANCELLING:
            return
        now_ms = self._now_ms()
        self._step_job(jb.CancelRequested(now_ms))
        self._executions = self._executions.apply(ex.CancelRequested(now_ms))
        self._cancel_restart()
        if self._driver.deployed_attempt != self._attempt:  # nothing of this attempt runs
            self._drop_driver()
            self._all_stopped()
            return
        self._driver.cancel(lambda error: self._force_cancel(f"the driver did not answer: {error}"))
        self._mailbox.schedule(
            self._settings.cancellation_timeout_ms,
            lambda: self._force_cancel("task.cancellation.timeout is over"),
        )
        self._publish()

    def _force_cancel(self, reason: str) -> None:
        if self._job.state is JobStatus.CANCELLING:
            logger.warning("Job %s is ended by force: %s", self._submission.name, reason)
            self._drop_driver()
            self._all_stopped()

    def _all_stopped(self) -> None:
        """Nothing of the job runs any more: CANCELLING → CANCELED, FAILING → FAILED."""
        if self._ended:
            return
        now_ms = self._now_ms()
        self._executions = self._executions.apply(ex.CancelRequested(now_ms))
        self._executions = self._executions.apply(ex.CancelCompleted(now_ms))
        self._step_job(jb.AllExecutionsTerminal(now_ms))
        self._end()

    def _end(self) -> None:
        """Give everything back, then tell the Dispatcher."""
        self._ended = True
        self._publish()
        self._driver.dismiss()
        self._fleet.driver_lost()
        self._services.slots.release_slots(self._job_id)
        self._on_ended(self._job_id)

    # --- small things ---

    def _now_ms(self) -> int:
        return self._services.clock.now_ms()

    def _step_job(self, event: jb.JobEvent) -> None:
        self._job, changes = jb.MACHINE.step(self._job, event)
        for change in changes:
            logger.info(
                "Job %s (%s) switched from state %s to %s.",
                self._submission.name,
                self._job_id,
                change.old.value,
                change.new.value,
            )
            self._history.status(change.new, change.at_ms)
        self._publish()

    def _publish(self) -> None:
        self._services.board.publish(
            self._history.details(self._job, self._executions, len(self._slots.slots), self._waiting_for())
        )

    def _waiting_for(self) -> str:
        if self._job.state not in (JobStatus.CREATED, JobStatus.RESTARTING):
            return ""
        if self._restart_timer is not None:
            return "restart delay"
        if not self._slots.is_complete:
            return f"slots: {len(self._slots.slots)} of {self._slots.required}"
        if self._driver.registration is None:
            return "driver"
        pool = self._fleet.pool
        if not pool.all_registered:
            seen = sum(record.registered for record in pool.records)
            return f"executors: {seen} of {len(pool.records)}"
        return "queries to start"


def _ended_by(exit_status: int, output_tail: str) -> str:
    if exit_status < 0:
        return f"ended by signal {-exit_status}"
    last_line = output_tail.strip().splitlines()[-1:] if exit_status else []
    return ": ".join([f"ended by status {exit_status}", *last_line])


def _info(error: YarnflowError) -> ErrorInfo:
    return ErrorInfo(error.code, error.message, getattr(error, "traceback_text", ""))


def _may_pass(error: ErrorInfo) -> bool:
    """Whether a failure before the first commit may be an accident of the machinery.

    User code or a query that fails before anything was ever committed fails the same way again;
    restarting it for ever would only hide the error from its author.
    """
    cls = ERRORS_BY_CODE.get(error.code)
    return cls is not None and cls.retryable
