"""No more drivers at one time than there is memory for.

The JobManager refuses jobs beyond the limit; what waits here is the driver of a job whose
predecessor has ended but whose process is still going.  In a container it must wait: YARN kills
containers that use more than they were given.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from typing import Final

from yarnflow.core.ids import DriverId
from yarnflow.core.messages import DriverAssignment
from yarnflow.core.ports import DriverOwner

logger: Final = logging.getLogger(__name__)


class DriverQueue:
    """A :class:`~yarnflow.core.ports.DriverOwner` that launches at most ``limit`` drivers at a time.

    Parameters
    ----------
    drivers : DriverOwner
        Launches them.
    limit : int
        0 = no limit.
    """

    def __init__(self, drivers: DriverOwner, limit: int) -> None:
        self._drivers = drivers
        self._limit = limit
        self._lock = threading.Lock()
        self._running: set[DriverId] = set()
        self._waiting: deque[tuple[DriverAssignment, int]] = deque()

    def launch(self, assignment: DriverAssignment, memory_mib: int) -> None:
        """Launch now, or as soon as another driver has ended."""
        with self._lock:
            # one that runs already gets its next job
            lacks_room = self._limit and len(self._running) >= self._limit
            if lacks_room and assignment.driver_id not in self._running:
                logger.info("Driver %s waits until another one has ended.", assignment.driver_id)
                self._waiting.append((assignment, memory_mib))
                return
            self._running.add(assignment.driver_id)
        self._drivers.launch(assignment, memory_mib)

    def kill(self, driver_id: DriverId, grace_ms: int = 0) -> None:
        """End a driver; one that waits is forgotten."""
        with self._lock:
            self._waiting = deque(item for item in self._waiting if item[0].driver_id != driver_id)
        self._drivers.kill(driver_id, grace_ms)

    def exited(self, driver_id: DriverId) -> None:
        """A driver process has ended; the next one takes its place."""
        with self._lock:
            self._running.discard(driver_id)
            if not self._waiting or len(self._running) >= self._limit:
                return
            assignment, memory_mib = self._waiting.popleft()
            self._running.add(assignment.driver_id)
        self._drivers.launch(assignment, memory_mib)
