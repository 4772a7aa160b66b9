"""``yarnflow cancel JOB``: cancels a job and waits until it is CANCELED."""

from __future__ import annotations

from pathlib import Path

import click

from yarnflow.cli.common import CONTEXT, cluster_options, existing_cluster, load_configuration, with_target
from yarnflow.cli.view import make_view
from yarnflow.client.cluster import job_details
from yarnflow.client.job_client import ClusterJobClient
from yarnflow.config.options import client as client_options
from yarnflow.core.ids import JobId, is_job_id
from yarnflow.errors import JobCanceled, JobError, JobNotFound


@click.command("cancel", context_settings=CONTEXT)
@click.argument("job")
@click.option("-d", "--detached", is_flag=True, help="Return as soon as the cluster has accepted it.")
@cluster_options
def command(
    job: str,
    detached: bool,
    target: str | None,
    jobmanager: str | None,
    dynamic: tuple[str, ...],
    conf_dir: Path | None,
    verbose: bool,
) -> None:
    """Cancel a job."""
    configuration = with_target(load_configuration(conf_dir, dynamic), target, jobmanager)
    job_id = checked_job_id(job)
    with existing_cluster(configuration, job_id) as connection:
        cluster = connection.cluster_of(job_id)
        details = job_details(cluster, job_id)
        if details.overview.status.globally_terminal:
            raise JobError(f"job {job_id} cannot be canceled: it is {details.overview.status.value} already")
        view = make_view(live=False)
        view.begin(details)
        click.echo(f"Cancelling job {job_id}.")
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
            return
        try:
            waiting.await_result()
        except JobCanceled:
            click.echo(f"Cancelled job {job_id}.")
            return
    raise JobError(f"job {job_id} was not canceled: it became FINISHED first")


def checked_job_id(text: str) -> JobId:
    """A job id as typed.  Raises JobNotFound for anything else."""
    if not is_job_id(text):
        raise JobNotFound(
            f"{text!r} is not a job id (32 hexadecimal digits); `yarnflow list --all` shows them"
        )
    return JobId(text)
