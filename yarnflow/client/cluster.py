"""What a client sees of a cluster, wherever it came from.

Flink counterpart: ``ClusterClient`` and ``ClusterClientProvider``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from yarnflow.client.programs.job_key import JobKey
from yarnflow.core.ids import JobId
from yarnflow.core.messages import ClusterOverview, Fence, JobDetails, JobSubmission, JobSubmitted
from yarnflow.core.ports import DispatcherGateway
from yarnflow.errors import HaError, RpcTimeout, RpcUnavailable, YarnflowError
from yarnflow.rest.access.links import dashboard_link


class JobCluster(Protocol):
    """A JobManager and the jobs it knows."""

    @property
    def owned(self) -> bool:
        """The cluster lives only as long as this process: an interrupt cancels its jobs."""

    @property
    def named_by(self) -> str:
        """The option by which other commands find it; empty where they cannot or need none."""

    def gateway(self) -> DispatcherGateway:
        """The Dispatcher; waits until a cluster that is starting serves.

        Raises
        ------
        YarnflowError
            The cluster cannot be reached or did not come up.
        """

    def present_gateway(self) -> DispatcherGateway | None:
        """The Dispatcher of the leader that answered last: a call to it never waits for the next one.

        None while a leader is looked for.  Raises as :meth:`gateway` does.
        """

    def followed(self) -> Fence | None:
        """The leader that answered last, where another one may take over; None before the first answer."""

    def failure(self) -> YarnflowError | None:
        """Why the cluster is gone, when this process knows."""

    def final_details(self, job_id: JobId) -> JobDetails | None:
        """How a job ended, left behind by a cluster that is gone; None = nothing is known."""


def job_details(cluster: JobCluster, job_id: JobId) -> JobDetails:
    """What the JobManager says of a job, or what was left behind by one that has just ended with it.

    Raises
    ------
    JobNotFound
        The JobManager does not know the job.
    RpcUnavailable, RpcTimeout, HaError
        Nobody answers, and nothing is known.
    RpcError
        It refuses.
    """
    try:
        return cluster.gateway().job_details(job_id)
    except (RpcUnavailable, RpcTimeout, HaError):
        details = cluster.final_details(job_id)
        if details is None:
            raise
        return details


@dataclass(frozen=True, slots=True)
class Page:
    """A page of the dashboard."""

    #: empty = there is none, or the cluster does not say
    address: str = ""
    #: the same with what lets a browser in, for a terminal of the cluster's owner
    link: str = field(default="", repr=False)


NO_PAGE: Final = Page()


def page_of(cluster: JobCluster, job_id: JobId) -> Page:
    """Return where a job can be watched."""
    try:
        access = cluster.gateway().rest_access()
    except YarnflowError:
        return NO_PAGE
    if not access.address:
        return NO_PAGE
    place = f"job/{job_id}"
    return Page(f"{access.address}/#/{place}", dashboard_link(access, place))


class ProgramCluster(Protocol):
    """Runs a program's ``main()`` beside the JobManager; which jobs it has is known when it submits them."""

    def submit_program(
        self, name: str, arguments: Sequence[str], required_slots: int, key: JobKey
    ) -> JobSubmitted:
        """Start the program; returns with its first job.

        Parameters
        ----------
        name : str
            Of the cluster.
        arguments : sequence of str
            The program's.
        required_slots : int
            What its first job will probably want.
        key : JobKey
            Of the program.
        """

    def follow(self, job_id: JobId, listener: JobListener, timeout_ms: int) -> None:
        """Show all jobs of the program that began with ``job_id``, until it has ended well.

        Parameters
        ----------
        timeout_ms : int
            How long a cluster that does not answer is tried again.

        Raises
        ------
        YarnflowError
            The first job that did not FINISH, else why the program did not end well.
        """


class ClusterConnection(JobCluster, Protocol):
    """A cluster, or the makings of one, that a program can be submitted to."""

    @property
    def programs(self) -> ProgramCluster | None:
        """Where ``main()`` runs when it runs in the cluster; None = it runs in this process."""

    def submit(self, submission: JobSubmission, required_slots: int) -> JobSubmitted:
        """Hand a job over; returns when a running JobManager has accepted it.

        Parameters
        ----------
        required_slots : int
            Slots the job wants; TaskManagers that can be started are started for them.

        Raises
        ------
        YarnflowError
            It was not accepted, or there is no cluster for it.
        """

    def cluster_of(self, job_id: JobId) -> JobCluster:
        """The cluster that runs a job which was submitted here, or attached to."""

    def stop(self, *, forced: bool, failed: bool) -> str:
        """Let go of the cluster; ends it when it is owned.  Idempotent.

        Parameters
        ----------
        forced : bool
            Kill at once.
        failed : bool
            A job failed: keep logs and checkpoints.

        Returns
        -------
        str
            Directory of kept logs; empty when nothing was kept.
        """


class JobListener(Protocol):
    """Who shows a job's life to the user."""

    def submitted(self, job_id: JobId, name: str, attached_to_existing: bool, page: Page = NO_PAGE) -> None:
        """Show that the cluster accepted the job, and its page in the dashboard if there is one."""

    def changed(self, details: JobDetails, overview: ClusterOverview | None) -> None:
        """The job's details changed; the overview comes when it could be had."""

    def note(self, text: str) -> None:
        """A sentence for the user."""


class SilentListener:
    """Shows nothing."""

    def submitted(self, job_id: JobId, name: str, attached_to_existing: bool, page: Page = NO_PAGE) -> None:
        pass

    def changed(self, details: JobDetails, overview: ClusterOverview | None) -> None:
        pass

    def note(self, text: str) -> None:
        pass
