"""The supervisor of a whole cluster in one place: JobManager, its drivers, its TaskManagers.

Used by the local target (all of it), by ``yarnflow jobmanager`` (no TaskManagers) and in the
ApplicationMaster on YARN (TaskManagers are YARN's containers).  Without high availability nobody
else knows the jobs, so the end of the JobManager is the end of the cluster: drivers are killed
and whoever runs the supervisor is told how it ended.  With it the drivers run on and the JobManager
is started again at once, until one says that the work is done.
"""

from __future__ import annotations

import logging
import shutil
import socket
import threading
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from yarnflow.core.cluster_result import RESULT_FILE, ClusterResult, ProgramEnd
from yarnflow.core.ids import DriverId
from yarnflow.core.json_codec import from_json
from yarnflow.core.ports import Clock, WorkerOwner
from yarnflow.core.resources.provider import ProviderState, WorkerExit
from yarnflow.errors import ResourceError, RpcProtocolError, YarnflowError, error_from_exit
from yarnflow.process.channel.messages import (
    DriverExited,
    DriverWaits,
    Event,
    MasterRole,
    RequestsCanceled,
    RunningDrivers,
)
from yarnflow.process.channel.supervisor_end import MasterOwner, SupervisorEnd
from yarnflow.process.clock import SystemClock
from yarnflow.process.cluster_settings import ClusterListeners, DriverPlaces, OthersDrivers, OthersWorkers
from yarnflow.process.commands import ProcessCommands
from yarnflow.process.dirs import ClusterDirectory
from yarnflow.process.driver_queue import DriverQueue
from yarnflow.process.leftovers import MARK_ENVIRONMENT, await_nothing_left, new_mark
from yarnflow.process.logs import LOG_FILE_ENVIRONMENT
from yarnflow.process.no_workers import NoResourceProvider
from yarnflow.process.output.ended_logs import DRIVERS, EndedLogs
from yarnflow.process.output.rotation import own_rotation
from yarnflow.process.pools import DriverPool, WorkerPool
from yarnflow.process.spawn import ProcessSpec
from yarnflow.process.supervisor import (
    NEVER,
    Child,
    RestartPolicy,
    Schedule,
    Supervisor,
    describe_exit,
    run_later,
)

logger: Final = logging.getLogger(__name__)

JOB_MANAGER: Final = "jobmanager"
#: with high availability: at once, unless it does not live long
JOB_MANAGER_RESTART: Final = RestartPolicy(restart=True, initial_ms=0, max_ms=10_000, reset_after_ms=10_000)
#: ends of drivers a new JobManager is told of
_DRIVER_ENDS_KEPT: Final = 64
#: how long the end of the supervisor waits for one process's end to be told
_TELLERS_TIMEOUT_S: Final = 3.0


class ClusterSupervisor:
    """Starts and ends the processes of one cluster.

    Parameters
    ----------
    directory : ClusterDirectory
        The conf file and the secret stand in it already.
    commands : ProcessCommands
        Command lines.
    workers : int or OthersWorkers
        TaskManagers this supervisor runs at most (local), or who else starts them; 0 = they come by
        themselves.
    drivers : DriverPlaces
        What there is for drivers.
    others_drivers : OthersDrivers, optional
        Who starts drivers elsewhere; default: they are processes of this supervisor.
    job_manager_arguments : sequence of str
        Further arguments of the JobManager, see :mod:`yarnflow.entrypoint.master.main`.
    highly_available : bool
        Start the JobManager again when it ends before its work is done, and keep the drivers.
    master_owner : MasterOwner, optional
        Who starts further masters of the cluster.
    listeners : ClusterListeners
        Who is told what happens.
    kept_logs : int
        Drivers that have ended whose log files stay; 0 = of all.
    """

    def __init__(
        self,
        directory: ClusterDirectory,
        commands: ProcessCommands,
        *,
        workers: int | OthersWorkers = 0,
        drivers: DriverPlaces = DriverPlaces(),
        others_drivers: OthersDrivers | None = None,
        job_manager_arguments: Sequence[str] = (),
        highly_available: bool = False,
        master_owner: MasterOwner | None = None,
        listeners: ClusterListeners = ClusterListeners(),
        kept_logs: int = 0,
        supervisor: Supervisor | None = None,
        schedule: Schedule = run_later,
        clock: Clock | None = None,
    ) -> None:
        self._directory = directory
        self._commands = commands
        limited = ("--drivers", str(drivers.jobs)) if drivers.jobs else ()
        self._arguments = (*job_manager_arguments, *limited)
        self._listeners = listeners
        self._highly_available = highly_available
        self._master_owner = master_owner
        self._supervisor = supervisor or Supervisor()
        self._schedule = schedule
        self._clock: Clock = clock or SystemClock()
        self._channel: SupervisorEnd | None = None
        self._max_workers = workers if isinstance(workers, int) else 0
        self._others_workers = None if isinstance(workers, int) else workers
        self._stopping = False
        #: JobManagers started so far, and when the last one was
        self._starts = 0
        self._started_ms = 0
        self._restart_delay_ms: int | None = None
        self._tellers: list[threading.Thread] = []
        self._tellers_lock = threading.Lock()
        self._driver_ends: deque[DriverExited] = deque(maxlen=_DRIVER_ENDS_KEPT)
        self._provider_state: ProviderState | None = None
        self._program_end: ProgramEnd | None = None
        self._changed = threading.Condition()
        #: what the present JobManager said last of itself; None = it does not serve yet
        self._role: MasterRole | None = None
        self.failure: YarnflowError | None = None
        #: how the cluster ended by itself, once it has
        self.result: ClusterResult | None = None
        # what drivers of a supervisor that was killed have left there; before the first spare is started
        shutil.rmtree(directory.scratch, ignore_errors=True)
        self._ended_logs = EndedLogs(directory.logs, DRIVERS, kept_logs) if kept_logs else None
        if self._ended_logs is not None:
            own_rotation().limit(self._ended_logs)
        self.drivers = DriverPool(
            self._supervisor,
            commands,
            directory.logs,
            directory.scratch,
            self.driver_exited,
            on_process_ended=self._process_ended,
            ended_logs=self._ended_logs,
            inherit_stdout=drivers.inherit_stdout,
            stdout_fd=drivers.stdout_fd,
        )
        self._driver_queue = DriverQueue(self.drivers, drivers.limit)
        self._others_drivers = others_drivers
        self.workers = (
            WorkerPool(
                self._supervisor, commands, directory.logs, self.worker_exited, limit=self._max_workers
            )
            if self._max_workers
            else None
        )

    @property
    def _worker_owner(self) -> WorkerOwner:
        if self._others_workers is not None:
            return self._others_workers.owner
        return self.workers or NoResourceProvider()

    @property
    def result_file(self) -> Path:
        """Where a JobManager whose work is done writes how it ended."""
        return self._directory.path / RESULT_FILE

    def start_job_manager(self) -> None:
        """Start the JobManager with its end of a new channel."""
        ours, theirs = socket.socketpair()
        fd = theirs.fileno()
        log_file = self._directory.logs / f"{JOB_MANAGER}.log"
        self._directory.jobmanager_file.unlink(missing_ok=True)
        self.result_file.unlink(missing_ok=True)
        channel = SupervisorEnd(
            ours,
            self._others_drivers or self._driver_queue,
            self._worker_owner,
            on_job_status=self._listeners.on_job_status,
            on_role=self._role_changed,
            masters=self._master_owner,
        )
        self._role = None
        before, self._channel = self._channel, channel
        if before is not None:
            before.close()
        self._starts += 1
        self._started_ms = self._clock.monotonic_ms()
        # later ones find them granted, or the requests are withdrawn
        inherits = self._starts > 1 and self._provider_state is not None
        expected = 0 if inherits or self._others_workers is None else self._others_workers.expected
        arguments = (*self._arguments, *(("--expected-workers", str(expected)) if expected else ()))
        try:
            self._supervisor.start(
                JOB_MANAGER,
                lambda: ProcessSpec(
                    name=JOB_MANAGER,
                    command=(*self._commands.job_manager(fd, self._max_workers), *arguments),
                    log_file=self._directory.logs / f"{JOB_MANAGER}.out",
                    environment={LOG_FILE_ENVIRONMENT: str(log_file), **new_mark()},
                    pass_fds=(fd,),
                ),
                NEVER,
                self._job_manager_exited,
            )
        finally:
            theirs.close()
        channel.start()
        if self._highly_available:
            self._tell_what_is_there(channel, inherits)

    def _tell_what_is_there(self, channel: SupervisorEnd, inherits: bool) -> None:
        """What a new JobManager has not seen happen."""
        running = (self._others_drivers or self.drivers).running()
        channel.tell(RunningDrivers(tuple(DriverId(driver_id) for driver_id in running)))
        for end in list(self._driver_ends):
            channel.tell(end)
        state = self._provider_state
        if state is not None:
            channel.tell(state)
            if state.ungranted and inherits:
                # nobody keeps books of what its predecessor asked for
                self._worker_owner.cancel_requests(state.ungranted)
        if self._program_end is not None:
            channel.tell(self._program_end)

    def start_spare_driver(self, memory_mib: int) -> None:
        """Start a warm spare driver."""
        self.drivers.start_spare(memory_mib)

    def keep_spare_driver(self, memory_mib: int) -> None:
        """Start another one when the last has been given a job; to be called now and then."""
        self.drivers.keep_spare(memory_mib)

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

    def add_worker(self) -> None:
        """Start one more TaskManager than there were to be (local clusters only)."""
        if self.workers is None:
            raise ValueError("TaskManagers of this cluster are not its supervisor's")
        self.workers.add_worker()

    def await_address(self, timeout_s: float) -> str:
        """Address of the JobManager as soon as it serves.

        Raises
        ------
        ResourceError
            It ended, or did not serve in time; the message has its last lines.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._role or self.failure or self.result, timeout_s)
            if self._role is not None:
                return self._role.address
            if self.failure is not None:
                raise self.failure
            if self.result is not None:
                raise ResourceError(f"the cluster has ended already: {self.result.diagnostics}")
        raise ResourceError(
            f"the JobManager did not serve within {timeout_s:.0f} s; see {self._directory.logs}"
        )

    def _role_changed(self, role: MasterRole) -> None:
        with self._changed:
            self._role = role
            self._changed.notify_all()
        self._listeners.on_role(role)

    def stop(self, grace_s: float = 5.0) -> None:
        """End everything: TERM, then KILL after ``grace_s`` (0 = KILL at once).  Idempotent."""
        self._stopping = True
        self._supervisor.stop(grace_s)
        with self._tellers_lock:
            tellers = list(self._tellers)
        for teller in tellers:
            teller.join(_TELLERS_TIMEOUT_S)
        if self._ended_logs is not None:
            own_rotation().release_limit(self._ended_logs)
        if self._channel is not None:
            self._channel.close()

    def worker_exited(self, exit: WorkerExit) -> None:
        """A TaskManager has ended; the JobManager is told."""
        self._tell(exit)

    def requests_canceled(self, asked: int, withdrawn: int) -> None:
        """The owner of the TaskManagers has withdrawn open requests; the JobManager is told how many."""
        self._tell(RequestsCanceled(asked, withdrawn))

    def provider_state(self, state: ProviderState) -> None:
        """The owner of the TaskManagers has news of open requests; the JobManager is told."""
        self._provider_state = state
        self._tell(state)

    def program_ended(self, exit_status: int, output_tail: str) -> None:
        """The user's program beside the JobManager has ended; no further job comes from it."""
        self._program_end = ProgramEnd(exit_status, output_tail)
        self._tell(self._program_end)

    def _tell(self, event: Event) -> None:
        if self._channel is not None:
            self._channel.tell(event)

    def driver_exited(self, driver_id: DriverId, exit_status: int, output_tail: str) -> None:
        """A driver has ended; the JobManager is told."""
        end = DriverExited(driver_id, exit_status, output_tail)
        self._driver_ends.append(end)
        self._tell(end)
        self._driver_queue.exited(driver_id)

    def driver_waits(self, driver_id: DriverId, waits: bool) -> None:
        """A driver's container was asked for, or granted; the JobManager is told."""
        self._tell(DriverWaits(driver_id, waits))

    def _process_ended(self, child: Child) -> None:
        """Say so once nothing of it runs any more; in a thread, as that may take a moment."""
        told = self._listeners.on_process_ended
        if told is None:
            return
        # of this start only: a JobManager that was started again must not hide its predecessor's end
        mark = f"{MARK_ENVIRONMENT}={child.spec.environment[MARK_ENVIRONMENT]}"

        def tell() -> None:
            if await_nothing_left(child.pid, mark):
                told(child.pid)
            else:
                logger.warning("Something that process %d had started is still running.", child.pid)

        teller = threading.Thread(target=tell, name=f"ended-{child.pid}", daemon=True)
        # several processes end at the same moment, and whoever stops the cluster joins what is listed
        with self._tellers_lock:
            teller.start()
            self._tellers = [*(other for other in self._tellers if other.is_alive()), teller]

    def _job_manager_exited(self, child: Child, exit_status: int, again: bool) -> None:
        self._process_ended(child)
        if self._stopping:
            return
        result = self._read_result() if exit_status == 0 else None
        if result is None and self._highly_available and self._has_served():
            self._start_again()
            return
        self._ended(result, self._failure_of(child, exit_status) if result is None else None)

    def _ended(self, result: ClusterResult | None, failure: YarnflowError | None) -> None:
        with self._changed:
            self.result, self.failure = result, failure
            self._changed.notify_all()
        (self._others_drivers or self.drivers).kill_all()
        if result is not None:
            self._listeners.on_end(result)
        elif failure is not None:
            self._listeners.on_failure(failure)

    def _has_served(self) -> bool:
        """What has never worked is the user's to correct."""
        return self._starts > 1 or self._directory.jobmanager_file.exists()

    def _start_again(self) -> None:
        lived_ms = self._clock.monotonic_ms() - self._started_ms
        delay_ms = JOB_MANAGER_RESTART.next_delay_ms(self._restart_delay_ms, lived_ms)
        self._restart_delay_ms = delay_ms
        logger.warning("The JobManager is started again in %d ms; its drivers run on.", delay_ms or 0)
        self._schedule(delay_ms or 0, self._restart_job_manager)

    def _restart_job_manager(self) -> None:
        if self._stopping:
            return
        try:
            self.start_job_manager()
        except YarnflowError as error:
            self._ended(None, error)

    def _failure_of(self, child: Child, exit_status: int) -> YarnflowError:
        output = child.output_tail(3)
        last = output.replace("\n", " | ")
        return error_from_exit(exit_status, output) or ResourceError(
            f"the JobManager ended with {describe_exit(exit_status)}"
            + (f": {last}" if last else "")
            + f"; see {self._directory.logs}"
        )

    def _read_result(self) -> ClusterResult | None:
        try:
            return from_json(ClusterResult, self.result_file.read_text("utf-8"))
        except FileNotFoundError:
            return None
        except (OSError, RpcProtocolError) as error:
            logger.error("%s cannot be used: %s", self.result_file, error)
            return None
