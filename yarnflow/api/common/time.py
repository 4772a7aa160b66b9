"""Lengths of time and points in time.  PyFlink: ``pyflink.common.time``."""

from __future__ import annotations

from dataclasses import dataclass

from yarnflow.graph.compatibility import same_and
from yarnflow.operators.instant import Instant

__all__ = ["Duration", "Instant", "Time"]


@dataclass(frozen=True, slots=True)
class Duration:
    """A length of time in whole milliseconds."""

    milliseconds: int

    @staticmethod
    def of_days(days: int) -> Duration:
        """So many days of 24 hours."""
        return Duration(days * 86_400_000)

    @staticmethod
    def of_hours(hours: int) -> Duration:
        """So many hours."""
        return Duration(hours * 3_600_000)

    @staticmethod
    def of_minutes(minutes: int) -> Duration:
        """So many minutes."""
        return Duration(minutes * 60_000)

    @staticmethod
    def of_seconds(seconds: int) -> Duration:
        """So many seconds."""
        return Duration(seconds * 1_000)

    @staticmethod
    def of_millis(millis: int) -> Duration:
        """So many milliseconds."""
        return Duration(millis)

    @staticmethod
    @same_and("rounded down to milliseconds, as whatever takes a Duration does")
    def of_nanos(nanos: int) -> Duration:
        """So many nanoseconds, rounded down to milliseconds."""
        return Duration(nanos // 1_000_000)

    def to_millis(self) -> int:
        """The length in milliseconds."""
        return self.milliseconds

    def to_milliseconds(self) -> int:
        """The length in milliseconds, as windows ask for it."""
        return self.milliseconds


class Time:
    """A length of time in milliseconds, as windows take it."""

    __slots__ = ("_milliseconds",)

    def __init__(self, milliseconds: int) -> None:
        self._milliseconds = milliseconds

    def to_milliseconds(self) -> int:
        """The length in milliseconds."""
        return self._milliseconds

    @staticmethod
    def milliseconds(milliseconds: int) -> Time:
        """So many milliseconds."""
        return Time(milliseconds)

    @staticmethod
    def seconds(seconds: int) -> Time:
        """So many seconds."""
        return Time(seconds * 1_000)

    @staticmethod
    def minutes(minutes: int) -> Time:
        """So many minutes."""
        return Time(minutes * 60_000)

    @staticmethod
    def hours(hours: int) -> Time:
        """So many hours."""
        return Time(hours * 3_600_000)

    @staticmethod
    def days(days: int) -> Time:
        """So many days of 24 hours."""
        return Time(days * 86_400_000)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Time) and self._milliseconds == other._milliseconds

    def __hash__(self) -> int:
        return hash(self._milliseconds)

    def __str__(self) -> str:
        return f"{self._milliseconds} ms"
