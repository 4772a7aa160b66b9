"""An option that nobody reads is a promise nobody keeps."""

from __future__ import annotations

import ast
from pathlib import Path
from types import ModuleType

from yarnflow.config.option import ConfigOption
from yarnflow.config.options import (
    ALL_OPTIONS,
    client,
    cluster,
    ha,
    history,
    job,
    memory,
    metrics,
    python,
    rest,
    security,
    yarn,
)

PACKAGE = Path(__file__).resolve().parents[2] / "yarnflow"
MODULES: tuple[ModuleType, ...] = (
    *(client, cluster, ha, history, job, memory, metrics, python, rest, security, yarn),
)


def constants() -> dict[str, str]:
    """Name of the constant → key."""
    return {
        name: value.key
        for module in MODULES
        for name, value in vars(module).items()
        if isinstance(value, ConfigOption)
    }


def names_read() -> set[str]:
    """Every name and attribute that code outside ``config`` mentions, imports left out."""
    found: set[str] = set()
    for path in PACKAGE.rglob("*.py"):
        if path.relative_to(PACKAGE).parts[0] == "config":
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute):
                found.add(node.attr)
            elif isinstance(node, ast.Name):
                found.add(node.id)
    return found


def test_constants_are_all_options() -> None:
    assert len(constants()) == len(ALL_OPTIONS)


def test_every_option_is_read_somewhere() -> None:
    unread = set(constants()) - names_read()
    assert sorted(unread) == [], "declared, but nothing outside yarnflow/config reads them"
