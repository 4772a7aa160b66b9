"""Unpickling where classes may be missing: what is to be left behind may be of modules that are gone.

An object of a class that cannot be imported becomes a :class:`MissingObject`, which only says what it would
have been.  Such objects may be keys, so equal ones are found again.  Flink counterpart: the serializer
snapshots of state that ``--allowNonRestoredState`` skips without reading.
"""

from __future__ import annotations

import functools
import io
import pickle
from collections.abc import Callable, Mapping
from types import FunctionType, ModuleType
from typing import Any, Final, cast

#: how deep objects are looked into for their hash
_HASHED_DEPTH: Final = 4


class MissingObject:
    """Stands for an object of a class that is not there; equal where all that made it is equal."""

    class_name = ""
    #: arguments, and what was done to it afterwards
    made_of: list[Any]

    def __new__(cls, *args: Any, **named: Any) -> MissingObject:  # noqa: PYI034
        made = super().__new__(cls)
        made.made_of = [args, named]
        return made

    def __init__(self, *args: Any, **named: Any) -> None:
        """Whatever the class takes."""

    def _note(self, *parts: Any) -> None:
        self.made_of.append(parts)

    # whatever a pickle does with an object
    __setstate__ = __setitem__ = append = extend = add = _note

    def __call__(self, *args: Any, **named: Any) -> MissingObject:
        return type(self)(self, args, named)

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise pickle.PicklingError(f"an object of {self.class_name}, which cannot be imported")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, MissingObject):
            return NotImplemented
        return self.class_name == other.class_name and self.made_of == other.made_of

    def __hash__(self) -> int:
        return hash((self.class_name, _hash_of(self.made_of, _HASHED_DEPTH)))


def _hash_of(value: Any, depth: int) -> int:
    if not depth:
        return 0
    if isinstance(value, MissingObject):
        return hash((value.class_name, _hash_of(value.made_of, depth - 1)))
    if isinstance(value, Mapping):
        return hash(frozenset((_hash_of(k, depth - 1), _hash_of(v, depth - 1)) for k, v in value.items()))
    if isinstance(value, (list, tuple)):
        return hash(tuple(_hash_of(part, depth - 1) for part in value))
    try:
        return hash(value)
    except TypeError:
        return 0


class TolerantReader:
    """Unpickles.

    Attributes
    ----------
    found_missing : bool
        Something it has read names a class that is not there.
    """

    def __init__(self) -> None:
        self.found_missing = False

    def loads(self, data: bytes) -> Any:
        """What was pickled, with :class:`MissingObject` where classes are missing."""
        unpickler = _Unpickler(io.BytesIO(data))
        value = unpickler.load()  # noqa: S301
        self.found_missing = self.found_missing or unpickler.found_missing
        return value


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file)
        self.found_missing = False

    def find_class(self, module_name: str, global_name: str, /) -> Any:
        if module_name == "cloudpickle.cloudpickle" and global_name == "subimport":
            # what functions that are pickled by value bring their modules with
            return functools.partial(self._module, super().find_class(module_name, global_name))
        try:
            return super().find_class(module_name, global_name)
        except Exception:
            # a module may raise anything while it is imported
            return self._missing(f"{module_name}.{global_name}")

    def _module(self, subimport: Callable[[str], Any], name: str) -> Any:
        try:
            return subimport(name)
        except Exception:
            return self._missing(name)

    def _missing(self, name: str) -> type[MissingObject]:
        self.found_missing = True
        made = type(name.rpartition(".")[2] or "object", (MissingObject,), {"class_name": name})
        return cast("type[MissingObject]", made)


def missing_class(value: Any) -> str:
    """The name of a class that is missing in a value; empty = there is none."""
    finder = _Finder(io.BytesIO())
    try:
        finder.dump(value)
    except _FoundMissing as found:
        return found.class_name
    return ""


class _FoundMissing(Exception):
    def __init__(self, class_name: str) -> None:
        super().__init__(class_name)
        self.class_name = class_name


class _Finder(pickle.Pickler):
    """Looks into everything that would be pickled."""

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, MissingObject):
            raise _FoundMissing(obj.class_name)
        if isinstance(obj, type):
            if issubclass(obj, MissingObject):
                raise _FoundMissing(obj.class_name)
        elif not isinstance(obj, (FunctionType, ModuleType)):
            return NotImplemented
        # it is there, wherever it came from
        return len, ("",)
