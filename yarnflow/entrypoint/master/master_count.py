"""When the leader asks for one more master: there are fewer than ``high-availability.jobmanagers``.

Flink has no counterpart: there YARN and Kubernetes start masters.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Final

from yarnflow.core.ports import Clock
from yarnflow.errors import YarnflowError

logger: Final = logging.getLogger(__name__)

#: a master that is being restarted comes back within this time
PATIENCE_MS: Final = 5_000
#: how long a new master may take to come before another one is asked for
PENDING_MS: Final = 60_000
_LOOK_S: Final = 1.0


class MasterCount:
    """Decides from the number of masters; told it regularly.

    Parameters
    ----------
    wanted : int
        Masters there should be, the leader included.
    """

    def __init__(self, wanted: int) -> None:
        self._wanted = wanted
        self._lacking_since_ms: int | None = None
        #: there were so many when one more was asked for
        self._pending: tuple[int, int] | None = None

    def start_one(self, count: int, at_ms: int) -> bool:
        """Whether to ask for one more master now.

        Parameters
        ----------
        count : int
            Masters there are.
        at_ms : int
            Monotonic time.
        """
        if self._pending is not None and (count > self._pending[0] or at_ms - self._pending[1] >= PENDING_MS):
            self._pending = None
        if count >= self._wanted:
            self._lacking_since_ms = None
            return False
        if self._lacking_since_ms is None:
            self._lacking_since_ms = at_ms
        if self._pending is not None or at_ms - self._lacking_since_ms < PATIENCE_MS:
            return False
        self._pending = (count, at_ms)
        return True


def keep_masters(
    wanted: int,
    masters: Callable[[], int],
    start_master: Callable[[], object],
    clock: Clock,
    ended: threading.Event,
) -> threading.Thread:
    """Look once a second, in a thread, until ``ended``.

    Parameters
    ----------
    masters : callable
        How many there are now; may block.
    start_master : callable
        Asks for one more.
    """
    count = MasterCount(wanted)

    def watch() -> None:
        while not ended.wait(_LOOK_S):
            try:
                present = masters()
            except YarnflowError as error:
                logger.debug("masters could not be counted: %s", error)
                continue
            if count.start_one(present, clock.monotonic_ms()):
                logger.info("There are %d masters of %d; asking for one more.", present, wanted)
                start_master()

    thread = threading.Thread(target=watch, name="masters", daemon=True)
    thread.start()
    return thread
