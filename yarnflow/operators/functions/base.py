"""The base of all users' functions, and how one is opened and closed."""

from __future__ import annotations

import inspect
from abc import ABC
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from yarnflow.operators.functions.runtime_context import RuntimeContext


class Function(ABC):
    """Base of all user functions.

    ``open`` runs once in every process that loads the function, before the first element: the
    place for connections and caches, which cannot travel, and for getting state.  An ``open`` without
    argument does as well.
    """

    def open(self, runtime_context: RuntimeContext) -> None:
        """Prepare; runs in the worker."""

    def close(self) -> None:
        """Let go of what ``open`` took."""


def open_function(function: Any, runtime_context: RuntimeContext | None) -> None:
    """Call ``open`` of a user's function, if it has one, with the context if it takes one."""
    open_it = getattr(function, "open", None)
    if not callable(open_it):
        return
    # a parameter with a default takes the context as well
    if positional_arity(open_it, with_defaults=True) == 0:
        open_it()
    else:
        open_it(runtime_context)


def close_function(function: Any) -> None:
    """Call ``close`` of a user's function, if it has one."""
    close = getattr(function, "close", None)
    if callable(close):
        close()


def method_of(function: Any, name: str) -> Callable[..., Any]:
    """What to call per element: the method of a function class, or the plain function itself.

    Raises
    ------
    TypeError
        It is neither.
    """
    method = getattr(function, name, None) if isinstance(function, Function) else function
    if not callable(method):
        raise TypeError(
            f"{type(function).__name__} cannot be used here: it needs a method {name}, or to be a function"
        )
    called: Callable[..., Any] = method
    return called


def positional_arity(function: Callable[..., Any], with_defaults: bool = False) -> int | None:
    """How many arguments a function needs (or takes) by position; None if Python cannot tell."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    if with_defaults and any(p.kind is inspect.Parameter.VAR_POSITIONAL for p in parameters):
        return None
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(p.kind in positional and (with_defaults or p.default is p.empty) for p in parameters)
