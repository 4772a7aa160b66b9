"""What the API takes for a length of time."""

from __future__ import annotations

import datetime

from yarnflow.api.common.time import Duration, Time
from yarnflow.api.origin import call_origin
from yarnflow.errors import GraphError

#: text is such as ``"1 hour"``
DurationLike = Duration | Time | datetime.timedelta | str


def to_ms(length: DurationLike, what: str, at_least_ms: int = 0) -> int:
    """A length of time in milliseconds.

    Raises
    ------
    GraphError
        No length of time, or shorter than ``at_least_ms``.
    """
    if isinstance(length, Duration):
        length_ms = length.milliseconds
    elif isinstance(length, Time):
        length_ms = length.to_milliseconds()
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
