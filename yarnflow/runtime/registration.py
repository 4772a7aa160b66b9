"""How long to wait between attempts to register with a master.

Flink counterpart: ``RetryingRegistration`` and ``cluster.registration.*``.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RegistrationBackoff:
    """Doubling delays, bounded.

    Attributes
    ----------
    initial_ms, max_ms : int
        First and longest delay.
    """

    initial_ms: int
    max_ms: int

    def delay_ms(self, failures: int) -> int:
        """Delay before the next attempt after ``failures`` (≥ 1) failed ones."""
        return int(min(self.max_ms, self.initial_ms * 2 ** min(failures - 1, 30)))
