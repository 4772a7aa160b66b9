"""``yarnflow jobmanager``: a JobManager of a standalone cluster, in the foreground until it is stopped."""

from __future__ import annotations

from pathlib import Path

import click

from yarnflow.cli.common import CONTEXT, common_options, load_configuration


@click.command("jobmanager", context_settings=CONTEXT)
@common_options
def command(dynamic: tuple[str, ...], conf_dir: Path | None, verbose: bool) -> int:
    """Run a JobManager of a standalone cluster until it is stopped (TERM or Ctrl-C)."""
    from yarnflow.entrypoint.standalone.supervisor import run_job_manager

    return run_job_manager(load_configuration(conf_dir, dynamic), click.echo)
