"""Reports for drivers that wait for their containers, to whoever leads.

So the leader knows that such a driver lives, and the time to register begins when its container is there.
Decides that a request which the leader wants no more is withdrawn.  Flink has no counterpart.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from yarnflow.core.ids import DriverId, JobId
from yarnflow.core.messages import DriverPhase, DriverReport, LeaderInfo
from yarnflow.core.ports import GatewayFactory
from yarnflow.errors import DriverLost, JobNotFound, YarnflowError

logger = logging.getLogger(__name__)


class WaitingReports:
    """Reports for every driver that waits, in a thread there is while any does; any thread.

    Parameters
    ----------
    known_leader : callable
        Who leads as far as this process knows; quick.
    gateways : GatewayFactory
    give_up : callable
        Withdraws the request for a driver.
    pause_s : float
        Between two reports for a driver.
    """

    def __init__(
        self,
        known_leader: Callable[[], LeaderInfo | None],
        gateways: GatewayFactory,
        give_up: Callable[[DriverId], None],
        pause_s: float,
    ) -> None:
        self._known_leader = known_leader
        self._gateways = gateways
        self._give_up = give_up
        self._pause_s = pause_s
        self._lock = threading.Lock()
        self._waiting: dict[DriverId, JobId] = {}
        self._thread_runs = False
        self._closed = threading.Event()

    def begin(self, driver_id: DriverId, job_id: JobId) -> None:
        """A driver waits."""
        with self._lock:
            self._waiting[driver_id] = job_id
            starts, self._thread_runs = not self._thread_runs, True
        if starts:
            in_thread("report-waits", self._report_all)

    def granted(self, driver_id: DriverId) -> None:
        """It has its container: its time to register begins now."""
        with self._lock:
            job_id = self._waiting.pop(driver_id, None)
        if job_id is not None:
            in_thread(f"report-grant-{driver_id}", lambda: self._report(driver_id, job_id))

    def forget(self, driver_id: DriverId) -> None:
        """It has ended."""
        with self._lock:
            self._waiting.pop(driver_id, None)

    def close(self) -> list[DriverId]:
        """Report nothing any more; returns the drivers that still wait."""
        with self._lock:
            self._closed.set()
            waiting, self._waiting = list(self._waiting), {}
        return waiting

    def _report_all(self) -> None:
        while True:
            with self._lock:
                waiting = list(self._waiting.items())
                self._thread_runs = bool(waiting) and not self._closed.is_set()
                if not self._thread_runs:
                    return
            for driver_id, job_id in waiting:
                self._report(driver_id, job_id)
            self._closed.wait(self._pause_s)

    def _report(self, driver_id: DriverId, job_id: JobId) -> None:
        leader = self._known_leader()
        if leader is None or self._closed.is_set():
            return
        try:
            report = DriverReport(job_id, driver_id, 0, DriverPhase.IDLE)
            self._gateways.job_master(leader.address, leader.fence).report(report)
        except YarnflowError as error:
            if is_final(error):
                logger.info("Driver %s is not waited for any more: %s", driver_id, error)
                self._give_up(driver_id)


def in_thread(name: str, action: Callable[[], None]) -> None:
    """Not in the thread that hears of it: a report may take long."""
    threading.Thread(target=action, name=name, daemon=True).start()


def is_final(error: YarnflowError) -> bool:
    """Whether the job is over, or has another driver; else whoever leads may be told later."""
    return isinstance(error, (DriverLost, JobNotFound))
