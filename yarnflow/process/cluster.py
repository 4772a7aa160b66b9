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
from collections.abc import Callable, Sequence
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
    Event,
    JobStatusReport,
    MasterRole,
    RequestsCanceled,
    RunningDrivers,
)
from yarnflow.process.channel.supervisor_end import MasterOwner, SupervisorEnd
from yarnflow.process.clock import SystemClock
from yarnflow.process.commands import ProcessCommands
from yarnflow.process.dirs import ClusterDirectory
from yarnflow.process.driver_queue import DriverQueue
from yarnflow.process.leftovers import MARK_ENVIRONMENT, await_nothing_left, new_mark
from yarnflow.process.logs import LOG_FILE_ENVIRONMENT
from yarnflow.process.no_workers import NoResourceProvider
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

    The callbacks come from other threads; of ``on_end`` and ``on_failure`` one comes, once, unless
    the supervisor is stopped before.

    Parameters
    ----------
    directory : ClusterDirectory
        The conf file and the secret stand in it already.
    commands : ProcessCommands
        Command lines.
    workers : int
        TaskManagers this supervisor runs at most (local); 0 = they come from elsewhere.
    worker_owner : WorkerOwner, optional
        Who starts TaskManagers when it is not this supervisor (YARN); what it learns goes to
        :meth:`worker_exited`, :meth:`requests_canceled` and :meth:`provider_state`.
    job_manager_arguments : sequence of str
        Further arguments of the JobManager, see :mod:`yarnflow.entrypoint.master.main`.
    expected_workers : int
        TaskManagers that somebody has asked the owner of workers for already.
    drivers : int
        Drivers there is memory for, and so jobs; 0 = no limit.
    hot_spares : int
        Further drivers there is memory for, that jobs keep for the loss of theirs.
    on_job_status : callable, optional
        Told of each new status of a job.
    on_end : callable, optional
        The JobManager ended because its work is done.
    on_failure : callable, optional
        The JobManager ended in any other way; with high availability, before it has ever served.
    highly_available : bool
        Start the JobManager again when it ends before its work is done, and keep the drivers.
    on_process_ended : callable, optional
        ``(pid)`` of a JobManager or driver that has ended, with all that it had started.
    on_role : callable, optional
        Told when the JobManager begins to lead or to stand by.
    master_owner : MasterOwner, optional
        Who starts further masters of the cluster.
    driver_stdout_inherited, driver_stdout_fd
        See :class:`~yarnflow.process.pools.DriverPool`.
    """

    def __init__(
        self,
        directory: ClusterDirectory,
        commands: ProcessCommands,
        *,
        workers: int = 0,
        worker_owner: WorkerOwner | None = None,
        job_manager_arguments: Sequence[str] = (),
        expected_workers: int = 0,
        drivers: int = 0,
        hot_spares: int = 0,
        on_job_status: Callable[[JobStatusReport], None] | None = None,
        on_end: Callable[[ClusterResult], None] | None = None,
        on_failure: Callable[[YarnflowError], None] | None = None,
        highly_available: bool = False,
        on_process_ended: Callable[[int], None] | None = None,
        on_role: Callable[[MasterRole], None] | None = None,
        master_owner: MasterOwner | None = None,
        driver_stdout_inherited: bool = False,
        driver_stdout_fd: int | None = None,
        supervisor: Supervisor | None = None,
        schedule: Schedule = run_later,
        clock: Clock | None = None,
    ) -> None:
        if workers and worker_owner is not None:
            raise ValueError("TaskManagers are this supervisor's or somebody else's, not both")
        self._directory = directory
        self._commands = commands
        self._arguments = (*job_manager_arguments, *(("--drivers", str(drivers)) if drivers else ()))
        self._on_job_status = on_job_status
        self._on_end = on_end
        self._on_failure = on_failure
        self._highly_available = highly_available
        self._on_process_ended = on_process_ended
        self._on_role = on_role
        self._master_owner = master_owner
        self._supervisor = supervisor or Supervisor()
        self._schedule = schedule
        self._clock: Clock = clock or SystemClock()
        self._channel: SupervisorEnd | None = None
        self._max_workers = workers
        self._expected_workers = expected_workers
        self._worker_owner = worker_owner
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
        self.drivers = DriverPool(
            self._supervisor,
            commands,
            directory.logs,
            directory.scratch,
            self._driver_exited,
            on_process_ended=self._process_ended,
            inherit_stdout=driver_stdout_inherited,
            stdout_fd=driver_stdout_fd,
        )
        self._driver_queue = DriverQueue(self.drivers, drivers + hot_spares if drivers else 0)
        self.workers = (
            WorkerPool(self._supervisor, commands, directory.logs, self.worker_exited, limit=workers)
            if workers
            else None
        )

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
            self._driver_queue,
            self.workers or self._worker_owner or NoResourceProvider(),
            on_job_status=self._on_job_status,
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
        expected = 0 if inherits else self._expected_workers
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
        channel.tell(RunningDrivers(tuple(DriverId(driver_id) for driver_id in self.drivers.running())))
        for end in list(self._driver_ends):
            channel.tell(end)
        state = self._provider_state
        if state is not None:
            channel.tell(state)
            if state.ungranted and inherits and self._worker_owner is not None:
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
        if self._on_role is not None:
            self._on_role(role)

    def stop(self, grace_s: float = 5.0) -> None:
        """End everything: TERM, then KILL after ``grace_s`` (0 = KILL at once).  Idempotent."""
        self._stopping = True
        self._supervisor.stop(grace_s)
        with self._tellers_lock:
            tellers = list(self._tellers)
        for teller in tellers:
            teller.join(_TELLERS_TIMEOUT_S)
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

    def _driver_exited(self, driver_id: DriverId, exit_status: int, output_tail: str) -> None:
        end = DriverExited(driver_id, exit_status, output_tail)
        self._driver_ends.append(end)
        self._tell(end)
        self._driver_queue.exited(driver_id)

    def _process_ended(self, child: Child) -> None:
        """Say so once nothing of it runs any more; in a thread, as that may take a moment."""
        told = self._on_process_ended
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
        self.drivers.kill_all()
        if result is not None:
            if self._on_end is not None:
                self._on_end(result)
        elif failure is not None and self._on_failure is not None:
            self._on_failure(failure)

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
