"""What users implement to put elements into windows of their own."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable
from typing import Any, Generic, TypeVar

from yarnflow.operators.windows import window as windows
from yarnflow.operators.windows.serializers import TypeSerializer
from yarnflow.operators.windows.trigger import Trigger

T = TypeVar("T")
W = TypeVar("W")


class WindowAssigner(ABC, Generic[T, W]):
    """Puts each element into any number of windows.  Flink: ``WindowAssigner``.

    Elements of one key and one window are a *pane*; a :class:`Trigger` says when a pane is
    evaluated.
    """

    class WindowAssignerContext(ABC):
        """What an assigner can ask for."""

        @abstractmethod
        def get_current_processing_time(self) -> int:
            """Milliseconds since the epoch."""

        @abstractmethod
        def get_runtime_context(self) -> Any:
            """The ``RuntimeContext`` of the operator, whose state is that of the element's key."""

    @abstractmethod
    def assign_windows(self, element: T, timestamp: int, context: WindowAssignerContext) -> Collection[W]:
        """The windows of an element.

        Parameters
        ----------
        timestamp : int
            Event time of the element, ms since the epoch; -2**63 where it has none, which only
            happens if :meth:`is_event_time` is false.
        """

    @abstractmethod
    def get_default_trigger(self, env: Any) -> Trigger[T, W]:
        """The trigger of a stream for which none was set."""

    @abstractmethod
    def get_window_serializer(self) -> TypeSerializer[W]:
        """A serializer of the windows this assigner makes."""

    @abstractmethod
    def is_event_time(self) -> bool:
        """Whether windows end by the watermark (true) or by the clock."""


class MergingWindowAssigner(WindowAssigner[T, W]):
    """An assigner whose windows can become one.  Flink: ``MergingWindowAssigner``."""

    MergeCallback = windows.MergeCallback

    @abstractmethod
    def merge_windows(self, windows: Iterable[W], callback: windows.MergeCallback[W]) -> None:
        """Tell ``callback`` which windows become which one; called for each new window.

        Parameters
        ----------
        windows : iterable
            All windows of one key, the new one among them.
        """


class SessionWindowTimeGapExtractor(ABC):
    """Tells how long a session stays open after an element.  Flink: of the same name."""

    @abstractmethod
    def extract(self, element: Any) -> int:
        """The gap in milliseconds, at least 1."""
