"""The driver's own JVM, started as early and as quickly as can be.

pyspark starts its JVM through a shell script, a second JVM that only prints a command line, and
``SparkSubmit``.  Here ``java`` is run at once with the gateway server as main class: no shell, no
second JVM.  The start returns immediately, so that Python imports pyspark in the meantime.

The JVM ends when its standard input does, and with the caller's wrapper also when its parent
dies.  The gateway's authentication token stays on, as in pyspark.  Never creates a SparkContext.
"""

from __future__ import annotations

import os
import shlex
import shutil
import struct
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from yarnflow.errors import DriverLost, InvalidOption
from yarnflow.spark.java_classes import java_class
from yarnflow.spark.launch.jar_loader import JarLoader
from yarnflow.spark.launch.java import JavaRuntime
from yarnflow.spark.launch.spark_home import (
    LOG4J_CONFIG,
    LOG4J_JSON_CONFIG,
    class_path,
    module_options,
    spark_home,
)

GATEWAY_MAIN: Final = "org.apache.spark.api.python.PythonGatewayServer"
#: A driver plans and schedules in short bursts, so it gets the quick compiler only and the
#: collector without threads of its own; together they save half of its CPU time at the start.
DRIVER_JVM_FLAGS: Final = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
#: variables of another Spark, which must reach neither a driver nor user code: its gateway, its server
FOREIGN_VARIABLES: Final = (
    "PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET", "SPARK_API_MODE", "SPARK_CONNECT_MODE",
    "SPARK_CONNECT_MODE_ENABLED", "SPARK_LOCAL_REMOTE", "SPARK_REMOTE",
)  # fmt: skip
#: Spark starts its Python workers by ``python -m``, and cannot be told to give that an option
SAFE_PATH_VARIABLE: Final = "PYTHONSAFEPATH"
_CONNECTION_FILE_ENV: Final = "_PYSPARK_DRIVER_CONN_INFO_PATH"
_POLL_S: Final = 0.005


def split_options(key: str, text: str) -> list[str]:
    """JVM options as a shell reads them.

    Raises
    ------
    InvalidOption
        A quote that does not end; ``key`` names where it stands.
    """
    try:
        return shlex.split(text)
    except ValueError as error:
        raise InvalidOption(f"{key} is {text!r}: {error}; close the quote or escape it with \\") from None


def gateway_command(
    java: JavaRuntime,
    heap_mib: int,
    flags: Sequence[str] = (),
    log_level: str = "WARN",
    hadoop_conf_dir: str = "",
    log_format: str = "text",
) -> list[str]:
    """The command line of the gateway JVM.

    Parameters
    ----------
    java : JavaRuntime
    heap_mib : int
        Maximum heap, from the driver's memory model.
    flags : sequence of str
        More JVM options, such as those of ``class_data_sharing.jvm_flags``.
    log_level : str
        Level of Spark's own log.
    hadoop_conf_dir : str
        Where Hadoop's configuration is; empty = only local files are known.
    log_format : str
        Of Spark's own log: text or json (``yarnflow.log.format``).
    """
    return [
        str(java.program),
        f"-Xmx{heap_mib}m",
        *common_flags(log_format),
        *flags,
        *module_options(),
        f"-Dyarnflow.log.level={log_level}",
        "-cp",
        class_path(hadoop_conf_dir),
        GATEWAY_MAIN,
    ]


def common_flags(log_format: str = "text") -> list[str]:
    """JVM options of every JVM of ours, driver or executor."""
    log4j = LOG4J_JSON_CONFIG if log_format == "json" else LOG4J_CONFIG
    return [
        # the JVM's own warnings go to standard output by default, which belongs to the user
        "-Xlog:disable",
        "-Xlog:all=error:stderr",
        f"-Dlog4j2.configurationFile=file:{log4j}",
        # without it every JVM makes a file in /tmp/hsperfdata that only jps reads
        "-XX:-UsePerfData",
        "-Djava.net.preferIPv4Stack=true",
        "-Dlog4j2.disable.jmx=true",
    ]


def set_java_log_level(gateway: Any, logger: str, level: str) -> None:
    """Change what a logger of a gateway JVM says, until that ends.

    Parameters
    ----------
    gateway : py4j.java_gateway.JavaGateway
    level : str
        One of Log4j's; empty = that of the logger above it.
    """
    known = java_class(gateway, "org.apache.logging.log4j.Level").toLevel(level) if level else None
    java_class(gateway, "org.apache.logging.log4j.core.config.Configurator").setLevel(logger, known)


def name_java_job(gateway: Any, job_id: str) -> None:
    """Have a gateway JVM write in its log lines for which job it works."""
    java_class(gateway, "java.lang.System").setProperty("yarnflow.job.id", job_id)


def has_collector(options: Sequence[str]) -> bool:
    """Whether the options choose a garbage collector; a JVM that is told two does not start."""
    return any(option.startswith("-XX:+Use") and option.endswith("GC") for option in options)


def gateway_environment(environ: Mapping[str, str], host: str, connection_file: Path) -> dict[str, str]:
    """The environment of the gateway JVM."""
    env = dict(environ)
    env.update(
        {
            _CONNECTION_FILE_ENV: str(connection_file),
            "SPARK_HOME": str(spark_home()),
            "SPARK_CONNECT_MODE": "0",
            SAFE_PATH_VARIABLE: "1",
            # else Spark looks for a name of this machine and warns when it is a loopback one
            "SPARK_LOCAL_IP": host,
            "SPARK_LOCAL_HOSTNAME": host,
        }
    )
    if environ.get("CONTAINER_ID") and environ.get("LOCAL_DIRS"):
        # in a container of YARN Spark keeps its files where they stay until the application ends; these
        # directories go with the container
        directories = environ["LOCAL_DIRS"].split(",")
        env["LOCAL_DIRS"] = ",".join(f"{path}/{environ['CONTAINER_ID']}" for path in directories)
    return env


class GatewayJvm:
    """One gateway JVM of this process.

    Parameters
    ----------
    process : subprocess.Popen
        The JVM, with a pipe as standard input.
    connection_file : Path
        Where the JVM writes port and token; its directory is removed after use.
    log_file : Path, optional
        Has the JVM's standard error; None = it is this process's.
    """

    def __init__(
        self, process: subprocess.Popen[bytes], connection_file: Path, log_file: Path | None = None
    ) -> None:
        self._process = process
        self._log = "the log of this process" if log_file is None else str(log_file)
        self._connection_file = connection_file
        self._lock = threading.Lock()
        self._gateway: Any = None
        self._jars: JarLoader | None = None

    @classmethod
    def launch(
        cls,
        command: Sequence[str],
        *,
        host: str,
        log_file: Path | None = None,
        wrap: Callable[[list[str]], list[str]] | None = None,
        environ: Mapping[str, str] | None = None,
        scratch: Path | None = None,
    ) -> GatewayJvm:
        """Start the JVM and return at once.

        Parameters
        ----------
        command : sequence of str
            From :func:`gateway_command`.
        host : str
            The address this driver is reached at.
        log_file : Path, optional
            Receives the JVM's standard error, and so Spark's log.
        wrap : callable, optional
            Puts a wrapper before the command that ties the JVM's life to this process.
        environ : mapping, optional
            Environment to start from, by default this process's.
        scratch : Path, optional
            Parent of the directory in which the JVM leaves its port and token; default: the system's
            temporary directory.
        """
        directory = Path(tempfile.mkdtemp(prefix="yarnflow-gateway-", dir=scratch))
        connection_file = directory / "connection"
        env = gateway_environment(os.environ if environ is None else environ, host, connection_file)
        full = list(command) if wrap is None else wrap(list(command))
        stderr = None if log_file is None else open(log_file, "ab")
        try:
            process = subprocess.Popen(
                full,
                stdin=subprocess.PIPE,
                stderr=stderr,
                env=env,
                # its own session: Ctrl-C at the terminal must reach Python only
                start_new_session=True,
            )
        except OSError:
            shutil.rmtree(directory, ignore_errors=True)
            raise
        finally:
            if stderr is not None:
                stderr.close()
        return cls(process, connection_file, log_file)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def lost(self, how: str = "ended") -> DriverLost:
        """The error for a JVM that is of no use any more; it names the file that says why."""
        return DriverLost(f"the driver's JVM {how}; see {self._log}")

    def wait_ready(self, timeout_s: float = 120.0) -> tuple[int, str]:
        """Port and token of the gateway, as soon as the JVM listens.

        Raises
        ------
        DriverLost
            The JVM ended, or did not come up within the time.
        """
        deadline = time.monotonic() + timeout_s
        while not self._connection_file.exists():
            status = self._process.poll()
            if status is not None:
                raise self.lost(f"ended with status {status} before it was up")
            if time.monotonic() > deadline:
                raise self.lost(f"did not come up within {timeout_s:.0f} s")
            time.sleep(_POLL_S)
        content = self._connection_file.read_bytes()
        shutil.rmtree(self._connection_file.parent, ignore_errors=True)
        # two integers in network order around the token: port, length of the token
        (port, length) = struct.unpack(">ii", content[:8])
        return port, content[8 : 8 + length].decode("utf-8")

    def connect(self, timeout_s: float = 120.0) -> Any:
        """The py4j gateway, ready to be handed to ``SparkContext``.  Imports pyspark."""
        with self._lock:
            if self._gateway is None:
                self._gateway = self._connect(timeout_s)
            return self._gateway

    @property
    def jars(self) -> JarLoader:
        """Its class path, once :meth:`connect` has returned."""
        assert self._jars is not None, "the JVM is not connected"
        return self._jars

    def _connect(self, timeout_s: float) -> Any:
        port, token = self.wait_ready(timeout_s)
        from pyspark.java_gateway import launch_gateway

        # pyspark connects to a gateway it did not start when these two are set; the token must not
        # stay in the environment, which Python workers and user code can read
        os.environ["PYSPARK_GATEWAY_PORT"] = str(port)
        os.environ["PYSPARK_GATEWAY_SECRET"] = token
        try:
            gateway = launch_gateway()  # type: ignore[no-untyped-call]
        finally:
            del os.environ["PYSPARK_GATEWAY_PORT"], os.environ["PYSPARK_GATEWAY_SECRET"]
        # what pyspark notes about a JVM of its own
        gateway.proc = self._process
        # before anything of Spark's starts threads of its own
        self._jars = JarLoader.install(gateway)
        return gateway

    def stop(self, timeout_s: float = 5.0) -> None:
        """End the JVM: by end of input first, then by force.  Idempotent."""
        if self._process.stdin is not None:
            try:
                self._process.stdin.close()
            except OSError:
                pass
        try:
            self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        shutil.rmtree(self._connection_file.parent, ignore_errors=True)
