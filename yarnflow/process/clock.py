"""The clock of this machine; the only implementation of :class:`yarnflow.core.ports.Clock` for real."""

from __future__ import annotations

import time


class SystemClock:
    """Wall time and monotonic time of the operating system."""

    def now_ms(self) -> int:
        """Milliseconds since the epoch."""
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> int:
        """Milliseconds of a clock that never goes back."""
        return time.monotonic_ns() // 1_000_000
