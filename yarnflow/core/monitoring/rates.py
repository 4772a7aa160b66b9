"""Rates of counts that were read now and then.  Flink counterpart: ``MeterView``."""

from __future__ import annotations

from collections import deque
from typing import Final

#: as Flink's
DEFAULT_SPAN_MS: Final = 60_000


class RateWindow:
    """Events per second over the last minute.

    Parameters
    ----------
    span_ms : int
        The window; readings are further apart only if nobody looked in between.
    """

    __slots__ = ("_span_ms", "_readings")

    def __init__(self, span_ms: int = DEFAULT_SPAN_MS) -> None:
        self._span_ms = span_ms
        self._readings: deque[tuple[int, int | float]] = deque()

    def read(self, at_ms: int, count: int | float) -> float | None:
        """Note a count; gives the rate since the oldest reading of the window, None with the first one."""
        readings = self._readings
        if readings and count < readings[-1][1]:
            # it began anew
            readings.clear()
        readings.append((at_ms, count))
        while len(readings) > 2 and readings[1][0] <= at_ms - self._span_ms:
            readings.popleft()
        first_ms, first = readings[0]
        return (count - first) * 1000 / (at_ms - first_ms) if at_ms > first_ms else None
