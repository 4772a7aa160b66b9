"""``yarnflow doctor``: what jobs need, one line per check, before a job finds out."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import click

from yarnflow.cli.common import CONTEXT, common_options, load_configuration

#: some check failed
FAILED_STATUS: Final = 1


@click.command("doctor", context_settings=CONTEXT)
@click.option("-t", "--target", metavar="TARGET", help="Default: execution.target, else YARN.")
@click.option("--no-container", is_flag=True, help="On YARN, do not start an application.")
@common_options
def command(
    target: str | None, no_container: bool, dynamic: tuple[str, ...], conf_dir: Path | None, verbose: bool
) -> int:
    """Check what jobs need, line by line, and say what to do.

    On YARN this ends with a container of its own, which is gone after some seconds.  The exit
    status is 0 only when all is ok.
    """
    from yarnflow.cli.targets import find_target
    from yarnflow.client.diagnose.checks import run_checks
    from yarnflow.client.diagnose.doctor import checks_for, default_target

    configuration = load_configuration(conf_dir, dynamic)
    checked = find_target(target or default_target(configuration, os.environ))
    checks, close = checks_for(checked, configuration, os.environ, container=not no_container)
    click.echo(f"target {checked.name}", err=True)
    width = max(len(check.name) for check in checks) + 2
    failed = 0
    try:
        for finding in run_checks(checks):
            failed += not finding.ok
            word = "ok" if finding.ok else "-" if finding.skipped else "FAILED"
            click.echo(f"{word:<8}{finding.name:<{width}}{finding.text}")
    finally:
        close()
    if failed:
        click.echo(f"{failed} of {len(checks)} checks are not ok", err=True)
        return FAILED_STATUS
    return 0
