"""``yarnflow dashboard``: a link that lets a browser into a cluster's dashboard."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import click

from yarnflow.cli.common import checked_job_id, cluster_options, existing_cluster, job_argument
from yarnflow.cli.output import Shown, Verb
from yarnflow.errors import ConfigError
from yarnflow.rest.access.links import dashboard_link

if TYPE_CHECKING:
    from yarnflow.config.configuration import Configuration


@dataclass(frozen=True, slots=True)
class DashboardLink:
    """A link that lets a browser in, once and within a few minutes."""

    link: str = field(repr=False)


@click.command("dashboard", cls=Verb, answer=DashboardLink)
@job_argument(required=False)
@click.option("--read-only", is_flag=True, help="Let the browser change nothing.")
@cluster_options
def command(job: str | None, read_only: bool, configuration: Configuration) -> Shown:
    """Print a link to a cluster's dashboard, which lets one browser in.

    Its code counts once and for five minutes; the browser may then look at the cluster and change it for
    twelve hours.  Whoever has the cluster's secret may have a link.  With JOB it leads to that job's page.
    """
    job_id = checked_job_id(job) if job else ""
    with existing_cluster(configuration, job_id) as cluster:
        access = cluster.gateway().rest_access()
    if not access.address:
        raise ConfigError("this cluster has no REST interface (rest.port is -1)")
    link = dashboard_link(access, f"job/{job_id}" if job_id else "", read_only=read_only)
    return Shown(DashboardLink(link), link)
