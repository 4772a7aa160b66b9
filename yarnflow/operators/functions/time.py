"""Time as functions see it: the timer service and the two domains of timers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from enum import Enum


class TimeDomain(Enum):
    """What a timer goes by."""

    EVENT_TIME = 0
    PROCESSING_TIME = 1


class TimerService(ABC):
    """Time, and timers of the current key.  Times are ms since the epoch."""

    @abstractmethod
    def current_processing_time(self) -> int:
        """Time of the micro-batch, ms since the epoch; the same for all of it, also when it is done again."""

    @abstractmethod
    def current_watermark(self) -> int:
        """No element with an earlier time is expected; the smallest 64-bit number at first."""

    @abstractmethod
    def register_processing_time_timer(self, timestamp: int) -> None:
        """Call ``on_timer`` when the clock reaches a time."""

    @abstractmethod
    def register_event_time_timer(self, timestamp: int) -> None:
        """Call ``on_timer`` when the watermark reaches a time."""

    @abstractmethod
    def delete_processing_time_timer(self, timestamp: int) -> None:
        """Do not call ``on_timer`` for that time of the clock."""

    @abstractmethod
    def delete_event_time_timer(self, timestamp: int) -> None:
        """Do not call ``on_timer`` for that time of the watermark."""
