"""``yarnflow list``: jobs of a cluster, printed as Flink prints them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Final

import click

from yarnflow.cli.common import CONTEXT, cluster_options, existing_clusters, load_configuration, with_target
from yarnflow.core.messages import JobOverview
from yarnflow.core.states import JobStatus

_SCHEDULED: Final = frozenset({JobStatus.INITIALIZING, JobStatus.CREATED})


@click.command("list", context_settings=CONTEXT)
@click.option("-a", "--all", "show_all", is_flag=True, help="Ended jobs as well.")
@click.option("-r", "--running", is_flag=True, help="Only running and restarting jobs.")
@click.option("-s", "--scheduled", is_flag=True, help="Only jobs that have not started yet.")
@cluster_options
def command(
    show_all: bool,
    running: bool,
    scheduled: bool,
    target: str | None,
    jobmanager: str | None,
    dynamic: tuple[str, ...],
    conf_dir: Path | None,
    verbose: bool,
) -> None:
    """List the jobs of a cluster; where no option names one, of all of this user's on this machine."""
    configuration = with_target(load_configuration(conf_dir, dynamic), target, jobmanager)
    with existing_clusters(configuration) as connections:
        jobs = [job for connection in connections for job in connection.gateway().list_jobs()]
    both = running == scheduled
    click.echo(format_jobs(jobs, running=running or both, scheduled=scheduled or both, ended=show_all))


def format_jobs(jobs: Sequence[JobOverview], *, running: bool, scheduled: bool, ended: bool) -> str:
    """The listing as text; jobs in the order of their start."""
    ordered = sorted(jobs, key=lambda job: (job.start_time_ms, job.job_id))
    lines: list[str] = []
    if running or ended:
        live = [job for job in ordered if not job.status.terminal and job.status not in _SCHEDULED]
        lines += _section("Running/Restarting Jobs", live, "No running jobs.")
    if scheduled or ended:
        waiting = [job for job in ordered if job.status in _SCHEDULED]
        lines += _section("Scheduled/Initializing Jobs", waiting, "No scheduled jobs.")
    if ended:
        over = [job for job in ordered if job.status.terminal]
        lines += _section("Terminated Jobs", over, "No terminated jobs.")
    return "\n".join(lines)


def _section(title: str, jobs: Sequence[JobOverview], nothing: str) -> list[str]:
    if not jobs:
        return [nothing]
    return [f" {title} ".center(60, "-"), *map(_line, jobs), "-" * 60]


def _line(job: JobOverview) -> str:
    started = datetime.fromtimestamp(job.start_time_ms / 1000).strftime("%d.%m.%Y %H:%M:%S")
    slots = f", {job.slots_allocated}/{job.slots_required} slots" if not job.status.terminal else ""
    key = f", key {job.job_key}" if job.job_key else ""
    line = f"{started} : {job.job_id} : {job.name} ({job.status.value}{slots}{key})"
    if job.status is JobStatus.RECOVERY_FAILED:
        line += "\n  what it is to run cannot be read; see yarnflow info, recover, cancel"
    return line
