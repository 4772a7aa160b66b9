"""Checks of ``yarnflow doctor`` for clusters on YARN: from the configuration to a container."""

from __future__ import annotations

import email.utils
import os
import secrets
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module, metadata
from typing import Final

from yarnflow.client.diagnose.checks import Check
from yarnflow.client.yarn.high_availability import check_quorum
from yarnflow.client.yarn.services import YarnServices, yarn_services
from yarnflow.config.configuration import Configuration
from yarnflow.config.hadoop.conf import HadoopConf
from yarnflow.config.options import yarn
from yarnflow.core.yarn import DeploymentMode
from yarnflow.errors import ConfigError, StorageError, YarnError, YarnUnavailable

#: leases and tokens go wrong beyond this
MAX_CLOCK_DIFFERENCE_MS: Final = 10_000
ZOOKEEPER_QUORUM: Final = "high-availability.zookeeper.quorum"
#: where Hadoop's own daemons say what their ZooKeeper is
_HADOOP_QUORUMS: Final = ("hadoop.zk.address", "ha.zookeeper.quorum")
_CLASSPATH_TIMEOUT_S: Final = 60
_HTTP_TIMEOUT_S: Final = 10.0
_ZOOKEEPER_TIMEOUT_S: Final = 5.0
_ZOOKEEPER_PORT: Final = 2181

RESOURCE_MANAGER: Final = "ResourceManager"
HDFS: Final = "HDFS"
HADOOP: Final = "Hadoop configuration"
ENVIRONMENT: Final = "Python environment"
CLASSPATH: Final = "yarn classpath"
CONTAINER: Final = "container"


@dataclass(slots=True)
class YarnChecks:
    """Checks of a cluster on YARN, which share what they connect to."""

    configuration: Configuration
    environ: Mapping[str, str]
    mode: DeploymentMode
    _services: YarnServices | None = field(default=None, repr=False)

    def checks(self, *, container: bool) -> list[Check]:
        """All of them, cheap ones first."""
        checks = [
            Check(HADOOP, self.hadoop_configuration),
            Check("skein", skein_library),
            Check(CLASSPATH, lambda: classpath(self.environ)),
            Check(RESOURCE_MANAGER, self.resource_manager, (HADOOP,)),
            Check("clock", self.clock, (HADOOP, RESOURCE_MANAGER)),
            Check("queue", self.queue, (HADOOP, RESOURCE_MANAGER)),
            Check("log aggregation", self.log_aggregation, (HADOOP,)),
            Check(HDFS, self.hdfs, (HADOOP,)),
            Check("ZooKeeper", self.zookeeper, (HADOOP,)),
            Check(ENVIRONMENT, self.environment),
        ]
        if container:
            needs = (HADOOP, "skein", CLASSPATH, RESOURCE_MANAGER, "queue", HDFS, ENVIRONMENT)
            checks.append(Check(CONTAINER, self.container, needs))
        return checks

    def close(self) -> None:
        """End what was started."""
        if self._services is not None:
            self._services.close()

    @property
    def services(self) -> YarnServices:
        """Made when first needed."""
        if self._services is None:
            self._services = yarn_services(self.configuration, self.environ)
        return self._services

    def hadoop_configuration(self) -> str:
        """HADOOP_CONF_DIR and what it says."""
        conf = HadoopConf.load(self.environ)
        managers = ", ".join(conf.resource_manager_web_addresses())
        return f"{conf.directory}: {conf.default_fs}, ResourceManager {managers}"

    def resource_manager(self) -> str:
        """Whether it answers, and what the cluster has."""
        limits = self.services.cluster.limits()
        if limits.active_nodes == 0:
            raise YarnUnavailable("the ResourceManager has no running NodeManager; see their logs")
        return (
            f"{limits.active_nodes} nodes, {limits.available_memory_mib} of {limits.total_memory_mib} MiB "
            f"and {limits.available_vcores} of {limits.total_vcores} vcores free"
        )

    def clock(self) -> str:
        """Difference to the ResourceManager's clock."""
        difference_ms = clock_difference_ms(self.services.conf.resource_manager_web_addresses())
        if abs(difference_ms) > MAX_CLOCK_DIFFERENCE_MS:
            raise YarnError(
                f"the ResourceManager's clock differs by {difference_ms / 1000:.0f} s from this machine's; "
                "synchronise both (NTP)"
            )
        return f"{abs(difference_ms) / 1000:.0f} s from the ResourceManager's"

    def queue(self) -> str:
        """Whether the queue takes containers of the configured sizes, as a submit asks."""
        from yarnflow.client.yarn.specification import check_admission, container_sizes
        from yarnflow.yarn.web.admission import find_queue

        cluster = self.services.cluster
        sizes = container_sizes(self.configuration, self.mode)
        name = self.configuration.get(yarn.APPLICATION_QUEUE)
        check_admission(cluster, self.configuration, sizes)
        queue = find_queue(cluster.queues(), name)
        limits = cluster.limits()
        masters = f"{sizes.masters} masters, each" if sizes.masters > 1 else "master"
        driver = f"driver {sizes.driver_mib} MiB, {sizes.driver_vcores} vcores, " if sizes.driver_mib else ""
        wanted = (
            f"{masters} {sizes.master_mib} MiB, {sizes.master_vcores} vcores, {driver}TaskManager "
            f"{sizes.task_manager_mib} MiB, {sizes.task_manager_vcores} vcores (at most "
            f"{limits.max_memory_mib} MiB, {limits.max_vcores} vcores)"
        )
        if queue is None:
            return f"{name} is made by YARN when it is used; {wanted}"
        used = f", {queue.used_percent:.0f} % used" if queue.used_percent >= 0 else ""
        pending = f", {queue.pending_containers} containers pending" if queue.pending_containers else ""
        return f"{queue.path} is {queue.state}{used}{pending}; {wanted}"

    def log_aggregation(self) -> str:
        """Whether logs can be had after the end; jobs run without."""
        if self.services.conf.get("yarn.log-aggregation-enable", "false").lower() == "true":
            return "on"
        return "off: `yarnflow logs` shows those of running applications only (yarn.log-aggregation-enable)"

    def hdfs(self) -> str:
        """Write, rename, read and delete in the staging directory."""
        from yarnflow.staging.layout import prepare

        fs, layout = self.services.fs, self.services.layout
        prepare(fs, layout, self.services.user)
        path = f"{layout.root}/.doctor-{secrets.token_hex(6)}"
        try:
            fs.write(path, b"doctor")
            if not fs.rename(path, f"{path}.moved"):
                raise StorageError(f"{fs.uri}{path} could not be renamed")
            if fs.read(f"{path}.moved") != b"doctor":
                raise StorageError(f"{fs.uri}{path}.moved has other content than was written")
            if not fs.delete(f"{path}.moved"):
                raise StorageError(f"{fs.uri}{path}.moved could not be deleted")
        except StorageError:
            self._forget(path)
            raise
        return f"{fs.uri}{layout.root}: written, renamed, read, deleted"

    def _forget(self, path: str) -> None:
        for name in (path, f"{path}.moved"):
            try:
                self.services.fs.delete(name)
            except StorageError:
                pass  # what is wrong is being told already

    def zookeeper(self) -> str:
        """Whether every server of the quorum answers; with high availability as a submit asks, too."""
        check_quorum(self.configuration)
        quorum = self.configuration.get_raw(ZOOKEEPER_QUORUM) or ""
        for key in _HADOOP_QUORUMS:
            quorum = quorum or self.services.conf.get(key)
        if not quorum:
            return "none is configured"
        return zookeeper_servers(quorum)

    def environment(self) -> str:
        """The environment of containers, from outside."""
        from yarnflow.client.yarn.specification import python_environment

        text = self.configuration.get(yarn.PYTHON_ENVIRONMENT)
        environment = python_environment(self.configuration)
        if environment.archive is not None or environment.archive_uri:
            return f"{text}, unpacked on the nodes"
        return f"{environment.interpreter}, which all nodes must have"

    def container(self) -> str:
        """Everything together, in a container."""
        from yarnflow.client.diagnose.container_check import probe_container, problems, summary

        started_s = time.monotonic()
        found = probe_container(self.services)
        wrong = problems(found)
        if wrong:
            raise YarnError(f"on {found.get('host')}: {'; '.join(wrong)}")
        return f"{summary(found)} ({time.monotonic() - started_s:.0f} s)"


def skein_library() -> str:
    """skein, with its native library."""
    try:
        import_module("skein")
    except ImportError as error:
        raise ConfigError(f"skein cannot be imported ({error}); run: pip install skein") from error
    return metadata.version("skein")


def classpath(environ: Mapping[str, str]) -> str:
    """``yarn classpath --glob``, which skein's Java needs."""
    program = shutil.which("yarn", path=environ.get("PATH", os.defpath))
    if program is None:
        raise YarnUnavailable("the command yarn is not on the path; install Hadoop's client, or extend PATH")
    try:
        done = subprocess.run(
            [program, "classpath", "--glob"],
            capture_output=True,
            text=True,
            timeout=_CLASSPATH_TIMEOUT_S,
            check=False,
            env=dict(environ),
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise YarnUnavailable(f"{program} classpath --glob could not be run: {error}") from error
    if done.returncode != 0:
        said = " ".join(done.stderr.split())[-300:]
        raise YarnUnavailable(f"{program} classpath --glob ended with status {done.returncode}: {said}")
    entries = [entry for entry in done.stdout.strip().split(":") if entry]
    jars = [entry for entry in entries if entry.endswith(".jar")]
    if not any("hadoop-yarn" in os.path.basename(jar) for jar in jars):
        raise YarnUnavailable(
            f"{program} classpath --glob names no jar of YARN among {len(entries)} entries; repair the "
            "installation of Hadoop's client"
        )
    return f"{program}: {len(jars)} jars"


def clock_difference_ms(addresses: Sequence[str]) -> int:
    """The ResourceManager's time less ours, as exact as the whole seconds of HTTP's ``Date`` allow."""
    problem = ""
    # proxies of the environment are not for a cluster's own machines
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    for address in addresses:
        before_s = time.time()
        try:
            with opener.open(f"{address}/ws/v1/cluster/info", timeout=_HTTP_TIMEOUT_S) as answer:
                date = answer.headers.get("Date")
        except urllib.error.HTTPError as error:
            date = error.headers.get("Date")
        except OSError as error:
            problem = str(error)
            continue
        after_s = time.time()
        if date:
            their_s = email.utils.parsedate_to_datetime(date).timestamp()
            if before_s - 1 <= their_s <= after_s + 1:
                return 0
            return round((their_s - (before_s + after_s) / 2) * 1000)
    raise YarnUnavailable(f"the ResourceManager does not tell the time {problem}".rstrip())


def zookeeper_servers(quorum: str) -> str:
    """Ask each server of ``host:port,host:port/path`` how it is.

    Raises
    ------
    YarnflowError
        One does not serve; the message names all of them.
    """
    told, wrong = [], []
    for server in quorum.partition("/")[0].split(","):
        host, colon, port = server.strip().rpartition(":")
        if not colon or not port.isdigit():
            host, port = server.strip(), str(_ZOOKEEPER_PORT)
        try:
            told.append(f"{host}:{port} {_zookeeper_mode(host, int(port))}")
        except (OSError, ValueError) as error:
            wrong.append(f"{host}:{port}: {error}")
    if wrong:
        others = f"; {', '.join(told)}" if told else ""
        raise YarnUnavailable(
            f"ZooKeeper does not serve at {', '.join(wrong)}{others}; start it, or correct {ZOOKEEPER_QUORUM}"
        )
    return ", ".join(told)


def _zookeeper_mode(host: str, port: int) -> str:
    with socket.create_connection((host, port), timeout=_ZOOKEEPER_TIMEOUT_S) as connection:
        connection.settimeout(_ZOOKEEPER_TIMEOUT_S)
        connection.sendall(b"srvr")
        chunks = []
        while chunk := connection.recv(4096):
            chunks.append(chunk)
    text = b"".join(chunks).decode("utf-8", "replace")
    for line in text.splitlines():
        if line.startswith("Mode:"):
            return line.partition(":")[2].strip()
    if "whitelist" in text:
        return "answers"
    raise ValueError(" ".join(text.split()) or "it closed the connection without an answer")
