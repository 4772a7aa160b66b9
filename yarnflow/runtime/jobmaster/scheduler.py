"""Decides about one job: driver, deployments, restarts, cancellation and end.

It turns what happened into changes of the job's state (:mod:`~yarnflow.runtime.jobmaster.record`) and
effects on slots and executors (:mod:`~yarnflow.runtime.jobmaster.resources`), the driver
(:mod:`~yarnflow.runtime.jobmaster.driver_process`) and checkpoints
(:mod:`~yarnflow.runtime.jobmaster.checkpoints`).  It never touches records, and never
blocks: calls to others are effects whose ends come back as posts.  Used in the JobMaster's mailbox only.

How far up a failure goes: Spark reruns tasks on other executors (``TASKS``); the query is started
again in the same driver (``QUERY``); a new driver on the same slots (``DRIVER``).  The restart
strategy counts the last two.  A new master takes over the driver that runs (``MASTER``), or, when
that is gone, starts another one; neither is the job's fault, and neither is counted.  Nor is a
driver that ends because ZooKeeper was away from it.

Flink counterpart: ``DefaultScheduler``.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Final

from yarnflow.core.checkpoint.messages import CheckpointRequest
from yarnflow.core.ha.ports import DriverLeaseInfo
from yarnflow.core.ids import AllocationId, DriverId, JobId
from yarnflow.core.messages import (
    DriverDeployment,
    DriverPhase,
    DriverRegistration,
    DriverReport,
    ErrorInfo,
    JobSubmission,
    ProgramKind,
    SlotOffer,
)
from yarnflow.core.states import JobStatus, RestartLevel
from yarnflow.errors import (
    CheckpointError,
    CheckpointFailed,
    DriverLost,
    InternalError,
    LeaseLost,
    SavepointNotFound,
    YarnflowError,
    error_from_exit,
)
from yarnflow.graph.job_graph import JobGraph
from yarnflow.runtime.jobmaster.adoption import Adoption
from yarnflow.runtime.jobmaster.checkpoints import CheckpointControl
from yarnflow.runtime.jobmaster.driver_process import DriverLink
from yarnflow.runtime.jobmaster.failures import FailurePolicy, ended_by, error_info, is_loss, is_outage
from yarnflow.runtime.jobmaster.record import JobRecord
from yarnflow.runtime.jobmaster.resources import JobResources
from yarnflow.runtime.jobmaster.restore import RestoreChoice
from yarnflow.runtime.jobmaster.services import JobMasterServices, JobMasterSettings
from yarnflow.runtime.mailbox import Mailbox, TimerHandle

logger = logging.getLogger(__name__)

#: within that time a hot spare has found its new leader
_LEFT_DRIVER_MS: Final = 2_000
#: before the next try of a driver whose end was ZooKeeper's, not the job's: it must not spin
_OUTAGE_DELAY_MS: Final = 1_000


class JobScheduler:
    """One job's decisions.

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
    recovered : bool
        An earlier master accepted the job, and its driver may run.
    """

    def __init__(
        self,
        submission: JobSubmission,
        graph: JobGraph,
        settings: JobMasterSettings,
        services: JobMasterServices,
        mailbox: Mailbox,
        on_ended: Callable[[JobId], None],
        recovered: bool = False,
    ) -> None:
        self._submission = submission
        self._job_id = submission.job_id
        self._settings = settings
        self._services = services
        self._mailbox = mailbox
        self._on_ended = on_ended
        self.record = JobRecord(
            submission,
            graph,
            services.clock,
            services.board,
            lambda: (len(self.resources.slots.offers), self._waiting_for()),
        )
        self._policy = FailurePolicy(settings.restart_strategy, services.clock, services.jitter)
        self.driver = DriverLink(submission, services, settings, mailbox, self._driver_lost)
        self.resources = JobResources(
            submission,
            graph.required_slots(),
            settings,
            services,
            mailbox,
            self.record,
            self.driver,
            self._advance,
            lambda error, location, final: self._fail(error, location, RestartLevel.DRIVER, final),
            self._stranded,
            recovered,
        )
        self._hot_spare = self.resources.hot_spare
        self.checkpoints = CheckpointControl(
            submission, graph, settings, services, mailbox, self.driver, self._state_unusable
        )
        self._restore = RestoreChoice(submission, settings, services, mailbox, self._restore_failed)
        self._restore_known = False
        self.adoption = Adoption(
            submission, settings, services, mailbox, self.driver, recovered, self._driver_gone
        )
        self._recovered = recovered
        #: a user wants the end, but what runs is not known yet
        self._cancel_wanted = False
        #: a driver that an earlier master had ready may report in a moment
        self._awaits_left_driver = False
        #: slots were asked for
        self._declared = False
        #: rises with each deployment, over all drivers
        self._attempt = 1
        self._restart_timer: TimerHandle | None = None
        self._in_doubt = False
        #: until then it may come out what an outage of ZooKeeper has cost
        self._doubtful_until_ms = 0
        self._ended = False

    # --- start ---

    def start(self) -> None:
        """Begin: ask for slots and a driver at the same time, or look for those there are."""
        if self.record.status is not JobStatus.INITIALIZING:
            return  # canceled before it began
        self.record.milestone("SUBMITTED")
        if self._recovered:
            self.checkpoints.recover(self._policy.committed)
            self.adoption.begin(self._take_over, self._all_offered)
        else:
            self.adoption.watch()
            self._restore.resolve(self._restore_resolved)
            self._begin()
        self.record.publish()

    def _begin(self) -> None:
        """Ask for slots and a driver at the same time."""
        self.record.initialized()
        self._all_offered()
        self._launch_driver()

    def _declare_slots(self) -> None:
        if not self._declared:
            self._declared = True
            self.resources.slots.declare()

    def _all_offered(self) -> None:
        """Whatever slots the job had under an earlier master, it has them now or has lost them."""
        self._hot_spare.settle()
        self._declare_slots()

    def _launch_driver(self) -> None:
        if self._awaits_left_driver:
            return
        self.record.milestone("DRIVER_REQUESTED")
        self.driver.launch()

    def _restore_resolved(self, note: str) -> None:
        if self._ended:
            return
        self._restore_known = True
        if note:
            self._starts_empty(note)
        self._advance()

    def _restore_failed(self, error: YarnflowError) -> None:
        if not self.driver.adopted:  # that one started long ago
            self._state_unusable(error)

    def _starts_empty(self, note: str) -> None:
        error = SavepointNotFound(f"{note}; job {self._submission.name} starts empty")
        logger.warning("%s", error)
        self.record.failure(error_info(error), "", RestartLevel.QUERY, recovered=True)

    # --- adoption ---

    def _take_over(self, holder: DriverLeaseInfo | None) -> None:
        """It is known now whether a driver of the master before lives."""
        if self._settings.hot_spare:
            self._awaits_left_driver = True
            self._mailbox.schedule(_LEFT_DRIVER_MS, self._no_left_driver)
        if holder is None:
            self._begin()
        else:
            self._attempt = max(holder.attempt, 1)
            self.record.adopting()
            self.resources.adopt()
        if self._cancel_wanted:
            self.cancel()
            return
        self._restore.resolve(self._restore_resolved)
        self._advance()

    def _no_left_driver(self) -> None:
        """No hot spare of an earlier master is coming any more."""
        self._awaits_left_driver = False
        waits = self.record.status in (JobStatus.CREATED, JobStatus.RESTARTING)
        if waits and self._restart_timer is None and not self.driver.exists:
            self._launch_driver()

    def _adopts(self, registration: DriverRegistration) -> bool:
        """Whether a driver that nobody here launched, and that never ran the job, is of use.

        It is the hot spare of the master before: that of the job as well, or, when the job's own
        driver was lost with that master, the one that steps in for it.
        """
        driver_id = registration.driver_id
        strange = self._settings.hot_spare and not registration.attempt and not self.is_wanted(driver_id)
        if not (strange and self._recovered) or self._cancel_wanted or self._ended:
            return False
        if self.record.status.terminal:
            return False
        if self.driver.exists or not self.record.wants_executors:
            # too late if the job is about to start executors in place of its own
            return not self.resources.runs_for(driver_id) and self._hot_spare.adopt(registration)
        logger.warning("Job %s: driver %s, which was ready, steps in.", self._submission.name, driver_id)
        self._awaits_left_driver = False
        if self.record.status is JobStatus.CREATED:  # executions may have others' slots
            error = DriverLost(f"the driver was lost with its master; {driver_id}, which was ready, goes on")
            self._restart_after(error_info(error), "", RestartLevel.DRIVER, 0)
        self.driver.adopt(driver_id)
        self.driver.register(registration)
        # TaskManagers with its executors may still be to come, and others came already
        self._hot_spare.unsettle()
        self._mailbox.schedule(_LEFT_DRIVER_MS, self._all_offered)
        self.resources.change_to(driver_id)
        self._advance()
        return True

    def _driver_gone(self, driver_id: DriverId, reason: str) -> None:
        """It does not hold the job's lease any more, or never reported.

        A job whose master was lost with its driver is not to blame, so the restart strategy is not asked.
        """
        if self.record.status is not JobStatus.RECONCILING:
            # drivers give up while ZooKeeper is away, and that is not their jobs' fault either
            outage = self._in_doubt or self._now_ms() < self._doubtful_until_ms
            error = LeaseLost(reason) if outage else DriverLost(reason)
            self._fail(error, driver_id, RestartLevel.DRIVER)
            return
        if self._cancel_wanted:
            self.resources.drop_driver()
            self.record.cancelling()
            self._all_stopped()
            return
        error = DriverLost(f"{reason}; another driver goes on from the last commit")
        logger.warning("Job %s: %s", self._submission.name, error)
        self._restart_after(error_info(error), driver_id, RestartLevel.DRIVER, 0)

    def _adopted(self) -> None:
        """The driver reports as before: nothing was interrupted."""
        self.record.failure(self.adoption.story(), "", RestartLevel.MASTER, recovered=True)
        self._policy.committed()

    # --- slots and executors ---

    def offer_slots(self, offers: Sequence[SlotOffer]) -> Sequence[AllocationId]:
        """Accept what the job still needs."""
        if self.record.status.terminal or self._ended:
            return ()
        accepted = self.resources.offer(offers)
        self._advance()
        return accepted

    def resources_wait(self, text: str) -> None:
        """What all missing slots wait for; empty = nothing is known."""
        if self.resources.slots.outlook(text) or self._hot_spare.waiting_for:
            self.record.publish()

    def _advance(self) -> None:
        """Do whatever has become possible: executors on new slots, then the deployment."""
        slots = self.resources.slots
        if self.record.status is JobStatus.RECONCILING and slots.is_complete:
            self._declare_slots()
        self._hot_spare.fill()
        if self.record.wants_executors and slots.may_run:
            self.record.milestone("SLOTS")
            self.record.assign_slots(slots.task_manager_ids)
            registration = self.driver.registration
            if registration is not None:
                self.resources.start_executors(registration)
                self._deploy_if_due()
        self.resources.prepare_hot_spare()
        self.record.publish()

    def _deploy_if_due(self) -> None:
        pool = self.resources.pool
        if (
            self.driver.deployed_attempt == self._attempt
            or self._restart_timer is not None
            or not pool.records
            or not self._restore_known
        ):
            return
        self.driver.deploy(
            DriverDeployment(
                attempt=self._attempt,
                submission=self._submission,
                executor_ids=pool.executor_ids,
                total_cores=pool.total_cores,
                # what has committed something goes on from there
                restore=None if self._policy.has_committed else self._restore.settings,
            )
        )
        self.resources.slots.deployed()

    # --- driver ---

    def is_wanted(self, driver_id: DriverId) -> bool:
        """Whether this driver is the job's, or its hot spare; from any thread."""
        return self._hot_spare.is_current(driver_id) or self.driver.is_current(driver_id)

    def register_driver(self, registration: DriverRegistration) -> None:
        """A driver is ready; raises DriverLost when it is not the job's."""
        if self._hot_spare.register(registration) or self._adopts(registration):
            return
        self.driver.register(registration)
        self.record.milestones(registration.milestones_ms)
        self.record.milestone("DRIVER_REGISTERED")
        if self.record.status is JobStatus.RECONCILING and registration.attempt:
            self._attempt = registration.attempt
            self.resources.slots.deployed()
        elif self.record.status is JobStatus.RECONCILING:
            self._all_offered()  # it never ran: what it needs must be found first
        if self._cancel_wanted:
            self.cancel()
        self._advance()

    def report(self, report: DriverReport) -> None:
        """Heartbeat of a driver."""
        theirs = self._hot_spare.report(report)
        if theirs or not self.driver.is_current(report.driver_id) or self._ended:
            return
        self.driver.seen()
        self.record.milestones(report.milestones_ms)
        self.record.progress(report.queries)
        self.resources.seen_by_driver(report.executor_ids)
        if any(query.batch_id >= 0 for query in report.queries):
            self._policy.committed()
        self.checkpoints.reported(report)
        if report.phase is DriverPhase.FAILED and report.attempt in (0, self._attempt):
            self._driver_failed(report)
        elif report.attempt == self._attempt:
            self._take_phase(report.phase)
        if report.queries and all(query.batch_id >= 0 for query in report.queries):
            self._hot_spare.job_commits()
        self.record.publish()

    def _take_phase(self, phase: DriverPhase) -> None:
        if phase is DriverPhase.RUNNING:
            self._confirm_running()
        elif phase is DriverPhase.FINISHED:
            self.checkpoints.when_recorded(self._finish)
        elif phase is DriverPhase.CANCELED and not self.record.status.terminal:
            self._cancel_restart()
            self.record.cancelling()  # if it was told so by the master before
            self._all_stopped()

    def _confirm_running(self) -> None:
        before = self.record.status
        self.resources.confirm_running()
        if before is JobStatus.RECONCILING and self.record.status is JobStatus.RUNNING:
            self._adopted()
            if self.resources.pool.all_registered:
                self._declare_slots()
        if self.record.status is JobStatus.RUNNING:
            self.resources.prepare_hot_spare()
            if not self._recovered:
                self.checkpoints.started_from(self._restore)

    def _finish(self) -> None:
        if not self._ended and (self.record.wants_executors or self.record.status is JobStatus.CANCELLING):
            self.record.finished()
            self._end()

    def _driver_failed(self, report: DriverReport) -> None:
        error = report.error or ErrorInfo(InternalError.code, "the driver failed without saying why")
        new_driver = report.driver_unusable or self._submission.kind is ProgramKind.SCRIPT
        level = RestartLevel.DRIVER if new_driver else RestartLevel.QUERY
        note = self._restore.gone() if error.code == SavepointNotFound.code else ""
        if note and self.record.wants_executors:
            self._starts_empty(note)
            self._restart_after(error, report.driver_id, level, 0)
        else:
            self._fail_with(error, report.driver_id, level)

    def driver_exited(self, driver_id: DriverId, exit_status: int, output_tail: str) -> None:
        """A driver process ended."""
        theirs = self._hot_spare.exited(driver_id, exit_status, output_tail)
        if theirs or not self.driver.is_current(driver_id) or self._ended:
            return
        if self.record.status is JobStatus.RECONCILING:
            self._driver_gone(driver_id, f"driver {driver_id} {ended_by(exit_status, output_tail)}")
            return
        self.driver.gone()
        error = error_from_exit(exit_status, output_tail)
        if error is None:
            error = DriverLost(f"driver {driver_id} {ended_by(exit_status, output_tail)}")
        self._driver_lost(error, driver_id)

    def _driver_lost(self, error: YarnflowError, driver_id: DriverId) -> None:
        self._fail(error, driver_id, RestartLevel.DRIVER)

    # --- leadership ---

    def suspended(self) -> None:
        """What comes from now on came while it was in doubt whether this master leads."""
        self._in_doubt = True
        self.checkpoints.suspended()

    def resumed(self) -> None:
        """This master led all the time, but could not hear anybody."""
        self._in_doubt = False
        self._doubtful_until_ms = self._now_ms() + self._settings.adoption_timeout_ms
        self.driver.seen()
        self._hot_spare.resumed()
        self.checkpoints.resumed()

    # --- checkpoints ---

    def trigger_checkpoint(self, request: CheckpointRequest) -> None:
        """Begin a checkpoint or savepoint."""
        if self.checkpoints.knows(request.request_id):
            return
        status, name = self.record.status, self._submission.name
        if self._ended or not self.record.wants_executors:
            raise CheckpointError(f"job {name} is {status.value}; there is nothing to take a checkpoint of")
        if status is not JobStatus.RUNNING:
            raise CheckpointFailed(f"job {name} is {status.value}; try again when it is RUNNING")
        self.checkpoints.requested(request)

    def _state_unusable(self, error: YarnflowError) -> None:
        self._fail(error, "", RestartLevel.QUERY, final=True)

    # --- failure and restart ---

    def _fail(self, error: YarnflowError, location: str, level: RestartLevel, final: bool = False) -> None:
        self._fail_with(error_info(error), location, level, final)

    def _fail_with(self, error: ErrorInfo, location: str, level: RestartLevel, final: bool = False) -> None:
        if self.record.status in (JobStatus.CANCELLING, JobStatus.FAILING):
            self._all_stopped()
            return
        if self.record.status.terminal or self.record.status is JobStatus.INITIALIZING:
            return  # over, or not known yet what runs
        logger.warning("Job %s failed: %s", self._submission.name, error.message)
        if is_outage(error) and not final:
            self._restart_after(error, location, level, _OUTAGE_DELAY_MS)
            return
        decision = self._policy.decide(error, final)
        if decision is None:
            self.record.failure(error, location, level, recovered=False)
            self.record.failing(error)
            self._all_stopped()
            return
        if decision.counted:
            self.record.restarted()
        self._restart_after(error, location, level, decision.delay_ms)

    def _stranded(self, error: YarnflowError, location: str) -> bool:
        """No executor is left and the hot spare is complete; whether that goes on.

        It counts as a restart: what an executor dies of it may die of on every driver.
        """
        info = error_info(error)
        decision = self._policy.decide(info)
        if decision is None:
            return False
        logger.warning("Job %s: %s; its hot spare goes on.", self._submission.name, error)
        if decision.counted:
            self.record.restarted()
        self._restart_after(info, location, RestartLevel.DRIVER, 0)
        return True

    def _restart_after(self, error: ErrorInfo, location: str, level: RestartLevel, delay_ms: int) -> None:
        worked = self.record.status is JobStatus.RUNNING
        self.record.failure(error, location, level, recovered=True)
        self.record.restarting(error)
        self.checkpoints.interrupted(error.message)
        self._attempt += 1
        self._cancel_restart()
        if level is RestartLevel.DRIVER:
            self.resources.drop_driver()
            if self.resources.step_in() and is_loss(error):
                delay_ms = 0
            elif worked and not self.driver.exists:
                # it takes longer to come than most delays last; one that cannot even start is not hurried
                self._launch_driver()
        self._all_offered()
        logger.info("Job %s restarts in %d ms (%s).", self._submission.name, delay_ms, level.value)
        self._restart_timer = self._mailbox.schedule(delay_ms, self._restart)
        self.record.publish()

    def _restart(self) -> None:
        self._restart_timer = None
        if self.record.status is not JobStatus.RESTARTING:
            return
        if not self.resources.slots.is_complete:
            self.resources.slots.wait()
        if not self.driver.exists:
            self._launch_driver()
        self._advance()

    def _cancel_restart(self) -> None:
        if self._restart_timer is not None:
            self._restart_timer.cancel()
            self._restart_timer = None

    # --- cancel and end ---

    def cancel(self) -> None:
        """Begin to cancel."""
        if self.record.status.terminal or self.record.status is JobStatus.CANCELLING:
            return
        unheard = self.driver.adopted and self.driver.registration is None
        if self.adoption.pending or unheard:
            # what runs is to end in good order, and may be about to already
            self._cancel_wanted = True
            return
        self.record.cancelling()
        self.checkpoints.interrupted("the job is canceled")
        self._cancel_restart()
        if self.driver.deployed_attempt != self._attempt:  # nothing of this attempt runs
            self.resources.drop_driver()
            self._all_stopped()
            return
        self.driver.cancel(lambda error: self._force_cancel(f"the driver did not answer: {error}"))
        self._mailbox.schedule(
            self._settings.cancellation_timeout_ms,
            lambda: self._force_cancel("task.cancellation.timeout is over"),
        )
        self.record.publish()

    def _force_cancel(self, reason: str) -> None:
        if self.record.status is JobStatus.CANCELLING:
            logger.warning("Job %s is ended by force: %s", self._submission.name, reason)
            self.resources.drop_driver()
            self._all_stopped()

    def _all_stopped(self) -> None:
        """Nothing of the job runs any more."""
        if not self._ended:
            self.record.all_stopped()
            self._end()

    def _end(self) -> None:
        """Give everything back, see to what is kept, then tell the Dispatcher."""
        self._ended = True
        self.record.publish()
        self.driver.dismiss()
        self.resources.release()
        self.adoption.end()
        self._restore.end()
        details = self._services.board.last(self._job_id)
        if details is not None:
            self.checkpoints.end(details, lambda: self._on_ended(self._job_id))

    def _now_ms(self) -> int:
        return self._services.clock.monotonic_ms()

    def _waiting_for(self) -> str:
        if not self.record.wants_executors:
            return ""
        if self._restart_timer is not None:
            return "restart delay"
        return self.resources.waiting_for
