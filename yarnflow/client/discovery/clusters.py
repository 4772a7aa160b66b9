"""The clusters of a user, wherever they run, and which of them has a job.

Decides where is looked, and in which order: the local clusters of this machine and the standalone one of
the configuration, then, where Hadoop is configured, the user's applications on YARN.  All of one step are
asked at the same time, each for as long as ``client.discovery.timeout`` says; one that does not answer is
told of and holds up nobody.  Flink has no counterpart: its command line asks the one cluster it was given.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, NamedTuple

from yarnflow.client.cluster import ClusterConnection
from yarnflow.client.discovery.asking import Candidate, Silent, ask, one_line, within
from yarnflow.client.local import clusters_here, found_local_clusters
from yarnflow.client.targets import REMOTE, names_standalone
from yarnflow.config.configuration import Configuration
from yarnflow.config.hadoop.variables import names_hadoop
from yarnflow.config.options import client, cluster
from yarnflow.core.ids import JobId
from yarnflow.core.messages import JobDetails, JobOverview, RestAccess
from yarnflow.core.ports import DispatcherGateway
from yarnflow.core.yarn import DeploymentMode
from yarnflow.errors import ApplicationNotFound, InvalidOption, JobNotFound, RpcUnavailable, YarnflowError

_LOCAL: Final = "local"


@dataclass(frozen=True, slots=True)
class Listing:
    """The jobs of one cluster."""

    candidate: Candidate
    jobs: Sequence[JobOverview]
    #: to its REST interface and dashboard
    access: RestAccess = RestAccess()


class _Asked(NamedTuple):
    """What came of asking for a job."""

    connection: ClusterConnection | None
    #: they have answered, and do not have it
    without: list[Candidate]
    silent: list[Silent]


class Clusters:
    """All clusters of the user; nothing is looked at before it is asked for.

    Parameters
    ----------
    configuration : Configuration
        ``io.tmp.dirs``, where the standalone cluster is, and ``client.discovery.timeout``.
    environ : mapping
        Whether Hadoop is configured.
    timeout_ms : int, optional
        In place of the option.
    """

    def __init__(
        self,
        configuration: Configuration,
        environ: Mapping[str, str] = os.environ,
        timeout_ms: int | None = None,
    ) -> None:
        self._configuration = configuration
        self._on_yarn = names_hadoop(environ)
        self._timeout_ms = (
            configuration.get(client.DISCOVERY_TIMEOUT_MS) if timeout_ms is None else timeout_ms
        )

    def listings(self, mode: DeploymentMode | None = None) -> tuple[list[Listing], list[Silent]]:
        """The jobs of all clusters, and those that do not tell theirs.

        Parameters
        ----------
        mode : DeploymentMode, optional
            Only of applications on YARN of this mode.
        """
        candidates, silent = self._yarn(mode)
        if mode is None:
            here, unseen = self._here()
            candidates, silent = [*here, *candidates], [*unseen, *silent]
        found, unheard = ask(candidates, _jobs_and_access, self._timeout_ms)
        for one in found:
            one.close()
        return [Listing(one.candidate, *one.answer) for one in found], [*silent, *unheard]

    def with_job(self, job_id: JobId) -> ClusterConnection:
        """The cluster that has a job; else the only one that did not answer: it may be changing its leader.

        Raises
        ------
        JobNotFound
            None of them; the message says where was looked.
        RpcUnavailable
            None of those that answered, and several did not.
        InvalidOption
            Several; the message has their names.
        YarnflowError
            No cluster is there at all: why the standalone one cannot be reached.
        """
        looked: list[Candidate] = []
        silent: list[Silent] = []
        # ids of jobs are random: who has one in the first step need not look further
        for step in (self._here, lambda: self._yarn(None, job_id)):
            candidates, unseen = step()
            if len(candidates) == 1 and not self._on_yarn:
                # nothing to choose from: the verb asks it itself, with patience
                return self._without_yarn()[0]
            asked = self._ask_for(job_id, candidates)
            if asked.connection is not None:
                return asked.connection
            looked += asked.without
            silent += [*unseen, *asked.silent]
        if len(silent) == 1 and silent[0].candidate is not None:
            return silent[0].candidate.reach()
        raise self._not_found(job_id, looked, silent)

    def with_job_on_yarn(self, job_id: JobId, mode: DeploymentMode) -> ClusterConnection | None:
        """The application of a mode that has a job; None = there are not several of them to choose from.

        Raises
        ------
        JobNotFound, RpcUnavailable
            As :meth:`with_job`.
        YarnUnavailable
            YARN does not answer.
        """
        candidates, _ = self._yarn(mode, job_id)
        if len(candidates) < 2:
            return None
        asked = self._ask_for(job_id, candidates)
        if asked.connection is not None:
            return asked.connection
        raise self._not_found(job_id, asked.without, asked.silent)

    def _ask_for(self, job_id: JobId, candidates: Sequence[Candidate]) -> _Asked:
        """Who has the job; the others are let go of."""
        found, silent = ask(candidates, lambda gateway: _details(gateway, job_id), self._timeout_ms)
        having = [one for one in found if one.answer is not None]
        for one in found:
            if one.answer is None or len(having) > 1:
                one.close()
        if len(having) > 1:
            raise _ambiguous([one.candidate for one in having], f"have job {job_id}")
        without = [one.candidate for one in found if one.answer is None]
        return _Asked(having[0].connection if having else None, without, silent)

    def _not_found(
        self, job_id: JobId, looked: Sequence[Candidate], silent: Sequence[Silent]
    ) -> YarnflowError:
        names = "; ".join(candidate.name for candidate in looked)
        if silent:
            others = f", and none of the others has it ({names})" if looked else ""
            return RpcUnavailable(
                f"job {job_id} may be where nobody answered: {'; '.join(map(str, silent))}{others}"
            )
        if looked:
            return JobNotFound(
                f"no job {job_id} on the clusters of this user ({names}); `yarnflow list --all` shows "
                "the jobs there are"
            )
        error = self.nobody()
        return JobNotFound(f"no job {job_id}: {error}") if isinstance(error, ApplicationNotFound) else error

    def nobody(self) -> YarnflowError:
        """Why there is no cluster at all."""
        try:
            for connection in self._without_yarn():
                connection.stop(forced=False, failed=False)
        except YarnflowError as error:
            if self._on_yarn and not names_standalone(self._configuration):
                # no option is wrong, and all of YARN has answered
                return ApplicationNotFound(f"no application of yarnflow runs on YARN, and {error}")
            return error
        return RpcUnavailable("no cluster of this user answered; try again")

    def _without_yarn(self) -> list[ClusterConnection]:
        return clusters_here(self._configuration, lambda: REMOTE.reach(self._configuration))

    # --- where they may be ---

    def _here(self) -> tuple[list[Candidate], list[Silent]]:
        configuration = self._configuration
        candidates = [
            Candidate(str(running), _LOCAL, running.named_by, partial(_itself, running), supposed=True)
            for running in found_local_clusters(configuration)
        ]
        address = configuration.get(cluster.JOBMANAGER_RPC_ADDRESS)
        port = configuration.get(cluster.JOBMANAGER_RPC_PORT)
        named_by = f"-m {address}" if ":" in address else f"-m {address}:{port}"
        standalone = Candidate(
            f"standalone cluster {named_by.removeprefix('-m ')}",
            REMOTE.name,
            named_by,
            lambda: REMOTE.reach(configuration),
            supposed=not names_standalone(configuration),
        )
        return [*candidates, standalone], []

    def _yarn(
        self, mode: DeploymentMode | None, job_id: JobId | None = None
    ) -> tuple[list[Candidate], list[Silent]]:
        if mode is None and not self._on_yarn:
            return [], []
        place = "YARN"

        def look() -> list[Candidate]:
            from yarnflow.client.yarn.session_client import live_clusters

            live = live_clusters(self._configuration, mode, job_id or "")
            return [Candidate(one.name, one.target, one.named_by, one.reach) for one in live]

        try:
            return within(look, self._timeout_ms, "look-on-yarn"), []
        except YarnflowError as error:
            if mode is not None:
                raise
            return [], [Silent(place, place.lower(), one_line(error))]


def _jobs_and_access(gateway: DispatcherGateway) -> tuple[Sequence[JobOverview], RestAccess]:
    return gateway.list_jobs(), gateway.rest_access()


def _itself(running: ClusterConnection) -> ClusterConnection:
    return running


def _details(gateway: DispatcherGateway, job_id: JobId) -> JobDetails | None:
    try:
        return gateway.job_details(job_id)
    except JobNotFound:
        return None


def _ambiguous(candidates: Sequence[Candidate], what: str) -> InvalidOption:
    names = "; ".join(f"{one.name} ({one.named_by})" if one.named_by else one.name for one in candidates)
    return InvalidOption(
        f"{len(candidates)} clusters of this user {what}: {names}; name one of them, a local one by "
        "-m host:port and -Dsecurity.cluster-secret-file=DIRECTORY/secret"
    )


def live_jobs(listings: Sequence[Listing]) -> Iterator[JobOverview]:
    """Jobs that have not ended."""
    return (job for listing in listings for job in listing.jobs if not job.status.terminal)


__all__ = ["Clusters", "Listing", "live_jobs"]
