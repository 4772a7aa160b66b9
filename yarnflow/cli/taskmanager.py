"""``yarnflow taskmanager``: a TaskManager of a standalone cluster, in the foreground until it is stopped."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from yarnflow.cli.common import common_options
from yarnflow.cli.output import CONTEXT

if TYPE_CHECKING:
    from yarnflow.config.configuration import Configuration


@click.command("taskmanager", context_settings=CONTEXT)
@common_options
def command(configuration: Configuration) -> int:
    """Run a TaskManager of a standalone cluster until it is stopped (TERM or Ctrl-C)."""
    from yarnflow.entrypoint.standalone.supervisor import run_task_manager

    return run_task_manager(configuration, click.echo)
