"""``docs/command-line.md``: verbs, flags and JSON documents, made from the declarations of the verbs.

``scripts/gen-docs`` writes it and a test compares it.  Flink counterpart: ``CliFrontendParser``'s help.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from importlib import import_module
from types import UnionType
from typing import Any, Final, Union, get_args, get_origin, get_type_hints

import click

from yarnflow.cli.main import ALIASES, VERBS
from yarnflow.cli.output import Verb

_HEAD: Final = """\
<!-- Written by scripts/gen-docs from yarnflow/cli; do not edit. -->
# Command line

`yarnflow VERB --help` says the same in a terminal; `eval "$(yarnflow completion bash)"` completes it
(also zsh, fish). How clusters are named and found is in [Operations](operations.md#targets), what each
exit status means in [Exit status](exit-codes.md).

Flags that Flink has, and that are not needed here, work as well. They stand behind *Flink's*, each with
what it stands for, or why it changes nothing or is refused.

## JSON

`--json` prints one document on standard output and nothing else; notes for people, and what a program
prints, are on standard error. Keys stay as they are: a later version may add some. Times are in
milliseconds since the epoch, sizes in bytes, as the names say; -1 = not yet, or not known. A command that
fails writes a document to the last line of standard error, and may have written its own before:

```json
{"error": {"code": "JOB_NOT_FOUND", "message": "no job …", "exit_status": 41, "retryable": false}}
```

`code` and `exit_status` are those of [Exit status](exit-codes.md), or `USAGE` and 2 for a command line
that cannot be read; `details`, where there are any, is the traceback of the program. `retryable` means
that the same command may succeed later.

"""
#: a verb that has all flags that verbs about clusters share, and these of its own
_EXAMPLE: Final = ("list", ("--all", "--running", "--scheduled"))


def command_line_markdown() -> str:
    """The page."""
    commands = dict(_commands())
    name, own = _EXAMPLE
    shared = [option for option in _options(commands[name]) if not set(option.opts) & set(own)]
    parts = [_HEAD, "## Flags of all verbs\n", *_table(shared)]
    parts.append(
        "\nVerbs that are not about a cluster have no `-t` and `-m`; without a document there is no `--json`."
    )
    known = {(tuple(option.opts), option.help) for option in shared}
    for name, command in commands.items():
        own_options = [one for one in _options(command) if (tuple(one.opts), one.help) not in known]
        parts += ["", f"## {name}", "", *_section(name, command, own_options)]
    return "\n".join(parts) + "\n"


def _commands() -> Iterator[tuple[str, click.Command]]:
    for name, (module, _) in VERBS.items():
        command = import_module(f"yarnflow.cli.{module}").command
        if isinstance(command, click.Group):
            yield from ((f"{name} {inner}", found) for inner, found in command.commands.items())
        else:
            yield name, command


def _section(name: str, command: click.Command, options: Sequence[click.Option]) -> Iterator[str]:
    shown = name.removesuffix(" trigger")
    metavars = " ".join(argument.make_metavar(click.Context(command)) for argument in _arguments(command))
    yield f"`{' '.join(filter(None, ('yarnflow', shown, '[OPTIONS]', metavars)))}`"
    yield f"\n{_prose(command.help or '')}"
    aliases = [alias for alias, verb in ALIASES.items() if verb == name]
    if aliases:
        yield f"\nAlso {', '.join(f'`yarnflow {alias}`' for alias in aliases)}, as in Flink."
    if options:
        yield ""
        yield from _table(options)
    if isinstance(command, Verb):
        yield from _document(command.answer)


def _prose(text: str) -> str:
    """A docstring; blocks that click leaves as they are become code."""
    paragraphs = inspect.cleandoc(text).split("\n\n")
    return "\n\n".join(
        f"```sh\n{paragraph.removeprefix(chr(8)).strip()}\n```" if paragraph.startswith("\b") else paragraph
        for paragraph in paragraphs
    )


def _table(options: Sequence[click.Option]) -> Iterator[str]:
    """Those of ours as a table, Flink's in one line."""
    ours = [option for option in options if not option.hidden]
    if ours:
        yield "| Flag | Meaning |\n|---|---|"
        yield from map(_row, ours)
    flinks = [f"{_names(option)} ({option.help})" for option in options if option.hidden and option.help]
    if flinks:
        yield f"\nFlink's: {'; '.join(flinks)}."


def _arguments(command: click.Command) -> list[click.Argument]:
    return [param for param in command.params if isinstance(param, click.Argument)]


def _options(command: click.Command) -> list[click.Option]:
    return [param for param in command.params if isinstance(param, click.Option)]


def _row(option: click.Option) -> str:
    value = "" if option.is_flag else f" `{option.make_metavar(click.Context(click.Command('x')))}`"
    cells = (f"{_names(option)}{value}", " ".join((option.help or "").split()))
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _names(option: click.Option) -> str:
    return ", ".join(f"`{name}`" for name in option.opts)


def _document(answer: type | str) -> Iterator[str]:
    if isinstance(answer, str):
        yield f"\n`--json`: {answer}"
        return
    yield "\n| Key of `--json` | Type |\n|---|---|"
    for key, kind in _keys(answer, ""):
        yield f"| `{key}` | {kind} |"


def _keys(cls: Any, prefix: str) -> Iterator[tuple[str, str]]:
    hints = get_type_hints(cls)
    for field in fields(cls):
        inner, kind = _kind(hints[field.name])
        key = f"{prefix}{field.name}"
        yield key, kind
        if inner is not None:
            yield from _keys(inner, f"{key}[]." if kind.startswith("list") else f"{key}.")


def _kind(hint: Any) -> tuple[Any, str]:
    """The dataclass in it, if there is one, and what JSON has."""
    hint = getattr(hint, "__supertype__", hint)
    origin, args = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        inner, kind = _kind(next(arg for arg in args if arg is not type(None)))
        return inner, f"{kind}, or null"
    if origin in (tuple, list) or origin is Sequence:
        inner, kind = _kind(args[0])
        return inner, f"list of {kind}"
    if origin is dict:
        return None, "object"
    if is_dataclass(hint):
        return hint, "object"
    if isinstance(hint, type) and issubclass(hint, Enum):
        return None, ", ".join(f"`{member.value}`" for member in hint)
    return None, {"str": "text", "int": "number", "float": "number", "bool": "true, false"}[hint.__name__]


__all__ = ["command_line_markdown"]
