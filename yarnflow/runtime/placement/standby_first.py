"""Where drivers with containers of their own are started: by the standbys in turn.

So they outlive the leader's application.  A driver stays where it is for its life; while no standby takes
one, it is started by the leader.  Flink has no counterpart.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Sequence

from yarnflow.core.ids import DriverId
from yarnflow.core.messages import DriverAssignment
from yarnflow.core.ports import DriverExitListener, DriverLauncher, DriverWaitListener
from yarnflow.runtime.placement.standby_hosts import StandbyHosts


class StandbyFirstLauncher:
    """A :class:`~yarnflow.core.ports.DriverLauncher` that prefers standbys.  Any thread.

    Parameters
    ----------
    own : DriverLauncher
        This master's supervisor.
    hosts : StandbyHosts
    standbys : callable
        Addresses of the other masters; quick.
    """

    def __init__(
        self, own: DriverLauncher, hosts: StandbyHosts, standbys: Callable[[], Sequence[str]]
    ) -> None:
        self._own = own
        self._hosts = hosts
        self._standbys = standbys
        self._turns = itertools.count()

    def launch(self, assignment: DriverAssignment, memory_mib: int) -> None:
        """Start a driver on a standby, else here.  Returns at once."""
        threading.Thread(
            target=self._place, args=(assignment, memory_mib), name="place-driver", daemon=True
        ).start()

    def kill(self, driver_id: DriverId, grace_ms: int = 0) -> None:
        """End one that was started here; others end when their lease is revoked."""
        self._own.kill(driver_id, grace_ms)

    def runs(self, driver_id: DriverId) -> bool:
        """Whether it was started here."""
        return self._own.runs(driver_id)

    def on_exit(self, listener: DriverExitListener) -> None:
        """Ends of those that were started here; a standby reports the ends of others to their job."""
        self._own.on_exit(listener)

    def on_wait(self, listener: DriverWaitListener) -> None:
        """Of those that were started here; a standby reports for others."""
        self._own.on_wait(listener)

    def _place(self, assignment: DriverAssignment, memory_mib: int) -> None:
        standbys = list(self._standbys())
        first = next(self._turns) % max(len(standbys), 1)
        if not self._hosts.start(assignment, memory_mib, standbys[first:] + standbys[:first]):
            self._own.launch(assignment, memory_mib)
