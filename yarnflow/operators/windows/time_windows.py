"""Windows of one length, one after the other or overlapping."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Self, TypeVar

from yarnflow.errors import GraphError
from yarnflow.operators.windows.assigner import WindowAssigner
from yarnflow.operators.windows.lengths import Length, length_ms
from yarnflow.operators.windows.serializers import TimeWindowSerializer, TypeSerializer
from yarnflow.operators.windows.trigger import Trigger
from yarnflow.operators.windows.triggers import EventTimeTrigger, ProcessingTimeTrigger
from yarnflow.operators.windows.window import TimeWindow

T = TypeVar("T")


class AlignedWindows(WindowAssigner[T, TimeWindow]):
    """Windows of one length whose starts are multiples of a slide, moved by an offset.

    What the four public assigners have in common; which moment of an element decides is theirs.

    Parameters
    ----------
    size, slide, offset : int
        Milliseconds: length of a window, distance of their starts, distance of the starts from
        multiples of ``slide``.
    """

    def __init__(self, size: int, slide: int, offset: int) -> None:
        self.size_ms = size
        self.slide_ms = slide
        self.offset_ms = offset

    def windows_at(self, moment_ms: int) -> list[TimeWindow]:
        """The windows a moment is in, the latest first."""
        size_ms = self.size_ms
        return [TimeWindow(start, start + size_ms) for start in self.starts_at(moment_ms)]

    def starts_at(self, moment_ms: int) -> range:
        """The starts of :meth:`windows_at`, in milliseconds since the epoch."""
        last_start_ms = moment_ms - (moment_ms - self.offset_ms) % self.slide_ms
        return range(last_start_ms, moment_ms - self.size_ms, -self.slide_ms)

    @abstractmethod
    def is_event_time(self) -> bool:
        """Whether the element's own time decides, or that of the clock."""

    def assign_windows(
        self, element: T, timestamp: int, context: WindowAssigner.WindowAssignerContext
    ) -> list[TimeWindow]:
        moment_ms = timestamp if self.is_event_time() else context.get_current_processing_time()
        return self.windows_at(moment_ms)

    def get_default_trigger(self, env: Any) -> Trigger[T, TimeWindow]:
        return EventTimeTrigger() if self.is_event_time() else ProcessingTimeTrigger()

    def get_window_serializer(self) -> TypeSerializer[TimeWindow]:
        return TimeWindowSerializer()


class _TumblingWindows(AlignedWindows[T]):
    """Windows that do not overlap."""

    def __init__(self, size: int, offset: int) -> None:
        if abs(offset) >= size:
            raise GraphError(
                f"{type(self).__name__}: the offset of {offset} ms is not smaller than the size of {size} ms"
            )
        super().__init__(size, size, offset)

    @classmethod
    def of(cls, size: Length, offset: Length | None = None) -> Self:
        """Windows of a length.

        Parameters
        ----------
        size : Time
            Length of each window.
        offset : Time, optional
            Distance of the starts from multiples of ``size`` since the epoch, which is in UTC:
            days of a place at UTC+08:00 are ``of(Time.days(1), Time.hours(-8))``.

        Raises
        ------
        GraphError
            The offset is not smaller than the size.
        """
        return cls(length_ms(size, "size"), 0 if offset is None else length_ms(offset, "offset"))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.size_ms}, {self.offset_ms})"


class TumblingEventTimeWindows(_TumblingWindows[T]):
    """Windows by the elements' own time that do not overlap.  Flink: of the same name.

    ::

        stream.key_by(lambda x: x[0]).window(TumblingEventTimeWindows.of(Time.minutes(1)))
    """

    def is_event_time(self) -> bool:
        return True


class TumblingProcessingTimeWindows(_TumblingWindows[T]):
    """Windows by the time of processing that do not overlap.  Flink: of the same name."""

    def is_event_time(self) -> bool:
        return False


class _SlidingWindows(AlignedWindows[T]):
    """Windows that overlap where the slide is shorter than the size."""

    def __init__(self, size: int, slide: int, offset: int) -> None:
        if abs(offset) >= slide or size <= 0:
            raise GraphError(
                f"{type(self).__name__}: needs a size above 0 and an offset smaller than the slide; "
                f"size {size} ms, slide {slide} ms, offset {offset} ms"
            )
        super().__init__(size, slide, offset)

    @classmethod
    def of(
        cls,
        size: Length,
        slide: Length,
        offset: Length | None = None,
    ) -> Self:
        """Windows of a length, of which a new one starts every ``slide``.

        Parameters
        ----------
        size : Time
            Length of each window.
        slide : Time
            Time from the start of a window to the start of the next.
        offset : Time, optional
            Distance of the starts from multiples of ``slide`` since the epoch, which is in UTC.

        Raises
        ------
        GraphError
            The size is 0, or the offset is not smaller than the slide.
        """
        return cls(
            length_ms(size, "size"),
            length_ms(slide, "slide"),
            0 if offset is None else length_ms(offset, "offset"),
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.size_ms}, {self.slide_ms}, {self.offset_ms})"


class SlidingEventTimeWindows(_SlidingWindows[T]):
    """Windows by the elements' own time that overlap.  Flink: of the same name.

    ::

        stream.key_by(lambda x: x[0]).window(
            SlidingEventTimeWindows.of(Time.minutes(1), Time.seconds(10)))
    """

    def is_event_time(self) -> bool:
        return True


class SlidingProcessingTimeWindows(_SlidingWindows[T]):
    """Windows by the time of processing that overlap.  Flink: of the same name."""

    def is_event_time(self) -> bool:
        return False
