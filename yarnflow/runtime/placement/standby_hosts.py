"""The other masters, as places for drivers.

On YARN a lost master takes the containers of its application with it, so a driver that is to outlive the
leader is started by a standby.  Flink has no counterpart.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Final

from yarnflow.core.messages import DriverAssignment
from yarnflow.core.ports import Clock, GatewayFactory
from yarnflow.errors import ResourceError, RpcTimeout, YarnflowError

logger = logging.getLogger(__name__)

#: how long a standby that took no driver is not asked again; doubled each time
NOT_ASKED_MS: Final = 30_000
_MAX_NOT_ASKED_MS: Final = 3_600_000
#: a standby that does not say by then who leads is passed over: the job waits meanwhile
ANSWERS_WITHIN_MS: Final = 2_000


class StandbyHosts:
    """Asks standbys to start drivers, and for a while not those that did not answer.  Any thread.

    Parameters
    ----------
    gateways : GatewayFactory
    clock : Clock
    """

    def __init__(self, gateways: GatewayFactory, clock: Clock) -> None:
        self._gateways = gateways
        self._clock = clock
        #: standby that took none or did not answer → until when it is not asked, and how long that is
        self._not_asked_until: dict[str, tuple[int, int]] = {}

    def asks(self, address: str) -> bool:
        """Whether a standby would be asked now."""
        return self._clock.monotonic_ms() >= self._not_asked_until.get(address, (0, 0))[0]

    def start(self, assignment: DriverAssignment, memory_mib: int, standbys: Iterable[str]) -> bool:
        """Have the first standby start a driver that takes it; blocks.

        A standby is asked who leads before: one that hangs then has no order that it would follow later,
        and the next one can be asked at once.

        Returns
        -------
        bool
            False = none did.  True if one may have: if it has not, the driver never registers.
        """
        for address in standbys:
            if not self.asks(address):
                continue
            try:
                self._gateways.dispatcher(address, ANSWERS_WITHIN_MS).leader()
            except YarnflowError as error:
                logger.warning("The master at %s is passed over: %s", address, error)
                self._ask_later(address)
                continue
            try:
                self._gateways.master(address).host_driver(assignment, memory_mib)
            except RpcTimeout as error:
                logger.warning("Driver %s: %s", assignment.driver_id, error)
                self._ask_later(address)
                return True
            except ResourceError as error:  # as it has the job's own driver
                logger.info("The master at %s takes no driver: %s", address, error)
            except YarnflowError as error:
                logger.info("The master at %s takes no driver: %s", address, error)
                self._ask_later(address)
            else:
                self._not_asked_until.pop(address, None)
                logger.info("Driver %s is kept by the master at %s.", assignment.driver_id, address)
                return True
        return False

    def _ask_later(self, address: str) -> None:
        _, before_ms = self._not_asked_until.get(address, (0, 0))
        not_asked_ms = min(max(2 * before_ms, NOT_ASKED_MS), _MAX_NOT_ASKED_MS)
        self._not_asked_until[address] = (self._clock.monotonic_ms() + not_asked_ms, not_asked_ms)
