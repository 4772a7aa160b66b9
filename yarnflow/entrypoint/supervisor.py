"""Main of the supervisors of a standalone cluster's processes.

``yarnflow jobmanager`` runs the JobManager and owns its drivers; ``yarnflow taskmanager`` runs a
TaskManager and starts it again when it dies.  Without high availability a dead JobManager ends
its supervisor with an error and its drivers are killed: nobody could take them over.

Flink counterparts: ``StandaloneSessionClusterEntrypoint``, ``TaskManagerRunner`` and the shell
scripts around them.
"""

from __future__ import annotations

import fcntl
import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Final

from yarnflow.config.configuration import Configuration
from yarnflow.config.options import cluster, security
from yarnflow.errors import ResourceError
from yarnflow.process.cluster import ClusterSupervisor
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

START_TIMEOUT_S: Final = 60.0
STOP_GRACE_S: Final = 10.0

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
    stop = _stop_event()
    directory = _open(configuration)
    with _only_one(directory):
        path = standalone_secret_file(configuration)
        ensure_secret(path)
        commands = _commands(configuration, directory, path, "jobmanager")
        supervisor = ClusterSupervisor(directory, commands, workers=0, on_failure=lambda _: stop.set())
        try:
            supervisor.start_job_manager()
            address = supervisor.await_address(START_TIMEOUT_S)
            say(f"JobManager serves at {address} (pid {os.getpid()}); logs: {directory.logs}")
            stop.wait()
        finally:
            supervisor.stop(STOP_GRACE_S)
            directory.jobmanager_file.unlink(missing_ok=True)
    if supervisor.failure is not None:
        raise supervisor.failure
    say("JobManager stopped.")
    return 0


def run_task_manager(configuration: Configuration, say: Say) -> int:
    """Run a TaskManager until told to stop; it is started again whenever it dies."""
    stop = _stop_event()
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
        lambda worker_id, status: say(f"TaskManager {worker_id} ended ({status}); logs: {directory.logs}"),
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


def _stop_event() -> threading.Event:
    stop = threading.Event()

    def on_signal(number: int, frame: FrameType | None) -> None:
        stop.set()

    signal.signal(signal.SIGTERM, on_signal)
    signal.signal(signal.SIGINT, on_signal)
    return stop
