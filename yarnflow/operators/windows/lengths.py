"""Lengths of time as users write them in a window's definition."""

from __future__ import annotations

import datetime
from typing import Protocol

from yarnflow.errors import GraphError
from yarnflow.operators.state.ttl import duration_ms


class Time(Protocol):
    """PyFlink's ``Time``."""

    def to_milliseconds(self) -> int:
        """The length."""


def length_ms(length: Time | datetime.timedelta, what: str) -> int:
    """A length of time in milliseconds; ``what`` it is stands in the error.

    Raises
    ------
    GraphError
        It is no length of time.
    """
    try:
        return duration_ms(length)
    except ValueError:
        raise GraphError(f"{what} {length!r} is no length of time; write Time.seconds(5)") from None
