"""Lengths of time as users write them in a window's definition."""

from __future__ import annotations

import datetime
from typing import Protocol

from yarnflow.config import parsers
from yarnflow.errors import GraphError
from yarnflow.operators.state.ttl import duration_ms


class Time(Protocol):
    """PyFlink's ``Time``."""

    def to_milliseconds(self) -> int:
        """The length."""


#: what a window's length may be given as
Length = Time | datetime.timedelta | str


def length_ms(length: Length, what: str) -> int:
    """A length of time in milliseconds; text is such as ``"1 hour"``.  ``what`` it is stands in the error.

    Raises
    ------
    GraphError
        It is no length of time.
    """
    try:
        return parsers.duration_ms(length) if isinstance(length, str) else duration_ms(length)
    except ValueError:
        raise GraphError(f"{what} {length!r} is no length of time; write Time.seconds(5)") from None
