"""The windows elements are put into."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, Generic, TypeVar

from yarnflow.operators.elements import MAX_WATERMARK_MS

W = TypeVar("W")


class Window(ABC):
    """A group of elements that has an end.  Flink: ``Window``.

    A subclass needs ``__eq__`` and ``__hash__``, and its assigner a serializer for it.
    """

    @abstractmethod
    def max_timestamp(self) -> int:
        """The last millisecond, since the epoch, that can belong to the window."""


class MergeCallback(ABC, Generic[W]):
    """Is told which windows an assigner wants to become one.

    Flink: ``MergingWindowAssigner.MergeCallback``.
    """

    @abstractmethod
    def merge(self, to_be_merged: Iterable[W], merge_result: W) -> None:
        """Put ``merge_result`` in the place of all windows of ``to_be_merged``."""


class TimeWindow(Window):
    """An interval of time.  Flink: ``TimeWindow``.

    Parameters
    ----------
    start, end : int
        Milliseconds since the epoch; ``start`` belongs to the window, ``end`` does not.
    """

    def __init__(self, start: int, end: int) -> None:
        self.start = start
        self.end = end

    def max_timestamp(self) -> int:
        """``end - 1``."""
        return self.end - 1

    def intersects(self, other: TimeWindow) -> bool:
        """Whether the windows overlap or touch."""
        return self.start <= other.end and self.end >= other.start

    def cover(self, other: TimeWindow) -> TimeWindow:
        """The smallest window that holds both."""
        return TimeWindow(min(self.start, other.start), max(self.end, other.end))

    @staticmethod
    def get_window_start_with_offset(timestamp: int, offset: int, window_size: int) -> int:
        """Start of the window that a moment is in, where windows follow each other.

        Parameters
        ----------
        timestamp : int
            Milliseconds since the epoch.
        offset : int
            Milliseconds by which all windows are moved from multiples of their size.
        window_size : int
            Milliseconds from start to start.
        """
        return timestamp - (timestamp - offset) % window_size

    @staticmethod
    def merge_windows(windows: Iterable[TimeWindow], callback: MergeCallback[TimeWindow]) -> None:
        """Tell ``callback`` of every group of at least two windows that overlap or touch."""
        covered: list[TimeWindow] = []
        members: list[set[TimeWindow]] = []
        for window in sorted(windows):
            if covered and covered[-1].intersects(window):
                covered[-1] = covered[-1].cover(window)
                members[-1].add(window)
            else:
                covered.append(window)
                members.append({window})
        for result, merged in zip(covered, members, strict=True):
            if len(merged) > 1:
                callback.merge(merged, result)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, TimeWindow)
            and type(other) is type(self)
            and (other.start, other.end) == (self.start, self.end)
        )

    def __hash__(self) -> int:
        return hash((self.start, self.end))

    def __lt__(self, other: Any) -> bool:
        if not isinstance(other, TimeWindow):
            return NotImplemented
        return (self.start, self.end) < (other.start, other.end)

    def __le__(self, other: Any) -> bool:
        if not isinstance(other, TimeWindow):
            return NotImplemented
        return (self.start, self.end) <= (other.start, other.end)

    def __repr__(self) -> str:
        return f"TimeWindow(start={self.start}, end={self.end})"


class CountWindow(Window):
    """A number of elements of one key.  Flink: PyFlink's ``CountWindow``.

    Parameters
    ----------
    id : int
        The first window of a key has 0, the next one 1.
    """

    def __init__(self, id: int) -> None:
        self.id = id

    def max_timestamp(self) -> int:
        """No time ends the window."""
        return MAX_WATERMARK_MS

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CountWindow) and type(other) is type(self) and other.id == self.id

    def __hash__(self) -> int:
        return hash(self.id)

    def __repr__(self) -> str:
        return f"CountWindow(id={self.id})"


class GlobalWindow(Window):
    """The one window that holds everything.  Flink: ``GlobalWindow``."""

    @staticmethod
    def get() -> GlobalWindow:
        """The window; all are equal."""
        return GlobalWindow()

    def max_timestamp(self) -> int:
        """No time ends the window."""
        return MAX_WATERMARK_MS

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self)

    def __hash__(self) -> int:
        return 0

    def __repr__(self) -> str:
        return "GlobalWindow"
