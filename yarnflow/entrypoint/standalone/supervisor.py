"""Main of the supervisors of a standalone cluster's processes.

``yarnflow jobmanager`` runs the JobManager and owns its drivers; ``yarnflow taskmanager`` runs a
TaskManager and starts it again when it dies.  Without high availability a dead JobManager ends
its supervisor with an error and its drivers are killed: nobody could take them over.  With it any
number of masters may run, on one machine as well: each has a directory of its own, and a dead
JobManager is started again while its drivers run on.

Flink counterparts: ``StandaloneSessionClusterEntrypoint``, ``TaskManagerRunner`` and the shell
scripts around them.
"""

from __future__ import annotations

import fcntl
import itertools
import os
import shutil
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Final

from yarnflow.config.checkpoint_root import cluster_storage, shared_checkpoint_root
from yarnflow.config.configuration import Configuration
from yarnflow.config.options import cluster, job, memory, security
from yarnflow.config.options import ha as ha_options
from yarnflow.core.resources.memory import task_manager_memory_of
from yarnflow.entrypoint.ha_services import session_closer
from yarnflow.errors import ResourceError
from yarnflow.ha.settings import is_highly_available
from yarnflow.process.channel.messages import MasterRole
from yarnflow.process.cluster import ClusterSupervisor
from yarnflow.process.cluster_settings import ClusterListeners
from yarnflow.process.commands import ProcessCommands
from yarnflow.process.dirs import (
    ClusterDirectory,
    open_cluster_directory,
    standalone_directory,
    standalone_secret_file,
    write_json,
)
from yarnflow.process.logs import keep_log_file, log_settings, set_up_logging
from yarnflow.process.pools import WorkerPool
from yarnflow.process.secret import ensure_secret, read_secret
from yarnflow.process.supervisor import Supervisor
from yarnflow.runtime.job_dirs import work_dirs

START_TIMEOUT_S: Final = 60.0
STOP_GRACE_S: Final = 10.0
#: how often a master looks whether its spare driver is still there
_SPARE_INTERVAL_S: Final = 2.0
#: of masters whose port is not set
_MASTER_PORTS: Final = "6123-6222"

Say = Callable[[str], None]


def run_job_manager(configuration: Configuration, say: Say) -> int:
    """Run a JobManager until it is told to stop (TERM or INT).

    Parameters
    ----------
    say : callable
        Takes the few sentences a user of the terminal should see.

    Returns
    -------
    int
        Exit status of the command.

    Raises
    ------
    YarnflowError
        It could not start, or ended by itself.
    """
    stop = stop_event()
    if is_highly_available(configuration):
        return _run_master(configuration, say, stop)
    directory = _open(configuration)
    with _only_one(directory):
        path = standalone_secret_file(configuration)
        ensure_secret(path)
        commands = _commands(configuration, directory, path, "jobmanager")
        _remove_leftovers(directory)
        supervisor = ClusterSupervisor(
            directory,
            commands,
            listeners=ClusterListeners(on_end=lambda _: stop.set(), on_failure=lambda _: stop.set()),
            kept_logs=configuration.get(cluster.LOG_RETAINED_PROCESSES),
        )
        try:
            supervisor.start_job_manager()
            address = supervisor.await_address(START_TIMEOUT_S)
            say(f"JobManager serves at {address} (pid {os.getpid()}); logs: {directory.logs}")
            stop.wait()
        finally:
            supervisor.stop(STOP_GRACE_S)
            directory.jobmanager_file.unlink(missing_ok=True)
    return _how_it_ended(supervisor, say)


def _how_it_ended(supervisor: ClusterSupervisor, say: Say) -> int:
    """Say so; raises what has gone wrong."""
    if supervisor.failure is not None:
        raise supervisor.failure
    if supervisor.result is not None:
        say(f"The cluster has ended {supervisor.result.status.name}. {supervisor.result.diagnostics}".strip())
    say("JobManager stopped.")
    return 0


def _run_master(configuration: Configuration, say: Say, stop: threading.Event) -> int:
    """Run one of several masters, until it is told to stop or the cluster has ended."""
    open_cluster_directory(standalone_directory(configuration), configuration.get(cluster.LOG_DIR))
    path = standalone_secret_file(configuration)
    ensure_secret(path)
    configuration = master_configuration(configuration)
    with _own_directory(configuration) as directory:
        _remove_leftovers(directory)
        supervisor = ClusterSupervisor(
            directory,
            _commands(configuration, directory, path, "jobmanager"),
            highly_available=True,
            listeners=ClusterListeners(
                on_role=lambda role: say(_role(role)),
                on_end=lambda _: stop.set(),
                on_failure=lambda _: stop.set(),
                on_process_ended=session_closer(configuration, directory.path),
            ),
            kept_logs=configuration.get(cluster.LOG_RETAINED_PROCESSES),
        )
        try:
            supervisor.start_job_manager()
            if configuration.get(ha_options.STANDBY_MODE) != "cold":
                supervisor.start_spare_driver(configuration.get(memory.DRIVER_PROCESS_SIZE_MIB))
            address = supervisor.await_address(START_TIMEOUT_S)
            say(f"JobManager serves at {address} (pid {os.getpid()}); logs: {directory.logs}")
            while not stop.wait(_SPARE_INTERVAL_S):
                if configuration.get(ha_options.STANDBY_MODE) != "cold":
                    supervisor.keep_spare_driver(configuration.get(memory.DRIVER_PROCESS_SIZE_MIB))
        finally:
            supervisor.stop(STOP_GRACE_S)
            directory.jobmanager_file.unlink(missing_ok=True)
    return _how_it_ended(supervisor, say)


def master_configuration(configuration: Configuration) -> Configuration:
    """What has to be otherwise when there are several masters, unless it is set.

    The next master of a machine takes the next port; ZooKeeper tells everybody which.  Checkpoints
    stand where all masters find them.
    """
    values: dict[str, str] = {}
    if not configuration.is_set(cluster.JOBMANAGER_RPC_PORT):
        values[cluster.JOBMANAGER_RPC_PORT.key] = _MASTER_PORTS
    storage = cluster_storage(configuration)
    if storage and not configuration.get(job.CHECKPOINT_DIR):
        values[job.CHECKPOINT_DIR.key] = shared_checkpoint_root(configuration, storage)
    return configuration.with_values(values, source="supervisor")


def _role(role: MasterRole) -> str:
    if role.leads:
        return f"JobManager {role.address} leads (epoch {role.epoch})."
    return f"JobManager {role.address} is a standby."


@contextmanager
def _own_directory(configuration: Configuration) -> Iterator[ClusterDirectory]:
    """The first directory of this cluster that no other master of this machine uses."""
    shared = standalone_directory(configuration)
    log_dir = configuration.get(cluster.LOG_DIR)
    for number in itertools.count(1):
        name = f"master-{number}"
        logs = str(Path(log_dir).expanduser() / name) if log_dir else ""
        directory = open_cluster_directory(shared / name, logs)
        try:
            lock = _only_one(directory)
            lock.__enter__()
        except ResourceError:
            continue
        try:
            set_up_logging(directory.logs / f"supervisor-{os.getpid()}.log", log_settings(configuration))
            yield directory
        finally:
            lock.__exit__()
        return


def run_task_manager(configuration: Configuration, say: Say) -> int:
    """Run a TaskManager until told to stop; it is started again whenever it dies.

    Raises
    ------
    YarnflowError
        It could not start; memory sizes with which it never can are said here, not once for each start.
    """
    task_manager_memory_of(configuration)
    stop = stop_event()
    directory = _open(configuration)
    path = standalone_secret_file(configuration)
    read_secret(path)
    name = f"taskmanager-{os.getpid()}"
    commands = _commands(configuration, directory, path, name)
    supervisor = Supervisor()
    workers = WorkerPool(
        supervisor,
        commands,
        directory.logs,
        lambda end: say(f"TaskManager {end.worker_id} ended ({end.exit_status}); logs: {directory.logs}"),
        host=configuration.get(cluster.TASKMANAGER_HOST) or "localhost",
        worker_ids=False,
        name=name,
    )
    try:
        workers.request_workers(1)
        if not workers.worker_ids():
            raise ResourceError(f"the TaskManager could not be started; see {directory.logs}")
        say(f"TaskManager started (pid {os.getpid()}); logs: {directory.logs}")
        stop.wait()
    finally:
        workers.stopping()
        supervisor.stop(STOP_GRACE_S)
        commands.conf_file.unlink(missing_ok=True)
        _log_settings_file(commands.conf_file).unlink(missing_ok=True)
    say("TaskManager stopped.")
    return 0


def _open(configuration: Configuration) -> ClusterDirectory:
    path = standalone_directory(configuration)
    directory = open_cluster_directory(path, configuration.get(cluster.LOG_DIR))
    set_up_logging(directory.logs / f"supervisor-{os.getpid()}.log", log_settings(configuration))
    return directory


def _remove_leftovers(directory: ClusterDirectory) -> None:
    """Remove what drivers of a supervisor that was killed have left, before the first one is started."""
    shutil.rmtree(work_dirs(directory.path), ignore_errors=True)


def _log_settings_file(conf_file: Path) -> Path:
    return conf_file.with_suffix(".log.yaml")


def _commands(
    configuration: Configuration, directory: ClusterDirectory, secret: Path, name: str
) -> ProcessCommands:
    conf_file = directory.path / f"conf-{name}.json"
    effective = configuration.with_values(
        {
            security.CLUSTER_SECRET_FILE.key: str(secret),
            **keep_log_file(configuration, _log_settings_file(conf_file)),
        },
        source="supervisor",
    )
    write_json(conf_file, effective.to_dict())
    return ProcessCommands(directory.path, conf_file, secret)


class _only_one:
    """Refuses a second JobManager of the same cluster on this machine."""

    def __init__(self, directory: ClusterDirectory) -> None:
        self._directory = directory
        self._lock = -1

    def __enter__(self) -> None:
        path = self._directory.path / "jobmanager.lock"
        self._lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._lock)
            raise ResourceError(
                f"a JobManager of this cluster runs already on this machine ({self._directory.path}); "
                "stop it, or set another high-availability.cluster-id"
            ) from None

    def __exit__(self, *exception: object) -> None:
        os.close(self._lock)


def stop_event() -> threading.Event:
    stop = threading.Event()

    def on_signal(number: int, frame: FrameType | None) -> None:
        stop.set()

    signal.signal(signal.SIGTERM, on_signal)
    signal.signal(signal.SIGINT, on_signal)
    return stop
