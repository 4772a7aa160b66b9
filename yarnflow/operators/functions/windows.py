"""Functions that see all elements of a window."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, Generic, TypeAlias, TypeVar

from yarnflow.operators.functions.base import Function
from yarnflow.operators.functions.runtime_context import KeyedStateStore

IN = TypeVar("IN")
OUT = TypeVar("OUT")
KEY = TypeVar("KEY")
W = TypeVar("W")
W2 = TypeVar("W2")


class AllWindowContext(ABC, Generic[W2]):
    """What is known of a window of a stream that is not keyed."""

    @abstractmethod
    def window(self) -> W2:
        """The window."""

    @abstractmethod
    def window_state(self) -> KeyedStateStore:
        """State of this window; to be cleared in ``clear`` of the function."""

    @abstractmethod
    def global_state(self) -> KeyedStateStore:
        """State that all windows share."""


class WindowContext(AllWindowContext[W2]):
    """What is known of a window of a key.  Times are ms since the epoch."""

    @abstractmethod
    def current_processing_time(self) -> int:
        """Time of the micro-batch, ms since the epoch."""

    @abstractmethod
    def current_watermark(self) -> int:
        """No element with an earlier time is expected."""


class WindowFunction(Function, Generic[IN, OUT, KEY, W]):
    """Sees all elements of one key and window at once."""

    @abstractmethod
    def apply(self, key: KEY, window: W, inputs: Iterable[IN]) -> Iterable[OUT]:
        """The elements to emit for the window."""


class AllWindowFunction(Function, Generic[IN, OUT, W]):
    """Sees all elements of one window at once, whatever their key."""

    @abstractmethod
    def apply(self, window: W, inputs: Iterable[IN]) -> Iterable[OUT]:
        """The elements to emit for the window."""


class ProcessWindowFunction(Function, Generic[IN, OUT, KEY, W]):
    """Sees all elements of one key and window at once, with times and state."""

    Context: TypeAlias = WindowContext

    @abstractmethod
    def process(self, key: KEY, context: WindowContext[W], elements: Iterable[IN]) -> Iterable[OUT]:
        """The elements to emit for the window."""

    def clear(self, context: WindowContext[W]) -> None:
        """Remove the state of a window that is gone."""

    def __call__(self, key: KEY, context: WindowContext[W], elements: Iterable[IN]) -> Iterable[OUT]:
        return self.process(key, context, elements)


class ProcessAllWindowFunction(Function, Generic[IN, OUT, W]):
    """Sees all elements of one window at once, with state, whatever their key."""

    Context: TypeAlias = AllWindowContext

    @abstractmethod
    def process(self, context: AllWindowContext[W], elements: Iterable[IN]) -> Iterable[OUT]:
        """The elements to emit for the window."""

    def clear(self, context: AllWindowContext[W]) -> None:
        """Remove the state of a window that is gone."""


class PassThroughWindowFunction(WindowFunction[Any, Any, Any, Any]):
    """Emits the elements as they are."""

    def apply(self, key: Any, window: Any, inputs: Iterable[Any]) -> Iterable[Any]:
        return inputs


class PassThroughAllWindowFunction(AllWindowFunction[Any, Any, Any]):
    """Emits the elements as they are."""

    def apply(self, window: Any, inputs: Iterable[Any]) -> Iterable[Any]:
        return inputs
