"""User functions as bytes.

Decides what travels by value: the program itself, the modules beside it and those of
``-pyfs``, since no worker has those files; installed packages travel by name.  Loading happens in drivers and
workers only.  The only importer of cloudpickle.  Flink counterpart: ``ClosureCleaner`` and
PyFlink's pickled user-defined functions.
"""

from __future__ import annotations

import dataclasses
import functools
import io
import sys
import traceback
import types
from collections import ChainMap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from yarnflow.errors import UnserializableFunction, UserCodeError
from yarnflow.graph import import_finder

if TYPE_CHECKING:
    from cloudpickle import Pickler

_INSTALLED: Final = frozenset({"site-packages", "dist-packages"})
#: how deep to look for what cannot travel: function → helper → its helper …
_SEARCH_DEPTH: Final = 4
#: of the arguments of :class:`types.CodeType`
_FILE_NAME: Final = 10


@dataclass(frozen=True, slots=True)
class Closure:
    """A user function on its way to the workers."""

    #: cloudpickle bytes of a callable or of an instance of a function class
    payload: bytes = field(repr=False)
    #: qualified name, for plans and messages
    name: str
    #: ``file:line`` of its definition or use
    origin: str


class NotInFunctions(TypeError):
    """What ``__reduce__`` of a part of the program raises; the message says what to do instead."""


def make_closure(function: Any, origin: str, name: str = "") -> Closure:
    """Pickle a user function, or what holds one.

    Parameters
    ----------
    function : callable
        Function, lambda, partial, or instance of a function class.
    origin : str
        ``file:line`` of its definition or use.
    name : str, optional
        What to call it in plans and messages; default: its own name.

    Raises
    ------
    UnserializableFunction
        Naming the variable and its type where they can be found.
    """
    name = name or function_name(function)
    with _by_value():
        try:
            return Closure(dumps_with_classes(function), name, origin)
        except Exception as exc:  # whatever a user object's __reduce__ raises
            culprit = _culprit(function, _SEARCH_DEPTH, set())
            found = f": {culprit}" if culprit else ""
            where = f"{origin}: " if origin else ""
            why = (
                f"; {exc}"
                if isinstance(exc, NotInFunctions)
                else f" ({_one_line(exc)}); create such objects inside the function, or in open() of a "
                "function class"
            )
            raise UnserializableFunction(
                f"{where}function '{name}' cannot be sent to the workers{found}{why}"
            ) from exc


def copied(function: Any, origin: str) -> Any:
    """A user function as it is now: what the program changes later is not seen by the copy.

    Raises
    ------
    UnserializableFunction
        As :func:`make_closure`.
    """
    return load_closure(make_closure(function, origin))


@contextmanager
def pickling() -> Iterator[Callable[[Any], bytes]]:
    """What pickles many values of the program, by value what :func:`make_closure` takes by value.

    To find that takes a look at all loaded modules: a millisecond, here once.
    """
    with _by_value():
        yield dumps_with_classes


def dumps_with_classes(value: Any) -> bytes:
    """Pickle a value together with those of its classes that no other process can import."""
    with io.BytesIO() as file:
        _pickler()(file).dump(value)
        return file.getvalue()


def load_closure(closure: Closure) -> Callable[..., Any]:
    """What was pickled; a function class is not opened yet.  It may import ``pyflink`` from now on.

    Raises
    ------
    UserCodeError
        It needs a module or a class that is not here; the message says where it comes from.
    Exception
        Whatever code of its own raises while it is loaded, such as ``__setstate__``.
    """
    import pickle

    import_finder.install()
    try:
        loaded: Callable[..., Any] = pickle.loads(closure.payload)
    except (ImportError, AttributeError) as error:
        where = f"{closure.origin}: " if closure.origin else ""
        missing = not_installed(error, f"{where}function '{closure.name}'")
        if missing is None:
            raise
        raise missing from error
    return loaded


def not_installed(error: ImportError | AttributeError, what: str) -> UserCodeError | None:
    """What to raise where something pickled by the program needs a module or class that is not here.

    Parameters
    ----------
    error : ImportError or AttributeError
        As caught in the function that has called the unpickler.
    what : str
        What was pickled, with the program's line.

    Returns
    -------
    UserCodeError or None
        None = code of what was loaded raised it.
    """
    if _is_of_user_code(error):
        return None
    return UserCodeError(
        f"{what} needs what is not installed where it runs: {_one_line(error)}; pack "
        "the environment by yarnflow env pack, or ship the module by -pyfs or add_python_file()"
    )


def _is_of_user_code(error: ImportError | AttributeError) -> bool:
    """Whether code of what was loaded raised it, and not the unpickler when it looked for a name."""
    import cloudpickle

    own = Path(cloudpickle.__file__).parent
    frames = traceback.extract_tb(error.__traceback__)[1:]
    below = [frame for frame in frames if not Path(frame.filename).is_relative_to(own)]
    if not below:
        return False
    # a module that the unpickler imports may miss another one; Python leaves out what imported it
    importing = below[0].name == "<module>" or below[0].filename.startswith("<frozen importlib")
    return not (importing and isinstance(error, ImportError))


def function_name(function: Any) -> str:
    """A function's name for plans and messages: ``parse``, ``<lambda>``, ``MyMap``."""
    while isinstance(function, functools.partial):
        function = function.func
    name = getattr(function, "__qualname__", None) or type(function).__qualname__
    # a function defined in a function is known by its own name
    return str(name).rsplit("<locals>.", 1)[-1]


# --- cloudpickle ------------------------------------------------------------------------


@functools.cache
def _pickler() -> type[Pickler]:
    """cloudpickle's, whose functions keep the names of their files: errors tell the lines of the program.

    From 3.1.3 on cloudpickle puts a placeholder in their place.
    """
    import cloudpickle

    reduce = cloudpickle.Pickler.dispatch_table[types.CodeType]

    def reduce_code(code: types.CodeType) -> tuple[Any, ...]:
        make, arguments = reduce(code)
        return make, (*arguments[:_FILE_NAME], code.co_filename, *arguments[_FILE_NAME + 1 :])

    class NamingPickler(cloudpickle.Pickler):  # type: ignore[misc]  # a library without types
        dispatch_table = ChainMap({types.CodeType: reduce_code}, cloudpickle.Pickler.dispatch_table)

    return NamingPickler


# --- by value or by name --------------------------------------------------------------


@contextmanager
def _by_value() -> Iterator[None]:
    import cloudpickle

    before = cloudpickle.list_registry_pickle_by_value()
    registered = [module for module in _uninstalled_modules() if module.__name__ not in before]
    for module in registered:
        cloudpickle.register_pickle_by_value(module)
    try:
        yield
    finally:
        for module in registered:
            cloudpickle.unregister_pickle_by_value(module)


def _uninstalled_modules() -> Iterator[types.ModuleType]:
    """Modules of files that no package manager put there; ``__main__`` needs no registration."""
    for name, module in list(sys.modules.items()):
        path = getattr(module, "__file__", None)
        if not path or not isinstance(module, types.ModuleType) or module.__name__ != name:
            continue
        if name != "__main__" and name.partition(".")[0] != "yarnflow" and not is_installed(path):
            yield module


@functools.cache
def is_installed(path: str) -> bool:
    """Whether a file belongs to an installed package or to Python itself, and not to the program."""
    library = Path(functools.__file__).parent
    for form in (Path(path), Path(path).resolve()):
        if _INSTALLED & set(form.parts) or form.is_relative_to(library):
            return True
    return False


# --- what cannot travel ------------------------------------------------------------------


def _culprit(function: Any, depth: int, seen: set[int]) -> str:
    """``variable 'conn' of type sqlite3.Connection``, or empty if nothing single is at fault."""
    seen.add(id(function))
    for kind, name, value in _captured(function):
        if id(value) in seen or _pickles(value):
            continue
        # what is around the user's function is not the user's
        around = _is_definition(function)
        deeper = depth and (around or _has_captures(value))
        inner = _culprit(value, depth - 1, seen) if deeper else ""
        found = "" if around else f"it uses the {kind} '{name}' of type {_type_name(value)}"
        return inner or found
    return ""


def _is_definition(value: Any) -> bool:
    """Whether it is an operator's definition, which holds the user's functions in its fields."""
    return dataclasses.is_dataclass(value) and type(value).__module__.startswith("yarnflow.")


def _pickles(value: Any) -> bool:
    try:
        dumps_with_classes(value)
    except Exception:
        return False
    return True


def _has_captures(value: Any) -> bool:
    if isinstance(value, (types.FunctionType, types.MethodType, functools.partial)):
        return True
    if _is_definition(value):
        return True
    return type(value).__module__ == "__main__" and hasattr(value, "__dict__")


def _captured(function: Any) -> Iterator[tuple[str, str, Any]]:
    if isinstance(function, functools.partial):
        yield "function", function_name(function.func), function.func
        yield from (("argument", str(i), value) for i, value in enumerate(function.args))
        yield from (("argument", name, value) for name, value in function.keywords.items())
    elif isinstance(function, types.MethodType):
        yield "object", type(function.__self__).__name__, function.__self__
    elif isinstance(function, types.FunctionType):
        code = function.__code__
        for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=False):
            try:
                yield "variable", name, cell.cell_contents
            except ValueError:  # not assigned yet
                continue
        for name in _global_names(code):
            if name in function.__globals__:
                yield "global variable", name, function.__globals__[name]
        yield from (("default value", str(i), value) for i, value in enumerate(function.__defaults__ or ()))
    elif _is_definition(function):
        for one in dataclasses.fields(function):
            yield "field", one.name, getattr(function, one.name)
    else:
        yield from (("attribute", name, value) for name, value in getattr(function, "__dict__", {}).items())
        for method in vars(type(function)).values():
            if isinstance(method, types.FunctionType):
                yield from _captured(method)


def _global_names(code: types.CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):  # comprehensions, inner functions
            yield from _global_names(constant)


def _type_name(value: Any) -> str:
    kind = type(value)
    plain = kind.__module__ in ("builtins", "__main__") or kind.__module__.startswith("yarnflow.api.")
    return kind.__qualname__ if plain else f"{kind.__module__}.{kind.__qualname__}"


def _one_line(exc: BaseException) -> str:
    return (str(exc) or type(exc).__name__).splitlines()[0]
