"""Functions that see a stream's elements beside state that is broadcast to all of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Generic, TypeAlias, TypeVar

from yarnflow.operators.functions.base import Function
from yarnflow.operators.functions.process import Results
from yarnflow.operators.functions.time import TimeDomain, TimerService
from yarnflow.operators.state.descriptors import MapStateDescriptor, StateDescriptor
from yarnflow.operators.state.interfaces import BroadcastState, ReadOnlyBroadcastState

IN1 = TypeVar("IN1")
IN2 = TypeVar("IN2")
OUT = TypeVar("OUT")
KEY = TypeVar("KEY")


class BroadcastBaseContext(ABC):
    """What both sides know; only good during the call.  Times are ms since the epoch."""

    @abstractmethod
    def timestamp(self) -> int | None:
        """Event time of the element, or time of the timer; -2**63 if it has none."""

    @abstractmethod
    def current_processing_time(self) -> int:
        """Time of the micro-batch, ms since the epoch."""

    @abstractmethod
    def current_watermark(self) -> int:
        """No element with an earlier time is expected."""


class BroadcastContext(BroadcastBaseContext):
    """What the broadcast side knows."""

    @abstractmethod
    def get_broadcast_state(self, state_descriptor: MapStateDescriptor) -> BroadcastState[Any, Any]:
        """The state, to be read and changed: in the same way in every call with the same elements."""


class BroadcastReadOnlyContext(BroadcastBaseContext):
    """What the side of the elements knows."""

    @abstractmethod
    def get_broadcast_state(
        self, state_descriptor: MapStateDescriptor
    ) -> ReadOnlyBroadcastState[Any, Any]:
        """The state, to be read."""


class KeyedBroadcastContext(BroadcastContext):
    """What the broadcast side knows where the other stream is keyed."""

    @abstractmethod
    def apply_to_keyed_state(
        self, state_descriptor: StateDescriptor, function: Callable[[Any, Any], None]
    ) -> None:
        """Call ``function(key, state)`` for every key that has such a state.

        Java Flink's ``applyToKeyedState``; PyFlink has none.  Keys are gone through by key group: what
        is yielded after the call comes once for each key group that has such keys, and what is yielded
        before it once for each subtask.
        """


class KeyedReadOnlyContext(BroadcastReadOnlyContext):
    """What the side of the elements knows on a keyed stream."""

    @abstractmethod
    def timer_service(self) -> TimerService:
        """Time, and timers of the key."""

    @abstractmethod
    def get_current_key(self) -> Any:
        """Key of the element or timer."""


class KeyedBroadcastTimerContext(KeyedReadOnlyContext):
    """What is known while a timer is processed."""

    @abstractmethod
    def time_domain(self) -> TimeDomain:
        """What the timer goes by."""


class BaseBroadcastProcessFunction(Function):
    """Base of the two broadcast process functions."""

    BaseContext: TypeAlias = BroadcastBaseContext
    Context: TypeAlias = BroadcastContext
    ReadOnlyContext: TypeAlias = BroadcastReadOnlyContext

    @abstractmethod
    def process_broadcast_element(self, value: Any, ctx: Any) -> Results:
        """The elements to emit for a broadcast one; ``ctx`` gives the broadcast state to change."""


class BroadcastProcessFunction(BaseBroadcastProcessFunction, Generic[IN1, IN2, OUT]):
    """Processes a stream that is not keyed beside broadcast state."""

    @abstractmethod
    def process_element(self, value: Any, ctx: BroadcastReadOnlyContext) -> Results:
        """The elements to put in place of ``value``."""


class KeyedBroadcastProcessFunction(BaseBroadcastProcessFunction, Generic[KEY, IN1, IN2, OUT]):
    """Processes a keyed stream beside broadcast state; has state and timers per key."""

    Context: TypeAlias = KeyedBroadcastContext
    ReadOnlyContext: TypeAlias = KeyedReadOnlyContext
    OnTimerContext: TypeAlias = KeyedBroadcastTimerContext

    @abstractmethod
    def process_element(self, value: Any, ctx: KeyedReadOnlyContext) -> Results:
        """The elements to put in place of ``value``."""

    def on_timer(self, timestamp: int, ctx: KeyedBroadcastTimerContext) -> Results:
        """The elements to emit when a timer fires."""
