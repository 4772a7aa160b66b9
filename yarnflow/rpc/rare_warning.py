"""Warnings of what peers can bring about as often as they like, so that they do not fill the log."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Final

#: between two warnings of the same kind
QUIET_S: Final = 10.0


class RareWarning:
    """One kind of warning; not thread-safe.

    Parameters
    ----------
    log : logging.Logger
        Where it is written.
    now : callable
        Seconds of a clock that never goes back.
    """

    def __init__(self, log: logging.Logger, now: Callable[[], float] = time.monotonic) -> None:
        self._log = log
        self._now = now
        self._warned_s = float("-inf")

    def warn(self, text: str, *values: object) -> None:
        """Write it, unless it was written in the last :data:`QUIET_S`."""
        now_s = self._now()
        if now_s - self._warned_s >= QUIET_S:
            self._warned_s = now_s
            self._log.warning(text, *values, stacklevel=2)
