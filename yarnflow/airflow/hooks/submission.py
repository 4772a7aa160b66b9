"""What is submitted, and how; pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from yarnflow.airflow.hooks.errors import CommandFailed
from yarnflow.errors import ProgramFailed, UserCodeError

#: what errors advise whoever types a command → the same of a task
_IN_A_TASK: Final = (
    (r"--restore none", "restore='none'"),
    (r"(?<![\w-])-s ([^\s,)]+)", r"restore=\1"),
    (r"--allow-non-restored-state", "option execution.state-recovery.ignore-unclaimed-state"),
    (r"--on-existing attach or replace", "on_existing='attach' or 'replace'"),
    (r"-m host:port", "target='remote'"),
)
_OF_PROGRAMS: Final = frozenset({ProgramFailed.code, UserCodeError.code})


@dataclass(frozen=True, slots=True)
class Submit:
    """What is submitted, and how; as the flags of ``yarnflow submit``."""

    application: str
    arguments: Sequence[str] = ()
    #: empty = that of the connection
    target: str = ""
    job_key: str = ""
    on_existing: str = "attach"
    #: ``latest``, ``none`` or a path; empty = ``latest`` if the last job of the key failed
    restore: str = ""
    name: str = ""
    parallelism: int | None = None
    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    files: Sequence[str] = ()


def submit_arguments(submit: Submit, default_target: str, *, detached: bool) -> list[str]:
    """The command line behind ``yarnflow submit``, without options.

    Raises
    ------
    CommandFailed
        The program would be taken for a flag, or there is none.
    """
    program = submit.application
    if not program or program.startswith("-"):
        raise CommandFailed("USAGE", f"application={program!r} is no path of a program (./ before a dash)")
    target = submit.target or default_target
    arguments = ["-t", target] if target else []
    arguments += ["-d"] if detached else []
    for flag, value in (
        ("--job-key", submit.job_key),
        ("--on-existing", submit.on_existing),
        ("--restore", submit.restore),
        ("--name", submit.name),
        ("-p", submit.parallelism),
        ("-pyfs", ",".join(submit.files)),
    ):
        # a template may give nothing
        if value is not None and value != "":
            arguments += [flag, str(value)]
    return [*arguments, program, *submit.arguments]


def in_a_task(error: CommandFailed) -> CommandFailed:
    """An error of a submit, with arguments of the task in place of flags of the command."""
    message = str(error)
    # what a program says is its own
    for flag, argument in _IN_A_TASK if error.code not in _OF_PROGRAMS else ():
        message = re.sub(flag, argument, message)
    return CommandFailed(error.code, message, error.details, error.document)
