"""The parts of a JobManager that leads, wired: Dispatcher, ResourceManager, JobMasters.

Made when the leadership is granted and never used again when it is lost: the process ends then.
Flink counterparts: ``SessionDispatcherLeaderProcess``, ``DefaultDispatcherResourceManagerComponent``.
"""

from __future__ import annotations

import logging
import random
import secrets
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from yarnflow.config.configuration import Configuration
from yarnflow.config.options import cluster as cluster_options
from yarnflow.config.options import ha as ha_options
from yarnflow.config.options import yarn as yarn_options
from yarnflow.core.cluster_result import ClusterResult, job_diagnostics
from yarnflow.core.ha.ports import JobStores, Leadership, MasterInfo
from yarnflow.core.ids import DriverId
from yarnflow.core.messages import Fence, JobDetails, LeaderInfo, RestAccess
from yarnflow.core.ports import Clock, DriverLauncher, GatewayFactory, ResourceProvider
from yarnflow.core.resources.diagnostics import ProcessDiagnostics
from yarnflow.core.yarn import DeploymentMode
from yarnflow.entrypoint.master.fault_injection import FaultInjector, MasterFaults
from yarnflow.entrypoint.master.lifetime import ClusterLife, Lifetime, UntilToldToEnd
from yarnflow.entrypoint.master.log_levels import ClusterLogLevels
from yarnflow.entrypoint.master.own_process import JobManagerProcess
from yarnflow.entrypoint.master.web.archives import Archives
from yarnflow.entrypoint.master.web.leader_web import LeaderView, LeaderWeb
from yarnflow.entrypoint.master.web.master_web import WebApplication
from yarnflow.metrics.service import MetricsService
from yarnflow.metrics.store import MetricStore
from yarnflow.process.channel.messages import JobStatusReport
from yarnflow.process.dirs import log_directory
from yarnflow.rest.framework.changes import JobChanges
from yarnflow.rpc.methods import DISPATCHER, JOB_MASTER, RESOURCE_MANAGER, Service
from yarnflow.runtime.dispatcher.dispatcher import Dispatcher
from yarnflow.runtime.dispatcher.job_archive import JobArchive
from yarnflow.runtime.dispatcher.job_board import JobBoard
from yarnflow.runtime.dispatcher.job_factory import JobMasterFactory
from yarnflow.runtime.jobmaster.driver_keeper import DriverKeeper
from yarnflow.runtime.jobmaster.hot_spare_launcher import HotSpareLauncher
from yarnflow.runtime.leader_clock import Doubt, LeaderClock
from yarnflow.runtime.mailbox import Effects, Mailbox
from yarnflow.runtime.placement.paced_launcher import PacedLauncher
from yarnflow.runtime.placement.standby_first import StandbyFirstLauncher
from yarnflow.runtime.placement.standby_hosts import StandbyHosts
from yarnflow.runtime.resourcemanager.resource_manager import ResourceManager, ResourceManagerSettings

if TYPE_CHECKING:
    from yarnflow.rest.framework.authentication import Authentication

logger = logging.getLogger(__name__)

#: versions of job snapshots begin with the epoch, so that they rise over all leaders
_EPOCH_SHIFT: Final = 32
#: TaskManagers follow a new leader within this time; those that have not are taken for gone
_TAKEOVER_GRACE_MS: Final = 2_000


@dataclass(frozen=True, slots=True)
class MasterParts:
    """What a master process has, whether it leads or not."""

    configuration: Configuration
    cluster_dir: Path
    clock: Clock
    effects: Effects
    gateways: GatewayFactory
    launcher: DriverLauncher
    provider: ResourceProvider
    stores: JobStores
    #: what drills may break of this master
    victim: MasterFaults
    #: the cluster's
    secret: bytes
    #: of this process
    diagnostics: ProcessDiagnostics
    #: address and tokens of the REST interface
    rest_access: Callable[[], RestAccess]
    #: the check of requests to it
    authentication: Callable[[], Authentication]
    #: told of each new status of a job
    job_status: Callable[[JobStatusReport], object] = lambda _report: None
    #: what the cluster lives for; None = until it is told to end
    mode: DeploymentMode | None = None
    #: drivers there is memory for; 0 = no limit
    max_jobs: int = 0
    #: TaskManagers that come without being asked for
    workers_expected: int = 0
    #: whether a worker is one of this master's own provider
    own_worker: Callable[[str], bool] = lambda _worker_id: True
    #: the other masters, the one that leads next first
    other_masters: Callable[[], Sequence[MasterInfo]] = tuple
    #: address that this master listens at
    bind_host: str = ""
    #: YARN's name of the container that this master runs in
    container_id: str = ""
    #: asks until there is an answer whether this process still leads under a fence; blocks
    still_leads: Callable[[Fence], bool] = lambda _fence: True

    def standbys(self) -> Sequence[str]:
        """Addresses of the other masters, the one that leads next first."""
        # of one whose word is not believed, the address is not known
        return tuple(master.address for master in self.other_masters() if master.address)

    @property
    def keeps_masters(self) -> bool:
        """There are to be other masters, and this one has them started; elsewhere somebody else does."""
        return self.mode is not None and self.stores.highly_available

    @property
    def drivers_in_containers(self) -> bool:
        """Each driver has a container of YARN of its own."""
        in_containers = self.configuration.get(yarn_options.DRIVER_PLACEMENT) == "container"
        return self.mode is not None and in_containers


class Leader:
    """The duty of the master that leads: one leadership of this process.

    Parameters
    ----------
    parts : MasterParts
    fence : Fence
        Of this leadership.
    leader_info : callable
        Address and fence of this master.
    on_done : callable
        The work is done.
    on_fatal : callable
        An endpoint is in an unknown state.
    """

    def __init__(
        self,
        parts: MasterParts,
        fence: Fence,
        leader_info: Callable[[], LeaderInfo],
        on_done: Callable[[], None],
        on_fatal: Callable[[BaseException], None],
    ) -> None:
        configuration, clock = parts.configuration, parts.clock
        self._time = LeaderClock(clock)
        #: guards that doubts and what is told of them go together
        self._doubting = threading.Lock()
        new_mailbox = partial(Mailbox, clock=self._time, on_fatal=on_fatal, may_run=self._time.is_certain)
        timeout_ms = configuration.get(cluster_options.RPC_ASK_TIMEOUT_MS)
        self._fence: Final = fence
        self._parts = parts
        self._dispatcher_mailbox = new_mailbox("dispatcher")
        self._resource_mailbox = new_mailbox("resource-manager")
        changes = JobChanges()
        measured = MetricStore()
        self.board = JobBoard(
            clock,
            configuration.get(cluster_options.JOBSTORE_MAX_CAPACITY),
            self._report_status,
            # nobody else could run a job again
            self._keep_end if parts.stores.highly_available else None,
            (fence.epoch - 1) << _EPOCH_SHIFT,
            changes.changed,
        )
        self.resource_manager = ResourceManager(
            resource_manager_settings(configuration, parts.workers_expected, fence.epoch > 1),
            self._time,
            self._resource_mailbox,
            parts.effects,
            parts.gateways,
            parts.provider,
            leader_info,
            lambda: secrets.token_hex(16),
            lambda: self.dispatcher,
            parts.own_worker,
            measured.put_task_manager,
        )
        hosts = StandbyHosts(parts.gateways, clock)
        launcher: DriverLauncher = parts.launcher
        if parts.drivers_in_containers:
            launcher = StandbyFirstLauncher(launcher, hosts, parts.standbys)
        jobs = JobMasterFactory(
            configuration,
            parts.cluster_dir,
            self._time,
            parts.effects,
            parts.gateways,
            PacedLauncher(
                launcher,
                configuration.get(cluster_options.MAX_CONCURRENT_DRIVER_STARTS),
                lambda job_id, driver_id, waits: jobs.driver_waits(job_id, driver_id, waits),
                lambda job_id, driver_id, error: jobs.driver_not_started(job_id, driver_id, error),
            ),
            self.resource_manager,
            self.board,
            leader_info,
            new_id=lambda: secrets.token_hex(16),
            jitter=lambda: random.uniform(-1.0, 1.0),
            new_mailbox=new_mailbox,
            stores=parts.stores,
            hot_spare_launcher=HotSpareLauncher(
                parts.launcher,
                hosts,
                parts.standbys,
                parts.keeps_masters and configuration.get(ha_options.JOBMANAGERS) > 1,
                clock,
            ),
            secret=parts.secret,
            driver_keeper=DriverKeeper(
                configuration.get(cluster_options.DRIVER_IDLE_TIMEOUT_MS),
                self._time,
                self._dispatcher_mailbox.schedule,
                parts.launcher.kill,
            ),
            metrics=measured,
        )
        faults = FaultInjector(
            clock,
            parts.gateways,
            parts.victim,
            self.board.get,
            lambda job_id: self.dispatcher.driver_of(job_id),
            lambda: [info.registration for info in self.resource_manager.task_managers()],
        )
        log_levels = ClusterLogLevels(
            parts.gateways,
            parts.standbys,
            lambda: [info.registration for info in self.resource_manager.task_managers()],
            lambda: self.dispatcher.drivers(),
            timeout_ms,
        )
        self.dispatcher = Dispatcher(
            self._dispatcher_mailbox,
            self.board,
            jobs.create,
            leader_info,
            self.resource_manager,
            on_done,
            timeout_ms,
            JobArchive(parts.stores, jobs.checkpoint_root, jobs.settle, jobs.goes_on_unasked),
            parts.effects,
            parts.max_jobs,
            faults.inject,
            log_levels.change,
            parts.rest_access,
            lambda job_id: self._archives.ended(job_id),
        )
        self._jobs = jobs
        self.lifetime: ClusterLife = (
            UntilToldToEnd(self.board)
            if parts.mode is None
            else Lifetime(parts.mode, clock, self.dispatcher, self.board)
        )
        since_ms = clock.now_ms()
        view = LeaderView(
            configuration,
            parts.cluster_dir,
            self.dispatcher,
            self.board,
            self.resource_manager,
            parts.gateways,
            lambda: Leadership(leader_info(), since_ms, tuple(parts.other_masters())),
        )
        self._metrics = MetricsService(
            configuration, view, measured, JobManagerProcess(), clock, parts.bind_host
        )
        self._web = LeaderWeb(
            view,
            self._metrics.registry,
            parts.diagnostics,
            configuration,
            clock,
            changes,
            parts.authentication,
            lambda: (
                configuration.get(cluster_options.JOBMANAGER_RPC_ADDRESS),
                parts.container_id,
                str(log_directory(configuration, parts.cluster_dir)),
            ),
            parts.cluster_dir,
            # what lives for one job or program takes no other
            (lambda: leader_info().address) if parts.mode in (None, DeploymentMode.SESSION) else None,
        )
        self._archives = Archives(configuration, self._web.recorder, clock)

    @property
    def fence(self) -> Fence:
        """Calls of this leadership."""
        return self._fence

    def services(self) -> Mapping[str, Service]:
        """What the RPC server answers while this master leads."""
        return {
            "Dispatcher": Service(DISPATCHER, self.dispatcher),
            "ResourceManager": Service(RESOURCE_MANAGER, self.resource_manager),
            "JobMaster": Service(JOB_MASTER, self.dispatcher),
        }

    def start(self) -> None:
        """Start the threads; nobody can call this leader yet."""
        self._time.watch(self._after_pause)
        self._dispatcher_mailbox.start()
        self._resource_mailbox.start()
        self.resource_manager.start()
        self._metrics.start()
        self._archives.start()

    def recover(self, drivers_left: Sequence[DriverId] = ()) -> None:
        """Take over the jobs there are; blocks.

        Parameters
        ----------
        drivers_left : sequence of DriverId
            Drivers of this machine's supervisor that an earlier process asked for.  Those that do
            not hold a job's lease are nobody's: they are ended, as they take the place of others.

        Raises
        ------
        YarnflowError
            The stores cannot be read.
        """
        stores = self._parts.stores
        if drivers_left:
            holders = [stores.leases.holder(job_id) for job_id in stores.job_graphs.job_ids()]
            held = {holder.driver_id for holder in holders if holder is not None}
            for driver_id in drivers_left:
                if driver_id not in held:
                    self._parts.launcher.kill(driver_id)
        self.dispatcher.recover()
        self._archives.recovered(self.board.all())
        # ends that came before are heard of now, by jobs that know their driver
        self._parts.launcher.on_exit(self._jobs.driver_exited)
        self._parts.launcher.on_wait(self._jobs.container_waits)

    def web(self) -> WebApplication:
        """What answers requests to the REST interface."""
        return self._web.application()

    def connection_closed(self, identity: str) -> None:
        """A TaskManager's connection is gone."""
        self.resource_manager.connection_closed(identity)

    def driver_exited(self, driver_id: DriverId, exit_status: int, output_tail: str) -> None:
        """A driver has ended before this master led."""
        self._jobs.driver_exited(driver_id, exit_status, output_tail)

    def program_ended(self, exit_status: int, output_tail: str) -> None:
        """No further job comes from the program; any thread."""
        self.lifetime.program_ended(exit_status, output_tail)

    def end(self) -> ClusterResult:
        """Let everybody see how the jobs ended; returns how the cluster did."""
        result = self.lifetime.end()
        self._archives.finish()
        return result

    def stop(self) -> None:
        """Do nothing more; drivers and TaskManagers are not touched."""
        self._metrics.stop()
        self.dispatcher.stop()
        self._archives.stop()
        self._web.stop()
        self._time.end()

    def suspended(self) -> None:
        """The connection to ZooKeeper is lost: decide nothing."""
        self._doubt(Doubt.CONNECTION)

    def resumed(self) -> None:
        """The connection is back in time."""
        self._settle(Doubt.CONNECTION)

    def _after_pause(self) -> None:
        logger.warning("This process did not run for a while; nothing is decided before it is sure to lead.")
        self._doubt(Doubt.PAUSE)
        if self._parts.still_leads(self._fence):
            self._settle(Doubt.PAUSE)

    def _doubt(self, doubt: Doubt) -> None:
        with self._doubting:
            self._time.doubt(doubt)
            self.dispatcher.suspended()

    def _settle(self, doubt: Doubt) -> None:
        with self._doubting:
            if self._time.doubts() == {doubt}:
                # what was said meanwhile comes before this, and this before any timer
                self.resource_manager.resumed()
                self.dispatcher.resumed()
            self._time.settle(doubt)

    def _report_status(self, details: JobDetails) -> None:
        overview = details.overview
        self._parts.job_status(
            JobStatusReport(overview.job_id, overview.status, job_diagnostics(details), overview.name)
        )

    def _keep_end(self, details: JobDetails, shown: Callable[[], None]) -> None:
        self.dispatcher.keep_end(details, shown)


def resource_manager_settings(
    configuration: Configuration, workers_expected: int, takes_over: bool
) -> ResourceManagerSettings:
    """The options of the ResourceManager."""
    get = configuration.get
    return ResourceManagerSettings(
        heartbeat_timeout_ms=get(cluster_options.HEARTBEAT_TIMEOUT_MS),
        rpc_failure_threshold=get(cluster_options.HEARTBEAT_RPC_FAILURE_THRESHOLD),
        call_timeout_ms=get(cluster_options.RPC_ASK_TIMEOUT_MS),
        pending_slot_timeout_ms=get(cluster_options.RPC_ASK_TIMEOUT_MS),
        slots_per_worker=get(cluster_options.TASKMANAGER_SLOTS),
        max_slots=get(yarn_options.MAX_SLOTS) if configuration.is_set(yarn_options.MAX_SLOTS) else None,
        redundant_workers=get(yarn_options.REDUNDANT_TASKMANAGERS),
        idle_timeout_ms=get(yarn_options.TASKMANAGER_IDLE_TIMEOUT_MS),
        registration_timeout_ms=get(yarn_options.WORKER_REGISTRATION_TIMEOUT_MS),
        max_start_failures_per_minute=get(yarn_options.START_WORKER_MAX_FAILURE_RATE),
        start_retry_interval_ms=get(yarn_options.START_WORKER_RETRY_INTERVAL_MS),
        # those that an earlier leader found are there, or its supervisor has withdrawn the request
        workers_expected=0 if takes_over else workers_expected,
        takeover_grace_ms=_TAKEOVER_GRACE_MS if takes_over else 0,
        adoption_timeout_ms=get(ha_options.ADOPTION_TIMEOUT_MS),
    )
