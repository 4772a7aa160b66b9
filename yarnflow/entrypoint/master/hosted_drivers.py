"""Drivers that a standby has started for the leader.

The leader is not told by its own supervisor when one of them ends.  Where each driver has a container, the
standby reports the end as the driver's last report; its lease would tell the leader only that it has
ended, and that only if the driver ever had it.  While no master leads, or the leader cannot be reached, it
tries again, and tells whoever leads then.  Flink has no counterpart.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable
from typing import Final

from yarnflow.core.ids import DriverId, JobId
from yarnflow.core.job.failures import ended_by, error_info
from yarnflow.core.messages import DriverAssignment, DriverPhase, DriverReport, LeaderInfo
from yarnflow.core.ports import DriverLauncher, GatewayFactory
from yarnflow.entrypoint.master.waiting_reports import WaitingReports, in_thread, is_final
from yarnflow.errors import DriverLost, YarnflowError, error_from_exit

logger = logging.getLogger(__name__)

#: driver, exit status, last lines of output
DriverEnd = tuple[DriverId, int, str]
_KEPT: Final = 100
#: between two tries to tell of an end
_RETRY_S: Final = 1.0
#: between two reports for drivers that wait for their containers
_WAITING_S: Final = 10.0
#: for an election whatever ZooKeeper's time-outs are; later the leader has missed the driver by itself
_TRIES: Final = 300


class HostedDrivers:
    """Starts drivers for the leader; any thread.

    Parameters
    ----------
    launcher : DriverLauncher
        This master's own supervisor.
    known_leader : callable
        Who leads as far as this process knows; quick.
    gateways : GatewayFactory
    retry_s : float
        Pause before the leader is looked for again.
    waiting_s : float
        Pause between two reports for a driver that waits; below ``taskmanager.registration.timeout``.
    """

    def __init__(
        self,
        launcher: DriverLauncher,
        known_leader: Callable[[], LeaderInfo | None],
        gateways: GatewayFactory,
        retry_s: float = _RETRY_S,
        waiting_s: float = _WAITING_S,
    ) -> None:
        self._launcher = launcher
        self._known_leader = known_leader
        self._gateways = gateways
        self._retry_s = retry_s
        self._waiting = WaitingReports(known_leader, gateways, launcher.kill, waiting_s)
        self._lock = threading.Lock()
        self._jobs: dict[DriverId, JobId] = {}
        self._closed = threading.Event()
        #: ends that the leader was not told of
        self._untold: deque[DriverEnd] = deque(maxlen=_KEPT)

    def report_ends(self) -> None:
        """Tell the leader from now on which drivers that were started for it wait, or have ended."""
        self._launcher.on_exit(self._exited)
        self._launcher.on_wait(self._waits)

    def launch(self, assignment: DriverAssignment, memory_mib: int) -> None:
        """Start a driver of the leader's."""
        with self._lock:  # first: its end may be told at once
            self._jobs[assignment.driver_id] = assignment.job_id
        try:
            self._launcher.launch(assignment, memory_mib)
        except YarnflowError:
            with self._lock:
                self._jobs.pop(assignment.driver_id, None)
            raise

    def runs(self, driver_id: DriverId) -> bool:
        """Whether a driver is this master's."""
        return self._launcher.runs(driver_id)

    def close(self) -> list[DriverEnd]:
        """This master leads: report nothing any more.

        Drivers that wait for their containers are given up: as they have no lease, their jobs ask for others.

        Returns
        -------
        list of (driver, exit status, last lines of output)
            Ends that no leader was told of.
        """
        with self._lock:
            self._closed.set()
            untold, self._untold = list(self._untold), deque()
            waiting = self._waiting.close()
        for driver_id in waiting:
            self._launcher.kill(driver_id)
        return untold

    def _exited(self, driver_id: DriverId, exit_status: int, output_tail: str) -> None:
        end: DriverEnd = driver_id, exit_status, output_tail
        with self._lock:
            job_id = self._jobs.pop(driver_id, None)
            self._waiting.forget(driver_id)
            if self._closed.is_set():
                return
            self._untold.append(end)
            if job_id is None:
                return
        error = error_from_exit(exit_status, output_tail) or DriverLost(
            f"driver {driver_id} {ended_by(exit_status, output_tail)}"
        )
        report = DriverReport(
            job_id, driver_id, 0, DriverPhase.FAILED, error=error_info(error), driver_unusable=True
        )
        in_thread(f"report-end-{driver_id}", lambda: self._tell(report, end))

    def _waits(self, driver_id: DriverId, waits: bool) -> None:
        # within the lock: one that has ended meanwhile does not wait
        with self._lock:
            job_id = self._jobs.get(driver_id)
            if job_id is None or self._closed.is_set():
                return
            if waits:
                self._waiting.begin(driver_id, job_id)
            else:
                self._waiting.granted(driver_id)

    def _tell(self, report: DriverReport, end: DriverEnd) -> None:
        """Until a leader has answered, or this master leads itself."""
        for _ in range(_TRIES):
            if self._reported(report):
                with self._lock:
                    if end in self._untold:
                        self._untold.remove(end)
                return
            if self._closed.wait(self._retry_s):
                return
        logger.warning("No leader could be told of the end of driver %s.", report.driver_id)

    def _reported(self, report: DriverReport) -> bool:
        leader = self._known_leader()
        if leader is None:
            return False
        try:
            self._gateways.job_master(leader.address, leader.fence).report(report)
        except YarnflowError as error:
            logger.info("The end of driver %s was not taken: %s", report.driver_id, error)
            return is_final(error)
        return True
