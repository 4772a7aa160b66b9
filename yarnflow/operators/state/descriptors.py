"""Descriptors of state: what users register it with.

Types are only compared, so anything with an equality does, also None.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from yarnflow.operators.state.ttl import StateTtlConfig


class StateDescriptor:
    """Name, type and time-to-live of a state."""

    def __init__(self, name: str, type_info: Any) -> None:
        self.name = name
        self.type_info = type_info
        self._ttl_config: StateTtlConfig | None = None

    def get_name(self) -> str:
        return self.name

    def enable_time_to_live(self, ttl_config: StateTtlConfig) -> None:
        """Let entries expire that nobody used for a time."""
        self._ttl_config = ttl_config


class ValueStateDescriptor(StateDescriptor):
    """Describes a ValueState."""

    def __init__(self, name: str, value_type_info: Any = None) -> None:
        super().__init__(name, value_type_info)


class ListStateDescriptor(StateDescriptor):
    """Describes a ListState; ``type_info`` is the type of an element."""

    def __init__(self, name: str, elem_type_info: Any = None) -> None:
        super().__init__(name, elem_type_info)


class MapStateDescriptor(StateDescriptor):
    """Describes a MapState or BroadcastState; ``type_info`` is the pair of the types of key and value."""

    def __init__(self, name: str, key_type_info: Any = None, value_type_info: Any = None) -> None:
        types = (key_type_info, value_type_info)
        super().__init__(name, None if types == (None, None) else types)


class ReducingStateDescriptor(StateDescriptor):
    """Describes a ReducingState.

    Raises
    ------
    TypeError
        ``reduce_function`` is neither a ReduceFunction nor a function of two values.
    """

    def __init__(self, name: str, reduce_function: Any, type_info: Any = None) -> None:
        super().__init__(name, type_info)
        if not callable(getattr(reduce_function, "reduce", reduce_function)):
            raise TypeError(
                f"state '{name}' needs a ReduceFunction or a function of two values, "
                f"not {type(reduce_function).__name__}"
            )
        self._reduce_function = reduce_function

    def get_reduce_function(self) -> Any:
        """The ReduceFunction; of a function of two values an object that has it as ``reduce``."""
        given = self._reduce_function
        return given if hasattr(given, "reduce") else _FunctionAsReduce(given)

    def reducer(self) -> Callable[[Any, Any], Any]:
        """The reduce function as a plain function."""
        reduce: Callable[[Any, Any], Any] = getattr(self._reduce_function, "reduce", self._reduce_function)
        return reduce


class _FunctionAsReduce:
    def __init__(self, function: Callable[[Any, Any], Any]) -> None:
        self.reduce = function


class AggregatingStateDescriptor(StateDescriptor):
    """Describes an AggregatingState; ``type_info`` is the type of the accumulator.

    Raises
    ------
    TypeError
        ``agg_function`` is no AggregateFunction.
    """

    def __init__(self, name: str, agg_function: Any, state_type_info: Any = None) -> None:
        super().__init__(name, state_type_info)
        for method in ("create_accumulator", "add", "get_result", "merge"):
            if not callable(getattr(agg_function, method, None)):
                raise TypeError(
                    f"state '{name}' needs an AggregateFunction; "
                    f"{type(agg_function).__name__} has no method {method}"
                )
        self._agg_function = agg_function

    def get_agg_function(self) -> Any:
        """The AggregateFunction, as it was given."""
        return self._agg_function
