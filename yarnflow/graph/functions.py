"""Base classes of user functions.

Public as ``yarnflow.api.functions``; they live here because workers load instances of them
and must not import the API for it.  Every class is callable, so a runtime never asks
whether it was given a class or a plain function.  Flink counterparts: the classes of the
same names in PyFlink.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any


class Function(ABC):
    """Base of all user functions.

    ``open`` runs once in every process that loads the function, before the first record: the
    place for connections and caches, which cannot travel.
    """

    def open(self) -> None:
        """Prepare; runs in the worker."""


class MapFunction(Function):
    """One record in, one record out."""

    @abstractmethod
    def map(self, value: Any) -> Any:
        """The record to put in place of ``value``."""

    def __call__(self, value: Any) -> Any:
        return self.map(value)


class FlatMapFunction(Function):
    """One record in, any number out."""

    @abstractmethod
    def flat_map(self, value: Any) -> Iterable[Any]:
        """The records to put in place of ``value``; may be a generator."""

    def __call__(self, value: Any) -> Iterable[Any]:
        return self.flat_map(value)


class FilterFunction(Function):
    """Keeps or drops records."""

    @abstractmethod
    def filter(self, value: Any) -> bool:
        """Whether to keep ``value``."""

    def __call__(self, value: Any) -> bool:
        return self.filter(value)


class KeySelector(Function):
    """Computes a record's key."""

    @abstractmethod
    def get_key(self, value: Any) -> Any:
        """The key of ``value``; annotate the return type."""

    def __call__(self, value: Any) -> Any:
        return self.get_key(value)


class ReduceFunction(Function):
    """Combines two records of one key into one of the same form; must be associative."""

    @abstractmethod
    def reduce(self, value1: Any, value2: Any) -> Any:
        """The combination of two records."""

    def __call__(self, value1: Any, value2: Any) -> Any:
        return self.reduce(value1, value2)


class TimestampAssigner(Function):
    """Tells a record's event time."""

    @abstractmethod
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        """Event time of ``value`` in milliseconds since the epoch.

        ``record_timestamp`` is the time the source gave the record; always -1 here, since
        Spark's sources give none.
        """

    def __call__(self, value: Any) -> int:
        return self.extract_timestamp(value, -1)


@dataclass(frozen=True, slots=True)
class TimeWindow:
    """A window of event time, ``start`` included and ``end`` not, ms since the epoch."""

    start: int
    end: int

    def max_timestamp(self) -> int:
        """The last millisecond that belongs to the window."""
        return self.end - 1


class ProcessWindowFunction(Function):
    """Sees all records of one key and window at once."""

    @dataclass(frozen=True, slots=True)
    class Context:
        """What is known about the window being processed."""

        time_window: TimeWindow

        def window(self) -> TimeWindow:
            return self.time_window

    @abstractmethod
    def process(self, key: Any, context: Context, elements: Iterable[Any]) -> Iterable[Any]:
        """Records to emit for the window.  ``key`` is a bare value, or a Row of several fields."""

    def __call__(self, key: Any, context: Context, elements: Iterable[Any]) -> Iterable[Any]:
        return self.process(key, context, elements)


def window_context(start_ms: int, end_ms: int) -> ProcessWindowFunction.Context:
    """The context a runtime passes to a window function."""
    return ProcessWindowFunction.Context(TimeWindow(start_ms, end_ms))


@dataclass(frozen=True, slots=True)
class ApplyAdapter:
    """``apply``'s ``f(key, window, elements)`` in the form of ``process``."""

    function: Callable[..., Iterable[Any]]

    def __call__(
        self, key: Any, context: ProcessWindowFunction.Context, elements: Iterable[Any]
    ) -> Iterable[Any]:
        return self.function(key, context.window(), elements)


@dataclass(frozen=True, slots=True)
class TimestampAdapter:
    """PyFlink's ``f(value, record_timestamp)`` as a function of the value alone."""

    function: Callable[..., int]

    def __call__(self, value: Any) -> int:
        return self.function(value, -1)


def positional_arity(function: Callable[..., Any]) -> int | None:
    """How many arguments a function needs by position; None if Python cannot tell."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(p.kind in positional and p.default is p.empty for p in parameters)
