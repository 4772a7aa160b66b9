"""Lets programs import yarnflow's API under the name ``pyflink``.

``import pyflink.datastream`` gives the module ``yarnflow.api.datastream`` itself, so there is one class of
each name, and what a program pickles names yarnflow's modules.  It does so also where apache-flink is
installed.  Used by whatever loads programs and their functions: client, driver, workers.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Final

_PYFLINK: Final = "pyflink"
_API: Final = "yarnflow.api"
#: everything below the Table API is refused by one module
_TABLE: Final = "pyflink.table."


class _SameModule(importlib.abc.Loader):
    """Gives a module of ours in place of one of PyFlink's."""

    def __init__(self, own_name: str) -> None:
        self._own_name = own_name
        self._own_spec: importlib.machinery.ModuleSpec | None = None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        module = importlib.import_module(self._own_name)
        self._own_spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        # the import system has written the other name's spec on it
        module.__spec__ = self._own_spec


class PyFlinkFinder(importlib.abc.MetaPathFinder):
    """Finds ``pyflink`` and all below it in :mod:`yarnflow.api`."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != _PYFLINK and not fullname.startswith(f"{_PYFLINK}."):
            return None
        own_name = own_module(fullname)
        own_spec = importlib.util.find_spec(own_name)
        if own_spec is None:
            raise ModuleNotFoundError(
                f"No module named {fullname!r}: yarnflow has PyFlink's common and datastream modules",
                name=fullname,
            )
        is_package = own_spec.submodule_search_locations is not None
        return importlib.machinery.ModuleSpec(fullname, _SameModule(own_name), is_package=is_package)


def own_module(pyflink_name: str) -> str:
    """``pyflink.common.types`` → ``yarnflow.api.common.types``."""
    if pyflink_name.startswith(_TABLE):
        return f"{_API}.table"
    return _API + pyflink_name[len(_PYFLINK) :]


class _Installed:
    """What is installed in this process."""

    def __init__(self) -> None:
        self.finder: PyFlinkFinder | None = None
        #: modules of apache-flink that were loaded before
        self.moved_aside: dict[str, ModuleType] = {}


_installed = _Installed()


def install() -> None:
    """Make ``import pyflink…`` give yarnflow's modules in this process, from now on.

    Modules of apache-flink that are loaded are forgotten until :func:`uninstall`.
    """
    if _installed.finder is not None:
        return
    _installed.moved_aside = _forget()
    _installed.finder = PyFlinkFinder()
    sys.meta_path.insert(0, _installed.finder)


def uninstall() -> None:
    """Undo :func:`install`."""
    if _installed.finder is None:
        return
    sys.meta_path.remove(_installed.finder)
    _installed.finder = None
    _forget()
    sys.modules.update(_installed.moved_aside)
    _installed.moved_aside = {}


def _forget() -> dict[str, ModuleType]:
    names = [name for name in sys.modules if name == _PYFLINK or name.startswith(f"{_PYFLINK}.")]
    return {name: sys.modules.pop(name) for name in names}
