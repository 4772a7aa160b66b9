"""The import rules of the package, checked on its syntax trees; nothing is imported.

``errors ← config ← core ← graph ← operators ← {runtime, rpc, process, spark, api, fs, yarn, staging, rest,
ha, metrics} ← {client, entrypoint} ← cli``; siblings in braces never import each other, ``testing`` may
import all and is imported by nobody.  ``airflow`` runs in processes of Airflow, starts the command and asks
by REST: it imports what those two need, and no more.  Imports inside functions and under
``TYPE_CHECKING`` count like others.

A *room* is a folder of a package.  Rooms see each other only as the table says, and some are seen from other
packages by few.  A string that names a module of ours is held to the same rules as an import of it.
"""

from __future__ import annotations

import ast
import itertools
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import pytest

from tests.architecture_rules import (
    ALLOWED,
    BY_NAME,
    CIRCLES_OF_ROOMS,
    COMPUTED,
    FOLDER_LIMIT,
    IMPURE,
    IMPURE_ALL_THE_SAME,
    INIT_WITH_CODE,
    LARGE_FOLDERS,
    LIBRARIES,
    NO_MODULES,
    ROOMS,
    SEEN_BY,
    UNPICKLES,
)
from tests.package_modules import GENERATED, MODULES


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


@dataclass(frozen=True)
class Named:
    """A module named by a string."""

    #: the string; empty = it is made at run time
    text: str
    line: int


@cache
def names(module: str) -> tuple[Named, ...]:
    """All strings of a module that name modules, as far as the source tells."""
    return tuple(names_of(MODULES[module].read_text(encoding="utf-8")))


_DOTTED = re.compile(r"yarnflow(\.[\w-]+)+(:\w+)?")
_LOADERS = ("import_module", "__import__")


def names_of(source: str) -> Iterator[Named]:
    tree = ast.parse(source)
    for node in ast.walk(tree):
        match node:
            case ast.Constant(value=str(text)) if _DOTTED.fullmatch(text):
                yield Named(text, node.lineno)
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=[argument, *_]):
                if name in _LOADERS and not _ours(argument):
                    yield Named(_text(argument), node.lineno)
                elif name == "module_command" and not _ours(argument):
                    yield Named(_text(argument), node.lineno)
                elif name == "_module" and _text(argument):
                    yield Named(f"yarnflow.entrypoint.{_text(argument)}", node.lineno)
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                for flag, value in itertools.pairwise(parts):
                    if _text(flag) == "-m" and not _ours(value):
                        yield Named(_text(value), value.lineno)


def _text(node: ast.expr) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def _ours(node: ast.expr) -> bool:
    """Found already as a string of its own."""
    return _DOTTED.fullmatch(_text(node)) is not None


def named_module(text: str) -> str:
    """The module of ours a string names, itself or by a name in it; empty = none there is."""
    dotted = text.replace(":", ".")
    if dotted in MODULES:
        return dotted
    module, _, name = dotted.rpartition(".")
    if module not in MODULES:
        return ""
    tree = ast.parse(MODULES[module].read_text(encoding="utf-8"))
    defined = {node.name for node in tree.body if isinstance(node, (ast.ClassDef, ast.FunctionDef))}
    return module if name in defined else ""


def room(module: str) -> str:
    """``yarnflow.core.ha.lease`` → ``core.ha``; ``yarnflow.core.ids`` and ``yarnflow.core`` → ``core``."""
    short = module.partition(".")[2]
    if module.startswith(GENERATED):
        return "rpc"
    if module in MODULES and MODULES[module].name == "__init__.py":
        return short
    parent = short.rpartition(".")[0]
    return parent or short


def may_see(own: str, other: str) -> str:
    """Why a module may not import another one of ours; empty = it may."""
    mine, theirs = package(own), package(other)
    here, there = room(own), room(other)
    if mine != theirs:
        if theirs not in ALLOWED[mine]:
            return f"{mine or 'yarnflow'} may not import {theirs or 'yarnflow'}"
        if mine != "testing" and here not in SEEN_BY.get(there, {here}):
            return f"{there} is not seen by {here}"
    elif here != there and there not in ROOMS.get(here, set()):
        return f"room {here} may not import room {there}"
    return ""


def package(module: str) -> str:
    """``yarnflow.core.job.record`` → ``core``; the root package → empty."""
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
            if why := may_see(module, target(item)):
                yield f"{where}: {why} ({item.module})"
        elif top in sys.stdlib_module_names:
            allowed = IMPURE_ALL_THE_SAME.get(module.removeprefix("yarnflow."), {})
            if own in ("core", "graph", "operators") and top in IMPURE and top not in allowed:
                yield f"{where}: {own} is pure and may not import {top}"
        elif why := no_library(module, top):
            yield f"{where}: {why}"
    for named in names(module):
        if why := no_name(module, named.text):
            yield f"{module}:{named.line}: {why}"


def no_library(module: str, top: str) -> str:
    """Why a module may not import a library; empty = it may."""
    if top not in LIBRARIES:
        return f"{top} is not a library of this project; add it to LIBRARIES and setup.cfg"
    if not {package(module), room(module), module.partition(".")[2]} & LIBRARIES[top]:
        return f"only {', '.join(sorted(LIBRARIES[top]))} may import {top}"
    return ""


def no_name(module: str, text: str) -> str:
    """Why a module may not name another one by a string; empty = it may."""
    short = module.partition(".")[2]
    if not text:
        return "" if short in COMPUTED else "names a module that is known at run time only; see COMPUTED"
    if text in NO_MODULES:
        return ""
    if not text.startswith("yarnflow."):
        top = text.partition(".")[0]
        return "" if top in sys.stdlib_module_names else no_library(module, top)
    found = named_module(text)
    if not found:
        return f"{text!r} names no module, nor anything in one"
    if (short, found.partition(".")[2]) in BY_NAME or found == module:
        return ""
    why = may_see(module, found)
    return f"{why} ({text!r}); see BY_NAME" if why else ""


def test_imports_follow_the_layers() -> None:
    assert not [said for module in MODULES for said in violations(module)]


def test_every_package_has_a_place_in_the_layers() -> None:
    assert {package(module) for module in MODULES} <= set(ALLOWED)


def test_rooms_are_those_there_are() -> None:
    rooms = {room(module) for module in MODULES}
    with_rooms = {name.partition(".")[0] for name in rooms if "." in name}
    assert {name for name in rooms if name.partition(".")[0] in with_rooms} == set(ROOMS)
    assert set(SEEN_BY) <= rooms


def test_rooms_are_allowed_no_more_than_they_need() -> None:
    used = {
        (room(module), room(reached))
        for module in MODULES
        for reached in (
            *(target(item) for item in imports(module)),
            *(named_module(named.text) for named in names(module)),
        )
        if reached.startswith("yarnflow.")
    }
    allowed = {(here, there) for here, others in ROOMS.items() for there in others}
    allowed |= {(here, there) for there, others in SEEN_BY.items() for here in others}
    assert sorted(allowed - used) == []


def test_exceptions_for_names_in_strings_are_needed() -> None:
    named = {
        (module.partition(".")[2], named_module(item.text).partition(".")[2])
        for module in MODULES
        for item in names(module)
    }
    assert sorted(set(BY_NAME) - named) == []
    assert sorted(pair for pair in BY_NAME if not may_see(*(f"yarnflow.{name}" for name in pair))) == []
    computed = {module.partition(".")[2] for module in MODULES for item in names(module) if not item.text}
    assert computed == set(COMPUTED)


def test_verbs_name_modules() -> None:
    tree = ast.parse(MODULES["yarnflow.cli.main"].read_text(encoding="utf-8"))
    (table,) = [
        node.value
        for node in tree.body
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.target.id == "VERBS"
    ]
    assert isinstance(table, ast.Dict) and table.values
    for value in table.values:
        assert isinstance(value, ast.Tuple) and f"yarnflow.cli.{_text(value.elts[0])}" in MODULES


def folder_sizes() -> dict[str, int]:
    """Folder → modules in it, without its ``__init__``."""
    sizes: dict[str, int] = {}
    for module, path in MODULES.items():
        if path.name != "__init__.py":
            sizes[room(module)] = sizes.get(room(module), 0) + 1
    return sizes


def too_large(sizes: dict[str, int]) -> list[str]:
    return [
        f"{folder} has {size} modules"
        for folder, size in sizes.items()
        if size > LARGE_FOLDERS.get(folder, (FOLDER_LIMIT, ""))[0]
    ]


def test_a_folder_can_be_surveyed() -> None:
    sizes = folder_sizes()
    assert too_large(sizes) == []
    assert [folder for folder in LARGE_FOLDERS if sizes.get(folder, 0) <= FOLDER_LIMIT] == []


def test_a_large_folder_is_found() -> None:
    assert too_large({"fs": FOLDER_LIMIT, "rpc": FOLDER_LIMIT + 1}) == [f"rpc has {FOLDER_LIMIT + 1} modules"]


def no_room_description(source: str) -> str:
    """What is wrong with an ``__init__`` of a room; empty = nothing."""
    tree = ast.parse(source)
    said = ast.get_docstring(tree) or ""
    if len([line for line in said.splitlines() if line.strip()]) < 2:
        return "says too little: what it holds, where it runs, what it never decides"
    return "holds more than words" if len(tree.body) > 1 else ""


def test_each_room_says_what_it_is() -> None:
    for module, path in MODULES.items():
        if path.name == "__init__.py" and module.partition(".")[2] not in INIT_WITH_CODE:
            assert not no_room_description(path.read_text(encoding="utf-8")), module


@pytest.mark.parametrize(
    "source, wrong",
    [
        ("", "too little"),
        ('"""One line."""', "too little"),
        ('"""What.\n\nWhere.\n"""\nimport os', "more than words"),
        ('"""What.\n\nWhere.\n"""', ""),
    ],
)
def test_a_room_without_a_description_is_found(source: str, wrong: str) -> None:
    found = no_room_description(source)
    assert wrong in found and bool(wrong) == bool(found)


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


def test_rooms_import_each_other_one_way() -> None:
    packages = {name.partition(".")[0] for name in ROOMS}
    with_circles = {
        name
        for name in packages
        if cycle({here: there for here, there in ROOMS.items() if here.partition(".")[0] == name})
    }
    assert with_circles == CIRCLES_OF_ROOMS


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
        ("import aiohttp", "not a library of this project"),
    ],
)
def test_a_bad_import_in_core_is_found(source: str, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert_found("yarnflow.core.job.job", source, said, monkeypatch)


@pytest.mark.parametrize(
    "module, source, said",
    [
        ("runtime.taskexecutor.x", "import yarnflow.runtime.driver.driver", "may not import room"),
        ("rest.server", "from yarnflow.ha import client", "rest may not import ha"),
        ("entrypoint.driver.main", "import yarnflow.runtime.jobmaster.restore", "not seen by entrypoint"),
        ("cli.view", "import yarnflow.spark.progress.collector", "spark.progress is not seen by cli"),
        ("spark.progress.collector", "import pandas", "only spark.run.rehearsal may import pandas"),
        ("core.job", "import_module('yarnflow.rpc.client')", "core may not import rpc"),
        ("core.job", "importlib.import_module('yarnflow.core.nothing')", "names no module"),
        ("core.job", "x = 'yarnflow.core.ids:nothing'", "names no module"),
        ("core.job", "x = 'yarnflow.fs.webhdfs:WebHdfsFileSystem'", "core may not import fs"),
        ("core.job", "__import__('yarnflow.rpc.client')", "core may not import rpc"),
        ("core.job", "x = (python, '-m', 'yarnflow.cli')", "core may not import cli"),
        ("core.job", "x = [python, '-m', name]", "known at run time only"),
        ("core.job", "import_module(name)", "known at run time only"),
        ("core.job", "import_module('skein')", "may import skein"),
        ("client.remote", "x = 'yarnflow.entrypoint.standalone.local:LocalCluster'", "not import entrypoint"),
        ("process.commands", "self._module('nobody.main')", "names no module"),
    ],
)
def test_a_bad_import_is_found(module: str, source: str, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert_found(f"yarnflow.{module}", source, said, monkeypatch)


def test_words_and_keys_are_no_imports(monkeypatch: pytest.MonkeyPatch) -> None:
    source = 'x = ("-m", "json.tool"), "yarnflow.log.dir", "see yarnflow.rpc.client"'
    monkeypatch.setattr(f"{__name__}.imports", lambda _: ())
    monkeypatch.setattr(f"{__name__}.names", lambda _: tuple(names_of(source)))
    assert [named.text for named in names("yarnflow.core.ids")] == ["json.tool", "yarnflow.log.dir"]
    assert list(violations("yarnflow.core.ids")) == []


def assert_found(module: str, source: str, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{__name__}.imports", lambda _: tuple(imports_of(source)))
    monkeypatch.setattr(f"{__name__}.names", lambda _: tuple(names_of(source)))
    found = list(violations(module))
    assert len(found) == 1 and said in found[0]


def unpickles(source: str) -> bool:
    """Whether a module loads pickles; comparing or catching its errors is no such thing."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.module in PICKLERS:
            if any(alias.name in LOADING for alias in node.names):
                return True
        if isinstance(node, ast.Attribute) and node.attr in LOADING and isinstance(node.value, ast.Name):
            if node.value.id in PICKLERS:
                return True
    return False


PICKLERS = ("pickle", "cloudpickle", "_pickle", "dill", "marshal", "shelve", "joblib")
LOADING = ("load", "loads", "Unpickler", "open")


def test_only_these_modules_unpickle() -> None:
    found = {
        name.partition(".")[2]
        for name, path in MODULES.items()
        if package(name) != "testing" and unpickles(path.read_text(encoding="utf-8"))
    }
    assert found == set(UNPICKLES)


@pytest.mark.parametrize(
    "source, found",
    [
        ("import pickle\npickle.loads(b'')", True),
        ("import pickle\nclass U(pickle.Unpickler): pass", True),
        ("from pickle import loads", True),
        ("import cloudpickle\nmap(cloudpickle.load, files)", True),
        ("import pickle\npickle.dumps(1)", False),
        ("import pickle\ntry: pass\nexcept pickle.UnpicklingError: pass", False),
        ("import json\njson.loads('')", False),
    ],
)
def test_who_unpickles_is_found(source: str, found: bool) -> None:
    assert unpickles(source) == found
