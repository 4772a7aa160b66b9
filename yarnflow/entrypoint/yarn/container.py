"""What a process of ours finds in a container of YARN, and what it makes of it.

Decides where a container's processes keep and write their files, and how the client's options
become theirs; both kinds of container share it.  Connects to nothing.  Flink counterparts:
``YarnEntrypointUtils.loadConfiguration``, ``YarnTaskExecutorRunner``.
"""

from __future__ import annotations

import os
import select
import stat
import threading
from collections.abc import Callable, Mapping, MutableMapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from yarnflow.config.configuration import Configuration
from yarnflow.config.option import ConfigOption
from yarnflow.config.options import cluster, python, rest, security
from yarnflow.config.parsers import port_candidates
from yarnflow.core.hosts import bind_address
from yarnflow.core.json_codec import from_json
from yarnflow.errors import ConfigError, RpcProtocolError
from yarnflow.process.dirs import ClusterDirectory, open_cluster_directory
from yarnflow.process.output.rotation import own_rotation
from yarnflow.staging.deployment import Deployment
from yarnflow.staging.layout import DEPLOYMENT_FILE, SECRET_FILE, STANDBY_ENVIRONMENT, SUBMISSION_FILE

#: key of skein's store under which the master says where its JobManager serves
JOB_MANAGER_KEY: Final = "yarnflow.jobmanager"
#: in a container's working directory: its own state
CLUSTER_DIRECTORY: Final = "cluster"
_DEFAULT_FS: Final = "spark.hadoop.fs.defaultFS"
#: names among what was shipped that are not for users' code
_OURS: Final = frozenset({DEPLOYMENT_FILE, SECRET_FILE, SUBMISSION_FILE})


@dataclass(frozen=True, slots=True)
class Container:
    """The container of this process."""

    #: working directory
    directory: Path
    #: directory of the files that YARN shows and aggregates
    logs: Path
    #: the one of them that standard output goes to
    output: Path
    #: name of this machine, as YARN's NodeManager calls it
    host: str
    container_id: str
    application_id: str
    #: skein's name of a TaskManager's container (``taskmanager_3``); empty in the master
    worker_id: str
    #: directories of this container on each of the node's disks
    disks: tuple[Path, ...]
    deployment: Deployment
    #: it is a master that another master has started
    standby: bool = False

    @property
    def secret_file(self) -> Path:
        """The cluster's secret."""
        return self.directory / SECRET_FILE

    @property
    def worker_name(self) -> str:
        """What this TaskManager's container is called in its cluster; see :func:`worker_name`."""
        if not self.deployment.highly_available:
            return self.worker_id
        return worker_name(self.application_id, self.worker_id)

    def open_directory(self) -> ClusterDirectory:
        """The directory for this container's own state."""
        return open_cluster_directory(self.directory / CLUSTER_DIRECTORY, str(self.logs))

    def configuration(self, values: Mapping[str, str] | None = None) -> Configuration:
        """The client's options, with what only the container knows.

        Parameters
        ----------
        values : mapping, optional
            Further options, stronger than all others.
        """
        client = Configuration.from_dict(self.deployment.configuration, DEPLOYMENT_FILE)
        own = {
            cluster.JOBMANAGER_RPC_PORT.key: _shared_port(client, cluster.JOBMANAGER_RPC_PORT),
            cluster.TASKMANAGER_RPC_PORT.key: _shared_port(client, cluster.TASKMANAGER_RPC_PORT),
            rest.REST_PORT.key: "0",
            rest.REST_BIND_PORT.key: "0",
            # a node's name may mean an address that only others have for it
            cluster.JOBMANAGER_BIND_HOST.key: bind_address(self.host),
            cluster.TASKMANAGER_BIND_HOST.key: bind_address(self.host),
            cluster.TASKMANAGER_HOST.key: self.host,
            cluster.LOG_DIR.key: str(self.logs),
            cluster.IO_TMP_DIRS.key: str(self.directory / "tmp"),
            security.CLUSTER_SECRET_FILE.key: str(self.secret_file),
        }
        if client.is_set(rest.REST_BIND_PORT):
            own[rest.REST_BIND_PORT.key] = _shared_port(client, rest.REST_BIND_PORT)
        # what users mean by a path without scheme is on the cluster's file system
        if client.get_raw(_DEFAULT_FS) is None:
            own[_DEFAULT_FS] = "{0.scheme}://{0.netloc}".format(urlsplit(self.deployment.staging_uri))
        # an interpreter that was shipped lies elsewhere in each container, so its path is relative to the
        # working directory, which Spark's executors have links in
        if not self.deployment.python.startswith("/") and not client.is_set(python.PYTHON_EXECUTABLE):
            own[python.PYTHON_EXECUTABLE.key] = self.deployment.python
        return client.with_values({**own, **(values or {})}, source="container")

    def shared_files(self) -> dict[str, Path]:
        """What was shipped for users' code: name → file or directory."""
        return {
            entry.name: entry
            for entry in sorted(self.directory.iterdir())
            # YARN links what it brought; the rest was made here
            if entry.is_symlink() and not entry.name.startswith(".") and entry.name not in _OURS
        }


def worker_name(application_id: str, worker_id: str) -> str:
    """A worker of one of several masters: skein counts those of each application from 0."""
    return f"{application_id}/{worker_id}"


def enter(environ: MutableMapping[str, str] | None = None, directory: Path | None = None) -> Container:
    """Take the container over: read what it is for, and have children keep their files inside it.

    Raises
    ------
    ConfigError
        This is not a container of yarnflow.
    """
    env = os.environ if environ is None else environ
    cwd = directory or Path.cwd()
    try:
        deployment = from_json(Deployment, (cwd / DEPLOYMENT_FILE).read_text("utf-8"))
        host, container_id = env["NM_HOST"], env["CONTAINER_ID"]
        log_dirs = [Path(path) for path in env["LOG_DIRS"].split(",")]
        local_dirs = [Path(path) for path in env["LOCAL_DIRS"].split(",")]
    except (OSError, KeyError, RpcProtocolError) as error:
        raise ConfigError(
            f"{cwd} is not the working directory of a container of yarnflow: {error}; it is YARN that "
            "starts this program, see `yarnflow submit --target yarn-per-job`"
        ) from error
    disks = tuple(path / container_id for path in local_dirs)
    temporary = cwd / "tmp"
    temporary.mkdir(exist_ok=True)
    env["TMPDIR"] = str(temporary)
    env.setdefault("HADOOP_USER_NAME", deployment.user)
    output = _output_file(1)
    return Container(
        directory=cwd,
        logs=output.parent if output is not None and output.parent in log_dirs else log_dirs[0],
        output=output or log_dirs[0] / "output.log",
        host=host,
        container_id=container_id,
        application_id=env.get("SKEIN_APPLICATION_ID", ""),
        worker_id=env.get("SKEIN_CONTAINER_ID", ""),
        disks=disks,
        deployment=deployment,
        standby=bool(env.get(STANDBY_ENVIRONMENT)),
    )


def append_output() -> None:
    """Have standard output and error appended to their files, as our log lines are.

    The shell opened them to write at a place of its own, over what others have written there.
    """
    for descriptor in (1, 2):
        path = _output_file(descriptor)
        if path is None:
            continue
        appending = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
        os.dup2(appending, descriptor)
        os.close(appending)


def rotate_output() -> None:
    """Have the files of standard output and error rotated, with what jobs print there.

    By a thread, for as long as this process lives; so nothing may be forked afterwards.
    """
    for path in filter(None, map(_output_file, (1, 2))):
        own_rotation().watch(path)


def when_parent_ends(act: Callable[[], None]) -> None:
    """Call ``act`` from another thread as soon as the process that started this one has ended.

    By its end and not by the kernel's death signal, which goes by the thread that forked.
    """
    try:
        parent = os.pidfd_open(os.getppid())
    except ProcessLookupError:
        act()
        return

    def watch() -> None:
        select.select([parent], [], [])
        act()

    threading.Thread(target=watch, name="parent", daemon=True).start()


def _output_file(descriptor: int) -> Path | None:
    """The regular file a descriptor writes to."""
    try:
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            return Path(os.readlink(f"/proc/self/fd/{descriptor}"))
    except OSError:
        pass
    return None


def _shared_port(client: Configuration, option: ConfigOption[str]) -> str:
    """Several ports are the administrator's wish; one cannot serve all containers of a node."""
    text = client.get(option)
    return text if len(list(islice(port_candidates(text), 2))) > 1 else "0"
