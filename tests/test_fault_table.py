"""The table of faults in the docs names tests that exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.package_modules import ROOT

_TEST = re.compile(r"`((?:\w+/)+test_\w+\.py)::(\w+)(?:\[(\w+)\])?`")


def rows(text: str) -> list[str]:
    """Lines of the table, without its head."""
    table = text[text.index("\n| Fault | What is promised |") :]
    lines = table.strip().split("\n\n")[0].splitlines()
    return lines[2:]


def problems(row: str, root: Path) -> list[str]:
    """What is wrong with a row: it names no test, or one that is not there."""
    named = _TEST.findall(row)
    found = [] if named else [f"names no test: {row}"]
    for file, test, parameter in named:
        path = root / file
        if not path.exists():
            found.append(f"no file {file}")
            continue
        text = path.read_text(encoding="utf-8")
        functions = {node.name for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef)}
        if test not in functions:
            found.append(f"no test {file}::{test}")
        # cases are functions of the modules beside the test
        if parameter and not any(
            re.search(rf"^def {parameter}\(", module.read_text(encoding="utf-8"), re.MULTILINE)
            for module in path.parent.glob("*.py")
        ):
            found.append(f"no case {file}::{test}[{parameter}]")
    return found


def test_each_fault_has_a_test() -> None:
    table = rows((ROOT / "docs/testing.md").read_text(encoding="utf-8"))
    assert len(table) > 10
    assert not [problem for row in table for problem in problems(row, ROOT / "integration")]


@pytest.mark.parametrize(
    "row",
    [
        "| a | b | nothing |",
        "| a | b | `faults/test_none.py::test_fault` |",
        "| a | b | `faults/test_high_availability.py::test_none` |",
        "| a | b | `faults/test_high_availability.py::test_fault[no_fault]` |",
    ],
)
def test_a_test_that_is_not_there_is_named(row: str) -> None:
    assert problems(row, ROOT / "integration")
