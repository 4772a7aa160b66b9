"""How an error is shown: the user's own traceback first, then one line, then the exit status."""

from __future__ import annotations

import sys
import traceback
from typing import Final

import click

from yarnflow.errors import InternalError, YarnflowError

INTERNAL_STATUS: Final = 90


def report_error(error: Exception, verbose: bool) -> int:
    """Write an error to standard error; returns the exit status it means."""
    sys.stdout.flush()
    if not isinstance(error, YarnflowError):
        if verbose:
            traceback.print_exception(error)
        summary = "".join(traceback.format_exception_only(error)).strip().splitlines()[-1]
        hint = "" if verbose else "; run again with --verbose and report what it prints"
        click.echo(f"error: internal error: {summary}{hint}", err=True)
        return INTERNAL_STATUS
    details = getattr(error, "traceback_text", "") or "\n".join(getattr(error, "__notes__", ()))
    if details:
        click.echo(details.rstrip("\n"), err=True)
    if verbose:
        traceback.print_exception(error)
    text = " ".join(str(error).split())
    if isinstance(error, InternalError):
        text += "; this is a bug in yarnflow, please report it with this line and the logs"
    click.echo(f"error: {text}", err=True)
    return error.exit_code
