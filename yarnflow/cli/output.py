"""What a verb prints: text for people, or with ``--json`` one document for programs.

One mechanism for all verbs.  A verb's function returns a :class:`Shown`; :class:`Verb` has the flag and
prints it.  With ``--json`` standard output has the document and nothing else, notes stay on standard
error, and an error is the last line there, a document of its own (:mod:`yarnflow.cli.report`).  The
shape of each document is declared with its verb; ``docs/command-line.md`` is made from that.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from pathlib import PurePath
from typing import Any, Final

import click

_STDOUT, _STDERR = 1, 2
_JSON: Final = "as_json"
_VERBOSE: Final = "verbose"
#: a program and its own arguments follow
_PROGRAM_FLAGS: Final = ("-py", "--python")
CONTEXT: Final[dict[str, Any]] = {"help_option_names": ["-h", "--help"]}


@dataclass(frozen=True, slots=True)
class Shown:
    """What a verb has to say at its end.

    Parameters
    ----------
    document : object
        For ``--json``: a dataclass, or what JSON has.
    text : str or callable
        For people; made only when it is shown.  Empty = nothing.
    status : int
        Exit status of the command.
    error : BaseException, optional
        Raised once the rest is shown.
    """

    document: Any
    text: str | Callable[[], str] = ""
    status: int = 0
    error: BaseException | None = None


class Verb(click.Command):
    """A verb that prints data.

    Parameters
    ----------
    answer : type or str
        The dataclass of its document, or words where its shape is another's.
    """

    def __init__(self, *arguments: Any, answer: type | str, **named: Any) -> None:
        super().__init__(*arguments, **{"context_settings": CONTEXT, **named})
        self.answer: Final = answer
        flag = click.Option(
            ["--json", _JSON],
            is_flag=True,
            expose_value=False,
            is_eager=True,
            callback=remember,
            help="Print one JSON document.",
        )
        # beside what all verbs have
        self.params.append(flag)

    def invoke(self, ctx: click.Context) -> Any:
        """Run it, and print what it has to say; returns the exit status."""
        result = super().invoke(ctx)
        return show(result) if isinstance(result, Shown) else result


def show(shown: Shown) -> int:
    """Print it in the form that was asked for; returns the exit status."""
    if wants_json():
        if shown.document is not None:
            click.echo(json_text(shown.document))
    else:
        text = shown.text if isinstance(shown.text, str) else shown.text()
        if text:
            click.echo(text, nl=not text.endswith("\n"))
    if shown.error is not None:
        raise shown.error
    return shown.status


@contextmanager
def answer_alone() -> Iterator[None]:
    """What a program prints goes to standard error, and so does what its libraries and children print.

    They know no ``sys.stdout``, but the descriptor.
    """
    sys.stdout.flush()
    try:
        kept = os.dup(_STDOUT)
    except OSError:
        # there is none
        with redirect_stdout(sys.stderr):
            yield
        return
    try:
        os.dup2(_STDERR, _STDOUT)
        with redirect_stdout(sys.stderr):
            yield
    finally:
        os.dup2(kept, _STDOUT)
        os.close(kept)


def wants_json() -> bool:
    """Whether the verb that runs now was asked for a document."""
    context = click.get_current_context(silent=True)
    return context is not None and context.meta.get(_JSON) is True


def said(text: str) -> None:
    """A line for people while the verb works; it is not part of a document."""
    click.echo(text, err=wants_json())


def json_text(document: Any) -> str:
    """A document as text."""
    return json.dumps(plain_values(document), indent=2, ensure_ascii=False)


def plain_values(node: Any) -> Any:
    """Dataclasses, enums, paths and their collections as JSON has them."""
    if is_dataclass(node) and not isinstance(node, type):
        return {field.name: plain_values(getattr(node, field.name)) for field in fields(node)}
    if isinstance(node, dict):
        return {key: plain_values(value) for key, value in node.items()}
    if isinstance(node, (list, tuple)):
        return [plain_values(value) for value in node]
    if isinstance(node, PurePath):
        return str(node)
    return node.value if isinstance(node, Enum) else node


def requested(argv: Sequence[str], flag: str) -> bool:
    """Whether a flag is among the options of the command, and not of the program that it names.

    For what goes wrong before, or while, the command line is read.
    """
    before = ""
    for argument in argv:
        if argument == flag:
            return True
        if argument.endswith(".py") and before not in _PROGRAM_FLAGS:
            return False
        before = argument
    return False


def is_verbose() -> bool:
    """Whether the verb that runs now was asked for tracebacks and times."""
    context = click.get_current_context(silent=True)
    return context is not None and context.meta.get(_VERBOSE) is True


def remember(context: click.Context, parameter: click.Parameter, value: bool) -> None:
    """Callback of a flag that is asked for by a function here."""
    if value and parameter.name is not None:
        context.meta[parameter.name] = True
