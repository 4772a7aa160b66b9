"""The table of PyFlink's API, made from the list of its names and the declarations beside ours.

Decides per name whether it means here what it means there, differs, or is refused; the reasons are
declared where the names are defined (:mod:`yarnflow.graph.compatibility`), or below for names that are
PyFlink's alone in a way no code can say.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from yarnflow.graph.compatibility import DIFFERS, REFUSED, SAME_AND

#: name → how it differs, for names defined in other packages
ELSEWHERE: Final[dict[str, str]] = {
    "common.job_status.JobStatus": "has INITIALIZING and RECOVERY_FAILED, too; values are texts",
}

#: name → what is to be known of a name defined in other packages that is the same
SAME_ELSEWHERE: Final[dict[str, str]] = {
    "common.time.Instant": "cannot be changed",
    **{
        f"datastream.window.{assigner}.of": "takes text such as '1 hour', too"
        for assigner in (
            "TumblingEventTimeWindows",
            "TumblingProcessingTimeWindows",
            "SlidingEventTimeWindows",
            "SlidingProcessingTimeWindows",
        )
    },
}

#: modules of what reads and writes other systems, and classes that only those use
_CONNECTORS: Final = ("datastream.connectors", "datastream.formats")
_MESSAGES: Final = frozenset(
    {
        "ByteArraySchema",
        "DeserializationSchema",
        "RowFieldExtractorSchema",
        "SerializationSchema",
        "SimpleStringSchema",
    }
)

_INTRODUCTION: Final = """\
<!-- Written by scripts/gen-docs from docs/pyflink-names.txt and yarnflow/api; do not edit. -->
# PyFlink's API

Every public name of `pyflink.common` and `pyflink.datastream` (PyFlink {version}) and what it is in yarnflow.
A program that yarnflow runs imports it under its own name. *Same*: a PyFlink program can use it and sees no
difference; what it takes beyond that, or does in another way, stands in the tables. *Differs*: as the table
says. *Refused*: it can be imported, and using it raises `UnsupportedCall` with what to use instead.
The Table API (`pyflink.table`) is refused as a whole.

| | same | differs | refused | |
|---|---|---|---|---|
{counts}
"""


class Standing(Enum):
    """How far a name of PyFlink is here what it is there."""

    SAME = "same"
    DIFFERS = "differs"
    REFUSED = "refused"
    #: there is no such name
    MISSING = "missing"


@dataclass(frozen=True, slots=True)
class Listed:
    """A line of the list of PyFlink's names."""

    module: str
    #: dotted below the module
    name: str
    #: parameters with their defaults; empty for what is not called
    signature: str

    @property
    def of_connectors(self) -> bool:
        """Whether it is there for connectors and formats."""
        return self.module.startswith(_CONNECTORS) or self.name.partition(".")[0] in _MESSAGES


@dataclass(frozen=True, slots=True)
class Found:
    """What a name is here."""

    listed: Listed
    standing: Standing
    #: how it differs, why it is refused, or what is to be known of it although it is the same
    said: str = ""
    value: Any = None


def listed_names(text: str) -> Iterator[Listed]:
    """Read the list that ``scripts/pyflink-names`` writes."""
    for line in text.splitlines():
        yield Listed(*line.split("\t"))


def find(listed: Listed) -> Found:
    """Look a name up in yarnflow's modules."""
    owner: Any = importlib.import_module(f"yarnflow.api.{listed.module}")
    value: Any = owner
    for part in listed.name.split("."):
        if REFUSED in getattr(value, "__dict__", {}):
            return Found(listed, Standing.REFUSED, getattr(value, REFUSED))
        owner, value = value, inspect.getattr_static(value, part, None)
        if value is None and not hasattr(owner, part):
            return Found(listed, Standing.MISSING)
        if isinstance(value, (staticmethod, classmethod)):
            value = value.__func__
    if isinstance(value, type) and REFUSED in vars(value):
        return Found(listed, Standing.REFUSED, getattr(value, REFUSED))
    if not isinstance(value, type) and hasattr(value, REFUSED):
        return Found(listed, Standing.REFUSED, getattr(value, REFUSED))
    marks = vars(value) if isinstance(value, type) else getattr(value, "__dict__", {})
    name = f"{listed.module}.{listed.name}"
    how = marks.get(DIFFERS) or ELSEWHERE.get(name)
    if how:
        return Found(listed, Standing.DIFFERS, how, value)
    return Found(listed, Standing.SAME, marks.get(SAME_AND) or SAME_ELSEWHERE.get(name, ""), value)


def pyflink_markdown(names: str) -> str:
    """``docs/pyflink-api.md``.

    Parameters
    ----------
    names : str
        Text of ``docs/pyflink-names.txt``.
    """
    from yarnflow.api.version import __version__

    by_module: dict[str, list[Found]] = {}
    for listed in listed_names(names):
        by_module.setdefault(listed.module, []).append(find(listed))
    everything = [found for each in by_module.values() for found in each]
    of_connectors = [found for found in everything if found.listed.of_connectors]
    others = [found for found in everything if found not in of_connectors]
    counts = (
        _counts("without connectors and formats", others),
        _counts("connectors and formats", of_connectors),
        _counts("all names", everything),
    )
    lines = [_INTRODUCTION.format(version=__version__, counts="\n".join(counts))]
    for module, found in by_module.items():
        lines.append(f"## `pyflink.{module}`\n")
        lines.extend(_module_lines(found))
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def _counts(title: str, found: list[Found]) -> str:
    same, differ, refused = (
        sum(each.standing is standing for each in found)
        for standing in (Standing.SAME, Standing.DIFFERS, Standing.REFUSED)
    )
    return f"| {title} | {same} | {differ} | {refused} | {100 * same / len(found):.1f} % same |"


def _module_lines(found: list[Found]) -> Iterator[str]:
    if len({(each.standing, each.said) for each in found}) == 1 and found[0].standing is Standing.REFUSED:
        classes = [each.listed.name for each in found if "." not in each.listed.name]
        yield f"Refused: {found[0].said}. {_list(classes)}."
        return
    same = [each.listed.name for each in found if each.standing is Standing.SAME and not each.said]
    if same:
        yield f"Same: {_list(_grouped(same))}."
    others = [each for each in found if each.standing is not Standing.SAME or each.said]
    if same and others:
        yield ""
    if others:
        yield "| Name | | Here |"
        yield "|---|---|---|"
    refused_before = ""
    for each in others:
        inside_refused = bool(refused_before) and each.listed.name.startswith(f"{refused_before}.")
        if not inside_refused:
            yield f"| `{each.listed.name}` | {each.standing.value} | {each.said} |"
        if each.standing is Standing.REFUSED and not inside_refused:
            refused_before = each.listed.name


def _grouped(names: list[str]) -> list[str]:
    """``Types``, ``Types.INT``, ``Types.ROW`` → ``Types (INT, ROW)``."""
    groups: dict[str, list[str]] = {}
    for name in names:
        head, _, member = name.partition(".")
        groups.setdefault(head, []).extend([member] if member else [])
    return [f"`{head}`" + (f" ({', '.join(members)})" if members else "") for head, members in groups.items()]


def _list(names: list[str]) -> str:
    return ", ".join(name if name.startswith("`") else f"`{name}`" for name in names)
