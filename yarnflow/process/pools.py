"""Which processes are drivers and which are TaskManagers.

:class:`DriverPool` gives assignments to driver processes, a warm spare first;
:class:`WorkerPool` keeps TaskManagers running and replaces those that die.  Neither knows why a
driver or worker is wanted: that is the JobMaster's and the ResourceManager's business.
"""

from __future__ import annotations

import logging
import math
import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from yarnflow.core.ids import DriverId
from yarnflow.core.json_codec import to_json
from yarnflow.core.messages import DriverAssignment
from yarnflow.core.resources.provider import WorkerExit
from yarnflow.errors import YarnflowError
from yarnflow.process.commands import ProcessCommands
from yarnflow.process.leftovers import new_mark
from yarnflow.process.logs import LOG_FILE_ENVIRONMENT
from yarnflow.process.output.ended_logs import EndedLogs
from yarnflow.process.spawn import ProcessSpec, remove_directories
from yarnflow.process.supervisor import NEVER, Child, RestartPolicy, Supervisor

logger: Final = logging.getLogger(__name__)

#: exit status reported for a driver that could not even be started (as a shell does)
CANNOT_START_STATUS: Final = 127
#: a driver that has been given its job has the processors for itself so long
SPARE_AFTER_S: Final = 15.0


@dataclass
class _Driver:
    name: str
    child: Child
    memory_mib: int
    #: empty while it is a spare
    driver_id: str = ""
    #: what it was given last, and where that has its files
    job_id: str = ""
    work_dir: str = ""

    def give(self, assignment: DriverAssignment) -> None:
        """It has another job from now on."""
        self.driver_id, self.job_id = assignment.driver_id, assignment.job_id
        self.work_dir = assignment.work_dir


class DriverPool:
    """Driver processes of one machine.

    Parameters
    ----------
    supervisor : Supervisor
        Owns the processes.
    commands : ProcessCommands
        Makes their command lines.
    logs : Path
        Directory of their log files.
    scratch : Path
        Below it each has a directory for Spark's temporary files, which goes with it.
    on_exit : callable
        ``(driver id, exit status, last lines of output)`` for every assigned driver that ends.
    on_process_ended : callable, optional
        Told of every driver process that ends, the spare as well.
    ended_logs : EndedLogs, optional
        Removes old files of ``logs``; default: they stay.
    inherit_stdout, stdout_fd
        Whether drivers write to this process's standard output (or the given descriptor), where
        a user of a local cluster looks for what the program prints; else to their log.
    """

    def __init__(
        self,
        supervisor: Supervisor,
        commands: ProcessCommands,
        logs: Path,
        scratch: Path,
        on_exit: Callable[[DriverId, int, str], None],
        *,
        on_process_ended: Callable[[Child], None] | None = None,
        ended_logs: EndedLogs | None = None,
        inherit_stdout: bool = False,
        stdout_fd: int | None = None,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._now_s = now_s
        self._on_process_ended = on_process_ended
        self._ended_logs = ended_logs
        self._supervisor = supervisor
        self._commands = commands
        self._logs = logs
        self._scratch = scratch
        self._on_exit = on_exit
        self._inherit_stdout = inherit_stdout
        self._stdout_fd = stdout_fd
        self._lock = threading.RLock()
        self._drivers: dict[str, _Driver] = {}
        self._count = 0
        #: when the last spare was given a job
        self._spent_s = -math.inf

    def start_spare(self, memory_mib: int) -> None:
        """Start a driver process that has not been told its job yet, unless one waits already."""
        with self._lock:
            if any(not driver.driver_id for driver in self._drivers.values()):
                return
            try:
                self._start(memory_mib)
            except YarnflowError as error:
                # a spare is a convenience; whoever needs a driver will see the error
                logger.warning("No spare driver: %s", error)

    def keep_spare(self, memory_mib: int) -> None:
        """Have a spare again, once that does not disturb the driver that the last one has become."""
        if self._now_s() - self._spent_s >= SPARE_AFTER_S:
            self.start_spare(memory_mib)

    def launch(self, assignment: DriverAssignment, memory_mib: int) -> None:
        """Hand an assignment to the spare if its memory fits, else to a new process in place of it.

        One that names a driver there is, which has finished its job, is that driver's next.
        """
        failure = ""
        with self._lock:
            line = to_json(assignment)
            for driver in self._drivers.values():
                if driver.driver_id == assignment.driver_id:
                    if driver.job_id != assignment.job_id:
                        self._remove_work_dir(driver)
                        driver.give(assignment)
                        driver.child.write_line(line)  # if that fails its exit is reported
                    return
            spare = self._spare(memory_mib)
            if spare is not None:
                self._spent_s = self._now_s()
                # before the write: the driver may end at once, and its end must find the id
                spare.give(assignment)
                if spare.child.write_line(line):
                    logger.info("Driver %s is the spare process %d.", assignment.driver_id, spare.child.pid)
                    return
                spare.driver_id = spare.job_id = spare.work_dir = ""  # it died a moment ago
                self._drivers.pop(spare.name, None)
            # the memory of a spare that does not fit is needed for the one that does
            self._end_spare()
            try:
                started = self._start(memory_mib, assignment.driver_id)
            except YarnflowError as error:
                failure = str(error)
            else:
                if started is not None:
                    started.give(assignment)
                    started.child.write_line(line)  # if that fails its exit is reported
        if failure:
            self._on_exit(assignment.driver_id, CANNOT_START_STATUS, failure)

    def kill(self, driver_id: DriverId, grace_ms: int = 0) -> None:
        """KILL a driver and what it started, if it is there after ``grace_ms``; returns at once.

        Unknown ids are ignored.
        """
        if grace_ms > 0:
            later = threading.Timer(grace_ms / 1000, self.kill, (driver_id,))
            later.daemon = True
            later.start()
            return
        with self._lock:
            names = [driver.name for driver in self._drivers.values() if driver.driver_id == driver_id]
        for name in names:
            self._supervisor.end(name)

    def running(self) -> list[str]:
        """Ids of assigned drivers."""
        with self._lock:
            return [driver.driver_id for driver in self._drivers.values() if driver.driver_id]

    def kill_all(self) -> None:
        """KILL every driver, the spare as well."""
        with self._lock:
            names = list(self._drivers)
        for name in names:
            self._supervisor.end(name)

    def _end_spare(self) -> None:
        for driver in list(self._drivers.values()):
            if not driver.driver_id:
                self._drivers.pop(driver.name, None)
                self._supervisor.end(driver.name)

    def _spare(self, memory_mib: int) -> _Driver | None:
        for driver in self._drivers.values():
            if not driver.driver_id and driver.memory_mib == memory_mib and driver.child.alive:
                return driver
        return None

    def _start(self, memory_mib: int, driver_id: str = "") -> _Driver | None:
        self._count += 1
        name = f"driver-{self._count}"
        log_file = self._logs / f"{name}.log"
        scratch = self._scratch / name
        spec = ProcessSpec(
            name=name,
            command=self._commands.driver(memory_mib, log_file, scratch),
            log_file=self._logs / f"{name}.out",
            inherit_stdout=self._inherit_stdout,
            stdout_fd=self._stdout_fd,
            environment={LOG_FILE_ENVIRONMENT: str(log_file), **new_mark()},
            stdin_pipe=True,
            directories=(scratch,),
        )
        child = self._supervisor.start(name, lambda: spec, NEVER, self._exited)
        if child is None:
            return None
        driver = self._drivers[name] = _Driver(name, child, memory_mib, driver_id)
        if not child.alive:
            # its end came before it was listed
            self._exited(child, child.wait() or 0, False)
        return driver

    def _exited(self, child: Child, exit_status: int, again: bool) -> None:
        with self._lock:
            driver = self._drivers.pop(child.spec.name, None)
            if driver is not None:
                # before anybody knows of its end, who might have the job start again
                self._remove_work_dir(driver)
        if self._ended_logs is not None:
            self._ended_logs.process_ended()
        if self._on_process_ended is not None:
            self._on_process_ended(child)
        if driver is not None and driver.driver_id:
            self._on_exit(DriverId(driver.driver_id), exit_status, child.output_tail())

    def _remove_work_dir(self, driver: _Driver) -> None:
        """Remove the files of its job; each driver of the job writes them anew."""
        work_dir, driver.work_dir = driver.work_dir, ""
        # a hot spare uses those of the driver it stands by for
        if work_dir and all(other.work_dir != work_dir for other in self._drivers.values()):
            remove_directories((Path(work_dir),), driver.name)


class WorkerPool:
    """TaskManager processes of one machine.

    A worker that dies is replaced by a new one with new ids, under a back-off; one that was
    released is not.

    Parameters
    ----------
    on_exit : callable
        Told of every worker that ends.
    worker_ids : bool
        False for standalone TaskManagers, which no ResourceProvider knows.
    name : str
        First part of names, ids and log files; differs between supervisors of one machine.
    limit : int, optional
        Never more TaskManagers than this.
    """

    def __init__(
        self,
        supervisor: Supervisor,
        commands: ProcessCommands,
        logs: Path,
        on_exit: Callable[[WorkerExit], None] | None = None,
        *,
        host: str = "localhost",
        worker_ids: bool = True,
        name: str = "taskmanager",
        limit: int | None = None,
    ) -> None:
        self._supervisor = supervisor
        self._commands = commands
        self._logs = logs
        self._on_exit = on_exit
        self._host = host
        self._worker_ids = worker_ids
        self._name = name
        self._limit = limit
        self._policy = RestartPolicy(restart=True)
        self._lock = threading.Lock()
        self._count = 0
        #: child's name → worker id of its present process
        self._workers: dict[str, str] = {}

    def request_workers(self, count: int) -> None:
        """Start that many more TaskManagers, up to the limit."""
        for _ in range(count):
            with self._lock:
                if self._limit is not None and self._count >= self._limit:
                    logger.warning("No more than %d TaskManagers are run here.", self._limit)
                    return
                self._count += 1
                name = f"{self._name}-{self._count}"
            try:
                self._supervisor.start(name, partial(self._spec, name), self._policy, self._exited)
            except YarnflowError as error:
                logger.error("TaskManager not started: %s", error)
                with self._lock:
                    self._workers.pop(name, None)

    def add_worker(self) -> None:
        """Start one more TaskManager, over the limit if need be."""
        with self._lock:
            if self._limit is not None:
                self._limit += 1
        self.request_workers(1)

    def cancel_requests(self, count: int) -> int:
        """Nothing can be withdrawn: requests are granted as soon as they are made."""
        return 0

    def release_worker(self, worker_id: str) -> None:
        """End a TaskManager for good.  Unknown ids are ignored."""
        with self._lock:
            names = [name for name, worker in self._workers.items() if worker == worker_id]
        for name in names:
            threading.Thread(target=self._supervisor.end, args=(name, 5.0), daemon=True).start()

    def stopping(self) -> None:
        """No end is reported from now on."""
        self._on_exit = None

    def worker_ids(self) -> list[str]:
        """Worker ids of the present processes."""
        with self._lock:
            return list(self._workers.values())

    def _spec(self, name: str) -> ProcessSpec:
        # a TaskManager's id is new for every process, or its dead predecessor would be heard of
        worker_id = f"{name}-{secrets.token_hex(3)}"
        with self._lock:
            self._workers[name] = worker_id
        log_file = self._logs / f"{name}.log"
        return ProcessSpec(
            name=name,
            command=self._commands.task_manager(
                f"{self._host}:{worker_id}", worker_id if self._worker_ids else ""
            ),
            log_file=self._logs / f"{name}.out",
            environment={LOG_FILE_ENVIRONMENT: str(log_file)},
        )

    def _exited(self, child: Child, exit_status: int, again: bool) -> None:
        with self._lock:
            worker_id = self._workers.pop(child.spec.name, "")
        on_exit = self._on_exit
        if on_exit is not None and worker_id:
            on_exit(WorkerExit(worker_id, exit_status, released=not again))
