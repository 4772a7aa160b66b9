"""Flags that each stand for an option: Flink's, its YARN command line's, ``spark-submit``'s and our own.

Declared as tables; the command gets what was typed as values of options, and has no parameter for each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any, Final, TypeVar, cast

import click

from yarnflow.config.option import AnyOption
from yarnflow.config.options import client, cluster, job, memory, python, yarn
from yarnflow.core.jars.request import EXCLUDES, PACKAGES, REPOSITORIES, SPARK_JARS
from yarnflow.errors import InvalidOption

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class OptionFlag:
    """One flag.

    Attributes
    ----------
    names : tuple of str
    option : ConfigOption or str
        What it sets; a key for what is Spark's.
    help : str
        Empty = a habit of Flink's users, left out of the help, which names the option itself.
    sets : str, optional
        The option's value where the flag has none of its own.
    joined_by : str, optional
        May be repeated; the values are one, with this between them.
    convert : callable
        The option's value from what was typed.
    """

    names: tuple[str, ...]
    option: AnyOption | str
    help: str = ""
    metavar: str = ""
    sets: str | None = None
    joined_by: str | None = None
    type: click.ParamType[Any] | None = None
    convert: Callable[[str], str] = str

    @property
    def key(self) -> str:
        """Of the option."""
        return self.option if isinstance(self.option, str) else self.option.key

    def add(self, function: F, name: str) -> F:
        """Give it to a command, under a parameter's name."""
        settings: dict[str, Any] = {"hidden": not self.help, "help": self.help or self.key}
        if self.sets is not None:
            settings["is_flag"] = True
        else:
            settings |= {"metavar": self.metavar or None, "multiple": self.joined_by is not None}
            settings["type"] = self.type
        return click.option(*self.names, name, **settings)(function)

    def value(self, typed: Any) -> str | None:
        """The option's value; None = the flag was not typed."""
        if typed is None or typed is False or typed == ():
            return None
        if self.sets is not None:
            return self.sets
        if self.joined_by is not None:
            return self.joined_by.join(map(self.convert, typed))
        return self.convert(str(typed))


def option_flags(flags: Sequence[OptionFlag]) -> Callable[[F], F]:
    """Give a command all of them; it gets ``values``, key → text, of those that were typed."""

    def add(function: F) -> F:
        names = {f"option_{number}": flag for number, flag in enumerate(flags)}

        @wraps(function)
        def with_values(*arguments: Any, **given: Any) -> Any:
            values: dict[str, str] = {}
            for name, flag in names.items():
                value = flag.value(given.pop(name))
                if value is not None:
                    # of two flags for one option the first of the table
                    values.setdefault(flag.key, value)
            return function(*arguments, values=values, **given)

        made = cast(F, with_values)
        for name, flag in reversed(names.items()):
            made = flag.add(made, name)
        return made

    return add


def _mebibytes(text: str) -> str:
    """Flink takes a number without its unit for MiB here, and options take it for bytes."""
    return f"{text}m" if text.strip().isdigit() else text


def _files(text: str) -> str:
    """The files of a directory to ship, as ``yarn.ship-files`` names them.

    Raises
    ------
    InvalidOption
        No directory, or one with directories in it.
    """
    directory = Path(text)
    if not directory.is_dir():
        raise InvalidOption(f"{text} is no directory; -yt and -t of Flink name one whose files are shipped")
    entries = sorted(directory.iterdir())
    if below := [entry.name for entry in entries if entry.is_dir()]:
        raise InvalidOption(
            f"{text} has directories in it ({', '.join(below)}), and files are shipped side by side; make an "
            f"archive of it, for {yarn.SHIP_ARCHIVES.key}"
        )
    return ";".join(str(entry.absolute()) for entry in entries)


#: of ``spark-submit``, and Flink's for the same
_JARS: Final = (
    OptionFlag(
        ("--jars",), SPARK_JARS, "Comma list of jars for driver and executors: paths or URIs.", "LIST"
    ),
    OptionFlag(
        ("--packages",), PACKAGES, "Comma list of Maven packages for them: group:artifact:version.", "LIST"
    ),
    OptionFlag(
        ("--repositories",), REPOSITORIES, "Comma list of repositories, beside Maven Central.", "LIST"
    ),
    OptionFlag(
        ("--exclude-packages",),
        EXCLUDES,
        "Comma list of group:artifact that packages are not to bring.",
        "LIST",
    ),
    OptionFlag(("-j", "--jarfile"), job.PIPELINE_JARS),
    OptionFlag(("-C", "--classpath"), job.PIPELINE_CLASSPATHS, joined_by=";"),
)
#: of Flink's YARN command line
_YARN: Final = (
    OptionFlag(("-ynm", "--yarnname"), yarn.APPLICATION_NAME),
    OptionFlag(("-yqu", "--yarnqueue"), yarn.APPLICATION_QUEUE),
    OptionFlag(("-yjm", "--yarnjobManagerMemory"), memory.JOBMANAGER_PROCESS_SIZE_MIB, convert=_mebibytes),
    OptionFlag(("-ytm", "--yarntaskManagerMemory"), memory.TASKMANAGER_PROCESS_SIZE_MIB, convert=_mebibytes),
    OptionFlag(("-ys", "--yarnslots"), cluster.TASKMANAGER_SLOTS),
    OptionFlag(("-ynl", "--yarnnodeLabel"), yarn.APPLICATION_NODE_LABEL),
    OptionFlag(("-yt", "--yarnship"), yarn.SHIP_FILES, joined_by=";", convert=_files),
    OptionFlag(("-yd", "--yarndetached"), client.ATTACHED, sets="false"),
)
#: of ``yarnflow submit``
SUBMIT: Final = (
    OptionFlag(
        ("-d", "--detached"), client.ATTACHED, "Return once the cluster has accepted the job.", sets="false"
    ),
    OptionFlag(
        ("-p", "--parallelism"),
        job.PARALLELISM_DEFAULT,
        "Default parallelism.",
        "N",
        type=click.IntRange(min=1),
    ),
    OptionFlag(
        ("--job-key",),
        job.JOB_KEY,
        "At most one live job has it; default: of the user, the program's path, the job's name.",
        "KEY",
    ),
    OptionFlag(
        ("--on-existing",),
        client.ON_EXISTING,
        "What to do when a live job has the key; default: attach.",
        type=click.Choice(["attach", "fail", "replace"]),
    ),
    OptionFlag(("--name",), job.PIPELINE_NAME, "Name of the job.", "NAME"),
    OptionFlag(
        ("-sae", "--shutdownOnAttachedExit"),
        client.SHUTDOWN_ON_ATTACHED_EXIT,
        "An interrupt cancels the job.",
        sets="true",
    ),
    OptionFlag(
        ("-pyarch", "--pyArchives"),
        yarn.SHIP_ARCHIVES,
        "Comma list of archives (path#directory).",
        "FILES",
    ),
    OptionFlag(("-pyexec", "--pyExecutable"), python.PYTHON_EXECUTABLE),
    *_JARS,
    *_YARN,
)
#: of ``yarnflow session start``, with the names of ``yarn-session.sh``
SESSION: Final = (
    OptionFlag(("-nm", "--name"), yarn.APPLICATION_NAME, "Name of the application in YARN.", "NAME"),
    OptionFlag(("-qu", "--queue"), yarn.APPLICATION_QUEUE, "Queue of the application.", "QUEUE"),
    OptionFlag(
        ("-s", "--slots"),
        cluster.TASKMANAGER_SLOTS,
        "Slots per TaskManager.",
        "N",
        type=click.IntRange(min=1),
    ),
    OptionFlag(
        ("-jm", "--jobManagerMemory"),
        memory.JOBMANAGER_PROCESS_SIZE_MIB,
        "Memory of the JobManager; no unit = MiB, as in Flink.",
        "SIZE",
        convert=_mebibytes,
    ),
    OptionFlag(
        ("-tm", "--taskManagerMemory"),
        memory.TASKMANAGER_PROCESS_SIZE_MIB,
        "Memory of a TaskManager; no unit = MiB, as in Flink.",
        "SIZE",
        convert=_mebibytes,
    ),
    OptionFlag(
        ("-nl", "--nodeLabel"), yarn.APPLICATION_NODE_LABEL, "Node label of the application.", "LABEL"
    ),
    OptionFlag(
        ("-t", "--ship"),
        yarn.SHIP_FILES,
        "Ship the files of a directory.  Repeatable.",
        "DIR",
        joined_by=";",
        convert=_files,
    ),
)


__all__ = ["SESSION", "SUBMIT", "OptionFlag", "option_flags"]
