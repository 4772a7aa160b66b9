"""Lets so many drivers of the cluster start at a time (``driver.max-concurrent-starts``).

Which one starts when is decided by :mod:`yarnflow.core.job_run.driver_starts`.  Flink has no counterpart.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from yarnflow.core.ids import DriverId, JobId
from yarnflow.core.job_run.driver_starts import DriverStarts
from yarnflow.core.messages import DriverAssignment
from yarnflow.core.ports import DriverExitListener, DriverLauncher, DriverWaitListener
from yarnflow.errors import YarnflowError

logger = logging.getLogger(__name__)

#: ``(job, driver, whether it waits for its turn)``; quick
WaitListener = Callable[[JobId, DriverId, bool], None]
#: ``(job, driver, error)``: a driver that has waited cannot be started; quick
FailureListener = Callable[[JobId, DriverId, YarnflowError], None]


class PacedLauncher:
    """Implements :class:`~yarnflow.runtime.jobmaster.services.DriverLaunching`.  Any thread.

    Parameters
    ----------
    launcher : DriverLauncher
        Starts them.
    limit : int
        Drivers that have not registered, at the same time; 0 = no limit.
    on_wait : callable
        Told when a driver must wait, and when it is started then.
    on_failure : callable
        Told when one that has waited cannot be started: whoever asked for it has had an answer already.
    """

    def __init__(
        self, launcher: DriverLauncher, limit: int, on_wait: WaitListener, on_failure: FailureListener
    ) -> None:
        self._launcher = launcher
        self._on_wait = on_wait
        self._on_failure = on_failure
        self._lock = threading.Lock()
        self._starts = DriverStarts(limit)
        #: of drivers that wait
        self._orders: dict[DriverId, tuple[DriverAssignment, int]] = {}

    def launch(self, assignment: DriverAssignment, memory_mib: int) -> None:
        """Start a driver now, or when its turn comes."""
        driver_id = assignment.driver_id
        with self._lock:
            self._starts = self._starts.asked(driver_id)
            if driver_id in self._starts.waiting:
                logger.info("Driver %s waits until other drivers have started.", driver_id)
                self._orders[driver_id] = assignment, memory_mib
                self._on_wait(assignment.job_id, driver_id, True)
                return
        try:
            self._launcher.launch(assignment, memory_mib)
        except YarnflowError:
            self.settled(driver_id)
            raise

    def settled(self, driver_id: DriverId) -> None:
        """A driver has registered or ended: another one may start."""
        orders = self._begun_without(driver_id)
        while orders:
            assignment, memory_mib = orders.pop(0)
            try:
                self._launcher.launch(assignment, memory_mib)
            except YarnflowError as error:
                orders += self._begun_without(assignment.driver_id)
                self._on_failure(assignment.job_id, assignment.driver_id, error)

    def kill(self, driver_id: DriverId, grace_ms: int = 0) -> None:
        """End a driver; one that waits is forgotten."""
        self.settled(driver_id)
        self._launcher.kill(driver_id, grace_ms)

    def runs(self, driver_id: DriverId) -> bool:
        """Whether it was started on this master."""
        return self._launcher.runs(driver_id)

    def on_exit(self, listener: DriverExitListener) -> None:
        """Call ``listener`` with each end."""
        self._launcher.on_exit(listener)

    def on_wait(self, listener: DriverWaitListener) -> None:
        """Call ``listener`` when one waits for its container, or has it."""
        self._launcher.on_wait(listener)

    def _begun_without(self, driver_id: DriverId) -> list[tuple[DriverAssignment, int]]:
        """Orders of drivers whose turn it is when one is not starting any more."""
        with self._lock:
            before = self._starts
            self._starts = before.over(driver_id)
            self._orders.pop(driver_id, None)
            begun = [other for other in before.waiting if other in self._starts.starting]
            orders = [self._orders.pop(other) for other in begun]
            for assignment, _memory_mib in orders:
                # in this order, as whoever waits has no time limit
                self._on_wait(assignment.job_id, assignment.driver_id, False)
        return orders
