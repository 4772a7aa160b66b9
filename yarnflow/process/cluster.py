"""The supervisor of a whole cluster on one machine: JobManager, its drivers, its TaskManagers.

Used by the local target (all of it) and by ``yarnflow jobmanager`` (no TaskManagers).  Without
high availability nobody else knows the jobs, so the end of the JobManager is the end of the
cluster: drivers are killed and whoever runs the supervisor is told why.
"""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Callable
from typing import Final

from yarnflow.core.ids import DriverId
from yarnflow.errors import ResourceError, YarnflowError, error_from_exit
from yarnflow.process.channel import JobManagerLink, NoResourceProvider
from yarnflow.process.commands import ProcessCommands
from yarnflow.process.dirs import ClusterDirectory, read_json
from yarnflow.process.logs import LOG_FILE_ENVIRONMENT
from yarnflow.process.pools import DriverPool, WorkerPool
from yarnflow.process.spawn import ProcessSpec
from yarnflow.process.supervisor import NEVER, Child, Supervisor, describe_exit

LOG: Final = logging.getLogger(__name__)

JOB_MANAGER: Final = "jobmanager"


class ClusterSupervisor:
    """Starts and ends the processes of one cluster.

    Parameters
    ----------
    directory : ClusterDirectory
        The conf file and the secret stand in it already.
    commands : ProcessCommands
        Command lines.
    workers : int
        TaskManagers this supervisor runs at most (local); 0 = they come from elsewhere.
    on_failure : callable, optional
        Told once, from another thread, when the JobManager ended without being asked to.
    driver_stdout_inherited, driver_stdout_fd
        See :class:`~yarnflow.process.pools.DriverPool`.
    """

    def __init__(
        self,
        directory: ClusterDirectory,
        commands: ProcessCommands,
        *,
        workers: int,
        on_failure: Callable[[YarnflowError], None] | None = None,
        driver_stdout_inherited: bool = False,
        driver_stdout_fd: int | None = None,
        supervisor: Supervisor | None = None,
    ) -> None:
        self._directory = directory
        self._commands = commands
        self._on_failure = on_failure
        self._supervisor = supervisor or Supervisor()
        self._lock = threading.Lock()
        self._link: JobManagerLink | None = None
        self._max_workers = workers
        self._stopping = False
        self._changed = threading.Condition()
        self.failure: YarnflowError | None = None
        self.drivers = DriverPool(
            self._supervisor,
            commands,
            directory.logs,
            self._driver_exited,
            inherit_stdout=driver_stdout_inherited,
            stdout_fd=driver_stdout_fd,
        )
        self.workers = (
            WorkerPool(self._supervisor, commands, directory.logs, self._worker_exited, limit=workers)
            if workers
            else None
        )

    def start_job_manager(self) -> None:
        """Start the JobManager with its end of the channel."""
        ours, theirs = socket.socketpair()
        fd = theirs.fileno()
        log_file = self._directory.logs / f"{JOB_MANAGER}.log"
        self._directory.jobmanager_file.unlink(missing_ok=True)
        link = JobManagerLink(ours, self.drivers, self.workers or NoResourceProvider())
        self._link = link
        try:
            self._supervisor.start(
                JOB_MANAGER,
                lambda: ProcessSpec(
                    name=JOB_MANAGER,
                    command=self._commands.job_manager(fd, self._max_workers),
                    log_file=self._directory.logs / f"{JOB_MANAGER}.out",
                    environment={LOG_FILE_ENVIRONMENT: str(log_file)},
                    pass_fds=(fd,),
                ),
                NEVER,
                self._job_manager_exited,
            )
        finally:
            theirs.close()
        link.start()

    def start_spare_driver(self, memory_mib: int) -> None:
        """Start a warm spare driver."""
        self.drivers.start_spare(memory_mib)

    def start_workers(self) -> None:
        """Start all TaskManagers (local clusters only).

        Raises
        ------
        ResourceError
            Not one could be started.
        """
        if self.workers is None:
            raise ValueError("TaskManagers of this cluster are not its supervisor's")
        self.workers.request_workers(self._max_workers)
        if not self.workers.worker_ids() and not self._stopping:
            raise ResourceError(f"no TaskManager could be started; see {self._directory.logs}")

    def await_address(self, timeout_s: float) -> str:
        """Address of the JobManager as soon as it serves.

        Raises
        ------
        ResourceError
            It ended, or did not serve in time; the message has its last lines.
        """
        remaining = int(timeout_s * 50)
        while True:
            content = read_json(self._directory.jobmanager_file)
            if content is not None and content.get("address"):
                return str(content["address"])
            with self._changed:
                if self.failure is not None:
                    raise self.failure
                if remaining <= 0:
                    raise ResourceError(
                        f"the JobManager did not serve within {timeout_s:.0f} s; see {self._directory.logs}"
                    )
                self._changed.wait(0.02)
            remaining -= 1

    def stop(self, grace_s: float = 5.0) -> None:
        """End everything: TERM, then KILL after ``grace_s`` (0 = KILL at once).  Idempotent."""
        self._stopping = True
        self._supervisor.stop(grace_s)
        if self._link is not None:
            self._link.close()

    def process_names(self) -> list[str]:
        """Names of the children that run or are about to."""
        return self._supervisor.names()

    def _driver_exited(self, driver_id: DriverId, exit_status: int, output_tail: str) -> None:
        if self._link is not None:
            self._link.driver_exited(driver_id, exit_status, output_tail)

    def _worker_exited(self, worker_id: str, exit_status: int) -> None:
        if self._link is not None:
            self._link.worker_exited(worker_id, exit_status)

    def _job_manager_exited(self, child: Child, exit_status: int, again: bool) -> None:
        if self._stopping:
            return
        output = child.output_tail(3)
        last = output.replace("\n", " | ")
        failure = error_from_exit(exit_status, output) or ResourceError(
            f"the JobManager ended with {describe_exit(exit_status)}"
            + (f": {last}" if last else "")
            + f"; see {self._directory.logs}"
        )
        with self._changed:
            self.failure = failure
            self._changed.notify_all()
        self.drivers.kill_all()
        if self._on_failure is not None:
            self._on_failure(failure)
