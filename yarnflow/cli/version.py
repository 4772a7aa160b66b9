"""``yarnflow version``."""

from __future__ import annotations

import platform
from dataclasses import dataclass

import click

from yarnflow import __version__
from yarnflow.cli.output import Shown, Verb, wants_json

_LIBRARIES = ("pyspark", "pyarrow", "thrift", "cloudpickle")


@dataclass(frozen=True, slots=True)
class Versions:
    """Of what runs here."""

    yarnflow: str
    python: str
    #: name → version; empty = not installed
    libraries: dict[str, str]


@click.command("version", cls=Verb, answer=Versions)
@click.option("--verbose", is_flag=True, help="Versions of what it stands on, too.")
def command(verbose: bool) -> Shown:
    """Show versions."""
    if not (verbose or wants_json()):
        return Shown(None, f"yarnflow {__version__}")
    from importlib.metadata import PackageNotFoundError, version

    libraries = {}
    for name in _LIBRARIES:
        try:
            libraries[name] = version(name)
        except PackageNotFoundError:
            libraries[name] = ""
    lines = [f"yarnflow {__version__}", f"Python {platform.python_version()}"]
    lines += [f"{name} {found or 'is not installed'}" for name, found in libraries.items()]
    return Shown(Versions(__version__, platform.python_version(), libraries), "\n".join(lines))
