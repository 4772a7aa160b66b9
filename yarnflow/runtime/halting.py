"""The end of a process by its own hand, as unexpected as any: for drills.

Nothing is told, closed or handed over; others have to find out.  Flink has no counterpart.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections.abc import Callable
from typing import Final

logger = logging.getLogger(__name__)

#: for the answer to the call that asked for it
HALT_DELAY_MS: Final = 100


def halt_soon(pid: int | None = None) -> None:
    """KILL a process after :data:`HALT_DELAY_MS`; returns at once.

    Parameters
    ----------
    pid : int, optional
        Default: this one.
    """
    victim = os.getpid() if pid is None else pid
    logger.warning("Process %d is killed for a drill.", victim)
    soon(lambda: os.kill(victim, signal.SIGKILL))


def soon(action: Callable[[], None]) -> None:
    """Run ``action`` in a thread of its own after :data:`HALT_DELAY_MS`."""
    timer = threading.Timer(HALT_DELAY_MS / 1000, action)
    timer.daemon = True
    timer.start()
