"""A standby as the leading master sees it."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from yarnflow.core.messages import DriverAssignment, LogLevel
from yarnflow.errors import YarnflowError


@dataclass
class FakeMaster:
    """:class:`~yarnflow.core.ports.MasterGateway` that records its calls; ``error`` makes them fail."""

    hosted: list[DriverAssignment] = field(default_factory=list)
    levels: list[LogLevel] = field(default_factory=list)
    error: YarnflowError | None = None
    #: raised by every call to its Dispatcher
    down: YarnflowError | None = None
    #: set by each call, also by those that fail
    asked: threading.Event = field(default_factory=threading.Event)

    def host_driver(self, assignment: DriverAssignment, memory_mib: int) -> None:
        """Add to :attr:`hosted`."""
        try:
            if self.error is not None:
                raise self.error
            self.hosted.append(assignment)
        finally:
            self.asked.set()

    def set_log_level(self, level: LogLevel) -> None:
        """Add to :attr:`levels`."""
        if self.error is not None:
            raise self.error
        self.levels.append(level)
