"""Turns a submission and its options into a JobMaster.

The one place of ``runtime`` that reads a job's options.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from yarnflow.config.checkpoint_root import cluster_storage, shared_checkpoint_root
from yarnflow.config.configuration import Configuration
from yarnflow.config.hadoop.paths import with_file_system
from yarnflow.config.options import cluster as cluster_options
from yarnflow.config.options import ha as ha_options
from yarnflow.config.options import job as job_options
from yarnflow.config.options import memory as memory_options
from yarnflow.core.checkpoint.coordinator import CheckpointSettings
from yarnflow.core.checkpoint.messages import ClaimMode, RestoreSettings
from yarnflow.core.ha.ports import JobStores
from yarnflow.core.ids import DriverId, JobId
from yarnflow.core.job.context import job_context
from yarnflow.core.job.restart import RestartStrategy, restart_strategy_from
from yarnflow.core.job_run.events import StartKind
from yarnflow.core.messages import JobDetails, JobSubmission, LeaderInfo
from yarnflow.core.ports import Clock, GatewayFactory
from yarnflow.core.resources.scheduling import SchedulerKind, SchedulerSettings
from yarnflow.core.uris import file_uri
from yarnflow.errors import ConfigError, YarnflowError
from yarnflow.graph.codec import job_graph_from_json
from yarnflow.graph.job_graph import JobGraph
from yarnflow.runtime.dispatcher.describing import describe_job
from yarnflow.runtime.dispatcher.job_board import JobBoard
from yarnflow.runtime.job_dirs import local_checkpoints, work_dir
from yarnflow.runtime.jobmaster.driver_keeper import DriverKeeper
from yarnflow.runtime.jobmaster.job_master import JobMaster
from yarnflow.runtime.jobmaster.services import (
    DriverLaunching,
    HotSpareLaunching,
    JobMasterServices,
    JobMasterSettings,
    JobMetricsSink,
    Retention,
    SlotRequirements,
)
from yarnflow.runtime.jobmaster.state_files import JobStateFiles
from yarnflow.runtime.mailbox import Effects, Mailbox

logger = logging.getLogger(__name__)


class JobMasterFactory:
    """Makes JobMasters and tells them of their drivers' ends.

    Parameters
    ----------
    configuration : Configuration
        The cluster's; a job's own options are laid over it.
    cluster_dir : Path
        Jobs without ``execution.checkpointing.dir`` keep their checkpoints below it, unless another
        master may take over.
    new_mailbox : callable
        Makes a job's mailbox of its name.
    stores : JobStores
        What is kept beyond the JobMasters' lives.
    hot_spare_launcher : HotSpareLaunching
        Starts hot spares.
    secret : bytes
        The cluster's.
    driver_keeper : DriverKeeper
        Has the driver that waits for another job.
    metrics : JobMetricsSink
        Takes what the jobs' drivers measure.
    """

    def __init__(
        self,
        configuration: Configuration,
        cluster_dir: Path,
        clock: Clock,
        effects: Effects,
        gateways: GatewayFactory,
        launcher: DriverLaunching,
        slots: SlotRequirements,
        board: JobBoard,
        leader_info: Callable[[], LeaderInfo],
        new_id: Callable[[], str],
        jitter: Callable[[], float],
        new_mailbox: Callable[[str], Mailbox],
        stores: JobStores,
        hot_spare_launcher: HotSpareLaunching,
        secret: bytes,
        driver_keeper: DriverKeeper,
        metrics: JobMetricsSink,
    ) -> None:
        self._configuration = configuration
        self._cluster_dir = cluster_dir
        self._new_mailbox = new_mailbox
        self._services = JobMasterServices(
            clock,
            effects,
            gateways,
            launcher,
            slots,
            board,
            leader_info,
            new_id,
            jitter,
            stores,
            hot_spare_launcher,
            secret,
            driver_keeper,
            metrics,
        )
        #: guards changes of the table: jobs come in the Dispatcher's thread and go in their own
        self._lock = threading.Lock()
        #: replaced, never changed in place: driver exits arrive on another thread
        self._live: dict[JobId, JobMaster] = {}

    def create(
        self, submission: JobSubmission, on_ended: Callable[[JobId], None], start: StartKind
    ) -> JobMaster:
        """The JobMaster of a submission, not started.

        Parameters
        ----------
        submission : JobSubmission
            What to run.
        on_ended : callable
            Told when the job is over, see :class:`~yarnflow.runtime.jobmaster.job_master.JobMaster`.
        start : Fresh or Adopted
            How the job comes to this master.

        Raises
        ------
        ConfigError, GraphError
            The submission's options or graph cannot be used.
        """
        configuration = self._configuration.with_values(submission.configuration, f"job {submission.name}")
        graph = job_graph_from_json(submission.job_graph_json)

        def ended(job_id: JobId) -> None:
            with self._lock:
                self._live = {key: value for key, value in self._live.items() if key != job_id}
            on_ended(job_id)

        with job_context(submission.job_id):
            mailbox = self._new_mailbox(f"job-{submission.job_id[:8]}")
            job_master = JobMaster(
                submission,
                graph,
                self._settings(submission, graph, configuration),
                self._services,
                mailbox,
                ended,
                start,
                describe_job(submission, graph, configuration),
            )
        with self._lock:
            self._live = {**self._live, submission.job_id: job_master}
        return job_master

    def settle(self, submission: JobSubmission, details: JobDetails) -> None:
        """Put in order what a job leaves whose master was lost after it had put down the result; blocks.

        Raises
        ------
        ConfigError, GraphError
            The submission's options or graph cannot be used.
        StorageError, HaError
            It could not be put in order.
        """
        configuration = self._configuration.with_values(submission.configuration, f"job {submission.name}")
        graph = job_graph_from_json(submission.job_graph_json)
        settings = self._settings(submission, graph, configuration)
        JobStateFiles(submission, graph, settings, self._services).settle(details)

    def driver_exited(self, driver_id: DriverId, exit_status: int, output_tail: str) -> None:
        """Tell every live job; the one whose driver it was reacts."""
        self._services.driver_keeper.exited(driver_id)
        self._services.launcher.settled(driver_id)
        for job_master in self._live.values():
            job_master.driver_exited(driver_id, exit_status, output_tail)

    def driver_waits(self, job_id: JobId, driver_id: DriverId, waits: bool) -> None:
        """Tell a job that its driver is started later, or is started now."""
        job_master = self._live.get(job_id)
        if job_master is not None:
            job_master.driver_waits(driver_id, waits)

    def container_waits(self, driver_id: DriverId, waits: bool) -> None:
        """Tell every live job that a driver's container was asked for, or granted."""
        for job_master in self._live.values():
            job_master.driver_waits(driver_id, waits)

    def driver_not_started(self, job_id: JobId, driver_id: DriverId, error: YarnflowError) -> None:
        """Tell a job that its driver, which has waited for its turn, cannot be started."""
        logger.error("Driver %s of job %s cannot be started: %s", driver_id, job_id, error)
        job_master = self._live.get(job_id)
        if job_master is not None:
            job_master.driver_exited(driver_id, error.exit_code, f"error: {error}")

    def _settings(
        self, submission: JobSubmission, graph: JobGraph, configuration: Configuration
    ) -> JobMasterSettings:
        get = configuration.get
        root = self._checkpoint_root(configuration)
        restore, restore_if_lost = restore_settings(submission, configuration)
        return JobMasterSettings(
            restart_strategy=restart_strategy(configuration),
            scheduler=scheduler_settings(configuration),
            cancellation_timeout_ms=configuration.get(job_options.TASK_CANCELLATION_TIMEOUT_MS),
            driver_heartbeat_timeout_ms=configuration.get(job_options.DRIVER_HEARTBEAT_TIMEOUT_MS),
            driver_registration_timeout_ms=configuration.get(
                cluster_options.TASKMANAGER_REGISTRATION_TIMEOUT_MS
            ),
            driver_memory_mib=configuration.get(memory_options.DRIVER_PROCESS_SIZE_MIB),
            checkpoint_dir=f"{root}/{submission.job_id}",
            work_dir=str(work_dir(self._cluster_dir, submission.job_id)),
            call_timeout_ms=configuration.get(cluster_options.RPC_ASK_TIMEOUT_MS),
            checkpointing=checkpoint_settings(configuration),
            checkpoint_root=root,
            savepoint_dir=get(job_options.SAVEPOINT_DIR),
            retention=Retention(get(job_options.CHECKPOINT_RETENTION)),
            restore=restore,
            restore_if_lost=restore_if_lost,
            adoption_timeout_ms=get(ha_options.ADOPTION_TIMEOUT_MS),
            hot_spare=get(ha_options.STANDBY_MODE) == "hot",
            program_timeout_ms=get(job_options.PROGRAM_HEARTBEAT_TIMEOUT_MS),
            keeps_driver=(
                get(cluster_options.DRIVER_IDLE_TIMEOUT_MS) > 0
                and not graph.runs_code_in_driver
                # a SparkContext never forgets files
                and not submission.files
                # the next leader would not know of it, and nobody end it
                and not self._services.stores.highly_available
            ),
        )

    def checkpoint_root(self, options: Mapping[str, str]) -> str:
        """Parent (a URI) of the checkpoint directory of a job with these options over the cluster's."""
        try:
            return self._checkpoint_root(self._configuration.with_values(options, "a job"))
        except ConfigError as error:
            logger.warning("A job's options cannot be read, so the cluster's count: %s", error)
            return self._checkpoint_root(self._configuration)

    def goes_on_unasked(self, submission: JobSubmission) -> bool:
        """Return whether a job goes on from what the last one of its key left, if that one was lost."""
        try:
            configuration = self._configuration.with_values(submission.configuration, "a job")
            return restore_settings(submission, configuration)[1]
        except ConfigError:
            return False  # it is refused for that

    def _checkpoint_root(self, configuration: Configuration) -> str:
        # the next leader may be elsewhere
        storage = cluster_storage(self._configuration) if self._services.stores.highly_available else ""
        root = shared_checkpoint_root(configuration, storage)
        return root or file_uri(local_checkpoints(self._cluster_dir))


def checkpoint_settings(configuration: Configuration) -> CheckpointSettings:
    """When checkpoints are recorded: ``execution.checkpointing.*``."""
    get = configuration.get
    return CheckpointSettings(
        interval_ms=get(job_options.CHECKPOINT_INTERVAL_MS),
        min_pause_ms=get(job_options.CHECKPOINT_MIN_PAUSE_MS),
        timeout_ms=get(job_options.CHECKPOINT_TIMEOUT_MS),
        retained=get(job_options.CHECKPOINTS_RETAINED),
        savepoint_records=get(job_options.SAVEPOINT_RECORDS),
    )


def restore_settings(
    submission: JobSubmission, configuration: Configuration
) -> tuple[RestoreSettings | None, bool]:
    """The state to start from, and whether that of a lost job of the same key is taken without being asked.

    What the submission says comes before ``execution.state-recovery.path``.
    """
    if submission.restore is not None:
        return replace(submission.restore, path=with_file_system(submission.restore.path)), False
    path = configuration.get(job_options.STATE_RECOVERY_PATH)
    claim_mode = ClaimMode(configuration.get(job_options.STATE_RECOVERY_CLAIM_MODE))
    if not path:
        return None, bool(submission.job_key)
    if path == job_options.NO_STATE:
        return None, False
    if path == job_options.LATEST_STATE:
        return RestoreSettings(claim_mode=claim_mode, latest=True), False
    return RestoreSettings(with_file_system(path), claim_mode), False


def scheduler_settings(configuration: Configuration) -> SchedulerSettings:
    """How a job waits for slots: ``jobmanager.scheduler`` and its time-outs."""
    get = configuration.get
    return SchedulerSettings(
        kind=SchedulerKind(get(job_options.SCHEDULER)),
        slot_request_timeout_ms=get(cluster_options.SLOT_REQUEST_TIMEOUT_MS),
        resource_wait_timeout_ms=get(job_options.RESOURCE_WAIT_TIMEOUT_MS),
        stabilization_timeout_ms=get(job_options.RESOURCE_STABILIZATION_TIMEOUT_MS),
    )


def restart_strategy(configuration: Configuration) -> RestartStrategy:
    """The restart strategy of ``restart-strategy.*``."""
    get = configuration.get
    return restart_strategy_from(
        get(job_options.RESTART_STRATEGY),
        fixed_delay_attempts=get(job_options.RESTART_FIXED_DELAY_ATTEMPTS),
        fixed_delay_delay_ms=get(job_options.RESTART_FIXED_DELAY_DELAY_MS),
        failure_rate_max_failures=get(job_options.RESTART_FAILURE_RATE_MAX_FAILURES),
        failure_rate_interval_ms=get(job_options.RESTART_FAILURE_RATE_INTERVAL_MS),
        failure_rate_delay_ms=get(job_options.RESTART_FAILURE_RATE_DELAY_MS),
        exponential_initial_backoff_ms=get(job_options.RESTART_EXPONENTIAL_INITIAL_BACKOFF_MS),
        exponential_multiplier=get(job_options.RESTART_EXPONENTIAL_MULTIPLIER),
        exponential_max_backoff_ms=get(job_options.RESTART_EXPONENTIAL_MAX_BACKOFF_MS),
        exponential_reset_threshold_ms=get(job_options.RESTART_EXPONENTIAL_RESET_THRESHOLD_MS),
        exponential_jitter_factor=get(job_options.RESTART_EXPONENTIAL_JITTER_FACTOR),
        exponential_attempts_before_reset=get(job_options.RESTART_EXPONENTIAL_ATTEMPTS),
    )
