"""Unpickling what others may have written, without running what it says.

Plain values become themselves: those of the language, of datetime, decimal, uuid and collections, rows,
windows and the containers state is kept in.  Everything else becomes a :class:`Foreign`, which only says
what it would have been.  Flink counterpart: none; its serializers are code of the job.
"""

from __future__ import annotations

import collections
import datetime
import decimal
import fractions
import io
import pickle
import uuid
import zoneinfo
from abc import ABCMeta
from collections.abc import Callable, Iterator
from typing import Any, Final, NoReturn, cast

from yarnflow.graph import rows
from yarnflow.operators import instant, row
from yarnflow.operators.state import cells, kinds, store, timers
from yarnflow.operators.windows import window


class Foreign:
    """What an object of a class that is not plain is read as: equal where all that made it is equal."""

    _named = ("", "")

    def __new__(cls, *args: Any, **named: Any) -> Foreign:  # noqa: PYI034
        made = super().__new__(cls)
        object.__setattr__(made, "_made_of", [args, named])
        return made

    def __init__(self, *args: Any, **named: Any) -> None:
        pass

    def _note(self, *parts: Any) -> None:
        self._made_of.append(parts)  # type: ignore[attr-defined]

    # whatever a pickle may do with an object
    __setstate__ = __setitem__ = append = extend = add = _note

    def __call__(self, *args: Any, **named: Any) -> Foreign:
        return Foreign(self, args, named)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Foreign):
            return NotImplemented
        return self._named == other._named and bool(
            self._made_of == other._made_of  # type: ignore[attr-defined]
        )

    def __hash__(self) -> int:
        return hash(self._named)

    def __repr__(self) -> str:
        module, name = self._named
        return f"<object of {module}.{name}>" if name else "<object>"


def loads_plain(data: bytes) -> Any:
    """Unpickle; see the module.

    Raises
    ------
    pickle.UnpicklingError
        It is no pickle.
    """
    return _Reader(data).read()


def foreign_names(data: bytes) -> set[str]:
    """``module.name`` of every class a pickle names that is not plain; empty = unpickling it runs nothing.

    Where a pickle brings classes along, the names are theirs, not those of what makes classes.

    Raises
    ------
    pickle.UnpicklingError
        It is no pickle.
    """
    reader = _Reader(data)
    reader.read()
    names = {f"{module}.{name}" for module, name in reader.foreign}
    return {name for name in names if name.partition(".")[0] not in _MAKERS} or names


#: packages of what cloudpickle makes classes and functions with
_MAKERS: Final = ("builtins", "cloudpickle", "dataclasses", "enum", "_collections")


class _Reader(pickle.Unpickler):
    def __init__(self, data: bytes) -> None:
        super().__init__(io.BytesIO(data))
        self.foreign: dict[tuple[str, str], type[Foreign]] = {}

    def read(self) -> Any:
        try:
            return self.load()  # noqa: S301
        except pickle.UnpicklingError:
            raise
        except Exception as error:
            raise pickle.UnpicklingError(f"{type(error).__name__}: {error}") from error

    def find_class(self, module: str, name: str) -> Any:
        found = _PLAIN.get((module, name))
        if found is not None:
            return found
        if (module, name) == ("builtins", "getattr"):
            return _Call(self._attribute)
        if (module, name) not in self.foreign:
            self.foreign[module, name] = _foreign(module, name)
        if module == "cloudpickle.cloudpickle" and name == "_make_skeleton_class":
            return _Call(self._class_by_value)
        if module == "cloudpickle.cloudpickle" and name == "_make_skeleton_enum":
            return _Call(self._enum_by_value)
        return self.foreign[module, name]

    # classes that are pickled with their objects, since no other process can import them

    def _class_by_value(self, kind: Any, name: Any, bases: Any, members: Any, *rest: Any) -> type[Foreign]:
        module = members.get("__module__", "") if isinstance(members, dict) else ""
        found = self.foreign[str(module), str(name)] = _foreign(str(module), str(name))
        return found

    def _enum_by_value(self, bases: Any, name: Any, *rest: Any) -> type[Foreign]:
        module = rest[2] if len(rest) > 2 else ""  # after qualified name and members
        found = self.foreign[str(module), str(name)] = _foreign(str(module), str(name))
        return found

    def _attribute(self, owner: Any, name: str) -> Any:
        """How time zones are pickled; nothing else asks for attributes."""
        if owner is zoneinfo.ZoneInfo and name == "_unpickle":
            return _Call(lambda key, _: zoneinfo.ZoneInfo(key))
        self.foreign.setdefault(("builtins", "getattr"), _foreign("builtins", "getattr"))
        return _foreign("builtins", "getattr")


def _foreign(module: str, name: str) -> type[Foreign]:
    made = _Sealed(name.rpartition(".")[2] or "object", (Foreign,), {"_named": (module, name)})
    return cast("type[Foreign]", made)


class _Sealed(ABCMeta):
    """A pickle may set attributes of whatever it has got, also of a class."""

    def __setattr__(cls, name: str, value: Any) -> None:
        if name not in ("__abstractmethods__", "_abc_impl"):  # which are set while the class is made
            raise pickle.UnpicklingError("it sets an attribute of a class")
        super().__setattr__(name, value)


class _Call:
    """A function that a pickle may call, but neither change nor look into."""

    __slots__ = ("_function",)

    def __init__(self, function: Callable[..., Any]) -> None:
        object.__setattr__(self, "_function", function)

    def __call__(self, *args: Any) -> Any:
        return self._function(*args)  # type: ignore[attr-defined]

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise pickle.UnpicklingError("it sets an attribute of a function")


def _plain() -> Iterator[tuple[tuple[str, str], Any]]:
    of_c: tuple[type, ...] = (
        *(bool, bytearray, bytes, complex, dict, float, frozenset, int, list, object, range, set, slice, str),
        *(tuple, collections.OrderedDict, collections.deque),
        *(datetime.date, datetime.datetime, datetime.time, datetime.timedelta, datetime.timezone),
        *(decimal.Decimal, zoneinfo.ZoneInfo),
    )
    for kind in of_c:
        yield (kind.__module__, kind.__qualname__), kind
    yield ("builtins", "Ellipsis"), ...
    yield ("builtins", "NotImplemented"), NotImplemented
    of_python: tuple[type, ...] = (
        *(collections.Counter, fractions.Fraction, uuid.UUID, instant.Instant),
        *(cells.CellChanges, cells.TableChanges, cells.TableSnapshot, store.Changes, store.Snapshot),
        *(timers.QueueChanges, timers.TimerChanges, timers.TimerSnapshot),
        *(window.TimeWindow, window.CountWindow, window.GlobalWindow),
    )
    for kind in of_python:
        # a subclass that cannot be changed stands for it
        members = {"__slots__": (), "__module__": kind.__module__, "__qualname__": kind.__qualname__}
        yield (kind.__module__, kind.__qualname__), _Sealed(kind.__name__, (kind,), members)
    # PyFlink's rows and those of columns
    for function in (row._restore, row._restore_kind, rows._restore):
        yield (function.__module__, function.__qualname__), _Call(function)
    yield (kinds.__name__, "StateKind"), _Call(kinds.StateKind)


_PLAIN: Final[dict[tuple[str, str], Any]] = dict(_plain())
