"""Whom a process takes for leader, and the way to it.

Decides when the leader that is known gives way to another one: when a newer one is heard of, or when
whoever called it found that it does not lead or does not answer and asks again.  The epoch of whom it
follows never falls.  Never decides where a leader is looked for (that is the ``LeaderRetrieval``'s
business), nor when a call is repeated.  Drivers, TaskManagers and clients all follow by this class.

Flink counterpart: what ``JobMaster``, ``TaskExecutor`` and ``RestClusterClient`` each do around their
``LeaderRetrievalService``.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from yarnflow.core.ha.ports import LeaderRetrieval
from yarnflow.core.messages import Fence, LeaderInfo
from yarnflow.errors import LeadershipLost, ResourceError, YarnflowError

logger = logging.getLogger(__name__)

G = TypeVar("G")

_NOBODY: Final = Fence("", 0)


@dataclass(frozen=True, slots=True, eq=False)
class FollowedLeader(Generic[G]):
    """One leader and the way to it; another object for each time it was found."""

    info: LeaderInfo
    gateway: G

    @property
    def fence(self) -> Fence:
        """What calls to it carry, and its own."""
        return self.info.fence


class LeaderFollower(Generic[G]):
    """The newest leader this process has heard of.

    Parameters
    ----------
    retrieval : LeaderRetrieval
        Where leaders are looked for, and heard of.
    connect : callable
        Opens the gateway to a leader; quick.
    known : LeaderInfo, optional
        Known from the beginning.
    newest_only : bool
        A leader that is older than the last one is refused.  False where whoever is named is asked, as
        nothing is accepted from it.
    """

    def __init__(
        self,
        retrieval: LeaderRetrieval,
        connect: Callable[[LeaderInfo], G],
        known: LeaderInfo | None = None,
        *,
        newest_only: bool = True,
    ) -> None:
        self._retrieval = retrieval
        self._connect = connect
        self._newest_only = newest_only
        self._listener: Callable[[], None] = lambda: None
        #: guards the three below: many threads look for the leader at the same time
        self._lock = threading.Lock()
        self._present: FollowedLeader[G] | None = None
        self._fence = _NOBODY
        #: rises whenever the leader is forgotten: an answer of before that is not kept
        self._forgotten = 0
        if known is not None:
            self._follow(known)

    @property
    def fence(self) -> Fence:
        """Of the newest leader there has been; calls of any other master are refused."""
        return self._fence

    @property
    def present(self) -> FollowedLeader[G] | None:
        """The leader that is known; None while one has to be looked for."""
        return self._present

    @property
    def may_change(self) -> bool:
        """Another master may take over."""
        return self._retrieval.may_change

    def leader(self) -> FollowedLeader[G]:
        """The leader that is known; looked for when there is none, which may block.

        Raises
        ------
        LeadershipLost
            There is none at the moment.
        ResourceError
            The one that is named is older than the last one.
        YarnflowError
            Nobody says who leads.
        """
        with self._lock:
            known, forgotten = self._present, self._forgotten
        if known is not None:
            return known
        info = self._retrieval.leader()
        if info is None:
            raise LeadershipLost("no master leads at the moment; try again")
        with self._lock:
            if self._present is not None and self._present.fence.epoch >= info.fence.epoch:
                return self._present  # heard of meanwhile
            if self._newest_only and info.fence.epoch < self._fence.epoch:
                raise ResourceError(
                    f"the master at {info.address} is older than the last one; waiting for the new one"
                )
            found = self._follow(info)
            if forgotten != self._forgotten:
                self._present = None
            return found

    def forget(self, leader: FollowedLeader[G] | None = None) -> bool:
        """Look for the leader again before the next call.

        Parameters
        ----------
        leader : FollowedLeader, optional
            The one that was called; another one that was found meanwhile is kept.

        Returns
        -------
        bool
            Whether one was forgotten.
        """
        with self._lock:
            if leader not in (None, self._present):
                return False
            # also while it is looked for: the answer may be the one that is to be forgotten
            self._forgotten += 1
            was_known, self._present = self._present is not None, None
            return was_known

    def follow(self, listener: Callable[[], None]) -> None:
        """Hear of newer leaders from now on; ``listener`` is called for each, from any thread."""
        self._listener = listener
        self._retrieval.on_leader(self._told)

    def look_again(self) -> None:
        """Ask who leads now, as the leader that is known seems not to; only a newer one replaces it."""
        try:
            self._told(self._retrieval.leader())
        except YarnflowError as error:
            logger.info("Nobody says who leads: %s", error)

    def _told(self, info: LeaderInfo | None) -> None:
        if info is None:
            logger.info("There is no leader at present.")
            return
        with self._lock:
            if info.fence.epoch <= self._fence.epoch:
                return
            self._follow(info)
        logger.info("The master at %s leads now (epoch %d).", info.address, info.fence.epoch)
        self._listener()

    def _follow(self, info: LeaderInfo) -> FollowedLeader[G]:
        found = self._present = FollowedLeader(info, self._connect(info))
        self._fence = info.fence
        return found
