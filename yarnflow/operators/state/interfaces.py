"""State as users' functions see it; of the key of the element or timer at hand.

Names and signatures are PyFlink's.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Generic, TypeVar

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")
IN = TypeVar("IN")
OUT = TypeVar("OUT")


class State(ABC):
    """Any state."""

    @abstractmethod
    def clear(self) -> None:
        """Remove what is stored for the current key."""


class ValueState(State, Generic[T]):
    """One value per key."""

    @abstractmethod
    def value(self) -> T:
        """The value; None if there is none."""

    @abstractmethod
    def update(self, value: T) -> None:
        """Replace the value; None removes it."""


class AppendingState(State, Generic[IN, OUT]):
    """State that values are added to."""

    @abstractmethod
    def get(self) -> OUT:
        """What the values added so far make; None, or nothing, if there are none."""

    @abstractmethod
    def add(self, value: IN) -> None:
        """Add a value."""


class MergingState(AppendingState[IN, OUT]):
    """Appending state of which two can be made one, as merging windows need it."""


class ReducingState(MergingState[T, T]):
    """One value per key, combined of all values added by a ReduceFunction."""


class AggregatingState(MergingState[IN, OUT]):
    """One accumulator per key, made of all values added by an AggregateFunction; ``get`` is its result."""


class ListState(MergingState[T, Iterable[T]]):
    """A list per key."""

    @abstractmethod
    def update(self, values: list[T]) -> None:
        """Replace the list."""

    @abstractmethod
    def add_all(self, values: list[T]) -> None:
        """Add values to the end of the list."""

    def __iter__(self) -> Iterator[T]:
        return iter(self.get())


class ReadOnlyMap(State, Generic[K, V]):
    """What MapState and broadcast state have in common for reading."""

    @abstractmethod
    def get(self, key: K) -> V:
        """The value of a key; None if there is none."""

    @abstractmethod
    def contains(self, key: K) -> bool:
        """Whether there is a value of a key."""

    @abstractmethod
    def items(self) -> Iterable[tuple[K, V]]:
        """All keys and values, as they are at the time of the call."""

    @abstractmethod
    def keys(self) -> Iterable[K]:
        """All keys, as they are at the time of the call."""

    @abstractmethod
    def values(self) -> Iterable[V]:
        """All values, as they are at the time of the call."""

    @abstractmethod
    def is_empty(self) -> bool:
        """Whether there is nothing."""

    def __getitem__(self, key: K) -> V:
        return self.get(key)

    def __contains__(self, key: Any) -> bool:
        return self.contains(key)

    def __iter__(self) -> Iterator[K]:
        return iter(self.keys())


class WritableMap(ReadOnlyMap[K, V]):
    """What MapState and BroadcastState have in common for writing."""

    @abstractmethod
    def put(self, key: K, value: V) -> None:
        """Set the value of a key."""

    @abstractmethod
    def put_all(self, dict_value: Mapping[K, V] | Iterable[tuple[K, V]]) -> None:
        """Set the values of some keys, given as a mapping or as pairs."""

    @abstractmethod
    def remove(self, key: K) -> None:
        """Remove a key, if it is there."""

    def __setitem__(self, key: K, value: V) -> None:
        self.put(key, value)

    def __delitem__(self, key: K) -> None:
        self.remove(key)


class MapState(WritableMap[K, V]):
    """A map per key of the stream."""


class ReadOnlyBroadcastState(ReadOnlyMap[K, V]):
    """A map that is the same for all keys, as the side of the elements sees it."""


class BroadcastState(ReadOnlyBroadcastState[K, V], WritableMap[K, V]):
    """A map that is the same for all keys, as the broadcast side sees it."""


class OperatorStateStore(ABC):
    """Where an operator's broadcast state is found."""

    @abstractmethod
    def get_broadcast_state(self, state_descriptor: Any) -> BroadcastState[Any, Any]:
        """The broadcast state of a MapStateDescriptor."""
