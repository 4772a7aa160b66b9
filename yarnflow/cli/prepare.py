"""``yarnflow prepare``: makes what lets jobs start faster on this machine, once."""

from __future__ import annotations

import click

from yarnflow.cli.common import CONTEXT


@click.command("prepare", context_settings=CONTEXT)
@click.option("--verbose", is_flag=True, help="Show the traceback of an error.")
def command(verbose: bool) -> None:
    """Keep loaded Java classes in archives, so that drivers and executors start faster.

    Takes a minute or two, once per machine, Java and Spark.
    """
    from yarnflow.entrypoint.standalone.prepare import make_archives

    made, directory = make_archives()
    click.echo(
        f"Class-data archives {'made' if made else 'are there already, or being made,'} in {directory}."
    )
