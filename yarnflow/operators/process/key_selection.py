"""Key selectors and partitioners on their way to the workers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from yarnflow.graph.type_info import PICKLED, TypeInfo
from yarnflow.operators.functions.base import method_of, open_function
from yarnflow.operators.types.coerce import chunk_coercer

#: elements in, their keys out
SelectKeys = Callable[[list[Any]], list[Any]]


@dataclass(frozen=True)
class KeySelection:
    """A user's key selector and the type of its keys.

    Parameters
    ----------
    function : KeySelector or callable
        ``f(element) -> key``.
    key_type : TypeInfo
        Keys are converted to it.
    operator : str
        Name of the keyed operator, for messages.
    """

    function: Any
    key_type: TypeInfo = PICKLED
    operator: str = ""

    def build(self) -> SelectKeys:
        """``f(elements) -> keys``, opened."""
        open_function(self.function, None)
        select = method_of(self.function, "get_key")
        if self.key_type == PICKLED:
            return lambda values: list(map(select, values))
        coerce = chunk_coercer(self.key_type, f"key of {self.operator}")
        return lambda values: coerce(list(map(select, values)))


@dataclass(frozen=True)
class Partitioning:
    """A user's partitioner: Partitioner, or ``f(key, number of subtasks) -> subtask``."""

    function: Any

    def build(self) -> Callable[[Any, int], int]:
        """The partitioner, opened."""
        open_function(self.function, None)
        return method_of(self.function, "partition")
