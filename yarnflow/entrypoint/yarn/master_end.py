"""How one master on YARN ends, and what is told about it.

Decides which end of a master is that of its cluster: then the result goes to HDFS, where clients look
for it.  A master that ends for reasons of its own while others live says so to YARN only.  Flink
counterpart: ``YarnResourceManagerDriver.deregisterApplication``.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Final

from yarnflow.core.cluster_result import ClusterResult
from yarnflow.core.messages import JobDetails
from yarnflow.core.states import JobStatus
from yarnflow.core.yarn import DeploymentMode, FinalStatus
from yarnflow.entrypoint.yarn.other_masters import Masters
from yarnflow.errors import YarnflowError
from yarnflow.staging.deployment import ApplicationDirectory, ApplicationResult

logger: Final = logging.getLogger(__name__)

_FINAL_STATUS: Final = {
    JobStatus.FINISHED: FinalStatus.SUCCEEDED,
    JobStatus.FAILED: FinalStatus.FAILED,
    JobStatus.CANCELED: FinalStatus.KILLED,
}


@dataclass(frozen=True, slots=True)
class End:
    """How the application ends."""

    status: FinalStatus
    diagnostics: str = ""
    #: of the job, where there was one
    job_status: str = ""
    details: JobDetails | None = None
    #: see :class:`yarnflow.core.cluster_result.ClusterResult`
    error_code: str = ""
    #: there is no time for good order
    at_once: bool = False
    #: the whole cluster has ended, not only this master of it
    of_cluster: bool = False


def end_of_cluster(result: ClusterResult, mode: DeploymentMode) -> End:
    """The JobManager says that the work is done."""
    status = _FINAL_STATUS.get(result.status, FinalStatus.FAILED)
    words = "The session was stopped." if mode is DeploymentMode.SESSION else ""
    return End(
        status,
        result.diagnostics or words,
        result.status.value,
        result.details,
        result.error_code,
        of_cluster=True,
    )


def failed(error: YarnflowError) -> End:
    """This master cannot go on."""
    return End(FinalStatus.FAILED, str(error))


def first_end(ends: SimpleQueue[End]) -> End:
    """Wait for one; that of the cluster, if it is known by then, whatever else ends this master."""
    end = ends.get()
    while not end.of_cluster:
        try:
            other = ends.get_nowait()
        except Empty:
            break
        if other.of_cluster:
            end = other
    return end


def leave_result(end: End, directory: ApplicationDirectory, masters: Masters | None) -> None:
    """Write how the cluster ended, if this is its end.  Raises StorageError or YarnError.

    Parameters
    ----------
    masters : Masters, optional
        The others, with high availability.
    """
    if masters is not None and not end.of_cluster and masters.others():
        return
    directory.write_result(
        ApplicationResult(
            end.job_status or end.status.value, end.diagnostics, end.details, end.error_code
        )
    )
