"""Where hot spares are started: on a standby, so that they outlive this master.

On YARN a lost master takes its drivers and the TaskManagers of its application with it; a standby
has both of its own, and is the one that leads next.  A standby that has the job's own driver, which
stays where it is when another master begins to lead, refuses its hot spare; then this master, which
has not, is the right place.  So it is while there is no standby; one that comes later is a reason to
move.  What hot spares are for, when there is one and when it moves, is decided by
:mod:`yarnflow.core.job_run.spare`.

Flink has no counterpart.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Final

from yarnflow.core.ids import DriverId
from yarnflow.core.messages import DriverAssignment
from yarnflow.core.ports import Clock, DriverExitListener, DriverLauncher, DriverWaitListener
from yarnflow.runtime.placement.standby_hosts import StandbyHosts

#: how long a standby that should come is waited for
STANDBY_PATIENCE_MS: Final = 60_000
#: a standby's TaskManagers come a while after itself
STANDBY_SETTLES_MS: Final = 10_000


class HotSpareLauncher:
    """Implements :class:`~yarnflow.runtime.jobmaster.services.HotSpareLaunching`.  Any thread.

    Parameters
    ----------
    own : DriverLauncher
        This master's supervisor.
    hosts : StandbyHosts
    standbys : callable
        Addresses of the other masters, the one that leads next first; quick.
    expected : bool
        There is to be a standby, which comes by itself.
    clock : Clock
    """

    def __init__(
        self,
        own: DriverLauncher,
        hosts: StandbyHosts,
        standbys: Callable[[], Sequence[str]],
        expected: bool,
        clock: Clock,
    ) -> None:
        self._own = own
        self._hosts = hosts
        self._standbys = standbys
        self._expected = expected
        self._clock = clock
        self._since_ms = clock.monotonic_ms()
        #: standby → since when it is known
        self._known_ms: dict[str, int] = {}

    def awaits_standby(self) -> bool:
        """The place of hot spares is still to come."""
        if not self._expected:
            return False
        settled = self._settled()
        if self._known_ms:
            return not settled
        return self._clock.monotonic_ms() - self._since_ms < STANDBY_PATIENCE_MS

    def misplaced(self, driver_id: DriverId, hot_spare_of: DriverId) -> bool:
        """Both are this master's, and there is another one that could have the hot spare."""
        others = [address for address in self._settled() if self._hosts.asks(address)]
        return bool(others) and self._own.runs(driver_id) and self._own.runs(hot_spare_of)

    def _settled(self) -> list[str]:
        """Standbys that have been there long enough to have TaskManagers."""
        now_ms = self._clock.monotonic_ms()
        self._known_ms = {address: self._known_ms.get(address, now_ms) for address in self._standbys()}
        enough_ms = STANDBY_SETTLES_MS if self._expected else 0
        return [address for address, since_ms in self._known_ms.items() if now_ms - since_ms >= enough_ms]

    def launch(self, assignment: DriverAssignment, memory_mib: int) -> None:
        """Start a driver on the first standby that takes it, else here.  Returns at once."""
        threading.Thread(
            target=self._place, args=(assignment, memory_mib), name="place-hot-spare", daemon=True
        ).start()

    def kill(self, driver_id: DriverId, grace_ms: int = 0) -> None:
        """End one that was started here; others end when their lease is revoked."""
        self._own.kill(driver_id, grace_ms)

    def runs(self, driver_id: DriverId) -> bool:
        """Whether it was started here."""
        return self._own.runs(driver_id)

    def on_exit(self, listener: DriverExitListener) -> None:
        """Ends of those that were started here; others fall silent."""
        self._own.on_exit(listener)

    def on_wait(self, listener: DriverWaitListener) -> None:
        """Of those that were started here; a standby reports for others."""
        self._own.on_wait(listener)

    def _place(self, assignment: DriverAssignment, memory_mib: int) -> None:
        if not self._hosts.start(assignment, memory_mib, self._standbys()):
            self._own.launch(assignment, memory_mib)
