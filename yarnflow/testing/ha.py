"""Fakes of what a process sees of high availability, moved by tests alone."""

from __future__ import annotations

import threading
from collections.abc import Callable

from yarnflow.core.ha.ports import DriverLeaseInfo
from yarnflow.core.messages import Fence, LeaderInfo
from yarnflow.errors import HaError, LeaseLost, YarnflowError


def leader_info(epoch: int, address: str = "") -> LeaderInfo:
    """The leader of an epoch, at ``host-<epoch>:1`` unless told otherwise."""
    return LeaderInfo(Fence(f"leader-{epoch}", epoch), address or f"host-{epoch}:1", "0", "cluster")


class FakeLeaderRetrieval:
    """A :class:`~yarnflow.core.ha.ports.LeaderRetrieval` that says what it was told.

    Attributes
    ----------
    error : HaError, optional
        Raised by :meth:`leader` while it is set.
    looks : int
        Calls of :meth:`leader`.
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
        """As often as a test says."""
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
        """Remember."""
        self.closed = True


class FakeDriverLease:
    """A :class:`~yarnflow.core.ha.ports.DriverLease` that is to be had unless ``error`` says why not.

    Attributes
    ----------
    acquired, updates : list of DriverLeaseInfo
        What :meth:`acquire` and :meth:`update` were given.
    error, update_error : YarnflowError, optional
        Raised by :meth:`acquire` and :meth:`update` while set.
    """

    def __init__(self) -> None:
        self.acquired: list[DriverLeaseInfo] = []
        self.updates: list[DriverLeaseInfo] = []
        self.error: LeaseLost | None = None
        self.update_error: YarnflowError | None = None
        self.checks = 0
        self.released = False
        self._lost = ""
        self._listeners: list[Callable[[str], None]] = []

    def acquire(self, info: DriverLeaseInfo, timeout_ms: int) -> None:
        """Take it, or fail at once."""
        if self.error is not None:
            raise self.error
        self.acquired.append(info)

    def update(self, info: DriverLeaseInfo) -> None:
        """Remember."""
        if self.update_error is not None:
            raise self.update_error
        self.updates.append(info)

    def check(self) -> None:
        """Fail after :meth:`lose`."""
        self.checks += 1
        if self._lost:
            raise LeaseLost(self._lost)

    def on_lost(self, listener: Callable[[str], None]) -> None:
        """Remember who wants to know."""
        self._listeners.append(listener)

    def lose(self, reason: str) -> None:
        """It may have expired."""
        self._lost = reason
        for listener in self._listeners:
            listener(reason)

    def release(self) -> None:
        """Remember."""
        self.released = True
