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

import logging
import threading
from collections.abc import Callable, Sequence
from typing import Final

from yarnflow.core.ids import DriverId
from yarnflow.core.messages import DriverAssignment
from yarnflow.core.ports import Clock, DriverExitListener, DriverLauncher, GatewayFactory
from yarnflow.errors import ResourceError, RpcTimeout, YarnflowError

logger = logging.getLogger(__name__)

#: how long a standby that should come is waited for
STANDBY_PATIENCE_MS: Final = 60_000
#: a standby's TaskManagers come a while after itself
STANDBY_SETTLES_MS: Final = 10_000
#: how long a standby that took no hot spare is not asked again; doubled each time
NOT_ASKED_MS: Final = 30_000
_MAX_NOT_ASKED_MS: Final = 3_600_000


class HotSpareLauncher:
    """Implements :class:`~yarnflow.runtime.jobmaster.services.HotSpareLaunching`.  Any thread.

    Parameters
    ----------
    own : DriverLauncher
        This master's supervisor.
    gateways : GatewayFactory
    standbys : callable
        Addresses of the other masters, the one that leads next first; quick.
    expected : bool
        There is to be a standby, which comes by itself.
    clock : Clock
    """

    def __init__(
        self,
        own: DriverLauncher,
        gateways: GatewayFactory,
        standbys: Callable[[], Sequence[str]],
        expected: bool,
        clock: Clock,
    ) -> None:
        self._own = own
        self._gateways = gateways
        self._standbys = standbys
        self._expected = expected
        self._clock = clock
        self._since_ms = clock.monotonic_ms()
        #: standby → since when it is known
        self._known_ms: dict[str, int] = {}
        #: standby that took none or did not answer → until when it is not asked, and how long that is
        self._not_asked_until: dict[str, tuple[int, int]] = {}

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
        others = [address for address in self._settled() if not self._is_not_asked(address)]
        return bool(others) and self._own.runs(driver_id) and self._own.runs(hot_spare_of)

    def _settled(self) -> list[str]:
        """Standbys that have been there long enough to have TaskManagers."""
        now_ms = self._clock.monotonic_ms()
        self._known_ms = {address: self._known_ms.get(address, now_ms) for address in self._standbys()}
        enough_ms = STANDBY_SETTLES_MS if self._expected else 0
        return [address for address, since_ms in self._known_ms.items() if now_ms - since_ms >= enough_ms]

    def _is_not_asked(self, address: str) -> bool:
        return self._clock.monotonic_ms() < self._not_asked_until.get(address, (0, 0))[0]

    def _ask_later(self, address: str) -> None:
        _, before_ms = self._not_asked_until.get(address, (0, 0))
        not_asked_ms = min(max(2 * before_ms, NOT_ASKED_MS), _MAX_NOT_ASKED_MS)
        self._not_asked_until[address] = (self._clock.monotonic_ms() + not_asked_ms, not_asked_ms)

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

    def _place(self, assignment: DriverAssignment, memory_mib: int) -> None:
        for address in self._standbys():
            if self._is_not_asked(address):
                continue
            try:
                self._gateways.master(address).host_driver(assignment, memory_mib)
            except RpcTimeout as error:
                # it may be there; if it is not, it does not register, and another one is started
                logger.warning("Driver %s: %s", assignment.driver_id, error)
                self._ask_later(address)
                return
            except ResourceError as error:  # as it has the job's own driver
                logger.info("The master at %s keeps no hot spare: %s", address, error)
            except YarnflowError as error:
                logger.info("The master at %s keeps no hot spare: %s", address, error)
                self._ask_later(address)
            else:
                self._not_asked_until.pop(address, None)
                logger.info("Driver %s is kept by the master at %s.", assignment.driver_id, address)
                return
        self._own.launch(assignment, memory_mib)
