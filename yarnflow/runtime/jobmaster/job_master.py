"""One job's endpoint: takes what others say to it, in any thread, into the job's own mailbox.

What follows is decided there, by :mod:`yarnflow.core.job_run.decider`.  Flink counterpart: ``JobMaster``.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from yarnflow.core.checkpoint.messages import CheckpointInfo, CheckpointRequest, JobCheckpoints
from yarnflow.core.collect.parts import CollectedPage, part_key
from yarnflow.core.ids import AllocationId, DriverId, JobId, TaskManagerId
from yarnflow.core.job.description import JobDescription
from yarnflow.core.job_run import events as ev
from yarnflow.core.messages import (
    DriverRegistration,
    DriverReport,
    ExecutorExited,
    JobSubmission,
    SlotOffer,
)
from yarnflow.errors import DriverLost, JobError, LeadershipLost
from yarnflow.graph.job_graph import JobGraph
from yarnflow.runtime.jobmaster.collecting import Collecting
from yarnflow.runtime.jobmaster.runner import JobRunner
from yarnflow.runtime.jobmaster.services import JobMasterServices, JobMasterSettings
from yarnflow.runtime.mailbox import Mailbox

logger = logging.getLogger(__name__)

#: drivers of one job whose event logs are known; a job that restarts for weeks has many
MAX_EVENT_LOGS: Final = 20


class JobMaster:
    """One job; see :class:`yarnflow.runtime.dispatcher.job_endpoint.JobEndpoint`.

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
    description : JobDescription
        What it is, for people and tools.
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
        description: JobDescription,
    ) -> None:
        self._description = description
        #: Spark's names of the drivers that have run the job, oldest first; replaced, never changed in place
        self._spark_applications: tuple[str, ...] = ()
        self._name = submission.name
        self._job_id = submission.job_id
        self._mailbox = mailbox
        self._launcher = services.launcher
        self._effects = services.effects
        self._metrics = services.metrics
        self._call_timeout_ms = settings.call_timeout_ms
        self._runner = JobRunner(submission, graph, settings, services, mailbox, on_ended, start)
        self._collecting = (
            Collecting(
                services.stores.collected(settings.checkpoint_dir),
                part_key(services.secret, submission.job_id),
                settings.program_timeout_ms,
                services.clock,
                mailbox,
                self._program_gone,
            )
            if graph.collects
            else None
        )

    # --- from the Dispatcher, RPC and the ResourceManager; any thread ---

    def start(self) -> None:
        """Begin: ask for slots and a driver at the same time."""
        self._runner.publish()  # whoever gets the answer to the submission may ask for the job at once
        self._mailbox.start()
        self._mailbox.post(self._runner.start)
        if self._collecting is not None:
            self._mailbox.post(self._collecting.watch)

    def cancel(self) -> None:
        """Begin to cancel."""
        self._post(ev.CancelRequested)

    def stop(self) -> None:
        """Do nothing more; driver and executors are not touched."""
        self._mailbox.stop()

    def offer_slots(self, offers: Sequence[SlotOffer]) -> Sequence[AllocationId]:
        """Accept what the job still needs."""

        def offered() -> Sequence[AllocationId]:
            self._runner.happened(lambda at: ev.SlotsOffered(at, tuple(offers)))
            if self._runner.run.ended:
                return ()
            ids = (offer.allocation_id for offer in offers)
            return tuple(allocation_id for allocation_id in ids if self._runner.run.has_slot(allocation_id))

        return self._mailbox.call(offered, self._call_timeout_ms)

    def executor_exited(self, report: ExecutorExited) -> None:
        """An executor ended."""
        self._post(lambda at: ev.ExecutorEnded(at, report))

    def register_driver(self, registration: DriverRegistration) -> None:
        """A driver is ready.

        Raises
        ------
        DriverLost
            It is not this job's current driver, and must end.
        LeadershipLost
            This master does not know yet which driver is.
        """

        def registered() -> None:
            self._runner.happened(lambda at: ev.DriverRegistered(at, registration))
            self._launcher.settled(registration.driver_id)
            self._check_wanted(registration.driver_id)

        self._check_drivers_known()
        self._effects.alive(registration.address)
        self._mailbox.call(registered, self._call_timeout_ms)

    def report(self, report: DriverReport) -> None:
        """Heartbeat of the driver.

        Raises
        ------
        DriverLost
            It is not this job's current driver, and must end.
        LeadershipLost
            This master does not know yet which driver is.
        """
        self._check_drivers_known()
        self._check_wanted(report.driver_id)
        address = self._runner.run.address_of(report.driver_id)
        if address:
            self._effects.alive(address)
        if report.metrics and self._runner.run.active.has_driver(report.driver_id):
            self._metrics.put_job(report.job_id, report.metrics)
        self._note_application()
        # the events of a job are kept for a while, what was measured is not
        event = replace(report, metrics=()) if report.metrics else report
        self._post(lambda at: ev.DriverReported(at, event))

    def driver(self) -> DriverRegistration | None:
        """The driver that runs the job, or is about to; None while it has none that has registered."""
        return self._runner.run.active.registration

    def description(self) -> JobDescription:
        """What the job is, as it was submitted."""
        description = self._description
        if description.event_log is None:
            return description
        log = replace(description.event_log, application_ids=self._spark_applications)
        return replace(description, event_log=log)

    def _note_application(self) -> None:
        """A job that writes Spark's event log has one for each of its drivers."""
        registration = self._runner.run.active.registration
        if self._description.event_log is None or registration is None:
            return
        known = self._spark_applications
        if registration.app_id not in known:
            self._spark_applications = (*known, registration.app_id)[-MAX_EVENT_LOGS:]

    def trigger_checkpoint(self, request: CheckpointRequest) -> None:
        """Begin a checkpoint or savepoint; a request that is known already changes nothing.

        Raises
        ------
        CheckpointError
            The job is over, or nobody says where the savepoint shall be.
        CheckpointFailed
            The job does not run at the moment.
        """
        self._mailbox.call(lambda: self._runner.trigger_checkpoint(request), self._call_timeout_ms)

    def await_checkpoint(self, request_id: str, timeout_ms: int) -> CheckpointInfo:
        """What a request led to as soon as it has ended, or so far after the time; also of an ended job.

        Raises
        ------
        CheckpointError
            Nobody asked for one under this id.
        """
        return self._runner.checkpoints.await_outcome(request_id, timeout_ms)

    def checkpoints(self) -> JobCheckpoints:
        """All that is known of the job's checkpoints; also of an ended job."""
        return self._runner.checkpoints.snapshot()

    def await_collected(self, position: str, timeout_ms: int) -> CollectedPage:
        """Elements for the program after a position; also of an ended job, which has none.

        Raises
        ------
        JobError
            The job does not collect any.
        StorageError
            They cannot be read.
        """
        if self._collecting is None:
            raise JobError(f"job {self._name} has no execute_and_collect(), so it collects no elements")
        return self._collecting.await_page(position, timeout_ms, lambda: self._runner.run.ended)

    def suspended(self) -> None:
        """This master cannot reach ZooKeeper: no checkpoint is completed until it can again."""
        self._post(ev.LeadInDoubt)
        self._mailbox.post(self._runner.checkpoints.suspended)

    def resumed(self) -> None:
        """This master led all the time."""
        self._post(ev.LeadConfirmed)
        self._mailbox.post(self._runner.checkpoints.resumed)
        if self._collecting is not None:
            self._mailbox.post(self._collecting.resumed)

    def driver_exited(self, driver_id: DriverId, exit_status: int, output_tail: str) -> None:
        """A driver process ended."""
        self._post(lambda at: ev.DriverExited(at, driver_id, exit_status, output_tail))

    def driver_waits(self, driver_id: DriverId, waits: bool) -> None:
        """The driver is started later, or is started now."""
        self._post(lambda at: ev.DriverWaits(at, driver_id, waits))

    def task_manager_lost(self, task_manager_id: TaskManagerId, reason: str) -> None:
        """A TaskManager is gone with everything on it."""
        self._post(lambda at: ev.TaskManagerGone(at, task_manager_id, reason))

    def slot_lost(self, allocation_id: AllocationId, reason: str) -> None:
        """One slot is not the job's any more; its TaskManager lives."""
        self._post(lambda at: ev.SlotLost(at, allocation_id, reason))

    def slots_unfulfillable(self, message: str) -> None:
        """The cluster can never give the slots."""
        self._post(lambda at: ev.SlotsRefused(at, message))

    def task_manager_diagnosed(self, task_manager_id: TaskManagerId, text: str) -> None:
        """Why a TaskManager was lost."""
        self._post(lambda at: ev.TaskManagerDiagnosed(at, task_manager_id, text))

    def resources_wait(self, text: str) -> None:
        """What all missing slots wait for; empty = nothing is known."""
        self._post(lambda at: ev.OutlookChanged(at, text))

    def _program_gone(self, reason: str) -> None:
        if not self._runner.run.ended:
            logger.warning("Job %s (%s) is canceled: %s.", self._name, self._job_id, reason)
            self._runner.happened(ev.CancelRequested)

    def _post(self, event: Callable[[ev.Stamp], ev.Event]) -> None:
        self._mailbox.post(lambda: self._runner.happened(event))

    def _check_drivers_known(self) -> None:
        if self._runner.run.is_driver_unknown:
            raise LeadershipLost(f"this master does not know yet who runs job {self._name}; ask again")

    def _check_wanted(self, driver_id: DriverId) -> None:
        if not self._runner.run.knows(driver_id):
            raise DriverLost(f"driver {driver_id} was replaced; it must end")
