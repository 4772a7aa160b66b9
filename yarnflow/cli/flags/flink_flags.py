"""Flags of Flink's command line, declared once: taken with a word, or refused with what to do instead.

Those whose meaning is an option's or a flag's here are declared with it.  Unknown to click, ``-pym job``
would be ``-p`` with the value ``ym``.  All are left out of the help.  Flink counterpart:
``CliFrontendParser``, ``FlinkYarnSessionCli``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class FlinkFlag:
    """One flag of Flink's.

    Attributes
    ----------
    names : tuple of str
    said : str
        What to use instead, or why it changes nothing.
    takes_value : bool
    refused : bool
        What it asks for cannot be had, so that taking it would lose something.
    """

    names: tuple[str, ...]
    said: str
    takes_value: bool = True
    refused: bool = True


_ENVIRONMENT: Final = "`yarnflow env pack` packs an environment, and -Dpython.environment names the archive"
#: of ``flink run`` and ``flink info``
PROGRAM_FLAGS: Final = (
    FlinkFlag(("-pyreq", "--pyRequirements"), f"packages are not installed for a job: {_ENVIRONMENT}"),
    FlinkFlag(("-pypath", "--pyPythonPath"), "-pyfs names directories of modules"),
    FlinkFlag(("-c", "--class"), "a program is a Python file; there is no JVM of Flink"),
)
#: of ``flink info`` alone: a plan runs nothing
INFO_FLAGS: Final = (
    *PROGRAM_FLAGS,
    FlinkFlag(("-pyexec", "--pyExecutable"), "a plan runs no workers", refused=False),
    FlinkFlag(("-pyarch", "--pyArchives"), "a plan runs no workers", refused=False),
    FlinkFlag(("-C", "--classpath"), "a plan needs no jars", refused=False),
    FlinkFlag(("-j", "--jarfile"), "a plan needs no jars", refused=False),
)
#: of clusters on YARN, in ``flink run`` and ``yarn-session.sh``
YARN_FLAGS: Final = (
    FlinkFlag(("-yat", "--yarnapplicationType"), "YARN shows the type skein", refused=False),
    FlinkFlag(("-yj", "--yarnjar"), "every submit ships its own version", refused=False),
    FlinkFlag(
        ("-yq", "--yarnquery"), "`yarnflow session start -q` shows what YARN has", takes_value=False
    ),
)
SESSION_FLAGS: Final = (
    FlinkFlag(("-at", "--applicationType"), "YARN shows the type skein", refused=False),
    FlinkFlag(("-j", "--jar"), "every submit ships its own version", refused=False),
)
CHECKPOINT_FLAGS: Final = (
    FlinkFlag(
        ("-full", "--full"),
        "a checkpoint is the record of a committed batch; for files that need no earlier ones take a "
        "savepoint: yarnflow savepoint JOB DIR",
        takes_value=False,
    ),
)
SAVEPOINT_FLAGS: Final = (
    FlinkFlag(("-j", "--jarfile"), "a savepoint is disposed of without the program", refused=False),
)
_CANONICAL: Final = (
    "-type canonical: savepoints have one format, which is Spark's own (native); leave -type out"
)


def flink_flags(*flags: FlinkFlag) -> Callable[[F], F]:
    """Have a command take, or refuse, flags of Flink's."""

    def add(function: F) -> F:
        for flag in flags:
            option = click.option(
                *flag.names,
                flag.names[0].lstrip("-"),
                is_flag=not flag.takes_value,
                hidden=True,
                expose_value=False,
                callback=_answering(flag),
                help=("refused: " if flag.refused else "changes nothing: ") + flag.said,
            )
            function = option(function)
        return function

    return add


def savepoint_type(function: F) -> F:
    """``-type`` of ``flink savepoint`` and ``flink stop``: native is what there is."""
    option = click.option(
        "-type",
        "--type",
        "savepoint_format",
        type=click.Choice(["native", "canonical"], case_sensitive=False),
        hidden=True,
        expose_value=False,
        callback=_refuse_canonical,
        help="native is what there is; canonical is refused",
    )
    return option(function)


def _answering(flag: FlinkFlag) -> Callable[[click.Context, click.Parameter, Any], None]:
    def answer(context: click.Context, parameter: click.Parameter, value: Any) -> None:
        if not value:
            return
        if flag.refused:
            raise click.UsageError(f"{flag.names[0]} of Flink is not here; {flag.said}")
        click.echo(f"note: {flag.names[0]} of Flink changes nothing here: {flag.said}", err=True)

    return answer


def _refuse_canonical(context: click.Context, parameter: click.Parameter, value: str | None) -> None:
    if value == "canonical":
        raise click.UsageError(_CANONICAL)


__all__ = [
    "CHECKPOINT_FLAGS",
    "INFO_FLAGS",
    "PROGRAM_FLAGS",
    "SAVEPOINT_FLAGS",
    "SESSION_FLAGS",
    "YARN_FLAGS",
    "FlinkFlag",
    "flink_flags",
    "savepoint_type",
]
