"""DataStream program or PySpark script: what a program imports decides.

By its text where that tells: its own, and that of modules beside it or shipped with it. Where it does
not, as in a wrapper around :mod:`runpy` or a program that calls an installed package, by what it
imports first when it runs: yarnflow's API (or ``pyflink``), or pyspark. Installed packages may import pyspark
only because it is there, so that tells nothing until they begin to use it.
"""

from __future__ import annotations

import ast
import builtins
import importlib.machinery
import sys
import types
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NoReturn

from yarnflow.core.messages import ProgramKind
from yarnflow.graph.closures import is_installed

#: packages whose programs build job graphs; ``pyflink`` is yarnflow's API under PyFlink's name
_APIS: Final = frozenset({"yarnflow", "pyflink"})
_SPARK: Final = "pyspark"
_TELLING: Final = _APIS | {_SPARK}
#: modules of Python that import what a program's text does not name, and functions that do
_IMPORTERS: Final = frozenset({"importlib", "runpy", "pkgutil"})
_RUNS_TEXT: Final = frozenset({"exec", "eval", "__import__"})


@dataclass(frozen=True, slots=True)
class _Imports:
    """What a module may import, as its text tells."""

    #: absolute names; those of ``from a import b`` are both ``a`` and ``a.b``
    names: frozenset[str]
    #: it can import what its text does not name
    dynamic: bool


def kind_of(tree: ast.AST, directories: Sequence[str]) -> ProgramKind | None:
    """What a program is, as its text and that of its own modules tells; None = only running it can tell.

    Parameters
    ----------
    directories : sequence of str
        Directories and archives of modules that belong to the program.
    """
    return _ImportScan(directories).kind(tree)


class _ImportScan:
    """What a program imports, itself or through modules of its own."""

    def __init__(self, directories: Sequence[str]) -> None:
        self._directories = list(directories)
        self._seen: set[str] = set()
        self._tops: set[str] = set()
        self._dynamic = False

    def kind(self, tree: ast.AST) -> ProgramKind | None:
        self._add(tree, "")
        if self._tops & _APIS:
            return ProgramKind.GRAPH
        if _SPARK in self._tops:
            return ProgramKind.SCRIPT
        foreign = self._tops - sys.stdlib_module_names
        return None if self._dynamic or foreign else ProgramKind.SCRIPT

    def _add(self, tree: ast.AST, package: str) -> None:
        found = _imports(tree, package)
        self._dynamic = self._dynamic or found.dynamic
        for name in sorted(found.names - self._seen):
            self._seen.add(name)
            top = name.partition(".")[0]
            spec = None if top in _TELLING else self._own(name)
            if spec is None:
                if top in _TELLING or self._own(top) is None:
                    self._tops.add(top)
                continue
            source = _source(spec)
            # packages on the way to a module are imported, too
            if "." in name and name.rpartition(".")[0] not in self._seen:
                self._add(ast.parse(f"import {name.rpartition('.')[0]}"), "")
            if source is not None:
                inside = name if spec.submodule_search_locations is not None else name.rpartition(".")[0]
                self._add(source, inside)

    def _own(self, name: str) -> importlib.machinery.ModuleSpec | None:
        """Where a module of the program's own lies; None: there is none of this name."""
        path: Sequence[str] | None = self._directories
        spec: importlib.machinery.ModuleSpec | None = None
        parts = name.split(".")
        for end in range(1, len(parts) + 1):
            if path is None:
                return None
            spec = importlib.machinery.PathFinder.find_spec(".".join(parts[:end]), list(path))
            if spec is None:
                return None
            path = spec.submodule_search_locations
        return spec


def _source(spec: importlib.machinery.ModuleSpec) -> ast.AST | None:
    # those of directories and of archives have no base class in common
    get_source = getattr(spec.loader, "get_source", None)
    try:
        text = None if get_source is None else get_source(spec.name)
        return None if text is None else ast.parse(text)
    except (ImportError, OSError, SyntaxError, ValueError):
        return None  # importing it will say so


def _imports(tree: ast.AST, package: str) -> _Imports:
    names: set[str] = set()
    dynamic = False
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join(part for part in (*above, base) if part)
            if base:
                names.add(base)
                names.update(f"{base}.{alias.name}" for alias in node.names if alias.name != "*")
        elif isinstance(node, ast.Name) and node.id in _RUNS_TEXT:
            dynamic = True
    return _Imports(frozenset(names), dynamic or any(name.partition(".")[0] in _IMPORTERS for name in names))


class ScriptFound(BaseException):
    """The program turned out to be a PySpark script.  Nothing of Spark has run.

    Not an Exception, so that no program catches it.
    """


class KindTeller:
    """Sees what a running program imports first: yarnflow's API or pyspark.

    A pyspark that an installed package imports is left to it; the program is a script once that starts Spark.
    What a program has done before is done again in the driver, if it is a script.
    """

    def __init__(self) -> None:
        self.is_script = False
        self._import = builtins.__import__
        self._launch: object = None

    def __enter__(self) -> KindTeller:
        builtins.__import__ = self._watched
        return self

    def __exit__(self, *_: object) -> None:
        self._unwatch()

    def _unwatch(self) -> None:
        builtins.__import__ = self._import
        if self._launch is not None:
            setattr(sys.modules[_SPARK_CONTEXT], _LAUNCH, self._launch)
            self._launch = None

    def _watched(
        self,
        name: str,
        globals: Mapping[str, object] | None = None,
        locals: Mapping[str, object] | None = None,
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> types.ModuleType:
        top = "" if level else name.partition(".")[0]
        importer = globals or {}
        if top in _APIS and _top_of(importer) not in _APIS:
            self._unwatch()
        elif top == _SPARK and _is_own(importer):
            self._found_script()
        module = self._import(name, globals, locals, fromlist, level)
        if builtins.__import__ == self._watched:
            self._watch_launch()
        return module

    def _watch_launch(self) -> None:
        """Have Spark's start tell, if pyspark is there by now."""
        launch = getattr(sys.modules.get(_SPARK_CONTEXT), _LAUNCH, None)
        if self._launch is None and launch is not None:
            self._launch = launch
            setattr(sys.modules[_SPARK_CONTEXT], _LAUNCH, self._found_script)

    def _found_script(self, *_: object, **__: object) -> NoReturn:
        self.is_script = True
        self._unwatch()
        raise ScriptFound


#: pyspark's module that starts the JVM, and the name by which it does
_SPARK_CONTEXT: Final = "pyspark.core.context"
_LAUNCH: Final = "launch_gateway"


def _top_of(importer: Mapping[str, object]) -> str:
    return str(importer.get("__name__", "")).partition(".")[0]


def _is_own(importer: Mapping[str, object]) -> bool:
    """Whether a module belongs to the program, by its globals."""
    file = importer.get("__file__")
    return _top_of(importer) not in _TELLING and not (isinstance(file, str) and is_installed(file))
