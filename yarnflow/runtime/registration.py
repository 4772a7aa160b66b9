"""How long to wait between attempts to register with a master, and between signs of life.

A thousand processes notice a new leader at the same moment.  What each does again and again is spread by
chance, so that they do not do it all together for ever.

Flink counterpart: ``RetryingRegistration`` and ``cluster.registration.*``.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Final

#: part by which a time may be shorter
_JITTER: Final = 0.2


def jittered(time_ms: int) -> int:
    """A time up to a fifth shorter, by chance; never longer."""
    return time_ms - int(time_ms * _JITTER * random.random())


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
        """Delay before the next attempt after ``failures`` (≥ 1) failed ones, see :func:`jittered`."""
        return jittered(int(min(self.max_ms, self.initial_ms * 2 ** min(failures - 1, 30))))
