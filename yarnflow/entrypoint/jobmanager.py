"""Composition root of a JobManager process.

Started by a supervisor (local target, ``yarnflow jobmanager``), which owns the drivers.  Serves
Dispatcher, ResourceManager and JobMaster on one port and writes its address to the cluster
directory once it does.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import random
import secrets
import signal
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

from yarnflow import __version__
from yarnflow.config.configuration import Configuration
from yarnflow.config.options import cluster as cluster_options
from yarnflow.config.options import security as security_options
from yarnflow.core.messages import Fence, LeaderInfo
from yarnflow.core.ports import DriverLauncher, ResourceProvider
from yarnflow.errors import YarnflowError
from yarnflow.process.channel import NoResourceProvider, SupervisorLink
from yarnflow.process.clock import SystemClock
from yarnflow.process.dirs import write_json
from yarnflow.process.logs import log_settings, set_up_logging
from yarnflow.process.secret import read_secret
from yarnflow.rpc.gateways import (
    ThriftGatewayFactory,
    dispatcher_service,
    job_master_service,
    resource_manager_service,
)
from yarnflow.rpc.listen import bind_host
from yarnflow.rpc.server import RpcServer
from yarnflow.runtime.dispatcher import Dispatcher
from yarnflow.runtime.job_board import JobBoard
from yarnflow.runtime.job_factory import JobMasterFactory
from yarnflow.runtime.mailbox import Effects, Mailbox
from yarnflow.runtime.resource_manager import ResourceManager, ResourceManagerSettings

logger = logging.getLogger(__name__)


class JobManager:
    """All parts of one JobManager, wired.

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
    """

    def __init__(
        self,
        configuration: Configuration,
        cluster_dir: Path,
        secret: bytes,
        launcher: DriverLauncher,
        provider: ResourceProvider,
    ) -> None:
        self._configuration = configuration
        self._cluster_dir = cluster_dir
        self.ended = threading.Event()
        self._failure: BaseException | None = None
        clock = SystemClock()
        self._fence = Fence(leader_id=secrets.token_hex(16), epoch=1)
        timeout_ms = configuration.get(cluster_options.RPC_ASK_TIMEOUT_MS)
        max_frame_bytes = configuration.get(cluster_options.RPC_FRAME_SIZE_BYTES)
        self._gateways = ThriftGatewayFactory(secret, "jobmanager", timeout_ms, max_frame_bytes)
        self._gateways.fence = lambda: self._fence
        self._effects = Effects()
        self._dispatcher_mailbox = Mailbox("dispatcher", clock, self._fatal)
        self._resource_mailbox = Mailbox("resource-manager", clock, self._fatal)
        board = JobBoard(clock, configuration.get(cluster_options.JOBSTORE_MAX_CAPACITY))
        self.resource_manager = ResourceManager(
            ResourceManagerSettings(
                heartbeat_timeout_ms=configuration.get(cluster_options.HEARTBEAT_TIMEOUT_MS),
                rpc_failure_threshold=configuration.get(cluster_options.HEARTBEAT_RPC_FAILURE_THRESHOLD),
                call_timeout_ms=timeout_ms,
                pending_slot_timeout_ms=timeout_ms,
                slots_per_worker=configuration.get(cluster_options.TASKMANAGER_SLOTS),
                # whoever replaces workers by himself has started all of them, or is about to
                workers_expected=(provider.max_workers or 0) if provider.replaces_workers else 0,
            ),
            clock,
            self._resource_mailbox,
            self._effects,
            self._gateways,
            provider,
            self.leader_info,
            lambda: secrets.token_hex(16),
            lambda: self.dispatcher,
        )
        jobs = JobMasterFactory(
            configuration,
            cluster_dir,
            clock,
            self._effects,
            self._gateways,
            launcher,
            self.resource_manager,
            board,
            self.leader_info,
            new_id=lambda: secrets.token_hex(16),
            jitter=lambda: random.uniform(-1.0, 1.0),
            on_fatal=self._fatal,
        )
        launcher.on_exit(jobs.driver_exited)
        self.dispatcher = Dispatcher(
            self._dispatcher_mailbox,
            board,
            jobs.create,
            self.leader_info,
            self.resource_manager,
            self.ended.set,
            timeout_ms,
        )
        self._server = RpcServer(
            host=bind_host(
                configuration.get(cluster_options.JOBMANAGER_BIND_HOST),
                configuration.get(cluster_options.JOBMANAGER_RPC_ADDRESS),
            ),
            port_range=configuration.get(cluster_options.JOBMANAGER_RPC_PORT),
            services={
                "Dispatcher": dispatcher_service(self.dispatcher),
                "ResourceManager": resource_manager_service(self.resource_manager),
                "JobMaster": job_master_service(self.dispatcher),
            },
            secret=secret,
            fence=lambda: self._fence,
            on_disconnect=self.resource_manager.connection_closed,
            max_frame_bytes=max_frame_bytes,
        )

    def leader_info(self) -> LeaderInfo:
        """Address and fence of this master."""
        host = self._configuration.get(cluster_options.JOBMANAGER_RPC_ADDRESS)
        return LeaderInfo(
            fence=self._fence,
            address=f"{host}:{self._server.port}",
            version=__version__,
            cluster_id=self._configuration.get(cluster_options.CLUSTER_ID),
        )

    def run(self) -> None:
        """Serve until the cluster is shut down.

        Raises
        ------
        YarnflowError
            No port is free, or an endpoint broke.
        """
        self._dispatcher_mailbox.start()
        self._resource_mailbox.start()
        self.resource_manager.start()
        self._server.start()
        leader = self.leader_info()
        write_json(
            self._cluster_dir / "jobmanager.json",
            {
                "address": leader.address,
                "leader_id": leader.fence.leader_id,
                "epoch": leader.fence.epoch,
                "pid": os.getpid(),
            },
        )
        logger.info("JobManager %s serves at %s.", leader.fence.leader_id, leader.address)
        self.ended.wait()
        self.dispatcher.stop()
        self._server.stop()
        self._effects.close()
        if self._failure is not None:
            raise self._failure

    def _fatal(self, error: BaseException) -> None:
        """An endpoint is in an unknown state: end the process rather than guess."""
        self._failure = error
        self.ended.set()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a JobManager; returns the exit status."""
    parser = argparse.ArgumentParser(prog="yarnflow.entrypoint.jobmanager")
    parser.add_argument("--cluster-dir", type=Path, required=True)
    parser.add_argument("--conf-json", type=Path, required=True)
    parser.add_argument("--channel-fd", type=int, required=True)
    parser.add_argument("--workers", type=int, default=0)
    parsed = parser.parse_args(arguments)
    try:
        values = json.loads(parsed.conf_json.read_text())
        configuration = Configuration.from_dict(values, str(parsed.conf_json))
        set_up_logging(None, log_settings(configuration))
        secret = read_secret(Path(configuration.get(security_options.CLUSTER_SECRET_FILE))).encode("ascii")
        link = SupervisorLink.from_fd(parsed.channel_fd, max_workers=parsed.workers)
        provider: ResourceProvider = link.resource_provider if parsed.workers else NoResourceProvider()
        job_manager = JobManager(configuration, parsed.cluster_dir, secret, link.driver_launcher, provider)
        signal.signal(signal.SIGTERM, lambda _signal, _frame: job_manager.ended.set())
        link.start()
        job_manager.run()
    except YarnflowError as error:
        logger.error("%s", error)
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
