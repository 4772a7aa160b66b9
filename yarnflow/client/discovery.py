"""The clusters of a user, wherever they run, and which of them has a job.

Decides where is looked, and in which order: the local clusters of this machine and the standalone one of
the configuration, then, where Hadoop is configured, the user's applications on YARN.  All of one step are
asked at the same time, each for as long as ``client.discovery.timeout`` says; one that does not answer is
told of and holds up nobody.  Flink has no counterpart: its command line asks the one cluster it was given.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from dataclasses import dataclass
from functools import partial
from typing import Final, Generic, TypeVar

from yarnflow.client.background import run_into
from yarnflow.client.cluster import ClusterConnection
from yarnflow.client.local import found_local_clusters
from yarnflow.client.targets import REMOTE, names_standalone
from yarnflow.config.configuration import Configuration
from yarnflow.config.options import client, cluster
from yarnflow.core.ids import JobId
from yarnflow.core.messages import JobDetails, JobOverview
from yarnflow.core.ports import DispatcherGateway
from yarnflow.core.yarn import DeploymentMode
from yarnflow.errors import (
    ConfigError,
    InvalidOption,
    JobNotFound,
    RpcUnavailable,
    YarnflowError,
)

T = TypeVar("T")

_LOCAL: Final = "local"
#: by these YARN is known to a machine
_HADOOP_VARIABLES: Final = ("HADOOP_CONF_DIR", "YARN_CONF_DIR")


@dataclass(frozen=True, slots=True)
class Candidate:
    """A cluster that may run."""

    #: for people
    name: str
    #: ``execution.target``
    target: str
    #: flags by which other commands name it
    named_by: str
    #: connects; may take its time, and fail
    reach: Callable[[], ClusterConnection]
    #: nobody has said that it runs: it is no news if nobody answers
    supposed: bool = False


@dataclass(frozen=True, slots=True)
class Found(Generic[T]):
    """One that has answered."""

    candidate: Candidate
    connection: ClusterConnection
    answer: T

    def close(self) -> None:
        """Let go of it."""
        self.connection.stop(forced=False, failed=False)


@dataclass(frozen=True, slots=True)
class Silent:
    """One that has not, or a place that could not be looked at."""

    name: str
    target: str
    #: one line
    reason: str
    #: None = a place, and not a cluster
    candidate: Candidate | None = None

    def __str__(self) -> str:
        return f"{self.name}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Listing:
    """The jobs of one cluster."""

    candidate: Candidate
    jobs: Sequence[JobOverview]


Step = Callable[[], tuple[list[Candidate], list[Silent]]]


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
        self._on_yarn = any(map(environ.get, _HADOOP_VARIABLES))
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
        candidates, silent = [], []
        steps = [self._here, lambda: self._yarn(None)] if mode is None else [lambda: self._yarn(mode)]
        for step in steps:
            more, unseen = step()
            candidates += more
            silent += unseen
        found, unheard = ask(candidates, lambda gateway: gateway.list_jobs(), self._timeout_ms)
        for one in found:
            one.close()
        return [Listing(one.candidate, one.answer) for one in found], [*silent, *unheard]

    def with_job(self, job_id: JobId) -> ClusterConnection:
        """The cluster that has a job; else the only one that did not answer, which may be changing its leader.

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
            found, unheard = ask(candidates, lambda gateway: _details(gateway, job_id), self._timeout_ms)
            having = [one for one in found if one.answer is not None]
            for one in found:
                if one.answer is None or len(having) > 1:
                    one.close()
            if len(having) > 1:
                raise _ambiguous([one.candidate for one in having], f"have job {job_id}")
            if having:
                return having[0].connection
            looked += [one.candidate for one in found]
            silent += [*unseen, *unheard]
        if len(silent) == 1 and silent[0].candidate is not None:
            return silent[0].candidate.reach()
        raise self._not_found(job_id, looked, silent)

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
                f"no job {job_id} on the clusters of this user ({names}); `yarnflow list --all` shows the jobs "
                "there are"
            )
        return self.nobody()

    def nobody(self) -> YarnflowError:
        """Why there is no cluster at all."""
        on_yarn = ", no application of yarnflow on YARN" if self._on_yarn else ""
        try:
            REMOTE.reach(self._configuration).gateway()
        except (ConfigError, RpcUnavailable) as error:
            return type(error)(f"no local cluster of this user runs{on_yarn}, and {error}")
        except YarnflowError as error:
            return error
        return RpcUnavailable("no cluster of this user answered; try again")

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

            return [
                Candidate(name, target, named_by, reach)
                for name, target, named_by, reach in live_clusters(self._configuration, mode, job_id or "")
            ]

        try:
            return within(look, self._timeout_ms, "look-on-yarn"), []
        except YarnflowError as error:
            if mode is not None:
                raise
            return [], [Silent(place, place.lower(), _line(error))]


def ask(
    candidates: Sequence[Candidate], question: Callable[[DispatcherGateway], T], timeout_ms: int
) -> tuple[list[Found[T]], list[Silent]]:
    """Ask all at the same time; returns when each has answered, or the time is over.

    Those that are only supposed to run are left out where nobody is there.
    """
    calls = [_Call(candidate, question) for candidate in candidates]
    until_s = time.monotonic() + timeout_ms / 1000
    found: list[Found[T]] = []
    silent: list[Silent] = []
    for call in calls:
        candidate = call.candidate
        try:
            found.append(call.answer(until_s))
        except (ConfigError, RpcUnavailable) as error:
            if not candidate.supposed:
                silent.append(_silent(candidate, _line(error)))
        except FutureTimeout:
            reason = f"no answer within {timeout_ms / 1000:g} s ({client.DISCOVERY_TIMEOUT_MS.key})"
            silent.append(_silent(candidate, reason))
        except YarnflowError as error:
            silent.append(_silent(candidate, _line(error)))
    return found, silent


def _silent(candidate: Candidate, reason: str) -> Silent:
    return Silent(candidate.name, candidate.target, reason, candidate)


def within(action: Callable[[], T], timeout_ms: int, name: str) -> T:
    """The result of an action that may hang.

    Raises
    ------
    RpcUnavailable
        The time is over.
    """
    future: Future[T] = Future()
    run_into(future, action, name)
    try:
        return future.result(timeout_ms / 1000)
    except FutureTimeout as error:
        if isinstance(error, YarnflowError):
            raise
        raise RpcUnavailable(
            f"no answer within {timeout_ms / 1000:g} s ({client.DISCOVERY_TIMEOUT_MS.key})"
        ) from None


class _Call(Generic[T]):
    """One cluster that is asked, in a thread of its own."""

    def __init__(self, candidate: Candidate, question: Callable[[DispatcherGateway], T]) -> None:
        self.candidate: Final = candidate
        self._question = question
        self._lock = threading.Lock()
        self._given_up = False
        self._future: Future[Found[T]] = Future()
        run_into(self._future, self._run, f"ask-{candidate.target}")

    def answer(self, until_s: float) -> Found[T]:
        """Wait for it; raises what went wrong, or FutureTimeout."""
        try:
            return self._future.result(max(0.0, until_s - time.monotonic()))
        except FutureTimeout as error:
            # a time-out of the call itself is an error of ours
            if isinstance(error, YarnflowError):
                raise
            with self._lock:
                self._given_up = True
                if self._future.done() and self._future.exception() is None:
                    return self._future.result()
            raise

    def _run(self) -> Found[T]:
        connection = self.candidate.reach()
        try:
            found = Found(self.candidate, connection, self._question(connection.gateway()))
        except BaseException:
            connection.stop(forced=False, failed=False)
            raise
        with self._lock:
            if self._given_up:
                found.close()
        return found


def _itself(running: ClusterConnection) -> ClusterConnection:
    return running


def _details(gateway: DispatcherGateway, job_id: JobId) -> JobDetails | None:
    try:
        return gateway.job_details(job_id)
    except JobNotFound:
        return None


def _ambiguous(candidates: Sequence[Candidate], what: str) -> InvalidOption:
    names = "; ".join(f"{one.name} ({one.named_by})" if one.named_by else one.name for one in candidates)
    return InvalidOption(f"{len(candidates)} clusters of this user {what}: {names}; name one of them")


def _line(error: YarnflowError) -> str:
    return " ".join(str(error).split())


def live_jobs(listings: Sequence[Listing]) -> Iterator[JobOverview]:
    """Jobs that have not ended."""
    return (job for listing in listings for job in listing.jobs if not job.status.terminal)


__all__ = ["Candidate", "Clusters", "Found", "Listing", "Silent", "ask", "live_jobs", "within"]
