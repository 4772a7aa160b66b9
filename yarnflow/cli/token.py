"""``yarnflow token``: what a request to a cluster's REST interface needs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import click

from yarnflow.cli.common import checked_job_id, cluster_options, existing_cluster, job_argument
from yarnflow.cli.output import Shown, Verb
from yarnflow.core.messages import RestAccess
from yarnflow.errors import ConfigError

if TYPE_CHECKING:
    from yarnflow.config.configuration import Configuration


@click.command("token", cls=Verb, answer=RestAccess)
@job_argument(required=False)
@click.option("--read-only", is_flag=True, help="One that changes nothing.")
@cluster_options
def command(job: str | None, read_only: bool, configuration: Configuration) -> Shown:
    """Print the token of a cluster's REST interface, and its address to standard error.

    Whoever has the cluster's secret may have it.  JOB is one of the cluster's, where several clusters run.

    curl -H "Authorization: Bearer $(yarnflow token)" ADDRESS/jobs
    """
    with existing_cluster(configuration, checked_job_id(job) if job else "") as cluster:
        access = cluster.gateway().rest_access()
    if not access.address:
        raise ConfigError("this cluster has no REST interface (rest.port is -1)")
    click.echo(f"REST interface: {access.address}", err=True)
    if not access.write_token:
        click.echo("No token is needed (rest.authentication.enabled is false).", err=True)
        return Shown(access)
    if read_only:
        return Shown(replace(access, write_token=""), access.read_token)
    return Shown(access, access.write_token)
