"""How an error is shown: for people the user's own traceback, then one line; for programs one document.

Either way the exit status is that of the error's class.
"""

from __future__ import annotations

import json
import sys
import traceback
from typing import Any, Final

import click

from yarnflow.errors import InternalError, YarnflowError

INTERNAL_STATUS: Final = 90
#: of a command line that cannot be read; no error of ours has it
USAGE_CODE: Final = "USAGE"


def report_error(error: Exception, verbose: bool, as_json: bool = False) -> int:
    """Write an error to standard error; returns the exit status it means."""
    sys.stdout.flush()
    if verbose:
        traceback.print_exception(error)
    if not isinstance(error, YarnflowError):
        summary = "".join(traceback.format_exception_only(error)).strip().splitlines()[-1]
        hint = "" if verbose else "; run again with --verbose and report what it prints"
        text = f"internal error: {summary}{hint}"
        return _write(InternalError.code, text, INTERNAL_STATUS, as_json=as_json)
    details = getattr(error, "traceback_text", "") or "\n".join(getattr(error, "__notes__", ()))
    text = " ".join(str(error).split())
    if isinstance(error, InternalError):
        text += "; this is a bug in yarnflow, please report it with this line and the logs"
    return _write(
        error.code, text, error.exit_code, retryable=error.retryable, details=details, as_json=as_json
    )


def report_usage(message: str, status: int, as_json: bool = False) -> int:
    """Write what is wrong with a command line to standard error; returns the exit status."""
    return _write(USAGE_CODE, " ".join(message.split()), status, as_json=as_json)


def _write(
    code: str, message: str, status: int, *, retryable: bool = False, details: str = "", as_json: bool
) -> int:
    if as_json:
        # one line, as notes for people may stand before it
        error: dict[str, Any] = {
            "code": code,
            "message": message,
            "exit_status": status,
            "retryable": retryable,
        }
        if details:
            error["details"] = details
        click.echo(json.dumps({"error": error}, ensure_ascii=False), err=True)
        return status
    if details:
        click.echo(details.rstrip("\n"), err=True)
    click.echo(f"error: {message}", err=True)
    return status
