"""Composition root of a TaskManager process.

Serves the TaskExecutor, registers with the JobManager and starts Spark executors as its
children, which end with it.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from yarnflow.config.configuration import Configuration
from yarnflow.config.options import cluster as cluster_options
from yarnflow.config.options import ha as ha_options
from yarnflow.config.options import metrics as metric_options
from yarnflow.config.options import security as security_options
from yarnflow.core.ha.ports import LeaderRetrieval
from yarnflow.core.hosts import is_loopback
from yarnflow.core.ids import TaskManagerId
from yarnflow.core.messages import Fence, LeaderInfo, TaskManagerRegistration
from yarnflow.core.ports import GatewayFactory, JobMasterGateway, ResourceManagerGateway
from yarnflow.core.resources.memory import shared_too_small, task_manager_memory_of
from yarnflow.entrypoint.ha_services import services_of
from yarnflow.entrypoint.taskmanager.executors import ExecutorPlaces, SparkExecutorProcesses
from yarnflow.entrypoint.taskmanager.metrics import TaskManagerMetrics
from yarnflow.entrypoint.taskmanager.single_master import StandaloneMaster
from yarnflow.errors import ResourceError, TaskManagerDismissed, YarnflowError
from yarnflow.process.clock import SystemClock
from yarnflow.process.dirs import log_directory, open_cluster_directory
from yarnflow.process.logs import log_settings, own_log_name, own_output_name, set_up_logging
from yarnflow.process.output.diagnostics import Diagnostics
from yarnflow.process.output.ended_logs import EXECUTORS, EndedLogs
from yarnflow.process.output.rotation import own_rotation
from yarnflow.process.secret import read_secret
from yarnflow.rpc import descriptors
from yarnflow.rpc.gateways import ThriftGatewayFactory
from yarnflow.rpc.listen import bind_host, translated_addresses
from yarnflow.rpc.member import Member, Role
from yarnflow.rpc.methods import TASK_EXECUTOR, Service
from yarnflow.rpc.server import RpcServer
from yarnflow.runtime.leader_follower import LeaderFollower
from yarnflow.runtime.mailbox import Effects, Mailbox
from yarnflow.runtime.registration import RegistrationBackoff
from yarnflow.runtime.taskexecutor.task_executor import TaskExecutor, TaskExecutorTimes

logger = logging.getLogger(__name__)


class MasterGateways:
    """Gateways to whoever leads now; implements ``MasterLink`` of the TaskExecutor."""

    def __init__(self, gateways: GatewayFactory, retrieval: LeaderRetrieval) -> None:
        self._gateways = gateways
        self._leaders: LeaderFollower[LeaderInfo] = LeaderFollower(retrieval, lambda leader: leader)

    @property
    def accepted_fence(self) -> Fence:
        """To whom slots and executors are given; calls of any other master are refused."""
        return self._leaders.fence

    def resource_manager(self) -> ResourceManagerGateway:
        """The leader's ResourceManager."""
        leader = self._leaders.leader().info
        return self._gateways.resource_manager(leader.address, leader.fence)

    def job_master(self) -> JobMasterGateway:
        """The leader's JobMasters."""
        leader = self._leaders.leader().info
        return self._gateways.job_master(leader.address, leader.fence)

    def forget_leader(self) -> None:
        """Look it up again before the next call."""
        self._leaders.forget()

    def on_new_leader(self, listener: Callable[[], None]) -> None:
        """Call ``listener`` when another master has begun to lead; never with a single master."""
        self._leaders.follow(listener)


def advertised_host(configuration: Configuration) -> str:
    """Under which name others reach this machine.

    A cluster whose JobManager is reached by a loopback name is all on one machine; anything else
    needs a name that other machines can resolve.
    """
    configured = configuration.get(cluster_options.TASKMANAGER_HOST)
    if configured:
        return configured
    master = configuration.get(cluster_options.JOBMANAGER_RPC_ADDRESS)
    return "127.0.0.1" if is_loopback(master) else socket.getfqdn()


class TaskManager:
    """All parts of one TaskManager, wired.

    Parameters
    ----------
    configuration : Configuration
        The cluster's.
    cluster_dir : Path
        Directory of this cluster on this machine.
    task_manager_id, worker_id : str
        Names of this process, for the JobManager and for the ResourceProvider.
    secret : bytes
        The cluster secret.
    gateways : GatewayFactory
        From :func:`gateways_of`.
    retrieval : LeaderRetrieval
        Says who leads.
    places : ExecutorPlaces, optional
        Default: below the cluster's directory.
    one_job : bool
        The cluster never runs several jobs at the same time.
    """

    def __init__(
        self,
        configuration: Configuration,
        cluster_dir: Path,
        task_manager_id: str,
        worker_id: str,
        secret: bytes,
        gateways: GatewayFactory,
        retrieval: LeaderRetrieval,
        places: ExecutorPlaces | None = None,
        one_job: bool = False,
    ) -> None:
        self.ended = threading.Event()
        self._failure: YarnflowError | None = None
        self._task_manager_id = TaskManagerId(task_manager_id)
        self._worker_id = worker_id
        self._configuration = configuration
        self._memory = task_manager_memory_of(configuration)
        if not one_job and (too_small := shared_too_small(configuration)):
            logger.warning("%s", too_small)
        clock = SystemClock()
        timeout_ms = configuration.get(cluster_options.RPC_ASK_TIMEOUT_MS)
        max_frame_bytes = configuration.get(cluster_options.RPC_FRAME_SIZE_BYTES)
        self._link = MasterGateways(gateways, retrieval)
        self._mailbox = Mailbox("task-executor", clock, self._fatal)
        self._effects = Effects()
        places = places or _places(configuration, cluster_dir, task_manager_id)
        self._ended_logs = EndedLogs(
            places.logs, EXECUTORS, configuration.get(cluster_options.LOG_RETAINED_PROCESSES)
        )
        self._processes = SparkExecutorProcesses(
            configuration,
            places,
            advertised_host(configuration),
            secret,
            one_job,
            ended_logs=self._ended_logs,
        )
        logs = log_directory(configuration, cluster_dir)
        self._metrics = TaskManagerMetrics(
            lambda: tuple(self._processes.pids().values()),
            configuration.get(metric_options.UPDATE_INTERVAL_MS),
        )
        self._executor = TaskExecutor(
            configuration.get(cluster_options.TASKMANAGER_SLOTS),
            clock,
            self._mailbox,
            self._effects,
            self._link,
            self._processes,
            TaskExecutorTimes(
                heartbeat_interval_ms=configuration.get(cluster_options.HEARTBEAT_INTERVAL_MS),
                registration_backoff=RegistrationBackoff(
                    configuration.get(cluster_options.REGISTRATION_INITIAL_TIMEOUT_MS),
                    configuration.get(cluster_options.REGISTRATION_MAX_TIMEOUT_MS),
                ),
                registration_timeout_ms=configuration.get(
                    cluster_options.TASKMANAGER_REGISTRATION_TIMEOUT_MS
                ),
                call_timeout_ms=timeout_ms,
                adoption_timeout_ms=configuration.get(ha_options.ADOPTION_TIMEOUT_MS),
                executor_idle_timeout_ms=configuration.get(cluster_options.DRIVER_IDLE_TIMEOUT_MS),
            ),
            self._fatal,
            Diagnostics(
                logs,
                own_log_name(logs),
                own_output_name(logs),
                self._processes.pids,
                self._processes.java_home,
            ),
            self._metrics.take,
        )
        self._server = RpcServer(
            host=bind_host(
                configuration.get(cluster_options.TASKMANAGER_BIND_HOST), advertised_host(configuration)
            ),
            port_range=configuration.get(cluster_options.TASKMANAGER_RPC_PORT),
            services={"TaskExecutor": Service(TASK_EXECUTOR, self._executor)},
            member=_member(configuration, secret),
            fence=lambda: self._link.accepted_fence,
            max_frame_bytes=max_frame_bytes,
            translated_addresses=translated_addresses(configuration),
        )

    def _registration(self) -> TaskManagerRegistration:
        host = advertised_host(self._configuration)
        return TaskManagerRegistration(
            task_manager_id=self._task_manager_id,
            address=f"{host}:{self._server.port}",
            host=host,
            pid=os.getpid(),
            slots=self._configuration.get(cluster_options.TASKMANAGER_SLOTS),
            worker_id=self._worker_id,
            process_memory_mib=self._memory.process_mib,
            executor_heap_mib=self._memory.executor_heap_mib,
            cores=os.cpu_count() or 1,
            physical_memory_bytes=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
            memory_mib={
                "framework": self._memory.framework_mib,
                "overhead": self._memory.overhead_mib,
                "metaspace": self._memory.metaspace_mib,
                "python": self._memory.python_mib,
                "offheap": self._memory.offheap_mib,
            },
        )

    def run(self) -> None:
        """Serve until told to end.

        Raises
        ------
        YarnflowError
            No master accepted this TaskManager, or it broke.
        """
        own_rotation().limit(self._ended_logs)
        self._server.start()
        self._mailbox.start()
        self._metrics.start()
        self._executor.start(self._registration())
        self.ended.wait()
        self._metrics.stop()
        if self._failure is None:
            self._leave()
        self._processes.stop_all()
        self._server.stop()
        self._effects.close()
        if self._failure is not None:
            raise self._failure

    def _leave(self) -> None:
        """Tell the master, so that it need not find out."""
        try:
            self._link.resource_manager().disconnect_task_manager(self._task_manager_id, "it was stopped")
        except YarnflowError as error:
            logger.info("Left without telling the master: %s", error)

    def _fatal(self, error: BaseException) -> None:
        if isinstance(error, TaskManagerDismissed):
            logger.info("%s", error)
            self.ended.set()
            return
        self._failure = (
            error
            if isinstance(error, YarnflowError)
            else ResourceError(f"TaskManager broke: {error}; see its log")
        )
        self.ended.set()


def gateways_of(configuration: Configuration, secret: bytes, task_manager_id: str) -> GatewayFactory:
    """The way of a TaskManager to its master."""
    return ThriftGatewayFactory(
        _member(configuration, secret),
        task_manager_id,
        configuration.get(cluster_options.RPC_ASK_TIMEOUT_MS),
        configuration.get(cluster_options.RPC_FRAME_SIZE_BYTES),
    )


def _member(configuration: Configuration, secret: bytes) -> Member:
    return Member(Role.TASK_MANAGER, secret, configuration.get(cluster_options.CLUSTER_ID))


def _places(configuration: Configuration, cluster_dir: Path, task_manager_id: str) -> ExecutorPlaces:
    name = task_manager_id.replace(":", "-")
    return ExecutorPlaces(
        logs=open_cluster_directory(cluster_dir, configuration.get(cluster_options.LOG_DIR)).logs,
        log_prefix=f"{name}-",
        scratch=(cluster_dir / "executors" / name,),
        shared={},
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a TaskManager; returns the exit status."""
    parser = argparse.ArgumentParser(prog="yarnflow.entrypoint.taskmanager.main")
    parser.add_argument("--cluster-dir", type=Path, required=True)
    parser.add_argument("--conf-json", type=Path, required=True)
    parser.add_argument("--task-manager-id", required=True)
    parser.add_argument("--worker-id", default="")
    parsed = parser.parse_args(arguments)
    try:
        values = json.loads(parsed.conf_json.read_text())
        configuration = Configuration.from_dict(values, str(parsed.conf_json))
        set_up_logging(None, log_settings(configuration))
        descriptors.raise_limit()
        secret = read_secret(Path(configuration.get(security_options.CLUSTER_SECRET_FILE))).encode("ascii")
        gateways = gateways_of(configuration, secret, parsed.task_manager_id)
        master = StandaloneMaster(parsed.cluster_dir, configuration, gateways.dispatcher)
        ha = services_of(configuration, secret, None, master)
        task_manager = TaskManager(
            configuration,
            parsed.cluster_dir,
            parsed.task_manager_id,
            parsed.worker_id,
            secret,
            gateways,
            ha.retrieval,
        )
        signal.signal(signal.SIGTERM, lambda _signal, _frame: task_manager.ended.set())
        try:
            task_manager.run()
        finally:
            ha.close()
    except YarnflowError as error:
        logger.error("%s", error)
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
