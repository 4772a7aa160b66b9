"""``yarnflow historyserver``: shows jobs that have ended, in the foreground until it is stopped."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from yarnflow.cli.common import common_options
from yarnflow.cli.output import CONTEXT

if TYPE_CHECKING:
    from yarnflow.config.configuration import Configuration


@click.command("historyserver", context_settings=CONTEXT)
@common_options
def command(configuration: Configuration) -> int:
    """Show jobs that have ended, from their archives, until it is stopped (TERM or Ctrl-C).

    yarnflow historyserver -Dhistoryserver.archive.fs.dir=hdfs:///yarnflow/archives
    """
    from yarnflow.entrypoint.standalone.history_server import run_history_server

    return run_history_server(configuration, click.echo)
