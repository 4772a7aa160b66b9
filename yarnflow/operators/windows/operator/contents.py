"""What a window keeps of its elements: all of them, or what they amount to so far."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable
from functools import reduce
from typing import Any, ClassVar

from yarnflow.operators.functions.elements import AggregateFunction
from yarnflow.operators.process.user_code import noted
from yarnflow.operators.state.kinds import StateKind
from yarnflow.operators.state.tables import StateTable

#: name of the state
CONTENTS = "window-contents"

#: elements by key, in the order of their arrival
Group = defaultdict[Any, list[Any]]


class Contents(ABC):
    """Contents of windows, in a table by key and namespace.

    Attributes
    ----------
    table : StateTable
        Set by the operator when it opens.
    operator_name : str
        For notes on what the user's functions raise.
    """

    kind: ClassVar[StateKind]
    #: :meth:`get` calls a function of the user's
    has_user_code: ClassVar[bool] = False
    table: StateTable
    operator_name: str = ""

    @abstractmethod
    def add(self, key: Any, namespace: Any, value: Any) -> None:
        """One more element."""

    @abstractmethod
    def add_group(self, namespace: Any, group: dict[Any, list[Any]]) -> list[Any]:
        """More elements of one window by their keys; returns the keys that had none yet."""

    @abstractmethod
    def merge(self, key: Any, target: Any, sources: list[Any]) -> None:
        """Move the contents of some windows to those of another."""

    def get(self, key: Any, namespace: Any) -> Any:
        """What a window function is to see; None: nothing, so it is not called."""
        return self.table.get(key, namespace)

    def clear(self, key: Any, namespace: Any) -> None:
        """Forget the elements."""
        self.table.remove(key, namespace)


class ElementContents(Contents):
    """All elements, in the order of their arrival."""

    kind = StateKind.LIST

    def add(self, key: Any, namespace: Any, value: Any) -> None:
        self.table.append(key, value, namespace)

    def add_group(self, namespace: Any, group: dict[Any, list[Any]]) -> list[Any]:
        get, extend, new = self.table.get, self.table.extend, []
        for key, values in group.items():
            if get(key, namespace) is None:
                new.append(key)
            extend(key, values, namespace)
        return new

    def get(self, key: Any, namespace: Any) -> Any:
        """A copy: functions may sort what they are given."""
        elements = self.table.get(key, namespace)
        return None if elements is None else list(elements)

    def merge(self, key: Any, target: Any, sources: list[Any]) -> None:
        for source in sources:
            elements = self.table.get(key, source)
            if elements is not None:
                self.table.remove(key, source)
                self.table.extend(key, elements, target)


class ReducedContents(Contents):
    """The elements combined by a reduce function."""

    kind = StateKind.REDUCING

    def __init__(self, function: Callable[[Any, Any], Any]) -> None:
        self.function = function

    def add(self, key: Any, namespace: Any, value: Any) -> None:
        so_far = self.table.get(key, namespace)
        self.table.put(key, value if so_far is None else self.function(so_far, value), namespace)

    def add_group(self, namespace: Any, group: dict[Any, list[Any]]) -> list[Any]:
        function, get, put, new = self.function, self.table.get, self.table.put, []
        values: list[Any] = []
        try:
            for key, values in group.items():
                so_far = get(key, namespace)
                if so_far is None:
                    new.append(key)
                    put(key, reduce(function, values), namespace)
                else:
                    put(key, reduce(function, values, so_far), namespace)
        except Exception as error:
            raise noted(error, self.operator_name, "combining elements", values) from None
        return new

    def merge(self, key: Any, target: Any, sources: list[Any]) -> None:
        merged = self.table.get(key, target)
        for source in sources:
            value = self.table.get(key, source)
            if value is not None:
                self.table.remove(key, source)
                merged = value if merged is None else self.function(merged, value)
        if merged is not None:
            self.table.put(key, merged, target)


class AggregatedContents(Contents):
    """An accumulator of an :class:`AggregateFunction`."""

    kind = StateKind.AGGREGATING
    has_user_code = True

    def __init__(self, function: AggregateFunction) -> None:
        self.function = function

    def add(self, key: Any, namespace: Any, value: Any) -> None:
        accumulator = self.table.get(key, namespace)
        if accumulator is None:
            accumulator = self.function.create_accumulator()
        self.table.put(key, self.function.add(value, accumulator), namespace)

    def add_group(self, namespace: Any, group: dict[Any, list[Any]]) -> list[Any]:
        add, get, put, new = self.function.add, self.table.get, self.table.put, []
        value = None
        try:
            for key, values in group.items():
                accumulator = get(key, namespace)
                if accumulator is None:
                    new.append(key)
                    accumulator = self.function.create_accumulator()
                for value in values:
                    accumulator = add(value, accumulator)
                put(key, accumulator, namespace)
        except Exception as error:
            raise noted(error, self.operator_name, "element", value) from None
        return new

    def get(self, key: Any, namespace: Any) -> Any:
        accumulator = self.table.get(key, namespace)
        return None if accumulator is None else self.function.get_result(accumulator)

    def merge(self, key: Any, target: Any, sources: list[Any]) -> None:
        merged = self.table.get(key, target)
        for source in sources:
            accumulator = self.table.get(key, source)
            if accumulator is not None:
                self.table.remove(key, source)
                merged = accumulator if merged is None else self.function.merge(merged, accumulator)
        if merged is not None:
            self.table.put(key, merged, target)
