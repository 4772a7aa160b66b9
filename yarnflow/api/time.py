"""Lengths of time.  PyFlink counterparts: ``Duration`` and ``Time``."""

from __future__ import annotations

import datetime
from dataclasses import dataclass

from yarnflow.api.origin import call_origin
from yarnflow.errors import GraphError


@dataclass(frozen=True, slots=True)
class Duration:
    """A length of time in whole milliseconds."""

    milliseconds: int

    @staticmethod
    def of_millis(millis: int) -> Duration:
        """So many milliseconds."""
        return Duration(millis)

    @staticmethod
    def of_seconds(seconds: int) -> Duration:
        """So many seconds."""
        return Duration(seconds * 1_000)

    @staticmethod
    def of_minutes(minutes: int) -> Duration:
        """So many minutes."""
        return Duration(minutes * 60_000)

    @staticmethod
    def of_hours(hours: int) -> Duration:
        """So many hours."""
        return Duration(hours * 3_600_000)

    @staticmethod
    def of_days(days: int) -> Duration:
        """So many days of 24 hours."""
        return Duration(days * 86_400_000)

    def to_millis(self) -> int:
        """The length in milliseconds."""
        return self.milliseconds


class Time:
    """PyFlink's older names for a :class:`Duration`."""

    milliseconds = staticmethod(Duration.of_millis)
    seconds = staticmethod(Duration.of_seconds)
    minutes = staticmethod(Duration.of_minutes)
    hours = staticmethod(Duration.of_hours)
    days = staticmethod(Duration.of_days)


#: what the API takes for a length of time; text such as ``"1 hour"``
DurationLike = Duration | datetime.timedelta | str


def to_ms(length: DurationLike, what: str, at_least_ms: int = 0) -> int:
    """A length of time in milliseconds.

    Raises
    ------
    GraphError
        No length of time, or shorter than ``at_least_ms``.
    """
    if isinstance(length, Duration):
        length_ms = length.milliseconds
    elif isinstance(length, datetime.timedelta):
        length_ms = length // datetime.timedelta(milliseconds=1)
    else:
        from yarnflow.config.parsers import duration_ms

        try:
            length_ms = duration_ms(length)
        except (ValueError, TypeError, AttributeError):
            raise GraphError(
                f"{call_origin()}: {what} {length!r} is no length of time; write '1 hour' or "
                "Duration.of_hours(1)"
            ) from None
    if length_ms < at_least_ms:
        raise GraphError(
            f"{call_origin()}: {what} of {length_ms} ms is too short; {at_least_ms} ms is the least"
        )
    return length_ms
