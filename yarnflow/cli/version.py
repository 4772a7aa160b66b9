"""``yarnflow version``."""

from __future__ import annotations

import platform

import click

from yarnflow import __version__
from yarnflow.cli.common import CONTEXT


@click.command("version", context_settings=CONTEXT)
@click.option("--verbose", is_flag=True, help="Versions of what it stands on, too.")
def command(verbose: bool) -> None:
    """Show versions."""
    click.echo(f"yarnflow {__version__}")
    if verbose:
        from importlib.metadata import PackageNotFoundError, version

        click.echo(f"Python {platform.python_version()}")
        for name in ("pyspark", "pyarrow", "thrift", "cloudpickle"):
            try:
                click.echo(f"{name} {version(name)}")
            except PackageNotFoundError:
                click.echo(f"{name} is not installed")
