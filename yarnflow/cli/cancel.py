"""``yarnflow cancel JOB``: cancels a job and waits until it is CANCELED."""

from __future__ import annotations

from dataclasses import dataclass, replace

import click

from yarnflow.cli.common import checked_job_id, cluster_options, existing_cluster, job_argument
from yarnflow.cli.output import Shown, Verb, said
from yarnflow.cli.view import make_view
from yarnflow.client.cluster import job_details
from yarnflow.client.job_client import ClusterJobClient
from yarnflow.config.configuration import Configuration
from yarnflow.config.options import client as client_options
from yarnflow.core.ids import JobId
from yarnflow.core.states import JobStatus
from yarnflow.errors import JobCanceled, JobError


@dataclass(frozen=True, slots=True)
class Canceled:
    """A job that was told to end."""

    job_id: JobId
    #: as it was last seen
    status: JobStatus
    #: with ``-s`` of Flink
    savepoint_path: str = ""


@click.command("cancel", cls=Verb, answer=Canceled)
@job_argument(required=False)
@click.option("-d", "--detached", is_flag=True, help="Return as soon as the cluster has accepted it.")
@click.option(
    "-s",
    "--withSavepoint",
    "savepoint",
    is_flag=False,
    flag_value="",
    metavar="[DIR]",
    hidden=True,
    help="as yarnflow stop",
)
@cluster_options
def command(
    job: str | None, detached: bool, savepoint: str | None, configuration: Configuration
) -> Shown:
    """Cancel a job."""
    if savepoint is not None:
        from yarnflow.cli.stop import stop_job

        # as in Flink: what follows -s is the job where nothing else is
        job, directory = (savepoint, None) if job is None else (job, savepoint or None)
        click.echo("note: -s of Flink is done by `yarnflow stop`: the job ends FINISHED", err=True)
        job_id = checked_job_id(job)
        shown = stop_job(job_id, configuration, directory, detached=detached)
        status = JobStatus.RUNNING if detached else JobStatus.FINISHED
        return replace(shown, document=Canceled(job_id, status, shown.document.savepoint_path))
    if not job:
        raise click.UsageError("missing JOB; usage: yarnflow cancel JOB")
    job_id = checked_job_id(job)
    with existing_cluster(configuration, job_id) as connection:
        cluster = connection.cluster_of(job_id)
        details = job_details(cluster, job_id)
        if details.overview.status.globally_terminal:
            raise JobError(f"job {job_id} cannot be canceled: it is {details.overview.status.value} already")
        view = make_view(live=False)
        view.begin(details)
        said(f"Cancelling job {job_id}.")
        waiting = ClusterJobClient(
            cluster,
            job_id,
            details.overview.name,
            view,
            timeout_ms=configuration.get(client_options.CLIENT_TIMEOUT_MS),
            goes_on="It is being canceled; see how far that is with: yarnflow list --all",
        )
        waiting.cancel()
        if detached:
            return Shown(Canceled(job_id, JobStatus.CANCELLING))
        try:
            waiting.await_result()
        except JobCanceled:
            return Shown(Canceled(job_id, JobStatus.CANCELED), f"Cancelled job {job_id}.")
    raise JobError(f"job {job_id} was not canceled: it became FINISHED first")
