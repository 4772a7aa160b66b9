"""What a client sees of a cluster, wherever it came from.

Flink counterpart: ``ClusterClient`` and ``ClusterClientProvider``.
"""

from __future__ import annotations

from typing import Protocol

from yarnflow.core.ids import JobId
from yarnflow.core.messages import ClusterOverview, JobDetails
from yarnflow.core.ports import DispatcherGateway
from yarnflow.errors import YarnflowError


class ClusterConnection(Protocol):
    """A cluster a program can be submitted to."""

    @property
    def owned(self) -> bool:
        """The cluster lives only as long as this process: an interrupt cancels its jobs."""

    def provide(self, required_slots: int) -> None:
        """See that there are TaskManagers for a job that is about to be submitted.

        Parameters
        ----------
        required_slots : int
            Slots the job wants.

        Raises
        ------
        YarnflowError
            They cannot be started.
        """

    def gateway(self) -> DispatcherGateway:
        """The Dispatcher; waits until a cluster that is starting serves.

        Raises
        ------
        YarnflowError
            The cluster cannot be reached or did not come up.
        """

    def failure(self) -> YarnflowError | None:
        """Why the cluster is gone, when this process knows."""

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

    def submitted(self, job_id: JobId, name: str, attached_to_existing: bool) -> None:
        """The cluster accepted the job."""

    def changed(self, details: JobDetails, overview: ClusterOverview | None) -> None:
        """The job's details changed; the overview comes when it could be had."""

    def note(self, text: str) -> None:
        """A sentence for the user."""


class SilentListener:
    """Shows nothing."""

    def submitted(self, job_id: JobId, name: str, attached_to_existing: bool) -> None:
        """Nothing."""

    def changed(self, details: JobDetails, overview: ClusterOverview | None) -> None:
        """Nothing."""

    def note(self, text: str) -> None:
        """Nothing."""
