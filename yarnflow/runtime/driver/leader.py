"""Whom a driver takes for leader.

The leader that launched it, at first; with high availability whoever leads now, as long as the
epoch rises: a master of an earlier epoch is never followed again.  That there is no leader for a
while changes nothing.  Flink counterpart: ``JobMaster``'s use of ``LeaderRetrievalService``.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass

from yarnflow.core.ha.ports import LeaderRetrieval
from yarnflow.core.messages import Fence, LeaderInfo
from yarnflow.core.ports import JobMasterGateway
from yarnflow.errors import YarnflowError

logger = logging.getLogger(__name__)

#: address and fence of a leader → gateway to its JobMasters
Connect = Callable[[str, Fence], JobMasterGateway]


@dataclass(frozen=True, slots=True, eq=False)
class LeadingMaster:
    """One leader and the way to its JobMasters."""

    fence: Fence
    job_master: JobMasterGateway


class LeaderLink:
    """The newest leader this driver has heard of.

    Parameters
    ----------
    address : str
        Of the master that launched this driver.
    fence : Fence
        Its.
    connect : callable
        Opens gateways.
    masters : LeaderRetrieval, optional
        None without high availability: the first leader stays.
    """

    def __init__(
        self, address: str, fence: Fence, connect: Connect, masters: LeaderRetrieval | None = None
    ) -> None:
        self._connect = connect
        self._masters = masters
        self._lock = threading.Lock()
        self._leader = LeadingMaster(fence, connect(address, fence))
        self._listener: Callable[[], None] | None = None

    @property
    def leader(self) -> LeadingMaster:
        """The newest."""
        return self._leader

    @property
    def fence(self) -> Fence:
        """Whose calls are accepted."""
        return self._leader.fence

    @property
    def may_change(self) -> bool:
        """Another master may take over."""
        return self._masters is not None

    def follow(self, listener: Callable[[], None]) -> None:
        """Look for newer leaders from now on; ``listener`` is called for each, from any thread."""
        self._listener = listener
        if self._masters is not None:
            self._masters.on_leader(self._told)

    def look_again(self) -> None:
        """Ask who leads now, as the leader that is known seems not to."""
        if self._masters is None:
            return
        try:
            self._told(self._masters.leader())
        except YarnflowError as error:
            logger.info("Nobody says who leads: %s", error)

    def _told(self, info: LeaderInfo | None) -> None:
        if info is None:
            logger.info("There is no leader at present; the job goes on.")
            return
        with self._lock:
            if info.fence.epoch <= self._leader.fence.epoch:
                return
            self._leader = LeadingMaster(info.fence, self._connect(info.address, info.fence))
        logger.info("The master at %s leads now (epoch %d).", info.address, info.fence.epoch)
        if self._listener is not None:
            self._listener()
