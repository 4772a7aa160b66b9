"""Functions of one element, or of two that are combined.

Every class with one method is callable, so a caller need not know whether it was given a class or a
plain function.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from typing import Any

from yarnflow.operators.functions.base import Function


class MapFunction(Function):
    """One element in, one element out."""

    @abstractmethod
    def map(self, value: Any) -> Any:
        """The element to put in place of ``value``."""

    def __call__(self, value: Any) -> Any:
        return self.map(value)


class FlatMapFunction(Function):
    """One element in, any number out."""

    @abstractmethod
    def flat_map(self, value: Any) -> Iterable[Any]:
        """The elements to put in place of ``value``: a generator, any iterable, or None."""

    def __call__(self, value: Any) -> Iterable[Any]:
        return self.flat_map(value)


class FilterFunction(Function):
    """Keeps or drops elements."""

    @abstractmethod
    def filter(self, value: Any) -> bool:
        """Whether to keep ``value``."""

    def __call__(self, value: Any) -> bool:
        return self.filter(value)


class CoMapFunction(Function):
    """One element in from either of two streams, one element out."""

    @abstractmethod
    def map1(self, value: Any) -> Any:
        """The element to put in place of one of the first stream."""

    @abstractmethod
    def map2(self, value: Any) -> Any:
        """The element to put in place of one of the second stream."""


class CoFlatMapFunction(Function):
    """One element in from either of two streams, any number out."""

    @abstractmethod
    def flat_map1(self, value: Any) -> Iterable[Any]:
        """The elements to put in place of one of the first stream."""

    @abstractmethod
    def flat_map2(self, value: Any) -> Iterable[Any]:
        """The elements to put in place of one of the second stream."""


class ReduceFunction(Function):
    """Combines two elements of one key into one of the same form; must be associative."""

    @abstractmethod
    def reduce(self, value1: Any, value2: Any) -> Any:
        """The combination of two elements."""

    def __call__(self, value1: Any, value2: Any) -> Any:
        return self.reduce(value1, value2)


class AggregateFunction(Function):
    """Combines elements of one key into an accumulator, and makes a result of it."""

    @abstractmethod
    def create_accumulator(self) -> Any:
        """An accumulator that nothing was added to."""

    @abstractmethod
    def add(self, value: Any, accumulator: Any) -> Any:
        """The accumulator with a value added; may be the one given, changed."""

    @abstractmethod
    def get_result(self, accumulator: Any) -> Any:
        """The result of what was added."""

    @abstractmethod
    def merge(self, acc_a: Any, acc_b: Any) -> Any:
        """One accumulator of two; either may be changed and returned."""


class KeySelector(Function):
    """Computes an element's key."""

    @abstractmethod
    def get_key(self, value: Any) -> Any:
        """The key of ``value``: a plain value or a tuple of them; annotate the return type."""

    def __call__(self, value: Any) -> Any:
        return self.get_key(value)


class NullByteKeySelector(KeySelector):
    """One key for all elements."""

    def get_key(self, value: Any) -> int:
        return 0


class Partitioner(Function):
    """Decides which subtask gets a key."""

    @abstractmethod
    def partition(self, key: Any, num_partitions: int) -> int:
        """A number from 0 to ``num_partitions`` - 1."""

    def __call__(self, key: Any, num_partitions: int) -> int:
        return self.partition(key, num_partitions)


class TimestampAssigner(Function):
    """Tells an element's event time."""

    @abstractmethod
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        """Event time of ``value`` in ms since the epoch.

        ``record_timestamp`` is the time the element has already; without one -2**63, on columns -1.
        """

    def __call__(self, value: Any) -> int:
        return self.extract_timestamp(value, -1)
