"""Runs one job: slots, executors, driver, restarts, cancellation.

It owns the job's state machines and turns what happened into effects on TaskManagers and on
the driver.  It never touches records, and never blocks: calls to others are effects whose ends
come back as posts.

How far up a failure goes (DESIGN's restart levels): Spark reruns tasks on other executors while
one is left (``TASKS``); the query is started again in the same driver (``QUERY``); a new driver
on the same slots (``DRIVER``).  The restart strategy counts the last two.

Flink counterparts: ``JobMaster``, ``DefaultScheduler``.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from yarnflow.core import execution as ex
from yarnflow.core import job as jb
from yarnflow.core.execution_graph import ExecutionGraph, in_state, not_terminal, on_task_manager
from yarnflow.core.executor_pool import ExecutorPool, ExecutorRecord
from yarnflow.core.ids import AllocationId, DriverId, ExecutorId, JobId, TaskManagerId
from yarnflow.core.messages import (
    DriverAssignment,
    DriverDeployment,
    DriverPhase,
    DriverRegistration,
    DriverReport,
    ErrorInfo,
    ExecutorDescriptor,
    ExecutorExited,
    FailureInfo,
    JobSubmission,
    LeaderInfo,
    ProgramKind,
    SlotOffer,
)
from yarnflow.core.ports import Clock, DriverLauncher, GatewayFactory
from yarnflow.core.restart import RestartState, RestartStrategy
from yarnflow.core.slot_pool import SlotPool
from yarnflow.core.states import ExecutionState, JobStatus, RestartLevel
from yarnflow.errors import (
    ERRORS_BY_CODE,
    DriverLost,
    ExecutorLost,
    InternalError,
    RpcError,
    SlotUnavailable,
    TaskManagerLost,
    YarnflowError,
    error_from_exit,
)
from yarnflow.graph.job_graph import JobGraph
from yarnflow.runtime.job_board import JobBoard
from yarnflow.runtime.job_history import JobHistory
from yarnflow.runtime.mailbox import Effects, Mailbox, TimerHandle

logger = logging.getLogger(__name__)

#: so many executors that never came up are no accident; the restart strategy decides
MAX_STILLBORN_EXECUTORS: Final = 3


class SlotRequirements(Protocol):
    """The ResourceManager as a JobMaster sees it; every method only posts."""

    def declare_requirements(self, job_id: JobId, slots: int) -> None:
        """From now on the job wants ``slots`` slots in all."""

    def release_slots(self, job_id: JobId) -> None:
        """The job is over; take all its slots back."""


@dataclass(frozen=True, slots=True)
class JobMasterServices:
    """What all JobMasters of a process share."""

    clock: Clock
    effects: Effects
    gateways: GatewayFactory
    launcher: DriverLauncher
    slots: SlotRequirements
    board: JobBoard
    leader_info: Callable[[], LeaderInfo]
    new_id: Callable[[], str]
    #: uniform in [-1, 1]
    jitter: Callable[[], float]


@dataclass(frozen=True, slots=True)
class JobMasterSettings:
    """One job's options, read once."""

    restart_strategy: RestartStrategy
    slot_request_timeout_ms: int
    cancellation_timeout_ms: int
    driver_heartbeat_timeout_ms: int
    driver_registration_timeout_ms: int
    driver_memory_mib: int
    checkpoint_dir: str
    work_dir: str
    call_timeout_ms: int
    #: how long a driver may take to leave in good order
    shut_down_grace_ms: int = 5_000
    #: before a lost executor is replaced; a crash loop must not spin
    executor_replacement_delay_ms: int = 200


@dataclass(slots=True)
class _Driver:
    """The current driver process."""

    driver_id: DriverId
    launched_ms: int
    registration: DriverRegistration | None = None
    last_seen_ms: int = 0
    #: attempt it was told to run; 0 = none yet
    deployed_attempt: int = 0


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
        self._pool = SlotPool(self._job_id, graph.required_slots())
        self._executors = ExecutorPool()
        self._driver: _Driver | None = None
        #: rises with each deployment, over all drivers
        self._attempt = 1
        self._restart_state: RestartState = RestartState()
        self._restart_timer: TimerHandle | None = None
        self._slot_timer: TimerHandle | None = None
        self._has_committed = False
        #: executors in a row that ended before their driver saw them
        self._stillborn = 0
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
        driver = self._driver
        if driver is None or driver.driver_id != report.driver_id:
            raise DriverLost(f"driver {report.driver_id} was replaced; it must end")
        self._mailbox.post(lambda: self._report(report))

    def driver_exited(self, driver_id: DriverId, exit_status: int, output_tail: str) -> None:
        """A driver process ended."""
        self._mailbox.post(lambda: self._driver_exited(driver_id, exit_status, output_tail))

    def task_manager_lost(self, task_manager_id: TaskManagerId, reason: str) -> None:
        """A TaskManager is gone with everything on it."""
        self._mailbox.post(lambda: self._task_manager_lost(task_manager_id, reason))

    def slots_unfulfillable(self, message: str) -> None:
        """The cluster says it can never give the slots."""
        self._mailbox.post(lambda: self._fail(SlotUnavailable(message), "", RestartLevel.DRIVER, final=True))

    # --- start ---

    def _start(self) -> None:
        self._mailbox.assert_mailbox_thread()
        now_ms = self._now_ms()
        self._history.milestone("SUBMITTED", now_ms)
        self._step_job(jb.JobInitialized(now_ms))
        self._executions = self._executions.scheduled(now_ms)
        self._services.slots.declare_requirements(self._job_id, self._pool.required)
        self._await_slots()
        self._launch_driver()
        self._publish()

    def _launch_driver(self) -> None:
        now_ms = self._now_ms()
        driver = _Driver(DriverId(f"driver-{self._services.new_id()[:12]}"), now_ms, last_seen_ms=now_ms)
        self._driver = driver
        leader = self._services.leader_info()
        assignment = DriverAssignment(
            job_id=self._job_id,
            driver_id=driver.driver_id,
            job_master_address=leader.address,
            fence=leader.fence,
            checkpoint_dir=self._settings.checkpoint_dir,
            work_dir=self._settings.work_dir,
            job_name=self._submission.name,
            configuration=self._submission.configuration,
        )
        self._history.milestone("DRIVER_REQUESTED", now_ms)
        self._services.launcher.launch(assignment, self._settings.driver_memory_mib)
        self._mailbox.schedule(
            self._settings.driver_registration_timeout_ms, lambda: self._driver_must_have_registered(driver)
        )
        self._watch_driver(driver)

    def _await_slots(self) -> None:
        if self._slot_timer is not None:
            self._slot_timer.cancel()
        self._slot_timer = self._mailbox.schedule(self._settings.slot_request_timeout_ms, self._slots_overdue)

    def _slots_overdue(self) -> None:
        if self._pool.is_complete or self._job.state.terminal:
            return
        have, want = len(self._pool.slots), self._pool.required
        if have and self._executors.any_registered:
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
        self._pool, accepted = self._pool.offer(offers)
        if self._pool.is_complete:
            if self._slot_timer is not None:
                self._slot_timer.cancel()
                self._slot_timer = None
            self._history.milestone("SLOTS", self._now_ms())
        self._advance()
        return accepted

    def _advance(self) -> None:
        """Do whatever has become possible: executors on new slots, then the deployment."""
        if self._job.state not in (JobStatus.CREATED, JobStatus.RUNNING, JobStatus.RESTARTING):
            self._publish()
            return
        now_ms = self._now_ms()
        if self._pool.is_complete:
            self._executions = self._executions.assign_slots(self._pool.task_manager_ids, now_ms)
        driver = self._driver
        if driver is not None and driver.registration is not None:
            # the first deployment waits for all slots; later ones take what there is (default scheduler)
            if self._pool.is_complete or driver.deployed_attempt:
                self._executors, started = self._executors.start_missing(self._pool.slots)
                for record in started:
                    self._start_executor(record, driver.registration)
            self._deploy_if_due(driver)
        self._publish()

    def _start_executor(self, record: ExecutorRecord, registration: DriverRegistration) -> None:
        descriptor = ExecutorDescriptor(
            job_id=self._job_id,
            driver_id=registration.driver_id,
            executor_id=record.executor_id,
            driver_url=registration.driver_url,
            app_id=registration.app_id,
            cores=record.cores,
            allocation_ids=record.allocation_ids,
            java_options=registration.java_options,
            environment=registration.environment,
            auth_secret=registration.auth_secret,
        )
        gateway = self._services.gateways.task_executor(record.address)

        def failed(error: YarnflowError) -> None:
            if error.retryable or isinstance(error, RpcError):
                self._executor_gone(record.executor_id, f"could not be started: {error}")
            else:
                self._fail(error, record.task_manager_id, RestartLevel.DRIVER)

        self._effect(lambda: gateway.start_executor(descriptor), failed)

    def _executor_exited(self, report: ExecutorExited) -> None:
        driver = self._driver
        if driver is None or driver.driver_id != report.driver_id:
            return
        self._executor_gone(report.executor_id, _ended_by(report.exit_status, report.output_tail))

    def _executor_gone(self, executor_id: ExecutorId, reason: str) -> None:
        self._executors, record = self._executors.exited(executor_id)
        if record is None or self._job.state not in (
            JobStatus.CREATED, JobStatus.RUNNING, JobStatus.RESTARTING,
        ):  # fmt: skip
            return
        error = ExecutorLost(
            f"executor {executor_id} of job {self._submission.name} on {record.task_manager_id} {reason}; "
            "another one is started"
        )
        self._stillborn = 0 if record.registered else self._stillborn + 1
        if self._stillborn >= MAX_STILLBORN_EXECUTORS:
            self._stillborn = 0
            message = (
                f"{MAX_STILLBORN_EXECUTORS} executors in a row ended before they registered, "
                f"the last one on {record.task_manager_id} {reason}"
            )
            self._fail(ExecutorLost(message), record.task_manager_id, RestartLevel.DRIVER)
            return
        self._lost(record.task_manager_id, error)
        self._mailbox.schedule(self._settings.executor_replacement_delay_ms, self._advance)

    def _task_manager_lost(self, task_manager_id: TaskManagerId, reason: str) -> None:
        self._pool, dropped = self._pool.task_manager_lost(task_manager_id)
        if not dropped or self._job.state.terminal:
            return
        self._executors = self._executors.task_manager_lost(task_manager_id)
        self._lost(task_manager_id, TaskManagerLost(f"TaskManager {task_manager_id} is lost: {reason}"))
        self._await_slots()
        self._advance()

    def _lost(self, task_manager_id: TaskManagerId, error: YarnflowError) -> None:
        """Some executors are gone; Spark reruns their tasks elsewhere, or waits for new executors."""
        now_ms = self._now_ms()
        info = _info(error)
        logger.warning("%s", error)
        self._history.failure(FailureInfo(now_ms, info, task_manager_id, RestartLevel.TASKS, recovered=True))
        lost = on_task_manager(task_manager_id)
        self._executions = self._executions.apply(ex.Failed(now_ms, info), lost)
        self._executions = self._executions.new_attempts(now_ms, in_state(ExecutionState.FAILED))
        self._executions = self._executions.scheduled(now_ms)
        if self._job.state is JobStatus.RUNNING and not self._executors.any_registered:
            self._step_job(jb.RestartBegan(now_ms, info))
        self._publish()

    # --- driver ---

    def _register_driver(self, registration: DriverRegistration) -> None:
        self._mailbox.assert_mailbox_thread()
        driver = self._driver
        if driver is None or driver.driver_id != registration.driver_id or self._ended:
            raise DriverLost(f"driver {registration.driver_id} was replaced; it must end")
        driver.registration = registration
        driver.last_seen_ms = self._now_ms()
        self._history.milestones(registration.milestones_ms)
        self._history.milestone("DRIVER_REGISTERED", self._now_ms())
        self._advance()

    def _deploy_if_due(self, driver: _Driver) -> None:
        registration = driver.registration
        if (
            registration is None
            or driver.deployed_attempt == self._attempt
            or self._restart_timer is not None
            or not self._executors.records
            or not (self._pool.is_complete or driver.deployed_attempt)
        ):
            return
        driver.deployed_attempt = self._attempt
        deployment = DriverDeployment(
            attempt=self._attempt,
            submission=self._submission,
            executor_ids=self._executors.executor_ids,
            total_cores=self._executors.total_cores,
        )
        gateway = self._services.gateways.driver(registration.address)

        def failed(error: YarnflowError) -> None:
            if self._driver is driver and driver.deployed_attempt == deployment.attempt:
                self._fail(DriverLost(f"driver {driver.driver_id} did not take the job: {error}"),
                           driver.driver_id, RestartLevel.DRIVER)  # fmt: skip

        self._effect(lambda: gateway.deploy(deployment), failed)

    def _report(self, report: DriverReport) -> None:
        self._mailbox.assert_mailbox_thread()
        driver = self._driver
        if driver is None or driver.driver_id != report.driver_id or self._ended:
            return
        driver.last_seen_ms = self._now_ms()
        self._history.milestones(report.milestones_ms)
        self._history.progress(report.queries)
        self._executors = self._executors.seen_by_driver(report.executor_ids)
        if any(query.batch_id >= 0 for query in report.queries):
            self._has_committed = True
        if report.phase is DriverPhase.FAILED and report.attempt in (0, self._attempt):
            self._driver_failed(report)
        elif report.attempt != self._attempt:
            pass  # about a deployment that is over
        elif report.phase is DriverPhase.RUNNING:
            self._confirm_running()
        elif report.phase is DriverPhase.FINISHED:
            self._finish()
        elif report.phase is DriverPhase.CANCELED and self._job.state is JobStatus.CANCELLING:
            self._all_stopped()
        self._publish()

    def _confirm_running(self) -> None:
        """The queries are active: executions whose executor is there are running."""
        now_ms = self._now_ms()
        present = {record.task_manager_id for record in self._executors.records if record.registered}

        def there(execution: ex.Execution) -> bool:
            return execution.task_manager_id in present

        self._executions = self._executions.apply(
            ex.DeployAcked(now_ms), lambda e: e.state is ExecutionState.DEPLOYING and there(e)
        )
        self._executions = self._executions.apply(
            ex.SwitchedToRunning(now_ms), lambda e: e.state is ExecutionState.INITIALIZING and there(e)
        )
        if self._job.state in (JobStatus.CREATED, JobStatus.RESTARTING) and self._executors.any_registered:
            self._step_job(jb.ExecutionsRunning(now_ms))

    def _finish(self) -> None:
        if self._job.state not in (
            JobStatus.CREATED, JobStatus.RUNNING, JobStatus.RESTARTING, JobStatus.CANCELLING,
        ):  # fmt: skip
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
        driver = self._driver
        if driver is None or driver.driver_id != driver_id or self._ended:
            return
        if self._job.state in (JobStatus.CANCELLING, JobStatus.FAILING):
            self._driver = None
            self._all_stopped()
            return
        error = error_from_exit(exit_status, output_tail)
        if error is None:
            error = DriverLost(f"driver {driver_id} {_ended_by(exit_status, output_tail)}")
        self._fail(error, driver_id, RestartLevel.DRIVER)

    def _driver_must_have_registered(self, driver: _Driver) -> None:
        if self._driver is driver and driver.registration is None and not self._job.state.terminal:
            limit_s = self._settings.driver_registration_timeout_ms // 1000
            self._fail(
                DriverLost(f"driver {driver.driver_id} did not register within {limit_s} s; see its log"),
                driver.driver_id,
                RestartLevel.DRIVER,
            )

    def _watch_driver(self, driver: _Driver) -> None:
        """Check the driver's heartbeat for as long as it is the current one."""
        if self._driver is not driver or self._ended:
            return
        silent_ms = self._now_ms() - driver.last_seen_ms
        limit_ms = self._settings.driver_heartbeat_timeout_ms
        if driver.registration is not None and silent_ms > limit_ms:
            self._fail(
                DriverLost(f"driver {driver.driver_id} has not reported for {silent_ms // 1000} s"),
                driver.driver_id,
                RestartLevel.DRIVER,
            )
            return
        self._mailbox.schedule(max(limit_ms // 5, 100), lambda: self._watch_driver(driver))

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
            self._stop_driver()
            self._all_stopped()
            return
        self._step_job(jb.RestartBegan(now_ms, error))
        self._executions = self._executions.new_attempts(now_ms).scheduled(now_ms)
        self._history.restarted()
        self._attempt += 1
        if self._restart_timer is not None:
            self._restart_timer.cancel()
        if level is RestartLevel.DRIVER:
            self._drop_driver()
        logger.info("Job %s restarts in %d ms (%s).", self._submission.name, decision.delay_ms, level.value)
        self._restart_timer = self._mailbox.schedule(decision.delay_ms, self._restart)
        self._publish()

    def _restart(self) -> None:
        self._restart_timer = None
        if self._job.state is not JobStatus.RESTARTING:
            return
        if not self._pool.is_complete:
            self._await_slots()
        if self._driver is None:
            self._launch_driver()
        self._advance()

    def _drop_driver(self) -> None:
        """End the current driver for good; its executors end with it."""
        driver, self._driver = self._driver, None
        self._executors, orphans = self._executors.driver_lost()
        if driver is not None:
            self._services.launcher.kill(driver.driver_id)
        for record in orphans:
            self._stop_executor(record)

    # --- cancel and end ---

    def _cancel(self) -> None:
        if self._job.state.terminal or self._job.state is JobStatus.CANCELLING:
            return
        now_ms = self._now_ms()
        self._step_job(jb.CancelRequested(now_ms))
        self._executions = self._executions.apply(ex.CancelRequested(now_ms))
        if self._restart_timer is not None:
            self._restart_timer.cancel()
            self._restart_timer = None
        driver = self._driver
        if driver is None or driver.registration is None or not driver.deployed_attempt:
            self._drop_driver()
            self._all_stopped()
            return
        gateway = self._services.gateways.driver(driver.registration.address)
        self._effect(gateway.cancel, lambda error: self._force_cancel(f"the driver did not answer: {error}"))
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
        self._executions = self._executions.apply(ex.CancelRequested(now_ms), not_terminal)
        self._executions = self._executions.apply(ex.CancelCompleted(now_ms))
        self._step_job(jb.AllExecutionsTerminal(now_ms))
        self._end()

    def _end(self) -> None:
        """Give everything back, then tell the Dispatcher."""
        self._ended = True
        self._publish()
        self._stop_driver()
        for record in self._executors.records:
            self._stop_executor(record)
        self._services.slots.release_slots(self._job_id)
        self._on_ended(self._job_id)

    def _stop_driver(self) -> None:
        """Ask the driver to leave; it is killed when it does not."""
        driver, self._driver = self._driver, None
        if driver is None:
            return
        launcher, driver_id = self._services.launcher, driver.driver_id
        if driver.registration is None:
            launcher.kill(driver_id)
            return
        gateway = self._services.gateways.driver(driver.registration.address)
        self._effect(gateway.shut_down, lambda _error: launcher.kill(driver_id))
        launcher.kill(driver_id, self._settings.shut_down_grace_ms)

    def _stop_executor(self, record: ExecutorRecord) -> None:
        gateway = self._services.gateways.task_executor(record.address)
        self._effect(lambda: gateway.stop_executor(self._job_id, record.executor_id), lambda _error: None)

    # --- small things ---

    def _now_ms(self) -> int:
        return self._services.clock.now_ms()

    def _effect(self, call: Callable[[], None], on_failure: Callable[[YarnflowError], None]) -> None:
        self._services.effects.perform(self._mailbox, call, lambda _none: None, on_failure)

    def _step_job(self, event: jb.JobEvent) -> None:
        self._job, changes = jb.MACHINE.step(self._job, event)
        for change in changes:
            logger.info(
                "Job %s (%s) switched from state %s to %s.",
                self._submission.name, self._job_id, change.old.value, change.new.value,
            )  # fmt: skip
            self._history.status(change.new, change.at_ms)
        self._publish()

    def _publish(self) -> None:
        self._services.board.publish(
            self._history.details(self._job, self._executions, len(self._pool.slots), self._waiting_for())
        )

    def _waiting_for(self) -> str:
        if self._job.state not in (JobStatus.CREATED, JobStatus.RESTARTING):
            return ""
        if self._restart_timer is not None:
            return "restart delay"
        if not self._pool.is_complete:
            return f"slots: {len(self._pool.slots)} of {self._pool.required}"
        if self._driver is None or self._driver.registration is None:
            return "driver"
        if not self._executors.all_registered:
            seen = sum(record.registered for record in self._executors.records)
            return f"executors: {seen} of {len(self._executors.records)}"
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
