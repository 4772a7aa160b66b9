"""Composition root of a driver process.

The JVM is started first, before anything slow is imported; while it comes up Python imports
pyspark and waits for the assignment, one line of JSON on standard input.  A warm spare is the
same process that has not been told its job yet.  End of standard input is the end of whoever
owns this process, and so of the process.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Final

from yarnflow.config.configuration import Configuration
from yarnflow.config.options import cluster as cluster_options
from yarnflow.config.options import job as job_options
from yarnflow.config.options import memory as memory_options
from yarnflow.config.options import python as python_options
from yarnflow.core.hosts import is_loopback
from yarnflow.core.memory import driver_memory_of
from yarnflow.errors import YarnflowError
from yarnflow.process.logs import log_settings, set_up_logging
from yarnflow.process.secret import read_secret
from yarnflow.process.spawn import wrap_command
from yarnflow.spark.class_data_sharing import Role, default_cache_dir, jvm_flags
from yarnflow.spark.java import JavaRuntime, find_java
from yarnflow.spark.jvm import DRIVER_JVM_FLAGS, GatewayJvm, gateway_command, has_collector

logger = logging.getLogger(__name__)

#: exit status when the owner of this process has gone
_OWNER_GONE: Final = 3


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a driver; returns the exit status."""
    started_ms = time.time_ns() // 1_000_000
    parser = argparse.ArgumentParser(prog="yarnflow.entrypoint.driver")
    parser.add_argument("--memory-mib", type=int, required=True)
    parser.add_argument("--secret-file", type=Path, required=True)
    parser.add_argument("--cluster-dir", type=Path, required=True)
    parser.add_argument("--log-file", type=Path, required=True)
    parser.add_argument("--conf-json", type=Path)
    parsed = parser.parse_args(arguments)
    # Ctrl-C at a terminal is its owner's business, until a script's main wants it
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        values = json.loads(parsed.conf_json.read_text()) if parsed.conf_json else {}
        configuration = Configuration.from_dict(values, str(parsed.conf_json))
        set_up_logging(parsed.log_file, log_settings(configuration))
        secret = read_secret(parsed.secret_file).encode("ascii")
        host = own_host(configuration.get(cluster_options.JOBMANAGER_RPC_ADDRESS))
        java = find_java()
        jvm = _launch(java, configuration, parsed.memory_mib, host, parsed.log_file)
        try:
            return _serve(parsed, configuration, secret, host, java, jvm, started_ms)
        finally:
            jvm.stop()
    except YarnflowError as error:
        logger.error("%s", error)
        print(f"error: {error}", file=sys.stderr, flush=True)
        return error.exit_code


def driver_jvm_flags(java: JavaRuntime, configuration: Configuration) -> list[str]:
    """JVM options of a driver."""
    own = (configuration.get_raw("spark.driver.extraJavaOptions") or "").split()
    flags = [flag for flag in DRIVER_JVM_FLAGS if not (has_collector([flag]) and has_collector(own))]
    flags.append(f"-XX:MaxMetaspaceSize={configuration.get(memory_options.DRIVER_METASPACE_MIB)}m")
    if configuration.get(python_options.CLASS_DATA_SHARING) != "off":
        flags += jvm_flags(Role.DRIVER, java, default_cache_dir())
    # the user's come last, as the JVM takes the last of two
    return flags + own


def own_host(job_manager_host: str) -> str:
    """The address this driver is reached at: it runs on its JobManager's machine.

    A loopback name stands for itself as a number, so that Spark need not look names up.
    """
    return "127.0.0.1" if not job_manager_host or is_loopback(job_manager_host) else job_manager_host


def _launch(
    java: JavaRuntime, configuration: Configuration, memory_mib: int, host: str, log_file: Path
) -> GatewayJvm:
    memory = driver_memory_of(configuration, memory_mib)
    command = gateway_command(java, memory.heap_mib, driver_jvm_flags(java, configuration))
    # by the main thread, which lives as long as the process: the JVM dies with the thread that forked it
    return GatewayJvm.launch(command, host=host, log_file=log_file, wrap=wrap_command)


def _serve(
    parsed: argparse.Namespace,
    configuration: Configuration,
    secret: bytes,
    host: str,
    java: JavaRuntime,
    jvm: GatewayJvm,
    started_ms: int,
) -> int:
    reader = _AssignmentReader(sys.stdin)
    reader.start()
    # slow imports, while the JVM comes up
    from yarnflow.core.json_codec import from_json
    from yarnflow.core.messages import DriverAssignment
    from yarnflow.entrypoint.driver_backend import SparkBackend
    from yarnflow.process.clock import SystemClock
    from yarnflow.rpc.gateways import ThriftGatewayFactory, driver_service
    from yarnflow.rpc.server import RpcServer
    from yarnflow.runtime.driver import Driver, DriverSettings, Milestones
    from yarnflow.spark.session import warm_up

    clock = SystemClock()
    milestones = Milestones(clock, {"DRIVER_STARTED": started_ms})
    jvm.connect()
    milestones.reached("JVM_UP")
    if not reader.arrived:
        warm_up(jvm.connect(), lambda: reader.arrived)
    text = reader.wait()
    assignment = from_json(DriverAssignment, text)
    logger.info("This is driver %s of job %s.", assignment.driver_id, assignment.job_id)
    configuration = configuration.with_values(assignment.configuration, "job")

    backend = SparkBackend(jvm, configuration, host, secret, milestones)
    gateways = ThriftGatewayFactory(
        secret,
        identity=assignment.driver_id,
        timeout_ms=configuration.get(cluster_options.RPC_ASK_TIMEOUT_MS),
        max_frame_bytes=configuration.get(cluster_options.RPC_FRAME_SIZE_BYTES),
    )
    fence = assignment.fence
    job_master = gateways.job_master(assignment.job_master_address, fence)
    driver = Driver(
        assignment,
        backend,
        job_master,
        clock,
        milestones,
        pid=os.getpid(),
        halt=lambda: os._exit(0),
        settings=DriverSettings(
            report_interval_ms=configuration.get(job_options.DRIVER_REPORT_INTERVAL_MS),
            executor_timeout_ms=configuration.get(cluster_options.SLOT_REQUEST_TIMEOUT_MS),
        ),
    )
    server = RpcServer(
        host=host if is_loopback(host) else configuration.get(cluster_options.JOBMANAGER_BIND_HOST),
        port_range="0",
        services={"Driver": driver_service(driver)},
        secret=secret,
        fence=lambda: fence,
        max_frame_bytes=configuration.get(cluster_options.RPC_FRAME_SIZE_BYTES),
    )
    server.start()
    signal.signal(signal.SIGTERM, lambda _signal, _frame: driver.shut_down())
    try:
        status = driver.run(f"{host}:{server.port}")
    finally:
        server.stop()
        gateways.close()
    return status


class _AssignmentReader:
    """Reads the assignment, then watches for the end of standard input."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream
        self._arrived = threading.Event()
        self._text = ""

    def start(self) -> None:
        threading.Thread(target=self._read, name="assignment", daemon=True).start()

    @property
    def arrived(self) -> bool:
        return self._arrived.is_set()

    def wait(self) -> str:
        self._arrived.wait()
        return self._text

    def _read(self) -> None:
        for line in self._stream:
            if line.strip() and not self._arrived.is_set():
                self._text = line
                self._arrived.set()
        # the JVM goes with this process; nothing is left to be told to anybody
        logger.info("The owner of this driver has gone.")
        os._exit(_OWNER_GONE)


if __name__ == "__main__":
    sys.exit(main())
