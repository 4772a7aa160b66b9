"""Sessions: windows that stay open until a key has been silent for a gap."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from typing import Any, TypeVar

from yarnflow.errors import GraphError
from yarnflow.operators.windows.assigner import (
    MergingWindowAssigner,
    SessionWindowTimeGapExtractor,
    WindowAssigner,
)
from yarnflow.operators.windows.lengths import Length, length_ms
from yarnflow.operators.windows.serializers import TimeWindowSerializer, TypeSerializer
from yarnflow.operators.windows.trigger import Trigger
from yarnflow.operators.windows.triggers import EventTimeTrigger, ProcessingTimeTrigger
from yarnflow.operators.windows.window import MergeCallback, TimeWindow

T = TypeVar("T")


class SessionWindows(MergingWindowAssigner[T, TimeWindow]):
    """What all sessions have in common: an element opens one, and sessions that touch merge."""

    #: the gap if it is the same for all elements
    session_gap_ms: int | None = None

    @abstractmethod
    def gap_ms(self, element: T) -> int:
        """How long a session stays open after this element, in milliseconds."""

    @abstractmethod
    def is_event_time(self) -> bool:
        """Whether the element's own time decides, or that of the clock."""

    def assign_windows(
        self, element: T, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> list[TimeWindow]:
        start_ms = timestamp if self.is_event_time() else context.get_current_processing_time()
        return [TimeWindow(start_ms, start_ms + self.gap_ms(element))]

    def merge_windows(self, windows: Iterable[TimeWindow], callback: MergeCallback[TimeWindow]) -> None:
        TimeWindow.merge_windows(windows, callback)

    def get_default_trigger(self, env: Any) -> Trigger[T, TimeWindow]:
        return EventTimeTrigger() if self.is_event_time() else ProcessingTimeTrigger()

    def get_window_serializer(self) -> TypeSerializer[TimeWindow]:
        return TimeWindowSerializer()


class _FixedGap(SessionWindows[T]):
    """Sessions of one gap for all elements."""

    session_gap_ms: int

    def __init__(self, session_gap: int) -> None:
        if session_gap <= 0:
            raise GraphError(f"{type(self).__name__}: the gap of {session_gap} ms is not above 0")
        self.session_gap_ms = session_gap

    def gap_ms(self, element: T) -> int:
        return self.session_gap_ms

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.session_gap_ms})"


class _DynamicGap(SessionWindows[T]):
    """Sessions whose gap an extractor reads from each element."""

    def __init__(self, session_window_time_gap_extractor: SessionWindowTimeGapExtractor) -> None:
        self.extractor = session_window_time_gap_extractor

    def gap_ms(self, element: T) -> int:
        gap_ms = self.extractor.extract(element)
        if gap_ms <= 0:
            raise GraphError(
                f"{type(self.extractor).__name__}.extract returned {gap_ms} for {element!r}; "
                "the gap of a session has to be at least 1 ms"
            )
        return gap_ms

    def __repr__(self) -> str:
        return f"{type(self).__name__}({type(self.extractor).__name__})"


class DynamicEventTimeSessionWindows(_DynamicGap[T]):
    """Sessions by the elements' own time, with a gap of each element.  Flink: of the same name."""

    @staticmethod
    def with_dynamic_gap(extractor: SessionWindowTimeGapExtractor) -> DynamicEventTimeSessionWindows[Any]:
        """Sessions whose gap ``extractor`` reads from each element."""
        return DynamicEventTimeSessionWindows(extractor)

    def is_event_time(self) -> bool:
        return True


class DynamicProcessingTimeSessionWindows(_DynamicGap[T]):
    """Sessions by the time of processing, with a gap of each element.  Flink: of the same name."""

    @staticmethod
    def with_dynamic_gap(
        extractor: SessionWindowTimeGapExtractor,
    ) -> DynamicProcessingTimeSessionWindows[Any]:
        """Sessions whose gap ``extractor`` reads from each element."""
        return DynamicProcessingTimeSessionWindows(extractor)

    def is_event_time(self) -> bool:
        return False


class EventTimeSessionWindows(_FixedGap[T]):
    """Sessions by the elements' own time.  Flink: of the same name.

    ::

        stream.key_by(lambda x: x[0]).window(EventTimeSessionWindows.with_gap(Time.minutes(1)))
    """

    @staticmethod
    def with_gap(size: Length) -> EventTimeSessionWindows[Any]:
        """Sessions that end when no element has come for ``size``.

        Raises
        ------
        GraphError
            The gap is not above 0.
        """
        return EventTimeSessionWindows(length_ms(size, "gap"))

    @staticmethod
    def with_dynamic_gap(extractor: SessionWindowTimeGapExtractor) -> DynamicEventTimeSessionWindows[Any]:
        """Sessions whose gap ``extractor`` reads from each element."""
        return DynamicEventTimeSessionWindows(extractor)

    def is_event_time(self) -> bool:
        return True


class ProcessingTimeSessionWindows(_FixedGap[T]):
    """Sessions by the time of processing.  Flink: of the same name."""

    @staticmethod
    def with_gap(size: Length) -> ProcessingTimeSessionWindows[Any]:
        """Sessions that end when no element has come for ``size``.

        Raises
        ------
        GraphError
            The gap is not above 0.
        """
        return ProcessingTimeSessionWindows(length_ms(size, "gap"))

    @staticmethod
    def with_dynamic_gap(
        extractor: SessionWindowTimeGapExtractor,
    ) -> DynamicProcessingTimeSessionWindows[Any]:
        """Sessions whose gap ``extractor`` reads from each element."""
        return DynamicProcessingTimeSessionWindows(extractor)

    def is_event_time(self) -> bool:
        return False
