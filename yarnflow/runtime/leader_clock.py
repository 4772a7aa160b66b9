"""The time in which a leader decides; it stands still while it is in doubt whether this master leads.

Decides when a master is in doubt: while its connection to ZooKeeper is lost, and after a pause of
its own (``SIGSTOP``, a machine that slept), which may have been long enough for another master to
take over.  While it stands, no mailbox of this leadership runs anything, so nobody is given up for
a silence that was the master's own; what was posted meanwhile comes before any timer.  Never asks
ZooKeeper itself: whoever owns it does, and says when the doubt is over.

Flink has no counterpart: there a suspended connection revokes the leadership at once.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from enum import Enum
from typing import Final

from yarnflow.core.ports import Clock

logger = logging.getLogger(__name__)

#: between two looks at the clock, at most
BEAT_MS: Final = 500
#: a look that is this late was held up by a pause of the whole process
PAUSE_MS: Final = 3_000


class Doubt(Enum):
    """Why it is not certain that this master leads."""

    CONNECTION = "CONNECTION"
    PAUSE = "PAUSE"


class LeaderClock:
    """Implements :class:`yarnflow.core.ports.Clock`; any thread.

    Parameters
    ----------
    clock : Clock
        The process's.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._doubts: set[Doubt] = set()
        #: when this process was last seen to run, of the process's clock
        self._seen_ms = clock.monotonic_ms()
        #: where it stands while there are doubts
        self._stopped_ms = 0
        #: by how much it is behind the process's clock
        self._behind_ms = 0
        self._ended = threading.Event()

    def now_ms(self) -> int:
        """Milliseconds since the epoch; does not stand still."""
        return self._clock.now_ms()

    def monotonic_ms(self) -> int:
        """Milliseconds in which nothing was in doubt."""
        with self._lock:
            now_ms = self._look()
            return self._stopped_ms if self._doubts else now_ms - self._behind_ms

    def is_certain(self) -> bool:
        """Whether this master leads, as far as that can be known."""
        return not self.doubts()

    def doubt(self, doubt: Doubt) -> None:
        """Stand still from now on.  Idempotent."""
        with self._lock:
            self._stop(doubt, self._look())

    def settle(self, doubt: Doubt) -> None:
        """This doubt is over; go on when it was the last one.  Idempotent."""
        with self._lock:
            now_ms = self._look()
            if doubt in self._doubts:
                self._doubts.discard(doubt)
                self._behind_ms = now_ms - self._stopped_ms

    def doubts(self) -> frozenset[Doubt]:
        """Why it stands still; empty = it does not."""
        with self._lock:
            self._look()
            return frozenset(self._doubts)

    def watch(self, on_pause: Callable[[], None]) -> None:
        """Look in a thread of its own; ``on_pause`` is called there after each pause, and may block."""

        def watch() -> None:
            while not self._ended.wait(BEAT_MS / 1000):
                if Doubt.PAUSE in self.doubts():
                    on_pause()

        threading.Thread(target=watch, name="lead-clock", daemon=True).start()

    def end(self) -> None:
        """Watch no more."""
        self._ended.set()

    def _look(self) -> int:
        now_ms = self._clock.monotonic_ms()
        if now_ms - self._seen_ms > PAUSE_MS and not self._ended.is_set():
            self._stop(Doubt.PAUSE, self._seen_ms)
        self._seen_ms = now_ms
        return now_ms

    def _stop(self, doubt: Doubt, at_ms: int) -> None:
        if not self._doubts:
            self._stopped_ms = at_ms - self._behind_ms
        self._doubts.add(doubt)
