"""Flags of ``flink run`` and ``flink info`` that a submit here does not have: each says what to use instead.

Unknown to click, ``-pym job`` would be ``-p`` with the value ``ym``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])

_ENVIRONMENT: Final = "`yarnflow env pack` packs an environment, and -Dpython.environment names the archive"
#: flags, whether they take a value, and what to do instead
_REFUSED: Final[tuple[tuple[tuple[str, str], bool, str], ...]] = (
    (("-pym", "--pyModule"), True, "name the program's file, and with -pyfs the directory of its packages"),
    (("-pyreq", "--pyRequirements"), True, f"packages are not installed for a job: {_ENVIRONMENT}"),
    (("-pyexec", "--pyExecutable"), True, f"-Dpython.executable names an interpreter; {_ENVIRONMENT}"),
    (("-pyclientexec", "--pyClientExecutable"), True, "main() runs in the Python that runs yarnflow"),
    (("-pypath", "--pyPythonPath"), True, "-pyfs names directories of modules"),
    (("-c", "--class"), True, "a program is a Python file; there is no JVM of Flink"),
)


def refused_flags(function: F) -> F:
    """Have the command name what to use instead of a flag of Flink's; left out of the help."""
    for flags, takes_value, instead in _REFUSED:
        option = click.option(
            *flags,
            flags[0].lstrip("-"),
            is_flag=not takes_value,
            hidden=True,
            expose_value=False,
            callback=_refusing(flags[0], instead),
        )
        function = option(function)
    return function


def _refusing(flag: str, instead: str) -> Callable[[click.Context, click.Parameter, Any], None]:
    def refuse(context: click.Context, parameter: click.Parameter, value: Any) -> None:
        if value:
            raise click.UsageError(f"{flag} of Flink is not here; {instead}")

    return refuse


__all__ = ["refused_flags"]
