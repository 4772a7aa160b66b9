"""How many drivers start at the same time.

A driver that starts needs a processor for some seconds, so hundreds that start at once, as after the loss
of a master, would all be late.  Those beyond the limit wait their turn.  Never decides whether a driver
is wanted.
Flink has no counterpart.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from yarnflow.core.ids import DriverId


@dataclass(frozen=True, slots=True)
class DriverStarts:
    """Drivers that have not registered; every method returns a new value."""

    #: at the same time; 0 = no limit
    limit: int
    starting: frozenset[DriverId] = frozenset()
    #: in the order they were asked for
    waiting: tuple[DriverId, ...] = ()

    def asked(self, driver_id: DriverId) -> DriverStarts:
        """A driver is wanted; it is among :attr:`starting` then if it may start at once."""
        if driver_id in self.starting or driver_id in self.waiting:
            return self
        return replace(self, waiting=(*self.waiting, driver_id))._filled()

    def over(self, driver_id: DriverId) -> DriverStarts:
        """A driver has registered, has ended or is not wanted any more: others may start in its place."""
        waiting = tuple(other for other in self.waiting if other != driver_id)
        return replace(self, starting=self.starting - {driver_id}, waiting=waiting)._filled()

    def _filled(self) -> DriverStarts:
        room = len(self.waiting) if self.limit <= 0 else max(0, self.limit - len(self.starting))
        starting = self.starting | set(self.waiting[:room])
        return replace(self, starting=starting, waiting=self.waiting[room:])
