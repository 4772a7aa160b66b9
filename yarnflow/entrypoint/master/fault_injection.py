"""Breaks what a drill asks for: processes of the cluster, or the leader's ZooKeeper session.

It says what it would hit, and refuses what nobody could take over: without high availability the
end of the master is the end of its jobs.  What is broken is told to nobody; the cluster has to find
out as it would otherwise.  Flink has no counterpart.
"""

from __future__ import annotations

import logging
import os
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from yarnflow.config.configuration import Configuration
from yarnflow.config.options import cluster as cluster_options
from yarnflow.core.ha.ports import LeaderElection
from yarnflow.core.ids import JobId
from yarnflow.core.messages import (
    DriverRegistration,
    FaultInjected,
    FaultKind,
    FaultRequest,
    JobDetails,
    TaskManagerRegistration,
)
from yarnflow.core.ports import Clock, GatewayFactory
from yarnflow.core.states import ExecutionState
from yarnflow.entrypoint.ha_services import SESSIONS_DIRECTORY
from yarnflow.errors import DriverLost, HaError, JobError, TaskManagerNotFound
from yarnflow.runtime.halting import HALT_DELAY_MS, halt_soon, soon

logger = logging.getLogger(__name__)

#: what is hit, in words, and the hit
Aim = tuple[str, Callable[[], None]]

_MASTERS_OF_A_DRILL: Final = 2


def is_supervisor(pid: int) -> bool:
    """Whether a process of this machine is a command of yarnflow, as supervisors are."""
    try:
        command = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return pid > 1 and any(b"yarnflow" in argument for argument in command)


def close_session(configuration: Configuration, sessions: Path, pid: int) -> bool:
    """End the ZooKeeper session that a process has left in a directory; whether there was one."""
    from yarnflow.ha.services import ZooKeeperSettings
    from yarnflow.ha.sessions import close_session_of

    return close_session_of(sessions, pid, ZooKeeperSettings.of(configuration))


class MasterFaults:
    """What can be broken of this master process.

    Parameters
    ----------
    configuration : Configuration
    cluster_dir : Path
        Where the process's ZooKeeper session is left for its supervisor.
    election : LeaderElection
        Knows the other masters.
    may_fail_over : bool
        Another master may take over; one that is missing is started.
    halt, later : callable
        Kill this process or another one, and do something, once the drill is answered.
    may_be_killed : callable
        Whether a process is a supervisor of yarnflow.
    end_session : callable
        See :func:`close_session`.
    """

    def __init__(
        self,
        configuration: Configuration,
        cluster_dir: Path,
        election: LeaderElection,
        may_fail_over: bool,
        *,
        halt: Callable[[int], None] = halt_soon,
        later: Callable[[Callable[[], None]], None] = soon,
        may_be_killed: Callable[[int], bool] = is_supervisor,
        end_session: Callable[[Configuration, Path, int], bool] = close_session,
    ) -> None:
        self._configuration = configuration
        self._cluster_dir = cluster_dir
        self._election = election
        self._may_fail_over = may_fail_over
        self._halt = halt
        self._later = later
        self._may_be_killed = may_be_killed
        self._close_session = end_session
        # children end with their parent, so it is the same for as long as this process lives
        self._supervisor_pid = os.getppid()

    def aim(self, kind: FaultKind) -> Aim:
        """What a fault of this master means.

        Raises
        ------
        HaError
            Nobody could take over.
        """
        if not self._may_fail_over:
            raise HaError(
                "without high availability the end of the master is the end of its jobs; drills of leader, "
                "application and zookeeper need high-availability.type: zookeeper"
            )
        host = self._configuration.get(cluster_options.JOBMANAGER_RPC_ADDRESS)
        if kind is FaultKind.LEADER:
            own = os.getpid()
            return f"the leader's JobManager process, pid {own} on {host}", lambda: self._halt(own)
        if kind is FaultKind.ZOOKEEPER:
            return (
                f"the ZooKeeper session of the leader's JobManager process, pid {os.getpid()} on {host}",
                lambda: self._later(self._end_session),
            )
        masters = len(self._election.masters())
        if masters < _MASTERS_OF_A_DRILL:
            raise HaError(
                "there is no other master that could take over from this one; start a standby first "
                "(`yarnflow jobmanager`; on YARN high-availability.jobmanagers)"
            )
        pid = self._supervisor_pid
        if not self._may_be_killed(pid):
            raise HaError(
                f"process {pid}, the parent of the leader's JobManager process {os.getpid()} on {host}, is "
                "no supervisor of yarnflow; it is not killed"
            )
        return (
            f"the leader's whole master: supervisor, pid {pid} on {host}, with its JobManager and drivers",
            lambda: self._halt(pid),
        )

    def _end_session(self) -> None:
        sessions = self._cluster_dir / SESSIONS_DIRECTORY
        if not self._close_session(self._configuration, sessions, os.getpid()):
            logger.error("The drill could not end this process's ZooKeeper session.")


class FaultInjector:
    """Implements ``inject_fault`` of a leader.

    Parameters
    ----------
    clock, gateways
        The process's.
    master : MasterFaults
    details, driver_of, task_managers : callable
        The job, its driver as it registered, and the TaskManagers there are.
    """

    def __init__(
        self,
        clock: Clock,
        gateways: GatewayFactory,
        master: MasterFaults,
        details: Callable[[JobId], JobDetails],
        driver_of: Callable[[JobId], DriverRegistration | None],
        task_managers: Callable[[], Sequence[TaskManagerRegistration]],
    ) -> None:
        self._clock = clock
        self._gateways = gateways
        self._master = master
        self._details = details
        self._driver_of = driver_of
        self._task_managers = task_managers

    def inject(self, request: FaultRequest) -> FaultInjected:
        """Break what is asked for, or only say what that would be.

        Raises
        ------
        HaError
            Nobody could take over.
        JobError, ResourceError
            The job has ended, or has nothing of the kind at the moment.
        """
        details = self._details(request.job_id)
        status = details.overview.status
        if status.terminal:
            raise JobError(f"job {request.job_id} is {status.value}; a drill needs a job that runs")
        victim, hit = self._aim(request.kind, details)
        if request.check_only:
            return FaultInjected(victim, self._clock.now_ms())
        logger.warning("A drill hits %s.", victim)
        hit()
        return FaultInjected(victim, self._clock.now_ms() + HALT_DELAY_MS)

    def _aim(self, kind: FaultKind, details: JobDetails) -> Aim:
        if kind is FaultKind.DRIVER:
            return self._aim_at_driver(details.overview.job_id)
        if kind is FaultKind.TASK_MANAGER:
            return self._aim_at_task_manager(details)
        return self._master.aim(kind)

    def _aim_at_driver(self, job_id: JobId) -> Aim:
        driver = self._driver_of(job_id)
        if driver is None:
            raise DriverLost(f"job {job_id} has no driver at the moment; try again when it is RUNNING")
        gateway = self._gateways.driver(driver.address)
        return f"the job's driver {driver.driver_id}, pid {driver.pid} at {driver.address}", gateway.halt

    def _aim_at_task_manager(self, details: JobDetails) -> Aim:
        """The one on which most of the job runs."""
        used = Counter(
            execution.task_manager_id
            for vertex in details.vertices
            for execution in vertex.executions
            if execution.state is ExecutionState.RUNNING
        )
        known = {str(registration.task_manager_id): registration for registration in self._task_managers()}
        for name, _executions in used.most_common():
            found = known.get(name)
            if found is not None:
                gateway = self._gateways.task_executor(found.address)
                return f"TaskManager {name}, pid {found.pid} at {found.address}", gateway.halt
        raise TaskManagerNotFound(
            f"job {details.overview.job_id} runs on no TaskManager at the moment; try again when it is "
            "RUNNING"
        )
