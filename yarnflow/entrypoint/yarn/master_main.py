"""Main of the ApplicationMaster's container: the supervisor that skein runs as its master script.

Owns the JobManager, the drivers, the program of application mode and the connection to skein's
ApplicationMaster.  What takes longest is started first: a driver with its JVM, then the JobManager;
only then is anything imported that talks to YARN or HDFS.  TaskManagers are told where the
JobManager serves once it is certain that this application holds its job key, so a job whose key
was taken over never runs.

At the end the result goes to HDFS, YARN is told the final status, the application's directory is
deleted.  When this process is killed, its children die with it and the janitor cleans up.

The JobManager says when it leads: then its address is published.  With high availability this is one
of several masters; a JobManager that dies is started again and its driver runs on.  The cluster's end
is the end of every master, and with the same status; a master that fails ends alone, and the cluster
only when it was the last.  Flink counterparts: ``YarnJobClusterEntrypoint``,
``YarnApplicationClusterEntryPoint``, ``YarnSessionClusterEntrypoint``, ``YarnResourceManagerDriver``.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Final, TypeVar

from yarnflow.config.options import client, cluster, memory, yarn
from yarnflow.config.options import ha as ha_options
from yarnflow.core.ids import DriverId
from yarnflow.core.states import JobStatus
from yarnflow.core.yarn import DeploymentMode, FinalStatus
from yarnflow.entrypoint.ha_services import session_closer
from yarnflow.entrypoint.yarn import janitor
from yarnflow.entrypoint.yarn.container import (
    JOB_MANAGER_KEY,
    Container,
    append_output,
    enter,
    rotate_output,
    when_parent_ends,
    worker_name,
)
from yarnflow.entrypoint.yarn.leadership import LeadershipOnYarn, nobody_led_before
from yarnflow.entrypoint.yarn.master_end import End, end_of_cluster, failed, first_end, leave_result
from yarnflow.entrypoint.yarn.other_masters import Masters
from yarnflow.entrypoint.yarn.queued_workers import QueuedWorkers
from yarnflow.errors import JobError, ResourceError, StorageUnavailable, YarnflowError
from yarnflow.process.channel.messages import JobStatusReport, MasterRole
from yarnflow.process.clock import SystemClock
from yarnflow.process.cluster import ClusterSupervisor
from yarnflow.process.cluster_settings import ClusterListeners, DriverPlaces, OthersWorkers
from yarnflow.process.commands import ProcessCommands
from yarnflow.process.dirs import ClusterDirectory, write_json
from yarnflow.process.logs import log_settings, set_up_logging
from yarnflow.process.supervisor import Supervisor
from yarnflow.staging.deployment import ApplicationDirectory
from yarnflow.staging.layout import SUBMISSION_FILE
from yarnflow.yarn.drivers import YarnDrivers

if TYPE_CHECKING:
    from yarnflow.entrypoint.yarn.services import ContainerServices
    from yarnflow.yarn.application import YarnApplication

logger: Final = logging.getLogger(__name__)

T = TypeVar("T")

START_TIMEOUT_S: Final = 120.0
STOP_GRACE_S: Final = 2.0
_PROGRESS: Final = {JobStatus.CREATED: 0.1, JobStatus.RUNNING: 0.5}


@dataclass(frozen=True, slots=True)
class MasterTimes:
    """How long a master waits between one thing and the next."""

    #: how often a session looks whether there is room for another spare driver
    spare_interval_s: float = 2.0
    #: before something is tried again that HDFS or the JobManager did not do
    retry_s: float = 2.0
    #: whoever ends a container ends its ApplicationMaster as well, within this time
    container_ends_s: float = 2.0


class YarnMaster:
    """The supervisor of one application.

    Parameters
    ----------
    container : Container
    janitor_ : Janitor
        Dismissed once everything is cleaned up.
    services : callable
        HDFS and YARN.
    connect : callable
        Services → the connection to skein's ApplicationMaster.
    supervise : callable
        Makes what starts and watches the processes of the cluster.
    when_abandoned : callable
        Has a function called once skein's ApplicationMaster has ended.
    times : MasterTimes
    """

    def __init__(
        self,
        container: Container,
        janitor_: janitor.Janitor,
        services: Callable[[], ContainerServices],
        connect: Callable[[ContainerServices], YarnApplication],
        *,
        supervise: Callable[..., ClusterSupervisor] = ClusterSupervisor,
        when_abandoned: Callable[[Callable[[], None]], None] = when_parent_ends,
        times: MasterTimes = MasterTimes(),
    ) -> None:
        self._container = container
        self._deployment = container.deployment
        self._janitor = janitor_
        self._find_services = services
        self._connect = connect
        self._supervise = supervise
        self._when_abandoned = when_abandoned
        self._times = times
        self._configuration = container.configuration({cluster.JOBMANAGER_RPC_ADDRESS.key: container.host})
        self._directory: ClusterDirectory = container.open_directory()
        self._supervisor = Supervisor()
        highly_available = self._deployment.highly_available
        self._workers = QueuedWorkers(worker_name(container.application_id, "") if highly_available else "")
        self._ends: SimpleQueue[End] = SimpleQueue()
        self._ending = threading.Event()
        #: skein's ApplicationMaster
        self._parent_ended = threading.Event()
        #: what is to be told to YARN, by one thread
        self._calls: SimpleQueue[Callable[[YarnApplication], None]] = SimpleQueue()
        self._services: ContainerServices | None = None
        self._services_lock = threading.Lock()
        self._application: YarnApplication | None = None
        self._cluster: ClusterSupervisor | None = None
        #: which have containers of their own; None = they are processes of this container
        self._drivers = (
            YarnDrivers(self._driver_mib, self._driver_ended, self._driver_waits)
            if self._configuration.get(yarn.DRIVER_PLACEMENT) == "container"
            else None
        )
        #: with high availability
        self._masters = (
            Masters(self._deployment, container.application_id, self._await_services)
            if highly_available
            else None
        )
        self._leadership = LeadershipOnYarn(
            container,
            self._directory,
            self._configuration,
            self._supervisor,
            self._program_ended,
            None if highly_available else nobody_led_before,
        )
        self._role: MasterRole | None = None
        #: when what follows from the role was tried first; None = not yet
        self._tried_since_s: float | None = None

    def run(self) -> int:
        """Run the application to its end; returns the exit status."""
        signal.signal(signal.SIGTERM, lambda _number, _frame: self._terminated())
        signal.signal(signal.SIGINT, lambda _number, _frame: self._terminated())
        self._when_abandoned(self._abandoned)
        try:
            self._start()
        except YarnflowError as error:
            self._ends.put(failed(error))
        threading.Thread(target=self._talk_to_yarn, name="yarn", daemon=True).start()
        return self._finish(first_end(self._ends))

    # --- start ---------------------------------------------------------------

    def _start(self) -> None:
        """Start the processes, the slowest first."""
        deployment = self._deployment
        write_json(self._directory.conf_file, self._configuration.to_dict())
        arguments = ["--mode", deployment.mode.target]
        if deployment.mode is DeploymentMode.PER_JOB:
            arguments += ["--submission", str(self._container.directory / SUBMISSION_FILE)]
        self._cluster = self._supervise(
            self._directory,
            ProcessCommands(self._directory.path, self._directory.conf_file, self._container.secret_file),
            workers=OthersWorkers(self._workers, self._initial_task_managers),
            drivers=DriverPlaces(deployment.drivers, self._hot_spares),
            others_drivers=self._drivers,
            job_manager_arguments=arguments,
            highly_available=deployment.highly_available,
            master_owner=self._masters,
            listeners=ClusterListeners(
                on_job_status=self._job_status,
                on_role=self._role_changed,
                on_end=lambda result: self._ends.put(end_of_cluster(result, deployment.mode)),
                on_failure=lambda error: self._ends.put(failed(error)),
                on_process_ended=session_closer(self._configuration, self._directory.path),
            ),
            kept_logs=self._configuration.get(cluster.LOG_RETAINED_PROCESSES),
            supervisor=self._supervisor,
        )
        begins_with_driver = not self._container.standby or deployment.spare_drivers > 0
        if self._drivers is None and begins_with_driver:
            self._cluster.start_spare_driver(self._driver_mib)
        if not self._waits_for_key:
            self._cluster.start_job_manager()
        # not before: this takes the processor from the two
        set_up_logging(self._container.output, log_settings(self._configuration))
        logger.info(
            "This is the master of application %s (%s) in %s.",
            self._container.application_id,
            deployment.mode.target,
            self._container.container_id,
        )

    @property
    def _hot_spares(self) -> int:
        hot = self._configuration.get(ha_options.STANDBY_MODE) == "hot"
        return self._deployment.spare_drivers if hot else 0

    @property
    def _initial_task_managers(self) -> int:
        deployment, get = self._deployment, self._configuration.get
        ready = not self._container.standby or get(ha_options.STANDBY_MODE) == "hot"
        return deployment.initial_task_managers if ready else 0

    @property
    def _waits_for_key(self) -> bool:
        """TaskManagers find a leader by themselves, so nobody may lead before the job may run."""
        deployment = self._deployment
        return deployment.highly_available and bool(deployment.job_key) and not self._container.standby

    @property
    def _driver_mib(self) -> int:
        return self._configuration.get(memory.DRIVER_PROCESS_SIZE_MIB)

    def _talk_to_yarn(self) -> None:
        """Connect, see whether the job may run, then tell YARN and HDFS what there is to tell."""
        try:
            services = self._await_services()
            key = _Background(lambda: self._check_key(services))
            application = self._application = self._connect(services)
            self._serve_workers(application)
            if self._deployment.highly_available:
                # when processes end, there may be no working directory to import from any more
                import yarnflow.ha.services  # noqa: F401

            key.join()
            assert self._cluster is not None
            # what follows comes from the JobManager; one that hangs at its start is given up
            self._cluster.await_address(START_TIMEOUT_S)
        except Exception as error:
            # a JobManager that leads all the same must not be found
            self._ending.set()
            self._ends.put(_end_by(error))
        while True:
            self._next_call()

    def _serve_workers(self, application: YarnApplication) -> None:
        assert self._cluster is not None
        cluster, workers = self._cluster, self._workers
        application.workers.on_exit(lambda exit: cluster.worker_exited(workers.named_exit(exit)))
        application.workers.on_requests_canceled(cluster.requests_canceled)
        application.workers.on_state(lambda state: cluster.provider_state(workers.named_state(state)))
        application.workers.start()
        self._workers.attach(application.workers)
        if self._drivers is not None:
            application.serve_drivers(self._drivers)

    def _check_key(self, services: ContainerServices) -> None:
        """Raises JobError when another submit has taken the job key over."""
        deployment = self._deployment
        # a standby is there for a job that has its key
        if not deployment.job_key or self._container.standby:
            return
        from yarnflow.staging.job_keys import JobKeys

        keys = JobKeys(services.fs, deployment.layout, SystemClock())
        key, generation = deployment.job_key, deployment.key_generation
        mine = self._await_storage(
            lambda: keys.set_application(key, generation, self._container.application_id)
            and keys.is_newest(key, generation)
        )
        if not mine:
            raise JobError(
                f"job key {deployment.job_key} was taken over by another submit; this job does not run"
            )
        if self._waits_for_key and not self._ending.is_set():
            assert self._cluster is not None
            self._cluster.start_job_manager()

    def _await_storage(self, action: Callable[[], T]) -> T:
        """Do what needs HDFS; a NameNode that has just been started must not end the application."""
        deadline_s = time.monotonic() + self._configuration.get(client.CLIENT_TIMEOUT_MS) / 1000
        while True:
            try:
                return action()
            except StorageUnavailable as error:
                if self._ending.is_set() or time.monotonic() >= deadline_s:
                    raise
                logger.warning("%s; trying again", error)
                self._ending.wait(self._times.retry_s)

    def _next_call(self) -> None:
        try:
            try:
                call = self._calls.get(timeout=self._times.spare_interval_s)
            except Empty:
                self._keep_spare()
                return
            if self._application is not None:
                call(self._application)
        except YarnflowError as error:
            logger.warning("YARN could not be told: %s", error)
        except Exception:  # without this thread the application would never end
            logger.exception("YARN could not be told")

    def _keep_spare(self) -> None:
        """Have the next job's driver ready, or that for a lost one, as long as there is memory for it."""
        deployment = self._deployment
        wanted = deployment.mode is DeploymentMode.SESSION or deployment.spare_drivers > 0
        if not wanted or self._drivers is not None or self._cluster is None:
            return
        if len(self._cluster.drivers.running()) < deployment.drivers + deployment.spare_drivers:
            self._cluster.keep_spare_driver(self._driver_mib)

    # --- while it runs -------------------------------------------------------

    def _job_status(self, report: JobStatusReport) -> None:
        if self._deployment.mode is DeploymentMode.SESSION:
            return
        progress = 1.0 if report.status.globally_terminal else _PROGRESS.get(report.status)
        if progress is not None:
            self._calls.put(lambda application: application.set_progress(progress))

    def _role_changed(self, role: MasterRole) -> None:
        """The JobManager begins to lead or to stand by; acted on by the one thread that talks to YARN."""
        self._role, self._tried_since_s = role, None
        self._calls.put(lambda application: self._act_on(role, application))

    def _act_on(self, role: MasterRole, application: YarnApplication) -> None:
        if role is not self._role or self._ending.is_set():
            return
        since_s = self._tried_since_s = self._tried_since_s or time.monotonic()
        try:
            if role.leads and not self._deployment.highly_available:
                # with high availability ZooKeeper tells TaskManagers, of any application
                application.publish(JOB_MANAGER_KEY, role.address.encode("ascii"))
            directory = self._application_directory(self._await_services())
            self._leadership.changed(role, directory, application.add_web_page)
        except Exception as error:  # a leader that is not published could never be reached
            if self._gives_up(error, since_s):
                self._ends.put(_end_by(error))
                return
            logger.warning(
                "What follows from this master's role is tried again: %s",
                error,
                exc_info=None if isinstance(error, YarnflowError) else error,
            )
            again = threading.Timer(
                self._times.retry_s,
                lambda: self._calls.put(lambda application: self._act_on(role, application)),
            )
            again.daemon = True
            again.start()

    def _gives_up(self, error: Exception, since_s: float) -> bool:
        """Of several masters each tries on; with a single one the application ends that cannot begin."""
        if self._deployment.highly_available:
            return False
        tried_ms = (time.monotonic() - since_s) * 1000
        in_time = tried_ms < self._configuration.get(client.CLIENT_TIMEOUT_MS)
        return not (isinstance(error, StorageUnavailable) and in_time)

    def _driver_ended(self, driver_id: DriverId, exit_status: int, output_tail: str) -> None:
        assert self._cluster is not None
        self._cluster.driver_exited(driver_id, exit_status, output_tail)

    def _driver_waits(self, driver_id: DriverId, waits: bool) -> None:
        assert self._cluster is not None
        self._cluster.driver_waits(driver_id, waits)

    def _program_ended(self, exit_status: int, output_tail: str) -> None:
        assert self._cluster is not None
        self._cluster.program_ended(exit_status, output_tail)

    def _await_services(self) -> ContainerServices:
        with self._services_lock:
            if self._services is None:
                self._services = self._find_services()
            return self._services

    def _terminated(self) -> None:
        """Not the user's cancel of a job: YARN takes the container away, and knows itself why.

        After a ``yarn application -kill`` it has called the application KILLED; when it is the node that
        goes, it may have another attempt in mind, which a final status would prevent.
        """
        self._ends.put(End(FinalStatus.UNDEFINED, "the ApplicationMaster was told to end", at_once=True))

    def _abandoned(self) -> None:
        """skein's ApplicationMaster has ended without us: YARN has given the containers up."""
        self._parent_ended.set()
        self._ends.put(End(FinalStatus.UNDEFINED, "skein's ApplicationMaster has ended", at_once=True))

    # --- end -----------------------------------------------------------------

    def _finish(self, end: End) -> int:
        self._ending.set()
        logger.info("The application ends: %s. %s", end.status.value, end.diagnostics)
        if self._cluster is not None:
            self._cluster.stop(0.0 if end.at_once else STOP_GRACE_S)
        self._supervisor.stop(0.0)
        if self._drivers is not None:
            self._drivers.close()
        if end.status is FinalStatus.UNDEFINED:
            # whether there will be another attempt is YARN's decision; the janitor waits for it.  As long as
            # skein's ApplicationMaster lives, it takes our end for that of the application
            self._parent_ended.wait(self._times.container_ends_s)
            return 1
        told = self._tell_yarn(end)
        if told and self._clean_up():
            self._janitor.dismiss()
        return 0 if told else 1

    def _tell_yarn(self, end: End) -> bool:
        """Result to HDFS, final status to YARN; False when YARN does not know."""
        try:
            leave_result(end, self._application_directory(self._await_services()), self._masters)
        except YarnflowError as error:
            logger.warning("The result could not be written: %s", error)
        if self._masters is not None and end.of_cluster:
            self._masters.end_those_that_wait()
        try:
            application = self._application or self._connect(self._await_services())
            application.finish(end.status, end.diagnostics)
        except YarnflowError as error:
            logger.error("YARN could not be told how the application ended: %s", error)
            print(f"error: {end.diagnostics or error}", file=sys.stderr, flush=True)
            return False
        return True

    def _clean_up(self) -> bool:
        if self._deployment.highly_available:
            return False  # the last master's janitor does it, when no other one can begin any more
        try:
            assert self._services is not None
            self._application_directory(self._services).delete()
        except YarnflowError as error:
            logger.warning("%s; it is deleted later", error)
            return False
        return True

    def _application_directory(self, services: ContainerServices) -> ApplicationDirectory:
        return ApplicationDirectory(services.fs, self._deployment.layout, self._deployment.deployment_id)


def _end_by(error: Exception) -> End:
    """The application cannot begin."""
    if isinstance(error, YarnflowError):
        return failed(error)
    logger.error("The application could not be started", exc_info=error)
    return failed(ResourceError(f"the master broke: {type(error).__name__}: {error}"))


class _Background:
    """A call in a thread of its own; its error is raised where it is waited for."""

    def __init__(self, call: Callable[[], None]) -> None:
        self._call = call
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def join(self) -> None:
        """Wait for its end."""
        self._thread.join()
        if self._error is not None:
            raise self._error

    def _run(self) -> None:
        try:
            self._call()
        except Exception as error:
            self._error = error


def main() -> int:
    """Run the ApplicationMaster's supervisor; returns the exit status."""
    try:
        container = enter()
    except YarnflowError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    append_output()
    # meant for skein's JVM; a driver's options may contradict them
    os.environ.pop("JDK_JAVA_OPTIONS", None)

    def services() -> ContainerServices:
        from yarnflow.entrypoint.yarn.services import container_services

        return container_services(container.deployment)

    def connect(found: ContainerServices) -> YarnApplication:
        from yarnflow.yarn.application import YarnApplication

        return YarnApplication.from_current(found.cluster, container.deployment.user)

    cleaner = janitor.start(lambda: janitor.leftovers_of(container, services()))
    rotate_output()
    return YarnMaster(container, cleaner, services, connect).run()


if __name__ == "__main__":
    status = main()
    sys.stdout.flush()
    sys.stderr.flush()
    # threads of libraries must not hold the container up
    os._exit(status)
