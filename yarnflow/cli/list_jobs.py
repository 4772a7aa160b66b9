"""``yarnflow list``: the jobs of all clusters of a user, or of one, printed as Flink prints them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Final

import click

from yarnflow.cli.common import cluster_options, existing_clusters, named_mode, names_cluster
from yarnflow.cli.output import Shown, Verb
from yarnflow.cli.view import shown_address
from yarnflow.client.cluster import Page
from yarnflow.client.discovery.asking import Silent
from yarnflow.client.discovery.clusters import Clusters, Listing
from yarnflow.config.options import client
from yarnflow.core.ids import JobId
from yarnflow.core.messages import JobOverview, RestAccess
from yarnflow.core.states import JobStatus
from yarnflow.core.yarn import DeploymentMode
from yarnflow.errors import ApplicationNotFound, RpcUnavailable, YarnflowError
from yarnflow.rest.access.links import dashboard_link

if TYPE_CHECKING:
    from yarnflow.config.configuration import Configuration

_SCHEDULED: Final = frozenset({JobStatus.INITIALIZING, JobStatus.CREATED})


@dataclass(frozen=True, slots=True)
class ListedJob:
    """One job, with where it runs."""

    job_id: JobId
    name: str
    status: JobStatus
    start_time_ms: int
    #: -1 = it has not ended
    end_time_ms: int
    job_key: str
    slots_allocated: int
    slots_required: int
    #: as in the list of clusters
    cluster: str


@dataclass(frozen=True, slots=True)
class ListedCluster:
    """One cluster that was asked."""

    name: str
    #: ``execution.target``
    target: str
    #: flags by which other commands name it
    named_by: str
    #: of its REST interface and dashboard; empty = it has none
    web_address: str
    #: why it does not tell its jobs; empty = it does
    error: str


@dataclass(frozen=True, slots=True)
class JobList:
    """Jobs in the order of their start."""

    jobs: tuple[ListedJob, ...]
    clusters: tuple[ListedCluster, ...]


@click.command("list", cls=Verb, answer=JobList)
@click.option("-a", "--all", "show_all", is_flag=True, help="Ended jobs as well.")
@click.option("-r", "--running", is_flag=True, help="Only running and restarting jobs.")
@click.option("-s", "--scheduled", is_flag=True, help="Only jobs that have not started yet.")
@cluster_options
def command(show_all: bool, running: bool, scheduled: bool, configuration: Configuration) -> Shown:
    """List the jobs of all of this user's clusters, or of the one that the options name.

    Those are the local ones of this machine, the standalone one of the configuration and, where Hadoop is
    configured, those on YARN.
    """
    both = running == scheduled
    running, scheduled = running or both, scheduled or both
    found, accesses = _list(configuration)
    links = {access.address: shown_address(_page(access), sys.stderr) for access in accesses}
    for cluster in found.clusters:
        if cluster.error:
            click.echo(f"note: {cluster.name}: {cluster.error}", err=True)
        elif cluster.web_address:
            click.echo(f"Dashboard: {links[cluster.web_address]} ({cluster.name})", err=True)
    chosen = [job for job in found.jobs if _chosen(job, running, scheduled, show_all)]
    several = len({job.cluster for job in chosen}) > 1
    text = format_jobs(chosen, running=running, scheduled=scheduled, ended=show_all, with_cluster=several)
    return Shown(JobList(tuple(chosen), found.clusters), text)


def _page(access: RestAccess) -> Page:
    return Page(access.address, dashboard_link(access))


def _list(configuration: Configuration) -> tuple[JobList, list[RestAccess]]:
    """Return the jobs, and how to look at their clusters."""
    mode = named_mode(configuration)
    if mode is None and names_cluster(configuration):
        return _of_named(configuration)
    clusters = Clusters(configuration)
    listings, silent = clusters.listings(mode)
    if not listings:
        raise _nobody(clusters, silent, mode)
    jobs = [_listed(job, one.candidate.name) for one in listings for job in one.jobs]
    heard = [_heard(one) for one in listings]
    listed = _in_order(jobs, [*heard, *map(_unheard, silent)])
    return listed, [one.access for one in listings]


def _nobody(clusters: Clusters, silent: Sequence[Silent], mode: DeploymentMode | None) -> YarnflowError:
    if silent:
        return RpcUnavailable(f"no cluster of this user answers: {'; '.join(map(str, silent))}")
    if mode is not None:
        return ApplicationNotFound(f"no {mode.target} application of this user runs on YARN")
    return clusters.nobody()


def _of_named(configuration: Configuration) -> tuple[JobList, list[RestAccess]]:
    jobs, clusters, accesses = [], [], []
    with existing_clusters(configuration) as connections:
        for connection in connections:
            gateway = connection.gateway()
            name = str(connection) if len(connections) > 1 else connection.named_by
            target = configuration.get(client.TARGET) if configuration.is_set(client.TARGET) else ""
            access = gateway.rest_access()
            accesses.append(access)
            clusters.append(ListedCluster(name, target, connection.named_by, access.address, ""))
            jobs += [_listed(job, name) for job in gateway.list_jobs()]
    return _in_order(jobs, clusters), accesses


def _listed(job: JobOverview, cluster: str) -> ListedJob:
    return ListedJob(
        job.job_id,
        job.name,
        job.status,
        job.start_time_ms,
        job.end_time_ms,
        job.job_key,
        job.slots_allocated,
        job.slots_required,
        cluster,
    )


def _heard(listing: Listing) -> ListedCluster:
    candidate = listing.candidate
    return ListedCluster(candidate.name, candidate.target, candidate.named_by, listing.access.address, "")


def _unheard(silent: Silent) -> ListedCluster:
    named_by = "" if silent.candidate is None else silent.candidate.named_by
    return ListedCluster(silent.name, silent.target, named_by, "", silent.reason)


def _in_order(jobs: Sequence[ListedJob], clusters: Sequence[ListedCluster]) -> JobList:
    return JobList(
        tuple(sorted(jobs, key=lambda job: (job.start_time_ms, job.job_id))), tuple(clusters)
    )


def _chosen(job: ListedJob, running: bool, scheduled: bool, ended: bool) -> bool:
    if job.status.terminal:
        return ended
    return ended or (scheduled if job.status in _SCHEDULED else running)


def format_jobs(
    jobs: Sequence[ListedJob], *, running: bool, scheduled: bool, ended: bool, with_cluster: bool = False
) -> str:
    """The listing as text.

    Parameters
    ----------
    jobs : sequence of ListedJob
        Those that were chosen, in the order of their start.
    with_cluster : bool
        Say of each where it runs.
    """
    lines: list[str] = []

    def section(title: str, chosen: Sequence[ListedJob], nothing: str) -> None:
        if not chosen:
            lines.append(nothing)
            return
        lines.append(f" {title} ".center(60, "-"))
        lines.extend(_line(job, with_cluster) for job in chosen)
        lines.append("-" * 60)

    if running or ended:
        live = [job for job in jobs if not job.status.terminal and job.status not in _SCHEDULED]
        section("Running/Restarting Jobs", live, "No running jobs.")
    if scheduled or ended:
        waiting = [job for job in jobs if job.status in _SCHEDULED]
        section("Scheduled/Initializing Jobs", waiting, "No scheduled jobs.")
    if ended:
        section("Terminated Jobs", [job for job in jobs if job.status.terminal], "No terminated jobs.")
    return "\n".join(lines)


def _line(job: ListedJob, with_cluster: bool) -> str:
    started = datetime.fromtimestamp(job.start_time_ms / 1000).strftime("%d.%m.%Y %H:%M:%S")
    slots = f", {job.slots_allocated}/{job.slots_required} slots" if not job.status.terminal else ""
    key = f", key {job.job_key}" if job.job_key else ""
    where = f" on {job.cluster}" if with_cluster else ""
    line = f"{started} : {job.job_id} : {job.name} ({job.status.value}{slots}{key}){where}"
    if job.status is JobStatus.RECOVERY_FAILED:
        line += "\n  what it is to run cannot be read; see yarnflow info, recover, cancel"
    return line
