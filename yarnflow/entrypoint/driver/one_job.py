"""A driver's parts, wired for one job.

Everything but process, JVM and SparkContext is made for the job and goes with it: what a driver that is
given another job knows of the one before is the context only.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from yarnflow import __version__
from yarnflow.config.configuration import Configuration
from yarnflow.config.options import cluster as cluster_options
from yarnflow.core.hosts import is_loopback
from yarnflow.core.messages import DriverAssignment, LeaderInfo
from yarnflow.core.ports import Clock
from yarnflow.entrypoint import ha_services
from yarnflow.entrypoint.driver.backend import SparkBackend
from yarnflow.errors import YarnflowError
from yarnflow.fs.file_systems import file_systems
from yarnflow.ha.single_master import SingleMasterRetrieval
from yarnflow.ha.stores.state_owner import FileStateOwner
from yarnflow.process.output.diagnostics import Diagnostics
from yarnflow.rpc.gateways import ThriftGatewayFactory
from yarnflow.rpc.listen import translated_addresses
from yarnflow.rpc.member import Member, Role
from yarnflow.rpc.methods import DRIVER, Service
from yarnflow.rpc.server import RpcServer
from yarnflow.runtime.driver.driver import Driver
from yarnflow.runtime.driver.services import DriverSettings, Milestones
from yarnflow.runtime.leader_follower import LeaderFollower
from yarnflow.spark.launch.jvm import GatewayJvm
from yarnflow.spark.launch.session import DriverSession


@dataclass(frozen=True, slots=True)
class DriverProcess:
    """What is the same for all jobs of a driver's process."""

    jvm: GatewayJvm
    #: the cluster's
    secret: bytes = field(repr=False)
    #: address executors and the JobMaster reach it at
    host: str
    cluster_dir: Path
    scratch: Path
    #: of its own lines
    log_file: Path
    #: directory of the Java that runs its JVM
    java_home: Path
    clock: Clock
    #: ends the process at once, see :class:`~yarnflow.runtime.driver.driver.Driver`
    halt: Callable[[YarnflowError | None], None]


def run_job(
    process: DriverProcess,
    assignment: DriverAssignment,
    configuration: Configuration,
    settings: DriverSettings,
    milestones: Milestones,
    session: DriverSession | None,
) -> tuple[int, DriverSession | None]:
    """Serve one assignment to its end; main thread.

    Parameters
    ----------
    configuration : Configuration
        The cluster's with the job's options over it.
    session : DriverSession or None
        What an earlier job has left.

    Returns
    -------
    tuple of int and DriverSession or None
        Exit status of the process, and what it leaves for another job; None = the process is to end.
    """
    host, max_frame_bytes = process.host, configuration.get(cluster_options.RPC_FRAME_SIZE_BYTES)
    backend = SparkBackend(
        process.jvm, configuration, host, process.secret, milestones, process.scratch, session
    )
    member = Member(Role.DRIVER, process.secret, configuration.get(cluster_options.CLUSTER_ID))
    gateways = ThriftGatewayFactory(
        member,
        identity=assignment.driver_id,
        timeout_ms=configuration.get(cluster_options.RPC_ASK_TIMEOUT_MS),
        max_frame_bytes=max_frame_bytes,
    )
    launcher = LeaderInfo(assignment.fence, assignment.job_master_address, __version__, "")
    ha = ha_services.services_of(
        configuration, process.secret, process.cluster_dir, SingleMasterRetrieval(launcher)
    )
    leaders = LeaderFollower(
        ha.retrieval, lambda leader: gateways.job_master(leader.address, leader.fence), launcher
    )
    diagnostics = Diagnostics(
        process.log_file.parent,
        process.log_file.name,
        java_processes=lambda: {"driver": process.jvm.pid},
        java_home=lambda: process.java_home,
    )
    driver = Driver(
        assignment,
        backend,
        leaders,
        process.clock,
        milestones,
        pid=os.getpid(),
        halt=process.halt,
        threads=diagnostics.thread_dump,
        lease=ha.lease(assignment.job_id),
        settings=settings,
        owner=FileStateOwner(
            file_systems(),
            assignment.checkpoint_dir,
            assignment.job_id,
            ha.stores(lambda: assignment.fence).leases.holder,
        ),
    )
    server = RpcServer(
        host=host if is_loopback(host) else configuration.get(cluster_options.JOBMANAGER_BIND_HOST),
        port_range="0",
        services={"Driver": Service(DRIVER, driver)},
        member=member,
        fence=lambda: leaders.fence,
        max_frame_bytes=max_frame_bytes,
        translated_addresses=translated_addresses(configuration),
    )
    server.start()
    told_to_end = threading.Event()

    def terminate(_signal: int, _frame: object) -> None:
        told_to_end.set()
        driver.shut_down()

    signal.signal(signal.SIGTERM, terminate)
    try:
        status = driver.run(f"{host}:{server.port}")
    finally:
        server.stop()
        gateways.close()
        ha.close()
    return status, backend.session if driver.stays and not told_to_end.is_set() else None
