"""Values of every message class, made from its fields and type hints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from hypothesis import strategies as st

from yarnflow.core import messages
from yarnflow.core.checkpoint import messages as checkpoint_messages
from yarnflow.core.collect import parts
from yarnflow.core.resources import diagnostics

MESSAGE_CLASSES = [
    cls
    for module in (checkpoint_messages, messages, parts, diagnostics)
    for cls in vars(module).values()
    if isinstance(cls, type) and is_dataclass(cls) and cls.__module__ == module.__name__
]

_TEXT = st.text(st.characters(codec="utf-8"), max_size=8)


def values_of(hint: Any) -> st.SearchStrategy[Any]:
    """Strategy for one type hint of ``core.messages`` or ``core.ports``."""
    if hasattr(hint, "__supertype__"):
        return values_of(hint.__supertype__)
    scalars: dict[Any, st.SearchStrategy[Any]] = {
        str: _TEXT,
        bytes: st.binary(max_size=8),
        bool: st.booleans(),
        int: st.integers(-(2**63), 2**63 - 1),
        float: st.floats(allow_nan=False),
        NoneType: st.none(),
    }
    if hint in scalars:
        return scalars[hint]
    origin, args = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return st.one_of([values_of(arg) for arg in args])
    if origin in (tuple, Sequence):
        return st.lists(values_of(args[0]), max_size=2).map(tuple)
    if origin is dict:
        return st.dictionaries(values_of(args[0]), values_of(args[1]), max_size=2)
    if issubclass(hint, Enum):
        return st.sampled_from(hint)
    hints = get_type_hints(hint)
    return st.builds(hint, **{f.name: values_of(hints[f.name]) for f in fields(hint)})


def sample(hint: Any, index: int = 1) -> Any:
    """One fixed value with nothing left at its default; another ``index`` gives another value."""
    if hasattr(hint, "__supertype__"):
        return sample(hint.__supertype__, index)
    scalars: dict[Any, Any] = {
        str: f"täxt-{index}",
        bytes: b"\x00\xff" * index,
        bool: True,
        int: 7 * index,
        float: 0.5 * index,
        NoneType: None,
    }
    if hint in scalars:
        return scalars[hint]
    origin, args = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return sample(args[0], index)
    if origin in (tuple, Sequence):
        return (sample(args[0], index), sample(args[0], index + 1))
    if origin is dict:
        return {sample(args[0], index): sample(args[1], index)}
    if issubclass(hint, Enum):
        return list(hint)[-1]
    hints = get_type_hints(hint)
    return hint(**{f.name: sample(hints[f.name], index + i) for i, f in enumerate(fields(hint))})
