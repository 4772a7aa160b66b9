"""What a master answers while it does not lead: who does.

Its RPC port and its REST interface are there all the time, so clients may ask any master they know.  The
leader may have it keep a driver, which then outlives the leader.
Flink counterpart: the ``LeaderRetriever`` half of ``WebMonitorEndpoint``.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn, Protocol, cast

from yarnflow.core.cluster_result import ClusterResult
from yarnflow.core.messages import DriverAssignment, Fence, LeaderInfo, LogLevel
from yarnflow.core.states import JobStatus
from yarnflow.entrypoint.master.hosted_drivers import HostedDrivers
from yarnflow.entrypoint.master.web.master_web import WebApplication
from yarnflow.errors import LeadershipLost, ResourceError
from yarnflow.rpc.methods import DISPATCHER, JOB_MASTER, MASTER, RESOURCE_MANAGER, Service
from yarnflow.runtime.job_dirs import work_dir
from yarnflow.runtime.log_levels import set_log_level

if TYPE_CHECKING:
    from yarnflow.rest.framework.authentication import Authentication

logger = logging.getLogger(__name__)

NOBODY: Final = Fence("", 0)


class MasterDuty(Protocol):
    """What a master process does for others: as a standby at first, as the leader once it is granted that."""

    @property
    def fence(self) -> Fence:
        """Whose calls are let in."""

    def services(self) -> Mapping[str, Service]:
        """What the RPC server answers."""

    def web(self) -> WebApplication:
        """What answers requests to the REST interface; only called in the event loop's thread."""

    def connection_closed(self, identity: str) -> None:
        """A TaskManager's connection is gone."""

    def program_ended(self, exit_status: int, output_tail: str) -> None:
        """The user's program beside this JobManager has ended."""

    def suspended(self) -> None:
        """The connection to ZooKeeper is lost: decide nothing."""

    def resumed(self) -> None:
        """The connection is back in time."""

    def end(self) -> ClusterResult:
        """The cluster's work is done; returns how it ended, once all may have seen it."""

    def stop(self) -> None:
        """Do nothing more."""


class Standby:
    """The duty of a master that does not lead: serves every call of a JobManager; few have an answer.

    Parameters
    ----------
    known_leader : callable
        Who leads as far as this process knows; quick.
    hosted : HostedDrivers
        Drivers that this master's own supervisor starts for the leader.
    cluster_dir : Path
        Where jobs get their directories on this machine.
    authentication : callable
        The check of requests to the REST interface.
    """

    def __init__(
        self,
        known_leader: Callable[[], LeaderInfo | None],
        hosted: HostedDrivers,
        cluster_dir: Path,
        authentication: Callable[[], Authentication],
    ) -> None:
        self._authentication = authentication
        self._web: WebApplication | None = None
        self._known_leader = known_leader
        self._hosted = hosted
        self._cluster_dir = cluster_dir

    def leader(self) -> LeaderInfo:
        """The leader of this cluster, which is another process.

        Raises
        ------
        LeadershipLost
            There is none at the moment.
        """
        leader = self._known_leader()
        if leader is None:
            raise LeadershipLost("this master is a standby and no master leads at the moment; try again")
        return leader

    def host_driver(self, assignment: DriverAssignment, memory_mib: int) -> None:
        """Start a driver of the leader's.

        Raises
        ------
        LeadershipLost
            There is no leader.
        ResourceError
            The driver that it is the hot spare of is here, and would be lost with it.
        """
        if self._known_leader() is None:
            self._refuse()
        if self._hosted.runs(assignment.hot_spare_of):
            raise ResourceError(f"it has driver {assignment.hot_spare_of} itself")
        own = replace(assignment, work_dir=str(work_dir(self._cluster_dir, assignment.job_id)))
        logger.info("Driver %s of job %s is kept here.", assignment.driver_id, assignment.job_id)
        self._hosted.launch(own, memory_mib)

    def set_log_level(self, level: LogLevel) -> None:
        """What a logger of this process says."""
        set_log_level(level)

    def services(self) -> Mapping[str, Service]:
        """All services of a JobManager."""
        return {
            endpoint.name: Service(endpoint, cast(Any, self))
            for endpoint in (DISPATCHER, RESOURCE_MANAGER, JOB_MASTER, MASTER)
        }

    @property
    def fence(self) -> Fence:
        """Calls meant for the leader pass, so that they are told where it is."""
        leader = self._known_leader()
        return NOBODY if leader is None else leader.fence

    def connection_closed(self, identity: str) -> None:
        """TaskManagers are the leader's."""

    def program_ended(self, exit_status: int, output_tail: str) -> None:
        """Heard again when it leads."""

    def suspended(self) -> None:
        """It decides nothing in any case."""

    def resumed(self) -> None:
        """Heard again when it leads."""

    def end(self) -> ClusterResult:
        """It has no jobs."""
        return ClusterResult(JobStatus.FINISHED)

    def stop(self) -> None:
        """Nothing is under way."""

    def web(self) -> WebApplication:
        """Passes requests to the REST interface on to the leader."""
        if self._web is None:
            from yarnflow.rest.framework.proxy import LeaderProxy

            self._web = LeaderProxy(self._leader_web_address, self._authentication())
        return self._web

    def _leader_web_address(self) -> str:
        leader = self._known_leader()
        return "" if leader is None else leader.web_address

    def __getattr__(self, name: str) -> Callable[..., NoReturn]:
        if name.startswith("_"):
            raise AttributeError(name)
        return self._refuse

    def _refuse(self, *_arguments: object) -> NoReturn:
        raise LeadershipLost(f"this master is a standby; the leader is at {self.leader().address}")
