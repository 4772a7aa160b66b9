"""Every public name of PyFlink's common and datastream modules is here, with a signature that fits."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path
from typing import Any

import pytest

from yarnflow.api.documents import (
    ELSEWHERE,
    SAME_ELSEWHERE,
    Found,
    Listed,
    Standing,
    find,
    listed_names,
    pyflink_markdown,
)
from yarnflow.errors import UnsupportedCall

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "pyflink-names.txt").read_text(encoding="utf-8")
NAMES = list(listed_names(TEXT))
FOUND = [find(listed) for listed in NAMES]


def shown(listed: Listed) -> str:
    return f"{listed.module}.{listed.name}{listed.signature}"


def test_the_list_is_of_all_modules() -> None:
    assert len({listed.module for listed in NAMES}) > 55 and len(NAMES) > 1_400
    assert Listed("common.typeinfo", "Types.ROW_NAMED", "(field_names, field_types)") in NAMES


def test_no_name_is_missing() -> None:
    assert [shown(found.listed) for found in FOUND if found.standing is Standing.MISSING] == []


def unfit(found: Found) -> str:
    """Why a call that PyFlink takes would not be taken; empty = it would."""
    try:
        ours = inspect.signature(found.value)
    except (TypeError, ValueError):
        return "" if not callable(found.value) else "no signature"
    taken = list(ours.parameters.values())
    if taken and taken[0].name in ("self", "cls"):
        taken = taken[1:]
    (theirs,) = ast.parse(f"def f{found.listed.signature}: pass").body
    assert isinstance(theirs, ast.FunctionDef)
    wanted = [argument.arg for argument in theirs.args.args]
    optional = len(theirs.args.defaults)
    open_positions = any(p.kind is p.VAR_POSITIONAL for p in taken)
    open_names = any(p.kind is p.VAR_KEYWORD for p in taken)
    if open_positions and open_names:
        return ""
    by_name = {p.name: p for p in taken}
    for position, name in enumerate(wanted):
        if name not in by_name and not open_names:
            return f"no parameter {name}"
        positional = [p for p in taken if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        if not open_positions and (len(positional) <= position or positional[position].name != name):
            return f"parameter {position} is not {name}"
        if position >= len(wanted) - optional and name in by_name:
            if by_name[name].default is inspect.Parameter.empty:
                return f"{name} has no default"
    for parameter in taken:
        required = parameter.default is inspect.Parameter.empty
        if parameter.name not in wanted and required and parameter.kind is parameter.POSITIONAL_OR_KEYWORD:
            return f"{parameter.name} is wanted"
    if theirs.args.vararg is not None and not open_positions:
        return f"no *{theirs.args.vararg.arg}"
    return ""


def test_signatures_fit() -> None:
    checked = [
        found
        for found in FOUND
        if found.standing is not Standing.REFUSED and found.listed.signature
        # how objects of such a class are made is a part of how it differs
        and not (found.standing is Standing.DIFFERS and isinstance(found.value, type))
    ]
    assert len(checked) > 500
    assert [f"{shown(found.listed)}: {why}" for found in checked if (why := unfit(found))] == []


def test_what_does_not_fit_is_found() -> None:
    def ours(a: int, c: int, d: int) -> None:
        """For its signature."""

    def fits(a: int, *b: int, c: int = 0, d: int = 0) -> None:
        """For its signature."""

    listed = Listed("m", "f", "(a, b=1, *c)")
    assert unfit(Found(listed, Standing.SAME, value=ours)) == "no parameter b"
    assert unfit(Found(Listed("m", "f", "(a, c, d=1)"), Standing.SAME, value=ours)) == "d has no default"
    assert unfit(Found(Listed("m", "f", "(a, c)"), Standing.SAME, value=ours)) == "d is wanted"
    assert unfit(Found(Listed("m", "f", "(a, d, c)"), Standing.SAME, value=ours)) == "parameter 1 is not d"
    assert unfit(Found(Listed("m", "f", "(a, *more)"), Standing.SAME, value=fits)) == ""


def test_what_is_refused_says_why() -> None:
    refused = [found for found in FOUND if found.standing is Standing.REFUSED]
    assert refused and all(found.said for found in refused)
    for found in refused:
        if callable(found.value):
            with pytest.raises(UnsupportedCall):
                found.value()


def test_declarations_are_of_names_there_are() -> None:
    known = {f"{listed.module}.{listed.name}" for listed in NAMES}
    assert set(ELSEWHERE) | set(SAME_ELSEWHERE) <= known


def test_the_document_has_every_module() -> None:
    document = pyflink_markdown(TEXT)
    assert all(f"## `pyflink.{listed.module}`\n" in document for listed in NAMES)
    assert "| `JobClient.get_accumulators` | refused | there are no accumulators; use" in document
    assert "| `DataStream.key_by` | same | takes fields and expressions as text, too |" in document
    assert "| missing |" not in document


def test_almost_everything_but_connectors_is_the_same() -> None:
    others = [found for found in FOUND if not found.listed.of_connectors]
    same = sum(found.standing is Standing.SAME for found in others)
    assert same >= 0.93 * len(others)
    assert f"| without connectors and formats | {same} | " in pyflink_markdown(TEXT)


def test_packages_offer_what_pyflinks_do() -> None:
    import yarnflow.api.common
    import yarnflow.api.datastream

    packages: list[Any] = [yarnflow.api.common, yarnflow.api.datastream]
    for package in packages:
        module = package.__name__.removeprefix("yarnflow.api.")
        theirs = {listed.name for listed in NAMES if listed.module == module}
        assert theirs <= set(package.__all__)
        assert package.__all__ == sorted(package.__all__)
