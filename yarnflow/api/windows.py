"""Window assigners.  PyFlink counterparts: the classes of the same names."""

from __future__ import annotations

from dataclasses import dataclass

from yarnflow.api.origin import call_origin
from yarnflow.api.time import Duration, DurationLike, to_ms
from yarnflow.errors import GraphError
from yarnflow.graph.operators import Window, WindowKind


@dataclass(frozen=True, slots=True)
class WindowAssigner:
    """Says which windows of event time a record belongs to."""

    window: Window


class TumblingEventTimeWindows(WindowAssigner):
    """Windows of one size, side by side."""

    __slots__ = ()

    @staticmethod
    def of(size: DurationLike, offset: DurationLike = Duration(0)) -> TumblingEventTimeWindows:
        """Windows of ``size``, aligned to the epoch plus ``offset``."""
        size_ms, offset_ms = to_ms(size, "window size", 1), to_ms(offset, "window offset")
        if offset_ms >= size_ms:
            raise GraphError(f"{call_origin()}: the window offset must be shorter than the window")
        return TumblingEventTimeWindows(Window(WindowKind.TUMBLING, size_ms=size_ms, offset_ms=offset_ms))


class SlidingEventTimeWindows(WindowAssigner):
    """Windows of one size that start at a steady interval and overlap."""

    __slots__ = ()

    @staticmethod
    def of(
        size: DurationLike, slide: DurationLike, offset: DurationLike = Duration(0)
    ) -> SlidingEventTimeWindows:
        """Windows of ``size``, one beginning every ``slide``, which is no longer than ``size``."""
        size_ms, slide_ms = to_ms(size, "window size", 1), to_ms(slide, "window slide", 1)
        offset_ms = to_ms(offset, "window offset")
        if slide_ms > size_ms:
            raise GraphError(
                f"{call_origin()}: the window slide is longer than the window, so records would get lost"
            )
        if offset_ms >= slide_ms:
            raise GraphError(f"{call_origin()}: the window offset must be shorter than the slide")
        window = Window(WindowKind.SLIDING, size_ms=size_ms, slide_ms=slide_ms, offset_ms=offset_ms)
        return SlidingEventTimeWindows(window)


class EventTimeSessionWindows(WindowAssigner):
    """Windows that end when nothing came for a while."""

    __slots__ = ()

    @staticmethod
    def with_gap(gap: DurationLike) -> EventTimeSessionWindows:
        """A window ends ``gap`` after its last record."""
        return EventTimeSessionWindows(Window(WindowKind.SESSION, gap_ms=to_ms(gap, "session gap", 1)))
