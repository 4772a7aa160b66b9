"""Event time and watermarks.  PyFlink: ``pyflink.common.watermark_strategy``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from yarnflow.api.lengths import DurationLike, to_ms
from yarnflow.graph.compatibility import NO_JVM, differs, refused_class, same_and
from yarnflow.operators.functions.elements import TimestampAssigner

__all__ = ["AssignerWithPeriodicWatermarksWrapper", "TimestampAssigner", "WatermarkStrategy"]

#: an expression of type timestamp, or a function of the element (and the time it has) → ms
TimestampSpec = str | TimestampAssigner | Callable[..., int]

AssignerWithPeriodicWatermarksWrapper: Any = refused_class(
    "AssignerWithPeriodicWatermarksWrapper", NO_JVM, "WatermarkStrategy"
)


@dataclass(slots=True)
class WatermarkStrategy:
    """Where event time comes from and how far out of order it may be.

    Records later than that may be dropped by windows, as in Flink without allowed lateness.
    """

    #: None = no watermarks
    out_of_orderness_ms: int | None
    timestamp_assigner: TimestampSpec | None = None
    #: None = a silent source holds the watermark back
    idle_timeout_ms: int | None = None

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
        """No watermarks at all."""
        return WatermarkStrategy(None)

    @same_and("takes an expression such as 'ts', too, and with_idleness() keeps it")
    def with_timestamp_assigner(self, timestamp_assigner: TimestampSpec) -> WatermarkStrategy:
        """Take event time from an expression (``"ts"``; stays native) or a Python function.

        Functions give milliseconds since the epoch.  Changes the strategy itself.
        """
        self.timestamp_assigner = timestamp_assigner
        return self

    @differs("a partition of a source without elements holds nobody back, a whole source does for so long")
    def with_idleness(self, idle_timeout: DurationLike) -> WatermarkStrategy:
        """A source that is silent for so long no longer holds the watermark back."""
        return replace(self, idle_timeout_ms=to_ms(idle_timeout, "idle timeout", 1))

    @same_and("no result depends on it: micro-batches keep sources together")
    def with_watermark_alignment(
        self,
        watermark_group: str,
        max_allowed_watermark_drift: DurationLike,
        update_interval: DurationLike | None = None,
    ) -> WatermarkStrategy:
        """Hold fast sources of a group back."""
        return self

    def uses_python(self) -> bool:
        """Whether records must go to Python to tell their time."""
        return self.timestamp_assigner is not None and not isinstance(self.timestamp_assigner, str)
