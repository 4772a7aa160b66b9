"""A driver's lease that is lost when the test says so."""

from __future__ import annotations

from collections.abc import Callable

from yarnflow.core.ha.ports import DriverLeaseInfo
from yarnflow.errors import LeaseLost, YarnflowError


class FakeDriverLease:
    """:class:`~yarnflow.core.ha.ports.DriverLease` that can be acquired unless ``error`` is set.

    Attributes
    ----------
    acquired, updates : list of DriverLeaseInfo
        What :meth:`acquire` and :meth:`update` were given.
    error, update_error : YarnflowError, optional
        Raised by :meth:`acquire` and :meth:`update` while set.
    checks : int
        Calls of :meth:`check`.
    lost : str
        Why it is lost; empty = it is not.  Set by :meth:`lose`, which also tells the listeners.
    released : bool
        :meth:`release` was called.
    """

    def __init__(self) -> None:
        self.acquired: list[DriverLeaseInfo] = []
        self.updates: list[DriverLeaseInfo] = []
        self.error: LeaseLost | None = None
        self.update_error: YarnflowError | None = None
        self.checks = 0
        self.released = False
        self.lost = ""
        self._listeners: list[Callable[[str], None]] = []

    def acquire(self, info: DriverLeaseInfo, timeout_ms: int) -> None:
        """Add to :attr:`acquired`, or raise :attr:`error`; does not wait."""
        if self.error is not None:
            raise self.error
        self.acquired.append(info)

    def update(self, info: DriverLeaseInfo) -> None:
        """Add to :attr:`updates`, or raise :attr:`update_error`."""
        if self.update_error is not None:
            raise self.update_error
        self.updates.append(info)

    def check(self) -> None:
        """Raise LeaseLost once it is lost."""
        self.checks += 1
        if self.lost:
            raise LeaseLost(self.lost)

    def on_lost(self, listener: Callable[[str], None]) -> None:
        """Call ``listener`` with :meth:`lose`."""
        self._listeners.append(listener)

    def lose(self, reason: str) -> None:
        """Lose the lease, as when it may have expired."""
        self.lost = reason
        for listener in self._listeners:
            listener(reason)

    def release(self) -> None:
        """Set :attr:`released`."""
        self.released = True
