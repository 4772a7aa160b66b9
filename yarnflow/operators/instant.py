"""PyFlink's ``Instant``: a point in time to the nanosecond."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, repr=False)
class Instant:
    """Seconds since 1970-01-01T00:00:00Z, and nanoseconds after them."""

    seconds: int
    #: 0 to 999,999,999
    nanos: int

    def to_epoch_milli(self) -> int:
        """Whole milliseconds since the epoch, towards the past."""
        return self.seconds * 1_000 + self.nanos // 1_000_000

    @staticmethod
    def of_epoch_milli(epoch_milli: int) -> Instant:
        """So many milliseconds after the epoch."""
        seconds, millis = divmod(epoch_milli, 1_000)
        return Instant(seconds, millis * 1_000_000)

    def __repr__(self) -> str:
        return f"Instant<{self.seconds}, {self.nanos}>"
