"""Holds the driver that waits for another job, and ends it when its time is over.

Which one waits, and which job gets it, is decided by :mod:`yarnflow.core.job_run.kept_drivers`.  Jobs
begin and end in threads of their own, so every method may be called from any.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping

from yarnflow.core.ids import DriverId
from yarnflow.core.job_run.kept_drivers import KeptDriver, KeptDrivers
from yarnflow.core.ports import Clock

logger = logging.getLogger(__name__)


class DriverKeeper:
    """One cluster's.

    Parameters
    ----------
    idle_timeout_ms : int
        How long a driver waits; 0 = no job asks for one to be kept.
    clock : Clock
    schedule : callable
        Calls an action after some milliseconds.
    kill : callable
        Ends a driver; returns at once.
    """

    def __init__(
        self,
        idle_timeout_ms: int,
        clock: Clock,
        schedule: Callable[[int, Callable[[], None]], object],
        kill: Callable[[DriverId], None],
    ) -> None:
        self._clock = clock
        self._schedule = schedule
        self._kill = kill
        self._lock = threading.Lock()
        self._kept = KeptDrivers(idle_timeout_ms)

    def keep(self, driver: KeptDriver) -> None:
        """A driver has finished its job and waits for another."""
        with self._lock:
            self._kept, replaced = self._kept.keep(driver, self._clock.monotonic_ms())
        self._end(replaced, "another driver waits in its place")
        self._schedule(self._kept.idle_timeout_ms, self._look)

    def take(self, memory_mib: int, options: Mapping[str, str]) -> KeptDriver | None:
        """The driver that waits, for a job with these options; None = there is none for it."""
        with self._lock:
            self._kept, driver, unfit = self._kept.take(memory_mib, options)
        self._end(unfit, "a job with other options begins")
        return driver

    def exited(self, driver_id: DriverId) -> None:
        """The process of a driver has ended."""
        with self._lock:
            self._kept = self._kept.exited(driver_id)

    def _look(self) -> None:
        with self._lock:
            self._kept, late = self._kept.at(self._clock.monotonic_ms())
        self._end(late, f"no job came for {self._kept.idle_timeout_ms / 1000:g} s")

    def _end(self, driver_ids: tuple[DriverId, ...], reason: str) -> None:
        for driver_id in driver_ids:
            logger.info("Driver %s, which had no job, ends: %s.", driver_id, reason)
            self._kill(driver_id)
