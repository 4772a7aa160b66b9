"""Functions that see an element with its time, timers and state."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, TypeAlias

from yarnflow.operators.functions.base import Function
from yarnflow.operators.functions.time import TimeDomain, TimerService

#: what may come out of a process function: a generator, any iterable, or None; ``tag, value`` in it
#: goes to the side output of the tag
Results = Iterable[Any] | None


class ElementContext(ABC):
    """What is known while an element or timer is processed; only good during that call."""

    @abstractmethod
    def timer_service(self) -> TimerService:
        """Time and timers; timers of a stream that is not keyed are refused."""

    @abstractmethod
    def timestamp(self) -> int:
        """Event time of the element, or time of the timer, ms since the epoch; -2**63 if it has none."""


class KeyedContext(ElementContext):
    """The same on a keyed stream."""

    @abstractmethod
    def get_current_key(self) -> Any:
        """Key of the element or timer."""


class TimerContext(KeyedContext):
    """What is known while a timer is processed."""

    @abstractmethod
    def time_domain(self) -> TimeDomain:
        """What the timer goes by."""


class ProcessFunction(Function):
    """One element in, any number out, to any side outputs; knows times."""

    Context: TypeAlias = ElementContext

    @abstractmethod
    def process_element(self, value: Any, ctx: ElementContext) -> Results:
        """The elements to put in place of ``value``."""


class KeyedProcessFunction(Function):
    """A ProcessFunction with state and timers per key."""

    Context: TypeAlias = KeyedContext
    OnTimerContext: TypeAlias = TimerContext

    @abstractmethod
    def process_element(self, value: Any, ctx: KeyedContext) -> Results:
        """The elements to put in place of ``value``."""

    def on_timer(self, timestamp: int, ctx: TimerContext) -> Results:
        """The elements to emit when a timer fires."""


class CoProcessFunction(Function):
    """A ProcessFunction of two streams."""

    Context: TypeAlias = ElementContext

    @abstractmethod
    def process_element1(self, value: Any, ctx: ElementContext) -> Results:
        """The elements to put in place of one of the first stream."""

    @abstractmethod
    def process_element2(self, value: Any, ctx: ElementContext) -> Results:
        """The elements to put in place of one of the second stream."""


class KeyedCoProcessFunction(Function):
    """A KeyedProcessFunction of two streams of the same keys: they share state and timers."""

    Context: TypeAlias = KeyedContext
    OnTimerContext: TypeAlias = TimerContext

    @abstractmethod
    def process_element1(self, value: Any, ctx: KeyedContext) -> Results:
        """The elements to put in place of one of the first stream."""

    @abstractmethod
    def process_element2(self, value: Any, ctx: KeyedContext) -> Results:
        """The elements to put in place of one of the second stream."""

    def on_timer(self, timestamp: int, ctx: TimerContext) -> Results:
        """The elements to emit when a timer fires."""
