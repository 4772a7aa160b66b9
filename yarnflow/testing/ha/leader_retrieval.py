"""A leader that is whoever the test says."""

from __future__ import annotations

import threading
from collections.abc import Callable

from yarnflow.core.messages import Fence, LeaderInfo
from yarnflow.errors import HaError


def leader_info(epoch: int, address: str = "") -> LeaderInfo:
    """The leader of an epoch, at ``host-<epoch>:1`` unless told otherwise."""
    return LeaderInfo(Fence(f"leader-{epoch}", epoch), address or f"host-{epoch}:1", "0", "cluster")


class FakeLeaderRetrieval:
    """:class:`~yarnflow.core.ha.ports.LeaderRetrieval` that says what it was told.

    Attributes
    ----------
    error : HaError, optional
        Raised by :meth:`leader` while it is set.
    looks : int
        Calls of :meth:`leader`.
    closed : bool
        :meth:`close` was called.
    """

    def __init__(self, leader: LeaderInfo | None = None) -> None:
        self.error: HaError | None = None
        self.looks = 0
        self.closed = False
        self._lock = threading.Lock()
        self._leader = leader
        self._listeners: list[Callable[[LeaderInfo | None], None]] = []

    def set_leader(self, leader: LeaderInfo | None, tell: bool = True) -> None:
        """Another one leads, or nobody; with ``tell`` false only those who ask get to know."""
        with self._lock:
            self._leader = leader
            listeners = list(self._listeners) if tell else []
        for listener in listeners:
            listener(leader)

    @property
    def may_change(self) -> bool:
        """True."""
        return True

    def leader(self) -> LeaderInfo | None:
        """Who leads now."""
        self.looks += 1
        if self.error is not None:
            raise self.error
        return self._leader

    def on_leader(self, listener: Callable[[LeaderInfo | None], None]) -> None:
        """Tell at once, and with each :meth:`set_leader`."""
        with self._lock:
            self._listeners.append(listener)
            leader = self._leader
        listener(leader)

    def close(self) -> None:
        """Set :attr:`closed`."""
        self.closed = True
