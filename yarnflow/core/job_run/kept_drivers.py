"""Which driver that has finished its job waits for another one, and which job gets it.

A driver is of use to a job that would start it with the same memory and the same options: then its session
would be made alike.  One waits at most, and not for long, as it keeps its memory; a job that starts a
driver of another kind has it ended.  Its executors wait on their TaskManagers
(:mod:`yarnflow.runtime.taskexecutor`), on slots that are free for everybody.

Times are milliseconds of a clock that does not jump.  Flink has no counterpart: what runs a job there is
part of a TaskManager, which stays.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from yarnflow.core.ids import DriverId

#: jobs of one driver: what Spark remembers of those that ended grows
MAX_JOBS: Final = 100


@dataclass(frozen=True, slots=True)
class KeptDriver:
    """A driver whose job has finished."""

    driver_id: DriverId
    #: what it was started with
    memory_mib: int
    options: Mapping[str, str]
    #: jobs it has run
    jobs: int
    #: new executors have at least this number: Spark refuses one that it has seen
    next_number: int


@dataclass(frozen=True, slots=True)
class KeptDrivers:
    """Of one cluster; every method returns a new value, with the drivers that are to end."""

    idle_timeout_ms: int
    waiting: KeptDriver | None = None
    until_ms: int = 0

    def keep(self, driver: KeptDriver, at_ms: int) -> tuple[KeptDrivers, tuple[DriverId, ...]]:
        """A driver waits from now on, in place of the one before."""
        return replace(self, waiting=driver, until_ms=at_ms + self.idle_timeout_ms), self._waiting_id

    def take(
        self, memory_mib: int, options: Mapping[str, str]
    ) -> tuple[KeptDrivers, KeptDriver | None, tuple[DriverId, ...]]:
        """A job needs a driver: the one that waits if it fits."""
        driver = self.waiting
        nobody = replace(self, waiting=None)
        if driver is not None and (driver.memory_mib, driver.options) == (memory_mib, options):
            return nobody, driver, ()
        return nobody, None, self._waiting_id

    def exited(self, driver_id: DriverId) -> KeptDrivers:
        """The process of a driver, this one or another, has ended."""
        return replace(self, waiting=None) if driver_id in self._waiting_id else self

    def at(self, at_ms: int) -> tuple[KeptDrivers, tuple[DriverId, ...]]:
        """Time has passed."""
        if self.waiting is None or at_ms < self.until_ms:
            return self, ()
        return replace(self, waiting=None), self._waiting_id

    @property
    def _waiting_id(self) -> tuple[DriverId, ...]:
        return () if self.waiting is None else (self.waiting.driver_id,)
