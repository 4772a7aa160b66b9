"""Driver processes that a test starts and ends."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from yarnflow.core.ids import DriverId
from yarnflow.core.messages import DriverAssignment
from yarnflow.core.ports import DriverExitListener, DriverWaitListener
from yarnflow.errors import YarnflowError


@dataclass
class FakeDriverLauncher:
    """:class:`~yarnflow.core.ports.DriverLauncher` without processes.

    :meth:`end` ends one, :meth:`wait` has one wait for its container.
    """

    assignments: list[DriverAssignment] = field(default_factory=list)
    killed: list[DriverId] = field(default_factory=list)
    #: the answer of :meth:`awaits_standby`
    awaiting: bool = False
    #: raised by each launch
    error: YarnflowError | None = None
    #: raised by the launch of one driver
    errors: dict[DriverId, YarnflowError] = field(default_factory=dict)
    #: hot spares that are to be elsewhere
    misplaced_ids: set[DriverId] = field(default_factory=set)
    #: set by each launch
    launched: threading.Event = field(default_factory=threading.Event)
    #: called by each kill
    on_kill: Callable[[DriverId], None] = lambda driver_id: None
    _listeners: list[DriverExitListener] = field(default_factory=list)
    _wait_listeners: list[DriverWaitListener] = field(default_factory=list)

    def launch(self, assignment: DriverAssignment, memory_mib: int) -> None:
        """Add to :attr:`assignments`."""
        error = self.error or self.errors.get(assignment.driver_id)
        if error is not None:
            raise error
        self.assignments.append(assignment)
        self.launched.set()

    def settled(self, driver_id: DriverId) -> None:
        """Nobody waits."""

    def awaits_standby(self) -> bool:
        """Answer :attr:`awaiting`."""
        return self.awaiting

    def misplaced(self, driver_id: DriverId, hot_spare_of: DriverId) -> bool:
        """Whether it is in :attr:`misplaced_ids`."""
        return driver_id in self.misplaced_ids

    def kill(self, driver_id: DriverId, grace_ms: int = 0) -> None:
        """Add to :attr:`killed`; that the process has ended is for the test to say."""
        self.killed.append(driver_id)
        self.on_kill(driver_id)

    def runs(self, driver_id: DriverId) -> bool:
        """Whether it was launched and not killed."""
        return driver_id in {each.driver_id for each in self.assignments} - set(self.killed)

    def on_exit(self, listener: DriverExitListener) -> None:
        """Call ``listener`` with each :meth:`end`."""
        self._listeners.append(listener)

    def on_wait(self, listener: DriverWaitListener) -> None:
        """Call ``listener`` with each :meth:`wait`."""
        self._wait_listeners.append(listener)

    def wait(self, driver_id: DriverId, waits: bool = True) -> None:
        """The container of ``driver_id`` was asked for, or granted."""
        for listener in self._wait_listeners:
            listener(driver_id, waits)

    def end(self, driver_id: DriverId, exit_status: int, output_tail: str = "") -> None:
        """The process of ``driver_id`` ends."""
        for listener in self._listeners:
            listener(driver_id, exit_status, output_tail)
