"""What the operators have in common that handle a whole chunk at a time.

They know their trigger: it is the assigner's own, so windows fire when the watermark or the clock
reaches their end, and past that with each element that may still come.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from yarnflow.operators.elements import MAX_WATERMARK_MS, Output
from yarnflow.operators.windows.operator.base import WindowOperatorBase
from yarnflow.operators.windows.window import TimeWindow

#: start and end of a window, in ms since the epoch
Interval = tuple[int, int]


class PerChunkOperator(WindowOperatorBase):
    """Windows of time with the assigner's own trigger.  Parameters are those of the base."""

    @abstractmethod
    def contents_of(self, key: Any, window: Interval) -> Any:
        """Namespace of a window's contents; None: there is no such window."""

    def forget(self, key: Any, window: Interval) -> None:
        """A window is gone."""

    def on_event_timer(self, timestamp_ms: int, key: Any, namespace: Any, output: Output) -> None:
        if self.is_event_time:
            self._on_timer(timestamp_ms, key, namespace)

    def on_processing_timer(self, timestamp_ms: int, key: Any, namespace: Any, output: Output) -> None:
        if not self.is_event_time:
            self._on_timer(timestamp_ms, key, namespace)
            self.flush(output)

    def _on_timer(self, timestamp_ms: int, key: Any, window: Interval) -> None:
        contents_in = self.contents_of(key, window)
        if contents_in is None:
            return
        max_timestamp_ms = window[1] - 1
        if timestamp_ms == max_timestamp_ms:
            self.fire(key, window, contents_in)
        if timestamp_ms == self.cleanup_ms(max_timestamp_ms):
            self.contents.clear(key, contents_in)
            self.forget(key, window)
            if self.evaluation.clears:
                self.enter(key, window)
                self.evaluation.clear(TimeWindow(*window))

    def fire(self, key: Any, window: Interval, contents_in: Any) -> None:
        """Evaluate a window."""
        max_timestamp_ms = window[1] - 1
        if self.evaluation.function is not None or self.contents.has_user_code:
            self.evaluate(key, window, TimeWindow(*window), contents_in, max_timestamp_ms)
            return
        contents = self.contents.get(key, contents_in)
        if contents is not None:
            self.results.add(contents, max_timestamp_ms)

    def is_open(self, window: Interval) -> bool:
        """Neither the watermark nor the clock has passed the window's end, as far as one goes by it."""
        return not self.is_event_time or window[1] - 1 > self.context.current_watermark_ms

    def is_over(self, window: Interval) -> bool:
        """The window is late, beyond what is allowed."""
        return self.is_event_time and self.cleanup_ms(window[1] - 1) <= self.context.current_watermark_ms

    def register(self, key: Any, window: Interval) -> None:
        """Timers that fire a window and forget it."""
        timers, end_ms = self.timers, window[1] - 1
        add = timers.register_event_time if self.is_event_time else timers.register_processing_time
        cleanup_ms = self.cleanup_ms(end_ms)
        if self.is_open(window):
            add(end_ms, key, window)
            if cleanup_ms == end_ms:
                return
        if cleanup_ms < MAX_WATERMARK_MS:
            add(cleanup_ms, key, window)

    def unregister(self, key: Any, window: Interval) -> None:
        """Delete these timers."""
        timers, end_ms = self.timers, window[1] - 1
        delete = timers.delete_event_time if self.is_event_time else timers.delete_processing_time
        delete(end_ms, key, window)
        delete(self.cleanup_ms(end_ms), key, window)
