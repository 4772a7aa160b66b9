"""The command itself: finds the verb, turns every error into one line and an exit status.

Verbs are imported only when they are called, so that ``yarnflow --help`` costs nothing.  Flink
counterpart: ``CliFrontend``.
"""

from __future__ import annotations

import difflib
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Final

import click

from yarnflow import __version__
from yarnflow.cli.common import Terminated
from yarnflow.cli.output import requested
from yarnflow.cli.report import INTERNAL_STATUS, report_error, report_usage

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

#: verb → (module, help line); the help is here so that listing the verbs imports none of them
VERBS: Final[dict[str, tuple[str, str]]] = {
    "submit": ("submit", "Run a program on a cluster."),
    "info": ("info", "Show the plan of a program, or the details of a job."),
    "list": ("list_jobs", "List the jobs of all of your clusters, or of one."),
    "cancel": ("cancel", "Cancel a job."),
    "stop": ("stop", "Stop a job with a savepoint."),
    "savepoint": ("savepoint", "Take a savepoint of a running job; inspect or dispose of one."),
    "checkpoint": ("checkpoint", "Take a checkpoint of a running job now."),
    "checkpoints": ("checkpoints", "List the checkpoints of a job."),
    "recover": ("recover", "Bring back jobs that ZooKeeper has forgotten."),
    "drill": ("drill", "Break something a running job needs, and show how it recovers."),
    "session": ("session", "Start, stop, list or follow sessions on YARN."),
    "jobmanager": ("jobmanager", "Run the JobManager of a standalone cluster."),
    "taskmanager": ("taskmanager", "Run a TaskManager of a standalone cluster."),
    "historyserver": ("historyserver", "Show jobs that have ended, from their archives."),
    "dashboard": ("dashboard", "Print a link that lets a browser into a cluster's dashboard."),
    "token": ("token", "Print the token of a cluster's REST interface."),
    "logs": ("logs", "Show the logs of a job or application on YARN."),
    "doctor": ("doctor", "Check what jobs need, line by line, and say what to do."),
    "env": ("env", "Pack and check Python environments for containers."),
    "prepare": ("prepare", "Make jobs start faster on this machine, once."),
    "log-level": ("log_level", "Change what a running cluster logs, until its processes start again."),
    "completion": ("completion", "Print the completion of commands for a shell."),
    "version": ("version", "Show versions."),
}
#: habits of Flink's users
ALIASES: Final = {"run": "submit", "run-application": "submit"}

USAGE_STATUS: Final = 2
INTERRUPT_STATUS: Final = 130
TERMINATE_STATUS: Final = 143


class LazyGroup(click.Group):
    """A group whose commands are imported when they are needed."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All verbs, in the order of the table."""
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        verb = VERBS.get(ALIASES.get(cmd_name, cmd_name))
        if verb is None:
            return None
        command = import_module(f"yarnflow.cli.{verb[0]}").command
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Name the nearest verb when there is none of that name."""
        name = args[0]
        if name not in VERBS and name not in ALIASES and not name.startswith("-"):
            near = difflib.get_close_matches(name, [*VERBS, *ALIASES], n=1)
            hint = f"did you mean {near[0]}?" if near else f"verbs: {', '.join(VERBS)}"
            ctx.fail(f"no such verb: {name}; {hint}")
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Verbs from the table; options as elsewhere.  No verb is imported for it."""
        # needed for nothing else
        from click.shell_completion import CompletionItem

        if incomplete.startswith("-"):
            return click.Command.shell_complete(self, ctx, incomplete)
        found = ((name, text) for name, (_, text) in VERBS.items() if name.startswith(incomplete))
        return [CompletionItem(name, help=text) for name, text in found]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of verbs, from the table."""
        with formatter.section("Verbs"):
            formatter.write_dl([(name, text) for name, (_, text) in VERBS.items()])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]}, no_args_is_help=True)
@click.version_option(__version__, message="yarnflow %(version)s")
def yarnflow() -> None:
    """Flink's operations for PySpark jobs."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit status.  The console script ``yarnflow``."""
    argv = list(sys.argv[1:] if arguments is None else arguments)
    verbose, as_json = requested(argv, "--verbose"), requested(argv, "--json")
    try:
        status = yarnflow.main(args=argv, prog_name="yarnflow", standalone_mode=False)
        sys.stdout.flush()
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message())
        return USAGE_STATUS
    except click.ClickException as error:
        # "No such option: --x Did you mean --y?" and the like
        return report_usage(error.format_message(), USAGE_STATUS, as_json)
    except (click.exceptions.Abort, KeyboardInterrupt) as interrupt:
        # click turns an interrupt into Abort
        cause = interrupt.__cause__ or interrupt.__context__ or interrupt
        return TERMINATE_STATUS if isinstance(cause, Terminated) else INTERRUPT_STATUS
    except BrokenPipeError:
        # the reader of our output has gone; python must not complain about it when it ends
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except SystemExit as end:
        return _exit_status(end)
    except Exception as error:
        return report_error(error, verbose, as_json)
    return status if isinstance(status, int) else 0


def _exit_status(end: SystemExit) -> int:
    if end.code is None or isinstance(end.code, int):
        return end.code or 0
    click.echo(str(end.code), err=True)
    return 1


__all__ = ["ALIASES", "INTERNAL_STATUS", "VERBS", "main"]
