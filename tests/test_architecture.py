"""The import rules of the package, checked on its syntax trees; nothing is imported.

``errors ← config ← core ← graph ← {runtime, rpc, process, spark, api, fs, yarn, staging, rest, ha} ←
{client, entrypoint} ← cli``; siblings in braces never import each other, ``testing`` may import all
and is imported by nobody.  Imports inside functions and under ``TYPE_CHECKING`` count like any other.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import pytest

from tests.package_modules import MODULES

FOUNDATION = {"", "errors", "config", "core", "graph"}
ADAPTERS = {"runtime", "rpc", "process", "spark", "api", "fs", "yarn", "staging", "rest", "ha"}
#: package → packages it may import besides itself; ``""`` is the root package, which has the version only
ALLOWED: dict[str, set[str]] = {
    "": set(),
    "errors": set(),
    "config": {"", "errors"},
    "core": {"", "errors", "config"},
    "graph": {"", "errors", "config", "core"},
    **{adapter: FOUNDATION for adapter in ADAPTERS},
    "client": FOUNDATION | ADAPTERS,
    "entrypoint": FOUNDATION | ADAPTERS,
    "cli": FOUNDATION | ADAPTERS | {"client", "entrypoint"},
    "__main__": {"cli"},
    "testing": FOUNDATION | ADAPTERS | {"client", "entrypoint", "cli"},
}

#: third-party library → packages or modules that may import it
LIBRARIES: dict[str, set[str]] = {
    "thrift": {"rpc"},
    "pyspark": {"spark"},
    "py4j": {"spark"},
    "pyarrow": {"api", "spark"},
    "pandas": {"spark"},
    "click": {"cli"},
    "rich": {"cli"},
    "yaml": {"config", "yarn"},
    "skein": {"yarn"},
    "grpc": {"yarn"},
    "cryptography": {"yarn"},
    "hdfs": {"fs"},
    "kazoo": {"ha"},
    "requests": {"fs", "yarn"},
    "venv_pack": {"client"},
    "psutil": {"process"},
    "cloudpickle": {"graph.closures"},
    "sqlglot": {"graph.expressions"},
}

#: ``core`` and ``graph`` are pure: time, ids and randomness arrive as arguments
IMPURE = {
    "time", "random", "os", "socket", "threading", "asyncio", "subprocess", "uuid", "logging",
}  # fmt: skip


@dataclass(frozen=True)
class Import:
    """One import statement's target, as written."""

    module: str
    #: name after ``from module import``; empty for ``import module``
    name: str
    line: int
    relative: bool


@cache
def imports(module: str) -> tuple[Import, ...]:
    """All imports of a module, wherever they stand in it."""
    return tuple(imports_of(MODULES[module].read_text(encoding="utf-8")))


def imports_of(source: str) -> Iterator[Import]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(alias.name, "", node.lineno, False)
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                yield Import(node.module or "", alias.name, node.lineno, node.level > 0)


def package(module: str) -> str:
    """``yarnflow.core.job`` → ``core``; the root package → empty."""
    return module.partition(".")[2].partition(".")[0]


def target(item: Import) -> str:
    """The module of ours an import reaches: ``from yarnflow.core import ids`` reaches ``core.ids``."""
    dotted = f"{item.module}.{item.name}"
    return dotted if dotted in MODULES else item.module


def violations(module: str) -> Iterator[str]:
    """Sentences about the imports of one module that break a rule."""
    own = package(module)
    for item in imports(module):
        top = item.module.partition(".")[0]
        where = f"{module}:{item.line}"
        if item.relative:
            yield f"{where}: relative import of {item.module or item.name}"
        elif top == "yarnflow":
            other = package(target(item))
            if other != own and other not in ALLOWED[own]:
                yield f"{where}: {own or 'yarnflow'} may not import {other or 'yarnflow'} ({item.module})"
        elif top in sys.stdlib_module_names:
            if own in ("core", "graph") and top in IMPURE:
                yield f"{where}: {own} is pure and may not import {top}"
        elif top not in LIBRARIES:
            yield f"{where}: {top} is not a library of this project; add it to LIBRARIES and setup.cfg"
        elif not {own, module.partition(".")[2]} & LIBRARIES[top]:
            yield f"{where}: only {', '.join(sorted(LIBRARIES[top]))} may import {top}"


def test_imports_follow_the_layers() -> None:
    assert not [said for module in MODULES for said in violations(module)]


def test_every_package_has_a_place_in_the_layers() -> None:
    assert {package(module) for module in MODULES} <= set(ALLOWED)


def cycle(graph: dict[str, set[str]]) -> list[str]:
    """Some cycle of a directed graph, first node repeated at the end; empty if there is none."""
    done: set[str] = set()
    path: list[str] = []

    def visit(node: str) -> list[str]:
        if node in path:
            return [*path[path.index(node) :], node]
        if node in done:
            return []
        path.append(node)
        for successor in sorted(graph.get(node, ())):
            if found := visit(successor):
                return found
        done.add(path.pop())
        return []

    for start in sorted(graph):
        if found := visit(start):
            return found
    return []


def test_no_module_imports_itself_through_others() -> None:
    graph = {name: {target(item) for item in imports(name)} & set(MODULES) for name in MODULES}
    assert cycle(graph) == []


def test_cycles_are_found() -> None:
    assert cycle({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == ["b", "c", "b"]
    assert cycle({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == []


@pytest.mark.parametrize(
    "source, said",
    [
        ("from . import job", "relative import"),
        ("import threading", "is pure"),
        ("def late():\n    import pyspark.sql", "only spark may import pyspark"),
        ("from yarnflow.runtime import mailbox", "core may not import runtime"),
        ("if TYPE_CHECKING:\n    import yarnflow.cli", "core may not import cli"),
        ("import httpx", "not a library of this project"),
    ],
)
def test_a_bad_import_in_core_is_found(source: str, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{__name__}.imports", lambda module: tuple(imports_of(source)))
    found = list(violations("yarnflow.core.job"))
    assert len(found) == 1 and said in found[0]
