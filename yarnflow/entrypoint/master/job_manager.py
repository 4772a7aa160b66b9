"""One master of a cluster: a candidate, and the leader once it is granted that.

It stands for election, and answers who leads until it is granted the leadership; then it takes over
the jobs there are (:mod:`yarnflow.entrypoint.master.leader`).  A single master is the only candidate
and is granted at once.  When the leadership is revoked the process ends, so that nothing half of it
stays; its supervisor starts it again.

Flink counterparts: ``ClusterEntrypoint``, ``DefaultDispatcherRunner``.
"""

from __future__ import annotations

import logging
import os
import re
import secrets
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, TypeVar

from yarnflow import __version__
from yarnflow.config.configuration import Configuration
from yarnflow.config.options import cluster as cluster_options
from yarnflow.config.options import ha as ha_options
from yarnflow.config.options import history as history_options
from yarnflow.config.options import rest as rest_options
from yarnflow.core.cluster_result import ClusterResult
from yarnflow.core.ha.ports import MasterInfo
from yarnflow.core.ids import DriverId
from yarnflow.core.messages import Fence, JobSubmission, LeaderInfo, RestAccess
from yarnflow.core.ports import DriverLauncher, ResourceProvider
from yarnflow.core.yarn import DeploymentMode
from yarnflow.entrypoint.ha_services import HaServices
from yarnflow.entrypoint.master.cluster_ending import ClusterEnding
from yarnflow.entrypoint.master.fault_injection import MasterFaults
from yarnflow.entrypoint.master.hosted_drivers import HostedDrivers
from yarnflow.entrypoint.master.leader import Leader, MasterParts
from yarnflow.entrypoint.master.master_count import keep_masters
from yarnflow.entrypoint.master.standby import NOBODY, MasterDuty, Standby
from yarnflow.entrypoint.master.web.archives import check_archive_dir
from yarnflow.entrypoint.master.web.master_web import MasterWeb
from yarnflow.errors import LeadershipLost, YarnflowError
from yarnflow.metrics.service import check_options
from yarnflow.process.channel.job_manager_end import Ask
from yarnflow.process.channel.messages import MasterRole, StartMaster
from yarnflow.process.clock import SystemClock
from yarnflow.process.dirs import log_directory, write_json
from yarnflow.process.logs import own_log_name, own_output_name
from yarnflow.process.output.diagnostics import Diagnostics
from yarnflow.rest.access.tokens import Access
from yarnflow.rpc.gateways import ThriftGatewayFactory
from yarnflow.rpc.listen import bind_host, translated_addresses
from yarnflow.rpc.member import Member, Role
from yarnflow.rpc.server import RpcServer
from yarnflow.runtime.mailbox import Effects

logger = logging.getLogger(__name__)

T = TypeVar("T")

#: before something is tried again that ZooKeeper or the file system did not do
_RETRY_S: Final = 0.5
_APPLICATION: Final = re.compile(r"(?:application|container(?:_e\d+)?)_(\d+_\d+)(?![^_/])")


def exit_process(status: int) -> None:
    """End now, without waiting for any thread; what was logged is written."""
    logging.shutdown()
    os._exit(status)


class JobManager:
    """One master: a candidate, and the leader once it is granted that.

    Parameters
    ----------
    configuration : Configuration
        The cluster's.
    cluster_dir : Path
        Where its address is published and jobs get their directories.
    secret : bytes
        The cluster secret.
    launcher, provider
        The supervisor's services.
    ha : HaServices
        Who leads, and what is kept.
    ask_supervisor : callable
        Told of this master's role and of each new status of a job; asked for further masters.
    mode : DeploymentMode, optional
        What the cluster lives for; None = until it is told to end.
    max_jobs : int
        Drivers there is memory for; 0 = no limit.
    workers_expected : int
        TaskManagers that come without being asked for.
    container_id : str
        YARN's name of the container it runs in.
    end_process : callable
        Ends the process with a status when this master does not lead any more.
    """

    def __init__(
        self,
        configuration: Configuration,
        cluster_dir: Path,
        secret: bytes,
        launcher: DriverLauncher,
        provider: ResourceProvider,
        ha: HaServices,
        *,
        ask_supervisor: Ask = lambda _request: None,
        mode: DeploymentMode | None = None,
        max_jobs: int = 0,
        workers_expected: int = 0,
        container_id: str = "",
        end_process: Callable[[int], None] = exit_process,
    ) -> None:
        check_options(configuration)
        check_archive_dir(configuration.get(history_options.ARCHIVE_DIR))
        self._configuration = configuration
        self._cluster_dir = cluster_dir
        self._ha = ha
        self._ending = ClusterEnding(cluster_dir, ha.election, ha.cluster_end)
        self._ask_supervisor = ask_supervisor
        self._end_process = end_process
        self._application = application_number(container_id)
        self.ended = threading.Event()
        self._work_done = False
        self._failure: BaseException | None = None
        self._clock = clock = SystemClock()
        self._fence = NOBODY
        self._known_leader: LeaderInfo | None = None
        #: the oldest first
        self._other_masters: tuple[MasterInfo, ...] = ()
        #: guards the next two, which go together
        self._duty_lock = threading.Lock()
        self._suspended = False
        self._program_end: tuple[int, str] | None = None
        self._drivers_left: list[DriverId] = []
        self._submission: JobSubmission | None = None
        self._bind_host = bind_host(
            configuration.get(cluster_options.JOBMANAGER_BIND_HOST),
            configuration.get(cluster_options.JOBMANAGER_RPC_ADDRESS),
        )
        timeout_ms = configuration.get(cluster_options.RPC_ASK_TIMEOUT_MS)
        max_frame_bytes = configuration.get(cluster_options.RPC_FRAME_SIZE_BYTES)
        member = Member(Role.JOB_MANAGER, secret, configuration.get(cluster_options.CLUSTER_ID))
        gateways = ThriftGatewayFactory(member, "jobmanager", timeout_ms, max_frame_bytes)
        gateways.fence = lambda: self._fence
        self._effects = Effects()
        stores = ha.stores(lambda: self._fence)
        self._web = MasterWeb(
            configuration, cluster_dir, secret, self._bind_host, mode is not None, lambda: self._duty.web()
        )
        logs = log_directory(configuration, cluster_dir)
        self._parts = MasterParts(
            configuration,
            cluster_dir,
            clock,
            self._effects,
            gateways,
            launcher,
            provider,
            stores,
            MasterFaults(configuration, cluster_dir, ha.election, stores.highly_available),
            secret,
            Diagnostics(logs, own_log_name(logs), own_output_name(logs)),
            self._rest_access,
            lambda: self._web.authentication,
            job_status=ask_supervisor,
            mode=mode,
            max_jobs=max_jobs,
            workers_expected=workers_expected,
            own_worker=lambda worker_id: application_number(worker_id) in ("", self._application),
            other_masters=lambda: self._other_masters,
            bind_host=self._bind_host,
            container_id=container_id,
            still_leads=self._still_leads,
        )
        self._hosted = HostedDrivers(
            launcher,
            lambda: self._known_leader,
            gateways,
            waiting_s=configuration.get(cluster_options.HEARTBEAT_INTERVAL_MS) / 1000,
        )
        if self._parts.drivers_in_containers:
            self._hosted.report_ends()
        self._duty: MasterDuty = Standby(
            lambda: self._known_leader, self._hosted, cluster_dir, lambda: self._web.authentication
        )
        self._server = RpcServer(
            host=self._bind_host,
            port_range=configuration.get(cluster_options.JOBMANAGER_RPC_PORT),
            services=self._duty.services(),
            member=member,
            fence=lambda: self._duty.fence,
            on_disconnect=lambda identity: self._duty.connection_closed(identity),
            max_frame_bytes=max_frame_bytes,
            translated_addresses=translated_addresses(configuration),
        )

    def leader_info(self) -> LeaderInfo:
        """Address and fence of this master."""
        return LeaderInfo(
            fence=self._fence,
            address=self._address,
            version=__version__,
            cluster_id=self._configuration.get(cluster_options.CLUSTER_ID),
            web_address=self._web_address,
        )

    @property
    def _host(self) -> str:
        return self._configuration.get(cluster_options.JOBMANAGER_RPC_ADDRESS)

    @property
    def _address(self) -> str:
        return f"{self._host}:{self._server.port}"

    @property
    def _web_address(self) -> str:
        host = self._configuration.get(rest_options.REST_ADDRESS) or self._host
        return f"http://{host}:{self._web.port}" if self._web.port else ""

    def _rest_access(self) -> RestAccess:
        return RestAccess(self._web_address, self._web.token(Access.READ), self._web.token(Access.WRITE))

    # --- from the supervisor ---

    def program_ended(self, exit_status: int, output_tail: str) -> None:
        """The user's program beside this JobManager has ended; any thread."""
        self._program_end = (exit_status, output_tail)
        self._duty.program_ended(exit_status, output_tail)

    def running_drivers(self, driver_ids: Sequence[DriverId]) -> None:
        """Drivers an earlier JobManager process of this supervisor asked for; any thread."""
        self._drivers_left = list(driver_ids)

    def run(self, submission: JobSubmission | None = None) -> None:
        """Serve until the cluster is shut down, or has done what it lives for.

        Parameters
        ----------
        submission : JobSubmission, optional
            The one job the cluster lives for; whoever leads first submits it.

        Raises
        ------
        YarnflowError
            No port is free, or an endpoint broke.
        """
        self._submission = submission
        self._server.start()
        self._web.start()
        self._stand_for_election()
        self.ended.wait()
        if self._work_done:
            self._finish()
        elif self._parts.mode is None and self._failure is None:
            self._duty.end()
        self._duty.stop()
        self._ha.close()
        self._server.stop()
        self._web.stop()
        self._effects.close()
        if self._failure is not None:
            raise self._failure

    # --- candidacy ---

    def _stand_for_election(self) -> None:
        ha = self._ha
        self._parts.stores.leases.on_revoked(lambda driver_id: self._parts.launcher.kill(driver_id))
        ha.retrieval.on_leader(self._leader_known)
        ha.election.on_masters(self._masters_changed)
        ha.cluster_end.on_ended(self._cluster_ended)
        me = MasterInfo(
            master_id=secrets.token_hex(8),
            address=self._address,
            host=self._host,
            pid=os.getpid(),
            application_id=f"application_{self._application}" if self._application else "",
            web_address=self._web_address,
        )
        ha.election.start(self, me)

    def standing_by(self) -> None:
        """Another master may lead."""
        self._announce(leads=False)

    def granted(self, fence: Fence) -> None:
        """It leads from now on; what there is to take over takes its time."""
        threading.Thread(target=self._lead, args=(fence,), name="lead", daemon=True).start()

    def suspended(self) -> None:
        """The connection to ZooKeeper is lost: decide nothing."""
        logger.warning("The connection to ZooKeeper is lost; nothing is decided until it is back.")
        with self._duty_lock:
            self._suspended = True
            self._duty.suspended()

    def resumed(self) -> None:
        """The connection is back in time."""
        logger.info("The connection to ZooKeeper is back.")
        with self._duty_lock:
            self._suspended = False
            self._duty.resumed()

    def revoked(self) -> None:
        """Another master may lead: end at once, with all there is of this leadership."""
        error = LeadershipLost("this master does not lead any more; it is started again as a standby")
        if self.ended.is_set():
            return
        logger.error("%s", error)
        print(f"error: {error}", file=sys.stderr, flush=True)
        self._end_process(error.exit_code)

    def _still_leads(self, fence: Fence) -> bool:
        """After a pause: ask ZooKeeper, which tells of the loss of the lead only when it is heard again."""
        try:
            self._until_done(lambda: self._ha.election.confirm(fence))
        except LeadershipLost:
            self.revoked()
        except YarnflowError as error:
            self._fatal(error)
        else:
            return True
        return False

    def _lead(self, fence: Fence) -> None:
        try:
            self._fence = fence
            leader = self._new_leader()
            leader.start()
            self._until_done(lambda: leader.recover(self._drivers_left))
            self._server.serve(leader.services())
            for end in self._hosted.close():
                leader.driver_exited(*end)
            with self._duty_lock:
                self._duty = leader
                if self._suspended:
                    leader.suspended()
            self._until_done(lambda: self._ha.election.publish(self.leader_info()))
            logger.info("This master leads now (epoch %d).", fence.epoch)
            self._announce(leads=True)
            self._begin(leader)
            self._keep_masters()
        except BaseException as error:  # a thread's end must not be silent
            self._fatal(error)

    def _until_done(self, action: Callable[[], T]) -> T:
        """Try again what may work later; this process ends when it loses the lead meanwhile."""
        while True:
            try:
                return action()
            except LeadershipLost:
                raise
            except YarnflowError as error:
                if not error.retryable or self.ended.is_set():
                    raise
                logger.warning("%s; trying again", error)
                time.sleep(_RETRY_S)

    def _begin(self, leader: Leader) -> None:
        leader.lifetime.begin(self._submission, self.ended)
        if self._program_end is not None:
            leader.program_ended(*self._program_end)

    def _keep_masters(self) -> None:
        if self._parts.keeps_masters:
            keep_masters(
                self._configuration.get(ha_options.JOBMANAGERS),
                lambda: len(self._ha.election.masters()),
                lambda: self._ask_supervisor(StartMaster()),
                self._clock,
                self.ended,
            )

    def _new_leader(self) -> Leader:
        return Leader(self._parts, self._fence, self.leader_info, self._done, self._fatal)

    def _masters_changed(self, masters: Sequence[MasterInfo]) -> None:
        self._other_masters = tuple(master for master in masters if master.address != self._address)

    def _leader_known(self, leader: LeaderInfo | None) -> None:
        self._known_leader = leader

    # --- what others see ---

    def _announce(self, leads: bool) -> None:
        """Say where this master serves, and as what: in its directory, and to its supervisor."""
        fence = self._fence if leads else NOBODY
        role = MasterRole(
            leads, self._address, self._web_address, fence.leader_id, fence.epoch, self._web.proxy_path
        )
        content = {
            "address": role.address,
            "leader_id": role.leader_id,
            "epoch": role.epoch,
            "pid": os.getpid(),
            "web_address": role.web_address,
        }
        write_json(self._cluster_dir / "jobmanager.json", content)
        logger.info("JobManager %s serves at %s.", role.leader_id or "(standby)", role.address)
        if role.web_address:
            logger.info("Rest endpoint listening at %s.", role.web_address)
        self._ask_supervisor(role)

    # --- the end ---

    def _finish(self) -> None:
        """The work is done: tell the other masters and whoever waits for the result."""
        result = self._duty.end()
        self._ending.declare(result, forget=self._parts.mode is None)

    def _cluster_ended(self, result: ClusterResult) -> None:
        """The leader says that all is done."""
        if self._work_done or self.ended.is_set():
            return
        # not in the thread of listeners, which tells of the other masters
        threading.Thread(target=self._end_as, args=(result,), name="end", daemon=True).start()

    def _end_as(self, result: ClusterResult) -> None:
        try:
            if self._parts.mode is None:  # a name that is used again and again
                self._ending.clear_leftover()
            self._ending.write(result)
            self.ended.set()
        except YarnflowError as error:
            self._fatal(error)

    def _done(self) -> None:
        self._work_done = True
        self.ended.set()

    def _fatal(self, error: BaseException) -> None:
        """An endpoint is in an unknown state: end the process rather than guess."""
        self._failure = error
        self.ended.set()


def application_number(name: str) -> str:
    """``<cluster time stamp>_<number>`` of the application a container or worker on YARN belongs to.

    Empty for any other name.
    """
    found = _APPLICATION.match(name)
    return found[1] if found else ""
