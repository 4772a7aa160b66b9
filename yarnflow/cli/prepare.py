"""``yarnflow prepare``: makes what lets jobs start faster on this machine, once."""

from __future__ import annotations

from dataclasses import dataclass

import click

from yarnflow.cli.output import Shown, Verb


@dataclass(frozen=True, slots=True)
class Prepared:
    """Where the archives are."""

    directory: str
    #: else they were there already, or another command makes them
    made: bool


@click.command("prepare", cls=Verb, answer=Prepared)
@click.option("--verbose", is_flag=True, help="Show the traceback of an error.")
def command(verbose: bool) -> Shown:
    """Keep loaded Java classes in archives, so that drivers and executors start faster.

    Takes a minute or two, once per machine, Java and Spark.
    """
    from yarnflow.entrypoint.standalone.prepare import make_archives

    made, directory = make_archives()
    words = "made" if made else "are there already, or being made,"
    return Shown(Prepared(str(directory), made), f"Class-data archives {words} in {directory}.")
