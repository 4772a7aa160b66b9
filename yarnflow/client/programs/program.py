"""The user's program: found, checked, told apart, run.

A program that imports yarnflow or pyflink, itself or through modules of its own (beside it, or shipped
with it), is a DataStream program whose main runs in this process and builds the job graph. One that
imports pyspark is a script whose main runs in the driver. Where its text does not tell, it runs here
until it imports one of them (:mod:`yarnflow.client.programs.program_kind`). Nothing of the program runs
before its syntax was checked.

Flink counterpart: ``PackagedProgram``; PyFlink's ``PythonDriver``.
"""

from __future__ import annotations

import ast
import builtins
import io
import re
import sys
import traceback
import types
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import yarnflow
from yarnflow.client.programs.program_kind import KindTeller, ScriptFound, kind_of
from yarnflow.core.messages import ProgramKind
from yarnflow.errors import (
    ConfigError,
    GraphError,
    NoExecuteCall,
    ProgramError,
    ProgramFailed,
    ProgramNotFound,
    ProgramSyntaxError,
    YarnflowError,
)
from yarnflow.graph import import_finder
from yarnflow.graph.closures import is_installed

#: ``job.py:12`` as messages name a line
_LINE: Final = re.compile(r"^\S+:\d+: ")
_PACKAGE_ROOT: Final = str(Path(yarnflow.__file__).parent) + "/"


@dataclass(frozen=True, slots=True)
class Program:
    """A program that may be run."""

    #: as the user wrote it, for messages and tracebacks
    path: str
    arguments: tuple[str, ...]
    #: None: what it imports first when it runs will tell
    kind: ProgramKind | None
    code: types.CodeType = field(repr=False)
    content: bytes = field(repr=False)

    @property
    def name(self) -> str:
        return Path(self.path).name


def load_program(path: str, arguments: Sequence[str] = (), search_path: Sequence[str] = ()) -> Program:
    """Read and check a program; nothing of it is run.

    Parameters
    ----------
    search_path : sequence of str
        Modules, directories and archives that it may import from as well (``-pyfs``).

    Raises
    ------
    ProgramNotFound
        No readable file there.
    ProgramSyntaxError
        Not valid Python; the message names the line.
    NoExecuteCall
        There is nothing in it.
    """
    file = Path(path)
    try:
        content = file.read_bytes()
    except FileNotFoundError:
        raise ProgramNotFound(f"program {path} does not exist (looked in {Path.cwd()})") from None
    except IsADirectoryError:
        raise ProgramNotFound(f"program {path} is a directory; name the Python file in it") from None
    except OSError as error:
        raise ProgramNotFound(f"program {path} cannot be read: {error.strerror}") from None
    try:
        tree = ast.parse(content, filename=path)
        code = compile(tree, path, "exec", dont_inherit=True)
    except SyntaxError as error:
        text = (error.text or "").strip()
        where = f"{path}, line {error.lineno}" if error.lineno else path
        raise ProgramSyntaxError(f"{where}: {error.msg}" + (f": {text}" if text else "")) from None
    except (ValueError, RecursionError) as error:
        raise ProgramSyntaxError(f"{path}: {error}") from None
    if not tree.body:
        raise NoExecuteCall(f"program {path} has no statements: there is nothing to run")
    kind = kind_of(tree, [str(file.resolve().parent), *_searched(search_path)])
    return Program(path, tuple(arguments), kind, code, content)


def run_main(program: Program, search_path: Sequence[str] = ()) -> None:
    """Run the program as ``python PROGRAM ARGS…`` would, in this process.

    It stays ``sys.modules["__main__"]`` afterwards: its functions may still be pickled by jobs
    that it started without waiting.

    Parameters
    ----------
    search_path : sequence of str
        Modules, directories and archives that it may import from as well (``-pyfs``).

    Raises
    ------
    ProgramFailed
        It raised; the error carries the user's frames only.
    YarnflowError
        It raised one of these itself; those about the program name its line.
    SystemExit
        It called ``sys.exit``.
    ScriptFound
        Its kind was not known, and it is a PySpark script.
    """
    import_finder.install()
    if isinstance(sys.stdout, io.TextIOWrapper):
        # Python holds lines back where standard output is a pipe or a file, and what its jobs print does
        # not pass through here: it would come first
        sys.stdout.reconfigure(line_buffering=True)
    module = types.ModuleType("__main__")
    file = Path(program.path)
    module.__file__ = str(file.absolute())
    module.__dict__["__builtins__"] = builtins
    sys.argv = [program.path, *program.arguments]
    sys.path[:0] = [str(file.resolve().parent), *_searched(search_path)]
    sys.modules["__main__"] = module
    try:
        if program.kind is not None:
            exec(program.code, module.__dict__)
            return
        with KindTeller() as teller:
            try:
                exec(program.code, module.__dict__)
            finally:
                # whatever the program has made of it
                if teller.is_script:
                    raise ScriptFound
    except YarnflowError as error:
        _name_line(error)
        raise
    except Exception as error:
        summary = "".join(traceback.format_exception_only(error)).strip().splitlines()[-1]
        if isinstance(error, ModuleNotFoundError) and str(error) == f"No module named {error.name!r}":
            summary += "; modules are found beside the program, and in what -pyfs names"
        raise ProgramFailed(f"{program.path} failed: {summary}", user_traceback(error)) from None


def _searched(search_path: Sequence[str]) -> list[str]:
    """A module is found in its directory, others are themselves what is searched."""
    return [str(Path(entry).parent) if entry.endswith(".py") else entry for entry in search_path]


def _name_line(error: YarnflowError) -> None:
    """Begin the message of an error about the program with the line that raised it, unless it names one."""
    if not isinstance(error, (ConfigError, GraphError, ProgramError)) or _LINE.search(error.message):
        return
    frames = [f for f in traceback.extract_tb(error.__traceback__) if not _is_ours(f.filename)]
    own = [f for f in frames if not is_installed(f.filename)]
    if own:
        error.message = f"{Path(own[-1].filename).name}:{own[-1].lineno}: {error.message}"
        error.args = (error.message,)


def user_traceback(error: BaseException) -> str:
    """The traceback as Python prints it, without frames of yarnflow and of the interpreter."""
    formatted = traceback.TracebackException.from_exception(error)
    _only_user_frames(formatted)
    return "".join(formatted.format())


def _only_user_frames(formatted: traceback.TracebackException) -> None:
    formatted.stack[:] = [frame for frame in formatted.stack if not _is_ours(frame.filename)]
    for chained in (formatted.__cause__, formatted.__context__):
        if chained is not None:
            _only_user_frames(chained)
    for part in getattr(formatted, "exceptions", None) or ():
        _only_user_frames(part)


def _is_ours(filename: str) -> bool:
    return filename.startswith((_PACKAGE_ROOT, "<frozen "))
