"""Which operators may have processing-time timers: only a clock that ticks fires them while no elements come.

Decided when the program calls the operator, on the safe side: what cannot be told counts as having some,
and costs an empty micro-batch per second of an idle job.  Flink has a thread for timers and need not know.
"""

from __future__ import annotations

import functools
import sys
import types
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, Final

from yarnflow.operators.state.descriptors import StateDescriptor
from yarnflow.operators.windows.count_windows import CountedWindows, GlobalWindows
from yarnflow.operators.windows.operator.definition import WindowDefinition

_PROCESSING: Final = "register_processing_time_timer"
_EVENT: Final = "register_event_time_timer"
#: functions, classes and other objects that are looked at before it is given up
_MOST_OBJECTS: Final = 2_000
#: of a list or another container
_MOST_ITEMS: Final = 100
_FUNCTIONS: Final = "yarnflow.operators.functions."
#: the code of our own that registers timers for programs
_TRIGGERS: Final = "yarnflow.operators.windows."
#: what a state's descriptor is told
TIME_TO_LIVE: Final = "enable_time_to_live"
_PLAIN: Final = (str, bytes, int, float, complex, bool, type(None))


def function_may_register(function: Any) -> bool:
    """Whether a process function of a keyed stream may have processing-time timers that do something.

    It cannot without an ``on_timer`` of its own.  With one, it is assumed not to if its code and what this
    refers to (helpers, modules, base classes, attributes) names the method that registers event-time
    timers and nowhere the one that registers the others.
    """
    if str(getattr(function.on_timer, "__module__", "")).startswith(_FUNCTIONS):
        return False
    names = names_in(function)
    # neither name: whoever registers the timers was not found
    return names is None or _PROCESSING in names or _EVENT not in names


def windows_may_register(definition: WindowDefinition) -> bool:
    """Whether windows may end, be cleaned up or be evaluated by the clock."""
    assigner = definition.assigner
    if not (assigner.is_event_time() or isinstance(assigner, (CountedWindows, GlobalWindows))):
        return True
    names = names_in(definition.used_trigger)
    return names is None or _PROCESSING in names


def names_in(thing: object) -> set[str] | None:
    """Names and texts in the code of an object and of what it refers to; None = too much to look at."""
    names: set[str] = set()
    # objects are kept, so that no other gets the id of one that was looked at
    seen: dict[int, object] = {}
    waiting = [thing]
    while waiting:
        found = waiting.pop()
        try:
            if isinstance(found, StateDescriptor) and found._ttl_config is not None:
                names.add(TIME_TO_LIVE)
            if isinstance(found, _PLAIN) or id(found) in seen or _foreign(found):
                continue
            if len(seen) == _MOST_OBJECTS:
                return None
            seen[id(found)] = found
            if isinstance(found, types.FunctionType):
                used = set(_code_names(found.__code__))
                names |= used
                waiting += _used_by(found, used)
            else:
                waiting += _held_by(found)
        except Exception:  # whatever a proxy raises that stands for nothing here
            return None
    return names


def _foreign(found: object) -> bool:
    """Whether it is Python's or our own: it registers timers for nobody."""
    holder = found if isinstance(found, (type, types.FunctionType)) else type(found)
    module = str(getattr(holder, "__module__", None) or "")
    if holder is not found and module in ("builtins", "functools"):
        return False
    top = module.partition(".")[0]
    return (top in sys.stdlib_module_names and top != "__main__") or (
        top == "yarnflow" and not module.startswith(_TRIGGERS)
    )


def _code_names(code: types.CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _code_names(constant)
        elif isinstance(constant, str):
            # getattr(timers, "…")
            yield constant


def _used_by(function: types.FunctionType, names: set[str]) -> Iterator[object]:
    yield from function.__defaults__ or ()
    yield from (function.__kwdefaults__ or {}).values()
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:  # not filled yet
            continue
    modules = []
    for name in names & function.__globals__.keys():
        value = function.__globals__[name]
        if isinstance(value, types.ModuleType):
            modules.append(value)
        else:
            yield value
    # imported where it is used
    modules += [sys.modules[name] for name in names & sys.modules.keys()]
    for module in modules:
        if module.__name__.partition(".")[0] not in sys.stdlib_module_names:
            yield from (value for name, value in vars(module).items() if name in names)


def _held_by(found: object) -> Iterable[object]:
    match found:
        case type():
            bases = [base for base in found.__mro__ if not _foreign(base)]
            return [value for base in bases for value in vars(base).values()]
        case types.MethodType():
            return [found.__func__, found.__self__]
        case staticmethod() | classmethod():
            return [found.__func__]
        case property():
            return [found.fget, found.fset]
        case functools.partial():
            return [found.func, *found.args, *found.keywords.values()]
        case dict():
            return islice(found.values(), _MOST_ITEMS)
        case list() | tuple() | set() | frozenset():
            return islice(found, _MOST_ITEMS)
        case types.ModuleType():
            return ()
    attributes = getattr(found, "__dict__", None)
    return [type(found), *(attributes.values() if isinstance(attributes, dict) else ())]
