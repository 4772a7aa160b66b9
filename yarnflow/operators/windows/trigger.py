"""What users implement to say when a window is evaluated."""

from __future__ import annotations

from abc import ABC, abstractmethod
from enum import Enum
from typing import Any, Generic, TypeVar

T = TypeVar("T")
W = TypeVar("W")


class TriggerResult(Enum):
    """What a trigger wants done with a window.  Flink: ``TriggerResult``.

    A window without elements is not evaluated, whatever its trigger says.
    """

    #: nothing
    CONTINUE = (False, False)
    #: evaluate the window, then forget its elements
    FIRE_AND_PURGE = (True, True)
    #: evaluate the window and keep its elements
    FIRE = (True, False)
    #: forget the window's elements without evaluating it
    PURGE = (False, True)

    def is_fire(self) -> bool:
        """Whether the window is evaluated."""
        return self.value[0]

    def is_purge(self) -> bool:
        """Whether the window's elements are forgotten."""
        return self.value[1]


class Trigger(ABC, Generic[T, W]):
    """Says when the elements of one key and window are evaluated.  Flink: ``Trigger``.

    One instance serves all keys and windows, so it keeps nothing itself: what it has to remember
    goes into :meth:`TriggerContext.get_partitioned_state`.  For a ``MergingWindowAssigner``,
    :meth:`can_merge` has to be true and :meth:`on_merge` has to carry state and timers over.
    """

    class TriggerContext(ABC):
        """Time, timers and state of the key and window a trigger is asked about."""

        @abstractmethod
        def get_current_processing_time(self) -> int:
            """Milliseconds since the epoch."""

        @abstractmethod
        def get_metric_group(self) -> Any:
            """The operator's ``MetricGroup``."""

        @abstractmethod
        def get_current_watermark(self) -> int:
            """Milliseconds since the epoch; -2**63 before the first watermark."""

        @abstractmethod
        def register_processing_time_timer(self, time: int) -> None:
            """Have :meth:`Trigger.on_processing_time` called at a time, ms since the epoch."""

        @abstractmethod
        def register_event_time_timer(self, time: int) -> None:
            """Have :meth:`Trigger.on_event_time` called when the watermark reaches a time."""

        @abstractmethod
        def delete_processing_time_timer(self, time: int) -> None:
            """Forget the timer of the clock at this time, if there is one."""

        @abstractmethod
        def delete_event_time_timer(self, time: int) -> None:
            """Forget the timer of the watermark at this time, if there is one."""

        @abstractmethod
        def get_partitioned_state(self, state_descriptor: Any) -> Any:
            """State of the current key and window alone, of the descriptor's kind."""

    class OnMergeContext(TriggerContext):
        """The context of :meth:`Trigger.on_merge`."""

        @abstractmethod
        def merge_partitioned_state(self, state_descriptor: Any) -> None:
            """Merge the state of the merged windows into that of the new window.

            For list, reducing and aggregating state.
            """

    @abstractmethod
    def on_element(self, element: T, timestamp: int, window: W, ctx: TriggerContext) -> TriggerResult:
        """An element was put into the window; ``timestamp`` is its event time, or -2**63."""

    @abstractmethod
    def on_processing_time(self, time: int, window: W, ctx: TriggerContext) -> TriggerResult:
        """A timer of the clock, registered for ``time``, is due."""

    @abstractmethod
    def on_event_time(self, time: int, window: W, ctx: TriggerContext) -> TriggerResult:
        """A timer of the watermark, registered for ``time``, is due."""

    def can_merge(self) -> bool:
        """Whether the trigger works with windows that merge."""
        return False

    @abstractmethod
    def on_merge(self, window: W, ctx: OnMergeContext) -> None:
        """Several windows became ``window``; register its timers and merge their state."""

    @abstractmethod
    def clear(self, window: W, ctx: TriggerContext) -> None:
        """The window is gone: delete its timers and state."""
