"""What the supervisor of a cluster is given, as plain values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from yarnflow.core.cluster_result import ClusterResult
from yarnflow.core.ports import DriverOwner, WorkerOwner
from yarnflow.errors import YarnflowError
from yarnflow.process.channel.messages import JobStatusReport, MasterRole


def _ignore(_told: object) -> None:
    """Nobody wants to know."""


@dataclass(frozen=True, slots=True)
class ClusterListeners:
    """Who is told of what happens in a cluster, from other threads.

    Of ``on_end`` and ``on_failure`` one is called, once, unless the supervisor is stopped before.
    """

    #: each new status of a job
    on_job_status: Callable[[JobStatusReport], None] = _ignore
    #: the JobManager begins to lead or to stand by
    on_role: Callable[[MasterRole], None] = _ignore
    #: the JobManager ended because its work is done
    on_end: Callable[[ClusterResult], None] = _ignore
    #: it ended in any other way; with high availability, before it has ever served
    on_failure: Callable[[YarnflowError], None] = _ignore
    #: pid of a JobManager or driver that has ended, with all that it had started; None = it is not waited for
    on_process_ended: Callable[[int], None] | None = None


@dataclass(frozen=True, slots=True)
class OthersWorkers:
    """TaskManagers that somebody else starts (YARN).

    What that one learns goes to :class:`~yarnflow.process.cluster.ClusterSupervisor`, which tells the
    JobManager.
    """

    owner: WorkerOwner
    #: those the owner was asked for already
    expected: int = 0


class OthersDrivers(DriverOwner, Protocol):
    """Drivers that somebody else starts: in containers of YARN.

    The end of each goes to :meth:`yarnflow.process.cluster.ClusterSupervisor.driver_exited`.
    """

    def running(self) -> Sequence[str]:
        """Ids of drivers that were asked for and have not ended."""

    def kill_all(self) -> None:
        """End all of them."""


@dataclass(frozen=True, slots=True)
class DriverPlaces:
    """What there is for drivers."""

    #: drivers there is memory for, and so jobs; 0 = no limit
    jobs: int = 0
    #: further ones, that jobs keep for the loss of theirs
    hot_spares: int = 0
    #: what they print, see :class:`~yarnflow.process.pools.DriverPool`
    inherit_stdout: bool = False
    stdout_fd: int | None = None

    @property
    def limit(self) -> int:
        """Driver processes at the same time; 0 = as many as are asked for."""
        return self.jobs + self.hot_spares if self.jobs else 0
