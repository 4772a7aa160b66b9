"""Composition root of a driver process.

The JVM is started first, before anything slow is imported; while it comes up Python imports
pyspark and waits for the assignment, one line of JSON on standard input.  A warm spare is the
same process that has not been told its job yet.  Where ``driver.idle-timeout`` says so, a process
whose job has finished waits for another line.  End of standard input is the end of whoever owns
this process, and so of the process.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import shlex
import signal
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import IO, TYPE_CHECKING, Final, NoReturn

from yarnflow.config.configuration import Configuration
from yarnflow.config.option import ConfigOption
from yarnflow.config.options import cluster as cluster_options
from yarnflow.config.options import ha as ha_options
from yarnflow.config.options import job as job_options
from yarnflow.config.options import memory as memory_options
from yarnflow.config.options import metrics as metric_options
from yarnflow.config.options import python as python_options
from yarnflow.core.hosts import is_loopback
from yarnflow.core.jars.request import layered
from yarnflow.core.job.context import process_of_job
from yarnflow.core.resources.memory import driver_memory_of
from yarnflow.errors import YarnflowError
from yarnflow.ha.settings import is_highly_available
from yarnflow.process.logs import log_settings, set_up_logging
from yarnflow.process.output.rotation import own_rotation
from yarnflow.process.secret import read_secret
from yarnflow.process.spawn import wrap_command
from yarnflow.spark.jars.maven_settings import resolver_environment
from yarnflow.spark.launch.class_data_sharing import Role, installed_flags
from yarnflow.spark.launch.java import JavaRuntime, find_java
from yarnflow.spark.launch.jvm import (
    DRIVER_JVM_FLAGS,
    FOREIGN_VARIABLES,
    GatewayJvm,
    gateway_command,
    has_collector,
    name_java_job,
    split_options,
)

if TYPE_CHECKING:
    from yarnflow.runtime.driver.services import DriverSettings

logger = logging.getLogger(__name__)

#: exit status when the owner of this process has gone
_OWNER_GONE: Final = 3
#: shortest time an earlier driver of the job is waited for
_LEASE_WAIT_MS: Final = 30_000
#: how long saying why it ends may keep a process that must end
_SHUTDOWN_MESSAGE_TIMEOUT_S: Final = 0.2
#: how often a driver without a job looks whether it has its JVM
_JVM_POLL_S: Final = 1.0
_DRIVER_OPTIONS: Final = "spark.driver.extraJavaOptions"
_EXECUTOR_OPTIONS: Final = "spark.executor.extraJavaOptions"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a driver; returns the exit status."""
    started_ms = time.time_ns() // 1_000_000
    parser = argparse.ArgumentParser(prog="yarnflow.entrypoint.driver.main")
    parser.add_argument("--memory-mib", type=int, required=True)
    parser.add_argument("--secret-file", type=Path, required=True)
    parser.add_argument("--cluster-dir", type=Path, required=True)
    parser.add_argument("--log-file", type=Path, required=True)
    parser.add_argument("--scratch-dir", type=Path, required=True)
    parser.add_argument("--conf-json", type=Path)
    parsed = parser.parse_args(arguments)
    # Ctrl-C at a terminal is its owner's business, until a script's main wants it
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for name in FOREIGN_VARIABLES:
        os.environ.pop(name, None)
    try:
        values = json.loads(parsed.conf_json.read_text()) if parsed.conf_json else {}
        configuration = Configuration.from_dict(values, str(parsed.conf_json))
        set_up_logging(parsed.log_file, log_settings(configuration))
        secret = read_secret(parsed.secret_file).encode("ascii")
        host = own_host(configuration.get(cluster_options.JOBMANAGER_RPC_ADDRESS))
        java = find_java()
        jvm = _launch(java, configuration, parsed, host)
        try:
            return _serve(parsed, configuration, secret, host, java, jvm, started_ms)
        finally:
            jvm.stop()
    except YarnflowError as error:
        logger.error("%s", error)
        print(f"error: {error}", file=sys.stderr, flush=True)
        return error.exit_code


def driver_jvm_flags(java: JavaRuntime, configuration: Configuration, scratch: Path) -> list[str]:
    """JVM options of a driver whose temporary files are in ``scratch``."""
    own = [
        *_java_options(configuration, python_options.JAVA_OPTIONS_ALL),
        *_java_options(configuration, python_options.JAVA_OPTIONS_DRIVER),
        *split_options(_DRIVER_OPTIONS, configuration.get_raw(_DRIVER_OPTIONS) or ""),
    ]
    flags = [flag for flag in DRIVER_JVM_FLAGS if not (has_collector([flag]) and has_collector(own))]
    flags.append(f"-XX:MaxMetaspaceSize={configuration.get(memory_options.DRIVER_METASPACE_MIB)}m")
    if configuration.get(python_options.CLASS_DATA_SHARING) != "off":
        flags += installed_flags(Role.DRIVER, java)
    flags.append(f"-Djava.io.tmpdir={scratch}")
    # the user's come last, as the JVM takes the last of two
    return flags + own


def own_host(job_manager_host: str) -> str:
    """The address this driver is reached at: it runs on its JobManager's machine.

    A loopback name stands for itself as a number, so that Spark need not look names up.
    """
    return "127.0.0.1" if not job_manager_host or is_loopback(job_manager_host) else job_manager_host


def _launch(
    java: JavaRuntime, configuration: Configuration, parsed: argparse.Namespace, host: str
) -> GatewayJvm:
    memory = driver_memory_of(configuration, parsed.memory_mib)
    command = gateway_command(
        java,
        memory.heap_mib,
        driver_jvm_flags(java, configuration, parsed.scratch_dir),
        hadoop_conf_dir=os.environ.get("HADOOP_CONF_DIR", ""),
        log_format=configuration.get(cluster_options.LOG_FORMAT),
    )
    # of its own: Python renames the other one when it is large, and the JVM would go on in that
    log_file = parsed.log_file.with_suffix(".jvm.log")
    own_rotation().watch(log_file)
    # by the main thread, which lives as long as the process: the JVM dies with the thread that forked it
    return GatewayJvm.launch(
        command,
        host=host,
        log_file=log_file,
        wrap=wrap_command,
        environ=resolver_environment(os.environ),
        scratch=parsed.scratch_dir,
    )


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
    from yarnflow.entrypoint.driver.one_job import DriverProcess, run_job
    from yarnflow.process.clock import SystemClock
    from yarnflow.runtime.driver.services import Milestones
    from yarnflow.spark.launch.session import DriverSession, warm_up

    if is_highly_available(configuration):
        # its client takes a while to import, and is needed at once when a lost driver is replaced
        import yarnflow.ha.services  # noqa: F401

    clock = SystemClock()
    milestones = Milestones(clock, {"DRIVER_STARTED": started_ms})
    jvm.connect()
    milestones.reached("JVM_UP")
    if not reader.arrived:
        warm_up(jvm.connect(), lambda: reader.arrived)
    process = DriverProcess(
        jvm,
        secret,
        host,
        parsed.cluster_dir,
        parsed.scratch_dir,
        parsed.log_file,
        java.home,
        clock,
        halt=lambda error: end_process(jvm, error),
    )
    session: DriverSession | None = None
    while True:
        assignment = from_json(DriverAssignment, reader.wait(jvm))
        _work_for(assignment.job_id, configuration, jvm)
        logger.info("This is driver %s of job %s.", assignment.driver_id, assignment.job_id)
        options = with_options_of(configuration, assignment.configuration)
        if session is not None:
            milestones = Milestones(clock)
            milestones.reached("DRIVER_REUSED")
        status, session = run_job(
            process, assignment, options, driver_settings(options), milestones, session
        )
        if session is None:
            return status
        # while there is no job nobody else would answer it
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        logger.info("Waiting for another job.")
        _work_for("", configuration, jvm)


def _work_for(job_id: str, configuration: Configuration, jvm: GatewayJvm) -> None:
    """Have lines of logs name the job; empty = none."""
    process_of_job(job_id)
    if configuration.get(cluster_options.LOG_FORMAT) == "json":
        name_java_job(jvm.connect(), job_id)


def with_options_of(configuration: Configuration, job: Mapping[str, str]) -> Configuration:
    """The cluster's options with a job's over them; the jars of both are there.

    JVM options of executors are all where Spark looks for them.
    """
    layers = layered(configuration.to_dict(), job)
    flags = [
        *_java_options(configuration, python_options.JAVA_OPTIONS_ALL),
        *_java_options(configuration, python_options.JAVA_OPTIONS_EXECUTOR),
    ]
    if flags:
        layers[_EXECUTOR_OPTIONS] = f"{shlex.join(flags)} {layers.get(_EXECUTOR_OPTIONS, '')}".rstrip()
    changed = {key: text for key, text in layers.items() if configuration.get_raw(key) != text}
    return configuration.with_values(changed, "job")


def _java_options(configuration: Configuration, option: ConfigOption[str]) -> list[str]:
    return split_options(option.key, configuration.get(option))


def driver_settings(configuration: Configuration) -> DriverSettings:
    """What the options mean for a driver's times."""
    from yarnflow.runtime.driver.services import DriverSettings

    get = configuration.get
    return DriverSettings(
        report_interval_ms=get(job_options.DRIVER_REPORT_INTERVAL_MS),
        executor_timeout_ms=get(cluster_options.SLOT_REQUEST_TIMEOUT_MS),
        # a driver that was cut off or frozen keeps its lease until ZooKeeper gives it up
        lease_timeout_ms=max(_LEASE_WAIT_MS, 3 * get(ha_options.ZOOKEEPER_SESSION_TIMEOUT_MS)),
        checkpoint_timeout_ms=get(job_options.CHECKPOINT_TIMEOUT_MS),
        recovery_timeout_ms=get(ha_options.ADOPTION_TIMEOUT_MS),
        metrics_interval_ms=get(metric_options.UPDATE_INTERVAL_MS),
        serves_several_jobs=(
            get(cluster_options.DRIVER_IDLE_TIMEOUT_MS) > 0 and not is_highly_available(configuration)
        ),
    )


def end_process(jvm: GatewayJvm, error: YarnflowError | None) -> NoReturn:
    """End this process at once, from any thread; its JVM first, which could still write.

    Parameters
    ----------
    jvm : GatewayJvm
    error : YarnflowError, optional
        Why, for whoever started this process; None = it leaves as it was told to.
    """
    if error is None:
        os._exit(0)
    if jvm.alive:
        # sooner than by this process's end
        os.kill(jvm.pid, signal.SIGKILL)
    # a log that cannot be written, or is locked by a thread that hangs, must not keep the process
    speaker = threading.Thread(target=_say, args=(error,), name="shutdown-message", daemon=True)
    speaker.start()
    speaker.join(_SHUTDOWN_MESSAGE_TIMEOUT_S)
    os._exit(error.exit_code)


def _say(error: YarnflowError) -> None:
    print(f"error: {error}", file=sys.stderr, flush=True)
    logger.error("%s", error)


class _AssignmentReader:
    """Reads assignments, and watches for the end of standard input."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream
        self._lines: SimpleQueue[str] = SimpleQueue()

    def start(self) -> None:
        threading.Thread(target=self._read, name="assignment", daemon=True).start()

    @property
    def arrived(self) -> bool:
        return not self._lines.empty()

    def wait(self, jvm: GatewayJvm) -> str:
        """The next one; raises DriverLost when the JVM ends before it comes."""
        while True:
            try:
                return self._lines.get(timeout=_JVM_POLL_S)
            except Empty:
                if not jvm.alive:
                    raise jvm.lost("ended while it had no job") from None

    def _read(self) -> None:
        for line in self._stream:
            if line.strip():
                self._lines.put(line)
        # the JVM goes with this process; nothing is left to be told to anybody
        logger.info("The owner of this driver has gone.")
        os._exit(_OWNER_GONE)


if __name__ == "__main__":
    sys.exit(main())
