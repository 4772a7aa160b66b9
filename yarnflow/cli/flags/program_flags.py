"""Flags that say which Python program is meant, and with which Python it runs: ``submit`` and ``info``.

Flink counterpart: ``ProgramOptionsUtils`` and its options ``-py``, ``-pym``, ``-pyfs``, ``-pyclientexec``.
"""

from __future__ import annotations

import ast
import os
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from yarnflow.errors import InvalidOption, ProgramNotFound

F = TypeVar("F", bound=Callable[..., Any])

_FLAGS: Final = (
    click.option(
        "-pyclientexec",
        "--pyClientExecutable",
        "py_client_executable",
        hidden=True,
        help="must be the Python that runs yarnflow",
    ),
    click.option(
        "-pyfs",
        "--pyFiles",
        "py_files",
        metavar="FILES",
        help="Comma list of .py, .zip, .egg files and directories.",
    ),
    click.option(
        "-pym",
        "--pyModule",
        "py_module",
        metavar="MODULE",
        help="The program as a module of what -pyfs names.",
    ),
    click.option(
        "-py",
        "--python",
        "python_file",
        metavar="FILE",
        help="The program, as Flink names it.",
        type=click.Path(),
    ),
)


@dataclass(frozen=True, slots=True)
class NamedProgram:
    """What is to run."""

    #: as the user wrote it; of ``info`` perhaps a job's id
    path: str
    arguments: tuple[str, ...]
    #: what it may import from as well
    files: tuple[str, ...]


def python_flags(function: F) -> F:
    """The flags, for :func:`python_program`."""
    for option in _FLAGS:
        function = option(function)
    return function


def python_program(
    flags: Mapping[str, str | None], program: str | None, arguments: Sequence[str]
) -> NamedProgram | None:
    """The program that flags and arguments name; None = none.

    Raises
    ------
    InvalidOption
        It is named twice, or another Python is to run it.
    ProgramNotFound
        No file is the module of ``-pym``.
    """
    files = tuple(file for file in (flags["py_files"] or "").split(",") if file)
    file, module = flags["python_file"], flags["py_module"]
    if file is not None and module is not None:
        raise InvalidOption("-py and -pym both name the program; use one of them")
    _check_client(flags["py_client_executable"])
    named = file if module is None else _module_file(module, files)
    if named is None:
        return None if program is None else NamedProgram(program, tuple(arguments), files)
    before = () if program is None else (program,)
    return NamedProgram(named, (*before, *arguments), files)


def _module_file(module: str, files: Sequence[str]) -> str:
    if not files:
        raise InvalidOption(f"-pym {module} needs -pyfs, which names where the module is")
    parts = module.split(".")
    for entry in map(Path, files):
        if entry.suffix == ".py" and parts == [entry.stem]:
            return _checked(entry, module)
        for candidate in (entry.joinpath(*parts).with_suffix(".py"), entry.joinpath(*parts, "__main__.py")):
            if candidate.is_file():
                return _checked(candidate, module)
    raise ProgramNotFound(
        f"module {module} (-pym) is in no directory of -pyfs ({', '.join(files)}); of an archive name the "
        "directory it was made from"
    )


def _checked(file: Path, module: str) -> str:
    """The file, unless it imports relatively: it runs as a file, which has no package."""
    try:
        tree = ast.parse(file.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return str(file)  # said when it is loaded
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level:
            raise InvalidOption(
                f"-pym {module}: {file}:{node.lineno} imports relative to its package, and a program runs "
                f"as a file; write the whole name, as in from {module.rpartition('.')[0] or module} import …"
            )
    return str(file)


def _check_client(executable: str | None) -> None:
    if executable is None:
        return
    found = shutil.which(executable)
    if found is None or not os.path.samefile(found, sys.executable):
        raise InvalidOption(
            f"-pyclientexec {executable}: main() runs in the Python that runs yarnflow, {sys.executable}; "
            "install yarnflow there and run its yarnflow command"
        )


__all__ = ["NamedProgram", "python_flags", "python_program"]
