"""``yarnflow doctor``: what jobs need, one line per check, before a job finds out."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import click

from yarnflow.cli.common import common_options
from yarnflow.cli.output import Shown, Verb, wants_json

if TYPE_CHECKING:
    from yarnflow.config.configuration import Configuration

#: some check failed
FAILED_STATUS: Final = 1


@dataclass(frozen=True, slots=True)
class Check:
    """What one check has found."""

    name: str
    ok: bool
    #: one that it depends on is not ok
    skipped: bool
    text: str


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """All checks, in their order."""

    #: ``execution.target``
    target: str
    checks: tuple[Check, ...]


@click.command("doctor", cls=Verb, answer=Diagnosis)
@click.option("-t", "--target", metavar="TARGET", help="Default: execution.target, else YARN.")
@click.option("--no-container", is_flag=True, help="On YARN, do not start an application.")
@common_options
def command(
    target: str | None, no_container: bool, configuration: Configuration
) -> Shown:
    """Check what jobs need, line by line, and say what to do.

    On YARN this ends with a container of its own, which is gone after some seconds.  The exit
    status is 0 only when all is ok.
    """
    from yarnflow.cli.targets import find_target
    from yarnflow.client.diagnose.checks import run_checks
    from yarnflow.client.diagnose.doctor import checks_for, default_target

    checked = find_target(target or default_target(configuration, os.environ))
    checks, close = checks_for(checked, configuration, os.environ, container=not no_container)
    click.echo(f"target {checked.name}", err=True)
    width = max(len(check.name) for check in checks) + 2
    found = []
    try:
        for finding in run_checks(checks):
            found.append(Check(finding.name, finding.ok, finding.skipped, finding.text))
            word = "ok" if finding.ok else "-" if finding.skipped else "FAILED"
            if not wants_json():
                click.echo(f"{word:<8}{finding.name:<{width}}{finding.text}")
    finally:
        close()
    failed = sum(not check.ok for check in found)
    if failed:
        click.echo(f"{failed} of {len(checks)} checks are not ok", err=True)
    return Shown(Diagnosis(checked.name, tuple(found)), status=FAILED_STATUS if failed else 0)
