"""The reference of the API below ``docs/api``, made from its docstrings.

Decides what is shown: public names of the modules with what is written about them, without those that
are refused, which stand in the table of PyFlink's API (:mod:`yarnflow.api.documents`).  Names are read from
the imported modules, as marks of compatibility and names of other modules only exist there.
"""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from types import FunctionType
from typing import Any, Final

from yarnflow.graph.compatibility import DIFFERS, REFUSED, SAME_AND

#: where classes are whose objects methods make, not programs
_STREAMS: Final = re.compile(r"\.(streams\.\w+|data_stream)$")
_CONNECTORS: Final = "datastream.connectors"


@dataclass(frozen=True, slots=True)
class Page:
    """One page of the reference."""

    title: str
    #: below ``yarnflow.api``
    modules: tuple[str, ...]


#: file name without suffix → page; a name that several modules have stands where it comes first
PAGES: Final = {
    "environment": Page(
        "Environment and jobs",
        (
            "datastream.stream_execution_environment",
            "datastream.execution_mode",
            "executor",
            "common.job_client",
            "common.job_status",
            "common.completable_future",
            "common.configuration",
            "common.config_options",
            "common.execution_config",
            "common.restart_strategy",
            "datastream.checkpoint_config",
            "datastream.checkpointing_mode",
            "datastream.checkpoint_storage",
            "datastream.externalized_checkpoint_retention",
            "datastream.state_backend",
            "datastream.slot_sharing_group",
        ),
    ),
    "time": Page(
        "Time",
        ("common.watermark_strategy", "common.time", "datastream.timerservice", "datastream.time_domain"),
    ),
    "streams": Page("Streams", ("datastream.data_stream", "datastream.output_tag")),
    "functions": Page("Functions", ("datastream.functions", "metrics")),
    "types": Page("Types and rows", ("common.typeinfo", "common.types")),
    "state": Page("State", ("datastream.state",)),
    "windows": Page("Windows", ("datastream.window",)),
    "async": Page(
        "Asynchronous functions",
        (
            "datastream.async_data_stream",
            "datastream.async_retry_strategies",
            "datastream.async_retry_predicates",
        ),
    ),
    "connectors": Page(
        "Sources and sinks",
        (
            f"{_CONNECTORS}.base",
            f"{_CONNECTORS}.file_system",
            f"{_CONNECTORS}.kafka",
            f"{_CONNECTORS}.jdbc",
            f"{_CONNECTORS}.python",
            "exactly_once",
            f"{_CONNECTORS}.rabbitmq",
            f"{_CONNECTORS}.redis",
            f"{_CONNECTORS}.elasticsearch",
            f"{_CONNECTORS}.number_seq",
            f"{_CONNECTORS}.simple",
            "common.serialization",
            "datastream.formats.avro",
            "datastream.formats.csv",
            "datastream.formats.json",
            "datastream.formats.orc",
            "datastream.formats.parquet",
            "table.data_types",
        ),
    ),
}

#: names of ``executor`` that programs use; the others are for what runs programs
_OF_EXECUTOR: Final = ("JobExecutionResult", "close_cluster")
_INTRODUCTION: Final = """\
<!-- Written by scripts/gen-docs from the docstrings of yarnflow/api; do not edit. -->
# {title}

Each module can be imported as `pyflink.…` in a program that yarnflow runs, and as `yarnflow.api.…` anywhere.
What is refused is not shown; it stands in [PyFlink's API](../pyflink-api.md).
"""
_UNDERLINE: Final = re.compile(r"^-{3,}$")
_ROLE: Final = re.compile(r":\w+:`~?([^`]+)`")
_LITERAL: Final = re.compile(r"``([^`]+)``")


@dataclass(slots=True)
class _Names:
    """What stands on pages so far."""

    #: class or function → its name on its page
    shown: dict[Any, str] = field(default_factory=dict)


def reference_pages() -> dict[str, str]:
    """File name below ``docs/api`` → text of the page."""
    names = _Names()
    public = {id(value) for page in PAGES.values() for m in page.modules for _, value in _public(m)}
    return {
        f"{name}.md": "\n".join(_page_lines(page, names, public)).rstrip() + "\n"
        for name, page in PAGES.items()
    }


def _page_lines(page: Page, names: _Names, public: set[int]) -> Iterator[str]:
    yield _INTRODUCTION.format(title=page.title)
    for module in page.modules:
        found = [(name, value) for name, value in _public(module) if names.shown.get(value) != name]
        if not found:
            continue
        yield f"## `{module}`\n"
        for name, value in found:
            yield from _entry(name, value, names, public)


def _public(module: str) -> list[tuple[str, Any]]:
    """Classes and functions of a module by name, in the module's order."""
    loaded = importlib.import_module(f"yarnflow.api.{module}")
    members = {name: value for name, value in vars(loaded).items() if _is_shown(value)}
    # a second name of a class counts, so a class is not asked for its name
    own = [name for name, value in members.items() if value.__module__ == loaded.__name__]
    # a module without names of its own gives those of another one
    listed = getattr(loaded, "__all__", own or list(members))
    names = _OF_EXECUTOR if module == "executor" else listed
    return [(name, members[name]) for name in names if name in members and not name.startswith("_")]


def _is_shown(value: Any) -> bool:
    return isinstance(value, (type, FunctionType)) and REFUSED not in vars(value)


def _entry(name: str, value: Any, names: _Names, public: set[int]) -> Iterator[str]:
    if value in names.shown:
        yield f"### `{name}`\n\nAnother name of `{names.shown[value]}`.\n"
        return
    names.shown[value] = name
    if isinstance(value, FunctionType):
        yield f"### `{name}{_signature(value, bound=False)}`\n"
        yield from _text(value)
        yield ""
        return
    yield f"### `{name}{'' if _STREAMS.search(value.__module__) else _constructor(value)}`\n"
    text = _text(value)
    if text:
        yield from text
        yield ""
    if issubclass(value, Enum):
        yield "Values: " + ", ".join(f"`{member.name}`" for member in value) + ".\n"
    bases = [base.__name__ for base in value.__mro__[1:] if id(base) in public]
    if bases:
        yield f"Has also what `{bases[0]}` has.\n"
    members = list(_members(value, public))
    for member, function in members:
        yield from _member(member, function)
    if members:
        yield ""
    for nested, inner in vars(value).items():
        if isinstance(inner, type) and not nested.startswith("_") and _is_ours(inner) and _is_shown(inner):
            yield from _entry(f"{name}.{nested}", inner, names, public)


def _is_ours(value: Any) -> bool:
    return str(value.__module__).startswith("yarnflow.")


def _members(cls: type, public: set[int]) -> Iterator[tuple[str, Any]]:
    """Methods and properties with a docstring of their own; a base that is on a page has its own there."""
    seen: set[str] = set()
    elsewhere = {owner for base in cls.__mro__[1:] if id(base) in public for owner in base.__mro__}
    for owner in cls.__mro__:
        if not _is_ours(owner) or owner in elsewhere:
            continue
        for name, value in vars(owner).items():
            function = value.__func__ if isinstance(value, (staticmethod, classmethod)) else value
            is_member = isinstance(function, (FunctionType, property))
            if name.startswith("_") or name in seen or not is_member:
                continue
            seen.add(name)
            if function.__doc__ and not hasattr(function, REFUSED):
                yield name, value


def _member(name: str, value: Any) -> Iterator[str]:
    function = value.__func__ if isinstance(value, (staticmethod, classmethod)) else value
    bound = not isinstance(value, staticmethod)
    shown = name if isinstance(value, property) else name + _signature(function, bound)
    first, *more = _text(function) or [""]
    yield f"- **`{shown}`** {first}".rstrip()
    yield from (f"  {line}".rstrip() for line in more)


def _constructor(cls: type) -> str:
    constructor: Any = getattr(cls, "__init__")
    if issubclass(cls, Enum) or inspect.isabstract(cls) or not isinstance(constructor, FunctionType):
        return ""
    return _signature(constructor, bound=True)


def _signature(function: Any, bound: bool) -> str:
    """Parameters with their defaults; what they are, the text tells."""
    signature = inspect.signature(function)
    parameters = list(signature.parameters.values())[int(bound):]
    plain = [parameter.replace(annotation=inspect.Parameter.empty) for parameter in parameters]
    shown = str(signature.replace(parameters=plain, return_annotation=inspect.Signature.empty))
    # a default that is an object shows as its address otherwise
    return re.sub(r"=<[^>]*>", "=…", shown)


# --- docstrings --------------------------------------------------------------------------


def _text(value: Any) -> list[str]:
    """Lines of Markdown of a docstring, and what is declared of the name beside PyFlink's."""
    lines = list(_without_gaps(_markdown(_own_doc(value).splitlines())))
    for mark, word in ((SAME_AND, "Here"), (DIFFERS, "Differs")):
        remark = vars(value).get(mark) if isinstance(value, type) else getattr(value, mark, None)
        if remark and len(lines) == 1:
            lines[0] += f" *{word}: {remark}.*"
        elif remark:
            lines += ["", f"*{word}: {remark}.*"]
    return lines


def _without_gaps(lines: Iterable[str]) -> Iterator[str]:
    """No two empty lines in a row, none at the end."""
    empty = False
    for line in lines:
        if line and empty:
            yield ""
        if line:
            yield line
        empty = not line


def _own_doc(value: Any) -> str:
    """The docstring; not that of a base, nor what a dataclass makes."""
    doc = value.__doc__ or ""
    if isinstance(value, type) and doc.startswith(f"{value.__name__}("):
        return ""
    return inspect.cleandoc(doc)


def _markdown(lines: list[str]) -> Iterator[str]:
    number = 0
    while number < len(lines):
        line = lines[number]
        if number + 1 < len(lines) and line and _UNDERLINE.match(lines[number + 1]):
            yield f"{line}:"
            yield ""
            number = yield from _section(lines, number + 2)
            continue
        # "text::" before an example; "::" alone is a paragraph of its own
        yield _inline(re.sub(r"::$", ":" if len(line) > 2 else "", line))
        number += 1


def _section(lines: list[str], number: int) -> Generator[str, None, int]:
    """Entries of a section of numpydoc as a list; gives the number of the line behind it."""
    while number < len(lines):
        line = lines[number]
        if number + 1 < len(lines) and _UNDERLINE.match(lines[number + 1]):
            break
        if line and not line.startswith(" "):
            name, colon, kind = line.partition(" : ")
            said = []
            while number + 1 < len(lines) and (lines[number + 1].startswith(" ") or not lines[number + 1]):
                number += 1
                said.append(lines[number].strip())
            text = _inline(" ".join(part for part in said if part))
            yield f"- `{name}`" + (f" ({_inline(kind)})" if colon else "") + (f": {text}" if text else "")
        number += 1
    yield ""
    return number


def _inline(text: str) -> str:
    text = _ROLE.sub(lambda found: f"`{found[1].rpartition('.')[2]}`", text)
    return re.sub(r"(?<=[.;:])  (?=\S)", " ", _LITERAL.sub(r"`\1`", text))
