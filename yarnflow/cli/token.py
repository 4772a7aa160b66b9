"""``yarnflow token``: what a request to a cluster's REST interface needs."""

from __future__ import annotations

from pathlib import Path

import click

from yarnflow.cli.common import CONTEXT, cluster_options, existing_cluster, load_configuration, with_target
from yarnflow.errors import ConfigError


@click.command("token", context_settings=CONTEXT)
@click.argument("job_id", required=False, default="", metavar="[JOB]")
@click.option("--read-only", is_flag=True, help="One that changes nothing.")
@cluster_options
def command(
    job_id: str,
    read_only: bool,
    target: str | None,
    jobmanager: str | None,
    dynamic: tuple[str, ...],
    conf_dir: Path | None,
    verbose: bool,
) -> None:
    """Print the token of a cluster's REST interface, and its address to standard error.

    Whoever has the cluster's secret may have it.  JOB is one of the cluster's, where several clusters run.

    curl -H "Authorization: Bearer $(yarnflow token)" ADDRESS/jobs
    """
    configuration = with_target(load_configuration(conf_dir, dynamic), target, jobmanager)
    with existing_cluster(configuration, job_id) as cluster:
        access = cluster.gateway().rest_access()
    if not access.address:
        raise ConfigError("this cluster has no REST interface (rest.port is -1)")
    click.echo(f"REST interface: {access.address}", err=True)
    if not access.write_token:
        click.echo("No token is needed (rest.authentication.enabled is false).", err=True)
        return
    click.echo(access.read_token if read_only else access.write_token)
