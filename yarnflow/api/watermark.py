"""Event time and watermarks.  PyFlink counterpart: ``WatermarkStrategy``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from yarnflow.api.time import DurationLike, to_ms
from yarnflow.graph.functions import TimestampAssigner

#: an expression of type timestamp, or a function of the record (and its -1 timestamp) → ms
TimestampSpec = str | TimestampAssigner | Callable[..., int]


@dataclass(frozen=True, slots=True)
class WatermarkStrategy:
    """Where event time comes from and how far out of order it may be.

    Records later than that may be dropped by windows, as in Flink without allowed lateness.
    """

    out_of_orderness_ms: int | None
    timestamp_assigner: TimestampSpec | None = None

    @staticmethod
    def for_bounded_out_of_orderness(max_out_of_orderness: DurationLike) -> WatermarkStrategy:
        """The watermark stays so far behind the largest event time seen."""
        return WatermarkStrategy(to_ms(max_out_of_orderness, "out-of-orderness"))

    @staticmethod
    def for_monotonous_timestamps() -> WatermarkStrategy:
        """Event time never goes back."""
        return WatermarkStrategy(0)

    @staticmethod
    def no_watermarks() -> WatermarkStrategy:
        """No event time at all."""
        return WatermarkStrategy(None)

    def with_timestamp_assigner(self, timestamp_assigner: TimestampSpec) -> WatermarkStrategy:
        """Take event time from an expression (``"ts"``; stays native) or a Python function.

        Functions give milliseconds since the epoch.
        """
        return replace(self, timestamp_assigner=timestamp_assigner)

    def uses_python(self) -> bool:
        """Whether records must go to Python to tell their time."""
        return self.timestamp_assigner is not None and not isinstance(self.timestamp_assigner, str)
