"""A cluster of its own for one process: JobManager, TaskManagers, a warm spare driver.

JobManager and driver are started at once, before the user's program has built its graph: the
driver's JVM takes longest to come up.  TaskManagers are there in a moment, so they wait for the
first job, which tells how many slots they need; a later job that wants more than are left gets a
further one.  All processes are children of this one and die with it, however it ends.  Flink
counterpart: ``MiniCluster`` and the ``local`` target.
"""

from __future__ import annotations

import atexit
import logging
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from yarnflow.config.configuration import Configuration
from yarnflow.config.options import cluster, ha, history, job, memory, rest, security
from yarnflow.core.ids import JobId
from yarnflow.core.messages import Fence, JobDetails, JobSubmission, JobSubmitted
from yarnflow.core.ports import DispatcherGateway, GatewayFactory
from yarnflow.core.states import JobStatus
from yarnflow.errors import ResourceError, YarnflowError
from yarnflow.process.channel.messages import JobStatusReport
from yarnflow.process.cluster import ClusterSupervisor
from yarnflow.process.cluster_settings import ClusterListeners, DriverPlaces
from yarnflow.process.commands import ProcessCommands
from yarnflow.process.dirs import (
    LOCAL_NAME,
    ClusterDirectory,
    create_cluster_directory,
    temporary_directory,
    write_json,
)
from yarnflow.process.logs import keep_log_file
from yarnflow.process.secret import create_secret

logger: Final = logging.getLogger(__name__)

#: how long the JobManager may take to serve
START_TIMEOUT_S: Final = 60.0
#: how long processes may take to end in good order; no job runs any more by then
STOP_GRACE_S: Final = 2.0
#: the same where the JobManager may still write an archive
ARCHIVE_GRACE_S: Final = 10.0
#: restarts in a row before a job of a local cluster fails, unless an option says otherwise
LOCAL_RESTARTS: Final = 5
#: where several jobs are expected, and no option says otherwise
_DRIVER_IDLE_TIMEOUT: Final = "5 min"
_HOST: Final = "localhost"
_LOOK_AGAIN_S: Final = 0.05


class LocalCluster:
    """The processes of a local cluster; made by :meth:`start`.  Thread-safe."""

    def __init__(
        self,
        configuration: Configuration,
        directory: ClusterDirectory,
        supervisor: ClusterSupervisor,
        secret: bytes,
        *,
        several_jobs: bool = False,
    ) -> None:
        self._several_jobs = several_jobs
        self._configuration = configuration
        self._directory = directory
        self._supervisor = supervisor
        self._secret = secret
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._factory: GatewayFactory | None = None
        self._gateway: DispatcherGateway | None = None
        self._provide_lock = threading.Lock()
        #: slots of all TaskManagers (0 = none was started yet), and of the largest
        self._slots = 0
        self._largest = 0
        self._stopped = False
        self._kept = ""

    @classmethod
    def start(
        cls,
        configuration: Configuration,
        *,
        driver_stdout_fd: int | None = None,
        several_jobs: bool = False,
        supervise: Callable[..., ClusterSupervisor] = ClusterSupervisor,
    ) -> LocalCluster:
        """Start all processes but the TaskManagers; returns at once, before any of them serves.

        Parameters
        ----------
        configuration : Configuration
            Options of the command; ports are replaced by free ones.
        driver_stdout_fd : int, optional
            Where drivers write what the program prints; default: standard output of this process.
        several_jobs : bool
            Other jobs will probably follow the first one: the driver of a job that has finished waits for
            the next, a spare driver is started when a job has failed or was canceled, and a lone
            TaskManager has a slot for each processor at least.
        supervise : callable
            Makes what starts and watches the processes.

        Raises
        ------
        YarnflowError
            Directories, options or processes that cannot be.
        """
        directory = create_cluster_directory(
            temporary_directory(configuration), LOCAL_NAME, configuration.get(cluster.LOG_DIR)
        )
        try:
            secret = create_secret(directory.secret_file).encode("ascii")
            effective = local_configuration(configuration, directory.secret_file)
            if several_jobs and not configuration.is_set(cluster.DRIVER_IDLE_TIMEOUT_MS):
                idle = {cluster.DRIVER_IDLE_TIMEOUT_MS.key: _DRIVER_IDLE_TIMEOUT}
                effective = effective.with_values(idle, source="local cluster")
            effective = effective.with_values(
                keep_log_file(configuration, directory.log_settings_file), source="local cluster"
            )
            write_json(directory.conf_file, effective.to_dict())
            commands = ProcessCommands(
                cluster_dir=directory.path,
                conf_file=directory.conf_file,
                secret_file=directory.secret_file,
            )
            driver_mib = effective.get(memory.DRIVER_PROCESS_SIZE_MIB)
            drivers_wait = effective.get(cluster.DRIVER_IDLE_TIMEOUT_MS) > 0

            def job_status(report: JobStatusReport) -> None:
                # not before the job runs, whose driver and executors have the processors until then
                spare_due = report.status is JobStatus.RUNNING or report.status.terminal
                if drivers_wait:
                    # a spare would take them from jobs that need none
                    spare_due = report.status.terminal and report.status is not JobStatus.FINISHED
                if several_jobs and spare_due:
                    supervisor.start_spare_driver(driver_mib)

            supervisor: ClusterSupervisor = supervise(
                directory,
                commands,
                workers=configuration.get(cluster.MINICLUSTER_TASKMANAGERS),
                drivers=DriverPlaces(inherit_stdout=True, stdout_fd=driver_stdout_fd),
                listeners=ClusterListeners(on_job_status=job_status),
                kept_logs=configuration.get(cluster.LOG_RETAINED_PROCESSES),
            )
            started = cls(effective, directory, supervisor, secret, several_jobs=several_jobs)
        except BaseException:
            directory.remove(keep_evidence=False)
            raise
        atexit.register(started.stop, forced=True, failed=False)
        try:
            supervisor.start_job_manager()
            # the driver's JVM is the slowest of all to come up, so it does not wait for the rest
            supervisor.start_spare_driver(driver_mib)
        except BaseException:
            started.stop(forced=True, failed=False)
            raise
        return started

    @property
    def owned(self) -> bool:
        """A local cluster lives as long as its command."""
        return True

    @property
    def named_by(self) -> str:
        """Other commands of this user find it on this machine."""
        return "-t local"

    @property
    def directory(self) -> Path:
        """Runtime directory of the cluster."""
        return self._directory.path

    @property
    def logs(self) -> Path:
        """Directory of all log files."""
        return self._directory.logs

    def gateway(self) -> DispatcherGateway:
        """The Dispatcher; waits until the JobManager serves."""
        with self._lock:
            if self._gateway is None:
                address = self._supervisor.await_address(START_TIMEOUT_S)
                # here and not above: the program may never execute anything
                from yarnflow.rpc.gateways import ThriftGatewayFactory
                from yarnflow.rpc.member import Member, Role

                self._factory = ThriftGatewayFactory(
                    Member(Role.CLIENT, self._secret, self._configuration.get(cluster.CLUSTER_ID)),
                    "client",
                    self._configuration.get(cluster.RPC_ASK_TIMEOUT_MS),
                    self._configuration.get(cluster.RPC_FRAME_SIZE_BYTES),
                )
                self._gateway = self._factory.dispatcher(address)
            return self._gateway

    def present_gateway(self) -> DispatcherGateway | None:
        """There is one master."""
        return self.gateway()

    def followed(self) -> Fence | None:
        """Nobody takes over."""
        return None

    def submit(self, submission: JobSubmission, required_slots: int) -> JobSubmitted:
        """Hand a job over; the first one starts the TaskManagers.

        Parameters
        ----------
        required_slots : int
            Shared among the TaskManagers, unless ``taskmanager.numberOfTaskSlots`` is set.
        """
        with self._provide_lock:
            self._provide(required_slots)
            return self.gateway().submit_job(submission)

    @property
    def programs(self) -> None:
        """Programs run in the client."""

    def cluster_of(self, job_id: JobId) -> LocalCluster:
        """It runs all of its jobs itself."""
        return self

    def final_details(self, job_id: JobId) -> JobDetails | None:
        """Nothing is left of its jobs when it is gone."""
        return None

    def _provide(self, required_slots: int) -> None:
        if not self._slots:
            self._start_task_managers(required_slots)
        elif not self._configuration.is_set(cluster.TASKMANAGER_SLOTS):
            jobs = self.gateway().list_jobs()
            in_use = sum(job.slots_required for job in jobs if not job.status.terminal)
            missing = in_use + required_slots - self._slots
            if missing > 0:
                self._add_task_manager(missing)

    def _start_task_managers(self, required_slots: int) -> None:
        task_managers = self._configuration.get(cluster.MINICLUSTER_TASKMANAGERS)
        if self._several_jobs and task_managers == 1:
            # one executor is up sooner than two, and slots nobody has cost nothing
            required_slots = max(required_slots, os.cpu_count() or 1)
        configuration = with_slots(self._configuration, required_slots)
        write_json(self._directory.conf_file, configuration.to_dict())
        self._supervisor.start_workers()
        self._largest = configuration.get(cluster.TASKMANAGER_SLOTS)
        self._slots = self._largest * task_managers

    def _add_task_manager(self, slots: int) -> None:
        """Start a further TaskManager and wait for it, as a job that can never fit is refused."""
        self._write_slots(slots)
        try:
            self._supervisor.add_worker()
            end_s = time.monotonic() + START_TIMEOUT_S
            while self.gateway().cluster_overview().slots_total < self._slots + slots:
                if time.monotonic() >= end_s:
                    raise ResourceError(
                        f"a further TaskManager did not register within {START_TIMEOUT_S:.0f} s; "
                        f"see {self.logs}"
                    )
                time.sleep(_LOOK_AGAIN_S)
            self._slots += slots
        finally:
            # for any of them that has to be started again
            self._largest = max(self._largest, slots)
            self._write_slots(self._largest)

    def _write_slots(self, slots: int) -> None:
        values = {cluster.TASKMANAGER_SLOTS.key: str(slots)}
        configuration = self._configuration.with_values(values, source="local cluster")
        write_json(self._directory.conf_file, configuration.to_dict())

    def failure(self) -> YarnflowError | None:
        """Why the JobManager ended, when it did."""
        if self._supervisor.result is not None:
            return ResourceError("the cluster was told to end while its command ran (DELETE /cluster)")
        return self._supervisor.failure

    def stop(self, *, forced: bool = False, failed: bool = False) -> str:
        """End all processes and delete the directory.  Idempotent.

        Parameters
        ----------
        forced : bool
            KILL at once.
        failed : bool
            Keep logs and checkpoints.

        Returns
        -------
        str
            Directory of the kept logs, or empty.
        """
        # a forked copy of this process has none of its children
        if self._stopped or os.getpid() != self._pid:
            return self._kept
        self._stopped = True
        atexit.unregister(self.stop)
        grace_s = ARCHIVE_GRACE_S if self._configuration.get(history.ARCHIVE_DIR) else STOP_GRACE_S
        self._supervisor.stop(0.0 if forced else grace_s)
        if self._factory is not None:
            self._factory.close()
        keep = failed or self.failure() is not None
        self._directory.remove(keep_evidence=keep)
        self._kept = str(self._directory.logs) if keep else ""
        return self._kept


def local_configuration(configuration: Configuration, secret_file: Path) -> Configuration:
    """Options of the local cluster's processes: free ports, its own secret, an end to restarts.

    Somebody waits for the command, so a job that cannot work must end although Flink's default
    would start it again for ever.
    """
    values = {
        cluster.JOBMANAGER_RPC_ADDRESS.key: _HOST,
        cluster.JOBMANAGER_RPC_PORT.key: "0",
        cluster.JOBMANAGER_BIND_HOST.key: _HOST,
        cluster.TASKMANAGER_HOST.key: _HOST,
        cluster.TASKMANAGER_BIND_HOST.key: _HOST,
        cluster.TASKMANAGER_RPC_PORT.key: "0",
        security.CLUSTER_SECRET_FILE.key: str(secret_file),
        # it ends with its command, so there is nobody to take over
        ha.HA_TYPE.key: "none",
    }
    if not configuration.is_set(rest.REST_PORT) and not configuration.is_set(rest.REST_BIND_PORT):
        values[rest.REST_BIND_PORT.key] = "0"
    if not configuration.is_set(job.RESTART_EXPONENTIAL_ATTEMPTS):
        values[job.RESTART_EXPONENTIAL_ATTEMPTS.key] = str(LOCAL_RESTARTS)
    return configuration.with_values(values, source="local cluster")


def with_slots(configuration: Configuration, required_slots: int) -> Configuration:
    """Enough slots for ``required_slots``, unless their number is set."""
    if configuration.is_set(cluster.TASKMANAGER_SLOTS):
        return configuration
    task_managers = configuration.get(cluster.MINICLUSTER_TASKMANAGERS)
    slots = max(1, -(-required_slots // task_managers))
    return configuration.with_values({cluster.TASKMANAGER_SLOTS.key: str(slots)}, source="local cluster")
