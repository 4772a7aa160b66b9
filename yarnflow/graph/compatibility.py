"""How far a name of PyFlink means here what it means there, declared where the name is defined.

A function without a mark does what PyFlink's does; :func:`same_and` says what is to be known beside that.
:func:`differs` says how one does not,
:func:`refused` makes one that cannot be called here, :func:`refused_class` a class that can be
imported and nothing else.  The table of PyFlink's API is made from these declarations.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final, NoReturn, TypeVar

from yarnflow.errors import UnsupportedCall

_Callable = TypeVar("_Callable", bound=Callable[..., Any])

#: attributes that carry the declarations
SAME_AND: Final = "__yarnflow_same_and__"
DIFFERS: Final = "__yarnflow_differs__"
REFUSED: Final = "__yarnflow_refused__"

#: why everything that reaches into Java's classes is refused
NO_JVM: Final = "programs are built without a JVM, so there is no Java object behind it"


def same_and(remark: str) -> Callable[[_Callable], _Callable]:
    """Say what is to be known of a function or class that every PyFlink program can use as it does there.

    For names that take more than PyFlink's do, and for settings of what has no part in yarnflow and no result
    of a job depends on.
    """

    def mark(target: _Callable) -> _Callable:
        setattr(target, SAME_AND, remark)
        return target

    return mark


def differs(how: str) -> Callable[[_Callable], _Callable]:
    """Say how a function or class differs from PyFlink's of the same name."""

    def mark(target: _Callable) -> _Callable:
        setattr(target, DIFFERS, how)
        return target

    return mark


def refused(why: str, use: str = "") -> Callable[[_Callable], _Callable]:
    """A function of PyFlink that cannot be called here; its body is never run.

    Parameters
    ----------
    why : str
        The reason, as the second half of a sentence.
    use : str
        What does the same here; empty = nothing does.
    """

    def mark(target: _Callable) -> _Callable:
        @functools.wraps(target)
        def call(*_: object, **__: object) -> NoReturn:
            raise unsupported(f"{target.__qualname__}()", why, use)

        setattr(call, REFUSED, _sentence(why, use))
        return call  # type: ignore[return-value]

    return mark


def unsupported(call: str, why: str, use: str = "") -> UnsupportedCall:
    """The one error of what PyFlink has and yarnflow has not."""
    return UnsupportedCall(f"{call}: {_sentence(why, use)}")


def _sentence(why: str, use: str) -> str:
    return f"{why}; use {use}" if use else why


class _RefusedType(type):
    """Any use of the class but naming it raises UnsupportedCall."""

    def __call__(cls, *_: object, **__: object) -> NoReturn:
        raise _refusal(cls, "")

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        raise _refusal(cls, name)


def _refusal(cls: type, member: str) -> UnsupportedCall:
    shown = f"{cls.__name__}.{member}" if member else f"{cls.__name__}()"
    return UnsupportedCall(f"{shown}: {getattr(cls, REFUSED)}")


def refused_class(name: str, why: str, use: str = "") -> Any:
    """A class of PyFlink that has no counterpart: it can be imported and named in annotations.

    Making an instance or reading a public attribute raises UnsupportedCall.
    """
    members = {REFUSED: _sentence(why, use), "__doc__": f"Not here: {_sentence(why, use)}."}
    return _RefusedType(name, (), members)
